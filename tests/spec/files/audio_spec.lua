-- lt.audio: WAV files. Expected bytes follow from the format (RIFF WAVE, Multimedia Programming
-- Interface 1.0, 1991).

local lt = require "lutra"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local path
before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function write(bytes)
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes)
end

local function read()
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Returns a file of these chunks.
local function riff(...)
  local body = "WAVE" .. table.concat({...})
  return "RIFF" .. ("<s4"):pack(body)
end

local function fmt(code, channels, rate, bits, align)
  align = align or channels * bits // 8
  return "fmt " .. ("<s4"):pack(("<I2I2I4I4I2I2"):pack(code, channels, rate, rate * align, align,
    bits))
end

local function data(bytes) return "data" .. ("<s4"):pack(bytes) end

describe("audio.load", function()
  it("reads every encoding", function()
    for _, case in ipairs{
      {1, 8, "\0\128\255\192", {-1, 0, 127 / 128, 0.5}, "PCM_U", {0, 128, 255, 192}, "uint8"},
      {1, 16, ("<i2i2i2i2"):pack(-32768, 0, 32767, 16384), {-1, 0, 32767 / 32768, 0.5}, "PCM_S",
        {-32768, 0, 32767, 16384}, "int16"},
      {1, 24, "\0\0\128\0\0\0\0\0\64\255\255\255", {-1, 0, 0.5, -1 / 8388608}, "PCM_S",
        {-2147483648, 0, 1073741824, -256}, "int32"},
      {1, 32, ("<i4i4i4i4"):pack(math.mininteger >> 32 | -1 << 31, 0, 1 << 30, -1 << 30),
        {-1, 0, 0.5, -0.5}, "PCM_S", {-2147483648, 0, 1 << 30, -(1 << 30)}, "int32"},
      {3, 32, ("<ffff"):pack(-1, 0, 2, 0.25), {-1, 0, 2, 0.25}, "PCM_F", {-1, 0, 2, 0.25},
        "float32"},
      {3, 64, ("<dddd"):pack(-1, 0, 2, 0.25), {-1, 0, 2, 0.25}, "PCM_F", {-1, 0, 2, 0.25},
        "float64"},
    } do
      local code, bits, bytes, values, encoding, raw, dtype = table.unpack(case)
      write(riff(fmt(code, 2, 8000, bits), data(bytes)))
      local x, rate = lt.audio.load(path)
      assert.equal(8000, rate)
      assert.equal("float32", x.dtype)
      local expected = lt.tensor(values, {dtype = "float64"}):to("float32"):reshape(2, 2):t()
      assert.is_true(lt.equal(expected, x))
      local y = lt.audio.load(path, {normalize = false, channels_first = false})
      assert.equal(dtype, y.dtype)
      assert.same({{raw[1], raw[2]}, {raw[3], raw[4]}}, y:totable())
      assert.same({sample_rate = 8000, num_channels = 2, num_frames = 2, bits_per_sample = bits,
        encoding = encoding}, lt.audio.info(path))
    end
  end)

  it("reads a part", function()
    write(riff(fmt(1, 1, 4, 8), data "\129\130\131\132\133"))
    local options = {frame_offset = 1, num_frames = 3, normalize = false}
    assert.same({{130, 131, 132}}, lt.audio.load(path, options):totable())
    assert.same({{132, 133}}, lt.audio.load(path, 3, 9, false):totable())
    assert.equal("{1, 0}", tostring(lt.audio.load(path, {frame_offset = 9}).shape))
    assert.matches("frame_offset", fails(lt.audio.load, path, {frame_offset = -1}), 1, true)
    assert.matches("num_frames", fails(lt.audio.load, path, {num_frames = -2}), 1, true)
  end)

  it("skips other chunks, and reads the extensible format", function()
    local extensible = "fmt " .. ("<s4"):pack(("<I2I2I4I4I2I2I2I2I4I2"):pack(0xFFFE, 1, 8, 16, 2,
      16, 22, 16, 0, 1) .. "\0\0\0\0\16\0\128\0\0\170\0\56\155\113")
    write(riff("LIST" .. ("<s4"):pack "abc" .. "\0", extensible, data "\0\64", "tail"))
    assert.same({{0.5}}, lt.audio.load(path):totable())
    write(riff(fmt(1, 1, 8, 16)) .. "data\255\255\255\255\0\64") -- a stream
    assert.same({{0.5}}, lt.audio.load(path):totable())
  end)

  it("refuses files that are not valid", function()
    local good = riff(fmt(1, 2, 8000, 16), data "abcdefgh")
    for bytes, piece in pairs{
      [""] = "not a WAV file", ["RIFF\0\0\0\0WAVX"] = "not a WAV file",
      [riff()] = "no samples", [riff(data "ab")] = "before their format",
      [riff(fmt(1, 2, 8, 16), fmt(1, 2, 8, 16))] = "two formats",
      [riff(fmt(2, 1, 8, 16), data "")] = "encoding 2 of 16 bits is not supported",
      [riff(fmt(1, 1, 8, 12), data "")] = "encoding 1 of 12 bits",
      [riff(fmt(3, 1, 8, 16), data "")] = "encoding 3 of 16 bits",
      [riff(fmt(1, 0, 8, 16), data "")] = "format is damaged",
      [riff(fmt(1, 1, 0, 16), data "")] = "format is damaged",
      [riff(fmt(1, 2, 8, 16, 2), data "")] = "format is damaged",
      [riff("fmt " .. ("<s4"):pack "short", data "")] = "format is damaged",
      [riff(fmt(0xFFFE, 1, 8, 16), data "")] = "encoding is not supported",
      [riff(fmt(1, 2, 8, 16), data "abc")] = "inside of a frame",
      [riff(fmt(1, 1, 8, 16)) .. "data\255\255\255\127ab"] = "truncated",
      [riff(fmt(1, 1, 8, 16)) .. "LIST\255\255\255\127ab"] = "truncated",
    } do
      write(bytes)
      for _, f in ipairs{lt.audio.load, lt.audio.info} do
        local message = fails(f, path)
        assert.matches(piece, message, 1, true)
        assert.matches('cannot read "' .. path, message, 1, true)
      end
    end
    for cut = 0, #good - 1 do
      write(good:sub(1, cut))
      assert.matches("load: cannot read", fails(lt.audio.load, path), 1, true)
    end
    assert.matches("cannot open", fails(lt.audio.load, path .. ".none"), 1, true)
  end)
end)

