--- Encoding of Protocol Buffers messages (protobuf.dev, Encoding): fields as strings, which are
-- concatenated to a message.

local protobuf = {}

-- Returns an integer as a varint; a negative one in two's complement of 64 bits.
local function varint(n)
  local bytes = {}
  repeat
    local rest = n >> 7
    bytes[#bytes + 1] = string.char(n & 127 | (rest ~= 0 and 128 or 0))
    n = rest
  until n == 0
  return table.concat(bytes)
end
protobuf.varint = varint

--- Returns a field with an integer, also of an enum or a bool.
function protobuf.int(field, n) return varint(field << 3) .. varint(n) end

--- Returns a field with a double.
function protobuf.double(field, x) return varint(field << 3 | 1) .. ("<d"):pack(x) end

--- Returns a field with a float.
function protobuf.float(field, x) return varint(field << 3 | 5) .. ("<f"):pack(x) end

--- Returns a field with a string, bytes or a message.
function protobuf.bytes(field, text) return varint(field << 3 | 2) .. varint(#text) .. text end

--- Returns a packed repeated field of doubles, a list.
function protobuf.doubles(field, list)
  local parts = {}
  for i, x in ipairs(list) do parts[i] = ("<d"):pack(x) end
  return protobuf.bytes(field, table.concat(parts))
end

return protobuf
