--- The printed table of nn.summary.

local summary_table = {}

local columns = {"Layer (name)", "Input", "Output", "Param #", "Mult-Adds"}

-- Returns an integer with commas: "1,234,567".
local function grouped(n)
  local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- Returns the sum of a field of the rows below row i, which ends where the depth does.
local function below(rows, i, field)
  local total = rows[i][field]
  for k = i + 1, #rows do
    if rows[k].depth <= rows[i].depth then break end
    total = total + rows[k][field]
  end
  return total
end

-- Returns whether a row at the depth of row i follows below the same parent.
local function has_next(rows, i, depth)
  for k = i + 1, #rows do
    if rows[k].depth < depth then return false end
    if rows[k].depth == depth then return true end
  end
  return false
end

local function label(rows, i)
  local row, parts = rows[i], {}
  for depth = 1, row.depth - 1 do parts[depth] = has_next(rows, i, depth) and "│  " or "   " end
  if row.depth > 0 then
    parts[#parts + 1] = has_next(rows, i, row.depth) and "├─ " or "└─ "
  end
  return table.concat(parts) .. row.type .. (row.name and (" (%s)"):format(row.name) or "")
end

local function cells(rows, i, depth)
  local row = rows[i]
  local closed = row.leaf or row.depth == depth
  local params = closed and row.params or row.own_params
  local mult_adds = closed and below(rows, i, "mult_adds") or row.mult_adds
  return {label(rows, i), row.input, row.output,
    row.repeated and "(shared)" or params > 0 and grouped(params) or "--",
    mult_adds > 0 and grouped(mult_adds) or "--"}
end

local function megabytes(n) return ("%.2f"):format(n / 1e6) end

--- Returns the cells of the table, a list of strings for each module down to the depth of the
-- summary; the first row has the titles.
function summary_table.rows(summary)
  local rows = {columns}
  for i, row in ipairs(summary.layers) do
    if row.depth <= summary.depth then
      rows[#rows + 1] = cells(summary.layers, i, summary.depth)
    end
  end
  return rows
end

--- Returns the sums as two lists of lines: of numbers, and of sizes.
function summary_table.sums(summary)
  local activations = 2 * summary.output_bytes
  return {
    "Total params: " .. grouped(summary.total_params),
    "Trainable params: " .. grouped(summary.trainable_params),
    "Non-trainable params: " .. grouped(summary.total_params - summary.trainable_params),
    "Total mult-adds: " .. grouped(summary.total_mult_adds),
  }, {
    "Input size (MB): " .. megabytes(summary.input_bytes),
    "Forward/backward pass size (MB): " .. megabytes(activations),
    "Params size (MB): " .. megabytes(summary.param_bytes),
    "Estimated total size (MB): "
      .. megabytes(summary.input_bytes + activations + summary.param_bytes),
  }
end

--- The first of the columns that are aligned to the right.
summary_table.FIRST_NUMBER = 4

--- Returns the text of a summary: a line for each module down to its depth, then the sums.
function summary_table.text(summary)
  local lines, widths = summary_table.rows(summary), {}
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do widths[i] = math.max(widths[i] or 0, utf8.len(cell)) end
  end
  local width = 2 * (#columns - 1)
  for _, w in ipairs(widths) do width = width + w end
  local double, out = ("="):rep(width), {}
  for n, line in ipairs(lines) do
    local parts = {}
    for i, cell in ipairs(line) do
      local blanks = (" "):rep(widths[i] - utf8.len(cell))
      parts[i] = i >= summary_table.FIRST_NUMBER and blanks .. cell or cell .. blanks
    end
    if n <= 2 then out[#out + 1] = double end
    out[#out + 1] = table.concat(parts, "  "):gsub(" +$", "")
  end
  for _, list in ipairs {summary_table.sums(summary)} do
    out[#out + 1] = double
    table.move(list, 1, #list, #out + 1, out)
  end
  out[#out + 1] = double
  return table.concat(out, "\n")
end

return summary_table
