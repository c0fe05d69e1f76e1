--- A tensor as an HTML table, with its shape, dtype, device, bytes and statistics.

local core = require "lutra.core"
local heat = require "lutra.repl.rich.heat"
local html = require "lutra.repl.rich.html"
local numbers = require "lutra.internal.numbers"
local texts = require "lutra.internal.text"

local tensor = {}

local COUNTED = 1 << 20 -- the maximum number of elements of which statistics are shown unasked
local HOT = 2500 -- the number of elements up to which all are shown with colours

-- ---- the caption

local function properties(x)
  local parts = {tostring(x.shape) .. " " .. x.dtype, x.device}
  if x.grad_fn then
    parts[#parts + 1] = "grad_fn=<" .. x.grad_fn .. ">"
  elseif x.requires_grad then
    parts[#parts + 1] = "requires_grad"
  end
  parts[#parts + 1] = texts.bytes(x.nbytes)
  return table.concat(parts, ", ")
end

local function value_text(v)
  return numbers.text(v, math.type(v) == "float" and "%.4g" or nil)
end

--- Returns the statistics of a tensor as a line; nil without any.
local function statistics_text(t)
  local found = require("lutra.internal.statistics").of(t)
  if not found then return nil end
  if found.yes then
    return ("true %s, false %s"):format(texts.count(found.yes), texts.count(found.no))
  end
  local parts = {}
  for _, name in ipairs {"min", "max", "mean", "std"} do
    if found[name] then parts[#parts + 1] = name .. " " .. value_text(found[name]) end
  end
  for _, name in ipairs {"nan", "inf"} do
    if (found[name] or 0) > 0 then
      local title = name == "nan" and "NaN" or name
      parts[#parts + 1] = title .. " " .. texts.count(found[name])
    end
  end
  return (found.absolute and "absolute values: " or "") .. table.concat(parts, ", ")
end

-- Returns whether statistics are shown: when asked for, else of tensors on the CPU up to a size.
local function has_statistics(t, wish)
  if wish ~= nil then return wish and t.device ~= "meta" end
  return t.device == "cpu" and t.ndim > 0 and t:numel() <= COUNTED
end

-- ---- tables

local function labels(indices, gap)
  local list = {}
  for i, index in ipairs(indices) do list[i] = index and tostring(index) or gap end
  return list
end

-- Returns a table of the rows and columns `row_indices` (false for none: one row without a label)
-- and `column_indices`, whose elements start behind number `at`; and the number of the last one.
local function matrix(found, row_indices, column_indices, at, color)
  local rows, columns = {}, labels(column_indices, "…")
  local row_labels = row_indices and labels(row_indices, "⋮") or {""}
  for r, label in ipairs(row_labels) do
    local left_out = row_indices and not row_indices[r]
    local cells, backgrounds = {}, {}
    for c, index in ipairs(column_indices) do
      if left_out then
        cells[c] = index and "⋮" or "⋱"
      elseif not index then
        cells[c] = "…"
      else
        at = at + 1
        cells[c] = found.texts[at]
        backgrounds[c] = color and color(found.numbers[at])
      end
    end
    rows[r] = html.row(row_indices and label or nil, cells, nil,
      color and function(i) return backgrounds[i] end)
  end
  if row_indices then table.insert(columns, 1, "") end
  return html.table(html.header_row(columns), rows), at
end

-- Returns the tables of all slices of the last two dimensions.
local function slices(found, color)
  local parts, at, n = {}, 0, #found.indices
  local function visit(d, label)
    if d == n - 1 then
      local text
      text, at = matrix(found, found.indices[d], found.indices[n], at, color)
      parts[#parts + 1] = (label ~= "" and html.note(label) or "") .. text
      return
    end
    for _, index in ipairs(found.indices[d]) do
      if index then
        visit(d + 1, label .. ("[%d]"):format(index))
      else
        parts[#parts + 1] = html.note "…"
      end
    end
  end
  visit(1, "")
  return table.concat(parts)
end

local function elements(t, options)
  local threshold = options.heat and math.max(HOT, core.get_printoptions().threshold) or nil
  local found = require("lutra.repl.rich.shown").read(t,
    {threshold = threshold, edgeitems = options.edgeitems}, options.heat)
  if not found then return "" end
  local color = options.heat and heat.scale(found.numbers) or nil
  if t.ndim == 0 then return ("<div>%s</div>"):format(html.escape(found.texts[1])) end
  if t.ndim == 1 then return (matrix(found, nil, found.indices[1], 0, color)) end
  return slices(found, color)
end

--- Returns the HTML of a tensor, nil of one that was freed. options: heat (cells are coloured by
-- value), statistics (true: also of large tensors and of those on other devices; false: none) and
-- edgeitems, as in set_printoptions. Copies only the elements that are shown, and records nothing
-- for gradients.
function tensor.html(x, options)
  if core._is_freed(x) then return nil end
  return require("lutra").no_grad(function()
    local t = x:detach()
    local name = core.is_parameter(x) and "Parameter" or "tensor"
    local parts = {html.heading(name, properties(x))}
    if t.device == "meta" then
      parts[#parts + 1] = html.note "no data"
    elseif t:numel() == 0 then
      parts[#parts + 1] = html.note "no elements"
    else
      local line = has_statistics(t, options.statistics) and statistics_text(t)
      if line then parts[#parts + 1] = html.note(line) end
      parts[#parts + 1] = elements(t, options)
    end
    return html.block(table.concat(parts))
  end)
end

return tensor
