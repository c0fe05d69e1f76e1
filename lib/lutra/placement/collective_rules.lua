--- The rules of the lint about collectives and messages of lt.distributed (D1 to D4).
--
-- A rule reads record.collectives: events with the further fields `ops` (the number of ops with a
-- kernel before it), `backwards` (of backward passes before it), `after_backward` (of ops since the
-- last one), `first` (the copy from a device that transferred the same bytes, or nil) and `back`
-- (the copy of as many bytes back to that device). Only collectives of tensors that the program
-- itself calls count, not those of nn.parallel.DistributedDataParallel and the like, which group
-- and overlap them.

local collectives = require "lutra.placement.collectives"
local rule_list = require "lutra.placement.rule_list"
local texts = require "lutra.internal.text"

local by_line, rule, time_of = rule_list.by_line, rule_list.rule, rule_list.time_of

-- The least number of consecutive small collectives, the size (bytes) below which one is small, and
-- how many ops may run between two of them, such as a division by the number of ranks.
local small_calls, small, between = 8, 65536, 4
-- The least number of gradients that are reduced one by one: at one line, and in one step.
local gradients, in_a_step = 8, 2
-- The least number of round trips through the host.
local round_trips = 3

-- Returns whether the program itself calls a collective or a message of tensors.
local function is_own(e)
  return e.where and e.direct and not e.op:find "object" or false
end

-- Returns a list of runs of collectives of one kind at one line, with few ops and no backward pass
-- between them.
local function runs_of(list, test)
  local runs, last = {}, nil
  for _, e in ipairs(list) do
    if is_own(e) and test(e) then
      local run = last and runs[#runs]
      if not (run and e.where == last.where and e.name == last.name
        and e.ops - last.ops <= between and e.backwards == last.backwards) then
        run = {}
        runs[#runs + 1] = run
      end
      run[#run + 1], last = e, e
    end
  end
  return runs
end

local function host_time(list)
  local sum = 0
  for _, e in ipairs(list) do sum = sum + collectives.host_time(e) end
  return sum
end

-- Returns whether a run reduces gradients directly after a backward pass, and the program waits for
-- each.
local function is_of_gradients(run)
  local first = run[1]
  return first.name == "all_reduce" and first.comm.now and first.backwards > 0
    and first.after_backward <= between and #run >= in_a_step
end

-- Returns the set of the collectives in runs that pass a test.
local function members(runs, test)
  local set = {}
  for _, run in ipairs(runs) do
    for _, e in ipairs(run) do set[e] = test(run) or nil end
  end
  return set
end

-- Returns the sizes of a group as text: "512 B each", or "1.5 KiB in total".
local function sizes_of(group)
  local sum, is_alike = 0, true
  for _, e in ipairs(group) do
    sum, is_alike = sum + e.bytes, is_alike and e.bytes == group[1].bytes
  end
  return is_alike and texts.bytes(group[1].bytes) .. " each" or texts.bytes(sum) .. " in total"
end

-- Returns the set of the collectives that reduce gradients, for rule D3.
local function reduced_gradients(record)
  local runs = runs_of(record.collectives, function(e) return e.name == "all_reduce" end)
  local set = members(runs, is_of_gradients)
  for _, group in ipairs(by_line(record.collectives, function(e) return set[e] end)) do
    if #group < gradients then
      for _, e in ipairs(group) do set[e] = nil end
    end
  end
  return set
end

rule("D1", "many small collectives instead of one large collective",
  "join the tensors, then call once: flat = lt.cat(list of x:view(-1)); dist.all_reduce(flat)",
  function(record, report)
    local of_gradients = reduced_gradients(record)
    local runs = runs_of(record.collectives, function(e)
      return e.bytes < small and e.name ~= "barrier" and not of_gradients[e]
    end)
    local set = members(runs, function(run) return #run >= small_calls end)
    for _, group in ipairs(by_line(record.collectives, function(e) return set[e] end)) do
      report(group.where, #group, host_time(group) * (1 - 1 / #group), ("%s is called %d times "
        .. "for small tensors, %s, one after another; each call takes at least the time in which "
        .. "the ranks reach each other"):format(group[1].name, #group, sizes_of(group)))
    end
  end)

rule("D2", "an asynchronous collective or message without a wait",
  "keep the work, and wait before you use its tensors: local work = dist.all_reduce(x, {async_op "
    .. "= true}); work:wait()",
  function(record, report)
    if record.dropped > 0 then return end -- the wait may be among the dropped events
    local function is_open(e)
      return is_own(e) and not e.comm.now and not e.waited and not e.failed
    end
    for _, group in ipairs(by_line(record.collectives, is_open)) do
      report(group.where, #group, 0, ("%s has no wait() (%s): its tensors may be read before the "
        .. "transfer is done, and an error of it is not reported"):format(group[1].op,
        #group == 1 and "once" or texts.count(#group) .. " times"))
    end
  end)

rule("D3", "gradients reduced one by one after the backward pass",
  "net = nn.parallel.DistributedDataParallel(net): it reduces them in buckets of 25 MB, while the "
    .. "backward pass runs",
  function(record, report)
    local set = reduced_gradients(record)
    for _, group in ipairs(by_line(record.collectives, function(e) return set[e] end)) do
      report(group.where, #group, host_time(group), ("all_reduce is called %d times after "
        .. "backward, %s, and the program waits for each; nothing else runs meanwhile"):format(
        #group, sizes_of(group)))
    end
  end)

rule("D4", "a collective of a device's tensor by way of the host",
  "pass the CUDA tensor itself: init_process_group() takes NCCL for CUDA tensors",
  function(record, report)
    local function is_trip(e) return is_own(e) and e.to == "cpu" and e.first and e.back end
    for _, group in ipairs(by_line(record.collectives, is_trip)) do
      if #group >= round_trips then
        local copies = {}
        for _, e in ipairs(group) do
          copies[#copies + 1], copies[#copies + 2] = e.first, e.back
        end
        report(group.where, #group, time_of(copies), ("%s of %s is called on a copy from %s, and "
          .. "the result is copied back, %d times"):format(group[1].name,
          texts.bytes(group[1].first.bytes), group[1].first.from, #group))
      end
    end
  end)
