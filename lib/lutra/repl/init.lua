--- The prompt: opens a session and reads inputs until it ends. Sessions are defined in session.lua,
-- commands in commands.lua.

local host = require "lutra.repl.host"
local files = require "lutra.repl.files"
local globals = require "lutra.repl.globals"
local history = require "lutra.repl.history"
local session = require "lutra.repl.session"
local settings = require "lutra.repl.options"
local startup = require "lutra.repl.startup"
local string_methods = require "lutra.repl.string_methods"
local traceback = require "lutra.repl.traceback"

local repl = {}

local function greet(self)
  local ok, core = pcall(require, "lutra.core")
  local version = ok and core._VERSION and " " .. core._VERSION or ""
  io.stdout:write("Lutra", version, " (", _VERSION, "). :help for help, Ctrl-D to leave.\n")
  if not ok then self:print_error("cannot load the core: " .. traceback.message(core)) end
end

--- Sets options of the prompt: require("lutra.repl").set{depth = 6}, for use in init.lua.
function repl.set(values)
  if type(values) ~= "table" then
    error(("set: expected a table of options, got a %s\nhint: set{depth = 6}"):format(
      type(values)), 2)
  end
  local names = {}
  for name in next, values do names[#names + 1] = tostring(name) end
  table.sort(names)
  for _, name in ipairs(names) do
    local ok, why = settings.set(name, values[name])
    if not ok then error("set: " .. why, 2) end
  end
end

-- Runs the code of -e and -l until one fails; the prompt then starts in that state.
local function run_codes(self, codes)
  for _, code in ipairs(codes) do
    local text, name = code[1], code[2]
    host.sources[name] = text
    if not self:run({body = text, quiet = true}, "=" .. name) then return false end
  end
  return true
end

local most_failures = 3 -- consecutive failures after which the session ends

-- Reads inputs until the session ends; returns whether it ended normally. No error ends it, also
-- none of the prompt itself.
local function turns(self)
  local failures = 0
  repeat
    local ok, ended = pcall(self.turn, self)
    failures = ok and 0 or failures + 1
    local restored = string_methods.restore(not ok)
    if restored then self:print_error(restored) end
    if not ok then self:print_error("the prompt failed: " .. traceback.message(ended)) end
  until ok and ended or failures == most_failures
  return failures == 0
end

-- Opens the lesson of --lesson: a number, or 0 for the first that is not done.
local function open_lesson(self, number)
  self:guard(function()
    local lesson = require "lutra.repl.lesson"
    if number == 0 then lesson.resume(self) else lesson.open(self, number) end
  end)
end

--- Runs the prompt until its end. options.codes: a list of {text, name} to run first; then
-- options.script, a file; options.no_init: skip init.lua; options.lesson: a lesson to open, 0 for
-- the next. Returns the exit status.
function repl.run(options)
  globals.install()
  local self = session.new()
  repl.session = self
  self:mark_builtin()
  if self.typed then
    greet(self)
    host.editor()
    history.load()
  end
  if not options.no_init then startup.run(self) end
  local script = options.script
  if options.lesson and script and not files.exists(script) then
    self:print_error(('--lesson: expected a lesson number or a script, got "%s"'):format(script))
  elseif run_codes(self, options.codes or {}) and script then
    self:run_file(script, table.unpack(_G.arg))
  end
  if options.lesson then open_lesson(self, options.lesson) end
  local well = turns(self)
  if self.lesson then self:guard(function() require("lutra.repl.lesson").leave(self) end) end
  io.stdout:flush()
  return well and 0 or 1
end

return repl
