--- Functions that update an average by a new value, for AveragedModel.

local lt = require "lutra"
local args = require "lutra.internal.args"

local averages = {}

local function read_decay(title, parse, ...)
  local decay = parse(...)
  args.check(decay >= 0 and decay <= 1,
    "%s: expected a number from 0 to 1 for argument 'decay', got %g", title, decay)
  return decay
end

local parse_ema = args.signature("get_ema_avg_fn", "float decay = 0.999")
local parse_multi_ema = args.signature("get_ema_multi_avg_fn", "float decay = 0.999")

--- Returns a function (average, current, n) that returns the exponential moving average decay *
-- average + (1 - decay) * current, for `avg_fn` of AveragedModel. Raises an error unless decay is
-- from 0 to 1.
function averages.get_ema_avg_fn(...)
  local decay = read_decay("get_ema_avg_fn", parse_ema, ...)
  return function(average, current)
    return lt.no_grad(function() return decay * average + (1 - decay) * current end)
  end
end

--- Returns a function (average, current, n) that returns the mean of n + 1 values, where `average`
-- is that of n, for `avg_fn` of AveragedModel.
function averages.get_swa_avg_fn()
  return function(average, current, n)
    return lt.no_grad(function() return average + (current - average) / (n + 1) end)
  end
end

-- Returns a function of lists that moves each tensor of the first in place towards that of the
-- second, by the part weight(n); `other` computes the new value of an integer tensor.
local function in_place(weight, other)
  return function(averaged, current, n)
    lt.no_grad(function()
      local part = weight(lt.is_tensor(n) and n:item() or n)
      for i, average in ipairs(averaged) do
        if average:is_floating_point() or average:is_complex() then
          average:lerp_(current[i], part)
        else
          average:copy_(other(average, current[i], part))
        end
      end
    end)
  end
end

--- Returns a function (averages, currents, n) of lists of tensors that updates exponential moving
-- averages in place, for `multi_avg_fn` of AveragedModel. Raises an error unless decay is from 0 to
-- 1.
function averages.get_ema_multi_avg_fn(...)
  local decay = read_decay("get_ema_multi_avg_fn", parse_multi_ema, ...)
  return in_place(function() return 1 - decay end, function(average, current, part)
    return average * (1 - part) + current * part
  end)
end

--- Returns a function (averages, currents, n) of lists of tensors that updates means of n values in
-- place to means of n + 1 values, for `multi_avg_fn` of AveragedModel.
function averages.get_swa_multi_avg_fn()
  return in_place(function(n) return 1 / (n + 1) end, function(average, current, part)
    return average + (current - average) * part
  end)
end

return averages
