--- lt.placement: where tensors live, what is copied between devices, and what that costs.
--
--     local trace = lt.placement.trace(step, x, y)
--     print(trace)                                   -- each copy and each wait, with its line
--     lt.placement.guard("disallow", step, x, y)     -- an unasked-for copy is an error
--     print(lt.placement.lint(train))                -- what could be better, and how
--
-- Idea: the core tells of copies, waits, ops and memory (src/tensor/trace.h). A trace keeps them, a
-- guard refuses, a lint looks for the patterns of rules.lua. With a link (--emulate
-- cuda:2,link=pcie4) times are those of clock.lua, the same on every run.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local placement = {}

local check = args.check

local function check_callable(name, fn)
  check(args.is_callable(fn), '%s: argument "fn" is %s, it wants a function: function() ... end',
    name, args.show(fn))
end

-- Events of a trace, each a table of about a kilobyte, and of a lint, which looks at them in turn.
local trace_limit, lint_limit = 300000, 1000000

--- Calls fn(...) and listens. Returns the trace, then what fn returned; an error of fn's goes on.
function placement.trace(fn, ...)
  check_callable("placement.trace", fn)
  local listener <close> = require("lutra.placement.event_reader").new(trace_limit)
  local results = table.pack(fn(...))
  return require("lutra.placement.trace").new(listener), table.unpack(results, 1, results.n)
end

local levels = "allow, log, disallow, log_explicit, disallow_explicit"
local directions = {host_to_device = true, device_to_host = true, device_to_device = true}

--- Calls fn(...) while copies between devices are looked at: placement.guard(level[, direction],
-- fn, ...). Returns what it returns. The levels are JAX's: "disallow" makes a copy that nobody
-- asked for an error (by printing, by indexing...), "log" says it on stderr; the same with
-- "_explicit" is for those that are asked for too: x:to and its gradient, x:item, what nn.parallel
-- sends...; "allow" inside another guard lifts it. Directions: "host_to_device",
-- "device_to_host", "device_to_device"; all when left out.
function placement.guard(level, ...)
  check(type(level) == "string", 'placement.guard: argument "level" is %s, it wants one of %s',
    args.show(level), levels)
  local direction, fn = nil, (...)
  local from = 1
  if not args.is_callable(fn) and (type(fn) == "string" or fn == nil) then
    direction, fn, from = fn, select(2, ...), 2
    check(direction == nil or directions[direction],
      'placement.guard: no direction is called "%s". There are: host_to_device, device_to_host, '
      .. "device_to_device", tostring(direction))
  end
  check_callable("placement.guard", fn)
  local guard <close> = core._trace.guard(level, direction)
  check(guard, 'placement.guard: no level is called "%s". There are: %s', level, levels)
  local results = table.pack(fn(select(from + 1, ...)))
  return table.unpack(results, 1, results.n)
end

--- Calls fn(...) and looks for what the rules T1 to T9 are about. Returns the list of findings
-- {rule, where, count, cost (seconds), message, fix}, in the order of lines; tostring of it, and of
-- a finding, is text to read, and :table(width) the same in lines of so many columns. Where fn
-- fails, the list has the field `error`.
function placement.lint(fn, ...)
  check_callable("placement.lint", fn)
  local watch <close> = require("lutra.placement.lint_session").new(lint_limit)
  local results = table.pack(xpcall(fn, function(e) return e end, ...))
  local findings = watch:findings()
  if not results[1] then findings.error = results[2] end
  return findings
end

--- The rules: a list of {name, title, advice}.
function placement.rules()
  local list = {}
  for i, rule in ipairs(require "lutra.placement.rules") do
    list[i] = {name = rule.name, title = rule.title, advice = rule.advice}
  end
  return list
end

return require("lutra.internal.strict_table").strict(placement, "lt.placement")
