--- Completion of code that is evaluated in a frame.

local complete = require "lutra.repl.complete"
local frame_code = require "lutra.repl.frame_code"
local json = require "lutra.internal.json"

local completions = {}

-- Returns an object with the session's fields whose locals include the variables of the frame.
local function session_in(session, frame)
  return setmetatable({debugger = frame_code.variables(session, frame)}, {__index = session})
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
