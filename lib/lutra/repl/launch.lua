--- `lutra --nproc N script.lua`: runs a script on N ranks of this machine through mpirun.
--
-- Each rank writes to named pipes of its own, so that its output is known to be its, whatever
-- mpirun adds. A rank that fails ends the job, whose exit status is that of the first such rank.
--
-- Invariant: when `run` returns, no process of the job runs, and the folder of the pipes is gone.

local host = require "lutra.repl.host"
local mpirun = require "lutra.repl.launch.mpirun"
local output = require "lutra.repl.launch.output"
local processes = require "lutra.repl.processes"

local launch = {}

local most_ranks = 1024
local last_signal = 64 -- a status above 128 + 64 is that of exit
local files = 8 -- for each rank, here and in mpirun
local patience = 5 -- seconds until a job that was asked to end is killed

-- Names of the signals that say more than their number.
local signals = {[1] = "hangup", [2] = "interrupt", [4] = "illegal instruction", [6] = "abort",
  [7] = "bus error", [8] = "arithmetic error", [9] = "killed", [11] = "segmentation fault",
  [15] = "terminated"}

local function report(message, ...)
  io.stderr:write("lutra: ", message:format(...), "\n")
  io.stderr:flush()
end

-- ---- the command line

-- Returns the number of ranks; nil and the error for wrong arguments.
local function check(options)
  local count = options.nproc:find "^%d+$" and math.tointeger(tonumber(options.nproc))
  if not count or count < 1 or count > most_ranks then
    return nil, ("--nproc: expected a number of ranks from 1 to %d, got '%s'"):format(most_ranks,
      options.nproc)
  end
  if options.conflict then
    return nil, ("--nproc: expected a script or -e, got %s"):format(options.conflict)
  end
  return count
end

-- ---- the job

local Job = {}
Job.__index = Job

-- Returns a job that has not started.
local function new_job(count)
  return setmetatable({count = count, files = {}, sources = {}, fds = {}, ranks = {},
    output = output.new(count, io.stdout, io.stderr)}, Job)
end

-- Returns a result of `processes`; raises an error for nil and a reason.
local function need(result, why)
  if result then return result end
  local hint = why:find "Too many open files" and "\nhint: ulimit -n 4096" or ""
  return error(("--nproc: cannot make the named pipes: %s%s"):format(why, hint), 0)
end

