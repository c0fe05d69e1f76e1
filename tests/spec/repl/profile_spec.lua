-- :time, :timeit, :prof and lt.profiler.

local assert = require "luassert"
local devices = require "device_support"
local lt = require "lutra"
local support = require "program_support"
local screen = require "screen_support"

local session = support.session
local profile = lt.profiler.profile

-- Fails unless `text` holds each of the texts, in this order.
local function holds(text, ...)
  local at = 1
  for _, expected in ipairs {...} do
    local first, last = text:find(expected, at, true)
    assert.is_truthy(first, ("%q is missing, or not in order, in:\n%s"):format(expected, text))
    at = last + 1
  end
end

-- The seconds of a string such as "12.3 µs".
local function seconds_of(text)
  local number, unit = text:match "^([%d%.e+]+) (%S+)"
  local units = {s = 1, ms = 1e-3, ["µs"] = 1e-6, ns = 1e-9}
  return tonumber(number) * units[unit]
end

-- The row of an op in a profile.
local function row(prof, key, options)
  for _, r in ipairs(prof:key_averages(options)) do
    if r.key == key then return r end
  end
end

local function spin(seconds)
  local stop = os.clock() + seconds
  while os.clock() < stop do end -- luacheck: ignore 542
end

describe("lt.profiler.profile", function()
  it("gives a profile, then what the function returned", function()
    local prof, a, b, c = profile(function() return 1, nil, "c" end)
    assert.equal("profile", getmetatable(prof).__name)
    assert.same({1, nil, "c"}, {a, b, c})
  end)

  it("counts ops and the bytes of their results", function()
    local x = lt.ones{10, 10}
    local prof = profile(function()
      for _ = 1, 3 do local _ = x * x end
      local _ = x:sum()
    end)
    local mul, sum = row(prof, "mul"), row(prof, "sum")
    assert.equal(3, mul.count)
    assert.equal(3 * 10 * 10 * 4, mul.bytes)
    assert.equal("cpu", mul.device)
    assert.equal(1, sum.count)
    assert.equal(4, sum.bytes)
    assert.is_nil(row(prof, "ones"))
  end)

  it("says own time apart from that of the parts; own times add up to the whole", function()
    local x = lt.randn{64, 64}
    local prof = profile(function() return lt.F.layer_norm(x, {64}), x:matmul(x) end)
    local total, own = 0, 0
    for e in prof:events() do
      if e.depth == 0 then total = total + (e.last - e.first) end
    end
    for _, r in ipairs(prof:key_averages()) do
      own = own + r.self_time
      assert.is_true(r.self_time <= r.total_time + 1e-12)
    end
    assert.is_true(own <= total * 1e-9 + 1e-9)
    assert.is_true(own >= 0.5 * total * 1e-9)
    assert.is_true(total * 1e-9 <= prof.seconds)
  end)

  it("names in-place ops as the user does", function()
    local x = lt.ones(3)
    assert.equal(1, row(profile(function() x:add_(1) end), "add_").count)
  end)

  it("puts backward's ops inside backward", function()
    local x = lt.ones{3, requires_grad = true}
    local prof = profile(function() (x * x):sum():backward() end)
    assert.equal(1, row(prof, "backward").count)
    local inside = 0
    for e in prof:events() do
      if e.kind == "op" and e.depth > 0 then inside = inside + 1 end
    end
    assert.is_true(inside >= 2)
  end)

  it("adds up by the line of the program", function()
    local line
    local prof = profile(function()
      line = debug.getinfo(1, "l").currentline + 1
      local x = lt.ones{100}
      return x + 1
    end)
    local rows = prof:key_averages{group_by = "line"}
    local by = {}
    for _, r in ipairs(rows) do by[tonumber(r.key:match ":(%d+)$")] = r end
    assert.equal(400, by[line + 1].bytes)
    assert.equal(1, by[line].count)
  end)

  it("stops recording when the function fails, and passes the error on", function()
    assert.error_matches(function() profile(function() error("as it is", 0) end) end, "^as it is$")
    local prof = profile(function() return lt.ones(1) end)
    local before = prof.event_count
    local _ = lt.ones(5)
    assert.equal(before, prof.event_count)
    assert.equal(before, (prof.recorder:count()))
  end)

  it("reports failed ops", function()
    local prof = profile(function() return pcall(function() return lt.ones(2) + lt.ones(3) end) end)
    local failed
    for e in prof:events() do failed = failed or e.failed and e.name end
    assert.equal("add", failed)
  end)

  it("may be nested", function()
    local inner
    local outer = profile(function()
      local x = lt.ones(2)
      inner = profile(function() return x * x end)
    end)
    assert.equal(1, row(inner, "mul").count)
    assert.equal(1, row(outer, "mul").count)
    assert.is_nil(row(inner, "ones"))
  end)

  it("keeps no more events than its limit and says so", function()
    local x = lt.ones(2)
    local prof = profile(function()
      for _ = 1, 10 do local _ = x + x end
    end, {limit = 4})
    assert.equal(4, prof.event_count)
    assert.is_true(prof.dropped >= 6)
    holds(prof:table(), "did not fit and are missing")
  end)

  it("can be closed", function()
    local prof = profile(function() return lt.ones(2) end)
    prof:close()
    prof:close()
    assert.equal(0, #prof:key_averages())
    holds(prof:table(), "no ops were run")
  end)

  it("listens to coroutines, also to those that are gone", function()
    local x = lt.ones(3)
    local prof = profile(function()
      for _ = 1, 50 do
        coroutine.wrap(function() return x + 1 end)()
        collectgarbage()
        local _, _, _ = x:tolist(), lt.tensor{1, 2}, x:sum():item()
      end
    end)
    assert.equal(50, row(prof, "add").count)
    assert.equal(50, row(prof, "sum").count)
  end)

  it("names parts of a program", function()
    local record = lt.profiler.record_function
    local got
    local prof = profile(function()
      got = {record("part", function(a, b) return a + b, lt.ones(4) end, 1, 2)}
    end)
    assert.equal(3, got[1])
    assert.equal(1, row(prof, "part").count)
    assert.is_true(row(prof, "part").total_time >= row(prof, "ones").total_time)
    assert.equal(7, record("part", function() return 7 end)) -- nobody listens
    assert.error(function() profile(function() record("part", error, "x", 0) end) end)
    assert.is_nil(row(profile(function() return lt.ones(2) end), "part"))
  end)

  it("refuses what it cannot do, at the caller's line", function()
    local p = lt.profiler
    devices.fails({"profiler.profile", "fn", "a function"}, p.profile, 3)
    devices.fails({"record_function", "name", "a string"}, p.record_function, 3, print)
    devices.fails({"record_function", "fn", "a function"}, p.record_function, "a", 3)
    local prof = profile(function() end)
    devices.fails({"sort_by", '"speed"', "time, total"}, prof.table, prof, {sort_by = "speed"})
    devices.fails({"group_by", '"day"', "op, line"}, prof.key_averages, prof, {group_by = "day"})
    devices.fails({"export_chrome_trace", "path"}, prof.export_chrome_trace, prof)
    devices.fails({"cannot write", "/no/such"}, prof.export_chrome_trace, prof, "/no/such/x.json")
    devices.fails({"lt.profiler", "profil"}, function() return p.profil end)
  end)
end)

describe("the table of a profile", function()
  local prof = profile(function()
    local x = lt.ones{1000}
    for _ = 1, 5 do x:mul_(2) end
    return x:sum()
  end)

  -- The first column of its rows.
  local function order(sort_by)
    local list = {}
    for line in prof:table{sort_by = sort_by, width = 120}:gmatch "[^\n]+" do
      list[#list + 1] = line:match "^(%S+) +%d+ +[%d%.]+ %S*s "
    end
    return list
  end

  it("is sorted as is asked", function()
    assert.equal("mul_", order("calls")[1])
    assert.equal("mul_", order("bytes")[1])
    assert.same({"empty", "fill_", "mul_", "ones", "sum"}, order "name")
  end)

  it("fits the width that it is given", function()
    for _, width in ipairs {20, 40, 60, 80, 120} do
      for line in prof:table{width = width}:gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) <= width or not line:find " ", line)
      end
    end
    holds(prof:table{width = 40}, "op", "calls", "self", "bytes", "device", "mul_")
    holds(prof:table{width = 120}, "op", "calls", "self", "%", "total", "per call", "bytes",
      "device")
  end)

  it("can be cut", function()
    holds(prof:table{row_limit = 2}, "... 3 more")
  end)

  it("is what a profile prints as, and says so when there was nothing", function()
    assert.equal(prof:table(), tostring(prof))
    holds(profile(function() end):table(), "no ops were run")
  end)
end)

