--- The commands of the debugger: a function for each DAP request, by name.
--
-- Each gets the debugger (lutra.repl.kernel.debug) and the arguments of the request, and returns
-- the body of the reply, or nil. fail(message) makes the reply one without success.

local args = require "lutra.internal.args"
local brief = require "lutra.repl.brief"
local evaluate = require "lutra.repl.kernel.debug.evaluate"
local frames = require "lutra.repl.kernel.debug.frames"
local json = require "lutra.internal.json"
local lexer = require "lutra.repl.lexer"
local sources = require "lutra.repl.kernel.debug.sources"
local stop = require "lutra.repl.kernel.debug.stop"
local variables = require "lutra.repl.kernel.debug.variables"

local commands = {}

-- Raises a message that becomes that of the reply.
local function fail(message, ...) error({message = message:format(...)}, 0) end

local function expect(value, kind, name)
  if type(value) == kind then return value end
  return fail("expected a %s for '%s', got %s", kind, name,
    value == nil and "nothing" or type(value))
end

-- Returns the frame with an id; nil for no id.
local function frame_of(debugger, id)
  if id == nil or id == json.null then return nil end
  local list = debugger.stopped and debugger.stopped.frames
  return list and list[id] or fail("expected the id of a frame of the stopped program")
end

-- Returns the path of the source in the arguments.
local function path_of(arguments)
  local source = arguments.source
  return expect(type(source) == "table" and source.path or nil, "string", "source.path")
end

-- ---- the session of the debugger

function commands.debugInfo(debugger)
  return {
    isStarted = debugger.attached,
    hashMethod = "Murmur2",
    hashSeed = sources.SEED,
    tmpFilePrefix = debugger.sources.prefix,
    tmpFileSuffix = sources.SUFFIX,
    breakpoints = debugger.breakpoints:list(),
    stoppedThreads = json.array {debugger.stopped and stop.THREAD or nil},
    richRendering = true,
    exceptionPaths = json.array {},
    copyToGlobals = true,
  }
end

function commands.initialize(debugger)
  debugger:attach()
  debugger:event "initialized"
  return {
    supportsConfigurationDoneRequest = true,
    supportsConditionalBreakpoints = true,
    supportsHitConditionalBreakpoints = true,
    supportsLogPoints = true,
    supportsEvaluateForHovers = true,
    supportsSetVariable = true,
    supportsExceptionInfoRequest = true,
    supportsModulesRequest = true,
    supportsTerminateRequest = true,
    supportsCompletionsRequest = true,
    completionTriggerCharacters = json.array {".", ":"},
    exceptionBreakpointFilters = json.array {
      {filter = "uncaught", label = "Errors that end a cell", default = false},
    },
  }
end

function commands.attach() end
function commands.configurationDone() end

function commands.disconnect(debugger)
  debugger:detach()
end

function commands.terminate(debugger)
  if debugger.stopped then debugger.stopped.verdict = "terminate" end
  debugger:event "terminated"
end

function commands.threads()
  return {threads = json.array {{id = stop.THREAD, name = "main"}}}
end

-- ---- sources and breakpoints

function commands.dumpCell(debugger, arguments)
  return {sourcePath = debugger.sources:add(expect(arguments.code, "string", "code"))}
end

function commands.source(debugger, arguments)
  local text = debugger.sources:text(path_of(arguments))
  return {content = text or fail("the source is not available"), mimeType = "text/x-lua"}
end

function commands.setBreakpoints(debugger, arguments)
  local path, list = path_of(arguments), {}
  for i, wanted in ipairs(arguments.breakpoints or {}) do
    local line = type(wanted) == "table" and math.tointeger(wanted.line)
    list[i] = line and wanted or fail("expected a line number in each breakpoint")
  end
  return {breakpoints = debugger.breakpoints:set(debugger.sources, path, list)}
end

function commands.setExceptionBreakpoints(debugger, arguments)
  debugger.stops_at_errors = false
  for _, filter in ipairs(arguments.filters or {}) do
    if filter == "uncaught" then debugger.stops_at_errors = true end
  end
end

function commands.exceptionInfo(debugger)
  local stopped = debugger.stopped
  if not stopped or stopped.reason ~= "exception" then fail "the program has not failed" end
  return {exceptionId = "error", description = stopped.details.text, breakMode = "unhandled"}
end

-- ---- the stopped program

local function stopped_of(debugger)
  return debugger.stopped or fail "the program is not stopped"
end

function commands.stackTrace(debugger, arguments)
  return frames.trace(debugger.sources, stopped_of(debugger).frames, arguments)
end

function commands.scopes(debugger, arguments)
  stopped_of(debugger)
  local frame = frame_of(debugger, arguments.frameId or 0)
  return {scopes = frames.scopes(debugger.references, frame, debugger.session)}
end

