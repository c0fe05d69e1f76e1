--- The record of finished lessons and of the lesson that was open last, in
-- $XDG_STATE_HOME/lutra/lessons.
--
-- The file is text, with lines "done NAME" or "open NAME". It is replaced atomically. Lines that
-- cannot be parsed are reported and ignored.

local files = require "lutra.repl.files"
local host = require "lutra.repl.host"
local texts = require "lutra.internal.text"

local progress = {}

--- Returns the path of the file; nil without a home folder.
function progress.path() return files.user_path("state", "lessons") end

-- Lessons that had another name in earlier versions.
local renamed = {["02_mend_the_mismatch"] = "02_fix_the_mismatch"}

-- Parses the file: returns {done = {[name] = true}, open = name}, and the first invalid line.
local function read(text)
  local state, wrong = {done = {}}, nil
  for line in text:gmatch "[^\n]+" do
    local word, name = line:match "^(%l+) ([%w_.-]+)$"
    name = renamed[name] or name
    if word == "done" then
      state.done[name] = true
    elseif word == "open" then
      state.open = name
    else
      wrong = wrong or line
    end
  end
  return state, wrong
end

--- Returns the record, {done = {[name] = true}, open = name or nil}, and a note for the user or
-- nil.
function progress.load()
  local path = progress.path()
  if not path then return {done = {}} end
  local text, why, code = files.read(path)
  if not text then
    if code == files.missing then return {done = {}} end
    return {done = {}}, "cannot read the progress of lessons: " .. why
  end
  local state, wrong = read(text)
  if not wrong then return state end
  return state, ('the progress of lessons, %s, is not valid at "%s"; the rest is kept'):format(
    path, texts.cut((wrong:gsub("[^ -~]", "?")), 40))
end

--- Writes the record. Returns true, or nil and the reason.
function progress.save(state)
  local path = progress.path()
  if not path then return nil, "HOME is not set" end
  local lines = {}
  for name in pairs(state.done) do lines[#lines + 1] = "done " .. name end
  table.sort(lines)
  if state.open then lines[#lines + 1] = "open " .. state.open end
  local made, reason = host.append(path, "") -- creates its folders
  if not made then return nil, reason end
  return files.write(path, table.concat(lines, "\n") .. "\n")
end

return progress
