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

-- What several cells are when they were pasted as one: "x\ny = 2\ny" is no Lua, as an expression is
-- no statement. Gives the text with such expressions as statements that forget their value, and
-- where the last one starts when it is an expression; nil when a line is neither. No line moves.
local function with_idle_expressions(text, load_text)
  local done, pending = "", ""
  local value, idle = "", false -- an expression that may be the last; it is no statement
  for line in (text .. "\n"):gmatch "(.-\n)" do
    pending = pending .. line
    local is_statement, is_code = load_text(pending), #lexer.significant(pending) > 0
    local is_value = is_code and load_text("return " .. pending)
    if is_code and (is_statement or is_value) then
      done = done .. (idle and "do local _ = " .. value .. " end " or value)
      value, idle, pending = pending, not is_statement, ""
      if not is_value then done, value = done .. value, "" end
    elseif is_statement then -- blanks and comments
      value, pending = value .. pending, ""
    end
  end
  if pending ~= "" then return nil end
  return done .. value, #lexer.significant(value) > 0 and #done + 1 or nil
end

local longest_paste = 1 << 16 -- bytes of a text whose lines are tried one by one

--- Reads `text` (chunk name `name`, for messages).
-- Returns "complete" with {text = the cell as statements, but for an expression at its end whose
-- value is wanted, value_at = where in it that expression starts, or nil, body = the text that
-- runs, quiet = it ends in a semicolon}; "incomplete" with Lua's message; or "error" with Lua's
-- message. A cell without any code is complete and has no body.
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
    return "complete", {text = text, body = give .. text, value_at = 1, quiet = quiet}
  end
  local body, value_at = return_last_lines(text, load_text)
  if body then
    return "complete", {text = text, body = body, value_at = value_at, quiet = quiet}
  end
  local statements, message = load_text(text)
  if statements then return "complete", {text = text, body = text, quiet = quiet} end
  if stops_at_end(message) or stops_at_end(message_expression) then
    return "incomplete", message
  end
  if text:find "\n" and #text <= longest_paste then
    local stated, at = with_idle_expressions(text, load_text)
    body = stated and at and stated:sub(1, at - 1) .. give .. stated:sub(at) or stated
    if body and load_text(body) then
      return "complete", {text = stated, body = body, value_at = at, quiet = quiet}
    end
  end
  return "error", message
end

return cell
