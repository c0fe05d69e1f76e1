-- Lessons at the prompt: opening, checking, hints, leaving; progress; a teacher's own; terminals.
-- What each lesson takes for right and wrong: lessons_each_spec.lua.

local lessons = require "lessons_support"
local support = require "program_support"
local screen = require "screen_support"
local has, read, write = lessons.has, lessons.read, lessons.write

local home
before_each(function() home = support.folder() end)
after_each(function() support.remove(home) end)

local function session(...) return lessons.session(home, ...) end

local count = #lessons.files()
local place = 'function place() return lt.zeros{1000, 1000, device = "cuda"} end\n'
local record = "/state/lutra/lessons"

-- A lesson of a teacher's, as text; `fields` replaces some of it, false leaves it out.
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
  for name, value in pairs(parts) do
    if value then lines[#lines + 1] = ("%s = %s,"):format(name, value) end
  end
  table.sort(lines)
  return "return {\n" .. table.concat(lines, "\n") .. "}"
end

describe(":lesson", function()
  it("opens the first lesson: title, text, goal, the code to fix, which is entered", function()
    local out = session(":lesson\nplace().device\n").out
    has(out, ("Lesson 1 of %d: Make a tensor on a device"):format(count), "Goal: place() returns",
      " function place()", ":check checks your solution")
    assert.is_true(out:find("emulates", 1, true) < out:find("Goal:", 1, true))
    has(out, '"cpu"')
  end)

  it("shows the open lesson again, and only its number enters the code again", function()
    local out = session(":lesson\nplace = 42\n:lesson\nplace\n:lesson 1\nplace\n").out
    has(out, "Its code at the start (:lesson 1 enters it again): function place()", "[2]> 42",
      "function() --[[lesson 1:1]]")
  end)

  it("checks by what the code did; the next lesson comes when it is done", function()
    local result = session(":lesson\n:check\n" .. place .. ":check\n:next\n")
    has(result.out, "not yet: expected a tensor on cuda:0 from place(), got one on cpu",
      ":hint shows a hint.",
      "done: the tensor was made on cuda:0",
        ("1 of %d lessons are done; :next opens the next."):format(count),
      ("Lesson 2 of %d"):format(count))
    assert.equal("", result.err)
  end)

  it("opens the next lesson before this one is done, and returns", function()
    has(session(":lesson\n:next\n:lesson 1\n").out, "Lesson 1 is not finished; :lesson 1 returns",
      "Lesson 2 of", "Lesson 2 is not finished")
  end)

  it("says what is wrong with a number, a word, and commands without a lesson", function()
    local err = session(":lesson 99\n:lesson x\n:check\n:hint\n:next\n:lesson end\n:lesson 1\n"
      .. ":check now\n:hint please\n:next 5\n:lesson 0\n:lesson 1.5\n").err
    has(err, "lesson: expected a lesson from 1 to ",
      'expected the number of a lesson, list or end, got "x"',
      "check: expected an open lesson, got none hint: :lesson opens the next one",
        "hint: expected an open lesson, got none",
      "lesson: cannot end the lesson: none is open", 'check: expected no argument, got "now"',
      'hint: expected no argument or solution, got "please"', 'next: expected no argument, got "5"',
      "expected a lesson from 1 to 10, got 0", 'list or end, got "1.5"')
  end)

  it("gives its hints one by one, and a solution when asked", function()
    local out = session(":lesson\n:hint\n:hint\n:hint\n:hint solution\n").out
    has(out, "hint 1 of 2: ", "hint 2 of 2: ", "There are no more hints; :hint solution",
      'return lt.zeros{1000, 1000, device = "cuda:0"}')
  end)

  it("says where the lessons end", function()
    has(session((":lesson %d\n:next\n"):format(count)).out,
      "This was the last lesson; lesson 1 is not done: :lesson 1")
    local done = {}
    for i, file in ipairs(lessons.files()) do done[i] = "done " .. file:match "^(.*)%.lua$" end
    write(home .. record, table.concat(done, "\n"))
    has(session((":lesson\n:lesson %d\n:next\n"):format(count)).out,
      ("All %d lessons are done."):format(count),
      ("This was the last lesson; %d of %d are done."):format(count, count))
  end)

  it("says what to start where there are too few devices", function()
    local result = session(":lesson\n1 + 1\n", "-i", "CUDA_VISIBLE_DEVICES=")
    if result.err == "" then return pending "there is a GPU here" end
    has(result.err, "lesson: expected 1 GPU for lesson 1 (Make a tensor on a device), got 0",
      "lutra --emulate cuda:2,memory=256MiB --lesson 1")
    has(result.out, "2")
  end)

  it("reports an error in the user's code with its line, and continues", function()
    local result = session(":lesson\nfunction place()\n  error 'nothing'\nend\n:check\n1 + 1\n")
    has(result.out, "not yet: the code failed: cell[1]:2: nothing")
    has(result.out, "2")
    has(session(":lesson\nplace = 5\n:check\nplace = nil\n:check\n").out,
      'not yet: expected a function "place", got a number; :lesson with its number restores',
      'expected a function "place", got nil')
    has(session(":lesson\nfunction place() error{} end\n:check\n").out,
      "not yet: the code failed: a table was raised as an error")
  end)
end)

describe("the session of a lesson", function()
  it("has its own variables back, and the lesson's are gone, when it is left", function()
    local function after(leaving)
      return session("predict, place = 'mine', nil\nlocal w = 7\n:lesson 2\npredict\n"
        .. "function predict() end\n" .. leaving .. "\nprint(predict, place, w)\n").out
    end
    has(after ":lesson end", "Left lesson 2;", "--[[lesson 2:1]]", "mine nil 7")
    has(after ":lesson 3", "mine nil 7")
    has(session("local place = 'mine'\n:lesson 1\n" .. place .. ":check\n:lesson end\nplace\n").out,
      "done: ", '"mine"')
  end)

  it("ends a lesson with :reset", function()
    local result = session("place = 1\n:lesson 1\n:reset\nprint(place)\n:check\n")
    has(result.out, "nil")
    has(result.err, "check: expected an open lesson, got none")
  end)

  it("has its modes back after a check, which starts with those of the beginning", function()
    local out = session([[
:lesson 1
lt.set_default_dtype "float64"
lt.set_default_device "cuda:1"
lt.set_grad_enabled(false)
lt.cuda.set_device(1)
s = lt.cuda.Stream(1)
lt.cuda.set_stream(s)
lt.manual_seed(5)
before = lt.get_rng_state()
function place()
  lt.set_default_device "cuda:0"
  lt.cuda.set_stream(lt.cuda.Stream(0))
  print(lt.get_default_dtype(), lt.is_grad_enabled(), lt.randn(1).device)
  return lt.zeros(1000, 1000)
end
:check
function place() return lt.zeros(1000, 1000) end
:check
print(lt.get_default_dtype(), lt.get_default_device(), lt.is_grad_enabled())
print(lt.cuda.current_device(), lt.cuda.current_stream(1) == s, lt.cuda.current_stream(0))
print(lt.get_rng_state():equal(before))
]]).out
    has(out, "float32 true cuda:0", "done: the tensor was made on cuda:0",
      "not yet: expected a tensor on cuda:0 from place(), got one on cpu",
        "(the check ran without what the session changed: "
        .. "the default device, the default dtype, whether gradients are on, the current device, "
        .. "the current stream of cuda:1)",
      "float64 cuda:1 false", "1 true Stream(cuda:0, default)", "true")
  end)

  it("cannot pass by changing Lutra, nor fail by changing Lua", function()
    local out = session(":lesson 1\nlt.placement.trace = function() return {events = {}}, "
      .. "lt.zeros{1000, 1000, device = 'cuda'} end\n:check\nlt.placement.trace() ~= nil\n"
      .. "function place() lt.is_tensor = function() return true end return 5 end\n:check\n"
      .. "lt.is_tensor(5)\ntype, table, math, pcall, error = 1\n" .. place .. ":check\n").out
    has(out, "not yet: expected a tensor on cuda:0 from place(), got one on cpu",
      "what the session changed: "
      .. "lt.placement.trace)", "[2]> true", "your code replaced lt.is_tensor",
      "[4]> false", "done: ")
  end)

  it("gets other random numbers with each check", function()
    local out = session(":lesson 4\nfunction total() return 0 end\n:check\n:check\n").out
    local one, two = out:match "over all batches, (%S+), got.*over all batches, (%S+), got"
    assert.is_truthy(one and two and one ~= two, out)
  end)
end)

describe("progress in the lessons", function()
  it("is kept; a lesson left half-way comes first", function()
    session ":lesson 3\nprediction = {out = 2, home = 3}\n:check\n:lesson 2\n"
    local out = session(":lesson\n:lesson list\n").out
    has(out, "Lesson 2 was not finished; it starts again.", "Lesson 2 of",
      "2 open Fix a device mismatch", "3 done Count the transfers")
  end)

  it("is kept of two prompts at a time", function()
    session(":lesson\n" .. place .. ("!echo done 05_fit_in_memory >>%s\n:check\n"):format(
      home .. record))
    assert.equal("done 01_place_it\ndone 05_fit_in_memory\n", read(home .. record))
  end)

  it("keeps the valid parts of a damaged record and reports the others", function()
    write(home .. record, "done 01_place_it\n\1\2 what\nfinished 2\n")
    local result = session ":lesson\n:lesson list\n"
    has(result.out, 'is not valid at "?? what"; the rest is kept', "Lesson 2 of",
      "1 done Make a tensor on a device")
    assert.equal("done 01_place_it\nopen 02_fix_the_mismatch\n", read(home .. record))
  end)

  it("continues without a record where none can be written", function()
    write(home .. "/state", "no folder")
    has(session(":lesson\n:lesson 2\n").out, "cannot save the progress: ", "Lesson 2 of")
    has(session(":lesson\n" .. place .. ":check\n", nil, "HOME= XDG_STATE_HOME=").out,
      "cannot save the progress: HOME is not set", "done: ")
  end)

  it("does not write over a record that read error", function()
    write(home .. record .. "/of_a_user", "")
    has(session(":lesson\n").out, "cannot read the progress of lessons: ",
      "cannot save the progress: ", "Lesson 1 of")
    assert.equal("", read(home .. record .. "/of_a_user"))
  end)
end)

describe("lutra --lesson", function()
  it("opens the first lesson on emulated devices, or lesson N", function()
    has(session(":devices\n", "--lesson").out, "Lesson 1 of", "cuda:1", "256.0 MiB")
    has(session("", "--lesson 2").out, "Lesson 2 of")
    has(session("", "--lesson=3").out, "Lesson 3 of")
    local one = session("", "--emulate cuda:1 --lesson 7")
    has(one.err, "expected 2 GPUs for lesson 7 (A pipeline over two devices), got 1", "--lesson 7")
    has(session("", "--emulate cuda:1 --lesson 2").out, "Lesson 2 of")
  end)

  it("says what is wrong with its number", function()
    local result = session("1 + 1\n", "--lesson 99")
    has(result.err, "lesson: expected a lesson from 1 to 10, got 99")
    has(result.out, "2")
    assert.equal(2, session("", "--lesson=x").status)
    local word = session("1 + 1\n", "--lesson two")
    has(word.err, '--lesson: expected a lesson number or a script, got "two"')
    has(word.out, "Lesson 1 of")
  end)

  it("reads the user's init.lua before", function()
    write(home .. "/config/lutra/init.lua", "print 'mine'\nlt.set_default_dtype 'float64'")
    local run = support.shell(("env -u LUTRA_LESSONS HOME=%s XDG_STATE_HOME= XDG_CONFIG_HOME=%s %s "
      .. "--emulate cuda:1 --lesson"):format(home, home .. "/config",
      support.quote(support.program)), place .. ":check\n")
    has(run.out, "mine Lesson 1 of", "done: ")
  end)
end)

describe("a teacher's lesson", function()
  local function own(text, name) write(home .. "/own/" .. (name or "twice.lua"), text) end
  local function run(input) return session(input, nil, "LUTRA_LESSONS=" .. home .. "/own") end

  -- What opening a lesson with that text says.
  local function error_of(text, name)
    own(text, name)
    return run((":lesson %d\n1 + 1\n"):format(count + 1)).err
  end

  it("comes after the others and works as they do", function()
    own(own_lesson())
    local n = count + 1
    local result = run((":lesson %d\n:check\ntwice = function(x) return x + x end\n:check\n"
      .. ":lesson list\n"):format(n))
    has(result.out, ("Lesson %d of %d: Twice"):format(n, n), "not yet: twice(21) is 21",
      "done: twice(21) is 42", n .. " done Twice")
  end)

  it("is what docs/lessons.md shows", function()
    own(read(lessons.root .. "docs/lessons.md"):match "```lua\n(.-)```")
    local result = run((":lesson %d\n:check\nfunction twice(x) return x * 2 end\n:check\n"):format(
      count + 1))
    has(result.out, "not yet: it made 2 copies, at lesson", "done: nothing was copied")
  end)

  it("has lines that begin with two spaces as they are, and others broken", function()
    own(own_lesson{text = '"These words\\nare one line.\\n  but  this\\n  stays\\nAnd so on."'})
    local out = run((":lesson %d\n"):format(count + 1)).out
    local expected = "These words are one line.\n  but  this\n  stays\nAnd so on.\n\nGoal:"
    assert.is_truthy(out:find(expected, 1, true), out)
  end)

  it("is found in the folder of the configuration", function()
    write(home .. "/config/lutra/lessons/twice.lua", own_lesson())
    has(session(":lesson list\n").out, "Twice")
  end)

  it("has setup called before and teardown after, and globals of its own", function()
    own("word = 'up'\n" .. own_lesson{
      setup = "function(lt) print('set ' .. word, lt.is_tensor(1), nn ~= nil) end",
      teardown = "function() print 'torn down' end"})
    local n = count + 1
    has(run((":lesson %d\n:lesson 1\nprint(word)\n"):format(n)).out, "set up false true",
      "torn down", "Lesson 1 of", "nil")
    has(run((":lesson %d\n"):format(n)).out, "torn down") -- where the prompt ends
  end)

  it("with an error is named with its line", function()
    local path = home .. "/own/twice.lua"
    for _, case in ipairs {
      {"return {\ntitle = ", path .. ":2: unexpected symbol"},
      {"\nerror 'no luck'", path .. ":2: no luck"},
      {"error{}", path .. ": a table was raised as an error"},
      {"\nreturn 5", path
        .. ":2: expected the file to return a table, return {title = ...}, got a number"},
      {"x = 1", path .. ": expected the file to return a table, return {title = ...}, got nil"},
      {own_lesson{check = false}, path .. ': expected a function for field "check" ('
        .. "check(env, lt, see) returns true or false, and a message"},
      {own_lesson{goal = "5"}, path .. ':7: expected a string for field "goal" ('},
      {own_lesson{hints = "{5}"}, path .. ":8: expected a string for hint 1, got a number"},
      {own_lesson{device = "1"}, path .. ':7: unknown field "device"; did you mean \'dev'},
      {own_lesson{devices = "1.5"}, path .. ':7: expected an integer for field "devices", got 1.5'},
      {own_lesson{start = '"x = = 1"'}, path .. ':10: cannot compile field "start": start:1: '},
      {own_lesson{solution = '"return )"'}, path .. ':9: cannot compile field "solution": '},
      {own_lesson{setup = "function() error 'no data' end"},
        "lesson: cannot open the lesson: setup failed in " .. path .. ": " .. path
          .. ":9: no data"},
      {own_lesson{start = '"\\nerror [[not ready]]"'},
        "lesson: cannot open the lesson: its code fails, in " .. path
          .. ": lesson 11:2: not ready"},
      {own_lesson{devices = "3"}, "expected 3 GPUs for lesson 11 (Twice), got 2",
        "--emulate cuda:3,memory=256MiB "
        .. "--lesson 11"},
    } do
      has(error_of(case[1]), table.unpack(case, 2))
    end
    assert(os.execute(("ln -sf /nowhere %s"):format(support.quote(path))))
    has(run((":lesson %d\n"):format(count + 1)).err, "cannot open " .. path)
  end)

  it("whose name is taken, or cannot be kept in the record, is refused", function()
    own(own_lesson(), "01_place_it.lua")
    own(own_lesson(), "my lesson.lua")
    local result = run((":lesson list\n:lesson %d\n:lesson %d\n"):format(count + 1, count + 2))
    has(result.out, "11 error ", "12 error ")
    has(result.err, "01_place_it.lua: a lesson 01_place_it exists in ",
      "my lesson.lua: expected letters, digits, _, . and - in its name")
  end)

  it("with an error is left out by :next and :lesson, and in the way of none", function()
    own("return {", "a.lua")
    own(own_lesson(), "b.lua")
    local result = run((":lesson %d\n:next\n:next\n:lesson list\n"):format(count))
    has(result.out, "Lesson 11 has an error and is skipped: ", "a.lua:1:", "Twice",
      "This was the last lesson; lesson 1 is", "11 error ", "12 open Twice")
    local done = {"done b"}
    for _, file in ipairs(lessons.files()) do done[#done + 1] = "done " .. file:sub(1, -5) end
    write(home .. record, table.concat(done, "\n"))
    has(run(":lesson\n").out, "Lesson 11 has an error", "No lesson is left to do.")
  end)

  it("without an end is run only when it is asked for", function()
    own("while true do end", "a.lua")
    has(run(":lesson\n" .. place .. ":check\n:next\n:hint\n").out, "done: ", "1 of 11 lessons",
      "Lesson 2 of 11", "hint 1")
  end)

  it("reports an error in its checker or teardown with the file's line", function()
    own(own_lesson{check = "function()\nerror 'my fault' end",
      teardown = "function() error 'not now' end"})
    local result = run((":lesson %d\n:check\n:lesson 1\n"):format(count + 1))
    has(result.out, "not yet: the check itself failed, perhaps on a result of your code: " .. home
      .. "/own/twice.lua:3: my fault", "teardown failed in ", "not now", "Lesson 1 of")
  end)

  it("has its lines named where its path is long and has spaces", function()
    local folder = home .. "/lessons of " .. ("some_name"):rep(5)
    write(folder .. "/a.lua", own_lesson{check = "function() error 'my fault' end"})
    write(folder .. "/b.lua", "\nerror 'no luck'")
    local result = session((":lesson %d\n:check\n:lesson %d\n"):format(count + 1, count + 2), nil,
      "LUTRA_LESSONS=" .. support.quote(folder))
    has(result.out, "the check itself failed, perhaps on a result of your code: ",
      "/a.lua:2: my fault")
    has(result.err, "cannot open lesson 12: ...", "some_name/b.lua:2: no luck")
  end)

  it("may give no message, or a wrong one", function()
    own(own_lesson{check = "function() return false end"}, "a.lua")
    own(own_lesson{check = "function() return true, 5 end"}, "b.lua")
    local n = count + 1
    has(run((":lesson %d\n:check\n:lesson %d\n:check\n"):format(n, n + 1)).out,
      "not yet: the check gave no reason", "done: the check passed")
  end)

  it("is not searched for in a path that is not a folder", function()
    has(session(":lesson list\n", nil, "LUTRA_LESSONS=/nowhere").out,
      "LUTRA_LESSONS: cannot read the folder /nowhere")
  end)
end)

describe("a lesson on a terminal", function()
  for _, columns in ipairs {40, 120} do
    it(("is shown, fixed and checked at %d columns"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 70,
        arguments = "--emulate cuda:2,memory=256MiB --lesson"}
      s:expect ":next opens the"
      s:enter ":check"
      s:expect "not yet:"
      s:enter ":hint"
      s:expect "hint 1 of"
      s:enter ":next"
      s:expect "Lesson 2 of"
      s:key "Up"
      s:expect_last "     end"
      s:key "C-c"
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

  it("that is a teacher's and has no end is ended by Ctrl-C", function()
    if not screen.available() then return pending "needs tmux" end
    write(home .. "/config/lutra/lessons/loop.lua", "while true do end")
    local s <close> = screen.open{columns = 100, rows = 40, home = home, arguments = "--no-init"}
    s:enter ":lesson list"
    s:expect "A training loop"
    s:key "C-c"
    s:expect "loop.lua:1: interrupted"
  end)
end)
