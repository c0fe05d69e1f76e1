--- lt.utils.benchmark.Compare: shows measurements in tables.

local args = require "lutra.internal.args"
local Measurement = require "lutra.utils.benchmark.measurement"
local render = require "lutra.utils.benchmark.table"

local Compare = require "lutra.internal.class"("Compare", "lt.utils.benchmark.Compare")

local parse = args.signature("Compare", "list results")

--- benchmark.Compare(results): shows a list of measurements, by print or tostring: one table for
-- each label, with a row for each num_threads, env and sub_label (or stmt) and a column for each
-- description. Times are medians; measurements of the same task are merged. Raises an error
-- for values that are no Measurement.
function Compare:init(...)
  local list = Measurement._check_list("Compare", "results", (parse(...)))
  self._results, self._options = table.move(list, 1, #list, 1, {}), {}
end

local parse_extend = args.signature("extend_results", "list results")

--- c:extend_results(results): adds a list of measurements. Raises an error for other values, and
-- adds none of them then.
function Compare:extend_results(...)
  local list = Measurement._check_list("extend_results", "results", (parse_extend(...)))
  table.move(list, 1, #list, #self._results + 1, self._results)
end

--- c:trim_significant_figures(): writes only the figures of times that are significant.
function Compare:trim_significant_figures() self._options.trim = true end

local parse_colorize = args.signature("colorize", "bool rowwise = false")

--- c:colorize(rowwise = false): colors times by how they compare with the best time of their
-- column, or of their row.
function Compare:colorize(...)
  self._options.color = parse_colorize(...) and "rows" or "columns"
end

--- c:highlight_warnings(): marks times of measurements that vary, with iqr / median in percent.
function Compare:highlight_warnings() self._options.highlight = true end

--- c:print(): prints the tables.
function Compare:print() print(tostring(self)) end

function Compare:__tostring()
  local groups, by_label = {}, {}
  for _, m in ipairs(Measurement.merge(self._results)) do
    local key = m.label or false
    if not by_label[key] then
      by_label[key] = {}
      groups[#groups + 1] = by_label[key]
    end
    table.insert(by_label[key], m)
  end
  for i, group in ipairs(groups) do groups[i] = render(group, self._options) end
  return table.concat(groups, "\n")
end

return Compare
