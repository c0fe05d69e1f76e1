-- lt.placement.lint: each rule has a script that breaks it and one that does not (tests/placement).

local devices = require "device_support"
if devices.elsewhere("placement/placement_lint", _ENV) then return end

local assert = require "luassert"
local lt = require "lutra"
local program = require "program_support"

local placement = lt.placement
local fails = devices.fails

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"

-- The line of a script that says what it breaks, and the rule.
local function mark_of(path)
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    local rule = line:match "%-%- (T%d)$"
    if rule then return number, rule end
  end
end

describe("a script that breaks", function()
  for i = 1, 9 do
    local function lint(kind)
      local path = ("%stests/placement/T%d_%s.lua"):format(root, i, kind)
      return program.run("--lint " .. program.quote(path)), path
    end
    it(("T%d hears so at its line, and one that keeps it does not"):format(i), function()
      local result, path = lint "breaks"
      assert.equal(1, result.status)
      local found = {}
      for where, rule in ("\n" .. result.err):gmatch "\n(%S+): (T%d): [^\n]+\n    fix: " do
        found[#found + 1] = where .. " " .. rule
      end
      local line, rule = mark_of(path)
      assert.equal("T" .. i, rule)
      assert.same({("%s:%d %s"):format(path, line, rule)}, found, result.err)
      local right = lint "keeps"
      assert.same({"no findings\n", 0}, {right.err, right.status})
    end)
  end
end)

-- Breaks T9 and T1.
local function reads_elements()
  local x, sum = lt.arange(12):to "cuda", 0
  for i = 1, 12 do sum = sum + x[i]:item() end
  return sum
end
local function reads_sums()
  local x, sum = lt.randn{16, 4, device = "cuda"}, 0
  for i = 1, 10 do sum = sum + (x * i):sum():item() end
  return sum
end

describe("placement.lint", function()
  it("is over when a coroutine that was abandoned inside is collected", function()
    local function abandon(f)
      local ok, value = coroutine.resume(coroutine.create(f))
      assert.is_true(ok)
      return value
    end
    local clock, count = lt.clock, 0
    for _ = 1, 3 do
      abandon(function() placement.lint(coroutine.yield) end)
      assert.not_equal(clock, lt.clock)
      collectgarbage()
      collectgarbage()
      assert.equal(clock, lt.clock)
    end
    local held = setmetatable({}, {__mode = "k"})
    for _ = 1, 3 do
      held[abandon(function() placement.trace(coroutine.yield, {}) end)] = true
    end
    collectgarbage()
    collectgarbage()
    for _ in pairs(held) do count = count + 1 end
    assert.equal(0, count)
  end)

  it("gives a list of what it found", function()
    local findings = placement.lint(reads_elements)
    assert.same({1, nil}, {#findings, findings.error})
    local f = findings[1]
    assert.same({"T9", 12}, {f.rule, f.count})
    assert.is_truthy(f.where:find "placement_lint_spec.lua:%d+$")
    assert.is_true(f.cost > 0 and #f.message > 0 and #f.fix > 0)
    assert.is_truthy(tostring(f):find(f.where .. ": T9: ", 1, true))
    assert.equal("no findings", tostring(placement.lint(function() return lt.ones(3) end)))
  end)

  local X = lt.randn{16, 8}
  local x = X:to "cuda"
  local function sum() return (x * 2):sum() end
  local function repeated(n, f)
    return function() for i = 1, n do f(i) end end
  end

  local mask_in_each_call = repeated(5, function()
    return x[{{1, 8}}] + lt.tril(lt.ones{8, 8}):to(x.device)
  end)

  -- Rule, what it is about, code that breaks it and no other.
  local variations = {
    {"T1", "in a function", repeated(12, function()
      local function read(l) return l:item() end
      return read(sum())
    end)},
    {"T1", "by pcall", repeated(12, function() local l = sum(); return pcall(l.item, l) end)},
    {"T1", "by comparing", repeated(12, function() return sum() < 3 and 1 end)},
    {"T1", "by tolist", repeated(12, function() local t = sum():tolist(); return t end)},
    {"T1", "by cpu first", repeated(12, function() local v = sum():cpu():item(); return v end)},
    {"T1", "by allclose", repeated(12, function() local v = x:allclose(x * 1); return v end)},
    {"T1", "in a coroutine", function()
      local step = coroutine.wrap(function()
        for _ = 1, 12 do coroutine.yield(sum():item()) end
      end)
      for _ = 1, 12 do step() end
    end},
    {"T2", "in a loop, and no T3", repeated(3, function()
      local host = (x * 2):cpu()
      return host:to "cuda", 1
    end)},
    {"T2", "by way of pinned memory", function()
      return (x * 2):cpu():pin_memory():to{"cuda", non_blocking = true}
    end},
    {"T2", "by way of a clone and a view", function()
      local host = (x * 2):cpu():clone():detach():view{8, 16}:contiguous()
      return host:to "cuda"
    end},
    {"T2", "by way of a buffer", function()
      local buffer = lt.empty{16, 8}:pin_memory()
      buffer:copy_((x * 2):cpu())
      return buffer:to "cuda"
    end},
    {"T3", "in a mask made in each call", mask_in_each_call},
    {"T3", "in two masks at one line, of equal bytes each time", repeated(5, function()
      local ones, zeros = lt.ones{16, 8}:to "cuda", lt.zeros{16, 8}:to "cuda"
      return x * ones + zeros
    end)},
    {"T3", "from two lines", function()
      for _ = 1, 3 do
        local y = X:to "cuda"
        local z = y * X:to "cuda"
        assert.equal(16, #z)
      end
    end},
    {"T3", "from three lines of a short loop", function()
      for _ = 1, 2 do
        local y = X:to "cuda"
        y = y * X:to "cuda"
        y = y + X:to "cuda"
        assert.equal(16, #y)
      end
    end},
    {"T3", "in a function with other tensors", function()
      local function send(t) return t:to "cuda" end
      for i = 1, 3 do
        local y = send(lt.full({16, 8}, i)) * send(X)
        assert.equal(16, #y)
      end
    end},
    {"T3", "by copy_", function()
      local z = lt.zeros({16, 8}, {device = "cuda"})
      for _ = 1, 5 do z:copy_(X); z:mul_(2) end
    end},
    {"T4", "by format", repeated(12, function() local s = ("%s"):format(sum()); return s end)},
    {"T4", "by indices of the host", function()
      local places = lt.randperm(16)
      for i = 1, 12 do local _ = x[places[{{i, i + 1}}]] end
    end},
    {"T5", "by copy_", function()
      local z = lt.zeros({16, 8}, {device = "cuda"})
      for i = 1, 16 do z[i]:copy_(X[i]) end
    end},
    {"T5", "to the host", repeated(16, function(i) local t = x[i]:totable(); return t end)},
    {"T6", "by cuda", function() local y = X:cuda{non_blocking = true}; return y end},
    {"T7", "through a function of one's own", function()
      local function now() return os.clock() end
      local start = now()
      local y = x * 2
      return now() - start, y
    end},
    {"T9", "by two indices", repeated(8, function(i) local v = x[{1, i}]:item(); return v end)},
    {"T9", "by ipairs and printing", function()
      for _, e in ipairs(x[1]) do local _ = tostring(e) end
    end},
    {"T9", "where the device calculates each", function()
      local z = lt.arange(12):to "cuda"
      for i = 1, 12 do z[i] = z[i] * 2 end
    end},
    {"T9", "in place", function()
      local z = lt.zeros({12}, {device = "cuda"})
      for i = 1, 12 do z[i]:add_(i) end
    end},
    {"T9", "by adding up on the device", function()
      local sum_of = lt.zeros({}, {device = "cuda"})
      for i = 1, 8 do sum_of = sum_of + x[1][i] end
      return sum_of
    end},
    {"T9", "by comparing, and no T1", repeated(8, function(i) return x[1][i] < 3 and 1 end)},
    {"T9", "by reading and writing at one line", function()
      local z = lt.zeros({12}, {device = "cuda"})
      for i = 1, 12 do z[i] = x[2][(i - 1) % 8 + 1]:item() end
    end},
    {"T9", "by writing", function()
      local z = lt.zeros({20}, {device = "cuda"})
      for i = 1, 20 do z[i] = i end
    end},
  }
  for _, case in ipairs(variations) do
    it(("finds %s %s"):format(case[1], case[2]), function()
      local findings = placement.lint(case[3])
      assert.is_nil(findings.error)
      assert.same({1, case[1]}, {#findings, findings[1] and findings[1].rule}, tostring(findings))
    end)
  end

  it("names each line that sends one tensor again", function()
    local f = placement.lint(function()
      for _ = 1, 3 do
        local y = X:to "cuda"
        local z = y * X:to "cuda"
        assert.equal(16, #z)
      end
    end)[1]
    local number = tonumber(f.where:match "%d+$")
    assert.equal(6, f.count)
    assert.is_truthy(f.message:find(("6 times, 512 B each, also at [^:]*:%d$"):format(number + 1)),
      f.message)
  end)

  it("adds up what differs in size", function()
    local f = placement.lint(function()
      for _ = 1, 5 do
        local ones, zeros = lt.ones{16, 8}:to "cuda", lt.zeros{8}:to "cuda"
        assert.equal(16, #(x * ones + zeros))
      end
    end)[1]
    -- 5 * (512 + 32) bytes
    assert.is_truthy(f.message:find("10 times, 2.7 KiB in total", 1, true), f.message)
  end)

  it("distinguishes a mask from a batch that is copied again", function()
    local findings = placement.lint(mask_in_each_call)
    assert.is_truthy(findings[1].fix:find("register_buffer", 1, true))
  end)

  it("says of metamethods what the program writes", function()
    local first = placement.lint(repeated(12, function() return sum() < 3 and 1 end))[1]
    assert.is_truthy(first.message:find("^a comparison reads one number from cuda:0 12 times"))
    local places = lt.randperm(16)
    first = placement.lint(repeated(12, function(i) return x[places[{{i, i + 1}}]] end))[1]
    assert.is_truthy(first.message:find("x[i] copies implicitly from cpu to cuda:0 12 times", 1,
      true))
  end)

  local innocent = {
    {"a sum set to zero in each epoch", function()
      local total = lt.zeros({}, {device = "cuda"})
      for _ = 1, 12 do total:fill_(0); total:add_(x:sum()) end
    end},
    {"numbers and prints that are far apart", repeated(12, function()
      for _ = 1, 101 do local _ = x * 2 end
      return tostring(sum()), sum():item()
    end)},
    {"a number of each epoch, kept on the device and shown", function()
      local losses = lt.zeros({12}, {device = "cuda"})
      for i = 1, 12 do
        for _ = 1, 101 do losses[i] = (x * 2):sum() end
        assert.is_number(losses[i]:item())
      end
    end},
    {"small tensors that cannot be joined", repeated(16, function(i)
      local y = lt.ones{i, 2}:to "cuda"
      return y
    end)},
    {"a number of each step that is kept on the device", function()
      local losses, rates = lt.zeros({12}, {device = "cuda"}), lt.zeros({12}, {device = "cuda"})
      for i = 1, 12 do
        losses[i] = (x * i):sum()
        rates[i] = 1 / i
      end
    end},
    {"a factor of each step of time", function()
      local noise, y = lt.rand{12}:to "cuda", x
      for i = 1, 12 do y = (y - noise[i] * y) / noise[i]:sqrt() end
      return y
    end},
    {"rows", function()
      local state, out = lt.zeros({8}, {device = "cuda"}), lt.zeros({16, 8}, {device = "cuda"})
      for i = 1, 16 do
        state = (state + x[i]):tanh()
        out[i] = state
      end
    end},
    {"few elements", function()
      local z = lt.arange(7):to "cuda"
      for _ = 1, 4 do
        for i = 1, 7 do z[i] = z[i] * 2 end
      end
    end},
    {"elements that are kept for one op", function()
      local list = {}
      for i = 1, 12 do list[i] = x[{(i - 1) % 16 + 1, 1}] end
      return lt.stack(list)
    end},
    {"data that the host changes", function()
      local host = x:cpu():clone():pin_memory()
      host:add_(1)
      return host:to "cuda"
    end},
    {"a tensor that is sent once by each of some lines", function()
      local y = X:to "cuda"
      y = y * X:to "cuda"
      y = y + X:to "cuda"
      return y - X:to "cuda"
    end},
    {"two tensors that are sent from two lines", function()
      for i = 1, 4 do
        local y = lt.full({16, 8}, i):to "cuda"
        local z = y + lt.full({16, 8}, -i):to "cuda"
        assert.equal(16, #z)
      end
    end},
    {"a state that is kept and put back", function()
      local w = lt.ones({8}, {device = "cuda"})
      local kept = w:cpu()
      w:mul_(2)
      w:copy_(kept)
    end},
    {"the gradient of a copy, whose bytes are equal each time", function()
      local w = lt.ones({16}, {device = "cuda", requires_grad = true})
      for _ = 1, 12 do (w * 2):cpu():sum():backward() end
    end},
    {"a state that is kept on the host and given to another model", function()
      local net, other = lt.nn.Linear(8, 4):to "cuda", lt.nn.Linear(8, 4):to "cuda"
      local state = {}
      for name, value in pairs(net:state_dict()) do state[name] = value:cpu():clone() end
      other:load_state_dict(state)
    end},
    {"batches that come in the same order in each epoch", function()
      local loader = lt.data.DataLoader(lt.data.TensorDataset(X, X * 2), {batch_size = 8})
      for _ = 1, 5 do
        for a, b in loader:iter() do
          a, b = a:to "cuda", b:to "cuda"
          assert.equal(8, #(a * b))
        end
      end
    end},
    {"the clock at which a time begins", function()
      for _ = 1, 3 do
        local y = x * 2
        local start = os.clock()
        lt.cuda.synchronize()
        assert.is_true(os.clock() >= start and #y == 16)
      end
    end},
  }
  for _, case in ipairs(innocent) do
    it("finds nothing in " .. case[1], function()
      assert.equal("no findings", tostring(placement.lint(case[2])))
    end)
  end

  it("finds nothing in a training program as most are", function()
    local result = program.run("--lint " .. program.quote(root
      .. "tests/placement/ordinary_training.lua"))
    assert.same({"no findings\n", 0}, {result.err, result.status})
  end)

  it("lists findings by line, and counts", function()
    local findings = placement.lint(function() reads_sums(); reads_elements() end)
    assert.same({"T9", "T1"}, {findings[1].rule, findings[2].rule})
    assert.equal(10, findings[2].count)
    assert.is_truthy(tostring(findings):find "2 findings$")
  end)

  it("knows another fix for elements that are numbers of the host's", function()
    local z = lt.zeros({12}, {device = "cuda"})
    local function fix(set)
      return placement.lint(function() for i = 1, 12 do set(i) end end)[1].fix
    end
    assert.is_truthy(fix(function(i) z[i] = i end):find("lt.tensor(t, {device", 1, true))
    assert.is_truthy(fix(function(i) z[i] = z[i] / 2 end):find("on the whole tensor", 1, true))
  end)

  it("distinguishes sums that are read beside elements", function()
    local findings = placement.lint(function()
      for i = 1, 16 do assert.is_number(x[{i, 1}]:item() + sum():item()) end
    end)
    assert.same({"T1", "T9"}, {findings[1].rule, findings[2].rule}, tostring(findings))
    assert.same({2, 16, 16}, {#findings, findings[1].count, findings[2].count})
  end)

  it("keeps what it found when the code fails", function()
    local findings = placement.lint(function() reads_elements(); error("boom", 0) end)
    assert.equal("boom", findings.error)
    assert.equal("T9", findings[1].rule)
    assert.is_truthy(tostring(findings):find "the code failed; findings up to the error: boom$")
    fails({"placement.lint", "fn"}, placement.lint, 3)
  end)

  it("leaves os.clock and the optimizers as they were", function()
    local clock, clock_of_lt, step = os.clock, lt.clock, lt.optim.Optimizer.step
    placement.lint(function()
      assert.are_not.equal(step, lt.optim.Optimizer.step)
      error "x"
    end)
    assert.same({clock, clock_of_lt}, {os.clock, lt.clock})
    assert.equal(step, lt.optim.Optimizer.step)
  end)

  it("lists its rules", function()
    local rules = placement.rules()
    assert.equal(13, #rules)
    for i, rule in ipairs(rules) do
      assert.equal(i <= 9 and "T" .. i or "D" .. i - 9, rule.name)
      assert.is_true(#rule.title > 0 and #rule.advice > 0)
    end
  end)
end)

describe("lutra --lint and --trace", function()
  local bad = [[
    local lt = require "lutra"
    local x, sum = lt.arange(12):to "cuda", 0
    for i = 1, 12 do sum = sum + x[i]:item() end
    print(sum)
  ]]

  -- Runs a script with options; {out, err, status}.
  local function run(options, text)
    local path = program.file(text)
    local result = program.run(options .. " " .. program.quote(path))
    os.remove(path)
    return result
  end

  it("says on stderr what it found, at the script's lines; the status is 1", function()
    local result = run("--lint", bad)
    assert.equal("78\n", result.out)
    assert.is_truthy(result.err:find "^%S+:3: T9: 12 elements", result.err)
    assert.is_truthy(result.err:find "\n1 finding\n$", result.err)
    assert.equal(1, result.status)
  end)

  it("has status 0 when there are no findings", function()
    local result = run("--lint", 'local lt = require "lutra"; print(lt.ones{2}:to "cuda":cpu())')
    assert.equal("no findings\n", result.err)
    assert.equal(0, result.status)
  end)

  it("reports after an error, too, and keeps os.exit's status", function()
    local failed = run("--lint", bad .. "error 'boom'")
    assert.is_truthy(failed.err:find "boom.*\n%S+:3: T9: .*\n1 finding\nthe script failed",
      failed.err)
    assert.equal(1, failed.status)
    local ended = run("--lint", bad .. "os.exit(7)")
    assert.is_truthy(ended.err:find ":3: T9: ", ended.err)
    assert.equal(7, ended.status)
    assert.equal(1, run("--lint", bad .. "os.exit(0)").status)
  end)

  it("says nothing of a script that was not read", function()
    for _, result in ipairs {program.run "--lint missing.lua", run("--lint", "x = = 1")} do
      assert.equal(1, result.status)
      assert.is_falsy(result.err:find("no findings", 1, true), result.err)
    end
  end)

  it("does the same for -e", function()
    local result = program.run(
      "--lint -e 'local x = lt.arange(12):cuda() for i = 1, 12 do x[i]:item() end'")
    assert.is_truthy(result.err:find "T9", result.err)
    assert.equal(1, result.status)
  end)

  it("counts costs by the clock of a link", function()
    local function cost()
      local path = program.file(bad)
      local result = program.shell(("env LUTRA_EMULATE=cuda:2,link=pcie3 %s --lint %s"):format(
        program.quote(program.program), program.quote(path)))
      os.remove(path)
      return result.err:match "%[([^]]+)%]"
    end
    if os.getenv "LUTRA_TEST_GPU" then return pending "emulated links only" end
    assert.equal("120 µs on pcie3", cost()) -- twelve times 10 us and 8 bytes
    assert.equal(cost(), cost())
  end)

  it("writes a trace when the script ends, however it does", function()
    for _, ending in ipairs {"", "error 'boom'", "os.exit(0)"} do
      local path = os.tmpname()
      local result = run("--trace " .. program.quote(path), bad .. ending)
      assert.equal(ending:find "boom" and 1 or 0, result.status, result.err)
      local file <close> = assert(io.open(path))
      local text = file:read "a"
      os.remove(path)
      local _, count = text:gsub('"name":"cuda:0 %-> cpu"', "")
      assert.equal(12, count)
      assert.is_nil(text:find('"name":"select"', 1, true)) -- x[i], which calculates nothing
      assert.is_truthy(text:find "%]}\n$")
    end
  end)

  local function text_of(path)
    local file <close> = assert(io.open(path))
    return file:read "a"
  end

  it("keeps an earlier trace when nothing runs, and when the new one does not fit", function()
    local folder = program.folder()
    local path = folder .. "/t.json"
    do
      local file <close> = assert(io.open(path, "w"))
      file:write "earlier"
    end
    assert.equal(1, run("--trace " .. program.quote(path), "x = = 1").status)
    assert.equal("earlier", text_of(path))
    assert.equal(1, program.run(("--trace %s /no/such.lua"):format(program.quote(path))).status)
    assert.equal("earlier", text_of(path))
    local script = program.file(bad)
    local result = program.shell(("ulimit -f 1; %s --trace %s %s | cat"):format(
      program.quote(program.program), program.quote(path), program.quote(script)))
    os.remove(script)
    assert.same({"78\n", 'lutra: --trace: cannot write "' .. path .. '": File too large\n'},
      {result.out, result.err})
    assert.equal("earlier", text_of(path))
    assert.is_nil(io.open(path .. ".new"))
    program.remove(folder)
  end)

  it("writes into what is not a regular file, and reports a full disk", function()
    local script = program.file(bad)
    local result = program.shell(("%s --trace /dev/stdout %s | cat"):format(
      program.quote(program.program), program.quote(script)))
    os.remove(script)
    assert.is_truthy(result.out:find '^78\n{"displayTimeUnit".*%]}\n$', result.out)
    local full = io.open "/dev/full"
    if not full then return pending "no /dev/full" end
    full:close()
    result = run("--trace /dev/full", bad)
    assert.same({1, 'lutra: --trace: cannot write "/dev/full": No space left on device\n'},
      {result.status, result.err})
  end)

  it("says what is wrong with its arguments", function()
    local result = run("--trace /no/such/folder/t.json", "print 'it ran'")
    assert.same({"", 1}, {result.out, result.status})
    assert.is_truthy(result.err:find('cannot write "/no/such/folder/t.json"', 1, true), result.err)
    local script = program.file "print 'it ran'"
    result = program.run("--trace " .. program.quote(script))
    assert.same({"", 1}, {result.out, result.status})
    assert.is_truthy(result.err:find("lutra --trace trace.json " .. script, 1, true), result.err)
    assert.equal("print 'it ran'", text_of(script))
    os.remove(script)
    result = program.run "--trace"
    assert.equal(2, result.status)
    assert.is_truthy(result.err:find("expected an argument after --trace", 1, true))
  end)
end)