describe("audio.save", function()
  it("writes the bytes of the format", function()
    lt.audio.save(path, lt.tensor({{1, 2, 3}}, {dtype = "uint8"}), 8000)
    assert.equal("RIFF\40\0\0\0WAVEfmt \16\0\0\0\1\0\1\0\64\31\0\0\64\31\0\0\1\0\8\0"
      .. "data\3\0\0\0\1\2\3\0", read())
  end)

  it("keeps the samples of each dtype", function()
    for dtype, encoding in pairs{uint8 = "PCM_U", int16 = "PCM_S", int32 = "PCM_S",
      float32 = "PCM_F", float64 = "PCM_F"} do
      local x = lt.tensor({{1, 2, 3}, {4, 5, 6}}, {dtype = dtype})
      lt.audio.save(path, x, 16000)
      local y, rate = lt.audio.load(path, {normalize = false})
      assert.equal(16000, rate)
      assert.is_true(lt.equal(x, y))
      assert.equal(dtype, y.dtype)
      assert.equal(encoding, lt.audio.info(path).encoding)
      lt.audio.save(path, x:t(), 16000, {channels_first = false})
      y = lt.audio.load(path, {normalize = false})
      assert.is_true(lt.equal(x, y))
    end
  end)

  it("converts floats to integers and clamps them", function()
    local x = lt.tensor{{-1, 0, 0.5, 1, -2, 3}}
    for _, case in ipairs{{16, {-32768, 0, 16384, 32767, -32768, 32767}},
      {8, {0, 128, 192, 255, 0, 255}},
      {24, {-2147483648, 0, 1073741824, 2147483392, -2147483648, 2147483392}},
      {32, {-2147483648, 0, 1073741824, 2147483647, -2147483648, 2147483647}}} do
      lt.audio.save(path, x, 8, {bits_per_sample = case[1]})
      assert.same({case[2]}, lt.audio.load(path, {normalize = false}):totable())
    end
    lt.audio.save(path, lt.tensor({{-32768, 16384}}, {dtype = "int16"}), 8, {encoding = "PCM_F"})
    assert.same({{-1, 0.5}}, lt.audio.load(path):totable())
    lt.audio.save(path, lt.tensor({{-32768, 16384}}, {dtype = "int16"}), 8, {bits_per_sample = 24})
    assert.same({{-2147483648, 1073741824}}, lt.audio.load(path, {normalize = false}):totable())
  end)

  it("refuses what a WAV file cannot have", function()
    write "old"
    assert.matches("2 dimensions for argument 'src'", fails(lt.audio.save, path, lt.ones(3), 8), 1,
      true)
    assert.matches('dtype float64, float32, int32, int16 or uint8 for argument \'src\', got "bool"',
      fails(lt.audio.save, path, lt.tensor{{true}}, 8), 1, true)
    assert.matches("expected bits_per_sample", fails(lt.audio.save, path, lt.ones(1, 1), 8,
      {bits_per_sample = 12}), 1, true)
    assert.matches("PCM_S, PCM_U or PCM_F", fails(lt.audio.save, path, lt.ones(1, 1), 8,
      {encoding = "MP3"}), 1, true)
    assert.matches("sample_rate", fails(lt.audio.save, path, lt.ones(1, 1), 0), 1, true)
    assert.matches("1 to", fails(lt.audio.save, path, lt.ones(0, 4), 8), 1, true)
    assert.matches("NUL", fails(lt.audio.save, path .. "\0", lt.ones(1, 1), 8), 1, true)
    assert.equal("old", read())
    lt.audio.save(path, lt.ones(1, 0), 8) -- no samples
    assert.equal("{1, 0}", tostring(lt.audio.load(path).shape))
  end)
end)