describe("a trace file", function()
  local path = os.tmpname()

  -- Python's opinion of the JSON in the file; nil where there is no Python.
  local function ask_python(code)
    if not support.has_terminal() then return nil end
    return support.shell(("python3 -c %s %s"):format(support.quote(
      "import json, sys\nd = json.load(open(sys.argv[1]))['traceEvents']\n" .. code), path))
  end

  it("is JSON in the Trace Event Format, whatever names hold", function()
    local prof = profile(function()
      local odd = "a \"b\\\n\t\1 \xff é"
      return lt.profiler.record_function(odd, function() return lt.ones{2, 3}:exp() end)
    end)
    prof:export_chrome_trace(path)
    local result = ask_python [[
spans = [e for e in d if e['ph'] == 'X']
names = {e['name'] for e in spans}
assert {'ones', 'exp'} <= names, names
assert any('b\\' in n and '\n\t\x01' in n for n in names), names
for e in d:
    assert e['ph'] in 'XCM' and isinstance(e['pid'], int) and isinstance(e['tid'], int)
for e in spans:
    assert e['dur'] >= 0 and e['ts'] >= 0
lanes = {(e['pid'], e['tid']) for e in d if e['name'] == 'thread_name'}
assert {(e['pid'], e['tid']) for e in spans} <= lanes
exp = [e for e in spans if e['name'] == 'exp'][0]
assert exp['args']['shape'] == '{2, 3}' and exp['args']['bytes'] == 24
assert 'profile_spec.lua' in exp['args']['line']
assert any(e['ph'] == 'C' and e['args']['bytes'] >= 24 for e in d)
print('good')
]]
    os.remove(path)
    if not result then return pending "no Python" end
    assert.equal("good\n", result.out, result.err)
  end)

  it("has events of a lane nested or apart", function()
    local x = lt.randn{8, 8, requires_grad = true}
    local prof = profile(function() lt.F.softmax(x:matmul(x), 1):sum():backward() end)
    prof:export_chrome_trace(path)
    local result = ask_python [[
lanes = {}
for e in d:
    if e['ph'] == 'X':
        lanes.setdefault((e['pid'], e['tid']), []).append((e['ts'], -e['dur']))
for spans in lanes.values():
    stack = []
    for ts, dur in sorted(spans):
        while stack and stack[-1] <= ts + 0.0011: stack.pop()
        assert not stack or ts - dur <= stack[-1] + 0.0021, (ts, dur, stack)
        stack.append(ts - dur)
print('good')
]]
    os.remove(path)
    if not result then return pending "no Python" end
    assert.equal("good\n", result.out, result.err)
  end)
end)

