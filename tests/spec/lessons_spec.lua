-- Lessons: opening, mending, checking, hints, progress; files with errors; and each of the lessons
-- that come with Lutra: what it starts with fails, plausible attempts fail and are told what was
-- seen, the solution passes.

local support = require "program_support"
local screen = require "screen_support"
local quote = support.quote

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

local home
before_each(function() home = support.folder() end)
after_each(function() support.remove(home) end)

-- Runs a prompt with a home of its own. Returns {out, err, status}.
local function session(input, arguments, environment)
  return support.shell(("env -u LUTRA_LESSONS -u CUDA_VISIBLE_DEVICES HOME=%s XDG_STATE_HOME=%s "
    .. "XDG_CONFIG_HOME=%s %s %s --no-init %s"):format(home, home .. "/state", home .. "/config",
      environment or "", quote(support.program),
      arguments or "--emulate cuda:2,memory=256MiB -i"), input)
end

local function has(text, ...)
  local flat = text:gsub("%s+", " ")
  for _, wanted in ipairs {...} do
    assert.is_truthy(flat:find(wanted, 1, true), ("%q is not in:\n%s"):format(wanted, text))
  end
end

local function write(path, text)
  assert(os.execute("mkdir -p " .. quote(path:match "^(.*)/")))
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- A lesson of a teacher's, as text; `fields` replaces some of it.
local function own_lesson(fields)
  local parts = {
    title = '"Twice"', goal = '"twice(x) is 2 * x"', text = '"Multiply."',
    start = '"function twice(x) return x end"', hints = '{"Use 2 * x."}',
    check = [[function(env, lt, see)
      local got = see.func(env, "twice")(21)
      if got ~= 42 then return false, "twice(21) is " .. tostring(got) end
      return true, "twice(21) is 42"
    end]],
    solution = '"function twice(x) return 2 * x end"',
  }
  for name, value in pairs(fields or {}) do parts[name] = value end
  local lines = {}
  for name, value in pairs(parts) do lines[#lines + 1] = ("%s = %s,"):format(name, value) end
  return "return {" .. table.concat(lines, "\n") .. "}"
end

-- How many lessons come with Lutra.
local function count()
  local pipe <close> = assert(io.popen("ls " .. quote(root .. "lib/lutra/lessons") .. "/*.lua"))
  local n = 0
  for _ in pipe:lines() do n = n + 1 end
  return n
end

describe(":lesson", function()
  it("opens the first lesson: title, goal, text, the code to mend, which is entered", function()
    local out = session(":lesson\nplace().device\n").out
    has(out, ("Lesson 1 of %d: Place it"):format(count()), "Goal: place() gives",
      " function place()", ":check looks at what it does")
    has(out, '"cpu"')
  end)

  it("checks by what the code did; the next lesson comes when it is done", function()
    local result = session(":lesson\n:check\nfunction place() return lt.zeros{1000, 1000, "
      .. 'device = "cuda:0"} end\n:check\n:next\n')
    has(result.out, "not yet: place() gives a tensor on cpu", ":hint helps.",
      "done: it was made on cuda:0", ("1 of %d lessons are done"):format(count()),
      ("Lesson 2 of %d"):format(count()))
    assert.equal("", result.err)
  end)

  it("takes what is mended from local variables, too", function()
    has(session(":lesson\nlocal function place() return lt.zeros{1000, 1000, device = 'cuda'} end\n"
      .. ":check\n").out, "done: ")
  end)

  it("keeps progress; a lesson left half-way comes first", function()
    session ":lesson 3\nprediction = {out = 2, home = 3}\n:check\n:lesson 2\n"
    local out = session(":lesson\n:lesson list\n").out
    has(out, "You left lesson 2 half-way; it starts again.", "Lesson 2 of",
      "2 open Mend the mismatch", "3 done Count the transfers")
    has(session(":lesson 2\n:lesson 3\n").out, "Lesson 2 is left half-way; :lesson 2 comes back")
  end)

  it("starts anew, with a note, when the record of progress is corrupted", function()
    write(home .. "/state/lutra/lessons", "done 01_place_it\n\1\2 what\n")
    local result = session ":lesson\n:lesson list\n"
    has(result.out, "makes no sense at", "starts anew", "Lesson 1 of")
    assert.equal("open 01_place_it\n", read(home .. "/state/lutra/lessons"))
  end)

  it("goes on without a record where none can be written", function()
    write(home .. "/state", "no folder")
    has(session(":lesson\n:lesson 2\n").out, "progress is not kept: ", "Lesson 2 of")
  end)

  it("says what is wrong with a number, a word, and commands without a lesson", function()
    local err = session(":lesson 99\n:lesson x\n:check\n:hint\n:next\n:lesson 1\n:check now\n"
      .. ":hint please\n:next 5\n:lesson 0\n").err
    has(err, "lesson: there is no lesson 99; they are 1 to ", 'lesson: "x" is no number',
      "check: no lesson is open; :lesson opens the next one", "hint: no lesson is open",
      'check: takes no argument, not "now"', 'hint: takes no argument but solution, not "please"',
      'next: takes no argument, not "5"', "there is no lesson 0")
  end)

  it("gives its hints one by one, and a solution when asked", function()
    local out = session(":lesson\n:hint\n:hint\n:hint\n:hint solution\n").out
    has(out, "hint 1 of 2: ", "hint 2 of 2: ", "There are no more hints; :hint solution",
      'return lt.zeros{1000, 1000, device = "cuda:0"}')
  end)

  it("says what to start where there are too few devices", function()
    local result = session(":lesson\n1 + 1\n", "-i", "CUDA_VISIBLE_DEVICES=")
    if result.err == "" then return pending "there is a GPU here" end
    has(result.err, 'lesson: "Place it" wants 1 GPU, here is none.',
      "lutra --emulate cuda:2,memory=256MiB --lesson")
    has(result.out, "2")
  end)

  it("tells of an error in the user's code, with its line, and goes on", function()
    local result = session(":lesson\nfunction place()\n  error 'nothing'\nend\n:check\n1 + 1\n")
    has(result.out, "not yet: it stopped: cell[1]:2: nothing")
    has(result.out, "2")
    has(session(":lesson\nplace = 5\n:check\n").out, 'there is no function "place" any more, it is '
      .. "a number; :lesson enters it again")
  end)
end)

describe("lutra --lesson", function()
  it("opens the first lesson on emulated devices, or lesson N", function()
    local result = session(":devices\n", "--lesson")
    has(result.out, "Lesson 1 of")
    has(session("", "--lesson 2").out, "Lesson 2 of")
    has(session("", "--lesson=3").out, "Lesson 3 of")
    local one = session("", "--emulate cuda:1 --lesson 7")
    has(one.err, '"A pipeline over two devices" wants 2 GPUs, here is 1.')
    has(session("", "--emulate cuda:1 --lesson 2").out, "Lesson 2 of")
  end)

  it("says what is wrong with its number", function()
    local result = session("1 + 1\n", "--lesson 99")
    has(result.err, "lesson: there is no lesson 99")
    has(result.out, "2")
    assert.equal(2, session("", "--lesson=x").status)
  end)
end)

describe("a teacher's lesson", function()
  local function own(text, name) write(home .. "/own/" .. (name or "twice.lua"), text) end
  local function run(input) return session(input, nil, "LUTRA_LESSONS=" .. home .. "/own") end

  it("stands behind the others, and works as they do", function()
    own(own_lesson())
    local n = count() + 1
    local mended = "twice = function(x) return x + x end\n:check\n"
    local result = run((":lesson %d\n:check\n"):format(n) .. mended)
    has(result.out, ("Lesson %d of %d: Twice"):format(n, n), "not yet: twice(21) is 21",
      "done: twice(21) is 42")
  end)

  it("is what docs/lessons.md shows", function()
    local text = read(root .. "docs/lessons.md"):match "```lua\n(.-)```"
    own(text)
    local mended = "function twice(x) return x * 2 end\n:check\n"
    local result = run((":lesson %d\n:check\n"):format(count() + 1) .. mended)
    has(result.out, "not yet: it made 2 copies, at lesson", "done: nothing was copied")
  end)

  it("is found in the folder of the configuration", function()
    write(home .. "/config/lutra/lessons/twice.lua", own_lesson())
    has(session(":lesson list\n").out, "Twice")
  end)

  it("has setup called before and teardown after", function()
    own(own_lesson{setup = "function(lt) print('set up', lt.is_tensor(1)) end",
      teardown = "function() print 'torn down' end"})
    has(run((":lesson %d\n:lesson 1\n"):format(count() + 1)).out, "set up false", "torn down")
  end)

  it("with an error is told with its file, and the prompt and other lessons go on", function()
    own("return {title = ", "a_syntax.lua")
    own("error 'no luck'", "b_raises.lua")
    own("return 5", "c_number.lua")
    own(own_lesson{check = "nil"}, "d_check.lua")
    own(own_lesson{hints = "{5}"}, "e_hint.lua")
    own(own_lesson{start = '"x = = 1"'}, "f_start.lua")
    own(own_lesson{setup = "function() error 'no data' end"}, "g_setup.lua")
    own(own_lesson{check = "function() error 'my fault' end"}, "h_checker.lua")
    own(own_lesson(), "i_right.lua")
    local n = count()
    local input = {}
    for i = 1, 9 do input[i] = (":lesson %d"):format(n + i) end
    local result = run(table.concat(input, "\n") .. "\n:lesson list\n1 + 1\n"
      .. (":lesson %d\n:check\n"):format(n + 8))
    has(result.err, ("lesson %d, "):format(n + 1), "a_syntax.lua:1:", "no luck",
      "it returns a number, it wants to return a table",
      'its field "check" is a nil, it wants a function', "hint 1 is a number, it wants a string",
      'its field "start" is no Lua', "lesson: setup failed in ", "no data")
    has(result.out, "error", "c_number.lua: it returns a number", "h_checker.lua:", "my fault")
  end)

  it("with an error is left out by :next", function()
    own("return {", "a.lua")
    own(own_lesson(), "b.lua")
    local result = run((":lesson %d\n:next\n:next\n"):format(count()))
    has(result.out, "has an error and is left out", "Twice",
      "This was the last lesson; lesson 1 is")
  end)

  it("is not looked for in what is no folder", function()
    has(session(":lesson list\n", nil, "LUTRA_LESSONS=/nowhere").out,
      "LUTRA_LESSONS names /nowhere, which is no folder")
  end)
end)

-- ---- the lessons themselves

-- What is wrong but plausible, and parts of what is to be said of it.
local attempts = {
  ["01_place_it"] = {
    {"function place() return lt.zeros(1000, 1000):to 'cuda:0' end",
      "made elsewhere and copied: 1 copy, 3.8 MiB", "cell[1]:1"},
    {"function place() lt.zeros{1000, 1000, device = 'cuda:0'} end", "place() gives a nil"},
    {"function place() return lt.ones{1000, 1000, device = 'cuda:0'} end",
      "not all of the numbers"},
  },
  ["02_mend_the_mismatch"] = {
    {"function predict(x, w) return x:cpu():matmul(w) + lt.ones(4) end",
      "x was on cuda:0, but the result is on cpu"},
    {"function predict(x, w) return x:to'cuda:0':matmul(w:to'cuda:0') + "
      .. "lt.ones{4, device = 'cuda:0'} end", "x was on cuda:1, but the result is on cuda:0"},
    {"function predict(x, w) return (x:cpu():matmul(w) + lt.ones(4)):to(x.device) end",
      "copied away from cuda:0 (1 copy), at cell[1]:1"},
  },
  ["03_count_the_transfers"] = {
    {"prediction = {out = 1, home = 3}", "you predict 1 out to the GPU; the trace saw 2",
      "lesson 3:2, lesson 3:5"},
    {"prediction = {out = 2, home = 1}", "You predict 1 home to the host; the trace saw 3"},
    {"prediction = 5", "prediction is to be a table"},
  },
  ["04_out_of_the_loop"] = {
    {"function total(m, batches) local l = {} for i, x in ipairs(batches) do "
      .. "l[i] = m(x):sum():cpu() end return lt.stack(l):sum():item() end",
      "the program waited for the GPU 10 times, at cell[1]:1 (10 times)"},
    {"function total(m, batches) return m(lt.cat(batches)):sum() end", "gives a tensor"},
    {"function total(m, batches) return m(batches[1]):sum():item() end",
      "the sum over all batches is"},
  },
  ["05_fit_in_memory"] = {
    {"function energy(x) x:mul_(3) x:mul_(x) return x:sum():item() end", "x itself was changed"},
    {"function energy(x) return (x * 3):mul_(x):mul_(3):sum():item() end",
      "only 0 B of 96 MiB were sent to cuda:0"},
    {"function energy(x) return x:to 'cuda:0':sum():item() end", "the sum of (3 * x)^2 is"},
  },
  ["06_overlap"] = {
    {"function run(m, b) local r = {} for i, x in ipairs(b) do "
      .. "r[i] = m(x:to{'cuda:0', non_blocking = true}) end return r end",
      "4 copies came from memory that is not pinned, at cell[1]:1 (4 times)"},
    {"function run(m, b) local r = {} for i, x in ipairs(b) do "
      .. "r[i] = m(x:pin_memory():to{'cuda:0', non_blocking = true}) end return r end",
      "nothing waits, but 4 copies are on the stream that computes, at cell[1]:1 (4 times)"},
    {"function run(m, b) local c, r = lt.cuda.Stream(0), {} for i, x in ipairs(b) do "
      .. "local p = x:pin_memory() r[i] = m(lt.cuda.with_stream(c, function() "
      .. "return p:to{'cuda:0', non_blocking = true} end)) end return r end",
      "on cuda:0; did the computing wait for the copy?"},
    {"function run(m, b) return m(b[1]:to 'cuda:0') end", "a table of 4 results"},
  },
  ["07_pipeline"] = {
    {"function pipeline(a, b, x) return b(a(x):to 'cuda:1') end",
      "went to cuda:1 in 1 piece, not in 4"},
    {"function pipeline(a, b, x) local h, r = {}, {} for i, p in ipairs(x:chunk(4)) do "
      .. "h[i] = a(p):to 'cuda:1' end for i, p in ipairs(h) do r[i] = b(p) end "
      .. "return lt.cat(r) end", "4 pieces went over, but cuda:1 was given work only when"},
    {"function pipeline(a, b, x) local r = {} for i, p in ipairs(x:chunk(4)) do "
      .. "r[i] = b(a(p):to 'cuda:1') lt.cuda.synchronize(1) end return lt.cat(r) end",
      "the program waited 4 times, at cell[1]:1 (4 times)"},
  },
  ["08_any_device"] = {
    {"function scale(x) return x * lt.tensor({1.0, 2, 3}, {device = lt.best_device()}) end",
      "with x on cpu: "},
    {"function scale(x) return (x:double() * lt.tensor({1, 2, 3}, {device = x.device})):float() "
      .. "end", "more than 4 bytes a number", "cell[1]:1"},
    {"function scale(x) return (x:to 'cuda:0' * lt.tensor({1.0, 2, 3}, {device = 'cuda:0'}))"
      .. ":to(x.device) end", "x was on cpu, but something was done on another GPU"},
  },
  ["09_meta"] = {
    {"function bytes_to_train(make) local n = 0 for p in lt.with_device('meta', make):parameters() "
      .. "do n = n + p.nbytes end return n end", "the parameters of a small model alone"},
    {"function bytes_to_train(make) local n = 0 for p in make():parameters() "
      .. "do n = n + p.nbytes end return 4 * n end", "memory was allocated 4 times, at "},
    {"function bytes_to_train(make) return 5 end", "it gives 5; its parameters are 3068 bytes"},
  },
  ["10_clean_lint"] = {
    {"function train() return 1 end", "the mean loss is 1.0000, it was"},
    {"function train() end", "train gives a nil"},
    {"function train(model, batches, epochs) local o, n = "
      .. "optim.AdamW(model:parameters(), {lr = 0.05}), 0 local b = {} for i, v in ipairs(batches) "
      .. "do b[i] = {v[1]:to 'cuda:0', v[2]:to 'cuda:0'} end for _ = 1, epochs do for _, v in "
      .. "ipairs(b) do local l = F.cross_entropy(model(v[1]), v[2]) o:zero_grad() l:backward() "
      .. "o:step() n = n + l:item() end end return n / 15 end",
      "the lint has 1 finding", "cell[1]:1: T1", "15 times"},
  },
}

describe("each lesson", function()
  local pipe <close> = assert(io.popen("ls " .. quote(root .. "lib/lutra/lessons")))
  local number = 0
  for file in pipe:lines() do
    number = number + 1
    local n, name = number, file:match "^(.*)%.lua$"
    it(("works: %s"):format(name), function()
      local lesson = dofile(root .. "lib/lutra/lessons/" .. file)
      local start = session((":lesson %d\n:check\n"):format(n))
      assert.equal("", start.err)
      has(start.out, ("Lesson %d of %d: %s"):format(n, count(), lesson.title), "not yet: ")
      for line in start.out:gmatch "[^\n]+" do
        assert.is_true(#line <= 100, "a line is long: " .. line)
      end
      assert.is_truthy(attempts[name], "no wrong attempts at " .. name)
      for _, attempt in ipairs(attempts[name]) do
        local result = session((":lesson %d\n%s\n:check\n"):format(n, attempt[1]))
        has(result.out, "not yet: ", table.unpack(attempt, 2))
        assert.equal("", result.err)
      end
      local result = session((":lesson %d\n%s:check\n"):format(n, lesson.solution))
      has(result.out, "done: ")
      assert.equal("", result.err)
    end)
  end
end)

describe("a lesson on a terminal", function()
  for _, columns in ipairs {40, 120} do
    it(("is shown, mended and checked at %d columns"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 70,
        arguments = "--emulate cuda:2,memory=256MiB --lesson"}
      s:expect ":next goes on."
      for _, line in ipairs(s:lines()) do assert.is_true(#line <= columns) end
      s:enter ":check"
      s:expect "not yet:"
      s:enter ":hint"
      s:expect "hint 1 of"
      s:enter ":next"
      s:expect "Lesson 2 of"
      s:enter "function predict() while 1 do end end"
      s:expect "[2]>"
      s:enter ":check"
      s:wait(function() return s:text():find ":check\n$" or s:text():find ":check$" end)
      s:key "C-c"
      s:expect "interrupted"
      s:enter "20 + 22"
      s:expect "42"
    end)
  end
end)
