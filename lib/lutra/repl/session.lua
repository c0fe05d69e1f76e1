--- One session at the prompt: its inputs, its variables, and the evaluation of an input.
--
-- User code always runs in a separate coroutine (session:guard), never in the loop itself.
-- Invariants: `number` is the number of the next cell; `failure` is set only until the next cell
-- starts, so that a failed cell does not keep values alive.

local front = require "lutra.repl.front"
local host = require "lutra.repl.host"
local cell = require "lutra.repl.cell"
local commands = require "lutra.repl.commands"
local post_mortem = require "lutra.repl.post_mortem"
local files = require "lutra.repl.files"
local history = require "lutra.repl.history"
local lexer = require "lutra.repl.lexer"
local locals = require "lutra.repl.locals"
local options = require "lutra.repl.options"
local results_of = require "lutra.repl.results"
local format_value = require "lutra.repl.format_value"
local style = require "lutra.repl.style"
local traceback = require "lutra.repl.traceback"

local session = {}
session.__index = session

--- Returns a new session. Its fields:
--   number    the number of the next cell
--   cells     the cells that were run, by number: {text, ok, gave = number of results}
--   locals    the persistent local variables (lutra.repl.locals)
--   kept      the results in _ and _1 to _9 (lutra.repl.results)
--   failure   the post-mortem of the previous cell (lutra.repl.post_mortem), or nil
--   debugger  the debugger that gets the inputs (lutra.repl.debugger), or nil
--   typed     true when stdin is a terminal
--   on_error  a function(value, co) that is called when user code has failed in coroutine `co`, or
--             nil; its errors are ignored
function session.new()
  return setmetatable({
    number = 1,
    cells = {},
    locals = locals.new(),
    kept = results_of.new(),
    typed = host.isatty(0),
  }, session)
end

--- Prints an error on stderr.
function session:print_error(text) -- luacheck: ignore self
  io.stdout:flush()
  io.stderr:write(style.paint("error", "error:", 2), " ", text, "\n")
  io.stderr:flush()
end

-- The functions compiled from inputs, which tracebacks label "cell".
local mains = setmetatable({}, {__mode = "k"})
session.mains = mains

--- Runs f(...) in a separate coroutine. Returns true and its results packed, or false after
-- printing the error; the failure is in self.failure. on_failure(co) is called with the coroutine
-- before its variables are closed.
function session:guard(f, on_failure, ...)
  host.clear_interrupts()
  local co = coroutine.create(f)
  local results = table.pack(host.resume(co, ...))
  if results[1] then return true, table.pack(table.unpack(results, 2, results.n)) end
  if not self.debugger then -- errors in the debugger do not replace the failure being debugged
    local took, failed = pcall(post_mortem.take, results[2], co, mains)
    self.failure = took and failed or self.failure
  end
  if self.on_error then pcall(self.on_error, results[2], co) end
  local ok, text = pcall(traceback.format, results[2], co, mains)
  local no_memory = results[2] == "not enough memory" -- then what the code had made must go
  if on_failure and not no_memory then pcall(on_failure, co) end
  host.clear_interrupts()
  host.reset(co)
  if no_memory then
    co, self.failure = nil, nil -- luacheck: ignore co
    collectgarbage()
  end
  self:print_error(ok and text or traceback.message(results[2]))
  return false
end

--- Compiles user code (an expression or statements) with access to the session's locals. `name` is
-- the chunk's name in messages. Returns a function, to be called once, and {names, quiet}; or nil
-- and the message. Runs nothing.
function session:compile(text, name)
  local status, code = cell.read(text, "=" .. name)
  host.sources[name] = text
  if status ~= "complete" then return nil, traceback.format(code) end
  return self:compile_body(code, "=" .. name)
end

-- Compiles the result of cell.read like session:compile.
function session:compile_body(code, chunk_name)
  -- With `:set locals off` a cell runs as in a separate file.
  local variables = options.value.locals and self.locals or locals.new()
  local f, names = variables:compile(code.body or "", chunk_name)
  if not f then return nil, traceback.format(names) end
  mains[f] = true
  return f, {names = names, quiet = code.quiet}
end

--- Shows a packed list of results, and a note on them, or nil. A front end other than the terminal
-- replaces this method, and print_error.
function session:show(results, note) -- luacheck: ignore self
  io.stdout:write(format_value.values(table.unpack(results, 1, results.n)), "\n")
  if note then io.stdout:write(style.paint("faint", note), "\n") end
end

-- Returns whether a cell has only shown something: its result is an object whose metatable has the
-- field __silent, such as the handle of lt.display.
local function has_shown(results)
  local meta = results.n == 1 and debug.getmetatable(results[1])
  return type(meta) == "table" and rawget(meta, "__silent") == true
