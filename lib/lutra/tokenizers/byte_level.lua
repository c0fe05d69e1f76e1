--- GPT-2's alphabet: each byte as a printable character, so that tokens of any bytes are text
-- (Radford et al. 2019, bytes_to_unicode of encoder.py).

local byte_level = {}

local to_character, to_byte = {}, {}
do
  local next_code = 256
  for byte = 0, 255 do
    local plain = byte >= 33 and byte <= 126 or byte >= 161 and byte <= 172 or byte >= 174
    local code = plain and byte or next_code
    if not plain then next_code = next_code + 1 end
    local character = utf8.char(code)
    to_character[string.char(byte)], to_byte[character] = character, string.char(byte)
  end
end

--- The 256 characters, sorted by code point: the first tokens of a new vocabulary.
byte_level.alphabet = {}
for character in pairs(to_byte) do table.insert(byte_level.alphabet, character) end
table.sort(byte_level.alphabet, function(a, b) return utf8.codepoint(a) < utf8.codepoint(b) end)

--- Returns the bytes of `text` as characters of the alphabet.
function byte_level.encode(text) return (text:gsub("[%z\1-\255]", to_character)) end

--- Returns the bytes of a string of the alphabet; other characters stay.
function byte_level.decode(text)
  return (text:gsub(utf8.charpattern, to_byte))
end

return byte_level
