--- Breakpoints by path and line, with conditions, hit counts and log messages.

local host = require "lutra.repl.host"
local json = require "lutra.internal.json"

local breakpoints = {}
breakpoints.__index = breakpoints

--- Returns an empty set of breakpoints.
function breakpoints.new() return setmetatable({by_path = {}, last_id = 0}, breakpoints) end

--- Passes the lines to the hook.
function breakpoints:update_hook()
  local lines = {}
  for _, list in pairs(self.by_path) do
    for line in pairs(list) do lines[#lines + 1] = line end
  end
  host.debug_lines(lines)
end

local function text_of(value)
  return type(value) == "string" and value:match "%S" and value or nil
end

--- Replaces the breakpoints of a path by those of a DAP request. Returns the list of their states.
function breakpoints:set(sources, path, requested)
  local list, states = {}, json.array {}
  for i, wanted in ipairs(requested) do
    self.last_id = self.last_id + 1
    local line, reason = sources:line_with_code(path, wanted.line)
    local state = {id = self.last_id, verified = line ~= nil, line = line or wanted.line,
      message = reason, source = {path = path}}
    if line then
      list[line] = {id = state.id, hits = 0, condition = text_of(wanted.condition),
        hit_condition = text_of(wanted.hitCondition), message = text_of(wanted.logMessage)}
    end
    states[i] = state
  end
  self.by_path[path] = next(list) and list or nil
  self:update_hook()
  return states
end

--- Removes all breakpoints.
function breakpoints:clear()
  self.by_path = {}
  self:update_hook()
end

--- Returns the breakpoint at a line, or nil.
function breakpoints:at(path, line)
  local list = self.by_path[path]
  return list and list[line]
end

--- Returns all of them for the reply to debugInfo.
function breakpoints:list()
  local all = json.array {}
  for path, list in pairs(self.by_path) do
    local lines = json.array {}
    for line, breakpoint in pairs(list) do
      lines[#lines + 1] = {line = line, condition = breakpoint.condition,
        hitCondition = breakpoint.hit_condition, logMessage = breakpoint.message}
    end
    table.sort(lines, function(a, b) return a.line < b.line end)
    all[#all + 1] = {source = path, breakpoints = lines}
  end
  table.sort(all, function(a, b) return a.source < b.source end)
  return all
end

local compare = {
  ["=="] = function(a, b) return a == b end,
  ["="] = function(a, b) return a == b end,
  [">"] = function(a, b) return a > b end,
  [">="] = function(a, b) return a >= b end,
  ["<"] = function(a, b) return a < b end,
  ["<="] = function(a, b) return a <= b end,
  ["%"] = function(a, b) return b ~= 0 and a % b == 0 end,
}

--- Counts a hit. Returns whether the hit count is one to stop at: "5" and ">= 5" mean from the
-- fifth hit on, "== 5" the fifth, "% 5" every fifth.
function breakpoints.count(breakpoint)
  breakpoint.hits = breakpoint.hits + 1
  local condition = breakpoint.hit_condition
  if not condition then return true end
  local operator, number = condition:match "^%s*([=<>%%]*)%s*(%d+)%s*$"
  local test = compare[operator == "" and ">=" or operator]
  return not test or test(breakpoint.hits, tonumber(number))
end

return breakpoints