end

--- Stores (lutra.repl.results) and prints the results of a cell or a command; `name` is the cell's.
function session:results(results, quiet, name)
  if results.n == 0 then return end
  local kept, note = pcall(self.kept.add, self.kept, results)
  if not kept then note = "not kept in _: " .. traceback.message(note) end -- a device failed
  if quiet or has_shown(results) then return end
  local printed = self:guard(function() self:show(results, note) end) -- runs the user's __tostring
  if not printed and name then
    io.stderr:write("  while printing the result of ", name, "\n")
  end
end

--- Runs code from cell.read. Returns true and the number of results, or false after printing the
-- error.
function session:run(code, chunk_name, ...)
  local f, made = self:compile_body(code, chunk_name)
  if not f then
    self:print_error(made)
    return false
  end
  local ok, results = self:guard(f, function(co)
    if options.value.locals then self.locals:rescue(made.names, co, f) end
  end, ...)
  if not ok then return false end
  self:results(results, made.quiet, chunk_name:sub(2))
  return true, results.n
end

--- Runs a file in the session, so that its locals persist; the values behind the path are its
-- `...`. Returns true, or false after printing the error.
function session:run_file(path, ...)
  local text, reason = files.read(path)
  if not text then
    self:print_error("cannot read " .. reason)
    return false
  end
  text = text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")
  local ok, message = load(text, "@" .. path, "t")
  if not ok then
    self:print_error(traceback.format(message))
    return false
  end
  return self:run({body = text, quiet = true}, "@" .. path, ...)
end

-- ---- what an input is

local function is_farewell(text)
  local word = text:match "^%s*(%a+)%s*%(?%s*%)?%s*;?%s*$"
  return (word == "exit" or word == "quit") and rawget(_G, word) == nil
end

-- Recognizes Python's `help`, `help()`, `help(x)`: returns "", "", "x"; nil when help is a
-- variable.
local function help_subject(self, text)
  local subject = text:match "^%s*help%s*;?%s*$" and ""
    or text:match "^%s*help%s*%(%s*[\"']?(.-)[\"']?%s*%)%s*;?%s*$"
  local is_variable = self.locals:get "help" or rawget(_G, "help") ~= nil
  return not is_variable and subject or nil
end

