--- Merges the traces of the ranks of a job into one, with arrows between the collectives that
-- belong together.
--
-- The traces are files of chrome.lua, which have one event a line. A file is read twice: first its
-- collectives, from which the times of the ranks are aligned, since each machine has a clock of its
-- own, then all events. In the result each rank is a process, and the lanes of its host and devices
-- are threads.

local args = require "lutra.internal.args"
local format = require "lutra.profiler.trace_format"
local json = require "lutra.profiler.json"
local texts = require "lutra.internal.text"

local merge = {}

-- The factor that makes numbers of threads from those of a device's process.
local per_process = 100000

local function nanoseconds(text) return math.floor(tonumber(text) * 1000 + 0.5) end

-- Returns the collective of a line, or nil: {name, group (a string), size, rank, sequence, peer,
-- tag, thread, begin, finish, blocked_from (when it began to block its rank; nil: never)}, times in
-- nanoseconds of its file.
local function call_of(line)
  if not line:find('"cat":"collective"', 1, true) then return nil end
  local function number(key)
    local text = line:match('"' .. key .. '":(%d+)')
    return text and math.tointeger(tonumber(text))
  end
  local begin, length = line:match '"ts":([%d.]+),"dur":([%d.]+)'
  local first = nanoseconds(begin)
  local from = first
  if line:find('"async":true', 1, true) then from = number "blocked_from" end
  local device = line:match '"to":"(%a+)' -- MPI and NCCL each count the calls of a group
  return {name = line:match '"name":"([%w_]+)"', group = device .. number "group",
    size = number "size", rank = number "rank", sequence = number "sequence", peer = number "peer",
    tag = number "tag" or 0, thread = number "pid" * per_process + number "tid",
    begin = first, finish = first + nanoseconds(length), blocked_from = from}
end

