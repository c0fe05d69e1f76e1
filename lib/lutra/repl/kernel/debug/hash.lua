--- MurmurHash2, 32 bits: by it a front end and the debugger name the source of a cell.
--
-- Invariant: the result is that of Austin Appleby's MurmurHash2 on a little-endian machine.

local hash = {}

local MULTIPLIER, MASK = 0x5bd1e995, 0xFFFFFFFF

--- Returns the hash of a string as an integer from 0 to 2^32 - 1; seed: an integer of 32 bits.
function hash.murmur2(text, seed)
  local h = (seed ~ #text) & MASK
  local whole = #text // 4 * 4
  for at = 1, whole, 4 do
    local k = ("<I4"):unpack(text, at) * MULTIPLIER & MASK
    k = (k ~ k >> 24) * MULTIPLIER & MASK
    h = h * MULTIPLIER & MASK ~ k
  end
  if #text > whole then
    h = h ~ ("<I" .. #text - whole):unpack(text, whole + 1)
    h = h * MULTIPLIER & MASK
  end
  h = (h ~ h >> 13) * MULTIPLIER & MASK
  return h ~ h >> 15
end

return hash
