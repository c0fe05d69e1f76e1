--- The program of a worker of a DataLoader: receives commands and sends batches.
--
-- Commands: {plan = ...} with what the worker needs, once; {pass = n, seed = s} begins a pass;
-- {pass = n, batch = k, indices = i} asks for a batch. Answers: {pass = n, batch = k, values = v},
-- without values at the end of an iterable dataset, or with `failure`, an error and its traceback.

local core = require "lutra.core"
local reader = require "lutra.internal.transfer.reader"
local writer = require "lutra.internal.transfer.writer"
local worker_info = require "lutra.data.worker_info"
local lt = require "lutra"

-- Returns the message of an error with the traceback of this state, without the lines of the
-- library's loop.
local function describe(err)
  local ok, text = pcall(tostring, err)
  if not ok then text = "an error object whose __tostring fails" end
  return {text = text, traceback = debug.traceback("traceback of the worker:", 2)}
end

local function send(answer)
  local bytes, tensors, what = writer.pack(answer, "batch", true)
  if bytes then return core._worker_send(bytes, tensors) end
  local path = tensors:gsub("^batch%.values", "batch")
  answer.values = nil
  answer.failure = {text = ("DataLoader: cannot send '%s' from a worker: it is %s"):format(path,
    what), traceback = ""}
  core._worker_send(writer.pack(answer, "batch", true))
end

-- Prepares the worker: PyTorch's get_worker_info and worker_init_fn.
local function set_up(plan)
  worker_info.current = {id = plan.id, num_workers = plan.num_workers, seed = plan.seed + plan.id,
    dataset = plan.dataset}
  lt.set_default_dtype(plan.default_dtype)
  lt.set_default_device(plan.default_device)
  lt.manual_seed(worker_info.current.seed)
  math.randomseed(worker_info.current.seed)
  if plan.worker_init_fn then plan.worker_init_fn(plan.id) end
end

local state = {} -- plan, fetcher, pass, seed

local function run(command)
  if command.plan then
    state.plan = command.plan
    return set_up(command.plan)
  end
  if command.seed then
    worker_info.current.seed = command.seed + state.plan.id
    state.fetcher = require("lutra.data.fetch").new(state.plan)
    state.pass, state.seed = command.pass, command.seed
    return
  end
  if command.pass ~= state.pass then return end
  local seed = state.seed + command.batch
  local values = require("lutra.data.fetch").seeded(state.fetcher, command.indices, seed)
  send{pass = command.pass, batch = command.batch, values = values}
end

-- Runs one message; reports a failure as the answer for its batch.
local function answer(bytes, tensors)
  local command
  local ok, failure = xpcall(function()
    command = reader.unpack(bytes, tensors)
    run(command)
  end, describe)
  if ok then return end
  command = command or {}
  send{pass = command.pass, batch = command.batch, failure = failure}
end

--- Receives messages until the pool is closed.
return function()
  while true do
    local bytes, tensors = core._worker_receive()
    if not bytes then return end
    answer(bytes, tensors)
  end
end
