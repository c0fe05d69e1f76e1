-- Tensors are collected by what they weigh: no program here calls the collector.
local lt = require "lutra"


-- Runs code in a fresh process of this same program (stock Lua or lutra) and returns its
-- peak resident memory in MB, read by the process itself at its end, and what it printed.
local function run(code, limit)
  local interpreter = arg[-1] or "lua5.4"
  local i = -1
  while arg[i - 1] do
    i = i - 1
    interpreter = arg[i]
  end
  local file = os.tmpname()
  local handle = assert(io.open(file, "w"))
  handle:write(("package.path = %q\npackage.cpath = %q\n"):format(package.path, package.cpath), [[
local lt = require "lutra"
local function peak()
  for line in io.lines "/proc/self/status" do
    local kb = line:match "^VmHWM:%s*(%d+) kB"
    if kb then return tonumber(kb) // 1024 end
  end
end
]], code, "\nprint(peak())\n")
  handle:close()
  local before = limit and ("ulimit -v %d; "):format(limit) or ""
  local pipe = assert(io.popen(("%s'%s' '%s' 2>&1"):format(before, interpreter, file)))
  local text = pipe:read "a"
  pipe:close()
  os.remove(file)
  return tonumber(text:match "(%d+)%s*$") or error(text), text
end

local has_proc = io.open "/proc/self/status"
if has_proc then has_proc:close() end
-- Under AddressSanitizer freed memory is kept for a while: its peak says nothing.
local measure = has_proc and lt.info().build ~= "debug" and it or pending

describe("the memory of very many small tensors", function()
  -- what the process holds, in MB: before, with n tensors, and after they were collected
  local code = [[
    local n, mode = %d, %q
    collectgarbage(mode)
    local function held()
      local file = assert(io.open "/proc/self/statm")
      local _, pages = file:read("n", "n")
      file:close()
      return pages * 4096 / (1 << 20)
    end
    for round = 1, 2 do
      local before = held()
      local list = {}
      for i = 1, n do list[i] = lt.ones(1) end
      local full = held()
      list = nil
      collectgarbage()
      collectgarbage()
      print("held", before, full, held())
      local x = lt.ones(3) -- what is kept works on
      assert((x + x):sum():item() == 6)
      for _ = 1, 20 do collectgarbage() end
    end
  ]]

  for _, mode in ipairs {"incremental", "generational"} do
    measure("goes back to the system after a collection, collector " .. mode, function()
      local _, text = run(code:format(600000, mode))
      local rounds = 0
      for before, full, after in text:gmatch "held%s+([%d.]+)%s+([%d.]+)%s+([%d.]+)" do
        rounds = rounds + 1
        assert.is_true(full - before > 100, text) -- it was much
        assert.is_true(after - before < (full - before) / 4, text)
      end
      assert.equal(2, rounds, text)
    end)
  end
end)

describe("peak memory", function()
  measure("stays under 300 MB through 100,000 temporaries of 1 MB", function()
    assert.is_true(run [[
      for _ = 1, 100000 do
        local y = lt.ones(1 << 18)
        assert(lt.memory_live() < 300 << 20)
      end
    ]] < 300)
  end)

  measure("of dropped results stays near what the program uses", function()
    run [[
      local x, before, most = lt.ones(10000), lt.memory_live(), 0
      for _ = 1, 10000 do
        local _ = x + 1
        most = math.max(most, lt.memory_live())
      end
      assert(most - before < 16 << 20, most - before)
    ]]
  end)

  measure("of dropped conversions and copies stays near what the program uses", function()
    run [[
      local x = lt.ones(10000)
      local mask, like = x:gt(0), lt.ones{1, dtype = "float64"}
      for name, f in pairs {
        cast = function() return x:long() end,
        to = function() return x:to "float64" end,
        type_as = function() return x:type_as(like) end,
        where = function() return x:where(mask, 0) end,
        nonzero = function() return x:nonzero() end,
        complex = function() return lt.complex(x, x) end,
      } do
        collectgarbage()
        local before, most = lt.memory_live(), 0
        for _ = 1, 2000 do
          f()
          most = math.max(most, lt.memory_live())
        end
        assert(most - before < 16 << 20, name)
      end
    ]]
  end)

  -- A complete collection is rare beside a large heap. So results that two steps of the
  -- generational collector find in use, which only it frees, must be few. The steps are spaced by
  -- measured times, so the least of several peaks counts, each of 20 times as many bytes.
  measure("of an expression's results stays low beside a large heap of Lua", function()
    run [[
      local list = {}
      for i = 1, 500000 do list[i] = {i} end
      local x, y, least = lt.ones(100000), lt.ones(100000), math.huge
      for _ = 1, 4 do
        local most = 0
        for _ = 1, 600 do
          local _ = 0.5 * x * (1 + ((x + 0.04 * (x * x * x)) * 0.8):tanh())
          most = math.max(most, lt.memory_live())
        end
        least = math.min(least, most)
      end
      assert(least < 100 << 20, least)
    ]]
  end)

  measure("is bounded anew after a large tensor was freed", function()
    run [[
      local large = lt.empty(64 << 20)
      local x = lt.ones(1 << 16)
      local _ = x + 1
      large:free()
      local before, most = lt.memory_live(), 0
      for _ = 1, 2000 do
        local _ = x + 1
        most = math.max(most, lt.memory_live())
      end
      assert(most - before < 24 << 20, most - before)
    ]]
  end)

  for _, mode in ipairs {"incremental", "generational"} do
    measure("stays under 300 MB when each is computed, collector " .. mode, function()
      assert.is_true(run(("collectgarbage %q"):format(mode) .. [[
        local x = lt.ones(1 << 18)
        for _ = 1, 1000 do local y = (x + 1) * 2 end
      ]]) < 300)
    end)

    measure("stays low in a training loop, collector " .. mode, function()
      assert.is_true(run(("collectgarbage %q"):format(mode) .. [[
        local w = lt.ones{1 << 18, requires_grad = true}
        for _ = 1, 400 do
          local loss = ((w * 2):tanh() * w):sum()
          loss:backward()
          w.grad = nil
        end
      ]]) < 300)
    end)
  end

  measure("stays low where graphs are dropped without backward", function()
    assert.is_true(run [[
      local w = lt.ones{1 << 18, requires_grad = true}
      for _ = 1, 400 do local loss = ((w * 2):tanh() * w):sum() end
    ]] < 300)
  end)

  measure("stays low with a million small tensors", function()
    assert.is_true(run [[
      local x = lt.ones(1)
      for _ = 1, 1000000 do local y = x + 1 end
    ]] < 150)
  end)

  measure("stays low where functions of one's own save their results", function()
    assert.is_true(run [[
      local Exp = lt.autograd.Function:extend "Exp"
      function Exp.forward(ctx, x)
        local y = x:exp()
        ctx:save_for_backward(y)
        return y
      end
      function Exp.backward(ctx, g) return g * ctx:saved() end
      local w = lt.ones{1 << 18, requires_grad = true}
      for _ = 1, 400 do local y = Exp(w) end
    ]] < 300)
  end)
end)

