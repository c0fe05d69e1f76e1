--- The commands :lesson, :check, :hint and :next: lessons with exercises that are checked.

local lesson = require "lutra.repl.lesson"

local commands = {}

local function no_argument(name, text)
  if text ~= "" then
    error(("%s: expected no argument, got \"%s\""):format(name, text), 0)
  end
end

--- `:lesson` opens the lesson that was not completed, or the first that is not done; with an open
-- lesson it shows the text again. `:lesson 3` opens the third from its beginning; `:lesson list`
-- lists them; `:lesson end` closes the open one: its variables are removed, yours of the same
-- names are restored. A lesson enters code that is wrong or empty: fix it by entering it again
-- until `:check` passes; `:next` continues. Completed lessons are recorded.
function commands.lesson(session, text)
  if text == "" then return lesson.resume(session) end
  if text == "list" then return lesson.list(session) end
  if text == "end" then return lesson.finish(session) end
  local number = math.tointeger(tonumber(text))
  if not number then
    error(("lesson: expected the number of a lesson, list or end, got \"%s\"\n"
    .. "hint: :lesson, :lesson 3, :lesson list or :lesson end"):format(text), 0)
  end
  lesson.open(session, number)
end

--- `:check` calls the code of the open lesson's exercise and checks results, devices, copies and
-- memory, not how it is written. Settings of the session, such as the default device, have their
-- default values meanwhile.
function commands.check(session, text)
  no_argument("check", text)
  lesson.check(session)
end

--- `:hint` shows the hints of the open lesson one by one. `:hint solution` shows code that passes.
function commands.hint(session, text) lesson.hint(session, text) end

--- In a lesson, `:next` opens the next one. At a breakpoint it runs to the next line of this
-- function, or of its caller.
function commands.next(session, text)
  if session.debugger or not session.lesson then
    return require("lutra.repl.commands.debug").next(session, text)
  end
  no_argument("next", text)
  lesson.next(session)
end

return commands
