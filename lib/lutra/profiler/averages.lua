--- Aggregation of a profile's events by op and device, or by line of the program.
--
-- The own times ("self") of all rows add up to the time spent in the core. The total time of a row
-- includes nested events, so the total times of an op and of its parts overlap.

local args = require "lutra.internal.args"
local texts = require "lutra.internal.text"

local time_text = texts.seconds

local Averages = {__name = "averages"}
Averages.__index = Averages

local function key_of_op(e)
  if e.kind == "copy" then return "copy " .. e.from .. "->" .. e.device, e.device end
  if e.kind == "wait" then return "wait (" .. e.name .. ")", e.device end
  if e.kind == "region" then return e.name, "" end
  return e.name, e.device
end

local function key_of_line(e) return e.where or "(no line)", "" end

local groupings = {op = key_of_op, line = key_of_line}

local function row_of(self, key, device, kind)
  local id = key .. "\0" .. device
  local row = self.by_id[id]
  if not row then
    row = {key = key, device = device, kind = kind, count = 0, self_time = 0, total_time = 0,
      bytes = 0, copies = 0}
    self.by_id[id] = row
    self[#self + 1] = row
  end
  return row
end

-- Adds an event to the totals.
local function add_to_sums(sums, e)
  local seconds = (e.last - e.first) * 1e-9
  if e.depth == 0 and e.last > e.first then sums.core_time = sums.core_time + seconds end
  if e.kind == "op" then
    sums.calls = sums.calls + 1
  elseif e.kind == "copy" then
    local way = e.from .. " -> " .. e.device
    local t = sums.transfers[way]
    if not t then
      t = {way = way, count = 0, bytes = 0, blocking = 0}
      sums.transfers[way] = t
      sums.transfers[#sums.transfers + 1] = t
    end
    t.count, t.bytes = t.count + 1, t.bytes + e.bytes
    if e.blocking then t.blocking = t.blocking + 1 end
  elseif e.kind == "wait" then
    sums.waits, sums.wait_time = sums.waits + 1, sums.wait_time + seconds
  end
end

local function add_memory(memory, e)
  local m = memory[e.device]
  if not m then
    m = {device = e.device, count = 0, bytes = 0, live = 0, most = 0}
    memory[e.device] = m
    memory[#memory + 1] = m
  end
  if e.kind == "alloc" then
    m.count, m.bytes, m.live = m.count + 1, m.bytes + e.bytes, m.live + e.bytes
    m.most = math.max(m.most, m.live)
  else
    m.live = m.live - e.bytes
  end
end

-- Returns the number of copies inside an event: those of the events one level deeper that ended
-- since the previous event of this level, and itself.
local function take_copies(pending, e)
  local inside = (pending[e.depth + 1] or 0) + (e.kind == "copy" and 1 or 0)
  pending[e.depth + 1] = 0
  pending[e.depth] = (pending[e.depth] or 0) + inside
  return inside
end

local function add(self, e, key_of, pending)
  if e.kind == "alloc" or e.kind == "free" then return add_memory(self.memory, e) end
  add_to_sums(self.sums, e)
  local copies = take_copies(pending, e)
  local key, device = key_of(e)
  local row = row_of(self, key, device, e.kind)
  local by_line = key_of == key_of_line
  row.self_time = row.self_time + e.own * 1e-9
  if not by_line or e.depth == 0 then
    row.count = row.count + 1
    row.total_time = row.total_time + (e.last - e.first) * 1e-9
    row.copies = row.copies + copies
  end
  row.bytes = row.bytes + e.bytes
end

local function check_choice(what, value, allowed)
  if value == nil then return end
  args.check(allowed[value], "profiler: expected one of %s for argument '%s', got %s",
    table.concat(allowed, ", "), what, args.show(value))
end

local group_names = {"op", "line", op = true, line = true}

-- ---- the table

local orders = {
  "time", "total", "calls", "bytes", "name",
  time = function(a, b) return a.self_time > b.self_time end,
  total = function(a, b) return a.total_time > b.total_time end,
  calls = function(a, b) return a.count > b.count end,
  bytes = function(a, b) return a.bytes > b.bytes end,
  name = function(a, b) return a.key < b.key end,
}

-- The columns of the table; `from` is the table width from which a column is shown.
local columns = {
  {key = "key", title = "op", rank = 1, least = 8, from = 0},
  {key = "calls", title = "calls", rank = 5, least = 99, right = true, from = 0},
  {key = "self", title = "self", rank = 2, least = 99, right = true, from = 0},
  {key = "share", title = "%", rank = 6, least = 99, right = true, from = 60},
  {key = "total", title = "total", rank = 7, least = 99, right = true, from = 72},
  {key = "mean", title = "per call", rank = 9, least = 99, right = true, from = 100},
  {key = "bytes", title = "bytes", rank = 4, least = 99, right = true, from = 0},
  {key = "copies", title = "copies", rank = 8, least = 99, right = true, from = 60},
  {key = "device", title = "device", rank = 3, least = 99, from = 0},
}

-- Replaces control characters, which names given by the user may contain.
local function clean(name) return (name:gsub("%c", " ")) end

-- Returns the cells of a row as strings; in a narrow table without spaces in front of units.
local function cells(row, whole, narrow)
  local function short(text) return narrow and text:gsub(" ", "") or text end
  return {
    key = clean(row.key),
    calls = tostring(row.count),
    self = short(time_text(row.self_time)),
    share = whole > 0 and ("%.1f"):format(100 * row.self_time / whole) or "",
    total = time_text(row.total_time),
    mean = row.count > 0 and time_text(row.total_time / row.count) or "",
    bytes = row.bytes > 0 and short(texts.bytes(row.bytes)) or "",
    copies = row.copies > 0 and tostring(row.copies) or "",
    device = row.device,
  }
end

local function transfer_text(t)
  local noun = t.count == 1 and "copy" or "copies"
  return ("%s: %s %s, %s%s"):format(t.way, texts.count(t.count), noun, texts.bytes(t.bytes),
    t.blocking > 0 and (", %d blocking"):format(t.blocking) or "")
end

local function memory_text(m)
  return ("%s: %s, %s in total, peak %s above the start"):format(m.device,
    texts.plural(m.count, "allocation"), texts.bytes(m.bytes), texts.bytes(m.most))
end

-- Returns the lines below the table.
local function notes(self)
  local profile, sums = self.profile, self.sums
  local outside = math.max(0, profile.seconds - sums.core_time)
  local list = {("%s: %s in %s, %s in Lua and other code"):format(time_text(profile.seconds),
    time_text(sums.core_time), texts.plural(sums.calls, "op"), time_text(outside))}
  if #profile.devices > 0 then
    list[#list + 1] = (profile.synchronized and "synchronized after each op: %s"
      or "times are those of queuing the work; synchronized at the end: %s")
      :format(table.concat(profile.devices, ", "))
  end
  for _, t in ipairs(sums.transfers) do list[#list + 1] = transfer_text(t) end
  if sums.waits > 0 then
    list[#list + 1] = ("the host was blocked %s, %s"):format(texts.plural(sums.waits, "time"),
      time_text(sums.wait_time))
  end
  for _, m in ipairs(self.memory) do
    if m.count > 0 then list[#list + 1] = memory_text(m) end
  end
  if profile.dropped > 0 then
    list[#list + 1] = ("%s did not fit and are missing here; profile less, or pass a larger limit")
      :format(texts.plural(profile.dropped, "event"))
  end
  return list
end

local function chosen_columns(self, width)
  local chosen = {}
  for _, c in ipairs(columns) do
    if width >= c.from then
      chosen[#chosen + 1] = c.key == "key" and self.by_line
        and setmetatable({title = "line"}, {__index = c}) or c
    end
  end
  return chosen
end

--- averages:table{sort_by = "time", row_limit, width = 80}: returns the rows as a printable table.
function Averages:table(options)
  options = options or {}
  check_choice("sort_by", options.sort_by, orders)
  local before = orders[options.sort_by or "time"]
  local sorted = table.move(self, 1, #self, 1, {})
  table.sort(sorted, function(a, b)
    if before(a, b) then return true end
    if before(b, a) then return false end
    return a.key < b.key or a.key == b.key and a.device < b.device
  end)
  local width, limit = options.width or 80, options.row_limit or #sorted
  local rows = {}
  for i = 1, math.min(limit, #sorted) do
    rows[i] = cells(sorted[i], self.profile.seconds, width < 60)
  end
  local lines = #rows > 0 and texts.table(chosen_columns(self, width), rows, width)
    or {"no ops were run"}
  if #rows < #sorted then lines[#lines + 1] = ("... %d more"):format(#sorted - #rows) end
  for _, note in ipairs(notes(self)) do
    lines[#lines + 1] = texts.wrap_sentence(note, width)
  end
  return table.concat(lines, "\n")
end

Averages.__tostring = Averages.table

--- Returns the aggregated rows of a profile. options.group_by: "op" (op and device) or "line".
return function(profile, options)
  local by = options and options.group_by
  check_choice("group_by", by, group_names)
  local self = setmetatable({
    profile = profile,
    by_id = {},
    by_line = by == "line",
    memory = {},
    sums = {calls = 0, core_time = 0, waits = 0, wait_time = 0, transfers = {}},
  }, Averages)
  local key_of, pending = groupings[by or "op"], {}
  for e in profile:events() do add(self, e, key_of, pending) end
  return self
end
