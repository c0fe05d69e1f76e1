--- :run, a script in the session.

local words = require "lutra.repl.words"

local run = {}

--- `:run FILE [ARGUMENTS]`: the file's locals and globals stay, also when it fails half way; the
-- arguments are its `...` and its `arg`.
function run.run(session, text)
  local list, why = words.split(text)
  if not list then error("run: " .. why, 0) end
  if not list[1] then error("run: no file; :run train.lua --epochs 3", 0) end
  session:run_file(list[1], table.unpack(list, 2))
end

return run
