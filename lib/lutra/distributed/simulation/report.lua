--- The result of a simulation: a list of rows, and their table.

local args = require "lutra.internal.args"
local texts = require "lutra.internal.text"

local Report = {__name = "simulation"}
Report.__index = Report

local columns = {
  {key = "gpus", title = "GPUs", rank = 1, least = 5, right = true},
  {key = "algorithm", title = "algorithm", rank = 1, least = 4},
  {key = "bucket", title = "bucket", rank = 1, least = 6, right = true},
  {key = "buckets", title = "buckets", rank = 4, least = 3, right = true},
  {key = "communication", title = "communication", rank = 3, least = 6, right = true},
  {key = "step", title = "step", rank = 2, least = 6, right = true},
  {key = "efficiency", title = "efficiency", rank = 1, least = 6, right = true},
  {key = "without", title = "without overlap", rank = 1, least = 6, right = true},
}

local function percent(x) return ("%.1f %%"):format(100 * x) end

local function cells(row)
  return {
    gpus = texts.count(row.gpus), algorithm = row.algorithm,
    bucket = ("%g MiB"):format(row.bucket_cap_mb), buckets = texts.count(row.buckets),
    communication = texts.seconds(row.communication), step = texts.seconds(row.step),
    efficiency = percent(row.efficiency), without = percent(row.efficiency_without_overlap),
  }
end

--- Returns the report of a list of rows; `title` is the text above its table.
function Report.new(rows, title)
  rows.title = title
  return setmetatable(rows, Report)
end

--- report:table(width): the rows as text of at most `width` columns (100 by default).
function Report:table(width)
  args.expect(width == nil or math.type(width) == "integer", "simulation:table",
    "a number of columns", "width", width)
  local rows = {}
  for i, row in ipairs(self) do rows[i] = cells(row) end
  return self.title .. "\n\n" .. table.concat(texts.table(columns, rows, width or 100), "\n")
end

function Report:__tostring() return self:table() end
Report.__in_columns = Report.table

return Report
