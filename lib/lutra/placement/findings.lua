--- The findings of the lint: a list, and its formatting.

local args = require "lutra.internal.args"
local rules = require "lutra.placement.rules"
local texts = require "lutra.internal.text"

local Finding = {__name = "finding"}
Finding.__index = Finding

local Findings = {__name = "findings"}
Findings.__index = Findings

local function check_width(width)
  args.check(width == nil or type(width) == "number",
    "findings:table: expected a number of columns for argument 'width', got %s", args.show(width))
end

-- Wraps each line of a string to at most `width` columns; returns it unchanged without `width`.
local function wrapped(text, width, indent)
  if not width then return text end
  return (text:gsub("[^\n]+", function(line) return texts.wrap(line, width, indent) end))
end

--- Returns the finding as text: two lines, or more when `width` is given.
function Finding:table(width)
  check_width(width)
  local cost = self.cost > 0
    and (" [%s%s]"):format(texts.seconds(self.cost), self.link and " on " .. self.link or "") or ""
  return wrapped(("%s: %s: %s%s"):format(self.where, self.rule, self.message, cost), width, 2)
    .. "\n    fix: " .. wrapped(self.fix, width, 9)
end

function Finding:__tostring() return self:table() end
Finding.__in_columns = Finding.table

-- Splits "train.lua:12" into "train.lua" and 12.
local function split_line(where)
  local file, line = where:match "^(.*):(%d+)$"
  return file or where, tonumber(line) or 0
end

local function comes_before(a, b)
  local file_a, line_a = split_line(a.where)
  local file_b, line_b = split_line(b.where)
  if file_a ~= file_b then return file_a < file_b end
  if line_a ~= line_b then return line_a < line_b end
  return a.rule < b.rule
end

--- Returns the findings of all rules in the record of a run (lint_session.lua), sorted by line.
function Findings.of(record)
  local self = setmetatable({}, Findings)
  for _, rule in ipairs(rules) do
    rule.check(record, function(where, count, cost, message, fix)
      self[#self + 1] = setmetatable({rule = rule.name, where = where, count = count,
        cost = cost, message = message, fix = fix or rule.advice,
        link = record.link and record.link.name}, Finding)
    end)
  end
  table.sort(self, comes_before)
  if record.dropped > 0 then self.dropped = record.dropped end
  return self
end

--- Returns all findings as text of at most `width` columns. Without `width`, each finding is two
-- lines, which other programs can parse.
function Findings:table(width)
  check_width(width)
  local lines = {}
  for i, finding in ipairs(self) do lines[i] = finding:table(width) end
  lines[#lines + 1] = #self == 0 and "no findings"
    or texts.plural(#self, "finding")
  if self.dropped then
    lines[#lines + 1] = wrapped(("the run was long: %s were not checked"):format(
      texts.plural(self.dropped, "event")), width, 2)
  end
  if self.error ~= nil then
    lines[#lines + 1] = wrapped("the code failed; findings up to the error: "
      .. tostring(self.error), width, 2)
  end
  return table.concat(lines, "\n")
end

function Findings:__tostring() return self:table() end
Findings.__in_columns = Findings.table

return Findings
