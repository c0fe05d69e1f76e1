--- lt.vision.io: PNG and JPEG images as tensors, by libpng and libjpeg-turbo, which are loaded when
-- they are first used. Images are uint8 tensors {C, H, W}.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"
local strict_table = require "lutra.internal.strict_table"

local io_library = {}

-- The numbers of lt_ImageMode.
local numbers = {UNCHANGED = 0, GRAY = 1, GRAY_ALPHA = 2, RGB = 3, RGB_ALPHA = 4, RGBA = 4}

local modes = {}
for name in pairs(numbers) do modes[name] = name end

--- io.ImageReadMode: what a reader converts an image to: UNCHANGED (its own channels), GRAY,
-- GRAY_ALPHA, RGB, RGB_ALPHA (also RGBA). Each is a string of its name.
io_library.ImageReadMode = strict_table.strict(modes, "ImageReadMode")

local MODE = "'UNCHANGED'|'GRAY'|'GRAY_ALPHA'|'RGB'|'RGB_ALPHA'|'RGBA' mode = 'UNCHANGED'"

-- Returns the bytes of a file as a string. Raises an error when it cannot be read.
local function read_bytes(title, path)
  local source <close> = core._source(title, args.path(title, "path", path), false)
  return source:bytes(0, source:size())
end

-- Returns a string or a vector of bytes in the form that the core reads.
local function bytes_of(title, input)
  if type(input) == "string" then return input end
  args.expect(lt.is_tensor(input), title, "a tensor of bytes or a string", "input", input)
  args.check(input.dtype == "uint8" and input.ndim == 1,
    "%s: expected a uint8 tensor of 1 dimension for argument 'input', got \"%s\" of shape %s",
    title, input.dtype, input.shape)
  return input:cpu():contiguous()
end

-- Returns what the core decodes, as {C, H, W}.
local function decoded(decode, bytes, mode)
  return decode(bytes, numbers[mode]):permute(3, 1, 2):contiguous()
end

local parse_png = args.signature("decode_png", "any input, " .. MODE)

--- io.decode_png(input, mode = "UNCHANGED"): the image {C, H, W} of the bytes of a PNG file: a
-- uint8 vector or a string. 16 bits are reduced to 8; palettes become colors. Raises an error for
-- damaged images, for more than 2^15 rows or columns, and where libpng is missing.
function io_library.decode_png(...)
  local input, mode = parse_png(...)
  return decoded(core._decode_png, bytes_of("decode_png", input), mode)
end

local parse_jpeg = args.signature("decode_jpeg", "any input, " .. MODE)

--- io.decode_jpeg(input, mode = "UNCHANGED"): the image {C, H, W} of the bytes of a JPEG file: a
-- uint8 vector or a string. Modes with alpha are an error. Raises an error for damaged images, for
-- CMYK, for more than 2^15 rows or columns or 100 scans, and where libjpeg-turbo is missing.
function io_library.decode_jpeg(...)
  local input, mode = parse_jpeg(...)
  return decoded(core._decode_jpeg, bytes_of("decode_jpeg", input), mode)
end

-- Decodes by the first bytes of the input.
local function decode(title, bytes, mode)
  local head = type(bytes) == "string" and bytes:sub(1, 8)
    or core._bytes(bytes[{{1, math.min(8, bytes:numel())}}])
  if head == "\x89PNG\r\n\x1a\n" then return decoded(core._decode_png, bytes, mode) end
  if head:sub(1, 3) == "\xff\xd8\xff" then return decoded(core._decode_jpeg, bytes, mode) end
  return args.fail("%s: cannot decode the image: it is neither PNG nor JPEG", title)
end

local function refuse_exif(title, flag)
  args.check(not flag, "%s: argument 'apply_exif_orientation' is not yet supported", title)
end

local parse_decode = args.signature("decode_image",
  "any input, " .. MODE .. ", bool apply_exif_orientation = false")

--- io.decode_image(input, mode = "UNCHANGED"): the image {C, H, W} of the bytes of a PNG or JPEG
-- file, which are recognized by their first bytes. Raises an error for any other format.
function io_library.decode_image(...)
  local input, mode, exif = parse_decode(...)
  refuse_exif("decode_image", exif)
  return decode("decode_image", bytes_of("decode_image", input), mode)
end

local parse_read = args.signature("read_image",
  "string path, " .. MODE .. ", bool apply_exif_orientation = false")

