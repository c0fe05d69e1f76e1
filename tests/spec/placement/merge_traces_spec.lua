-- lt.placement.merge_traces: one trace from those of several ranks, from recorded lists of events.

local assert = require "luassert"
local chrome = require "lutra.placement.chrome"
local json = require "lutra.profiler.json"
local lt = require "lutra"
local merge = require "lutra.placement.merge"
local program = require "program_support"

local folder

-- Writes the trace of a rank. calls: list of {name, begin, arrived, done (microseconds), members of
-- comm, to = device, waited = when the wait for an asynchronous call began}.
local function write_rank(rank, size, calls)
  local i = 0
  json.save("test", ("%s/out.rank%d.json"):format(folder, rank), chrome, function()
    i = i + 1
    local c = calls[i]
    if not c then return nil end
    local e = {kind = "collective", name = c[1], op = c[1], to = c.to or "cpu", bytes = 8,
      begin = c[2], finish = c[2], arrived = c[3], done = c[4], where = 't "x".lua:1',
      waited = c.waited and {begin = c.waited},
      comm = {size = size, rank = rank, group = 0, sequence = i, tag = 0, sent = 8, received = 8,
        link_bytes = 8, now = true}}
    for key, value in pairs(c[5] or {}) do e.comm[key] = value end
    if c[1] == "send" or c[1] == "recv" then e.comm.sequence = nil end
    return e
  end)
end

