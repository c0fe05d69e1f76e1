--- `lutra --lint script.lua` and `lutra --trace file.json script.lua`: observes a program from
-- before its first line until it ends, also by an error or os.exit. In a job of several ranks each
-- writes a trace of its own, file.rank0.json for rank 0.

local script = {}

local chrome = require "lutra.placement.chrome"
local json = require "lutra.profiler.json"

-- The observation that is active: {session, lint, trace (a path), undo}, or nil.
local running = nil

-- Ends communication, which waits for the other ranks of a job: mpirun ends those that still run
-- when this one ends with a status.
local function leave_job()
  local groups = package.loaded["lutra.distributed.groups"]
  if groups then groups._finalize() end
end

-- Replaces os.exit, which ends the program without returning, by a function that calls `finish`
-- first. Returns a function that restores it.
local function replace_exit()
  local program_os = rawget(_G, "os")
  local original = type(program_os) == "table" and rawget(program_os, "exit")
  if type(original) ~= "function" then return function() end end
  local function exit(code, ...)
    local failed = code ~= nil and code ~= true and code ~= 0
    local status = script.finish{exits = failed}
    if not failed and status ~= 0 then code = status end
    return original(code, ...)
  end
  rawset(program_os, "exit", exit)
  return function()
    if rawget(program_os, "exit") == exit then rawset(program_os, "exit", original) end
  end
end

-- Returns the file of this process's trace: in a job of several ranks, one for each rank.
local function path_of_rank(path)
  local found, job = pcall(require("lutra.distributed.environment").read)
  if not found or not job or job.size == 1 then return path end
  return require("lutra.placement.merge").path_of(path, job.rank)
end

-- Returns why a trace cannot be written to `path`, or nil.
local function path_problem(path)
  if path:find "%.lua$" then
    return ("cannot write the trace to %s: it is a script\n"
      .. "hint: lutra --trace trace.json %s"):format(path, path)
  end
  local ok, why = require("lutra.internal.atomic_file").try(path)
  return not ok and "cannot write " .. why or nil
end

--- Starts the observation. options: {lint = true, trace = path}. Returns the exit status: 1, after
-- a message on stderr, when the trace cannot be written.
function script.begin(options)
  local path = options.trace and path_of_rank(options.trace)
  if path then
    local why = path_problem(path) -- checked before the program runs
    if why then
      io.stderr:write("lutra: --trace: ", why, "\n")
      return 1
    end
  end
  running = {lint = options.lint, trace = path, undo = replace_exit(),
    session = require("lutra.placement.lint_session").new()}
  return 0
end

-- Writes the trace event by event: all events of a long run at once would take a gigabyte.
local function write_trace(path, reader)
  local ok, message = pcall(json.save, "--trace", path, chrome, reader:events())
  if not ok then io.stderr:write("lutra: ", tostring(message), "\n") end
  return ok
end

-- Prints the findings on stderr. After a failed script without findings nothing is printed: it may
-- have failed before it ran, as by a syntax error.
local function print_findings(findings, failed)
  if failed and #findings == 0 then return end
  io.stderr:write(tostring(findings), "\n",
    failed and "the script failed; findings up to the error\n" or "")
end

--- Ends the observation: prints the findings on stderr and writes the trace. options: {failed =
-- true when the script failed, exits = true when it ends with a status of its own}. Returns the
-- exit status: 1 when there are findings, or when the trace cannot be written.
function script.finish(options)
  local run = running
  if not run then return 0 end
  running = nil
  run.undo()
  local session <close> = run.session
  local status, failed = 0, options.failed
  -- Nothing ran: the file of an earlier trace is kept.
  if failed and not session.reader:has_events() then return 0 end
  if io.type(io.stdout) == "file" then io.stdout:flush() end
  if run.lint then
    local findings = session:findings()
    print_findings(findings, failed)
    if #findings > 0 then status = 1 end
  end
  if run.trace and not write_trace(run.trace, session.reader) then status = 1 end
  if status ~= 0 and not failed and not options.exits then leave_job() end
  return status
end

return script
