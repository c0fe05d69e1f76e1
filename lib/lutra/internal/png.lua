--- A minimal writer of PNG files (ISO 15948): 8 bits, grey, RGB or RGBA, without filters. It needs
-- no library of images; lt.vision.io writes files.

local core = require "lutra.core"

local png = {}

local color_types = {[1] = 0, [3] = 2, [4] = 6}

local function chunk(name, data)
  return (">I4"):pack(#data) .. name .. data .. (">I4"):pack(core._crc32(name .. data))
end

--- Returns the bytes of a PNG file of a tensor {height, width, channels} of uint8 with 1, 3 or 4
-- channels.
function png.encode(image)
  local height, width, channels = image:size(1), image:size(2), image:size(3)
  local rows = core.cat({core.zeros({height, 1}, {dtype = "uint8"}),
    image:reshape{height, width * channels}}, 2)
  return "\x89PNG\r\n\26\n" .. chunk("IHDR", (">I4I4BBBBB"):pack(width, height, 8,
    color_types[channels], 0, 0, 0))
    .. chunk("IDAT", core._deflate(core._tensor_bytes(rows), true)) .. chunk("IEND", "")
end

return png
