--- What a subject of help is, as it was typed: `lt.matmul`, `x:sum`, `net[1].weight`, `:time`.
--
-- Nothing of the user's runs: chains are followed as completion follows them.

local commands = require "lutra.repl.commands"
local expression = require "lutra.repl.complete.expression"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local subject = {}

-- The thing (complete/things.lua) that an expression is, or nil.
local function resolve(text, session)
  local ok, read = pcall(tokens.read, text .. " ")
  if not ok or #read.list == 0 then return nil end
  local place = {read = read, session = session, variables = {}, assigned = {}, depth = 0}
  local found, thing = pcall(expression.resolve, place, 1, #read.list)
  return found and thing or nil
end

-- A session, as completion wants it, that sees the variables of the frame that is debugged.
local function seen_from(session)
  local debugger = session and session.debugger
  if not debugger then return session end
  local variables = {}
  for _, variable in ipairs(debugger:frame().list()) do
    if variable.kind ~= "vararg" then variables[variable.name] = {variable.value} end
  end
  return {locals = {get = function(_, name)
    if variables[name] then return true, variables[name][1] end
    return session.locals:get(name)
  end}}
end

--- Reads a subject. Returns a table of what is known, at least {text}:
--   command  the row of a command
--   thing    {value = ...} or {like = "tensor"}, as complete/things.lua has them
--   owner    the thing whose field it is, and
--   field    its name
function subject.read(text, session)
  session = seen_from(session)
  text = text:match "^%s*(.-)%s*$"
  if text:sub(1, 1) == ":" then
    return {text = text, command = commands.find(text:match "^:%s*(%S*)")}
  end
  local bare = text:match "^(.*[%w_%]])%s*%b()$" or text
  local found = {text = bare}
  local before, field = bare:match "^(.+)[%.:]%s*([%a_][%w_]*)$"
  if before and not tonumber(bare) then
    found.owner, found.field = resolve(before, session), field
    if not found.owner and before == "x" then found.owner = {like = "tensor"} end -- as help writes
    if found.owner then found.thing = static_values.field(found.owner, field) end
    local of_tensor = found.owner
      and (found.owner.like == "tensor" or static_values.is_tensor(found.owner.value))
    if of_tensor and found.thing and found.thing.value == nil then
      found.thing = nil -- any string may index a tensor: this one is no method
    end
  else
    found.thing = resolve(bare, session)
  end
  return found
end

return subject