-- Returns the collectives of a file.
local function read_calls(path)
  local file, why = io.open(path)
  args.check(file, "placement.merge_traces: cannot read %s", why)
  local _ <close> = file
  local first, calls = file:read "l", {}
  args.check(first and first:find('"traceEvents":[', 1, true),
    "placement.merge_traces: expected a trace of lutra --trace in %s, got another file", path)
  for line in file:lines() do calls[#calls + 1] = call_of(line) end
  return calls
end

-- Groups the collectives of all ranks: a list of lists of calls that belong together, in the order
-- of the first rank that has them. Each call gets `process`, the number of its rank from 0. The
-- numbers of groups and of calls begin anew with each init_process_group, so the n-th calls of the
-- ranks with the same numbers belong together.
local function groups_of(all)
  local list, by_key = {}, {}
  for i, calls in ipairs(all) do
    local counts = {}
    for _, call in ipairs(calls) do
      call.process = i - 1
      if call.sequence then
        local key = ("%s %d %s"):format(call.group, call.sequence, call.name)
        counts[key] = (counts[key] or 0) + 1
        key = key .. " " .. counts[key]
        if not by_key[key] then
          by_key[key] = {}
          list[#list + 1] = by_key[key]
        end
        table.insert(by_key[key], call)
      end
    end
  end
  return list
end

-- After these no rank continues before all have arrived.
local is_common = {all_reduce = true, all_gather = true, reduce_scatter = true, all_to_all = true,
  barrier = true}

-- Returns the nanoseconds to add to the times of each rank, so that they leave their first common
-- barrier, or another collective that all wait for, at the same time; nil when there is none.
local function offsets_of(groups, count)
  local common
  for _, group in ipairs(groups) do
    local is_better = not common or common[1].name ~= "barrier" and group[1].name == "barrier"
    if #group == count and is_common[group[1].name] and is_better then common = group end
  end
  if not common then return nil end
  local latest, offsets = 0, {}
  for _, call in ipairs(common) do latest = math.max(latest, call.finish) end
  for _, call in ipairs(common) do offsets[call.process + 1] = latest - call.finish end
  return offsets
end

-- Returns the call of a group whose rank arrived last.
local function last_of(group)
  local last = group[1]
  for _, call in ipairs(group) do
    if call.begin > last.begin then last = call end
  end
  return last
end

-- Returns a point of an arrow: in a call, at a time as near to `time` as it allows.
local function point(call, time)
  return {call.process + 1, call.thread, math.max(call.begin, math.min(call.finish, time))}
end

-- Writes an arrow from the rank that arrived last to each other rank, and adds up in the rows of
-- the result which rank was blocked on which.
local function put_collectives(groups, rows, put, next_id)
  for _, group in ipairs(groups) do
    local last = last_of(group)
    for _, call in ipairs(group) do
      local waited = math.min(call.finish, last.begin) - (call.blocked_from or math.huge)
      if call ~= last and waited > 0 then
        put(format.arrow("ranks", "wait for rank " .. last.process, next_id(),
          point(last, last.begin), point(call, last.begin)))
        local own, theirs = rows[call.process + 1], rows[last.process + 1]
        own.waiting = own.waiting + waited * 1e-9
        theirs.caused = theirs.caused + waited * 1e-9
      end
    end
    if #group > 1 then rows[last.process + 1].last = rows[last.process + 1].last + 1 end
  end
end

-- Writes an arrow from each send to its recv: the n-th of two ranks of a group with one tag.
local function put_messages(all, put, next_id)
  local sends, counts = {}, {}
  local function key_of(call, from, to)
    local key = ("%s %s %d %d %d"):format(call.name, call.group, from, to, call.tag)
    counts[key] = (counts[key] or 0) + 1
    return ("%s %d %d %d %d"):format(call.group, from, to, call.tag, counts[key])
  end
  local function each(name, fn)
    for _, calls in ipairs(all) do
      for _, call in ipairs(calls) do
        if call.name == name and call.peer then fn(call) end
      end
    end
  end
  each("send", function(call) sends[key_of(call, call.rank, call.peer)] = call end)
  each("recv", function(call)
    local send = sends[key_of(call, call.peer, call.rank)]
    if send then
      put(format.arrow("ranks", "message", next_id(), point(send, send.begin),
        point(call, call.finish)))
    end
  end)
end

-- Copies the events of one rank's file, with its number and its offset.
local function copy_events(path, process, offset, put)
  local devices = {}
  put(format.name(process + 1, 0, "process_name", "rank " .. process))
  for line in io.lines(path) do
    local pid, tid = line:match '"pid":(%d+),"tid":(%d+)'
    if line:find('"name":"process_name"', 1, true) then
      devices[pid] = line:match '"args":{"name":"(.-)"}'
    elseif pid then
      line = line:gsub(",$", "")
      if line:find('"name":"thread_name"', 1, true) then
        line = line:gsub('("args":{"name":")', function(start)
          return start .. devices[pid] .. " "
        end)
      end
      line = line:gsub('"pid":%d+,"tid":%d+', ('"pid":%d,"tid":%d'):format(process + 1,
        pid * per_process + tid), 1)
      line = line:gsub('"ts":([%d.]+)', function(time)
        return ('"ts":%.3f'):format((nanoseconds(time) + offset) / 1000)
      end, 1)
      put(line)
    end
  end
end

--- Returns the name of the file of one rank: "out.json" is "out.rank2.json" for rank 2.
function merge.path_of(path, rank)
  local stem, ending = path:match "^(.*)(%.[^./\\]*)$"
  return ("%s.rank%d%s"):format(stem or path, rank, ending or "")
end

-- Returns the names of the ranks' files that belong to `path`.
local function find_parts(path)
  local parts = {}
  local function is_there(name)
    local file = io.open(name)
    if file then file:close() end
    return file
  end
  while is_there(merge.path_of(path, #parts)) do parts[#parts + 1] = merge.path_of(path, #parts) end
  args.check(#parts > 0, "placement.merge_traces: cannot read %s: no such file\n"
    .. "hint: lutra --nproc 2 --trace %s train.lua writes one file for each rank",
    merge.path_of(path, 0), path)
  return parts
end

local Ranks = {__name = "ranks"}
Ranks.__index = Ranks

local columns = {
  {key = "rank", title = "rank", rank = 1, least = 4, right = true},
  {key = "waiting", title = "blocked by others", rank = 1, least = 7, right = true},
  {key = "last", title = "arrived last", rank = 1, least = 5, right = true},
  {key = "caused", title = "blocked others", rank = 1, least = 7, right = true},
}

function Ranks:__tostring()
  local rows = {}
  for i, row in ipairs(self) do
    rows[i] = {rank = tostring(row.rank), waiting = texts.seconds(row.waiting),
      last = texts.count(row.last), caused = texts.seconds(row.caused)}
  end
  local lines = texts.table(columns, rows, 80)
  if not self.aligned then
    lines[#lines + 1] = "the times of the ranks are not aligned: they have no collective in common"
  end
  return table.concat(lines, "\n")
end

--- Merges the traces of a job of `count` ranks that has ended, and prints on stderr which ranks
-- were blocked. Returns true; false, after a message, when it cannot, as when a rank failed before
-- it wrote its trace.
function merge.after_job(path, count)
  local parts = {}
  for rank = 0, count - 1 do parts[rank + 1] = merge.path_of(path, rank) end
  local ok, result = pcall(merge.traces, path, parts)
  if not ok then result = "lutra: --trace: " .. tostring(result):gsub("^[^\n]-:%d+: ", "") end
  io.stderr:write(tostring(result), "\n")
  return ok
end

--- Implements lt.placement.merge_traces.
function merge.traces(path, parts)
  args.expect(type(path) == "string", "placement.merge_traces", "a file name", "path", path)
  args.expect(parts == nil or type(parts) == "table" and #parts > 0, "placement.merge_traces",
    "a list of file names", "parts", parts)
  for i, part in ipairs(parts or {}) do
    args.check(type(part) == "string",
      "placement.merge_traces: expected file names in argument 'parts', got %s at %d",
      args.show(part), i)
  end
  parts = parts or find_parts(path)
  local all = {}
  for i, part in ipairs(parts) do all[i] = read_calls(part) end
  local groups = groups_of(all)
  local offsets = offsets_of(groups, #parts)
  local rows, id = setmetatable({aligned = offsets ~= nil or #parts == 1}, Ranks), 0
  for i, calls in ipairs(all) do
    rows[i] = {rank = i - 1, waiting = 0, last = 0, caused = 0}
    local offset = offsets and offsets[i] or 0
    for _, call in ipairs(calls) do
      call.begin, call.finish = call.begin + offset, call.finish + offset
      call.blocked_from = call.blocked_from and call.blocked_from + offset
    end
  end
  local function next_id()
    id = id + 1
    return id
  end
  json.save("placement.merge_traces", path, function(_, write)
    format.write(write, function(put)
      local function put_all(...)
        for _, line in ipairs {...} do put(line) end
      end
      for i, part in ipairs(parts) do
        copy_events(part, i - 1, offsets and offsets[i] or 0, put)
      end
      put_collectives(groups, rows, put_all, next_id)
      put_messages(all, put_all, next_id)
    end)
  end)
  return rows
end

return merge