-- Makes and opens a named pipe of the job; returns its number.
function Job:open(file, source)
  local path = self.folder .. "/" .. file
  self.files[#self.files + 1] = path -- before a failure, which may leave the file
  local fd = need(processes.fifo(path))
  self:watch(fd, source)
  return fd
end

-- Makes and opens all named pipes of the job.
function Job:open_all()
  self.folder = need(processes.folder())
  self.control = self:open("ranks", {control = true})
  for rank = 0, self.count - 1 do
    for _, name in ipairs{"out", "err"} do
      self:open(rank .. "." .. name, {rank = rank, name = name})
    end
  end
end

-- Adds a pipe to those that are read.
function Job:watch(fd, source)
  source.fd = fd
  self.sources[fd] = source
  self.fds[#self.fds + 1] = fd
end

-- Closes and removes the pipes.
function Job:remove()
  for fd in pairs(self.sources) do processes.close(fd) end
  for _, path in ipairs(self.files) do os.remove(path) end
  if self.folder then os.remove(self.folder) end
end

-- Starts mpirun; returns nil and the reason on failure.
function Job:start(words)
  local command, variables = mpirun.command(self.count, words, self.folder)
  if not command then
    return nil, ("--nproc: %s\nhint: install the Debian package openmpi-bin (or mpich)"):format(
      variables)
  end
  if not os.getenv "OMP_NUM_THREADS" then
    variables.OMP_NUM_THREADS = tostring(math.max(1, processes.cores() // self.count))
  end
  local columns = host.isatty(2) and (host.terminal_size() or 80) or 0
  variables.LUTRA_LAUNCHER = tostring(columns)
  local pid, fd = processes.start(command, variables)
  if not pid then return nil, ("--nproc: cannot start %s"):format(fd) end
  self.pid = pid
  self.messages = {}
  self:watch(fd, {messages = true})
  return true
end

-- Asks mpirun to end all ranks; they are killed when that takes too long.
function Job:stop()
  if self.deadline then return end
  self.deadline = os.time() + patience
  processes.kill(self.pid, "TERM")
end

-- Kills what is left of the job.
function Job:kill()
  if self.pid then processes.kill(self.pid, "KILL") end
  for _, rank in pairs(self.ranks) do
    if not rank.status then processes.kill(rank.pid, "KILL") end
  end
end

-- Handles the report of a rank: "start 0 12345" with its process, "end 0 1" with its exit status.
function Job:note(line)
  local what, rank, value = line:match "^(%l+) (%d+) (%d+)$"
  rank, value = math.tointeger(tonumber(rank)), math.tointeger(tonumber(value))
  if what == "start" then
    self.ranks[rank] = {pid = value}
  elseif what == "end" and self.ranks[rank] then
    self.ranks[rank].status = value
    if value ~= 0 and not self.failed then
      self.failed = rank
      self.give_up = os.time() + patience -- for an mpirun that does not end the job
    end
  end
end

-- Reads what has arrived on a pipe. Returns whether there was anything.
function Job:relay(fd)
  local source, text = self.sources[fd], processes.read(fd)
  if not text then
    self.sources[fd] = nil
    processes.close(fd)
    for i, other in ipairs(self.fds) do
      if other == fd then table.remove(self.fds, i) end
    end
  elseif source.messages then
    table.insert(self.messages, text)
  elseif source.control then
    source.rest = (source.rest or "") .. text
    source.rest = source.rest:gsub("([^\n]*)\n", function(line)
      self:note(line)
      return ""
    end)
  elseif text ~= "" then
    self.output:add(source.rank, source.name, text)
  end
  return text and text ~= ""
end

-- Reads what is left on all pipes, after the end of all ranks.
function Job:drain()
  local before = {table.unpack(self.fds)}
  for _, fd in ipairs(before) do
    repeat until not self:relay(fd)
  end
  for rank = 0, self.count - 1 do self.output:finish(rank) end
end

-- Ends a job that has run too long after a signal, after the failure of a rank, or whose output
-- cannot be written.
function Job:check_end()
  local now = os.time()
  if self.output.broken or self.give_up and now > self.give_up then self:stop() end
  if self.deadline and now > self.deadline then self:kill() end
end

-- Passes output on until mpirun has ended; returns its exit status.
function Job:follow()
  while true do
    local waiting = self.deadline or self.give_up
    local ready, signal = processes.poll(self.fds, waiting and 0.2 or nil)
    for _, fd in ipairs(ready) do self:relay(fd) end
    if signal then
      if self.signal then self:kill() end
      self.signal = self.signal or signal
      self:stop()
    end
    self:check_end()
    local status = processes.wait(self.pid)
    if status then
      self.pid = nil
      return status
    end
  end
end

-- Shows why the job has failed: errors of ranks, else how the first of them ended, else what mpirun
-- said.
function Job:explain(status)
  if self.output:show_failures() then return end
  local rank = self.failed and self.ranks[self.failed]
  local number = rank and rank.status - 128
  if rank and number > 0 and number <= last_signal then
    report("rank %d was ended by signal %d%s", self.failed, number,
      signals[number] and " (" .. signals[number] .. ")" or "")
  elseif rank then
    report("rank %d ended with status %d", self.failed, rank.status)
  else
    io.stderr:write(table.concat(self.messages))
    if status ~= 0 then report("mpirun ended with status %d", status) end
  end
end

-- Returns the exit status of the job, after its end; nil and the reason when its output was lost.
function Job:finish(status)
  repeat until not self:relay(self.control)
  self:kill() -- ranks that mpirun has left, whose output would not end
  self:drain()
  if self.signal then return 128 + self.signal end
  if self.output.broken then return nil, "cannot write to " .. self.output.broken end
  local failed = self.failed and self.ranks[self.failed].status
  self:explain(status)
  return failed or status
end

-- Runs the job; returns its exit status, or nil and the reason when it cannot be started.
function Job:run(words)
  self:open_all()
  local started, why = self:start(words)
  if not started then return nil, why end
  return self:finish(self:follow())
end

-- Merges the traces of the ranks after a job that succeeded; returns its exit status.
local function merge_traces(options, count, status)
  if not options.trace or count == 1 or status ~= 0 then return status end
  return require("lutra.placement.merge").after_job(options.trace, count) and 0 or 1
end

--- Runs the script of the command line on several ranks; returns the exit status. options: nproc
-- (text), arguments (the words of the command line without --nproc), conflict (another option or
-- word that cannot be combined with it), trace (the file of the trace, or nil).
function launch.run(options)
  local count, wrong = check(options)
  if not count then
    report("%s\nhint: lutra --nproc 4 train.lua", wrong)
    return 2
  end
  assert(processes.catch())
  processes.files(64 + files * count)
  local words = {assert(host.program(options.program))}
  table.move(options.arguments, 1, #options.arguments, 2, words)
  local job = new_job(count)
  local ok, status, why = pcall(job.run, job, words)
  if not ok then job:kill() end
  job:remove()
  if not ok then error(status, 0) end
  if status then return merge_traces(options, count, status) end
  report("%s", why)
  os.exit(1) -- here, as main.c would report a failure of stdout again
end

return launch