describe(":time", function()
  it("runs code once, shows and keeps its value, then the time", function()
    local out = session "n = 0\n:time (function() n = n + 1; return 6 * 7 end)()\nn\n_\n".out
    holds(out, "42\n", "CPU ", "tensors ", "Lua ", "\n1\n")
    assert.is_truthy(out:match "\n[%d%.]+ %S*s %(CPU")
  end)

  it("measures what the code takes", function()
    local out = session(":time local t = os.clock(); while os.clock() - t < 0.05 do end\n").out
    local wall = seconds_of(out)
    assert.is_true(wall >= 0.049 and wall < 5, out)
  end)

  it("reports the memory that tensors take", function()
    holds(session ":time x = lt.zeros(1024 * 256)\n".out, "tensors +1.0 MiB")
  end)

  it("sees and makes variables of the session", function()
    holds(session "local a = 5\n:time local b = a + 1\nb\n".out, "CPU", "6")
  end)

  it("reports errors in the code at the code's line, without code too", function()
    holds(session ":time error 'boom'\n".err, "time:1: boom")
    holds(session ":time 1 1\n".err, "time:1:", "near '1'")
    holds(session ":time\n".err, "time: expected code, got none\nhint: :time ")
    holds(session ":time error 'x'\n1 + 1\n".out, "2")
  end)
end)

