--- Whole files of text, read and written in one go.

local atomic_file = require "lutra.internal.atomic_file"
local native = require "lutra.files"

local files = {}

--- The third result of files.read where there is no such file (ENOENT of POSIX's errno.h, 2 on
-- every system).
files.missing = 2

--- The text of a file; or nil, "PATH: why" and the number of the system's error.
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

-- freedesktop.org, XDG Base Directory 0.8: the variable, and the folder below the home folder.
local bases = {
  config = {"XDG_CONFIG_HOME", "/.config"},
  state = {"XDG_STATE_HOME", "/.local/state"},
}

--- Where the user's own file `name` is: one of "config", which the user writes, or of "state",
-- which Lutra writes; nil without a home folder.
function files.place(kind, name)
  local variable, below = table.unpack(bases[kind])
  local base, home = os.getenv(variable), os.getenv "HOME"
  if base and base:sub(1, 1) == "/" then return base .. "/lutra/" .. name end
  return home and home:sub(1, 1) == "/" and home .. below .. "/lutra/" .. name or nil
end

--- Is there something at `path`? Opens nothing: a pipe would wait for its other end.
function files.exists(path) return native.kind(path) ~= nil end

--- Is there a regular file at `path`?
function files.is_file(path) return native.kind(path) == "file" end

--- What is in a folder: a list of names, not sorted, folders with a / at their end, without . and
-- .. ; or nil and "PATH: why".
files.list = native.list

--- Writes a file. Returns true; or nil and "PATH: why".
function files.write(path, text)
  return atomic_file.write(path, function(put) put(text) end)
end

return files
