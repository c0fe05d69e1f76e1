--- Files that are written as a whole or not at all, by Lua code; src/tensor/io/replace.h does it.
--
-- Invariant: a file that is written is the old one or the new one, never a part. Only a device or a
-- pipe is written directly.

if not package.loaded["lutra.files"] then require "lutra.core" end -- in stock Lua that opens it
local files = require "lutra.files"

local atomic_file = {}

--- Can `path` be written? Changes nothing there. Returns true; or nil and "PATH: why".
atomic_file.try = files.check

--- Writes a file: write(put) calls put(text...) as often as it likes. Returns true; or nil and
-- "PATH: why". An error of write's goes on, and the file is as it was.
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
