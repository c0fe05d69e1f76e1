--- Which lessons are done, and which one was open last: kept in $XDG_STATE_HOME/lutra/lessons.
--
-- The file is text, a line each: "done NAME" or "open NAME". It is replaced as a whole, so that it
-- is the old one or the new one. Lines that make no sense are told of and left out.

local files = require "lutra.repl.files"
local host = require "lutra.repl.host"
local texts = require "lutra.internal.text"

local progress = {}

--- Where the file would be; nil without a home folder.
function progress.path() return files.place("state", "lessons") end

-- Lessons that had another name before.
local renamed = {["02_mend_the_mismatch"] = "02_fix_the_mismatch"}

-- Text of the file -> {done = {[name] = true}, open = name}, and the first line that is none.
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

--- What was kept, {done = {[name] = true}, open = name or nil}, and a note for the user or nil.
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

--- Keeps it. Returns true, or nil and why not.
function progress.save(state)
  local path = progress.path()
  if not path then return nil, "HOME is not set" end
  local lines = {}
  for name in pairs(state.done) do lines[#lines + 1] = "done " .. name end
  table.sort(lines)
  if state.open then lines[#lines + 1] = "open " .. state.open end
  local made, reason = host.append(path, "") -- makes the folders above it; may it be written?
  if not made then return nil, reason end
  return files.write(path, table.concat(lines, "\n") .. "\n")
end

return progress