commands["continue"] = function(debugger)
  stopped_of(debugger).verdict = "continue"
  return {allThreadsContinued = true}
end

local function steps(verdict)
  return function(debugger) stopped_of(debugger).verdict = verdict end
end

commands.next, commands.stepIn, commands.stepOut = steps "next", steps "step", steps "out"

function commands.pause(debugger)
  if not debugger.stopped then debugger:pause() end
end

-- ---- values

function commands.variables(debugger, arguments)
  local reference = expect(arguments.variablesReference, "number", "variablesReference")
  if reference == 0 then return {variables = json.array {}} end
  local ok, results = evaluate.call(function()
    return debugger.references:list(reference, arguments)
  end)
  if not ok then fail("%s", results) end
  return {variables = results[1] or fail "the variables are no longer available"}
end

function commands.inspectVariables(debugger)
  if not debugger.stopped then debugger.references = variables.new() end
  local references = debugger.references
  local scope = frames.session_scope(references, debugger.session)
  return commands.variables(debugger, {variablesReference = scope.variablesReference})
end

-- Evaluates the code with the variables of a frame, of the session for no id. Returns the results.
local function value_of(debugger, code, frame_id)
  local frame = frame_of(debugger, frame_id)
  local was_busy = debugger.busy
  debugger.busy = true -- it does not stop at breakpoints
  local ok, results = evaluate.run(debugger.session, frame, code)
  debugger.busy = was_busy
  if not ok then fail("%s", results) end
  return results
end

-- Returns the fields of a reply for some values.
local function show(debugger, values, expression)
  if values.n == 0 then return {result = "", variablesReference = 0} end
  local first
  local ok, results = evaluate.call(function()
    local texts = {}
    for i = 1, values.n do texts[i] = brief.text(values[i], 1000) end
    first = debugger.references:describe("", values[1], expression)
    return table.concat(texts, "  ")
  end)
  if not ok then fail("%s", results) end
  return {result = results[1], type = first.type, variablesReference = first.variablesReference,
    indexedVariables = first.indexedVariables, namedVariables = first.namedVariables}
end

function commands.evaluate(debugger, arguments)
  local code = expect(arguments.expression, "string", "expression")
  return show(debugger, value_of(debugger, code, arguments.frameId), code)
end

function commands.setVariable(debugger, arguments)
  local container = debugger.references:get(arguments.variablesReference)
  local name, code = arguments.name, expect(arguments.value, "string", "value")
  if not container then fail "the variables are no longer available" end
  if not container.set then fail("cannot assign '%s'", tostring(name)) end
  local frame_id = debugger.stopped and #debugger.stopped.frames > 0 and 1 or nil
  local values = value_of(debugger, code, frame_id)
  local ok, message = evaluate.call(function() container.set(name, values[1]) end)
  if not ok then fail("cannot assign '%s': %s", tostring(name), message) end
  local reply = show(debugger, {n = 1, values[1]})
  return {value = reply.result, type = reply.type, variablesReference = reply.variablesReference}
end

function commands.richInspectVariables(debugger, arguments)
  local name = expect(arguments.variableName, "string", "variableName")
  if not lexer.is_name(name) then fail("expected the name of a variable, got \"%s\"", name) end
  local values = value_of(debugger, name, arguments.frameId)
  local data, metadata = evaluate.bundle(values[1])
  return {data = data, metadata = metadata}
end

function commands.copyToGlobals(debugger, arguments)
  local from = expect(arguments.srcVariableName, "string", "srcVariableName")
  local to = expect(arguments.dstVariableName, "string", "dstVariableName")
  if not (lexer.is_name(from) and lexer.is_name(to)) then
    fail "expected names of variables for 'srcVariableName' and 'dstVariableName'"
  end
  local value = value_of(debugger, from, arguments.srcFrameId)[1]
  if not debugger.session.locals:assign(to, value) then rawset(_G, to, value) end
end

function commands.completions(debugger, arguments)
  local text = expect(arguments.text, "string", "text")
  local column = math.tointeger(arguments.column) or utf8.len(text) + 1
  return {targets = require("lutra.repl.kernel.debug.completions").at(debugger.session,
    frame_of(debugger, arguments.frameId), text, column - 1)}
end

-- The modules of the program, without those of the library, in which no step ends.
function commands.modules(_, arguments)
  local names, list = {}, json.array {}
  for name in pairs(package.loaded) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = package.searchpath(name, package.path)
    if path and not args.is_library{source = "@" .. path, what = "Lua"} then
      list[#list + 1] = {id = #list + 1, name = name, path = path}
    end
  end
  local total, first = #list, math.tointeger(arguments.startModule) or 0
  local count = math.tointeger(arguments.moduleCount) or 0
  if first > 0 or count > 0 then
    list = json.array(table.move(list, first + 1, count > 0 and first + count or total, 1, {}))
  end
  return {modules = list, totalModules = total}
end

return commands
