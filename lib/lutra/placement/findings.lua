--- Findings of the lint: a list, and its text.

local plain = require "lutra.profiler.plain"
local rules = require "lutra.placement.rules"
local texts = require "lutra.plot.texts"

local Finding = {__name = "finding"}
Finding.__index = Finding

local Findings = {__name = "findings"}
Findings.__index = Findings

function Finding:__tostring()
  local cost = self.cost > 0
    and (" [%s%s]"):format(plain.seconds(self.cost), self.link and " on " .. self.link or "") or ""
  return ("%s: %s: %s%s\n    fix: %s"):format(self.where, self.rule, self.message, cost, self.fix)
end

-- "train.lua:12" -> "train.lua", 12
local function place(where)
  local file, line = where:match "^(.*):(%d+)$"
  return file or where, tonumber(line) or 0
end

local function comes_before(a, b)
  local file_a, line_a = place(a.where)
  local file_b, line_b = place(b.where)
  if file_a ~= file_b then return file_a < file_b end
  if line_a ~= line_b then return line_a < line_b end
  return a.rule < b.rule
end

--- What the rules find in a story, in the order of lines.
function Findings.of(story)
  local self = setmetatable({}, Findings)
  for _, rule in ipairs(rules) do
    rule.check(story, function(where, count, cost, message, fix)
      self[#self + 1] = setmetatable({rule = rule.name, where = where, count = count,
        cost = cost, message = message, fix = fix or rule.advice,
        link = story.link and story.link.name}, Finding)
    end)
  end
  table.sort(self, comes_before)
  if story.dropped > 0 then self.dropped = story.dropped end
  return self
end

function Findings:__tostring()
  local lines = {}
  for i, finding in ipairs(self) do lines[i] = tostring(finding) end
  lines[#lines + 1] = #self == 0 and "nothing to mend"
    or texts.plural(#self, "finding")
  if self.dropped then
    lines[#lines + 1] = ("the run was long: %s were not looked at"):format(
      texts.plural(self.dropped, "event"))
  end
  if self.error ~= nil then
    lines[#lines + 1] = "the code failed, so this is up to there: " .. tostring(self.error)
  end
  return table.concat(lines, "\n")
end

return Findings
