--- Reading and writing of whole text files.

local atomic_file = require "lutra.internal.atomic_file"
local native = require "lutra.files"

local files = {}

--- The third result of files.read for a missing file (ENOENT of POSIX's errno.h, 2 on every
-- system).
files.missing = 2

--- Returns the text of a file; or nil, "PATH: reason" and the system's error number.
function files.read(path)
  local good, wrong = native.path(path)
  if not good then return nil, wrong end
  local file, why, code = io.open(path, "rb")
  if not file then return nil, why, code end
  local text, reason = file:read "a"
  file:close()
  if not text then return nil, ("%s: %s"):format(path, reason or "cannot read the file") end
  return text
end

-- XDG Base Directory 0.8 (freedesktop.org): the variable, and the default folder below the home
-- folder.
local bases = {
  config = {"XDG_CONFIG_HOME", "/.config"},
  state = {"XDG_STATE_HOME", "/.local/state"},
}

--- Returns the path of the user's file `name`: of "config", which the user writes, or of "state",
-- which Lutra writes; nil without a home folder.
function files.user_path(kind, name)
  local variable, below = table.unpack(bases[kind])
  local base, home = os.getenv(variable), os.getenv "HOME"
  if base and base:sub(1, 1) == "/" then return base .. "/lutra/" .. name end
  return home and home:sub(1, 1) == "/" and home .. below .. "/lutra/" .. name or nil
end

--- Returns whether `path` exists. It opens nothing, as opening a pipe would block.
function files.exists(path) return native.kind(path) ~= nil end

--- Returns whether `path` is a regular file.
function files.is_file(path) return native.kind(path) == "file" end

--- Returns the entries of a folder: an unsorted list of names, folders with a trailing /, without .
-- and .. ; or nil and "PATH: reason".
files.list = native.list

--- Writes a file. Returns true, or nil and "PATH: reason".
function files.write(path, text)
  return atomic_file.write(path, function(put) put(text) end)
end

return files
