--- `lutra --lint script.lua` and `lutra --trace file.json script.lua`: listening from before the
-- program starts until it ends, also when it ends by an error or os.exit.

local script = {}

local chrome = require "lutra.placement.chrome"
local json = require "lutra.profiler.json"

-- What is going on: {watch, lint, trace (a path), undo}; nil before and after.
local running = nil

-- os.exit ends the program before `finish` can be called: then it is called from there.
local function hold_exit()
  local program_os = rawget(_G, "os")
  local original = type(program_os) == "table" and rawget(program_os, "exit")
  if type(original) ~= "function" then return function() end end
  local function exit(code, ...)
    local status = script.finish()
    if status ~= 0 and (code == nil or code == true or code == 0) then code = status end
    return original(code, ...)
  end
  rawset(program_os, "exit", exit)
  return function()
    if rawget(program_os, "exit") == exit then rawset(program_os, "exit", original) end
  end
end

-- Why a trace cannot be written to `path`, or nil.
local function no_place(path)
  if path:find "%.lua$" then
    return ("%s would be written over; name a file for the trace, then the script: "
      .. "lutra --trace trace.json %s"):format(path, path)
  end
  local ok, why = require("lutra.internal.atomic_file").try(path)
  return not ok and "cannot write " .. why or nil
end

--- Starts to listen. options: {lint = true, trace = path}. Returns the exit status.
function script.begin(options)
  if options.trace then
    local why = no_place(options.trace) -- better now than after an hour
    if why then
      io.stderr:write("lutra: --trace: ", why, "\n")
      return 1
    end
  end
  running = {lint = options.lint, trace = options.trace, undo = hold_exit(),
    watch = require("lutra.placement.lint_session").new()}
  return 0
end

-- Event by event: all of a long run together would be a gigabyte.
local function write_trace(path, listener)
  local ok, message = pcall(json.save, "--trace", path, chrome, listener:events())
  if not ok then io.stderr:write("lutra: ", tostring(message), "\n") end
  return ok
end

-- Says what was found. Of a script that failed nothing more is said when that is nothing: the
-- reason of its failure may be that it was never read.
local function say(findings, failed)
  if failed and #findings == 0 then return end
  io.stderr:write(tostring(findings), "\n",
    failed and "the script failed, so this is up to there\n" or "")
end

--- Ends it: findings are said on stderr, the trace is written. options: {failed = did the script
-- fail?}, or nil. Returns the exit status: 1 when there are findings, or when the trace cannot be
-- written.
function script.finish(options)
  local run = running
  if not run then return 0 end
  running = nil
  run.undo()
  local watch <close> = run.watch
  local status, failed = 0, options and options.failed
  if failed and not watch.listener:heard() then return 0 end -- an earlier trace is worth more
  if io.type(io.stdout) == "file" then io.stdout:flush() end
  if run.lint then
    local findings = watch:findings()
    say(findings, failed)
    if #findings > 0 then status = 1 end
  end
  if run.trace and not write_trace(run.trace, watch.listener) then status = 1 end
  return status
end

return script
