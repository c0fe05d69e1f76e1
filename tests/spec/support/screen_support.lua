--- A real terminal for the specs of the prompt: tmux draws it, and says what stands on it.
--
--     local s = screen.open{columns = 40, rows = 24}
--     s:expect "[1]> "
--     s:send "20 + 22"
--     s:key "Enter"
--     s:expect "42"
--     s:close()
--
-- Each has its own tmux server, its own HOME and XDG folders, so that tests cannot see each other.

local support = require "program_support"
local quote = support.quote

local screen = {}
screen.__index = screen
screen.__close = function(self) self:close() end

local LIMIT = 20 -- seconds after which a missing string is a failure

--- Is there a tmux?
function screen.available()
  if screen.found == nil then
    screen.found = os.execute "command -v tmux >/dev/null 2>&1" == true
  end
  return screen.found
end

local function tmux(self, line)
  local pipe = assert(io.popen(("tmux -L %s -f /dev/null %s 2>&1"):format(self.name, line)))
  local out = pipe:read "a"
  return out, pipe:close()
end

local function sleep(seconds) os.execute(("sleep %.3f"):format(seconds)) end

--- Starts the program on a terminal. options: columns (80), rows (24), arguments (a shell text),
-- environment (a shell text of assignments), command (instead of the program), home (a folder to
-- use, which stays; else one of its own, which goes with close).
function screen.open(options)
  options = options or {}
  local self = setmetatable({home = options.home, own = not options.home}, screen)
  if self.own then self.home = support.folder() end
  local unique = os.tmpname()
  os.remove(unique)
  self.name = "lutra" .. unique:match "[^/]*$"
  self.status_file = self.home .. "/status"
  local command = ("env HOME=%s XDG_STATE_HOME=%s/state XDG_CONFIG_HOME=%s/config LC_ALL=C.UTF-8 "
    .. "%s %s %s; echo $? >%s"):format(self.home, self.home, self.home, options.environment or "",
      options.command or quote(support.program), options.arguments or "", self.status_file)
  tmux(self, ("start-server ';' set -g remain-on-exit on ';' set -g escape-time 20 ';' "
    .. "set -g default-terminal screen-256color ';' new-session -d -x %d -y %d %s"):format(
      options.columns or 80, options.rows or 24, quote(command)))
  return self
end

--- The rows of the screen, without spaces at their ends; with `history` also those that left it.
function screen:lines(history)
  local out = tmux(self, "capture-pane -p" .. (history and " -S -" or ""))
  local lines = {}
  for line in out:gmatch "(.-)\n" do lines[#lines + 1] = (line:gsub("%s+$", "")) end
  while lines[#lines] == "" do lines[#lines] = nil end
  return lines
end

--- The screen as one text. With `colors` its escapes (SGR) too.
function screen:text(colors)
  if colors then return (tmux(self, "capture-pane -p -e")) end
  return table.concat(self:lines(), "\n")
end

--- Waits until `test(self)` holds; fails with the screen.
function screen:wait(test, what)
  local tries = 0
  repeat
    if test(self) then return end
    tries = tries + 1
    sleep(tries < 20 and 0.01 or 0.1)
  until tries > LIMIT * 10
  local text = self:text()
  self:close()
  error(("%s; the screen is\n%s"):format(what or "did not come to be", text), 2)
end

--- Waits until the screen holds `text`, which may not have been broken by the edge.
function screen:expect(text)
  self:wait(function() return self:text():find(text, 1, true) end, ("%q did not come"):format(text))
end

--- Waits until the last line that is not empty is `text`.
function screen:expect_last(text)
  self:wait(function()
    local lines = self:lines()
    return lines[#lines] == text
  end, ("the last line did not become %q"):format(text))
end

--- Types `text` as it is. (tmux takes a semicolon at the end of a word for its own.)
function screen:send(text) tmux(self, "send-keys -l " .. quote((text:gsub(";$", "\\;")))) end

--- Presses keys, by tmux's names: Enter, Up, C-c, M-Enter, Tab, BSpace, Home...
function screen:key(...)
  for _, name in ipairs {...} do tmux(self, "send-keys " .. quote(name)) end
end

--- Types a line and presses Enter.
function screen:enter(text)
  self:send(text)
  self:key "Enter"
end

--- Pastes, bracketed where the program asked for that.
function screen:paste(text)
  local path = support.file(text, ".txt")
  tmux(self, ("load-buffer %s ';' paste-buffer -p -r"):format(path))
  os.remove(path)
end

--- Column and row of the cursor, from 1.
function screen:cursor()
  local x, y = tmux(self, "display-message -p '#{cursor_x} #{cursor_y}'"):match "(%d+) (%d+)"
  return tonumber(x) + 1, tonumber(y) + 1
end

function screen:resize(columns, rows)
  tmux(self, ("resize-window -x %d -y %d"):format(columns, rows))
end

--- Waits for the program to end; its exit status.
function screen:finish()
  local status
  self:wait(function()
    local file = io.open(self.status_file)
    if not file then return false end
    status = tonumber(file:read "a")
    file:close()
    return status
  end, "the program did not end")
  return status
end

--- Ends all of it. May be called twice.
function screen:close()
  if self.closed then return end
  self.closed = true
  tmux(self, "kill-server")
  if self.own then support.remove(self.home) end
end

return screen
