--- Lessons at the prompt: code to fix, and a checker that tests its effects.
--
-- session.lesson is the open lesson: {lesson, number, hints = number of hints shown, undo}. The
-- lesson's code is run like an input; the user fixes it by entering it again. The session is
-- restored: variables when the lesson is closed (lesson/variables.lua), modes after each check
-- (lesson/scope.lua). Progress is stored between sessions (lesson/progress.lua); lessons come from
-- lesson/catalog.lua.

local catalog = require "lutra.repl.lesson.catalog"
local front = require "lutra.repl.front"
local host = require "lutra.repl.host"
local page = require "lutra.repl.lesson.page"
local progress = require "lutra.repl.lesson.progress"
local scope = require "lutra.repl.lesson.scope"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"
local traceback = require "lutra.repl.traceback"
local variables = require "lutra.repl.lesson.variables"

local lesson = {}

-- ---- progress

local function load_progress()
  local state, why = progress.load()
  if why then page.note(why) end
  return state
end

local function save_progress(state)
  local ok, why = progress.save(state)
  if not ok then page.note("cannot save the progress: " .. tostring(why)) end
end

local function listing()
  local list, why = catalog.list()
  if why then page.note(why) end
  return list
end

local function count_done(list, state)
  local n = 0
  for _, entry in ipairs(list) do n = n + (state.done[entry.name] and 1 or 0) end
  return n
end

-- Returns the number of the first lesson from `first` on that can be opened; reports those that
-- cannot.
local function first_right(list, first, state)
  for number = first, #list do
    if not (state and state.done[list[number].name]) then
      local wrong = catalog.read(list[number]).wrong
      if not wrong then return number end
      page.note(("Lesson %d has an error and is skipped: %s"):format(number, wrong))
    end
  end
end

-- ---- opening and leaving

local function check_devices(item, number)
  local required, here = item.devices or 0, require("lutra").accelerator.device_count()
  if here >= required then return end
  local emulated = ("cuda:%d,memory=256MiB"):format(math.max(2, required))
  local hint = (front.notebook and "restart the kernel, then :emulate %s and :lesson %d"
    or "leave (Ctrl-D) and start lutra --emulate %s --lesson %d"):format(emulated, number)
  error(("lesson: expected %s for lesson %d (%s), got %d\nhint: %s"):format(
    texts.plural(required, "GPU"), number, item.title, here, hint), 0)
end

-- Runs a function of the lesson's file. Returns true, or nil and the error in the file.
local function call(item, name)
  if not item[name] then return true end
  local ok, why = pcall(item[name], require "lutra")
  if ok then return true end
  return nil, ("%s failed in %s: %s"):format(name, item.path, traceback.message(why))
end

--- Closes the open lesson, if any, and removes its variables.
function lesson.leave(session)
  local open = session.lesson
  if not open then return end
  session.lesson = nil
  if open.undo then open.undo() end
  local ok, why = call(open.lesson, "teardown")
  if not ok then page.note(why) end
end

-- Offers code for editing: as the last entry of the history, or as a new cell.
local function offer(session, code)
  code = code:gsub("%s+$", "")
  if front.notebook then return front.notebook:next_input(code) end
  if session.typed then host.add_history(code) end
end

-- Runs the lesson's code as a cell. Returns true, or nil and the error in it.
local function enter_code(session, open)
  local code = open.lesson.start
  local f, why = session:compile(code, "lesson " .. open.number)
  if not f then return nil, why end
  local ok
  open.undo = variables.enter(session, function() ok, why = pcall(f) end)
  if not ok then return nil, traceback.message(why) end
  offer(session, code)
  return true
end

-- Makes it the open lesson, or raises the error of its file.
local function enter(session, item, number)
  local ok, why = call(item, "setup")
  if not ok then error("lesson: cannot open the lesson: " .. why, 0) end
  session.lesson = {lesson = item, number = number, hints = 0}
  ok, why = enter_code(session, session.lesson)
  if ok then return end
  lesson.leave(session)
  error(("lesson: cannot open the lesson: its code fails, in %s: %s"):format(item.path, why), 0)
end

-- Prints a note on a lesson that is not done.
local function note_half_way(session, item, number, state)
  local before = session.lesson
  if before and before.lesson.name ~= item.name and not state.done[before.lesson.name] then
    page.note(("Lesson %d is not finished; :lesson %d returns to it."):format(before.number,
      before.number))
  elseif not before and state.open == item.name and not state.done[item.name] then
    page.note(("Lesson %d was not finished; it starts again."):format(number))
  end
end

