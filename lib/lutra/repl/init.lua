--- The prompt: read a cell, run it, print what it gives, again.
--
-- Everything the user's code can do wrong happens in a coroutine of its own (evaluate); this loop
-- itself never runs user code. Ctrl-C while a cell runs ends the cell, at the prompt the line.

local host = require "lutra.repl.host"
local cell = require "lutra.repl.cell"
local globals = require "lutra.repl.globals"
local history = require "lutra.repl.history"
local locals = require "lutra.repl.locals"
local show = require "lutra.repl.show"
local traceback = require "lutra.repl.traceback"

local repl = {}

local help = [[
Type Lua: an expression is printed, its value is kept in _ ; a semicolon at the end keeps it quiet.
lt, tensor, nn, F, optim and data are loaded. A cell goes on over several lines until it is
complete; an empty line ends it. Local variables live on in later cells.
  :help     this text
  :quit     leave (also exit, quit, Ctrl-D)
Ctrl-C ends what runs and comes back here.]]

local function complain(text)
  io.stdout:flush()
  io.stderr:write(text, "\n")
  io.stderr:flush()
end

-- Runs f in a coroutine of its own. Returns true and its results packed, or false after having said
-- what went wrong. `on_failure(co)` sees the coroutine before its variables are closed.
local function evaluate(f, on_failure, ...)
  host.clear_interrupts()
  local co = coroutine.create(f)
  local results = table.pack(host.resume(co, ...))
  if results[1] then return true, table.pack(table.unpack(results, 2, results.n)) end
  local ok, text = pcall(traceback.format, results[2], co, f)
  if on_failure then pcall(on_failure, co) end
  host.clear_interrupts()
  host.reset(co)
  complain("error: " .. (ok and text or traceback.message(results[2])))
  return false
end

local session = {}
session.__index = session

-- Prints what a cell gave. The user's __tostring runs here, hence in `evaluate`.
local function print_results(results)
  evaluate(function()
    local text = show.values(table.unpack(results, 1, results.n))
    io.stdout:write(text, "\n")
  end)
end

-- Runs a complete cell, read by cell.read.
function session:run(code, chunk_name, ...)
  local f, names = self.locals:compile(code.body, chunk_name)
  if not f then
    complain("error: " .. traceback.format(names))
    return false
  end
  local ok, results = evaluate(f, function(co) self.locals:rescue(names, co, f) end, ...)
  if not ok then return false end
  if results.n == 0 then return true end
  if results[1] ~= nil then rawset(_G, "_", results[1]) end
  if not code.quiet then print_results(results) end
  return true
end

-- Runs a whole file in the session, so that its locals stay.
function session:run_file(path, ...)
  local file, reason = io.open(path, "r")
  local text = file and file:read "a"
  if file then file:close() end
  if not text then return complain("error: cannot read " .. (reason or path)) end
  text = text:gsub("^#[^\n]*", "")
  local ok, message = load(text, "@" .. path, "t")
  if not ok then return complain("error: " .. traceback.format(message)) end
  return self:run({body = text, quiet = true}, "@" .. path, ...)
end

local function first_prompt() return "> " end
local function next_prompt() return ">> " end

-- An empty line ends a cell that goes on -- when a person typed it: in a paste it is just empty.
local function ends_cell(line, typed)
  return typed and not line:match "%S" and not host.pending()
end

-- Reads lines until they are a cell. Returns its text, what cell.read says of it and its chunk
-- name, or nil and why.
function session:read_cell()
  local name = "cell[" .. self.number .. "]"
  local lines = {}
  while true do
    local line, why = host.readline(#lines == 0 and first_prompt() or next_prompt())
    if not line and (why == "interrupt" or #lines == 0) then return nil, why end
    if #lines == 0 and line:match "^%s*:" then return line, "command" end
    local forced = not line or #lines > 0 and ends_cell(line, self.typed)
    if line then lines[#lines + 1] = line end
    local text = table.concat(lines, "\n")
    local status, result = cell.read(text, "=" .. name)
    if status == "incomplete" and forced then status = "error" end
    if status ~= "incomplete" then return text, status, result, name end
  end
end

local function is_farewell(text)
  local word = text:match "^%s*(%a+)%s*%(?%s*%)?%s*;?%s*$"
  return (word == "exit" or word == "quit") and rawget(_G, word) == nil
end

-- Runs a line that starts with a colon. Returns true when it ends the session.
local function command(line)
  local word = line:match "^%s*:%s*(%S*)"
  if word == "quit" or word == "q" or word == "exit" then return true end
  if word == "help" or word == "h" then
    io.stdout:write(help, "\n")
  else
    complain(("error: no command :%s; there are :help and :quit"):format(word))
  end
end

-- One turn. Returns true when the session ends.
function session:turn()
  local text, status, result, name = self:read_cell()
  if not text then
    if status == "eof" then io.stdout:write "\n" end
    return status == "eof"
  end
  if self.typed then history.add(text) end
  if status == "command" then return command(text) end
  if is_farewell(text) then return true end
  host.sources[name] = text
  if status == "error" then
    complain("error: " .. traceback.format(result))
  elseif result.body then
    self:run(result, "=" .. name)
  else
    return false
  end
  self.number = self.number + 1
end

local function greet()
  local ok, core = pcall(require, "lutra.core")
  local version = ok and core._VERSION and " " .. core._VERSION or ""
  io.stdout:write("Lutra", version, " (", _VERSION, "). :help for help, Ctrl-D to leave.\n")
  if not ok then complain("error: the core does not load: " .. traceback.message(core)) end
end

--- Runs the prompt until its end. options.script: a file to run first. Returns the exit status.
function repl.run(options)
  globals.install()
  local self = setmetatable({
    number = 1,
    locals = locals.new(),
    typed = host.isatty(0),
  }, session)
  if self.typed then
    greet()
    host.editor()
    history.load()
  end
  if options.script then self:run_file(options.script, table.unpack(arg)) end
  repeat until self:turn()
  io.stdout:flush()
  return 0
end

return repl
