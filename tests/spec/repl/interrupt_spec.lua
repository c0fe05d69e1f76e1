--- Ctrl-C at the prompt, and running out of memory there. Each case is a cell that would go on for
-- more than the 20 seconds that a test waits; after it the prompt must answer. How soon it does is
-- measured by bench/prompt.py; that each kernel gives up, by tests/c/test_interrupt.c.

local support = require "program_support"
local quote = support.quote

local has = support.has

-- A session on a terminal: `cells` are entered one after the other, then `steps` run.
local function session(cells, steps, environment, arguments)
  local all = {}
  for i, cell in ipairs(cells) do
    all[#all + 1] = ("expect [%d]> "):format(i)
    all[#all + 1] = "send " .. cell:gsub("\\", "\\\\") .. "\\r"
  end
  for _, step in ipairs(steps) do all[#all + 1] = step end
  local home = support.folder()
  local result = support.terminal(all, ("TERM=dumb HOME=%s XDG_STATE_HOME=%s XDG_CONFIG_HOME=%s %s")
    :format(home, home, home, environment or ""), arguments)
  support.remove(home)
  assert.equal(0, result.status, result.out)
  return result.out
end

-- Enters `before`, then `cell`, which says "go" and goes on; stops it; the prompt must work.
local function stops(before, cell, options)
  options = options or {}
  local cells = {table.unpack(before)}
  cells[#cells + 1] = options.value
    and "(function() io.write('g', 'o\\n'); io.flush(); return " .. cell .. " end)()"
    or "io.write('g', 'o\\n'); io.flush(); " .. cell
  local n = #cells
  local steps = {[[expect go\r\n]], "pause " .. (options.pause or 0.3)}
  for _ = 1, options.presses or 1 do steps[#steps + 1] = [[send \x03]] end
  for _, step in ipairs {
    "expect interrupted",
    ("expect [%d]> "):format(n + 1),
    [[send lt.ones(41):sum() + 1\r]],
    "expect tensor(42.)",
    ("expect [%d]> "):format(n + 2),
    [[send \x04]],
  } do steps[#steps + 1] = step end
  return session(cells, steps, options.environment, options.arguments)
end

local function case(name, before, cell, options)
  it(name, function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    stops(before, cell, options)
  end)
end

describe("Ctrl-C stops Lua code", function()
  case("in a loop", {}, "while true do end")
  case("in a coroutine", {}, "coroutine.wrap(function() while true do end end)()")
  case("in a loop that catches errors, the second time", {},
    "while true do pcall(function() while true do end end) end", {presses = 2})
  case("in a callback of C", {},
    "while true do table.sort({3, 1, 2}, function(a, b) return a < b end) end")
  case("in a <close> handler", {}, "local x <close> = setmetatable({}, {__close = function() "
    .. "while true do end end})")
  case("in require", {"package.preload.slow = function() while true do end end"}, "require 'slow'")
  case("in a metamethod that printing calls", {},
    "setmetatable({}, {__tostring = function() while true do end end})", {value = true})
  case("in io.read", {}, "io.read()")
  case("that waits for another program", {}, "while true do os.execute 'sleep 60' end")
end)

describe("Ctrl-C stops tensors' work", function()
  case("in one product", {"x = lt.ones({4000, 4000}, {dtype = 'int64'})"}, "local _ = x:mm(x)")
  case("in many small operations", {"x = lt.ones(10)"}, "while true do x:add(1) end")
  case("in a compiled function", {"c = lt.compile(function(a) return (a * 2):tanh():sum() end)",
    "x = lt.ones{1 << 20, requires_grad = true}"}, "while true do c(x):backward() end")
  case("that a compiled function records", {"x = lt.ones(2)",
    "c = lt.compile(function(a) while true do a = a + 1 end end)"}, "c(x)")
  case("in the search for what ops accept", {}, "while true do lt.coverage() end")
  case("in a table that becomes a tensor", {"t = {}; for i = 1, 3000000 do t[i] = i end"},
    "while true do lt.tensor(t) end")
  case("in a tensor that becomes a table", {"x = lt.ones(1 << 21)"},
    "while true do x:totable() end")
  case("in a tensor's text", {"x = lt.rand(1 << 20); lt.set_printoptions{profile = 'full'}"},
    "while true do local _ = tostring(x) end")
  case("in a backward", {"x = lt.ones(1000):requires_grad_()"},
    "while true do local y = x; for _ = 1, 20000 do y = y * 1.0 end; y:sum():backward() end")
  case("in a DataLoader", {"d = lt.data.TensorDataset(lt.rand(1000, 4))",
    "l = lt.data.DataLoader{d, batch_size = 2, shuffle = true}"},
    "while true do for _ in l:iter() do end end")
end)

describe("Ctrl-C stops a wait for a device", function()
  local emulated = {arguments = "--emulate cuda:1", environment = "OMP_NUM_THREADS=2"}
  -- Work for a minute and more, queued.
  local before = {"x = lt.rand({1 << 20}, {device = 'cuda'}); lt.cuda.synchronize()",
    "for _ = 1, 400 do x:sort() end"}
  for _, row in ipairs {
    {"synchronize", "lt.cuda.synchronize()"},
    {"item", "x:sum():item()"},
    {"a copy to the host", "x:cpu()"},
    {"a copy from the host", "lt.rand(1 << 20):cuda()"},
    {"an event", "e = lt.cuda.Event(); e:record(); e:synchronize()"},
    {"printing", "x", value = true},
    {"giving cached memory back", "lt.cuda.empty_cache()"},
    {"a loop that catches errors, the second time",
      "while true do pcall(lt.cuda.synchronize) end", 2},
  } do
    case(row[1], before, row[2], {arguments = emulated.arguments,
      environment = emulated.environment, presses = row[3], value = row.value})
  end

  it("and the device is usable", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    session({
      "x = lt.rand({1 << 18}, {device = 'cuda'})",
      "for _ = 1, 90 do x:sort() end; io.write('g', 'o\\n'); lt.cuda.synchronize()",
    }, {
      [[expect go\r\n]], "pause 0.1", [[send \x03]], "expect interrupted", "expect [3]> ",
      [[send lt.ones(41):cuda():sum():item() + 1\r]], "expect 42", "expect [4]> ", [[send \x04]],
    }, emulated.environment, emulated.arguments)
  end)
end)

describe("Ctrl-C", function()
  it("says the third time how to end the program", function()
    if not support.has_terminal() then
      pending "needs python3"
      return
    end
    -- No hook runs in a finalizer: nothing can stop it but the end of the program.
    local result = support.terminal({
      "expect [1]> ",
      [[send setmetatable({}, {__gc = function() print 'go'; while true do end end}); ]]
        .. [[collectgarbage()\r]],
      [[expect go\r\n]],
      [[send \x03]], "pause 0.1", [[send \x03]], "pause 0.1", [[send \x03]],
      "expect ends the program",
      [[send \x1c]], -- Ctrl-\
    }, "TERM=dumb")
    assert.is_true(result.status >= 128 and result.status ~= 99 + 128, result.out)
  end)
end)

describe("Without memory", function()
  -- As many KiB of address space as the program may have.
  local function limited(input)
    return support.shell("ulimit -v 1500000; OMP_NUM_THREADS=1 " .. quote(support.program) .. " -i",
      input)
  end

  it("for a string or a table the prompt continues", function()
    if os.getenv "LUTRA_TEST_DEBUG" then return pending "sanitizers need address space" end
    local result = limited [[
local s = ("x"):rep(1 << 20); while true do s = s .. s end
local t = {}; for i = 1, 1 << 40 do t[i] = {i} end
local list; while true do list = {list} end
lt.ones(41):sum():item() + 1
]]
    has(result.out, "42")
    local _, count = result.err:gsub("not enough memory", "")
    assert.equal(3, count, result.err)
    assert.equal(0, result.status)
  end)

  it("for a tensor the prompt continues, and the message names it", function()
    if os.getenv "LUTRA_TEST_DEBUG" then return pending "sanitizers need address space" end
    local result = limited [[
x = lt.ones(1 << 40)
local t = {}; while true do t[#t + 1] = lt.ones(1 << 24) end
lt.ones(41):sum() + 1
]]
    has(result.err, "out of memory")
    has(result.err, "cell[2]:1")
    has(result.out, "tensor(42.)")
  end)
end)

describe("A device's error at the prompt", function()
  local function emulated(input) return support.session(input, "--emulate cuda:1") end

  it("names the cell of the call, however late it is found", function()
    local result = emulated [[
x = lt.arange(1, 5):cuda()
y = x:index_select(1, lt.tensor{9}:cuda())
2 + 2
y
x:sum():item()
]]
    has(result.out, "4")
    has(result.err, "got 9 at index {1}")
    has(result.err, "the call was at cell[2]:1")
    has(result.err, "while printing the result of cell[4]")
    has(result.out, "15")
  end)

  it("is not hidden in a table that is printed", function()
    local result = emulated [[
x = lt.arange(1, 5):cuda()
{x:index_select(1, lt.tensor{9}:cuda())}
]]
    has(result.err, "error: ")
    has(result.err, "got 9 at index {1}")
  end)
end)
