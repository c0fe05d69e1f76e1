--- Atomic replacement of files from Lua, by src/tensor/io/replace.h.
--
-- Invariant: the file at the path is always the complete old one or the complete new one. Only
-- devices and pipes are written directly.

if not package.loaded["lutra.files"] then require "lutra.core" end -- in stock Lua that opens it
local files = require "lutra.files"

local atomic_file = {}

--- Returns true when `path` can be written, else nil and "PATH: reason". Changes nothing.
atomic_file.try = files.check

--- Writes a file: calls write(put), which calls put(text...) any number of times. Returns true, or
-- nil and "PATH: reason". An error in `write` is passed on, and the file is unchanged.
function atomic_file.write(path, write)
  local file, why = files.replace(path)
  if not file then return nil, why end
  local _ <close> = file
  local failed = {}
  local ok, message = pcall(write, function(...)
    if not file:write(...) then error(failed, 0) end
  end)
  if not ok and message ~= failed then error(message, 0) end
  return file:commit()
end

return atomic_file