describe("freeing", function()
  -- A large tensor, so that nothing else that happens hides it.
  local size = 1 << 22

  -- Garbage of other specs must not go in between.
  before_each(function()
    collectgarbage()
    collectgarbage()
  end)

  it("is done at once by free", function()
    local before = lt.memory_live()
    local x = lt.zeros{size, dtype = "uint8"}
    assert.is_true(lt.memory_live() >= before + size)
    x:free()
    assert.is_true(lt.memory_live() < before + size)
    assert.equal("tensor (freed)", tostring(x))
    x:free()
  end)

  it("leaves other views alone", function()
    local x = lt.arange(4)
    local y = x[{{2, 3}}]
    y:free()
    assert.same({1, 2, 3, 4}, x:totable())
  end)

  it("is done by <close>, on errors too", function()
    local before = lt.memory_live()
    pcall(function()
      local x <close> = lt.zeros{size, dtype = "uint8"}
      error(tostring(x.shape))
    end)
    assert.is_true(lt.memory_live() < before + size)
  end)

  it("is done by the collector, views keeping their base's memory", function()
    local view
    do
      local x = lt.arange(10)
      view = x[{{3, 4}}]
    end
    collectgarbage()
    collectgarbage()
    assert.same({3, 4}, view:totable())
  end)

  it("survives finalizers that use tensors", function()
    local seen
    do
      local t = setmetatable({x = lt.ones(3)}, {__gc = function(self)
        seen = (self.x + 1):sum():item()
      end})
      assert.equal(3, #t.x)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(6, seen)
  end)
end)

describe("too much memory", function()
  measure("is looked for among the garbage first", function()
    -- 300 MB of address space to spare: two tensors of 200 MB fit only one after the other.
    local code = [[
      local warm = lt.ones(64, 64):matmul(lt.ones(64, 64))
      do local x = lt.empty{200 << 20, dtype = "uint8"} end
    ]]
    local _, text = run(code .. [[
      for line in io.lines "/proc/self/status" do
        local kb = line:match "^VmPeak:%s*(%d+) kB"
        if kb then print("address space " .. kb) end
      end
    ]])
    local space = tonumber(text:match "address space (%d+)")
    local full = code .. [[
      local y = lt.empty{200 << 20, dtype = "uint8"}
      print("got " .. #y)
    ]]
    _, text = run(full, space + (100 << 10))
    assert.matches("got 209715200", text, 1, true)
    -- That there is no room for both, so that the above says something:
    local kept = full:gsub("do local x", "local x; do x")
    _, text = run("print(pcall(load " .. ("%q"):format("local lt = ... " .. kept) .. ", lt))",
      space + (100 << 10))
    assert.matches("memory", text, 1, true)
  end)

  it("is an error that names the function, and the session continues", function()
    local ok, message = pcall(lt.zeros, 1 << 50)
    assert.is_false(ok)
    assert.matches("zeros: ", message, 1, true)
    assert.matches("memory", message, 1, true)
    assert.equal(2, (lt.ones(2)):sum():item())
  end)
end)

