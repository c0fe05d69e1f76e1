--- Signatures of functions: of ops and other functions in C from the op table, of the Lua library
-- from the signatures by which they parse their arguments.
--
-- A signature is {params = list of {name, type, default, required, list, choices}, results = list
-- of types, method = true when its first parameter is the value before the colon}.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local static_values = require "lutra.repl.complete.static_values"

local signatures = {}

local by_function -- function in C -> signature

local lists = {sizes = true, ints = true, dims = true, floats = true, data = true, list = true}

-- Returns whether a parameter of this type takes a list.
local function is_list(kind)
  for word in kind:gmatch "[^|]+" do
    if lists[word] or word == "Tensor[]" then return true end
  end
  return false
end

-- Converts a row of core.ops(), or one of the same form, to a signature; without self for a
-- method.
local function from_row(row, method)
  local params, results = {}, {}
  for i, param in ipairs(row.params) do
    if i > 1 or not method then
      params[#params + 1] = {name = param.name, type = param.type, required = not param.optional,
        default = param.optional and (param.default or "nil") or nil, list = is_list(param.type),
        choices = param.choices}
    end
  end
  for i, result in ipairs(row.results) do results[i] = result.type end
  return {params = params, results = results, method = method}
end

local function read_core()
  by_function = setmetatable({}, {__mode = "k"})
  local function add(f, row, method)
    if f and not by_function[f] then by_function[f] = from_row(row, method) end
  end
  for f, text in next, core._signatures do
    local method, signature = text:match "^(:?)(.*)$"
    local _, params, results = core._signature("", signature)
    add(f, {params = params, results = results}, method == ":")
  end
  for _, op in ipairs(core.ops()) do
    add(core[op.name], op, false)
    add(core._ops[op.name], op, false)
    add(core._methods[op.name], op, true)
    add(core._methods[op.name .. "_"], op, true)
  end
end

-- Returns the parser among a function's upvalues: the one called `name`, else the first.
local function parser_of(f, name)
  local first
  for i = 1, 255 do
    local upvalue, value = debug.getupvalue(f, i)
    if not upvalue then break end
    local parameters, title = args.describe(value)
    if title and (title == name or title:match "[^.]*$" == name) then return parameters end
    first = first or parameters
  end
  return first
end

-- Returns the signature of a class's constructor: that of its init, or an optimizer's settings.
local function of_class(class)
  local name = rawget(class, "__name")
  local options = static_values.field({value = class}, "options")
  local optimizer = package.loaded["lutra.optim.optimizer"]
  if optimizer and options and static_values.inherits(class, optimizer) then
    local signature = from_row({params = options.value, results = {}}, false)
    table.insert(signature.params, 1, {name = "params", type = "Tensor[]", required = true,
      list = true})
    return signature
  end
  local init = static_values.field({value = class}, "init")
  return init and type(init.value) == "function" and signatures.of(init.value, name) or nil
end

--- Returns the signature of a function or class, called `name` by the user, or nil. Does not call
-- it.
function signatures.of(f, name)
  if type(f) == "function" then
    if not by_function then read_core() end
    if by_function[f] then return by_function[f] end
    local parameters = parser_of(f, name)
    return parameters and from_row({params = parameters, results = {}}, false)
  end
  if static_values.is_class(f) then return of_class(f) end
end

local function lua_parameters(f)
  local info = debug.getinfo(f, "Su")
  if info.what == "C" then return nil end
  local names = {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if names[1] == "self" then table.remove(names, 1) end
  if info.isvararg then names[#names + 1] = "..." end
  return names
end

--- Returns the parameters of a function as one line, "(size, dtype = nil)"; nil when they are
-- unknown.
function signatures.text(f, name)
  local signature = signatures.of(f, name)
  local names = {}
  for i, param in ipairs(signature and signature.params or {}) do
    names[i] = param.name .. (param.default and " = " .. param.default or "")
  end
  if not signature then names = type(f) == "function" and lua_parameters(f) end
  if not names then return nil end
  return "(" .. table.concat(names, ", ") .. ")"
end

return signatures
