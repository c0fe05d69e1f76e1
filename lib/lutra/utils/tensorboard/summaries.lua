--- The messages of TensorBoard's summaries (tensorboard/compat/proto/summary.proto): scalars,
-- images, histograms, text, audio, hyperparameters. Each function returns a serialized
-- Summary.Value.

local lt = require "lutra"
local args = require "lutra.internal.args"
local png = require "lutra.internal.png"
local protobuf = require "lutra.internal.protobuf"

local summaries = {}

local bytes, int, float, double = protobuf.bytes, protobuf.int, protobuf.float, protobuf.double

--- Returns a number as a scalar.
function summaries.scalar(tag, x) return bytes(1, tag) .. float(2, x) end

-- Returns the metadata of a plugin.
local function plugin(name, content)
  return bytes(9, bytes(1, bytes(1, name) .. bytes(2, content)))
end

--- Returns a number as a tensor of float32 or float64: the new style of scalars.
function summaries.tensor_scalar(tag, x, is_double)
  local value = is_double and bytes(6, ("<d"):pack(x)) or bytes(5, ("<f"):pack(x))
  return bytes(1, tag) .. bytes(8, int(1, is_double and 2 or 1) .. bytes(2, "") .. value)
    .. bytes(9, bytes(1, bytes(1, "scalars")) .. int(4, 1))
end

--- Returns a string, which TensorBoard shows as Markdown.
function summaries.text(tag, text)
  local shape = bytes(2, bytes(2, int(1, 1)))
  return bytes(1, tag .. "/text_summary") .. bytes(8, int(1, 7) .. shape .. bytes(8, text))
    .. plugin("text", "")
end

-- ---- images

-- Returns a grid {C, H, W} of images {N, C, H, W}, at most 8 in a row.
local function grid(images)
  local n, c, h, w = table.unpack(images.shape)
  local columns = math.min(n, 8)
  local rows = (n + columns - 1) // columns
  if rows * columns > n then
    images = lt.cat({images, lt.zeros({rows * columns - n, c, h, w}, {dtype = images.dtype})}, 1)
  end
  return images:reshape{rows, columns, c, h, w}:permute(3, 1, 4, 2, 5)
    :reshape{c, rows * h, columns * w}
end