describe(":timeit", function()
  it("says mean, spread, runs and loops", function()
    local out = session ":timeit 1 + 1\n".out
    assert.is_truthy(out:match("^[%d%.]+ %S*s ± [%d%.]+ %S*s per loop %(mean ± std%. dev%. "
      .. "of 7 runs,%s+[%d,]+ loops%s+each%)"), out)
    assert.is_true(seconds_of(out) < 1e-4, out)
  end)

  it("runs the code the given number of times", function()
    local out = session "n = 0\n:timeit -n 10 -r 3 n = n + 1\nn\n".out
    holds(out, "3 runs, 10 loops each", "\n31") -- one more to warm up
  end)

  it("measures what the code takes", function()
    local spin_code = "local t = os.clock(); while os.clock() - t < 0.01 do end"
    local mean = seconds_of(session(":timeit -n 2 -r 3 " .. spin_code .. "\n").out)
    assert.is_true(mean >= 0.0099 and mean < 1, mean)
  end)

  it("keeps neither locals nor values", function()
    local out = session "_ = 5\n:timeit -n 3 local inside = 1\n:timeit -n 3 9\ninside\n".out
    holds(out, "per loop", "per loop", "\nnil")
  end)

  it("takes code that returns, jumps or ends in a comment", function()
    local result = session [[
:timeit -n 3 return 5
:timeit -n 3 for i = 1, 3 do if i == 2 then break end end
:timeit -n 3 goto out; ::out::
:timeit -n 3 local x = 1 -- one
]]
    assert.equal("", result.err)
    local _, count = result.out:gsub("3 loops", "")
    assert.equal(4, count)
  end)

  it("reports errors", function()
    holds(session ":timeit error 'boom'\n".err, "timeit:1: boom")
    holds(session ":timeit for\n".err, "timeit:1:", "near <eof>")
    holds(session ":timeit\n".err, "timeit: expected code, got none\nhint: :timeit")
    holds(session ":timeit -- nothing\n".err, "timeit: expected code, got none")
    holds(session ":timeit -n 0 1\n".err, 'timeit: expected an integer of at least 1 for option -n')
    holds(session ":timeit -n\n".err, "timeit: expected a value for option -n")
  end)
end)

describe(":prof", function()
  it("shows the value, keeps it, and a table of ops", function()
    local out = session ":prof lt.ones{10, 10}:sum():item()\n_ + 1\n".out
    holds(out, "100", "calls", "self", "bytes", "device", "ops,")
    holds(out, "101")
    for _, op in ipairs {"ones", "sum", "fill_"} do assert.is_truthy(out:find(op, 1, true)) end
  end)

  it("sorts, groups and cuts", function()
    local input = ":set width 80\n:prof --sort calls --rows 1 for i = 1, 9 do lt.ones(2) end\n"
    holds(session(input).out, "\n... 2 more")
    holds(session ":prof --by line lt.ones(2);\n".out, "line", "prof:1")
  end)

  it("writes a trace", function()
    local path = os.tmpname()
    holds(session((":prof --trace '%s' lt.ones(2);\n"):format(path)).out, "wrote " .. path)
    local file <close> = assert(io.open(path))
    holds(file:read "a", "traceEvents", '"ones"')
    os.remove(path)
  end)

  it("reports errors", function()
    holds(session ":prof\n".err, "prof: expected code, got none\nhint: :prof")
    holds(session ":prof --sort speed 1\n".err,
      'prof: expected one of time, total, calls, bytes, name for option --sort, got "speed"')
    holds(session ":prof --trace /no/such/x 1\n".err, "prof: ", "cannot write \"/no/such/x\"")
    holds(session ":prof nosuch()\n".err, "prof:1:", "nosuch")
    holds(session ":prof x x\n".err, "prof:1:", "near 'x'")
    assert.is_nil(session(":prof --trace /no/such/x 1\n").err:find("lib/lutra", 1, true))
  end)
end)

