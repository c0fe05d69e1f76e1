--- x:summary(): one line about a tensor: dtype, shape, and the distribution of its values.
--
--     f32[3,196,196] n=115248 (0.4 MiB) x∈[-2.1|▂▅█▇▂|2.6] μ=-0.39 σ=1.07 nan:0 inf:0 cuda:0
--
-- Range, histogram, mean and standard deviation are those of the finite values. They are computed
-- on the tensor's device, and only these results are copied. Nothing is recorded for gradients.

local core = require "lutra.core"
local numbers = require "lutra.internal.numbers"
local texts = require "lutra.internal.text"

local BINS = 5

local words = {
  utf8 = {range = "x∈", mean = "μ", deviation = "σ",
    levels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}},
  ascii = {range = "x in ", mean = "mean", deviation = "std",
    levels = {".", ":", "-", "=", "+", "*", "#", "@"}},
}

-- Formats an end of the range with about two digits.
local function edge_text(v)
  if math.type(v) == "integer" or v ~= v then return numbers.text(v) end
  local a = math.abs(v)
  if a == 0 then return "0" end
  if a >= 0.1 and a < 100 then return ("%.1f"):format(v) end
  if a >= 100 and a < 1e6 then return ("%.0f"):format(v) end
  return ("%.2g"):format(v)
end

local function moment_text(v)
  local a = math.abs(v)
  if v ~= v then return numbers.text(v) end
  if a == 0 then return "0" end
  if a >= 0.1 and a < 1000 then return ("%.2f"):format(v) end
  if a >= 1000 and a < 1e6 then return ("%.0f"):format(v) end
  return ("%.3g"):format(v)
end

local function histogram_text(t, lo, hi, levels)
  local counts, most = require("lutra.internal.plot.data").counts(t, lo, hi, BINS), 0
  for _, count in ipairs(counts) do most = math.max(most, count) end
  local parts = {}
  for i, count in ipairs(counts) do
    parts[i] = count == 0 and " " or levels[math.ceil(count / most * #levels)]
  end
  return table.concat(parts)
end

-- Returns range, histogram and moments of the finite values; nil without any.
local function values_text(found)
  local word = texts.is_utf8() and words.utf8 or words.ascii
  local lo, hi = found.min, found.max
  if not lo then return nil end
  if lo == hi then return "x=" .. edge_text(lo) end
  local float = require("lutra.internal.plot.data").float(found.values)
  return ("%s[%s|%s|%s] %s=%s %s=%s"):format(word.range, edge_text(lo),
    histogram_text(float, lo, hi, word.levels), edge_text(hi), word.mean,
    moment_text(found.mean), word.deviation, moment_text(found.std))
end

local function scalar_text(t)
  local v = t:item()
  return numbers.text(v, math.type(v) == "float" and "%.5g" or nil)
end

-- Returns the description of the values; nil without values.
local function about(t)
  if t.device == "meta" or t:numel() == 0 then return nil end
  if t.ndim == 0 then return scalar_text(t) end
  local found = require("lutra.internal.statistics").of(t)
  if found.yes then return ("true:%d false:%d"):format(found.yes, found.no) end
  local parts = {found.absolute and "abs:" or nil}
  parts[#parts + 1] = values_text(found)
  if found.nan then parts[#parts + 1] = ("nan:%d inf:%d"):format(found.nan, found.inf) end
  return table.concat(parts, " ")
end

local function gradient_text(x)
  if x.grad_fn then return "grad_fn=<" .. x.grad_fn .. ">" end
  return x.requires_grad and "requires_grad" or nil
end

--- Returns the line for tensor x.
return function(x)
  if not core.is_tensor(x) then
    local args = require "lutra.internal.args"
    args.fail("summary: expected a tensor for argument 'self', got %s", args.show(x))
  end
  local parts = {("%s[%s]"):format(texts.short_dtypes[x.dtype], table.concat(x.shape, ","))}
  if x.ndim > 0 then
    parts[2] = ("n=%d (%s)"):format(x:numel(), texts.bytes(x.nbytes, 0.1))
  end
  parts[#parts + 1] = about(x:detach())
  parts[#parts + 1] = x.device
  parts[#parts + 1] = gradient_text(x)
  return table.concat(parts, " ")
end
