--- Arguments of the library's Lua functions, in the three spellings of one call.
--
-- Idea: a function states its signature once, as text, and gets a parser for it.
--
--     local parse = args.signature("Linear",
--       "in_features:size, out_features:size, bias:boolean=true, device:string?")
--     local n_in, n_out, bias, device = parse(...)
--
-- accepts Linear(784, 10), Linear(784, 10, {bias = false}) and
-- Linear{784, 10, bias = false}. Each entry is `name:type`, optional with `?`,
-- with a default after `=`; `a|b` takes either type.
--
-- Invariant: a parser either returns every argument, checked, or raises one error
-- at the line of the user's program that made the call, whatever the depth of
-- library code between.

local numbers = require "lutra.numbers"

local args = {}

-- Everything under this folder (and lutra.lua beside it) is the library itself.
local here = debug.getinfo(1, "S").source
local library = here:match("^(.*[/\\])args%.lua$") or "@lutra/"

--- Is a function, of which debug.getinfo(f, "S") is known, the library's own or in C?
function args.is_library(info)
  local source = info.source
  return info.what == "C" or source:sub(1, #library) == library
    or source == library:sub(1, -2) .. ".lua"
end
local is_library = args.is_library

--- Raises `message` at the nearest line outside the library.
function args.fail(message, ...)
  if select("#", ...) > 0 then message = numbers.format(message, ...) end
  local level = 2
  local info = debug.getinfo(level, "S")
  while info do
    if not is_library(info) then error(message, level) end
    level = level + 1
    info = debug.getinfo(level, "S")
  end
  error(message, 0)
end
local fail = args.fail

--- Raises `message` as args.fail does when `condition` is false or nil.
function args.check(condition, message, ...)
  if not condition then fail(message, ...) end
  return condition
end

-- Loaded when it is needed: the prompt reads arguments also where the core does not load.
local function core() return require "lutra.core" end

--- Raises an error unless `condition` holds: "apply: expected a function for argument 'fn', got
-- nil".
function args.expect(condition, title, wanted, name, value)
  if not condition then
    fail("%s: expected %s for argument '%s', got %s", title, wanted, name, args.show(value))
  end
end

--- Is `x` a table without a metatable, that is, options or a list, no object?
function args.is_plain(x)
  return type(x) == "table" and getmetatable(x) == nil
end
local is_plain = args.is_plain

--- Is `x` something that can be called: a function, or an object with __call?
function args.is_callable(x)
  if type(x) == "function" then return true end
  local meta = getmetatable(x)
  return type(meta) == "table" and meta.__call ~= nil
end

--- Text of a value for a message: short, without addresses.
function args.show(x)
  local kind = type(x)
  if kind == "string" then return ("the string %q"):format(x) end
  if kind == "number" or kind == "boolean" then return numbers.text(x) end
  if kind == "nil" then return "nil" end
  if core()._is_freed(x) then return "a tensor that was freed (x:free())" end
  if core().is_tensor(x) then return ("a tensor of shape %s"):format(tostring(x.shape)) end
  local meta = getmetatable(x)
  if type(meta) == "table" and type(meta.__name) == "string" then return "a " .. meta.__name end
  return "a " .. kind
end
local show = args.show

--- Raises an error that begins with `title` where a path has a NUL byte, which the system would
-- take for its end. `name` is the argument's. Returns the path.
function args.path(title, name, path)
  if path:find("\0", 1, true) then
    fail("%s: expected a path without NUL bytes for argument '%s', got %q", title, name, path)
  end
  return path
end

--- The full name of a device, "cuda:0" of "cuda"; an error that begins with `title` where there is
-- none.
function args.device(title, device)
  local ok, name = pcall(core().device, device)
  if ok then return name end
  return fail("%s: %s", title, (tostring(name):gsub("^.-device: ", "", 1)))
end

local function whole(x)
  return math.type(x) == "integer" and x or (math.type(x) == "float" and math.tointeger(x)) or nil
end

-- A list of sizes: an integer, or a table of integers (a shape counts as one).
local function to_sizes(x)
  if whole(x) then return {whole(x)} end
  if type(x) ~= "table" then return nil end
  if #x == 1 and type(x[1]) == "table" then x = x[1] end
  local sizes = {}
  for i = 1, #x do
    sizes[i] = whole(x[i])
    if not sizes[i] or sizes[i] < 0 then return nil end
  end
  return sizes
end

local function length(x) return #x end

-- A table. The length of an object may be an error, which is raised where it is needed, but nothing
-- else than an integer.
local function to_list(x)
  if type(x) ~= "table" or is_plain(x) then return type(x) == "table" and x or nil end
  local ok, n = pcall(length, x)
  return (not ok or math.type(n) == "integer") and x or nil
end

-- type name -> {what a message calls it, value -> checked value or nil}
local types = {
  any = {"any value", function(x) return x end},
  size = {"an integer of at least 0", function(x)
    local n = whole(x)
    return n and n >= 0 and n or nil
  end},
  count = {"an integer of at least 1", function(x)
    local n = whole(x)
    return n and n >= 1 and n or nil
  end},
  integer = {"an integer", whole},
  number = {"a number", function(x) return type(x) == "number" and x or nil end},
  string = {"a string", function(x) return type(x) == "string" and x or nil end},
  table = {"a table", function(x) return type(x) == "table" and x or nil end},
  list = {"a list", to_list, is_list = true},
  sizes = {"an integer or a list of integers", to_sizes, is_list = true},
  callable = {"a function", function(x) return args.is_callable(x) and x or nil end},
  tensor = {"a tensor", function(x) return core().is_tensor(x) and x or nil end},
  device = {'a device: a name such as "cuda:0", a number, or a tensor that is there', function(x)
    local kind = math.type(x) == "integer" and "number" or type(x)
    return (kind == "string" or kind == "number" or core().is_tensor(x)) and x or nil
  end},
  boolean = {"true or false", nil},
}

local literals = {["true"] = true, ["false"] = false}

local function parse_default(text)
  if text == nil then return nil end
  if literals[text] ~= nil then return literals[text] end
  return tonumber(text) or text
end

-- "a:size, b:number=0.5, c:string?" -> list of {name, kinds, optional, default}
local function compile(text)
  local parameters = {}
  for entry in text:gmatch("[^,]+") do
    local name, kinds, rest = entry:match("^%s*([%w_]+):([%w_|]+)(.-)%s*$")
    local parameter = {name = name, kinds = {}, wanted = {}}
    for kind in kinds:gmatch("[^|]+") do
      parameter.kinds[#parameter.kinds + 1] = kind
      parameter.wanted[#parameter.wanted + 1] = types[kind][1]
      parameter.is_list = parameter.is_list or types[kind].is_list
    end
    parameter.wanted = table.concat(parameter.wanted, " or ")
    parameter.default = parse_default(rest:match("^=(.*)$"))
    parameter.optional = rest == "?" or parameter.default ~= nil
    parameters[#parameters + 1] = parameter
    parameters[name] = #parameters
  end
  return parameters
end

local function convert(parameter, value)
  for _, kind in ipairs(parameter.kinds) do
    if kind == "boolean" then
      if type(value) == "boolean" then return true, value end
    else
      local converted = types[kind][2](value)
      if converted ~= nil then return true, converted end
    end
  end
  return false
end

local function names_of(parameters)
  local names = {}
  for i, parameter in ipairs(parameters) do names[i] = parameter.name end
  return names
end

local function only_names(t)
  for key in pairs(t) do
    if type(key) ~= "string" then return false end
  end
  return true
end

-- Copies the named arguments of `options` into `found` (a table by position).
local function take_names(title, parameters, options, found)
  for key, value in pairs(options) do
    if type(key) == "string" then
      local position = parameters[key]
      if not position then
        local names = names_of(parameters)
        local near = require("lutra.nearest").find(key, names)
        fail('%s: no argument is called "%s"%s. It takes: %s', title, key,
          near and (' (did you mean "%s"?)'):format(near) or "", table.concat(names, ", "))
      elseif found[position] ~= nil then
        fail('%s: argument "%s" is given twice, by position and by name', title, key)
      end
      found[position] = value
    end
  end
end

-- The one-table spelling: positions in the array part, names in the hash part.
local function take_table(title, parameters, t, found)
  if parameters[1].is_list then
    if #t > 0 then found[1] = table.move(t, 1, #t, 1, {}) end
  else
    local count = #t
    if count > #parameters then
      fail("%s: %d arguments given, it takes at most %d: %s", title, count, #parameters,
        table.concat(names_of(parameters), ", "))
    end
    for i = 1, count do found[i] = t[i] end
  end
  take_names(title, parameters, t, found)
end

local function gather(title, parameters, ...)
  local count, found = select("#", ...), {}
  local last = select(count > 0 and count or 1, ...)
  if count == 1 and is_plain(last) then
    take_table(title, parameters, last, found)
    return found
  end
  local named = count > 1 and is_plain(last) and only_names(last)
  if named then count = count - 1 end
  if count > #parameters then
    fail("%s: %d arguments given, it takes at most %d: %s", title, count, #parameters,
      table.concat(names_of(parameters), ", "))
  end
  for i = 1, count do found[i] = (select(i, ...)) end
  if named then take_names(title, parameters, last, found) end
  return found
end

-- parser -> its parameters and its title
local described = setmetatable({}, {__mode = "k"})

--- The parameters of a parser that args.signature made: a list of {name, kinds, optional,
-- default}, and its title; nil for any other function.
function args.describe(parser)
  local found = described[parser]
  if found then return found.parameters, found.title end
end

--- Makes the parser of one signature; `title` is the name used in messages.
function args.signature(title, text)
  local parameters = compile(text)
  local count = #parameters
  local function parse(...)
    local found = gather(title, parameters, ...)
    for i = 1, count do
      local parameter, value = parameters[i], found[i]
      if value == nil then
        if not parameter.optional then
          fail('%s: argument "%s" is missing: it wants %s', title, parameter.name,
            parameter.wanted)
        end
        found[i] = parameter.default
      else
        local ok, converted = convert(parameter, value)
        if not ok then
          fail('%s: argument "%s" is %s, it wants %s', title, parameter.name, show(value),
            parameter.wanted)
        end
        found[i] = converted
      end
    end
    return table.unpack(found, 1, count)
  end
  described[parse] = {parameters = parameters, title = title}
  return parse
end

return args
