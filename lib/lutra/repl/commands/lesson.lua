--- :lesson, :check, :hint and :next: lessons with exercises that are checked.

local lesson = require "lutra.repl.lesson"

local commands = {}

local function no_argument(name, text)
  if text ~= "" then
    error(("%s: expected no argument, got \"%s\""):format(name, text), 0)
  end
end

--- `:lesson` opens the lesson that was left half-way, or the first that is not done; when one is
-- open, shows it again. `:lesson 3` opens the third, from its beginning; `:lesson list` lists them;
-- `:lesson end` leaves the open one: its variables go, yours of the same names come back. A lesson
-- enters a piece of code that is wrong or empty: mend it, by entering it again, until `:check` is
-- content; `:next` goes on. What is done is kept for later.
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

--- `:check` calls what you made in the open lesson and looks at what it does: results, devices,
-- copies, memory. It does not look at how it is written. The modes of the session, such as the
-- default device, are set aside as long as it runs.
function commands.check(session, text)
  no_argument("check", text)
  lesson.check(session)
end

--- `:hint`, again `:hint`: the hints of the open lesson, one after the other. `:hint solution`
-- shows code that passes.
function commands.hint(session, text) lesson.hint(session, text) end

--- `:next` in a lesson: opens the next one. At a breakpoint: goes on to the next line of this
-- function, or of its caller.
function commands.next(session, text)
  if session.debugger or not session.lesson then
    return require("lutra.repl.commands.debug").next(session, text)
  end
  no_argument("next", text)
  lesson.next(session)
end

return commands
