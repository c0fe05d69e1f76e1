--- Stops of the program: the decision at a line, and the time while it is stopped.
--
-- `debugger` is the state of lutra.repl.kernel.debug. While the program is stopped, this code,
-- which its hook calls, answers the requests of the control channel, until one of them sets
-- debugger.stopped.verdict: "continue", "next", "step", "out", or "terminate".

local breakpoints = require "lutra.repl.kernel.debug.breakpoints"
local call_frames = require "lutra.repl.call_frames"
local evaluate = require "lutra.repl.kernel.debug.evaluate"
local frames = require "lutra.repl.kernel.debug.frames"
local host = require "lutra.repl.host"
local variables = require "lutra.repl.kernel.debug.variables"

local stop = {}

local WAIT = 0.1 -- seconds between looks for an interrupt

local THREAD = 1 -- the only one, by its DAP id
stop.THREAD = THREAD

-- Sets the step that a verdict asks for: at the next line of coroutine `co`, with at most as many
-- calls below it as the frame has.
local function set_step(debugger, verdict, co, frame)
  local calls = frame and frame.height
  if verdict == "out" then calls = calls and calls - 1 end
  local steps = verdict == "step" or verdict == "next" or verdict == "out"
  debugger.step = steps and co and {kind = verdict, co = co} or nil
  if not debugger.step then return host.debug_step() end
  host.debug_step(co, verdict ~= "step" and math.max(calls, 0) or nil)
end

-- Answers requests until one of them ends the stop, or an interrupt does.
local function serve(debugger)
  local stopped = debugger.stopped
  while not stopped.verdict and host.interrupts() == 0 do
    local request = debugger.kernel:next_control(WAIT)
    if request then debugger:serve(request) end
  end
end

--- Stops the program. reason: that of the DAP event "stopped"; details: further fields of its body.
-- co: its coroutine, nil after an error; list: its frames.
function stop.now(debugger, reason, details, co, list)
  io.stdout:flush()
  local stopped = {frames = list, co = co, details = details, reason = reason}
  debugger.stopped, debugger.references = stopped, variables.new()
  debugger.step, debugger.pausing = nil, false
  host.debug_step()
  local body = {reason = reason, threadId = THREAD, allThreadsStopped = true,
    preserveFocusHint = false}
  for name, value in pairs(details) do body[name] = value end
  do
    local _ <close> = setmetatable({}, {__close = function()
      debugger.stopped, debugger.references = nil, variables.new()
      debugger:event("continued", {threadId = THREAD, allThreadsContinued = true})
    end})
    debugger:event("stopped", body)
    serve(debugger)
  end
  if not debugger.attached then return end
  set_step(debugger, stopped.verdict, co, list[1])
  if stopped.verdict == "terminate" and co then error("stopped in the debugger", 0) end
end

-- Returns whether the condition of a breakpoint holds in the frame, and the message of an error in
-- it, which stops, too.
local function holds(debugger, breakpoint, frame)
  if not breakpoint.condition then return true end
  local ok, results = evaluate.run(debugger.session, frame, breakpoint.condition)
  if not ok then return true, "the condition failed: " .. results end
  return results[1] and true or false
end

-- Writes the message of a log point, with the values of expressions in braces.
local function log(debugger, message, frame)
  local text = message:gsub("{(.-)}", function(code)
    local ok, results = evaluate.run(debugger.session, frame, code)
    return ok and tostring(results[1]) or "{" .. results .. "}"
  end)
  io.stdout:write(text, "\n")
end

-- Returns whether the program stops at a breakpoint, and the details of the event.
local function at_breakpoint(debugger, breakpoint, frame)
  local stops, problem = holds(debugger, breakpoint, frame)
  if not stops or not breakpoints.count(breakpoint) then return false end
  if breakpoint.message then
    log(debugger, breakpoint.message, frame)
    return false
  end
  return true, {hitBreakpointIds = {breakpoint.id}, text = problem}
end

-- Returns whether a step ends at a line of coroutine `co`, of which the hook knows only that it is
-- not deeper than the step allows, or in another coroutine: in one that the coroutine of the step
-- has resumed, "next" and "out" go on.
local function ends_step(step, co)
  if co == step.co or step.kind == "step" then return true end
  return coroutine.status(step.co) ~= "normal"
end

--- Handles a line event; `info` is debug.getinfo(level, "S") of the function that runs in `co`.
-- Returns whether the line has no breakpoint.
function stop.at_line(debugger, info, line, co)
  local path = debugger.sources:path(info.source)
  local breakpoint = path and debugger.breakpoints:at(path, line)
  local hidden = not call_frames.is_shown(info) or call_frames.is_library(info.source)
    or not debugger.sources:has_line(info.source, line)
  local steps = not hidden and debugger.step and ends_step(debugger.step, co)
  local pauses = not hidden and debugger.pausing
  if not (breakpoint or steps or pauses) then return true end
  local list = frames.shown(call_frames.live(co, debugger.session.mains), true)
  if breakpoint then
    local stops, details = at_breakpoint(debugger, breakpoint, list[1])
    if stops then
      stop.now(debugger, "breakpoint", details, co, list)
      return false
    end
  end
  if steps or pauses then stop.now(debugger, steps and "step" or "pause", {}, co, list) end
  return breakpoint == nil
end

--- Stops at a call of lt.breakpoint() in `co`.
function stop.at_call(debugger, co)
  local list = frames.shown(call_frames.live(co, debugger.session.mains), false)
  if #list > 0 then stop.now(debugger, "breakpoint", {}, co, list) end
end

--- Stops after the error `value` that ended `co`.
function stop.at_error(debugger, value, co)
  local message = require("lutra.repl.traceback").message(value)
  if message:find "interrupted$" or message == "stopped in the debugger" then return end
  local list = frames.shown(call_frames.take(co, debugger.session.mains), false)
  if #list == 0 then return end
  stop.now(debugger, "exception", {description = message, text = message}, nil, list)
end

return stop
