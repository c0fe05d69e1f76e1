--- WAV files (Microsoft's and IBM's RIFF WAVE): PCM of 8 to 32 bits and floats of 32 and 64 bits.
--
-- Invariant: every size is checked against the file before memory is allocated.

local core = require "lutra.core"

local wav = {}

-- Codes of sample formats; EXTENSIBLE has one of the others in its first field after the mask.
local PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
local GUID = "\0\0\0\0\16\0\128\0\0\170\0\56\155\113"

-- Encoding and bits -> dtype of the file's samples.
local dtypes = {[PCM] = {[8] = "uint8", [16] = "int16", [24] = "int24", [32] = "int32"},
  [FLOAT] = {[32] = "float32", [64] = "float64"}}

-- Reads the fields of the chunk "fmt ".
local function read_format(text, fail)
  if #text < 16 then fail "its format is damaged" end
  local code, channels, rate, _, align, bits = ("<I2I2I4I4I2I2"):unpack(text)
  if code == EXTENSIBLE then
    if #text < 40 or text:sub(27, 40) ~= GUID then fail "its encoding is not supported" end
    code = ("<I2"):unpack(text, 25)
  end
  local dtype = dtypes[code] and dtypes[code][bits]
  if not dtype then
    fail(("its encoding %d of %d bits is not supported: expected PCM of 8, 16, 24 or 32 bits or "
      .. "floats of 32 or 64 bits"):format(code, bits))
  end
  if channels == 0 or rate == 0 or align ~= channels * bits // 8 then
    fail "its format is damaged"
  end
  return {encoding = code == FLOAT and "PCM_F" or bits == 8 and "PCM_U" or "PCM_S", dtype = dtype,
    num_channels = channels, sample_rate = rate, bits_per_sample = bits, align = align}
end

--- Returns the format of the file in `source`: {sample_rate, num_channels, num_frames,
-- bits_per_sample, encoding, dtype, at}, where `at` is the offset of its samples.
function wav.read_header(source, fail)
  local size = source:size()
  local start = size >= 12 and source:bytes(0, 12) or ""
  if start:sub(1, 4) ~= "RIFF" or start:sub(9, 12) ~= "WAVE" then fail "it is not a WAV file" end
  local at, format = 12, nil
  while at <= size - 8 do
    local id, n = ("<c4I4"):unpack(source:bytes(at, 8))
    at = at + 8
    if id == "data" then
      if not format then fail "it has samples before their format" end
      if n == 0xFFFFFFFF then n = size - at end -- of a stream whose length was not known
      if n > size - at then fail "it is truncated: its samples end past the end of the file" end
      format.at, format.num_frames = at, n // format.align
      if n % format.align ~= 0 then fail "its samples end inside of a frame" end
      return format
    end
    if n > size - at then fail "it is truncated: a part of it ends past the end of the file" end
    if id == "fmt " then
      if format then fail "it has two formats" end
      format = read_format(source:bytes(at, math.min(n, 40)), fail)
    end
    at = at + n + n % 2
  end
  fail "it has no samples"
end

--- Returns samples as a tensor {frames, channels} in the file's dtype; those of 24 bits as the
-- upper bits of int32.
function wav.read_samples(source, format, first, count)
  local at, n = format.at + first * format.align, count * format.num_channels
  local shape = {count, format.num_channels}
  if format.dtype ~= "int24" then return source:tensor(at, format.dtype, n):reshape(shape) end
  local bytes = source:tensor(at, "uint8", n * 3):reshape{n, 3}:to "int32"
  local weights = core.tensor({1 << 8, 1 << 16, 1 << 24}, {dtype = "int64"})
  local value = (bytes:to "int64" * weights):sum(2)
  -- 32 bits in two's complement
  return (value - value:ge(1 << 31):to "int64" * (1 << 32)):to "int32":reshape(shape)
end

local scales = {uint8 = 128, int16 = 32768, int24 = 2147483648, int32 = 2147483648}

--- Returns samples as float32 from -1 to 1.
function wav.normalize(samples, format)
  local scale = scales[format.dtype]
  if not scale then return samples:to "float32" end
  if format.dtype == "uint8" then return (samples:to "float32" - 128) / 128 end
  return (samples:to "float64" / scale):to "float32"
end

-- Returns floats from -1 to 1 as integers of `bits` bits, rounded and clamped.
local function quantize(samples, bits)
  local scale = 2.0 ^ (bits - 1)
  return (samples:to "float64" * scale):round():clamp(-scale, scale - 1)
end

-- The dtypes of samples that a file of integers keeps, and their bits.
local integer_bits = {uint8 = 8, int16 = 16, int32 = 32}

--- Returns the bytes of a tensor {frames, channels} with this encoding and bits.
function wav.encode(samples, encoding, bits)
  local from = integer_bits[samples.dtype]
  if from == bits and encoding ~= "PCM_F" then return core._tensor_bytes(samples) end
  if from then -- from one integer format to another: by floats of the same range
    samples = samples:to "float64"
    if from == 8 then samples = samples - 128 end
    samples = samples / 2.0 ^ (from - 1)
  end
  if encoding == "PCM_F" then
    return core._tensor_bytes(samples:to(bits == 32 and "float32" or "float64"))
  end
  local value = quantize(samples, bits)
  if bits == 8 then return core._tensor_bytes((value + 128):to "uint8") end
  if bits == 16 then return core._tensor_bytes(value:to "int16") end
  if bits == 32 then return core._tensor_bytes(value:to "int64":to "int32") end
  local whole = value:to "int64":reshape{-1, 1}
  whole = whole + whole:lt(0):to "int64" * (1 << 24)
  local shifts = core.tensor({1, 1 << 8, 1 << 16}, {dtype = "int64"})
  return core._tensor_bytes((whole // shifts % 256):to "uint8")
end

--- Returns the bytes before the samples, and those after them. Raises by fail(why) what does not
-- fit the format.
function wav.header(rate, channels, encoding, bits, bytes, fail)
  local code, align = encoding == "PCM_F" and FLOAT or PCM, channels * bits // 8
  if bytes > 0xFFFFFFFF - 64 then fail "it has more than 4 GiB" end
  local format = ("<I2I2I4I4I2I2"):pack(code, channels, rate, rate * align, align, bits)
  local chunks = "fmt " .. ("<s4"):pack(code == FLOAT and format .. "\0\0" or format)
  if code == FLOAT then
    chunks = chunks .. "fact" .. ("<s4"):pack(("<I4"):pack(bytes // align))
  end
  local size = 4 + #chunks + 8 + bytes + bytes % 2
  return "RIFF" .. ("<I4"):pack(size) .. "WAVE" .. chunks .. "data" .. ("<I4"):pack(bytes),
    bytes % 2 == 1 and "\0" or ""
end

return wav
