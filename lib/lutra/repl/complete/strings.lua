--- Completion in an unclosed string: a dtype or a device when one is expected, a key of a table,
-- the name of a module after require, else a path.

local arguments = require "lutra.repl.complete.arguments"
local expression = require "lutra.repl.complete.expression"
local modules = require "lutra.repl.complete.modules"
local paths = require "lutra.repl.complete.paths"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"
local values = require "lutra.repl.complete.values"

local strings = {}

local escapes = {["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\"}

-- Returns a function that escapes text for a string that opened with `quote`.
local function escaper(quote)
  if quote:sub(1, 1) == "[" then return function(text) return text end end
  return function(text)
    return (text:gsub("[%c\\" .. quote .. "]", function(c)
      return escapes[c] or c == quote and "\\" .. c or ("\\%03d"):format(c:byte())
    end))
  end
end

-- Adds the string keys of the value that is indexed: its own, and fields of its metatable.
local function add_keys(thing, escape, add)
  local own = type(thing.value) == "table" and thing.value or {}
  static_values.members(thing, function(name, value)
    if type(name) ~= "string" then return end
    local method = static_values.is_callable(value) and not static_values.module_state(value)
    if rawget(own, name) == nil and method then return end
    add(escape(name), "key", nil, value, nil, name)
  end)
end

local function read_plain(read)
  if read.quote:sub(1, 1) == "[" then return (read.prefix:gsub("^\r?\n", "")) end
  return tokens.unescape(read.prefix)
end

--- The source of completions in a string.
function strings.source(context, add)
  local read = context.read
  local list, escape = read.list, escaper(read.quote)
  local plain = read_plain(read)
  local call = arguments.call(context)
  local kind = values.kind(context, call)
  context.match = plain
  if kind then return values.add(kind, add) end
  if tokens.is(list, #list, "[") and read.open[#read.open] == #list then
    local first = expression.start(read, #list - 1)
    local thing = first and expression.resolve(context, first, #list - 1)
    if thing then add_keys(thing, escape, add) end
    return
  end
  local value = call and call.thing and call.thing.value
  if value ~= nil and rawequal(value, rawget(_G, "require")) then
    return modules.add(plain, add)
  end
  context.match = paths.base(plain)
  paths.add(plain, escape, add)
end

return strings