describe("measuring with a device", function()
  local function emulated(input)
    if not devices.can_emulate() then return nil end
    return session(input, "--emulate cuda:2")
  end

  it("synchronises it, and says so", function()
    local result = emulated [[
x = lt.ones{64, 64, device = "cuda:1"}
:time x:matmul(x):sum():item()
:timeit -n 3 x + 1
]]
    if not result then return pending "no emulated CUDA in this build" end
    holds(result.out, "synchronized:", "cuda:1", "synchronized", "after each run:", "cuda:1")
  end)

  it("does not ask for devices that are not used", function()
    local result = emulated ":time 1\n:timeit -n 3 1\n"
    if not result then return pending "no emulated CUDA in this build" end
    assert.is_nil(result.out:find("synchronized", 1, true))
  end)

  it("reports transfers and the devices of ops", function()
    local result = emulated [[
:set width 120
x = lt.ones(256)
:prof local y = x:to "cuda"; local z = y * 2; print(z:sum():item()); z:to("cuda:1"):cpu()
]]
    if not result then return pending "no emulated CUDA in this build" end
    holds(result.out, "512")
    for _, text in ipairs {
      "synchronized after each op: cuda:0, cuda:1",
      "cpu -> cuda:0: 1 copy, 1.0 KiB",
      "cuda:0 -> cpu: 1 copy, 4 B, 1 blocking",
      "cuda:0 -> cuda:1: 1 copy, 1.0 KiB",
      "cuda:1 -> cpu: 1 copy, 1.0 KiB",
      "cuda:0: 3 allocations, 2.0 KiB in total",
    } do
      holds(result.out, text)
    end
    assert.is_truthy(result.out:match "\nmul +1 .- cuda:0\n", result.out)
  end)

  it("reports waits, streams and pinned copies as events", function()
    local script = [[
local lt = require "lutra"
local x = lt.ones(8):pin_memory()
local prof = lt.profiler.profile(function()
  local y = x:to{device = "cuda", non_blocking = true}
  lt.cuda.synchronize()
  lt.cuda.current_stream():synchronize()
  local event = lt.cuda.Event()
  event:record()
  event:synchronize()
  return y
end, {synchronize = false})
local waits = {}
for e in prof:events() do
  if e.kind == "copy" then print(e.from, e.device, e.bytes, e.blocking, e.pinned) end
  if e.kind == "wait" then waits[#waits + 1] = e.name .. " " .. e.device end
end
print(table.concat(waits, ", "))
]]
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local result = devices.script(script, "LUTRA_EMULATE=cuda:1")
    assert.equal(0, result.status, result.err)
    holds(result.out, "cpu\tcuda:0\t32\tfalse\ttrue\n",
      "synchronize cuda:0, stream cuda:0, event cuda:0")
  end)
end)

describe("measuring on a terminal", function()
  for _, columns in ipairs {40, 120} do
    it(("times and profiles, %d columns"):format(columns), function()
      if not screen.available() then return pending "no tmux" end
      local s <close> = screen.open{columns = columns, rows = 60}
      s:expect_last "[1]>"
      s:enter ":time 20 + 22"
      s:expect "\n42\n"
      s:expect "(CPU"
      s:enter ":timeit -n 10 -r 2 lt.ones(3)"
      s:expect " per loop"
      s:expect_last "[1]>"
      s:enter ":prof lt.ones(3):exp();"
      s:expect "calls"
      s:expect "\nexp "
      s:expect_last "[1]>"
      s:enter ":timeit while true do end"
      spin(0.05)
      s:key "C-c"
      s:expect "interrupted"
      s:expect_last "[1]>"
    end)
  end
end)
