--- Excerpts of user code for error messages: a line with a caret below a position.

local WIDTH = 72

-- Returns the first and last byte of the part of `line` around `at` that is shown, which does not
-- split UTF-8 characters.
local function window(line, at)
  if #line <= WIDTH then return 1, #line end
  local from = math.max(1, math.min(at - WIDTH // 2, #line - WIDTH + 1))
  local to = from + WIDTH - 1
  while line:find("^[\128-\191]", from) do from = from + 1 end
  while line:find("^[\128-\191]", to + 1) do to = to - 1 end
  return from, to
end

--- Returns `line`, shortened when it is long, and a caret below its byte `at` (nil: no caret), each
-- indented by `indent`: two lines, or one.
return function(line, at, indent)
  line = line:gsub("%c", " ")
  local from, to = window(line, at or 1)
  local left, right = from > 1 and "..." or "", to < #line and "..." or ""
  local shown = indent .. left .. line:sub(from, to) .. right
  if not at then return shown end
  local before = line:sub(from, at - 1)
  return shown .. "\n" .. indent .. (" "):rep(#left + (utf8.len(before) or #before)) .. "^"
end
