--- is_complete_request: whether the code of a console is complete.

local editor = require "lutra.repl.editor"
local fields = require "lutra.repl.kernel.fields"
local pieces = require "lutra.repl.kernel.pieces"

local is_complete = {}

-- Returns the status of a piece: "complete", "incomplete" or "error".
local function status_of(session, piece)
  if piece.kind == "lua" then return session:status(piece.text) end
  return piece.incomplete and "incomplete" or "complete"
end

--- Replies to is_complete_request: {status, indent}. status: "complete"; "incomplete", with the
-- indentation of the next line; or "invalid", when no further line makes it valid.
function is_complete.is_complete_request(kernel, content)
  local code = fields.string(content, "code")
  for _, piece in ipairs(pieces.split(code)) do
    local status = status_of(kernel.session, piece)
    if status == "error" then return {status = "invalid"} end
    if status == "incomplete" then
      return {status = "incomplete", indent = editor.indent(code, #code)}
    end
  end
  return {status = "complete"}
end

return is_complete
