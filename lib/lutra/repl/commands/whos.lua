--- The command :whos: the variables of the session.

local core = require "lutra.core"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local whos = {}

local columns = {
  {key = "name", title = "name", rank = 1, least = 8},
  {key = "type", title = "type", rank = 8, least = 9},
  {key = "shape", title = "shape", rank = 4, least = 10},
  {key = "dtype", title = "dtype", rank = 6, least = 5,
    short = function(text) return texts.short_dtypes[text] or text end},
  {key = "device", title = "device", rank = 3, least = 6},
  {key = "bytes", title = "bytes", rank = 2, least = 9, right = true},
  {key = "grad", title = "grad", rank = 7, least = 4,
    short = function(text) return text == "requires_grad" and "yes" or text end},
  {key = "shares", title = "shared", rank = 5, least = 6},
}

-- Returns the other variables that share this one's storage.
local function sharing(name, value, holders)
  local names, seen = {}, {[name] = true}
  inspect.tensors(value, "", function(_, t)
    for _, holder in ipairs(holders[core._memory(t)]) do
      if not seen[holder.name] then names[#names + 1] = holder.name end
      seen[holder.name] = true
    end
  end)
  return table.concat(names, " ")
end

-- Returns devices, bytes and number of the tensors reachable from a value.
local function memory_of(value)
  local counter, grads = inspect.counter(), false
  inspect.tensors(value, "", function(_, t)
    counter.add(t)
    grads = grads or t.requires_grad
  end)
  return counter, grads
end

local function tensor_row(t)
  return {
    shape = inspect.shape(t), dtype = t.dtype, device = t.device,
    bytes = texts.bytes(inspect.bytes(t)),
    grad = t.requires_grad and "requires_grad" or nil,
  }
end

local function module_text(module)
  return texts.plural(inspect.num_parameters(module), "param")
end

-- Returns the row of a module, an optimizer or a table, with the sum of its tensors.
local function holder_row(value)
  local counter, grads = memory_of(value)
  local row = {shape = inspect.brief(value)}
  if inspect.is_module(value) then row.shape = module_text(value) end
  if inspect.is_optimizer(value) then
    row.shape = texts.plural(#rawget(value, "param_groups"), "group")
  end
  if #counter.devices > 0 then
    row.device = table.concat(counter.devices, " ")
    row.bytes = texts.bytes(counter.total)
    row.grad = grads and "requires_grad" or nil
  end
  return row
end

local function row_of(name, value, holders)
  local row
  if core._is_freed(value) then
    row = {shape = "freed"}
  elseif core.is_tensor(value) then
    row = tensor_row(value)
  elseif type(value) == "table" then
    row = holder_row(value)
  else
    row = {shape = inspect.brief(value)}
  end
  row.name, row.type = name, inspect.type_name(value)
  row.shares = sharing(name, value, holders)
  return row
end

-- Returns the totals, such as "total on cpu: 96 B in 2 storages"; shared storages count once.
local function totals(variables)
  local counter, lines = inspect.counter(), {}
  for _, v in ipairs(variables) do
    inspect.tensors(v.value, "", function(_, t) counter.add(t) end)
  end
  for _, device in ipairs(counter.devices) do
    local of = counter.by_device[device]
    lines[#lines + 1] = ("total on %s: %s in %s"):format(device, texts.bytes(of.bytes),
      texts.plural(of.storages, "storage"))
  end
  return lines
end

-- Converts a pattern such as "w*" to a Lua pattern.
local function pattern_of(text)
  local pattern = text:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".")
  return "^" .. pattern .. "$"
end

--- With a pattern, lists only variables with matching names: * matches any characters, ? one. The
-- table shows which tensors require grad and which variables share memory; the totals count shared
-- memory once. The tensors in modules, optimizers and tables are counted in their rows.
function whos.whos(session, text)
  local all, chosen = inspect.variables(session), {}
  local pattern = text ~= "" and pattern_of(text) or ""
  for _, v in ipairs(all) do
    if v.name:find(pattern) then chosen[#chosen + 1] = v end
  end
  if #chosen == 0 then
    io.stdout:write(text == "" and "no variables\n" or ("no variable matches %s\n"):format(text))
    return
  end
  local holders, rows = inspect.holders(all), {}
  for i, v in ipairs(chosen) do rows[i] = row_of(v.name, v.value, holders) end
  local lines = texts.table(columns, rows, style.width() - 1)
  io.stdout:write(style.paint("heading", lines[1]), "\n", table.concat(lines, "\n", 2), "\n")
  for _, line in ipairs(totals(chosen)) do io.stdout:write(style.paint("faint", line), "\n") end
end

return whos