--- io.read_image(path, mode = "UNCHANGED"): the image {C, H, W} of a PNG or JPEG file: see
-- io.decode_image. Raises an error for a file that cannot be read.
function io_library.read_image(...)
  local path, mode, exif = parse_read(...)
  refuse_exif("read_image", exif)
  local bytes = read_bytes("read_image", path)
  local ok, image = pcall(decode, "read_image", bytes, mode)
  if ok then return image end
  local why = tostring(image):match "cannot decode the image: (.*)"
  if not why then error(image, 0) end
  return args.fail('read_image: cannot decode "%s": %s', path, why)
end

local parse_read_file = args.signature("read_file", "string path")

--- io.read_file(path): the bytes of a file as a uint8 vector.
function io_library.read_file(...)
  return lt.frombuffer(read_bytes("read_file", (parse_read_file(...))), {dtype = "uint8"})
end

local function write(title, path, bytes)
  args.path(title, "filename", path)
  local ok, why = atomic_file.write(path, function(put) put(core._bytes(bytes)) end)
  if not ok then args.fail("%s: cannot write %s", title, why) end
end

local parse_write_file = args.signature("write_file", "string filename, Tensor data")

--- io.write_file(filename, data): writes the bytes of a uint8 vector to a file, which is replaced
-- atomically.
function io_library.write_file(...)
  local path, data = parse_write_file(...)
  write("write_file", path, bytes_of("write_file", data))
end

-- Returns the image {C, H, W} as contiguous {H, W, C} on the CPU. `most`: channels.
local function rows_of(title, image, most)
  args.check(image.dtype == "uint8",
    "%s: expected a uint8 tensor for argument 'input', got \"%s\"\n"
    .. "hint: lt.vision.transforms.functional.to_dtype(image, \"uint8\", true)", title, image.dtype)
  if image.ndim == 2 then image = image:unsqueeze(1) end
  local ok = image.ndim == 3 and image:numel() > 0 and image:size(1) <= most
    and (most == 4 or image:size(1) ~= 2)
    and image:size(2) <= 1 << 15 and image:size(3) <= 1 << 15
  args.check(ok, "%s: expected shape {C, H, W} with %s channels for argument 'input', got %s",
    title, most == 4 and "1 to 4" or "1 or 3", image.shape)
  return image:permute(2, 3, 1):cpu():contiguous()
end

local function encode_png(title, image, level)
  args.check(level <= 9, "%s: expected an integer from 0 to 9 for argument 'compression_level', "
    .. "got %d", title, level)
  return core._encode_png(rows_of(title, image, 4), level)
end

local parse_encode_png = args.signature("encode_png",
  "Tensor input, int(>=0) compression_level = 6")

--- io.encode_png(input, compression_level = 6): the bytes, a uint8 vector, of a PNG file with the
-- image, uint8 {C, H, W} or {H, W}: 1 channel is gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha. A
-- level from 0 to 9: 9 is the smallest.
function io_library.encode_png(...)
  local image, level = parse_encode_png(...)
  return encode_png("encode_png", image, level)
end

local parse_write_png = args.signature("write_png",
  "Tensor input, string filename, int(>=0) compression_level = 6")

--- io.write_png(input, filename, compression_level = 6): writes a PNG file: see io.encode_png.
function io_library.write_png(...)
  local image, path, level = parse_write_png(...)
  write("write_png", path, encode_png("write_png", image, level))
end

local function encode_jpeg(title, image, quality)
  args.check(quality <= 100, "%s: expected an integer from 1 to 100 for argument 'quality', got %d",
    title, quality)
  return core._encode_jpeg(rows_of(title, image, 3), quality)
end

local parse_encode_jpeg = args.signature("encode_jpeg", "Tensor input, int(>=1) quality = 75")

--- io.encode_jpeg(input, quality = 75): the bytes, a uint8 vector, of a JPEG file with the image,
-- uint8 {C, H, W} or {H, W} with 1 or 3 channels; quality from 1 to 100.
function io_library.encode_jpeg(...)
  local image, quality = parse_encode_jpeg(...)
  return encode_jpeg("encode_jpeg", image, quality)
end

local parse_write_jpeg = args.signature("write_jpeg",
  "Tensor input, string filename, int(>=1) quality = 75")

--- io.write_jpeg(input, filename, quality = 75): writes a JPEG file: see io.encode_jpeg.
function io_library.write_jpeg(...)
  local image, path, quality = parse_write_jpeg(...)
  write("write_jpeg", path, encode_jpeg("write_jpeg", image, quality))
end

return strict_table.strict(io_library, "io")