-- Recognizes "?x", "x?", "x??": returns "x" and the number of question marks, 1 or 2.
local function question(text)
  local asked = text:match "^%s*%?%s*([^%?].-)%s*$"
  if asked then return asked, 1 end
  local subject, marks = text:match "^%s*([^%s%?].-)%s*(%?+)%s*$"
  if not subject or #marks > 2 then return nil end
  local tokens = lexer.significant(text)
  local last = tokens[#tokens]
  if not last or last[2] ~= "?" then return nil end -- it is in a comment or a string
  return subject, #marks
end

--- Returns the kind of a line that is not Lua: "command", "shell", "help"; nil for Lua.
function session.kind(text)
  if text:match "^%s*:[%s%a]" then return "command" end
  if text:match "^%s*!" then return "shell" end
  if text:match "^%s*%?" or question(text) then return "help" end
end

local function run_command(self, line)
  local word, rest = line:match "^%s*:%s*(%S*)%s*(.-)%s*$"
  local row = commands.find(word)
  if not row then
    self:print_error(commands.unknown(word))
    return false
  end
  local ok, results = self:guard(function() return commands.load(row)(self, rest) end)
  return ok and results[1] == "quit"
end

-- Runs commands with their own syntax.
local function spelled(self, kind, text)
  if kind == "shell" then return run_command(self, ":shell " .. text:match "^%s*!(.*)$") end
  if text:match "^%s*%?+%s*$" then return run_command(self, ":help") end
  local subject, marks = question(text)
  return run_command(self, (marks == 2 and ":source " or ":doc ") .. subject)
end

-- Runs an input that is not Lua.
local function run_kind(self, text)
  local kind = session.kind(text)
  if kind == "command" then return run_command(self, text) end
  return spelled(self, kind, text)
end

--- Returns the state of a string that is being typed: "complete", "incomplete" or "error".
function session:status(text)
  if session.kind(text) then return "complete" end
  return (cell.read(text, "=cell[" .. self.number .. "]"))
end

-- Prints a suggestion for a cell that is only an undefined name.
local function note_undefined(self, text)
  local name = text:match "^%s*([%a_][%w_]*)%s*$"
  local warned = package.loaded["lutra.repl.strict"]
  if not name or warned or rawget(_G, name) ~= nil then return end
  local note = require("lutra.repl.suggest").undefined(name, self)
  if not note then return end
  io.stdout:flush()
  io.stderr:write(style.paint("faint", note, 2), "\n")
end

-- Stores an input that was run; a piece of a notebook's cell is added to the pieces before it.
local function record(self, number, entry, whole)
  local before = self.cells[number]
  if whole then
    entry.whole, entry.text = whole, entry.text:match "^\n*(.*)$"
    if before and before.whole == whole then entry.text = before.text .. "\n" .. entry.text end
  end
  self.cells[number] = entry
end

--- Runs one complete input. `whole` is the cell of a notebook of which it is a piece, or nil.
-- Returns true when it ends the session.
function session:execute(text, whole)
  if self.debugger then return self.debugger:execute(text, run_kind) end
  if session.kind(text) then return run_kind(self, text) end
  if is_farewell(text) then return true end
  local subject = help_subject(self, text)
  if subject then return run_command(self, subject == "" and ":help" or ":doc " .. subject) end
  local name = "cell[" .. self.number .. "]"
  local status, code = cell.read(text, "=" .. name)
  if status == "complete" and not code.body then return false end -- only comments
  host.sources[name] = whole or text
  self.failure = nil
  self.number = self.number + 1
  if status == "complete" then
    local this = self.number - 1
    local ok, gave = self:run(code, "=" .. name)
    if ok then note_undefined(self, text) end
    record(self, this, {text = text, ok = ok, gave = gave}, whole)
  else
    record(self, self.number - 1, {text = text, ok = false}, whole)
    self:print_error(traceback.format(code))
  end
  return false
end

-- ---- reading

-- Returns whether a line ends an incomplete cell: an empty line that was typed; in a paste it is
-- just empty.
local function ends_cell(line, typed)
  if line:match "%S" then return false end
  return front.notebook ~= nil or typed and not host.pending()
end

-- Reads a line from the front end: returns it, or nil and "eof" or "interrupt".
local function read_line(prompt)
  if front.notebook then return front.notebook:input(prompt) end
  return host.readline(prompt)
end

-- Reads lines until they form an input. Returns its text, or nil and the reason.
local function read_lines(self, prompt)
  local indent = (self.typed or front.notebook) and (" "):rep(#prompt) or ""
  local lines = {}
  while true do
    local line, why = read_line(#lines == 0 and prompt or indent)
    if not line and (why == "interrupt" or #lines == 0) then return nil, why end
    if line then lines[#lines + 1] = line end
    local text = table.concat(lines, "\n")
    local forced = not line or #lines > 1 and ends_cell(line, self.typed)
    if forced or self:status(text) ~= "incomplete" then return text end
  end
end

--- Returns the prompt.
function session:prompt()
  return self.debugger and self.debugger:prompt() or ("[%d]> "):format(self.number)
end

--- Reads one input, in the multi-line editor if available. Returns its text, or nil and the reason:
-- "eof" or "interrupt".
function session:read()
  local prompt = self:prompt()
  if front.notebook or not host.reads_cells() then return read_lines(self, prompt) end
  return host.readline(prompt, require("lutra.repl.editor").new(self))
end

--- Reads and runs one input. Returns true when the session ends. In a notebook, an interrupt ends
-- the code that stopped at a breakpoint.
function session:turn()
  local text, why = self:read()
  if not text then
    if front.notebook and self.debugger then
      return self.debugger:leave(why == "eof" and "continue" or "quit")
    end
    if why == "eof" then io.stdout:write "\n" end
    if why == "eof" and self.debugger then return self.debugger:leave "continue" end
    return why == "eof"
  end
  if self.typed then history.add(text) end
  return self:execute(text)
end

--- Iterates over the variables of the session: its locals, then the globals that the user defined,
-- by name: name, value and "local" or "global". Calls no metamethod.
function session:variables()
  local list, seen = {}, {}
  for name, value in self.locals:pairs() do
    list[#list + 1] = {name, value, "local"}
    seen[name] = true
  end
  for name, value in next, _G do
    if type(name) == "string" and not seen[name] and not self.builtin[name] then
      list[#list + 1] = {name, value, "global"}
    end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  local i = 0
  return function()
    i = i + 1
    if list[i] then return table.unpack(list[i], 1, 3) end
  end
end

--- Records the current globals as not the user's: see variables() and restore_globals().
function session:mark_builtin()
  self.builtin, self.before = {}, {}
  for _, name in ipairs(results_of.names) do self.builtin[name] = true end
  for name, value in next, _G do
    self.before[name] = value
    if type(name) == "string" then self.builtin[name] = true end
  end
  for _, name in ipairs(require("lutra.repl.globals").names()) do self.builtin[name] = true end
end

--- Restores the globals recorded by mark_builtin().
function session:restore_globals()
  for name in next, _G do
    if self.before[name] == nil then rawset(_G, name, nil) end
  end
  for name, value in next, self.before do rawset(_G, name, value) end
end

return session
