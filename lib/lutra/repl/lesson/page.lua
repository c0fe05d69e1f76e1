--- Printing of lessons: pages, verdicts and notes, wrapped to the width of the terminal.

local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local page = {}

--- Prints a line, or text of several lines, unchanged.
function page.write(text) io.stdout:write(text, "\n") end

-- Prints `text` behind a word; further lines are aligned under it.
local function behind(word, text, kind)
  local indent = #word + 1
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[#lines + 1] = texts.wrap(line, style.width() - 1, indent)
  end
  page.write((kind and style.paint(kind, word) or word) .. " "
    .. table.concat(lines, "\n" .. (" "):rep(indent)))
end

local function wrapped(text) return texts.wrap(text, style.width() - 1, 0) end

--- Prints a remark.
function page.note(text) page.write(style.paint("faint", wrapped(text))) end

--- Prints "done: ..." or "not yet: ...".
function page.verdict(passed, message)
  behind(passed and "done:" or "not yet:", message, passed and "heading" or "warning")
end

--- Prints a sentence.
function page.sentence(text) page.write(wrapped(text)) end

--- Prints code, indented.
function page.code(code)
  for line in (code:gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do page.write("    " .. line) end
end

-- Wraps paragraphs; lines that begin with two spaces are unchanged.
local function paragraphs(text)
  local words = {}
  local function flush()
    if #words > 0 then page.sentence(table.concat(words, " ")) end
    words = {}
  end
  for line in (text:gsub("%s+$", "") .. "\n"):gmatch "(.-)\n" do
    if line:match "^%s%s" or not line:match "%S" then
      flush()
      page.write(line)
    else
      words[#words + 1] = line
    end
  end
  flush()
  page.write ""
end

--- Prints a lesson: title, text, and, nearest to the prompt, the goal and the code to fix, with the
-- note `entered` above it.
function page.lesson(lesson, number, count, entered)
  page.write(style.paint("heading", wrapped(("Lesson %d of %d: %s"):format(number, count,
    lesson.title))) .. "\n")
  paragraphs(lesson.text)
  behind("Goal:", lesson.goal, "heading")
  page.note(entered)
  page.code(lesson.start)
  page.note ":check checks your solution, :hint shows a hint, :next opens the next lesson."
end

return page