--- Opens lesson `number`: shows it and enters its code. Raises an error with the reason when it
-- cannot be opened.
function lesson.open(session, number)
  local list = listing()
  if not list[number] then
    error(("lesson: expected a lesson from 1 to %d, got %s\nhint: :lesson list shows them"):format(
      #list, number), 0)
  end
  local item, state = catalog.read(list[number]), load_progress()
  if item.wrong then
    error(("lesson: cannot open lesson %d: %s"):format(number, item.wrong), 0)
  end
  check_devices(item, number)
  note_half_way(session, item, number, state)
  lesson.leave(session)
  enter(session, item, number)
  state.open = item.name
  save_progress(state)
  page.lesson(item, number, #list, front.notebook and "Run for you; correct it in the next cell:"
    or session.typed and "Entered for you (press Up to edit it):" or "Entered for you:")
end

--- Shows the open lesson again without changing its variables. Without an open lesson it opens the
-- first that is not done, preferably the one that was open last.
function lesson.resume(session)
  local open = session.lesson
  if open then
    return page.lesson(open.lesson, open.number, #listing(),
      ("Its code at the start (:lesson %d enters it again):"):format(open.number))
  end
  local list, state = listing(), load_progress()
  for number, entry in ipairs(list) do
    if entry.name == state.open and not state.done[entry.name]
      and not catalog.read(entry).wrong then return lesson.open(session, number) end
  end
  local number = first_right(list, 1, state)
  if number then return lesson.open(session, number) end
  page.sentence(count_done(list, state) == #list
    and ("All %d lessons are done. :lesson N opens a lesson again."):format(#list)
    or "No lesson is left to do.")
end

--- Closes the open lesson and prints a note.
function lesson.finish(session)
  local open = session.lesson
  if not open then error("lesson: cannot end the lesson: none is open", 0) end
  lesson.leave(session)
  page.note(("Left lesson %d; its variables are removed. :lesson %d opens it again."):format(
    open.number, open.number))
end

--- Lists the lessons, with completed ones and errors.
function lesson.list(session)
  local list, state = listing(), load_progress()
  for number, entry in ipairs(list) do
    local item = catalog.read(entry)
    local mark = item.wrong and "error" or state.done[item.name] and "done"
      or session.lesson and session.lesson.lesson.name == item.name and "open" or ""
    page.write(("%3d  %-5s  %s"):format(number, mark, texts.wrap(item.wrong or item.title,
      style.width() - 1, 12)))
  end
end

-- ---- the open lesson

local function current(session, command)
  if session.lesson then return session.lesson end
  error(command .. ": expected an open lesson, got none\nhint: :lesson opens the next one", 0)
end

-- Returns the user's variables by name: locals of the session first, as in a cell.
local function environment(session)
  return setmetatable({}, {__index = function(_, name)
    local is_local, value = session.locals:get(name)
    if is_local then return value end
    return rawget(_G, name)
  end})
end

-- Explains an error in the checker's run: a message of the checker, an error in the user's code,
-- or, from a line of the lesson's file, an error of the checker itself.
local function explain(item, why)
  local message = traceback.message(why)
  if catalog.is_from(message, item.check) then
    return "the check itself failed, perhaps on a result of your code: " .. message
  end
  local said = type(why) == "string" and not why:match "^[^\n]-:%d+: "
  return said and message or "the code failed: " .. message
end

-- Runs the checker. Returns whether it passed, and the message.
local function run_check(session, item)
  local state <close> = scope.new()
  local ok, passed, message = pcall(item.check, environment(session), require "lutra",
    require "lutra.repl.lesson.see")
  local replaced = state:replaced()
  if #replaced > 0 then
    return false, ("your code replaced %s; use the original functions"):format(
      table.concat(replaced, ", "))
  end
  if not ok then passed, message = false, explain(item, passed) end
  if type(message) ~= "string" then
    message = passed and "the check passed" or "the check gave no reason"
  end
  if not passed and #state.aside > 0 then
    message = ("%s\n(the check ran without what the session changed: %s)"):format(message,
      table.concat(state.aside, ", "))
  end
  return passed and true or false, message
end

--- Runs the checker of the open lesson. Returns whether it passed.
function lesson.check(session)
  local open = current(session, "check")
  local item = open.lesson
  local passed, message = run_check(session, item)
  page.verdict(passed, message)
  if not passed then
    if open.hints < #item.hints then page.note ":hint shows a hint." end
    return false
  end
  local list, state = listing(), load_progress()
  state.done[item.name] = true
  if state.open == item.name then state.open = nil end
  save_progress(state)
  local done = count_done(list, state)
  page.note(("%d of %d lessons are done; %s"):format(done, #list,
    done < #list and ":next opens the next." or "these were all."))
  return true
end

--- Shows the next hint of the open lesson; with "solution", code that passes.
function lesson.hint(session, what)
  local open = current(session, "hint")
  local item = open.lesson
  if what == "solution" then
    page.code(item.solution)
    offer(session, item.solution)
    return page.note "One solution; enter it, or your own, then :check."
  end
  if what ~= "" then
    error(("hint: expected no argument or solution, got \"%s\""):format(what), 0)
  end
  if open.hints >= #item.hints then
    return page.note "There are no more hints; :hint solution shows a solution."
  end
  open.hints = open.hints + 1
  page.sentence(("hint %d of %d: %s"):format(open.hints, #item.hints, item.hints[open.hints]))
end

--- Opens the next lesson; after the last one, the first that is not done.
function lesson.next(session)
  local open = current(session, "next")
  local list = listing()
  local number = first_right(list, open.number + 1)
  if number then return lesson.open(session, number) end
  local state = load_progress()
  local left = first_right(list, 1, state)
  page.sentence(left and ("This was the last lesson; lesson %d is not done: :lesson %d"):format(
    left, left) or ("This was the last lesson; %d of %d are done."):format(
      count_done(list, state), #list))
end

return lesson
