-- Near the end of memory every op gives a result or an error: neither Lutra nor a library that it
-- uses ends the process. Programs run under a limit of their address space, which they fill first.

local support = require "program_support"
local shell, quote = support.shell, support.quote

-- Fills memory with ever smaller tensors; after each size runs the ops. `%s`: what runs before.
local PROGRAM = [[
local n, keep = 200, {}
local function many(bytes)
  for _ = 1, 5000 do
    local ok, t = pcall(lt.empty, bytes // 4)
    if not ok or not pcall(rawset, keep, #keep + 1, t) then return end
  end
end
local a, m = lt.ones(n, n), lt.ones(200000)
local ops = {
  function() return a:matmul(a) end, function() return a:double():matmul(a:double()) end,
  function() return a:matmul(a:select(1, 1)) end, function() return a:int():matmul(a:int()) end,
  function() return lt.ones(8, n, n):bmm(lt.ones(8, n, n)) end, function() return m:exp() end,
  function() return m:sum() end, function() return m:cumsum(1) end, function() return m:sort() end,
  function() return a:t():contiguous() end, function() return a:softmax(1) end,
  function() return a:var(1) end, function() return a:var() end, function() return a:argmax(1) end,
  function() return a:tril() end, function() return a:logsumexp(1) end,
  function() return lt.randn(300, 300) end, function() return lt.cat({a, a}, 1) end,
  function() return a:narrow(2, 2, 100):contiguous() end, function() return m:to(lt.float64) end,
}
local good, bad, other = 0, 0
local function all()
  for i = 1, #ops do
    local ok, message = pcall(ops[i])
    if ok then good = good + 1 else bad = bad + 1 end
    if not ok and not message:find "memory" then other = message end
  end
end
%s
for bits = 23, 8, -5 do
  many(1 << bits)
  all()
end
keep = nil
collectgarbage()
print(good + bad, bad > 0, other)
]]

-- Runs it under a limit in MiB, with the text `before` in it.
local function run(limit, threads, before)
  local path = support.file("local lt = require 'lutra'\n" .. PROGRAM:format(before))
  local result = shell(("( ulimit -c 0; ulimit -v %d; OMP_NUM_THREADS=%d exec %s %s )"):format(
    limit * 1024, threads, quote(support.program), quote(path)))
  os.remove(path)
  return result
end

local function survives(threads, before)
  for limit = 60, 940, 110 do
    local result = run(limit, threads, before)
    local told = ("at %d MiB: status %d, %s%s"):format(limit, result.status, result.out, result.err)
    -- memory may be too short for the script itself, which Lua reports
    local short = result.status == 1 and result.err:find("not enough memory", 1, true)
    assert(short or result.status == 0 and result.out:find "^%d+\ttrue\tnil\n", told)
  end
end

describe("near the end of memory", function()
  if os.getenv "LUTRA_TEST_DEBUG" then
    return it("ops", function() pending "sanitizers need address space" end)
  end

  it("ops give results or errors with one thread", function() survives(1, "") end)
  it("and with several threads, which start there", function() survives(2, "") end)
  it("and with OpenBLAS and threads started before", function() survives(2, "all()") end)

  it("an inverse, which needs OpenBLAS, says what it cannot have", function()
    local result = run(300, 2, [[
      local ok, message = pcall(function() return lt.linalg.inv(a) end)
      io.write(tostring(ok), " ", message, "\n") os.exit()]])
    assert.equal("", result.err)
    support.has(result.out, "false ")
    support.has(result.out, "inv: out of memory")
  end)

  -- The library of the line editor ends the process when it gets no memory.
  it("the prompt reads the next cells", function()
    if not support.has_terminal() then pending "there is no Python" end
    local result = support.terminal({"expect [1]>",
      "send t, u = {}, nil for _, n in ipairs {1000000, 10000, 100, 1} do "
        .. "while pcall(function() t[#t + 1] = lt.ones(n) end) do end end "
        .. "pcall(function() for i = 1, 1e9 do u = {u, i .. 'abc'} end end)\\r",
      "expect [2]>", "send x = '" .. ("y"):rep(3000) .. "'\\r", "expect [3]>",
      "send t, u = nil\\r", "expect [4]>", "send collectgarbage()\\r", "expect [5]>",
      "send 6 * 7\\r", "expect 42",
      "send \\x04"}, "OMP_NUM_THREADS=1 sh -c 'ulimit -c 0; ulimit -v 460800; exec \"$@\"' sh",
      "--no-init")
    assert(result.status == 0, result.out)
  end)
end)
