--- lt.utils.benchmark.Measurement: the times of a piece of code and their statistics.

local args = require "lutra.internal.args"
local task = require "lutra.utils.benchmark.task"
local units = require "lutra.utils.benchmark.units"

local Measurement = require "lutra.internal.class"("Measurement",
  "lt.utils.benchmark.Measurement")

local MAX_SIGNIFICANT_FIGURES = 4
local MIN_CONFIDENCE_INTERVAL = 25e-9 -- seconds
local IQR_WARNING = 0.1 -- limits of iqr / median
local IQR_GROSS_WARNING = 0.25

local parse = args.signature("Measurement",
  "int(>=1) number_per_run, list raw_times, table? task_spec = nil, any? metadata = nil")

-- Returns the quantile q of a sorted list, interpolated between its neighbours.
local function quantile(sorted, q)
  local place = q * (#sorted - 1)
  local low = math.floor(place)
  local a, b = sorted[low + 1], sorted[math.min(low + 2, #sorted)]
  return a + (place - low) * (b - a)
end

local function mean(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x end
  return sum / #list
end

-- Returns the estimated number of significant figures of the median, from the confidence interval
-- of the middle half of the times.
local function significant_figures(sorted, median)
  local middle = table.move(sorted, #sorted // 4 + 1, math.ceil(3 * #sorted / 4), 1, {})
  local center, squares = mean(middle), 0
  for _, x in ipairs(middle) do squares = squares + (x - center) ^ 2 end
  local deviation = math.sqrt(squares / #middle)
  local interval = math.max(1.645 * deviation / math.sqrt(#middle), MIN_CONFIDENCE_INTERVAL)
  local figures = math.floor(math.log(median / interval, 10))
  return math.min(math.max(figures, 1), MAX_SIGNIFICANT_FIGURES)
end

-- Returns the warning about times that vary, or nil.
local function warning_of(self)
  if self:meets_confidence(IQR_WARNING) then return nil end
  local cause = self:meets_confidence(IQR_GROSS_WARNING)
    and "This could indicate system fluctuation."
    or "This suggests significant environmental influence."
  return ("  WARNING: Interquartile range is %.1f%% of the median measurement.\n           %s")
    :format(self.iqr / self.median * 100, cause)
end

--- benchmark.Measurement(number_per_run, raw_times, {task_spec, metadata}): the statistics of
-- `raw_times`, the seconds of blocks of `number_per_run` calls each; Timer returns one. `task_spec`
-- is a table {stmt, setup, label, sub_label, description, env, num_threads}; its fields are also
-- fields of the measurement. Others: times (seconds per call), mean, median, iqr (the interquartile
-- range), significant_figures (an estimate), has_warnings (the times vary by more than 10%), title,
-- as_row_name. Raises an error unless all times are positive numbers.
function Measurement:init(...)
  local number, raw_times, task_spec, metadata = parse(...)
  args.expect(#raw_times > 0, "Measurement", "at least one time", "raw_times", raw_times)
  self.number_per_run, self.raw_times, self.metadata = number, raw_times, metadata
  self.task_spec = task.new(task_spec or {})
  for name, value in pairs(self.task_spec) do self[name] = value end
  self.times = {}
  for i, t in ipairs(raw_times) do
    args.expect(type(t) == "number" and t > 0 and t < math.huge, "Measurement",
      "a positive number of seconds", ("raw_times[%d]"):format(i), t)
    self.times[i] = t / number
  end
  local sorted = table.move(self.times, 1, #self.times, 1, {})
  table.sort(sorted)
  self.median, self.mean = quantile(sorted, 0.5), mean(sorted)
  self._low, self._high = quantile(sorted, 0.25), quantile(sorted, 0.75)
  self.iqr = self._high - self._low
  self.significant_figures = significant_figures(sorted, self.median)
  self._warning = warning_of(self)
  self.has_warnings = self._warning ~= nil
  self.title = task.title(self.task_spec)
  self.as_row_name = self.sub_label ~= "" and self.sub_label or self.stmt ~= "" and self.stmt
    or "[Unknown]"
end

local parse_meets_confidence = args.signature("meets_confidence",
  "float threshold = " .. IQR_WARNING)

--- m:meets_confidence(threshold = 0.1): returns whether the interquartile range is smaller than
-- this part of the median.
function Measurement:meets_confidence(...)
  return self.iqr / self.median < parse_meets_confidence(...)
end

-- Returns a list of measurements; raises an error of the function `title` about its argument `name`
-- for other values.
function Measurement._check_list(title, name, list)
  for i, m in ipairs(list) do
    local class = getmetatable(m)
    local is_one = type(m) == "table" and type(class) == "table"
      and class._check_list == Measurement._check_list
    args.expect(is_one, title, "a Measurement", ("%s[%d]"):format(name, i), m)
  end
  return list
end

local parse_merge = args.signature("merge", "list measurements")

--- benchmark.Measurement.merge(measurements): returns a list with one measurement for each task,
-- from the times of all measurements of the list with the same task_spec, per call; their metadata
-- is not copied. Raises an error for other values.
function Measurement.merge(...)
  local list = Measurement._check_list("merge", "measurements", (parse_merge(...)))
  local groups, by_key = {}, {}
  for _, m in ipairs(list) do
    local key = task.key(m.task_spec)
    local group = by_key[key]
    if not group then
      group = {task_spec = m.task_spec, times = {}}
      by_key[key], groups[#groups + 1] = group, group
    end
    table.move(m.times, 1, #m.times, #group.times + 1, group.times)
  end
  for i, group in ipairs(groups) do
    groups[i] = Measurement{number_per_run = 1, raw_times = group.times,
      task_spec = group.task_spec}
  end
  return groups
end

function Measurement:__tostring()
  local n, unit = #self.times, units.of(self.median)
  local function scaled(t) return ("%.2f"):format(t / unit.scale) end
  local lines = {"<lt.utils.benchmark.Measurement>", task.summary(self.task_spec)}
  lines[3] = ("  %s%s %s"):format(n > 1 and "Median: " or "", scaled(self.median), unit.name)
  if n >= 4 then
    lines[#lines + 1] = ("  IQR:    %s %s (%s to %s)"):format(scaled(self.iqr), unit.name,
      scaled(self._low), scaled(self._high))
  end
  lines[#lines + 1] = ("  %d measurement%s, %d runs%s, %d thread%s"):format(n, n > 1 and "s" or "",
    self.number_per_run, n > 1 and " per measurement" or "", self.num_threads,
    self.num_threads > 1 and "s" or "")
  lines[#lines + 1] = self._warning
  return table.concat(lines, "\n")
end

return Measurement
