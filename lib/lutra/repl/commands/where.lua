--- :where, the memory of a tensor.

local core = require "lutra.core"
local look = require "lutra.repl.look"
local style = require "lutra.repl.style"
local texts = require "lutra.plot.texts"

local where = {}

local LISTED = 200 -- tensors of a module or a table

-- "a, b.weight": the paths that lead to this memory.
local function names_of(t, holders)
  local names, seen = {}, {}
  for _, holder in ipairs(holders[core._memory(t)] or {}) do
    if not seen[holder.path] then names[#names + 1] = holder.path end
    seen[holder.path] = true
  end
  return names
end

local function address(t, offset)
  if t.device == "meta" then return "none: meta has no data" end
  if t:data_ptr() == 0 then return "none: it is empty" end
  return ("0x%x"):format(t:data_ptr() - offset * t.itemsize)
end

local function part_of(t)
  local _, bytes = core._memory(t)
  local part = t.nbytes
  if part == bytes then return texts.bytes(part) .. ", all of its storage" end
  return ("%s, of a storage of %s"):format(texts.bytes(part), texts.bytes(bytes))
end

-- "x" or "a tensor that no variable holds": what t is a view of, where that is known.
local function base_of(t, holders)
  local base = core._base(t)
  if not base then return nil end
  for _, holder in ipairs(holders[core._memory(base)] or {}) do
    if holder.tensor == base then return holder.path end
  end
  return ("a tensor %s that no variable holds"):format(look.shape(base))
end

local function list(strides)
  return "{" .. table.concat(strides, ", ") .. "}"
end

-- Rows of {title, text} about one tensor.
local function describe(t, holders)
  local rows = {}
  local function add(title, text) rows[#rows + 1] = {title, text} end
  add("device", t.device .. (t:is_pinned() and ", pinned memory" or ""))
  add("storage", address(t, t:storage_offset()))
  add("offset", texts.plural(t:storage_offset(), "element"))
  add("shape", look.shape(t) .. " " .. t.dtype)
  add("strides", list(t:stride()) .. (t:is_contiguous() and ", contiguous" or ", not contiguous"))
  add("bytes", part_of(t))
  local base = base_of(t, holders)
  if base then add("view of", base) end
  local names = names_of(t, holders)
  if #names > 0 then add("held by", table.concat(names, ", ")) end
  if t.requires_grad then
    add("grad", t.grad_fn and "result of " .. t.grad_fn
      or t.grad and "leaf, its grad is on " .. t.grad.device or "leaf, without a grad yet")
  end
  return rows
end

local function show_tensor(t, holders)
  for _, row in ipairs(describe(t, holders)) do
    io.stdout:write(style.paint("name", texts.pad(row[1], 9)),
      texts.wrap(row[2], style.width() - 1, 9), "\n")
  end
end

local function write_svg(t, holders, name, path)
  local _, bytes = core._memory(t)
  local lines = {}
  for i, row in ipairs(describe(t, holders)) do lines[i] = texts.pad(row[1], 9) .. row[2] end
  local picture = require("lutra.plot.storage_svg").text{
    title = name, bytes = bytes, itemsize = t.itemsize, offset = t:storage_offset(),
    shape = t.shape, strides = t:stride(), lines = lines,
  }
  local ok, why = require("lutra.repl.files").write(path, picture)
  if not ok then error("where: cannot write " .. why, 0) end
  io.stdout:write("the picture to ", path, "\n")
end

local columns = {
  {key = "path", title = "tensor", rank = 2, least = 10},
  {key = "shape", title = "shape", rank = 5, least = 8},
  {key = "dtype", title = "dtype", rank = 6, least = 5},
  {key = "device", title = "device", rank = 1, least = 6},
  {key = "address", title = "address", rank = 3, least = 14},
  {key = "bytes", title = "bytes", rank = 4, least = 8, right = true},
}

-- Every tensor of a module or a table, a line each.
local function show_all(value, name)
  local rows, count = {}, 0
  look.tensors(value, "", function(path, t)
    count = count + 1
    if count > LISTED then return end
    rows[count] = {
      path = path, shape = look.shape(t), dtype = t.dtype, device = t.device,
      address = t.device == "meta" and "none" or ("0x%x"):format(t:data_ptr()),
      bytes = texts.bytes(look.bytes(t)),
    }
  end)
  if count == 0 then error(("where: %s holds no tensor"):format(name), 0) end
  local lines = texts.table(columns, rows, style.width() - 1)
  io.stdout:write(style.paint("heading", lines[1]), "\n", table.concat(lines, "\n", 2), "\n")
  if count > LISTED then io.stdout:write(("... %d tensors\n"):format(count)) end
end

--- The address is that of the storage's first byte; `held by` names the variables, and what is in
-- them, that share it. Of a module or a table: a line for each tensor that it holds. --svg FILE
-- draws the storage of a tensor, its elements marked.
function where.where(session, text)
  local expression, options = look.options("where", text, {svg = "value"})
  local values = look.values(session, "where", expression)
  for i = 1, math.max(values.n, 1) do
    local value = values[i]
    if core.is_tensor(value) then
      local holders = look.holders(look.variables(session))
      if options.svg then return write_svg(value, holders, expression, options.svg) end
      show_tensor(value, holders)
    elseif options.svg then
      error(("where: %s is %s; --svg draws one tensor"):format(expression, look.a(value)), 0)
    elseif type(value) == "table" then
      show_all(value, expression)
    else
      error(("where: %s is %s; it wants a tensor, a module or a table of tensors"):format(
        expression, look.a(value)), 0)
    end
  end
end

return where