local function read(path)
  local list = {}
  for line in io.lines(path) do list[#list + 1] = line end
  return list
end

-- Returns the lines that contain all texts.
local function lines_with(lines, ...)
  local list = {}
  for _, line in ipairs(lines) do
    local has = true
    for _, text in ipairs {...} do has = has and line:find(text, 1, true) end
    if has then list[#list + 1] = line end
  end
  return list
end

describe("placement.merge_traces", function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)
  after_each(function() os.execute("rm -r " .. folder) end)

  it("aligns the ranks, and draws which rank blocked which", function()
    -- The clock of rank 1 began 1,000 us later; it comes 50 us late to the all_reduce.
    write_rank(0, 2, {{"barrier", 1000, 1090, 1100}, {"all_reduce", 1200, 1250, 1300}})
    write_rank(1, 2, {{"barrier", 90, nil, 100}, {"all_reduce", 250, nil, 300}})
    local ranks = lt.placement.merge_traces(folder .. "/out.json")
    assert.is_true(ranks.aligned)
    assert.same({0, 0, 2}, {ranks[1].rank, ranks[1].last, ranks[2].last})
    assert.near(140e-6, ranks[1].waiting, 1e-9) -- 90 us in the barrier, 50 us in the all_reduce
    assert.near(140e-6, ranks[2].caused, 1e-9)
    assert.near(0, ranks[2].waiting, 1e-9)
    assert.is_truthy(tostring(ranks):find "0 +140 µs +0 +0 ns", tostring(ranks))
    local lines = read(folder .. "/out.json")
    assert.equal('{"displayTimeUnit":"ms","traceEvents":[', lines[1])
    assert.equal("]}", lines[#lines])
    assert.equal(1, #lines_with(lines, "process_name", '"rank 1"', '"pid":2'))
    assert.equal(2, #lines_with(lines, "thread_name", '"host (cpu) communication"'))
    local late = lines_with(lines, '"X"', "all_reduce", '"pid":2')
    assert.equal(1, #late)
    assert.is_truthy(late[1]:find('"ts":1250.000,"dur":50.000', 1, true), late[1])
    local starts = lines_with(lines, '"ph":"s"', "wait for rank 1", '"pid":2')
    local ends = lines_with(lines, '"ph":"f"', '"bp":"e"', "wait for rank 1", '"pid":1')
    assert.same({2, 2}, {#starts, #ends})
    assert.is_truthy(ends[2]:find('"ts":1250.000', 1, true), ends[2])
    for i, line in ipairs(lines) do -- a comma after each event but the last
      local ends_list = i == 1 or i >= #lines - 1
      assert.equal(not ends_list, line:sub(-1) == ",", line)
    end
  end)

  it("counts a rank as blocked by an asynchronous call from its wait on", function()
    local async = {now = false}
    write_rank(0, 2, {{"barrier", 0, 0, 10}, {"all_reduce", 20, 60, 70, async, waited = 45},
      {"all_reduce", 80, 120, 130, async, waited = 125}, {"all_reduce", 140, 160, 170, async}})
    write_rank(1, 2, {{"barrier", 0, 0, 10}, {"all_reduce", 60, 60, 70, async, waited = 61},
      {"all_reduce", 120, 120, 130, async, waited = 121}, {"all_reduce", 160, 160, 170, async}})
    local ranks = lt.placement.merge_traces(folder .. "/out.json")
    assert.near(15e-6, ranks[1].waiting, 1e-9)
    assert.near(15e-6, ranks[2].caused, 1e-9)
    local ends = lines_with(read(folder .. "/out.json"), '"ph":"f"', "wait for rank 1")
    assert.equal(1, #ends)
  end)

  it("draws messages from their sender to their receiver, in order", function()
    write_rank(0, 2, {{"barrier", 0, 0, 10}, {"send", 20, nil, 30, {peer = 1}},
      {"send", 40, nil, 50, {peer = 1}}})
    write_rank(1, 2, {{"barrier", 0, 0, 10}, {"recv", 15, nil, 35, {peer = 0}},
      {"recv", 38, nil, 60, {peer = 0}}, {"recv", 70, nil, 90, {peer = 0}}})
    lt.placement.merge_traces(folder .. "/out.json")
    local lines = read(folder .. "/out.json")
    local ends = lines_with(lines, '"ph":"f"', '"message"', '"pid":2')
    assert.equal(2, #ends)
    assert.is_truthy(ends[1]:find('"ts":35.000', 1, true), ends[1])
    assert.is_truthy(ends[2]:find('"ts":60.000', 1, true), ends[2])
  end)

  it("keeps the calls of one group by MPI and by NCCL apart", function()
    local first = {sequence = 1}
    write_rank(0, 2, {{"all_reduce", 0, 5, 10, first},
      {"all_reduce", 20, 35, 50, first, to = "cuda:0"}})
    write_rank(1, 2, {{"all_reduce", 5, 5, 10, first},
      {"all_reduce", 30, 35, 50, first, to = "cuda:1"}})
    local ranks = lt.placement.merge_traces(folder .. "/out.json")
    assert.same({0, 2}, {ranks[1].last, ranks[2].last})
    assert.near(15e-6, ranks[1].waiting, 1e-9)
  end)

  it("keeps the calls of groups apart that were started one after the other", function()
    local first = {sequence = 1}
    write_rank(0, 2, {{"all_reduce", 0, 5, 10, first}, {"all_reduce", 20, 35, 50, first}})
    write_rank(1, 2, {{"all_reduce", 5, 5, 10, first}, {"all_reduce", 30, 35, 50, first}})
    local ranks = lt.placement.merge_traces(folder .. "/out.json")
    assert.is_true(ranks.aligned)
    assert.same({0, 2}, {ranks[1].last, ranks[2].last})
    assert.near(15e-6, ranks[1].waiting, 1e-9)
  end)

  it("tells when the ranks have no collective in common", function()
    write_rank(0, 2, {{"all_reduce", 0, 0, 10, {group = 1}}})
    write_rank(1, 2, {{"all_reduce", 0, 0, 10, {group = 2}}})
    local ranks = lt.placement.merge_traces(folder .. "/out.json",
      {folder .. "/out.rank0.json", folder .. "/out.rank1.json"})
    assert.is_false(ranks.aligned)
    assert.is_truthy(tostring(ranks):find("not aligned", 1, true))
  end)

  it("reports files that are missing, or no traces", function()
    local function fails(text, ...)
      local ok, message = pcall(lt.placement.merge_traces, ...)
      assert.is_false(ok)
      assert.is_truthy(message:find(text, 1, true), message)
    end
    fails("out.rank0.json: no such file", folder .. "/out.json")
    fails("cannot read", folder .. "/out.json", {folder .. "/missing.json"})
    assert(io.open(folder .. "/notes.txt", "w")):close()
    fails("expected a trace of lutra --trace", folder .. "/out.json", {folder .. "/notes.txt"})
    fails("expected a file name for argument 'path'", 5)
    fails("expected a list of file names for argument 'parts'", "out.json", 5)
    fails("expected a list of file names for argument 'parts'", "out.json", {})
    fails("expected file names in argument 'parts', got 5 at 2", "out.json", {"a.json", 5})
  end)

  it("merges what a job wrote, and reports a file that is missing", function()
    local function after_job(count)
      return program.run("-e " .. program.quote(("print(require('lutra.placement.merge').after_job("
        .. "%q, %d))"):format(folder .. "/out.json", count)))
    end
    write_rank(0, 2, {{"barrier", 0, 0, 10}})
    write_rank(1, 2, {{"barrier", 0, 0, 10}})
    local done = after_job(2)
    assert.equal("true\n", done.out)
    program.has(done.err, "blocked others")
    local failed = after_job(3)
    assert.equal("false\n", failed.out)
    program.has(failed.err, "lutra: --trace: placement.merge_traces: cannot read ")
  end)

  it("puts the rank before the ending of a file's name", function()
    assert.equal("a.b/out.rank3.json", merge.path_of("a.b/out.json", 3))
    assert.equal("a.b/out.rank0", merge.path_of("a.b/out", 0))
  end)
end)
