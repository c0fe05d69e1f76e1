--- Arguments of the library's Lua functions, in the three spellings of one call.
--
-- Idea: a function states its signature once, in the grammar of the op table (src/tensor/ops.def),
-- and its calls are read as those of ops are, by the core.
--
--     local parse = args.signature("Linear",
--       "int in_features, int out_features, bool bias = true, device? device = nil")
--     local n_in, n_out, bias, device = parse(...)
--
-- accepts Linear(784, 10), Linear(784, 10, {bias = false}) and Linear{784, 10, bias = false}.
--
-- Invariant: a parser either returns every argument, checked, or raises one error at the line of
-- the user's program that made the call, whatever the depth of library code between.

local numbers = require "lutra.internal.numbers"

local args = {}

-- Everything under this folder (and lutra.lua beside it) is the library itself.
local here = debug.getinfo(1, "S").source
local library = here:match "^(.*[/\\])internal[/\\]args%.lua$" or "@lutra/"

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

-- parser -> its parameters and its title
local described = setmetatable({}, {__mode = "k"})

--- The parameters of a parser that args.signature made: a list of {name, type, optional, default,
-- choices, least, expected}, types and defaults as strings, `expected` the description of valid
-- values for messages; and its title. nil for any other function.
function args.describe(parser)
  local found = described[parser]
  if found then return found.parameters, found.title end
end

--- Makes the parser of one signature, the parameters as ops.def writes them; `title` is the name
-- used in messages. Dims and positions count from 1 in what the parser returns.
function args.signature(title, text) return (args.reader(title, "(" .. text .. ")")) end

--- The same of a signature with its parentheses and perhaps results, "(Tensor x) -> Tensor y".
-- Returns the parser, the parameters as args.describe gives them, and the results: a list of
-- {name, type}.
function args.reader(title, text)
  local parse, parameters, results = require("lutra.core")._signature(title, text)
  described[parse] = {parameters = parameters, title = title}
  return parse, parameters, results
end

return args
