--- Completion of code that is evaluated in a frame.

local complete = require "lutra.repl.complete"
local frame_code = require "lutra.repl.frame_code"
local json = require "lutra.internal.json"

local completions = {}

-- Returns an object with the session's fields whose locals include the variables of the frame.
local function session_in(session, frame)
  local view = {}
  function view:get(name) -- luacheck: ignore self
    local variable = frame_code.find(frame, name)
    if variable then return true, variable.value end
    return session.locals:get(name)
  end
  function view:pairs() -- luacheck: ignore self
    local values, name = {}, nil
    for key, value in session.locals:pairs() do values[key] = {value} end
    for _, variable in ipairs(frame.list()) do
      if variable.kind ~= "vararg" then values[variable.name] = {variable.value} end
    end
    return function()
      name = next(values, name)
      if name then return name, values[name][1] end
    end
  end
  return setmetatable({debugger = view}, {__index = session})
end

--- Returns the DAP targets for code with the cursor behind `column` characters; frame may be nil.
function completions.at(session, frame, text, column)
  local point = (utf8.offset(text, column + 1) or #text + 1) - 1
  local found = complete.at(text, point, frame and session_in(session, frame) or session)
  local targets = json.array {}
  if not found then return targets end
  local start = utf8.len(text, 1, found.first - 1) or 0
  for i, item in ipairs(found.items) do
    targets[i] = {label = item.text, text = item.text, detail = item.note, start = start,
      length = column - start}
  end
  return targets
end

return completions
