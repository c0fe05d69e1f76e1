-- The faults of a job: each ends it within a bounded time, with an error that names its cause, and
-- leaves no process.

local program = require "program_support"
local ranks = require "ranks_support"
local has, has_not, quote = program.has, program.has_not, program.quote

if not ranks.available() then
  describe("a job with a fault", function() it("ends", function() pending "needs mpirun" end) end)
  return
end

local start = [[
local lt = require "lutra"
local dist = lt.distributed
dist.init_process_group{timeout = %g}
local rank, size = dist.get_rank(), dist.get_world_size()
local x = lt.ones(4)
dist.all_reduce(x)
%s
]]

-- Runs the text on some ranks by `lutra --nproc`, after a first collective; returns {out, err,
-- status}. Asserts that the job ends in time and that no process of it is left. options: timeout,
-- seconds (for the whole job), environment.
local function run(count, text, options)
  options = options or {}
  local file = program.file(start:format(options.timeout or 60, text))
  local result = program.shell(("env OMP_NUM_THREADS=1 %s timeout -k 5 %d %s --nproc %d %s"):format(
    options.environment or "", options.seconds or 60, quote(program.program), count, quote(file)))
  local left = program.shell("ps -ef | grep -F " .. quote(file) .. " | grep -v grep").out
  os.remove(file)
  assert.not_equal(124, result.status, result.err)
  assert.equal("", left)
  has_not(result.err, "mpirun")
  return result, file
end

-- Asserts that the text is in another exactly once.
local function once(text, expected)
  local from, count = 1, 0
  repeat
    local at, stop = text:find(expected, from, true)
    if at then count, from = count + 1, stop + 1 end
  until not at
  assert.equal(1, count, text)
end

describe("the end of a program", function()
  it("ends communication without destroy_process_group", function()
    local result = run(2, "print(x[1]:item())")
    assert.equal(0, result.status, result.err)
    assert.equal("", result.err)
    once(result.out, "rank 0: 2")
    once(result.out, "rank 1: 2")
  end)

  it("ends communication by os.exit, also of one rank", function()
    local result = run(2, "if rank == 0 then os.exit(0) end")
    assert.equal(0, result.status, result.err)
    assert.equal("", result.err)
  end)

  it("waits for the ranks that still work", function()
    local result = run(2, [[if rank == 1 then os.execute "sleep 2" print "done" end]])
    assert.equal(0, result.status, result.err)
    has(result.out, "rank 1: done\n")
  end)

  it("is that of one process without mpirun", function()
    local function alone(code)
      return program.run("-e " .. quote("lt.distributed.init_process_group() " .. code))
    end
    local result = alone "print 'one' os.exit(true, true)"
    assert.equal("one\n", result.out)
    assert.equal(0, result.status)
    assert.equal(1, alone "error 'no'".status)
    assert.equal(5, alone "os.exit(5)".status)
  end)
end)

describe("a rank that", function()
  it("exits with a status ends the job with it", function()
    for _, call in ipairs{"os.exit(3)", "os.exit(3, true)"} do
      local result = run(2, "if rank == 1 then " .. call .. " end dist.barrier()")
      assert.equal(3, result.status)
      assert.equal("lutra: rank 1 ended with status 3\n", result.err)
    end
  end)

  it("is killed ends the job", function()
    local result = run(3, [[if rank == 2 then os.execute "kill -9 $PPID" end dist.barrier()]])
    assert.equal(137, result.status)
    assert.equal("lutra: rank 2 was ended by signal 9 (killed)\n", result.err)
  end)

  it("throws ends the job, with its traceback once", function()
    local result, file = run(3, [[
      if rank == 1 then error "bad batch" end
      dist.barrier()]])
    assert.equal(1, result.status)
    once(result.err, ("rank 1:\nlutra: %s:7: bad batch\n"):format(file))
    once(result.err, "Traceback")
  end)

  it("throws as all the others do ends the job, with one traceback", function()
    local result, file = run(3, "error 'same'")
    assert.equal(1, result.status)
    once(result.err, ("lutra: %s:7: same\n"):format(file))
    once(result.err, "Traceback")
  end)

  it("cannot make a collective, as all the others, ends the job with one traceback", function()
    local result, file = run(3, "dist.all_reduce(lt.ones(2, 3):t())")
    assert.equal(1, result.status)
    -- One of the ranks may be ended before it has shown its error.
    assert.matches("^ranks? %d[%d toand]*:\n", result.err)
    once(result.err, ("lutra: %s:7: all_reduce: expected a contiguous tensor for argument "
      .. "'tensor', got one of shape {3, 2} with other strides\n"):format(file))
    once(result.err, "Traceback")
  end)

  it("runs out of memory ends the job with Lua's error", function()
    local result = run(2, [[
      if rank == 1 then lt.empty(2^40, 2^10):fill_(1) end
      dist.barrier()]])
    assert.equal(1, result.status)
    once(result.err, "rank 1:\n")
    once(result.err, "out of memory")
    once(result.err, "Traceback")
  end)

  it("catches its error goes on", function()
    local result = run(2, [[
      if rank == 1 then pcall(error, "caught") end
      dist.all_reduce(x)
      print(x[1]:item())]])
    assert.equal(0, result.status, result.err)
    once(result.out, "rank 1: 4")
  end)

  it("hangs is named by the others after the timeout", function()
    local began = os.time()
    local result = run(3, [[
      if rank == 1 then os.execute "sleep 60" end
      dist.all_reduce(x)]], {timeout = 2, seconds = 40})
    assert.equal(1, result.status)
    has(result.err, "all_reduce")
    has(result.err, "rank 1")
    assert.is_true(os.time() - began < 30)
  end)

  it("calls another collective is named, with its line under detail", function()
    local text = [[
      if rank == 0 then
        dist.all_reduce(x)
      else
        dist.broadcast(x, 0)
      end]]
    local result = run(2, text)
    assert.equal(1, result.status)
    for _, name in ipairs{"all_reduce", "broadcast", "rank 0", "rank 1"} do
      has(result.err, name)
    end
    local file
    result, file = run(2, text, {environment = "LUTRA_DISTRIBUTED_DEBUG=detail"})
    assert.equal(1, result.status)
    local short = file:match "[^/]*$"
    has(result.err, short .. ":8")
    has(result.err, short .. ":10")
  end)

  it("calls collectives in another order is named", function()
    local result = run(3, [[
      local y = lt.ones(7)
      if rank == 2 then x, y = y, x end
      dist.all_reduce(x)
      dist.all_reduce(y)]])
    assert.equal(1, result.status)
    for _, name in ipairs{"rank 2", "{4}", "{7}"} do has(result.err, name) end
  end)

  it("ends too early is named by the others", function()
    local result = run(2, [[if rank == 0 then dist.all_reduce(x) end]], {timeout = 3, seconds = 40})
    assert.equal(1, result.status)
    has(result.err, "rank 1")
  end)
end)
