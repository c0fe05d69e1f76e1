--- The command :run: runs a script in the session.

local command_line = require "lutra.repl.command_line"

local run = {}

-- Sets `arg` for a script; closing the returned value restores it.
local function with_arguments(list)
  local before = rawget(_G, "arg")
  local program = 0 -- the lowest index, as in every `arg`
  while type(before) == "table" and before[program - 1] do program = program - 1 end
  local here = {[-1] = type(before) == "table" and before[program] or nil, [0] = list[1]}
  table.move(list, 2, #list, 1, here)
  rawset(_G, "arg", here)
  return setmetatable({}, {__close = function() rawset(_G, "arg", before) end})
end

--- Runs the file list[1] in the session with the other words as its arguments.
function run.file(session, list)
  local _ <close> = with_arguments(list)
  session:run_file(list[1], table.unpack(list, 2))
end

--- `:run train.lua --epochs 3` runs the file; its locals and globals remain, also after an error.
-- The arguments are its `...` and its `arg`; quotes group words, ~ is the home folder.
function run.run(session, text)
  local list, why = command_line.split(text)
  if not list then error("run: " .. why, 0) end
  if not list[1] then
    error("run: expected a file, got none\nhint: :run train.lua --epochs 3", 0)
  end
  run.file(session, list)
end

return run
