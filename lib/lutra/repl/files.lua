--- Whole files of text, read and written in one go.
--
-- Invariant: a file that is written is the old one or the new one, never a part: the text goes to a
-- file beside it, which then takes its name. Only a link, a device or a pipe is written into.

local host = require "lutra.repl.host"

local files = {}

--- The third result of files.read where there is no such file (ENOENT of POSIX's errno.h, 2 on
-- every system).
files.missing = 2

--- The text of a file; or nil, "PATH: why" and the number of the system's error.
function files.read(path)
  local file, why, code = io.open(path, "rb")
  if not file then return nil, why, code end
  local text, reason = file:read "a"
  file:close()
  if not text then return nil, ("%s: %s"):format(path, reason or "cannot be read") end
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

--- Is there something that can be opened at `path`?
function files.exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- Writes into the file `path`, which messages call `name`.
local function write_into(path, name, text)
  local file, why = io.open(path, "wb")
  if not file then return nil, name .. why:sub(#path + 1) end
  local ok, reason = file:write(text)
  local closed, at_end = file:close()
  if ok and closed then return true end
  return nil, ("%s: %s"):format(name, reason or at_end or "cannot be written")
end

--- Writes a file. Returns true; or nil and "PATH: why".
function files.write(path, text)
  if not host.replaceable(path) then return write_into(path, path, text) end
  local beside = path .. ".new"
  local ok, why = write_into(beside, path, text)
  if ok then
    local moved, reason = os.rename(beside, path)
    if moved then return true end
    why = reason
  end
  os.remove(beside)
  return nil, why
end

return files
