--- What was entered in earlier sessions: one line per cell, its newlines written \n.
--
-- Appended after each cell, so a crash loses nothing and sessions side by side do not overwrite
-- each other; readable by its owner only. Without a home folder, or where it cannot be written, the
-- history is that of the session.

local host = require "lutra.repl.host"

local history = {}

local most_entries = 5000 -- that are offered

-- $XDG_STATE_HOME/lutra/history (freedesktop.org, XDG Base Directory 0.8), or nil.
local function path()
  local state = os.getenv "XDG_STATE_HOME"
  if state and state:sub(1, 1) == "/" then return state .. "/lutra/history" end
  local home = os.getenv "HOME"
  return home and home:sub(1, 1) == "/" and home .. "/.local/state/lutra/history" or nil
end

local function encode(text) return (text:gsub("\\", "\\\\"):gsub("\n", "\\n")) end

local function decode(line)
  return (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
end

local last

--- Offers the entries of the file to the editor.
function history.load()
  local name = path()
  local file = name and io.open(name, "r")
  if not file then return end
  local entries = {}
  for line in file:lines() do entries[#entries + 1] = line end
  file:close()
  for i = math.max(1, #entries - most_entries + 1), #entries do
    last = decode(entries[i])
    host.add_history(last)
  end
end

--- Adds a cell, unless it is the last one again or blank.
function history.add(text)
  text = text:gsub("%s+$", "")
  if text == last or not text:match "%S" or text:find("\0", 1, true) then return end
  last = text
  host.add_history(text)
  local name = path()
  if name then host.append(name, encode(text) .. "\n") end
end

return history
