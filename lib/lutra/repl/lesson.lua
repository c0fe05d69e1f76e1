--- Lessons at the prompt: a piece of code to mend, and a checker that looks at what it does.
--
-- session.lesson is the lesson that is open: {lesson, number, hints = how many were shown}. The
-- lesson's code is run as if it had been typed; the user mends it by entering it again. Progress is
-- kept from one session to the next (lesson/progress.lua); lessons come from lesson/catalog.lua.

local catalog = require "lutra.repl.lesson.catalog"
local host = require "lutra.repl.host"
local progress = require "lutra.repl.lesson.progress"
local style = require "lutra.repl.style"
local texts = require "lutra.plot.texts"
local traceback = require "lutra.repl.traceback"

local lesson = {}

local function say(text) io.stdout:write(text, "\n") end

local function note(text) say(style.paint("faint", texts.wrap(text, style.width() - 1, 0))) end

-- A verdict and what stands behind it, each line broken to the width of the terminal.
local function verdict(kind, word, message)
  local lines, indent = {}, #word + 1
  for line in message:gmatch "[^\n]+" do
    lines[#lines + 1] = texts.wrap(line, style.width() - 1, indent)
  end
  say(style.paint(kind, word) .. " " .. table.concat(lines, "\n" .. (" "):rep(indent)))
end

-- Paragraphs are broken to the width of the terminal; lines that begin with spaces stay.
local function page(text)
  for paragraph in (text:gsub("%s+$", "") .. "\n\n"):gmatch "(.-)\n\n+" do
    if paragraph:match "^%s%s" then
      say(paragraph .. "\n")
    else
      say(texts.wrap(paragraph, style.width() - 1, 0) .. "\n")
    end
  end
end

-- ---- what is kept

local function load_progress()
  local state, why = progress.load()
  if why then note(why) end
  return state
end

local function save_progress(state)
  local ok, why = progress.save(state)
  if not ok then note("progress is not kept: " .. tostring(why)) end
end

local function listing()
  local list, why = catalog.list()
  if why then note(why) end
  return list
end

local function first_undone(list, state)
  for number, item in ipairs(list) do
    if not state.done[item.name] and not item.wrong then return number end
  end
end

local function count_done(list, state)
  local n = 0
  for _, item in ipairs(list) do n = n + (state.done[item.name] and 1 or 0) end
  return n
end

-- ---- opening

local function check_devices(item)
  local here = require("lutra").cuda.device_count()
  if here >= (item.devices or 0) then return end
  error(("lesson: \"%s\" wants %s, here %s. Leave and start: lutra --emulate cuda:2,memory=256MiB "
    .. "--lesson"):format(item.title, texts.plural(item.devices, "GPU"),
      here == 0 and "is none" or "is " .. here), 0)
end

-- Runs a function of the lesson's file; what is wrong with it is the file's fault.
local function call(item, name)
  if not item[name] then return end
  local ok, why = pcall(item[name], require "lutra")
  if not ok then
    error(("lesson: %s failed in %s: %s"):format(name, item.path, traceback.message(why)), 0)
  end
end

local function leave(session)
  local open = session.lesson
  session.lesson = nil
  if open then call(open.lesson, "teardown") end
end

local function enter_code(session, open, code)
  local f, why = session:compile(code, "lesson " .. open.number)
  if not f then error("lesson: the code of " .. open.lesson.path .. " is wrong: " .. why, 0) end
  f()
  if session.typed then host.add_history((code:gsub("%s+$", ""))) end
end

local function show(session, open, count)
  local item = open.lesson
  say(style.paint("heading", texts.wrap(("Lesson %d of %d: %s"):format(open.number, count,
    item.title), style.width() - 1, 0)))
  say(texts.wrap("Goal: " .. item.goal, style.width() - 1, 6) .. "\n")
  page(item.text)
  note(session.typed and "Entered for you (the key Up brings it back to mend it):"
    or "Entered for you:")
  for line in (item.start:gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do say("    " .. line) end
  say("")
  note ":check looks at what it does, :hint helps, :next goes on."
end

--- Opens lesson `number`: shows it and enters its code. Raises an error with the reason.
function lesson.open(session, number)
  local list, state = listing(), load_progress()
  local item = list[number]
  if not item then
    error(("lesson: there is no lesson %s; they are 1 to %d, :lesson list shows them"):format(
      number, #list), 0)
  end
  if item.wrong then
    error(("lesson: lesson %d, %s, has an error: %s"):format(number, item.path, item.wrong), 0)
  end
  check_devices(item)
  local before = session.lesson
  if before and before.lesson.name ~= item.name and not state.done[before.lesson.name] then
    note(("Lesson %d is left half-way; :lesson %d comes back to it."):format(before.number,
      before.number))
  elseif not before and state.open == item.name and not state.done[item.name] then
    note(("You left lesson %d half-way; it starts again."):format(number))
  end
  leave(session)
  call(item, "setup")
  session.lesson = {lesson = item, number = number, hints = 0}
  state.open = item.name
  save_progress(state)
  enter_code(session, session.lesson, item.start)
  show(session, session.lesson, #list)
end

--- Opens the first lesson that is not done; one that was left half-way goes first.
function lesson.open_first(session)
  local list, state = listing(), load_progress()
  for number, item in ipairs(list) do
    if item.name == state.open and not state.done[item.name] and not item.wrong then
      return lesson.open(session, number)
    end
  end
  local number = first_undone(list, state)
  if number then return lesson.open(session, number) end
  say(("All %d lessons are done. :lesson N opens one again."):format(#list))
end

--- The lessons, with what is done and what is wrong.
function lesson.list(session)
  local list, state = listing(), load_progress()
  for number, item in ipairs(list) do
    local mark = state.done[item.name] and "done" or item.wrong and "error"
      or session.lesson and session.lesson.lesson.name == item.name and "open" or ""
    say(("%3d  %-5s  %s"):format(number, mark, texts.wrap(item.wrong
      and item.path .. ": " .. item.wrong or item.title, style.width() - 1, 12)))
  end
end

-- ---- the open lesson

local function current(session, command)
  if session.lesson then return session.lesson end
  error(command .. ": no lesson is open; :lesson opens the next one", 0)
end

-- The user's variables, by name: locals of the session first, as in a cell.
local function environment(session)
  return setmetatable({}, {__index = function(_, name)
    local is_local, value = session.locals:get(name)
    if is_local then return value end
    return rawget(_G, name)
  end})
end

--- Runs the checker of the open lesson on what the user made. Returns whether it passed.
function lesson.check(session)
  local open = current(session, "check")
  local item = open.lesson
  local ok, passed, message = pcall(item.check, environment(session), require "lutra",
    require "lutra.repl.lesson.see")
  if not ok then passed, message = false, "it stopped: " .. traceback.message(passed) end
  if type(message) ~= "string" then message = passed and "it does what it should" or "not yet" end
  if not passed then
    verdict("warning", "not yet:", message)
    if open.hints < #item.hints then note ":hint helps." end
    return false
  end
  verdict("heading", "done:", message)
  local list, state = listing(), load_progress()
  state.done[item.name] = true
  if state.open == item.name then state.open = nil end
  save_progress(state)
  note(("%d of %d lessons are done; %s"):format(count_done(list, state), #list,
    first_undone(list, state) and ":next goes on." or "these were all of them."))
  return true
end

--- The next hint of the open lesson; with "solution" code that passes.
function lesson.hint(session, what)
  local open = current(session, "hint")
  local item = open.lesson
  if what == "solution" then
    for line in (item.solution:gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do say("    " .. line) end
    if session.typed then host.add_history((item.solution:gsub("%s+$", ""))) end
    return note "One way; enter it, or one of your own, then :check."
  end
  if what ~= "" then
    error(("hint: takes no argument but solution, not \"%s\""):format(what), 0)
  end
  if open.hints >= #item.hints then
    return note "There are no more hints; :hint solution shows one way."
  end
  open.hints = open.hints + 1
  say(texts.wrap(("hint %d of %d: %s"):format(open.hints, #item.hints, item.hints[open.hints]),
    style.width() - 1, 0))
end

--- Opens the lesson behind the open one.
function lesson.next(session)
  local open = current(session, "next")
  local list = listing()
  if open.number >= #list then
    local state = load_progress()
    local left = first_undone(list, state)
    return say(left and ("This was the last lesson; lesson %d is not done: :lesson %d"):format(left,
      left) or ("This was the last lesson; all %d are done."):format(#list))
  end
  local number = open.number + 1
  while list[number] and list[number].wrong do -- one with an error is in nobody's way
    note(("Lesson %d, %s, has an error and is left out: %s"):format(number, list[number].path,
      list[number].wrong))
    number = number + 1
  end
  if not list[number] then return say "This was the last lesson that can be opened." end
  lesson.open(session, number)
end

return lesson
