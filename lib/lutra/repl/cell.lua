--- From the text of a cell to a function: is it complete, is its value to be shown.
--
-- A cell is what a person enters at one prompt: an expression, statements, or statements whose last
-- line, or what follows their last semicolon, is an expression. The rule for "not finished yet":
-- Lua's message for the cell, read as an expression or as statements, ends at <eof> -- except for
-- an unfinished quoted string, which no further line can finish.

local lexer = require "lutra.repl.lexer"

local cell = {}

-- A variable to be closed, even nil, keeps the call after it from being a tail call, which would
-- hide the cell's own line in a traceback.
local give = "local lutra_end <close> = nil return "

local function stops_at_end(message)
  return message ~= nil and message:find("<eof>$") ~= nil
    and not message:find "unfinished string near <eof>$"
end

-- Is the text from `at` on an expression? Lua reads no further than to what is none, so that asking
-- this of each line of a long cell copies little.
local function is_expression_from(text, at)
  local piece
  return load(function()
    if not piece then
      piece = "return "
    else
      piece = text:sub(at, at + 511)
      at = at + 512
    end
    return piece
  end) ~= nil
end

-- "x = 1\nx" -> "x = 1\nreturn x" when the last lines, or what follows a semicolon, are an
-- expression of their own. They must start with a word or a number: a line that starts with an
-- operator, a bracket or a string goes on the statement before it.
local function return_last_lines(text, load_text)
  local starts = {}
  for at in text:gmatch "[\n;]()" do starts[#starts + 1] = at end
  for i = #starts, 1, -1 do
    local at = starts[i]
    if text:match("^%s*[%w_#]", at) and not text:match("^%s*return%f[^%w_]", at)
        and is_expression_from(text, at) and load_text(text:sub(1, at - 1)) then
      local whole = text:sub(1, at - 1) .. give .. text:sub(at)
      if load_text(whole) then return whole, starts[i] end
      return nil
    end
  end
end

--- Reads `text` (chunk name `name`, for messages).
-- Returns "complete" with {body = text with `return` where a value is wanted, value_at = where that
-- value's expression starts in `text`, quiet = it ends in a semicolon}; "incomplete" with Lua's
-- message; or "error" with Lua's message. A cell without any code is complete and has no body.
function cell.read(text, name)
  local function load_text(t) return load(t, name, "t") end

  local tokens = lexer.significant(text)
  if #tokens == 0 then
    local _, message = load_text(text) -- an unfinished long comment
    if message then return stops_at_end(message) and "incomplete" or "error", message end
    return "complete", {quiet = true}
  end
  local quiet = tokens[#tokens][2] == ";"

  local expression, message_expression = load_text("return " .. text)
  if expression and tokens[1][2] ~= ";" then
    return "complete", {body = give .. text, value_at = 1, quiet = quiet}
  end
  local body, value_at = return_last_lines(text, load_text)
  if body then return "complete", {body = body, value_at = value_at, quiet = quiet} end
  local statements, message = load_text(text)
  if statements then return "complete", {body = text, quiet = quiet} end
  if stops_at_end(message) or stops_at_end(message_expression) then
    return "incomplete", message
  end
  return "error", message
end

return cell
