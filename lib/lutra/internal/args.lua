--- Parsing and checking of the arguments of the library's Lua functions.
--
-- A function declares its signature once, in the grammar of the op table (src/tensor/ops.def), and
-- its calls are parsed by the core like those of ops, in the three forms of one call:
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

--- Returns whether a function is part of the library or written in C; `info` is the result of
-- debug.getinfo(f, "S").
function args.is_library(info)
  local source = info.source
  return info.what == "C" or source:sub(1, #library) == library
    or source == library:sub(1, -2) .. ".lua"
end
local is_library = args.is_library

-- Returns the path of the module that is being called, "net.head: ", or "".
local function module_path()
  local calls = package.loaded["lutra.nn.calls"]
  if not calls then return "" end
  local ok, path = pcall(calls.error_path)
  return ok and path or ""
end

--- Raises `message`, a format, at the nearest line outside the library. The path of the module that
-- is being called is put before it.
function args.fail(message, ...)
  if select("#", ...) > 0 then message = numbers.format(message, ...) end
  message = module_path() .. message
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

--- Returns `condition`; raises `message` as args.fail does when it is false or nil.
function args.check(condition, message, ...)
  if not condition then fail(message, ...) end
  return condition
end

--- Raises an error that a function has caught again if it is that of Ctrl-C.
function args.pass_on_interrupt(message)
  if type(message) == "string" and message:find("interrupted", 1, true) then error(message, 0) end
end

-- The core is loaded on first use: the prompt parses arguments also when the core cannot be
-- loaded.
local function core() return require "lutra.core" end

--- Raises an error unless `condition` is true, in the form "apply: expected a function for argument
-- 'fn', got nil". `title` is the function, `expected` describes the argument `name`.
function args.expect(condition, title, expected, name, value)
  if not condition then
    fail("%s: expected %s for argument '%s', got %s", title, expected, name, args.show(value))
  end
end

--- Returns whether `x` is a table without a metatable: options or a list, not an object.
function args.is_plain(x)
  return type(x) == "table" and getmetatable(x) == nil
end

--- Returns whether `x` can be called: a function, or an object with __call.
function args.is_callable(x)
  if type(x) == "function" then return true end
  local meta = getmetatable(x)
  return type(meta) == "table" and meta.__call ~= nil
end

-- Returns the name of a class or of a type with an article: "a Linear", "an Adam".
local function with_article(name)
  if name:find "^class " then return "the " .. name end
  return (name:find "^[AEIOaeio]" and "an " or "a ") .. name
end

--- Returns a description of a value for messages: short, without addresses.
function args.show(x)
  local kind = type(x)
  if kind == "string" then return ("the string %q"):format(x) end
  if kind == "number" or kind == "boolean" then return numbers.text(x) end
  if kind == "nil" then return "nil" end
  if core()._is_freed(x) then return "a tensor that was freed (x:free())" end
  if core().is_tensor(x) then return ("a tensor of shape %s"):format(tostring(x.shape)) end
  local meta = getmetatable(x)
  return with_article(type(meta) == "table" and type(meta.__name) == "string" and meta.__name
    or kind)
end

--- Returns a reason from a reader of files for a message, in which names from the file were quoted
-- by %q: without line breaks in them.
function args.reason(why) return (why:gsub("\\\n", "\\n")) end

--- Returns `path`; raises an error when it contains a NUL byte, at which the system would cut it.
-- `title` is the function, `name` the argument.
function args.path(title, name, path)
  if path:find("\0", 1, true) then
    fail("%s: expected a path without NUL bytes for argument '%s', got %q", title, name, path)
  end
  return path
end

--- Returns the full name of a device, "cuda:0" for "cuda"; raises an error of the function `title`
-- when there is no such device.
function args.device(title, device)
  local ok, name = pcall(core().device, device)
  if ok then return name end
  return fail("%s: %s", title, (tostring(name):gsub("^.-device: ", "", 1)))
end

-- parser -> its parameters and its title
local described = setmetatable({}, {__mode = "k"})

--- Returns the parameters of a parser made by args.signature, and its title; nil for any other
-- function. The parameters are a list of {name, type, optional, default, choices, least, expected},
-- types and defaults as strings; `expected` describes a valid value in messages.
function args.describe(parser)
  local found = described[parser]
  if found then return found.parameters, found.title end
end

--- Returns the parser of a signature, whose parameters are written as in ops.def; `title` is the
-- function's name in messages. Dimensions and indices that the parser returns are 1-based.
function args.signature(title, text) return (args.reader(title, "(" .. text .. ")")) end

--- Returns the parser of a signature with parentheses and optional results, "(Tensor x) -> Tensor
-- y", the parameters as args.describe returns them, and the results: a list of {name, type}. With
-- `method` it parses calls of a method: x:f{2, dim = 1}.
function args.reader(title, text, method)
  local parse, parameters, results = require("lutra.core")._signature(title, text, method)
  described[parse] = {parameters = parameters, title = title}
  return parse, parameters, results
end

return args
