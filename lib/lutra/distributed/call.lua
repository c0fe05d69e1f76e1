--- Calls of process groups: what collectives.lua and messages.lua share.
--
-- A call is checked on this rank, then submitted to the communicator of the group for the tensor's
-- device, where all ranks compare what they call. A rank that cannot make a collective says so to
-- the others, so that all of them raise an error instead of waiting for it.

local lt = require "lutra"
local args = require "lutra.internal.args"
local groups = require "lutra.distributed.groups"

local call = {}

-- Raises an error of the core again, at the line of the program, with the name of the function that
-- it called, which has the fields `kind` and `title` of a spec.
local function raise_reported(message, spec)
  args.pass_on_interrupt(message)
  local text = tostring(message):gsub("^[^\n]-:%d+: ", "")
  local start = spec.kind .. ": "
  if spec.title and text:sub(1, #start) == start then
    text = spec.title .. ": " .. text:sub(#start + 1)
  end
  args.fail("%s", text)
end

--- The result of a call with async_op = true.
local Work = {__name = "Work"}
Work.__index = Work

--- Waits for the call: on the CPU until its results are there; on a CUDA device the current stream
-- waits, and the program goes on. Raises an error when the call failed, or after `timeout` seconds.
-- Returns true.
function Work:wait(timeout)
  if timeout ~= nil then
    args.expect(type(timeout) == "number" and timeout > 0, "wait", "a positive number of seconds",
      "timeout", timeout)
  end
  if self.done then return true end
  local ok, message = pcall(self.work.wait, self.work, timeout)
  if not ok then raise_reported(message, self) end
  if self.finish then lt.no_grad(self.finish, self) end
  self.done, self.finish = true, nil
  return true
end

--- Returns whether the call is done, with its results as after wait(), or has failed. On a CUDA
-- device it may not be done after wait().
function Work:is_completed()
  if not self.work:is_done() then return false end
  local ok, message = pcall(self.wait, self)
  if not ok then args.pass_on_interrupt(message) end
  return true
end

--- Returns whether the call is done and has not failed.
function Work:is_success() return self:is_completed() and self.done or false end

--- Returns the rank in the job that sent what a recv got; nil before.
function Work:source_rank()
  local rank = self.work:source()
  return rank >= 0 and self.group.ranks[rank + 1] or nil
end

function Work:__tostring()
  return ("Work(%s, %s)"):format(self.kind, self.work:is_done() and "done" or "not done")
end

-- Returns the line of the program that makes the call: "train.lua:12".
local function here()
  local level = 3
  local info = debug.getinfo(level, "Sl")
  while info do
    if not args.is_library(info) then
      return ("%s:%d"):format(info.short_src:match "[^/]*$", info.currentline)
    end
    level = level + 1
    info = debug.getinfo(level, "Sl")
  end
  return ""
end

-- Returns the error, for the argument `name`, that keeps a tensor from being sent, or nil.
local function fault_of(group, name, x)
  local device = x.device
  if device == "cpu" then
    if group.backend_name == "nccl" then
      return ("expected a CUDA tensor for argument '%s', got one on the CPU\nhint: the group has "
        .. "the backend nccl; init_process_group() has both"):format(name)
    end
  elseif not device:find "^cuda" then
    return ("expected a tensor on the CPU or a CUDA device for argument '%s', got one on %q")
      :format(name, device)
  elseif group.backend_name == "mpi" then
    return ("expected a tensor on the CPU for argument '%s', got one on %q\nhint: the group has "
      .. "the backend mpi; init_process_group() has both"):format(name, device)
  elseif group.device and group.device ~= device then
    return ("expected a tensor on %q, this rank's device in the group, for argument '%s', got "
      .. "one on %q\nhint: x = x:to(%q)"):format(group.device, name, device, group.device)
  end
  if not x:is_contiguous() then
    return ("expected a contiguous tensor for argument '%s', got one of shape %s with other "
      .. "strides\nhint: x = x:contiguous()"):format(name, tostring(x.shape))
  end
end

--- Returns why the tensors, a list of {name, tensor}, cannot travel together, or nil: on which
-- device, in which memory, of which dtype they are.
function call.fault(group, tensors)
  local first = tensors[1]
  for _, entry in ipairs(tensors) do
    local name, x = entry[1], entry[2]
    local fault = fault_of(group, name, x)
    if fault then return fault end
    if x.dtype ~= first[2].dtype then
      return ("expected tensors of one dtype, got %s for argument '%s' and %s for '%s'"):format(
        first[2].dtype, first[1], x.dtype, name)
    end
    if x.device ~= first[2].device then
      return ("expected tensors on one device, got %q for argument '%s' and %q for '%s'"):format(
        first[2].device, first[1], x.device, name)
    end
  end
end

--- Tells the other ranks that this one cannot make a call because of a fault, waits for them, and
-- raises the error `message`.
function call.refuse(group, kind, fault, message)
  if group.level ~= "off" and #group.ranks > 1 then
    local line = fault:match "^[^\n]*"
    local ok, reported = pcall(function()
      group.mpi:submit(true, {{kind = kind, refusal = line}}):wait()
    end)
    if not ok then args.pass_on_interrupt(reported) end
  end
  return args.fail("%s", message)
end

-- Compares the calls of all ranks by MPI, for a communicator that does not.
local function compare(group, spec)
  group.mpi:submit(true, {{kind = spec.kind, reduction = spec.reduction, peer = spec.peer,
    shape = spec.shape, label = spec.label, input_counts = spec.input_counts,
    output_counts = spec.output_counts, check_only = true}}):wait()
end

--- Makes a call. `spec` has the fields of a call of core._communication; also `device` (of the
-- tensors), `fault` (why this rank cannot make it, or nil), `finish` (a function that is called
-- after its wait), `title` (the function's name where it is not the kind). Returns a work with
-- `async`, otherwise waits for it. Outside of the group nothing happens.
function call.run(group, spec, async)
  if groups._is_outside(group) then return end
  if spec.fault then
    call.refuse(group, spec.kind, spec.fault, ("%s: on rank %d: %s"):format(spec.title or spec.kind,
      groups._job_rank(), spec.fault))
  end
  if group.level == "detail" then spec.label = here() end
  local ok, work = pcall(function()
    local accelerated = spec.device and spec.device ~= "cpu"
    local communicator = group.mpi
    if accelerated then
      if group.level ~= "off" then compare(group, spec) end
      communicator = groups._communicator(group, spec.device, spec.kind)
    end
    return communicator:submit(not async, {spec})
  end)
  if not ok then raise_reported(work, spec) end
  work = setmetatable({work = work, kind = spec.kind, title = spec.title, finish = spec.finish,
    group = group}, Work)
  if async then return work end
  work:wait()
end

--- Makes several messages as one call, and returns its work.
function call.run_messages(group, specs, now)
  for _, spec in ipairs(specs) do
    args.check(not spec.fault, "%s: on rank %d: %s", spec.kind, groups._job_rank(), spec.fault)
    if group.level == "detail" then spec.label = here() end
  end
  local device = specs[1].device
  local ok, work = pcall(function()
    local communicator = groups._communicator(group, device, specs[1].kind, true)
    return communicator:submit(now, specs)
  end)
  if not ok then raise_reported(work, specs[1]) end
  return setmetatable({work = work, kind = specs[1].kind, group = group}, Work)
end

return call
