--- Compiles the text of a cell: whether it is complete, and whether its value is shown.
--
-- A cell is one input at the prompt: an expression, statements, or statements whose last line, or
-- the text after their last semicolon, is an expression. A cell is incomplete when Lua's error
-- message for it, as an expression or as statements, ends at <eof>, except for an unfinished
-- quoted string, which no further line can complete.

local lexer = require "lutra.repl.lexer"

local cell = {}

-- A to-be-closed variable, even nil, prevents a tail call, which would hide the cell's own line in
-- a traceback.
local give = "local lutra_end <close> = nil return "

local function stops_at_end(message)
  return message ~= nil and message:find("<eof>$") ~= nil
    and not message:find "unfinished string near <eof>$"
end

-- Returns whether the text from `at` on is an expression. Lua stops reading at the first error, so
-- that calling this for each line of a long cell is cheap.
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

-- Converts "x = 1\nx" to "x = 1\nreturn x" when the last lines, or the text after a semicolon, are
-- an expression. They must start with a word or a number: a line that starts with an operator, a
-- bracket or a string continues the statement before it.
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

-- Handles several cells that were pasted as one: "x\ny = 2\ny" is not valid Lua, as an expression
-- is not a statement. Returns the text with such expressions as statements that discard their
-- value, and the position of the last one when it is an expression; nil when a line is neither.
-- Line numbers do not change.
local function with_idle_expressions(text, load_text)
  local done, pending = "", ""
  local value, idle = "", false -- the last expression, which is not a statement
  for line in (text .. "\n"):gmatch "(.-\n)" do
    pending = pending .. line
    local is_statement, is_code = load_text(pending), #lexer.significant(pending) > 0
    local is_value = is_code and load_text("return " .. pending)
    if is_code and (is_statement or is_value) then
      done = done .. (idle and "do local _ = " .. value .. " end " or value)
      value, idle, pending = pending, not is_statement, ""
      if not is_value then done, value = done .. value, "" end
    elseif is_statement then -- also blanks and comments
      value, pending = value .. pending, ""
    end
  end
  if pending ~= "" then return nil end
  return done .. value, #lexer.significant(value) > 0 and #done + 1 or nil
end

local longest_paste = 1 << 16 -- bytes: of a longer text, lines are not tried one by one

--- Parses `text`; `name` is the chunk name for messages. Returns "complete" with {text = the cell
-- as statements, except for an expression at its end whose value is shown, value_at = the position
-- of that expression, or nil, body = the text that runs, quiet = true when it ends in a
-- semicolon}; "incomplete" with Lua's message; or "error" with Lua's message. A cell without code
-- is complete and has no body.
function cell.read(text, name)
  local function load_text(t) return load(t, name, "t") end

  local tokens = lexer.significant(text)
  if #tokens == 0 then
    local _, message = load_text(text) -- fails for an unfinished long comment
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
