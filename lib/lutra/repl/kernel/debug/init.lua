--- debug_request: the debugger of notebooks. It answers the requests of the Debug Adapter Protocol
-- that Jupyter's front ends send, and sends its events.
--
-- A program is stopped inside the hook of src/repl/debug_hook.c, which exists only while a front
-- end is attached. Breakpoints work in all coroutines, and in files as in cells.
--
-- Of the kernel it uses next_control(seconds), which returns the next message of the control
-- channel or nil, handle(request), which answers it, publish(kind, content), session and texts.

local breakpoints = require "lutra.repl.kernel.debug.breakpoints"
local host = require "lutra.repl.host"
local json = require "lutra.internal.json"
local sources = require "lutra.repl.kernel.debug.sources"
local stop = require "lutra.repl.kernel.debug.stop"
local variables = require "lutra.repl.kernel.debug.variables"

local debug_module = {}

-- The state of the debugger of a kernel:
--   attached         whether a front end debugs
--   sources, breakpoints, references   objects of these modules
--   stopped          {frames, co, reason, details, verdict} while the program is stopped
--   step             {kind, co}: the step that is made, or nil
--   pausing          whether to stop at the next line
--   stops_at_errors  whether to stop at an error that ends a cell
--   busy             code is evaluated for the front end, which does not stop
local debugger = {}
debugger.__index = debugger

local all = setmetatable({}, {__mode = "k"}) -- kernel -> its debugger
local current -- the one that is attached

local function debugger_of(kernel)
  local self = all[kernel]
  if self then return self end
  self = setmetatable({
    kernel = kernel,
    session = kernel.session,
    attached = false,
    sources = sources.new(kernel.texts),
    breakpoints = breakpoints.new(),
    references = variables.new(),
    sent = 0,
  }, debugger)
  all[kernel] = self
  return self
end

--- Sends an event.
function debugger:event(name, body)
  self.sent = self.sent + 1
  local kernel = self.kernel
  local silent = kernel.silent
  kernel.silent = false -- also in a cell whose output is not shown
  kernel:publish("debug_event", {type = "event", seq = self.sent, event = name, body = body})
  kernel.silent = silent
end

--- Answers a message of the control channel.
function debugger:serve(request)
  local kernel = self.kernel
  local silent = kernel.silent
  kernel.silent = false
  kernel:handle(request)
  kernel.silent = silent
end

-- Handles what the hook reports; its level 1 is this function, level 2 the program's. Returns
-- whether a line has no breakpoint.
local function on_hook(reason, line)
  local self = current
  if not self or self.busy or self.stopped then return end
  if reason == "line" then
    return stop.at_line(self, debug.getinfo(2, "S"), line, (coroutine.running()))
  end
  local request = self.kernel:next_control(0)
  if request then self:serve(request) end
end

--- Attaches the debugger: from now on programs stop at breakpoints.
function debugger:attach()
  if self.attached then return end
  if current then current:detach() end
  self.attached, current = true, self
  host.debug_hook(on_hook)
  self.session.on_error = function(value, co)
    if self.stops_at_errors and not self.stopped and not self.busy then
      stop.at_error(self, value, co)
    end
  end
end

--- Detaches the debugger and lets a stopped program continue.
function debugger:detach()
  self.breakpoints:clear()
  self.stops_at_errors, self.pausing, self.step = false, false, nil
  if self.stopped then self.stopped.verdict = self.stopped.verdict or "continue" end
  if not self.attached then return end
  self.attached, current = false, nil
  self.session.on_error = nil
  host.debug_hook()
end

--- Stops at the next line that runs.
function debugger:pause()
  self.pausing = true
  host.debug_step((coroutine.running()))
end

local always = {debugInfo = true, inspectVariables = true, richInspectVariables = true,
  modules = true, copyToGlobals = true, initialize = true, disconnect = true, dumpCell = true,
  source = true, evaluate = true, completions = true, threads = true, variables = true}

-- Returns the body of the reply; raises {message} or an error.
local function run(self, command, arguments)
  local f = require("lutra.repl.kernel.debug.commands")[command]
  if not f then error({message = ("unknown command \"%s\""):format(tostring(command))}, 0) end
  if not always[command] and not self.attached then
    error({message = "the debugger is not started"}, 0)
  end
  return f(self, arguments)
end

--- Answers a request of the Debug Adapter Protocol. Returns the content of the debug_reply; an
-- error becomes a reply without success.
function debug_module.debug_request(kernel, content)
  local self = debugger_of(kernel)
  content = type(content) == "table" and content or {}
  local arguments = type(content.arguments) == "table" and content.arguments ~= json.null
    and content.arguments or {}
  local ok, body = pcall(run, self, content.command, arguments)
  self.sent = self.sent + 1
  local reply = {type = "response", seq = self.sent, success = ok,
    request_seq = math.tointeger(content.seq) or 0, command = content.command}
  if ok then
    reply.body = body or {}
  else
    reply.message = type(body) == "table" and body.message
      or require("lutra.repl.traceback").message(body)
    reply.body = {}
  end
  return reply
end

--- Records that a cell with this text runs as the chunk of this name, such as "=cell[3]".
function debug_module.cell_started(kernel, text, chunk)
  local self = debugger_of(kernel)
  self.sources:started(text, chunk)
  self.step = nil
  self.breakpoints:update_hook() -- the chunk may have had another text
  if not self.stopped then self.references = variables.new() end
  if self.attached and not self.pausing then host.debug_step() end
end

--- Stops the program that calls this in coroutine `co`, when a front end debugs. Returns whether it
-- does.
function debug_module.breakpoint(co)
  if not current or current.stopped or current.busy then return false end
  stop.at_call(current, co)
  return true
end

return debug_module
