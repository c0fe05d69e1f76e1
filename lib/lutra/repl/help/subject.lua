--- Resolves a subject of help as it was typed: `lt.matmul`, `x:sum`, `net[1].weight`, `:time`.
--
-- No user code runs: chains are followed as in completion.

local commands = require "lutra.repl.commands"
local expression = require "lutra.repl.complete.expression"
local scope = require "lutra.repl.complete.scope"
local static_values = require "lutra.repl.complete.static_values"
local tokens = require "lutra.repl.complete.tokens"

local subject = {}

-- Returns the static value (complete/static_values.lua) of an expression, or nil. Variables that
-- the code `before` declares are those of the expression.
local function resolve(text, session, before)
  local ok, read = pcall(tokens.read, before .. " " .. text .. " ")
  if not ok or #read.list == 0 then return nil end
  local first = 1
  while read.list[first] and read.list[first][3] <= #before do first = first + 1 end
  local context = {read = read, session = session, depth = 0}
  context.variables, context.assigned = scope.variables(read)
  local found, thing = pcall(expression.resolve, context, first, #read.list)
  return found and thing or nil
end

-- Returns a session for completion that includes the variables of the frame being debugged.
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

--- Resolves a subject; `before` is code that was not run yet and declares variables, or nil.
-- Returns a table with at least {text}, and if known:
--   command  the row of a command
--   thing    its static value, {value = ...} or {like = "tensor"} (complete/static_values.lua)
--   owner    the static value whose field it is, and
--   field    the field's name
function subject.read(text, session, before)
  session, before = seen_from(session), before or ""
  text = text:match "^%s*(.-)%s*$"
  if text:sub(1, 1) == ":" then
    return {text = text, command = commands.find(text:match "^:%s*(%S*)")}
  end
  local bare = text:match "^(.*[%w_%]])%s*%b()$" or text
  local found = {text = bare}
  local owner, field = bare:match "^(.+)[%.:]%s*([%a_][%w_]*)$"
  if owner and not tonumber(bare) then
    found.owner, found.field = resolve(owner, session, before), field
    if not found.owner and owner == "x" then found.owner = {like = "tensor"} end
    if found.owner then found.thing = static_values.field(found.owner, field) end
    local of_tensor = found.owner
      and (found.owner.like == "tensor" or static_values.is_tensor(found.owner.value))
    if of_tensor and found.thing and found.thing.value == nil then
      found.thing = nil -- any string may index a tensor: this one is no method
    end
  else
    found.thing = resolve(bare, session, before)
  end
  return found
end

return subject
