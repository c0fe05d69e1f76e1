--- The rules of the lint about copies between devices (T1 to T9). Those about collectives (D1 to
-- D4) are in collective_rules.lua.
--
-- A rule reads the record of a run (lint_session.lua) and reports its findings. A pattern counts
-- as a fault when it repeats: printing one tensor is fine, printing one in each step of a loop is
-- not. The constants at the top set how many repetitions count.

local core = require "lutra.core"
local rule_list = require "lutra.placement.rule_list"
local texts = require "lutra.internal.text"

local by_line, rule, time_of = rule_list.by_line, rule_list.rule, rule_list.time_of

-- The least number of scalar reads and of implicit copies at one line, and how many kernels a
-- device may run on average between two of them; with more, the synchronization costs little.
local reads, unasked, between = 10, 8, 100
-- The least number of elements of one tensor that are read or written at one line, one at a time.
local elements = 8
-- The least number of uploads of one unchanged tensor: at one line, and in total over several
-- lines, each of which repeats it.
local uploads, uploads_of_lines = 3, 5
-- The least number of consecutive small copies, and the size (bytes) below which a copy is small.
local small_copies, small = 8, 65536
-- The largest size of a copy of one number, in bytes: that of the largest dtype.
local scalar = 8

local function set(names)
  local members = {}
  for name in names:gmatch "%a+" do members[name] = true end
  return members
end

-- Names of calls that are not ops.
local calls = {
  scalar = set "item totable tolist cpu",
  reading = set "print tostring format write concat index newindex error assert",
}

-- How a metamethod is called in messages.
local comparison = "a comparison"
local operators = {lt = comparison, le = comparison, eq = comparison, index = "x[i]",
  newindex = "assigning to x[i]"}

-- Returns whether an op gives the host a value: a boolean, or a tensor that it was explicitly
-- asked to copy.
local function gives_value(name)
  local op = core._op(name)
  return op and (op.results[1].type == "bool" or op.traits.transfer and not op.params[1].written)
end

local function call_of(group) return operators[group[1].op] or group[1].op end

local function is_up(e) return e.from == "cpu" and e.to ~= "cpu" end
local function is_down(e) return e.to == "cpu" and e.from ~= "cpu" end

local function is_scalar_read(e)
  return is_down(e) and e.bytes <= scalar
    and (calls.scalar[e.op] or operators[e.op] == comparison or gives_value(e.op)) and true or false
end

-- Returns whether a group has at least `least` copies with few kernels between them.
local function is_often(group, least)
  local n = #group
  return n >= least and (group[n].kernels - group[1].kernels) / math.max(1, n - 1) <= between
end

local function memory_of(e) return e.memory or e.source end

-- Returns the largest number of different elements of one memory in the list (within one part of
-- the run, where entries have a part), and these numbers by memory.
local function most_elements(list)
  local most, counts, seen = 0, {}, {}
  for _, e in ipairs(list) do
    local memory = memory_of(e)
    local place = ("%s:%s in %s"):format(memory, e.offset, e.part)
    local part = ("%s in %s"):format(memory, e.part)
    if not seen[place] then
      seen[place] = true
      counts[part] = (counts[part] or 0) + 1
      counts[memory] = math.max(counts[memory] or 0, counts[part])
      most = math.max(most, counts[part])
    end
  end
  return most, counts
end

