--- Positions in the code of a message: the protocol counts code points, the prompt counts bytes.

local position = {}

--- Returns the number of bytes in the first `points` code points of `text`, which is UTF-8: all of
-- them when there are fewer, or when `points` is nil.
function position.bytes(text, points)
  points = points or #text
  if points <= 0 then return 0 end
  if points >= #text then return #text end
  local next_character = utf8.offset(text, points + 1)
  return next_character and next_character - 1 or #text
end

--- Returns the number of code points in the first `bytes` bytes of `text`.
function position.points(text, bytes) return utf8.len(text, 1, bytes, true) or bytes end

return position
