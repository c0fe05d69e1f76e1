--- :run, a script in the session.

local command_line = require "lutra.repl.command_line"

local run = {}

-- Makes `arg` that of a script; closing what it returns puts the old one back.
local function with_arguments(list)
  local before = rawget(_G, "arg")
  local program = 0 -- the lowest place, as in every `arg`
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

--- `:run train.lua --epochs 3` runs the file; its locals and globals stay, also when it fails half
-- way. The arguments are its `...` and its `arg`; quotes keep words together, ~ is the home folder.
function run.run(session, text)
  local list, why = command_line.split(text)
  if not list then error("run: " .. why, 0) end
  if not list[1] then
    error("run: expected a file, got none\nhint: :run train.lua --epochs 3", 0)
  end
  run.file(session, list)
end

return run