-- Returns the list of kernels that use the elements, each once, and their device.
local function kernels_of(group)
  local list, seen = {}, {}
  for _, e in ipairs(group) do
    if not seen[e.kernel] then
      seen[e.kernel] = true
      list[#list + 1] = e.kernel
    end
  end
  return list, list[1].to
end

-- Returns the lines that often use single elements of a device's tensor, as a list and by line:
-- {where, count, device, done = how the elements are used, events = the events whose time counts,
-- numbers = true when the host writes numbers, counts = the number of elements by memory that the
-- host reads}. The result is cached in the record.
local function element_lines(record)
  if record.element_lines then return record.element_lines end
  local lines = {}
  local function add(group, device, done, events, numbers)
    local count, counts = most_elements(group)
    if count < elements or lines[group.where] then return end
    local line = {where = group.where, count = count, device = device, done = done,
      events = events, numbers = numbers, counts = events == group and counts or nil}
    lines[line.where], lines[#lines + 1] = line, line
  end
  local function is_small(e) return is_down(e) and e.bytes <= scalar end
  for _, group in ipairs(by_line(record.copies, is_small)) do
    if is_often(group, elements) then add(group, group[1].from, "read from", group) end
  end
  for _, group in ipairs(by_line(record.elements, function() return true end)) do
    local written, numbers = false, true
    for _, e in ipairs(group) do
      written, numbers = written or e.written, numbers and e.number
    end
    local kernels, device = kernels_of(group)
    add(group, device, written and "written on" or "read on", kernels, numbers)
  end
  record.element_lines = lines
  return lines
end

-- Returns whether a copy is part of such a loop, which rule T9 reports instead.
local function is_of_elements(record, e)
  local line = element_lines(record)[e.where]
  return line and (not line.counts or (line.counts[e.source] or 0) >= elements)
end

rule("T1", "repeated reads of a scalar at one line",
  "accumulate on the device and read once: total:add_(loss:detach()) in the loop, "
    .. "total:item() after it",
  function(record, report)
    local function is_read(e) return is_scalar_read(e) and not is_of_elements(record, e) end
    for _, group in ipairs(by_line(record.copies, is_read)) do
      if is_often(group, reads) then
        report(group.where, #group, time_of(group), ("%s reads one number from %s %d times; each "
          .. "time the host blocks until the device is done"):format(call_of(group), group[1].from,
          #group))
      end
    end
  end)

-- Returns whether an upload sends unchanged data back to the device of its origin. Restoring a
-- saved state is not counted: a copy into the original memory, or by load_state_dict; nor is one
-- that a collective was made on, which rule D4 reports.
local function is_round_trip(e)
  return is_up(e) and e.first and not e.exchanged and e.to == e.first.from
    and e.target ~= e.first.source
    and e.op ~= "load_state_dict"
end

rule("T2", "a round trip of unchanged data",
  "keep the tensor on the device: its data did not change",
  function(record, report)
    for _, group in ipairs(by_line(record.copies, is_round_trip)) do
      local first = group[1].first
      report(group.where, #group, 2 * time_of(group), ("%s were copied from %s to cpu at %s and "
        .. "back, unchanged"):format(texts.bytes(first.bytes), first.from, first.where or "?"))
    end
  end)

-- Returns the uploads of a list at lines that repeat them: a list with the fields `where`, the
-- line with most of them, and `others`, the other lines; nil when there are too few.
local function repeated(same)
  local groups = by_line(same, function() return true end)
  local most, list = groups[1], {others = {}}
  for _, group in ipairs(groups) do
    if #group > #most then most = group end
  end
  for _, group in ipairs(groups) do
    if #group > 1 then table.move(group, 1, #group, #list + 1, list) end
    if #group > 1 and group ~= most then table.insert(list.others, group.where) end
  end
  list.where = most.where
  return (#most >= uploads or #list >= uploads_of_lines) and list or nil
end

-- Groups uploads of the same unchanged memory to one device: a list of lists as `repeated` returns
-- them, the longest for each line.
local function same_uploads(all)
  local found, by_key, best, lists = {}, {}, {}, {}
  for _, e in ipairs(all) do
    local key = ("%s:%s:%s:%s"):format(e.source, e.offset, e.digest, e.to)
    if not by_key[key] then
      by_key[key] = {}
      found[#found + 1] = by_key[key]
    end
    table.insert(by_key[key], e)
  end
  for _, same in ipairs(found) do
    local list = repeated(same)
    local other = list and best[list.where]
    if list and not other then lists[#lists + 1] = list.where end
    if list and (not other or #list > #other) then best[list.where] = list end
  end
  for i, where in ipairs(lists) do lists[i] = best[where] end
  return lists
end

-- Returns, of the uploads of a line, those of equal bytes (more than one number) whose tensor is
-- created again each time. A line may send several tensors in each step of a loop: uploads without
-- a kernel between them belong to one step, and `period` is their number.
local function made_anew(group)
  local period, list = 1, {}
  while group[period + 1] and group[period + 1].kernels == group[1].kernels do
    period = period + 1
  end
  if period == #group then period = 1 end
  for first = 1, #group >= uploads * period and period or 0 do
    local is_equal, is_new = group[first].bytes > scalar, false
    for i = first + period, #group, period do
      local e, before = group[i], group[i - period]
      is_equal = is_equal and e.digest == before.digest and e.to == before.to
      is_new = is_new or e.source ~= before.source
    end
    for i = first, is_equal and is_new and #group or 0, period do list[#list + 1] = group[i] end
  end
  return list
end

-- Returns "512 B each", or "1.5 KiB in all" when the sizes differ.
local function sizes_of(list)
  local sum, is_alike = 0, true
  for _, e in ipairs(list) do
    sum, is_alike = sum + e.bytes, is_alike and e.bytes == list[1].bytes
  end
  return is_alike and texts.bytes(list[1].bytes) .. " each" or texts.bytes(sum) .. " in total"
end

rule("T3", "repeated copies of an unchanged tensor to a device",
  "copy it once, before the loop: x = x:to(device)",
  function(record, report)
    local function report_uploads(where, list, what, fix)
      report(where, #list, time_of(list) * (1 - 1 / #list), ("%s to %s %d times, %s%s"):format(
        what, list[1].to, #list, sizes_of(list), list.others and #list.others > 0
          and ", also at " .. table.concat(list.others, ", ") or ""), fix)
    end
    local rest, is_anew = {}, {}
    local function is_upload(e)
      return is_up(e) and not e.exchanged and e.explicit and not e.backward_copy
        and e.digest ~= 0 and not is_round_trip(e)
    end
    for _, group in ipairs(by_line(record.copies, is_upload)) do
      local anew = made_anew(group)
      for _, e in ipairs(anew) do is_anew[e] = true end
      if #anew > 0 then
        report_uploads(group.where, anew, "equal data is made on the host and copied",
          "make it on the device, {device = x.device}, or once: self:register_buffer(...)")
      end
    end
    for _, e in ipairs(record.copies) do
      if e.where and is_upload(e) and not is_anew[e] then rest[#rest + 1] = e end
    end
    for _, list in ipairs(same_uploads(rest)) do
      report_uploads(list.where, list, "the same unchanged tensor is copied")
    end
  end)

rule("T4", "implicit copies, by printing or indexing",
  "print x:item() or x:cpu() once; move indices and values to the device before the loop",
  function(record, report)
    local function is_unasked(e)
      return not e.explicit and calls.reading[e.op] and not is_of_elements(record, e)
    end
    for _, group in ipairs(by_line(record.copies, is_unasked)) do
      if is_often(group, unasked) then
        report(group.where, #group, time_of(group), ("%s copies implicitly from %s to %s %d "
          .. "times"):format(call_of(group), group[1].from, group[1].to, #group))
      end
    end
  end)

-- Returns a list of runs of small copies that could be one copy: at one line, equal in size and
-- direction, and without a kernel between them.
local function small_runs(copies)
  local runs, run = {}, {}
  for _, e in ipairs(copies) do
    local last = run[#run]
    local fits = e.direct and e.explicit and e.bytes < small and e.where
      and (is_up(e) or is_down(e) and not is_scalar_read(e))
    if not (last and fits and e.where == last.where and e.from == last.from and e.to == last.to
      and e.kernels == last.kernels and e.bytes == last.bytes and e.digest ~= last.digest) then
      run = {}
      runs[#runs + 1] = run
    end
    if fits then run[#run + 1] = e end
  end
  return runs
end

rule("T5", "many small copies instead of one large copy",
  "join first, then copy once: lt.stack(list):to(device); slice it there",
  function(record, report)
    local in_a_run = {}
    for _, run in ipairs(small_runs(record.copies)) do
      for _, e in ipairs(run) do in_a_run[e] = #run >= small_copies end
    end
    for _, group in ipairs(by_line(record.copies, function(e) return in_a_run[e] end)) do
      report(group.where, #group, time_of(group), ("%d copies from %s to %s of %s each, one after "
        .. "another"):format(#group, group[1].from, group[1].to, texts.bytes(group[1].bytes)))
    end
  end)

rule("T6", "an asynchronous copy of memory that is not pinned",
  "pin it: x = x:pin_memory(), or DataLoader{..., pin_memory = true}",
  function(record, report)
    local function waits_anyway(e)
      return e.direct and not e.blocking and not e.pinned and (is_up(e) or is_down(e))
    end
    for _, group in ipairs(by_line(record.copies, waits_anyway)) do
      report(group.where, #group, time_of(group), ("non_blocking = true has no effect: the memory "
        .. "of the host is not pinned, so the host copies it first (%s)"):format(
        texts.bytes(group[1].bytes)))
    end
  end)

-- Returns the reads of the clock that may end a measurement: those at other lines than the first,
-- where it starts; all of them when there is one line only.
local function time_ends(clocks)
  local first, ends = clocks[1] and clocks[1].where, {}
  for _, c in ipairs(clocks) do
    if c.where ~= first then ends[#ends + 1] = c end
  end
  return #ends > 0 and ends or clocks
end

rule("T7", "time measured while the device is still running",
  "synchronize before you read the clock: lt.synchronize(); local t = lt.clock()",
  function(record, report)
    local function too_early(c) return c.launched > 0 end
    for _, group in ipairs(by_line(time_ends(record.clocks), too_early)) do
      report(group.where, #group, 0, ("the clock is read without synchronizing: %s queued on %s "
        .. "since the previous read"):format(texts.plural(group[1].launched, "kernel"),
        group[1].device))
    end
  end)

rule("T8", "the state of an optimizer is on another device than its parameter",
  "move the model before you make the optimizer: net:to(device); "
    .. "opt = optim.X(net:parameters())",
  function(record, report)
    for _, group in ipairs(by_line(record.misplaced_states, function() return true end)) do
      local s = group[1]
      report(group.where, #group, 0, ("%s of %s is on %s, its parameter on %s"):format(s.key,
        s.name, s.from, s.to))
    end
  end)

rule("T9", "a loop over the elements of a tensor on a device",
  "use ops on the whole tensor (x * 2, x:sum()), or copy it to the host once: for _, v in "
    .. "ipairs(x:totable()) do",
  function(record, report)
    for _, line in ipairs(element_lines(record)) do
      report(line.where, line.count, time_of(line.events), ("%d elements of one tensor are %s %s, "
        .. "one at a time"):format(line.count, line.done, line.device), line.numbers
        and "write all elements at once: x[{{1, n}}] = 0, or lt.tensor(t, {device = device})")
    end
  end)

require "lutra.placement.collective_rules"

return rule_list.rules
