--- The command :tree: a module or nested tables of tensors as a tree.

local core = require "lutra.core"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local tree = {}

local LINES, DEPTH = 400, 12

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
  end, DEPTH)
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

-- Returns a line about a value, and the entries below it.
local function describe(value, kind, state)
  if core.is_tensor(value) then return tensor_text(value, kind), {} end
  if type(value) ~= "table" then return inspect.brief(value), {} end
  if state.seen[value] then return inspect.type_name(value) .. " (seen above)", {} end
  state.seen[value] = true
  if inspect.is_module(value) then
    local extra = module_weight(value)
    return inspect.type_name(value) .. (extra ~= "" and "  " .. extra or ""), module_entries(value)
  end
  local extra = weight(value)
  return inspect.type_name(value) .. "  " .. (extra ~= "" and extra or inspect.brief(value)),
    table_entries(value)
end

local branches = {
  utf8 = {"├─ ", "│  ", "└─ ", "   "},
  ascii = {"|- ", "|  ", "`- ", "   "},
}

local function write(state, line)
  if state.left == 0 then return end
  state.left = state.left - 1
  io.stdout:write(state.left == 0 and "..." or line, "\n")
end

-- Writes a value and the entries below it. `first` is the prefix of its line, `rest` of those that
-- follow.
local function show(value, name, kind, first, rest, depth, state)
  if state.left == 0 then return end
  local text, entries = describe(value, kind, state)
  local front = name == "" and "" or name .. "  "
  local below = rest .. (#entries > 0 and state.branch[2] or state.branch[4])
  local used = texts.width(first .. front)
  local wrapped = texts.wrap(text, math.max(style.width() - 1 - used, 12), 0)
  local i = 0
  for line in wrapped:gmatch "[^\n]+" do
    i = i + 1
    write(state, i == 1 and first .. style.paint("name", front) .. line or below .. line)
  end
  if depth >= DEPTH and #entries > 0 then return write(state, rest .. "...") end
  for k, entry in ipairs(entries) do
    local last = k == #entries
    show(entry[2], entry[1], entry[3], rest .. state.branch[last and 3 or 1],
      rest .. state.branch[last and 4 or 2], depth + 1, state)
  end
end

--- For a module: its modules, parameters and buffers, with the number of parameters and their bytes
-- on each device; shared tensors count once. For a table, such as a state dict: its entries.
function tree.tree(session, text)
  local values = inspect.values(session, "tree", text)
  local value = values[1]
  if type(value) ~= "table" and not core.is_tensor(value) then
    error(("tree: expected a module or a table, got %s"):format(inspect.a(value)), 0)
  end
  local branch = texts.is_utf8() and branches.utf8 or branches.ascii
  show(value, "", nil, "", "", 0, {seen = {}, left = LINES, branch = branch})
end

return tree