--- Returns an image of a tensor of floats from 0 to 1 or of uint8; `format` names its dimensions:
-- letters of N, C, H and W.
function summaries.image(title, tag, x, format)
  format = format:upper()
  args.check(#format == x.ndim, "%s: expected a tensor of %d dimensions for dataformats = \"%s\","
    .. " got shape %s", title, #format, format, x.shape)
  args.check(x:numel() > 0, "%s: expected a tensor with elements, got shape %s", title,
    x.shape)
  x = x:detach():to "cpu"
  local is_bytes = x.dtype == "uint8"
  local order, target = {}, format:find "N" and "NCHW" or format:find "C" and "CHW" or "HW"
  for letter in target:gmatch "." do
    order[#order + 1] = format:find(letter, 1, true)
      or args.fail("%s: expected the letters of NCHW, CHW or HW for argument 'dataformats', got %q",
        title, format)
  end
  args.check(#order == x.ndim, "%s: expected the letters of NCHW, CHW or HW for argument "
    .. "'dataformats', got %q", title, format)
  x = x:permute(order)
  if target == "NCHW" then x = grid(x) end
  if target == "HW" then x = x:unsqueeze(1) end
  if x:size(1) == 1 then x = x:expand(3, -1, -1) end
  args.check(x:size(1) == 3 or x:size(1) == 4, "%s: expected 1, 3 or 4 channels, got %d", title,
    x:size(1))
  if not is_bytes then x = (x:to "float32" * 255):clamp(0, 255):to "uint8" end
  x = x:permute(2, 3, 1):contiguous()
  return bytes(1, tag) .. bytes(4, int(1, x:size(1)) .. int(2, x:size(2)) .. int(3, x:size(3))
    .. bytes(4, png.encode(x)))
end

-- ---- histograms

-- TensorBoard's default limits: powers of 1.1 from 1e-12 to 1e20, their negatives, and 0.
local function default_limits()
  local positive, v = {}, 1e-12
  while v < 1e20 do
    positive[#positive + 1] = v
    v = v * 1.1
  end
  local limits = {}
  for i = #positive, 1, -1 do limits[#limits + 1] = -positive[i] end
  limits[#limits + 1] = 0.0
  return table.move(positive, 1, #positive, #limits + 1, limits)
end

local function limits_of(title, values, bins)
  if bins == "tensorflow" then return default_limits() end
  if math.type(bins) == "integer" then
    args.check(bins >= 1, "%s: expected a positive number for argument 'bins', got %d", title, bins)
    local low, high = values:min():item(), values:max():item()
    if low == high then low, high = low - 0.5, high + 0.5 end
    local limits = {}
    for i = 0, bins do limits[i + 1] = low + (high - low) * i / bins end
    limits[bins + 1] = high
    return limits
  end
  args.expect(type(bins) == "table" and #bins >= 2, title,
    "\"tensorflow\", a number of bins or a list of limits", "bins", bins)
  return bins
end

--- Returns a histogram of all elements of a tensor.
function summaries.histogram(title, tag, x, bins)
  local values = x:detach():to("cpu"):reshape{-1}:to "float64"
  args.check(values:numel() > 0, "%s: expected values, got none", title)
  args.check(values:isfinite():all():item(), "%s: expected finite values, got NaN or inf", title)
  local limits = limits_of(title, values, bins)
  local edges = lt.tensor(limits, {dtype = "float64"})
  -- bin k has limits[k] <= v < limits[k + 1]; the last one also its upper limit
  local bin = lt.searchsorted(edges, values, {right = true}) - 1
  bin = lt.where(values:eq(limits[#limits]), #limits - 1, bin)
  local inside = bin[bin:ge(1):logical_and(bin:lt(#limits))]
  local counts = lt.bincount(inside, {minlength = #limits - 1}):totable()
  -- The bins from the first to the last with a value, and an empty one before them.
  local first, last = 1, #counts
  while first <= #counts and counts[first] == 0 do first = first + 1 end
  while last >= 1 and counts[last] == 0 do last = last - 1 end
  args.check(first <= last, "%s: expected values inside of the limits of 'bins', got none", title)
  local bucket, limit = {0.0}, {limits[first]}
  for k = first, last do
    bucket[#bucket + 1], limit[#limit + 1] = counts[k] + 0.0, limits[k + 1]
  end
  return bytes(1, tag) .. bytes(5, double(1, values:min():item()) .. double(2, values:max():item())
    .. double(3, values:numel()) .. double(4, values:sum():item())
    .. double(5, (values * values):sum():item()) .. protobuf.doubles(6, limit)
    .. protobuf.doubles(7, bucket))
end

-- ---- audio

--- Returns samples from -1 to 1, a vector or {1, frames}, as a WAV file of 16 bits.
function summaries.audio(title, tag, x, rate)
  local wav = require "lutra.audio.wav"
  x = x:detach():to("cpu"):squeeze()
  args.check(x.ndim == 1, "%s: expected a vector or {1, frames} for argument 'snd_tensor', got %s",
    title, args.show(x))
  local samples = wav.encode(x:to("float32"):reshape{-1, 1}, "PCM_S", 16)
  local header, tail = wav.header(rate, 1, "PCM_S", 16, #samples, function(why)
    args.fail("%s: cannot write the samples: %s", title, why)
  end)
  return bytes(1, tag) .. bytes(6, float(1, rate) .. int(2, 1) .. int(3, x:numel())
    .. bytes(4, header .. samples .. tail) .. bytes(5, "audio/wav"))
end

-- ---- hyperparameters

-- Returns a google.protobuf.Value.
local function value(x)
  if type(x) == "string" then return bytes(3, x) end
  if type(x) == "boolean" then return int(4, x and 1 or 0) end
  return double(2, x)
end

local types = {string = 1, boolean = 2, number = 3}

local function hparams(tag, field, content)
  return bytes(1, tag) .. plugin("hparams", bytes(field, content))
end

--- Returns the three values that describe a run: its experiment, its start and its end. `names` are
-- sorted names of hyperparameters and metrics.
function summaries.hparams(names, parameters, metric_names)
  local experiment, start = {}, {}
  for i, name in ipairs(names) do
    local x = parameters[name]
    experiment[#experiment + 1] = bytes(4, bytes(1, name) .. int(4, types[type(x)]))
    start[i] = bytes(1, bytes(1, name) .. bytes(2, value(x)))
  end
  for _, name in ipairs(metric_names) do
    experiment[#experiment + 1] = bytes(5, bytes(1, bytes(2, name)))
  end
  return {hparams("_hparams_/experiment", 2, table.concat(experiment)),
    hparams("_hparams_/session_start_info", 3, table.concat(start)),
    hparams("_hparams_/session_end_info", 4, int(1, 1))}
end

return summaries
