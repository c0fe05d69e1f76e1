--- audio: WAV files, with the names of torchaudio.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"
local strict_table = require "lutra.internal.strict_table"
local wav = require "lutra.audio.wav"

local audio = {}

-- Opens a file and reads its header; returns the source, the format and the function for errors.
local function open(title, path)
  local function fail(why) args.fail('%s: cannot read "%s": %s', title, path, why) end
  local source = core._source(title, path, false)
  local ok, format = pcall(wav.read_header, source, fail)
  if not ok then
    source:close()
    error(format, 0)
  end
  return source, format
end

local parse_load = args.signature("load", "string path, int(>=0) frame_offset = 0, "
  .. "int num_frames = -1, bool normalize = true, bool channels_first = true")

--- audio.load(path, {frame_offset, num_frames, normalize, channels_first}): returns the samples of
-- a WAV file and its sample rate. The samples are float32 from -1 to 1 of shape {channels, frames},
-- or {frames, channels} without `channels_first`; with `normalize = false` they have the file's
-- dtype (24 bits as the upper bits of int32). `frame_offset` frames are skipped, and at most
-- `num_frames` are read (-1: all). Raises an error for a file that cannot be read.
function audio.load(...)
  local path, offset, count, normalize, channels_first = parse_load(...)
  args.check(count >= -1, "load: expected -1 or a number of frames for argument 'num_frames', got "
    .. "%d", count)
  local file, format = open("load", path)
  local source <close> = file
  local first = math.min(offset, format.num_frames)
  local left = format.num_frames - first
  local samples = wav.read_samples(source, format, first, count < 0 and left or math.min(count,
    left))
  if normalize then samples = wav.normalize(samples, format) end
  if channels_first then samples = samples:t():contiguous() end
  return samples, format.sample_rate
end

--- audio.info(path): returns a table with sample_rate, num_channels, num_frames, bits_per_sample
-- and encoding ("PCM_S", "PCM_U" or "PCM_F") of a WAV file. Raises an error for a file that cannot
-- be read.
function audio.info(path)
  args.expect(type(path) == "string", "info", "a string", "path", path)
  local source, format = open("info", path)
  source:close()
  return {sample_rate = format.sample_rate, num_channels = format.num_channels,
    num_frames = format.num_frames, bits_per_sample = format.bits_per_sample,
    encoding = format.encoding}
end

-- dtype -> the encoding and the bits that keep it, as torchaudio chooses them.
local default_of = {uint8 = {"PCM_U", 8}, int16 = {"PCM_S", 16}, int32 = {"PCM_S", 32},
  float32 = {"PCM_F", 32}, float64 = {"PCM_F", 64}}
local valid_bits = {PCM_U = {[8] = true}, PCM_S = {[16] = true, [24] = true, [32] = true},
  PCM_F = {[32] = true, [64] = true}}

-- Returns the encoding and the bits of a file for samples of this dtype.
local function choose(dtype, encoding, bits)
  local default = default_of[dtype]
  args.check(default, "save: expected dtype float64, float32, int32, int16 or uint8 for argument "
    .. "'src', got \"%s\"", dtype)
  args.expect(not encoding or valid_bits[encoding], "save", "PCM_S, PCM_U or PCM_F", "encoding",
    encoding)
  if not encoding and not bits then return default[1], default[2] end
  encoding = encoding or (bits == 8 and "PCM_U" or bits == 64 and "PCM_F" or "PCM_S")
  bits = bits or encoding == "PCM_U" and 8 or encoding == "PCM_S" and 16 or 32
  args.check(valid_bits[encoding][bits], "save: expected bits_per_sample that %s has (PCM_U 8; "
    .. "PCM_S 16, 24, 32; PCM_F 32, 64), got %d", encoding, bits)
  return encoding, bits
end

local parse_save = args.signature("save", "string path, Tensor src, int(>=1) sample_rate, "
  .. "bool channels_first = true, string? encoding = nil, int? bits_per_sample = nil")

--- audio.save(path, src, sample_rate, {channels_first, encoding, bits_per_sample}): writes samples
-- {channels, frames}, or {frames, channels} without `channels_first`, as a WAV file. Floats from -1
-- to 1 are written as floats, integers as integers, unless `encoding` ("PCM_S", "PCM_U", "PCM_F")
-- or `bits_per_sample` (8 to 64) say otherwise; floats outside are clamped when they become
-- integers. The file is replaced atomically. Raises an error for samples that are no matrix, and
-- when the file cannot be written.
function audio.save(...)
  local path, src, rate, channels_first, encoding, bits = parse_save(...)
  args.path("save", "path", path)
  args.check(src.ndim == 2, "save: expected a tensor of 2 dimensions for argument 'src', got %s",
    args.show(src))
  encoding, bits = choose(src.dtype, encoding, bits)
  local samples = src:detach():to "cpu"
  if channels_first then samples = samples:t() end
  local channels = samples:size(2)
  args.check(channels >= 1 and channels <= 65535 // (bits // 8) and rate < 1 << 31,
    "save: expected 1 to %d channels and a sample rate below 2^31, got %d channels and %d",
    65535 // (bits // 8), channels, rate)
  local bytes = wav.encode(samples:contiguous(), encoding, bits)
  local header, tail = wav.header(rate, channels, encoding, bits, #bytes, function(why)
    args.fail('save: cannot write "%s": %s', path, why)
  end)
  local ok, why = atomic_file.write(path, function(put) put(header, bytes, tail) end)
  args.check(ok, "save: cannot write %s", why)
end

return strict_table.strict(audio, "lt.audio")
