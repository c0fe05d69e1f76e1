--- The nodes of the tree of a module, or of nested tables of tensors: for :tree and for notebooks.

local core = require "lutra.core"
local inspect = require "lutra.repl.inspect"
local texts = require "lutra.internal.text"

local tree_nodes = {}

--- The maximum depth of a tree.
tree_nodes.DEPTH = 12

-- Returns the entries {name, value} of a module in order of registration.
local function module_entries(module)
  local state = rawget(debug.getmetatable(module), "__state")
  local list = {}
  for _, name in ipairs(state.entries) do
    local value = state.fields[name]
    if value ~= nil then list[#list + 1] = {tostring(name), value, state.kinds[name]} end
  end
  return list
end

local function table_entries(t)
  local list = {}
  for _, key in ipairs(inspect.sorted_keys(t)) do
    list[#list + 1] = {inspect.key_text(key), rawget(t, key)}
  end
  return list
end

-- Returns the size of a value, such as "1,234 elements, 4.8 KiB on cpu"; each storage counts once.
local function weight(value)
  local counter, elements, seen = inspect.counter(), 0, {}
  inspect.tensors(value, "", function(path, t)
    if counter.add(t) and not path:find "%.grad$" then elements = elements + t:numel() end
    seen[#seen + 1] = t
  end, tree_nodes.DEPTH)
  if #seen == 0 then return "" end
  local parts = {}
  for _, device in ipairs(counter.devices) do
    local of = counter.by_device[device]
    parts[#parts + 1] = ("%s on %s"):format(texts.bytes(of.bytes), device)
  end
  return texts.plural(elements, "element") .. ", " .. table.concat(parts, ", ")
end

local function module_weight(module)
  local text = weight(module)
  local n, trained = inspect.num_parameters(module), inspect.num_parameters(module, true)
  local count = texts.plural(n, "param")
  if trained < n then count = count .. (" (%s trained)"):format(texts.count(trained)) end
  return (text:gsub("^[%d,]+ elements?", count))
end

local function tensor_text(t, kind)
  if core._is_freed(t) then return "freed" end
  local parts = {inspect.shape(t), t.dtype}
  if t.device ~= "cpu" then parts[#parts + 1] = t.device end
  if kind == "buffer" then parts[#parts + 1] = "buffer" end
  if kind == "parameter" and not t.requires_grad then parts[#parts + 1] = "frozen" end
  return table.concat(parts, " ")
end

--- Returns the type of a value (an empty string unless it is a table), a description of it, and the
-- entries below it: a list of {name, value, kind}. `kind` is that of a module's entry: "module",
-- "parameter" or "buffer". `seen` is the set of the tables described before, to which the value is
-- added.
function tree_nodes.describe(value, kind, seen)
  if core.is_tensor(value) then return "", tensor_text(value, kind), {} end
  if type(value) ~= "table" then return "", inspect.brief(value), {} end
  if seen[value] then return inspect.type_name(value), "(seen above)", {} end
  seen[value] = true
  if inspect.is_module(value) then
    return inspect.type_name(value), module_weight(value), module_entries(value)
  end
  local extra = weight(value)
  return inspect.type_name(value), extra ~= "" and extra or inspect.brief(value),
    table_entries(value)
end

return tree_nodes

