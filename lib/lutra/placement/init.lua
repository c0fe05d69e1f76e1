--- lt.placement: traces, guards and lint rules for copies of tensors between devices.
--
--     local trace = lt.placement.trace(step, x, y)
--     print(trace)                                   -- each copy and each wait, with its line
--     lt.placement.guard("disallow", step, x, y)     -- an implicit copy is an error
--     print(lt.placement.lint(train))                -- inefficient copies, and how to fix them
--
-- The core reports copies, synchronizations, ops and allocations (src/tensor/trace.h). A trace
-- stores them, a guard forbids copies, the lint searches for the patterns of rules.lua. With a link
-- (--emulate cuda:2,link=pcie4) times are those of the virtual clock (clock.lua), the same on every
-- run.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local placement = {}

local check = args.check

local function check_callable(name, fn)
  check(args.is_callable(fn), "%s: expected a function for argument 'fn', got %s\n"
    .. "hint: function() ... end", name, args.show(fn))
end

-- The limits of events: a trace stores a table of about a kilobyte for each; the lint processes
-- them one at a time.
local trace_limit, lint_limit = 300000, 1000000

--- Calls fn(...) and records its copies, synchronizations, ops and allocations. Returns the trace,
-- then what fn returned; an error in fn is passed on.
function placement.trace(fn, ...)
  check_callable("placement.trace", fn)
  local reader <close> = require("lutra.placement.event_reader").new(trace_limit)
  local results = table.pack(fn(...))
  return require("lutra.placement.trace").new(reader), table.unpack(results, 1, results.n)
end

local levels = "allow, log, disallow, log_explicit, disallow_explicit"
local directions = {host_to_device = true, device_to_host = true, device_to_device = true,
  between_ranks = true}

--- lt.placement.guard(level[, direction], fn, ...): calls fn(...) while copies between devices are
-- checked; returns what it returns. The levels are those of JAX's transfer guard: "disallow"
-- raises an error for an implicit copy (by printing, by indexing...), "log" prints it on stderr;
-- with the suffix "_explicit" the same applies to explicit copies (x:to and its gradient, x:item,
-- the copies of nn.parallel...); "allow" permits copies inside another guard. Directions:
-- "host_to_device", "device_to_host", "device_to_device", and "between_ranks" for collectives and
-- messages of lt.distributed, which are explicit; by default all.
function placement.guard(level, ...)
  args.expect(type(level) == "string", "placement.guard", "one of " .. levels, "level", level)
  local direction, fn = nil, (...)
  local from = 1
  if not args.is_callable(fn) and (type(fn) == "string" or fn == nil) then
    direction, fn, from = fn, select(2, ...), 2
    check(direction == nil or directions[direction],
      "placement.guard: expected one of host_to_device, device_to_host, device_to_device, "
      .. "between_ranks for argument 'direction', got \"%s\"", tostring(direction))
  end
  check_callable("placement.guard", fn)
  local guard <close> = core._trace.guard(level, direction)
  check(guard, "placement.guard: expected one of %s for argument 'level', got \"%s\"", levels,
    level)
  local results = table.pack(fn(select(from + 1, ...)))
  return table.unpack(results, 1, results.n)
end

--- Calls fn(...) and checks its copies by the rules T1 to T9, its collectives by D1 to D4. Returns
-- the list of findings {rule, where, count, cost (seconds), message, fix}, sorted by line. tostring
-- of the list or of a finding is readable text, :table(width) wraps it to a number of columns. An
-- error in fn is not raised but stored in the field `error` of the list.
function placement.lint(fn, ...)
  check_callable("placement.lint", fn)
  local session <close> = require("lutra.placement.lint_session").new(lint_limit)
  local results = table.pack(xpcall(fn, function(e) return e end, ...))
  local findings = session:findings()
  if not results[1] then findings.error = results[2] end
  return findings
end

--- Merges the traces of the ranks of a job, which `lutra --trace out.json` writes to
-- out.rank0.json, out.rank1.json..., into one file at `path`, "out.json", for ui.perfetto.dev. Each
-- rank is a process; an arrow points from the rank that arrived last at a collective to each rank
-- that was blocked on it, and from a send to its recv. The times of the ranks are aligned at the
-- end of their first common barrier, or of another collective that blocks all. parts: the list of
-- the files, in the order of the ranks; by default those named after `path`. Returns a list of
-- {rank, waiting (seconds for which it was blocked on other ranks), last (the number of collectives
-- at which it arrived last), caused (seconds for which others were blocked on it)}, with the field
-- aligned; tostring of it is a table.
function placement.merge_traces(path, parts)
  return require("lutra.placement.merge").traces(path, parts)
end

--- Returns the list of rules {name, title, advice}.
function placement.rules()
  local list = {}
  for i, rule in ipairs(require "lutra.placement.rules") do
    list[i] = {name = rule.name, title = rule.title, advice = rule.advice}
  end
  return list
end

return require("lutra.internal.strict_table").strict(placement, "lt.placement")
