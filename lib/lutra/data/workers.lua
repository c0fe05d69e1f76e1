--- The workers of a DataLoader as the program sees them.
--
-- Batch k of a pass is fetched by worker (k - 1) % num_workers + 1, and each worker has up to
-- prefetch_factor batches to do. Answers are put in order. An answer of a pass that was left early
-- is ignored.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local named = require "lutra.internal.transfer.named"
local reader = require "lutra.internal.transfer.reader"
local writer = require "lutra.internal.transfer.writer"

local workers = {}

-- Returns bytes and tensors of a value; raises an error that names the part that cannot travel.
local function pack(value, root)
  local bytes, tensors, what = writer.pack(value, root)
  if bytes then return bytes, tensors end
  local path = tensors:gsub("^%.plan%.", "")
  args.fail("DataLoader: cannot send '%s' to a worker: it is %s", path, what)
end

-- Starts the workers of a loader and sends them the dataset.
local function start(loader, seed)
  local pool = core._workers(loader.num_workers, named.search_path(), package.cpath,
    "lutra.data.worker")
  local plan = {dataset = loader.dataset, collate_fn = loader.collate_fn,
    worker_init_fn = loader.worker_init_fn, iterable = loader.iterable, batched = loader.batched,
    drop_last = loader.drop_last, num_workers = loader.num_workers, seed = seed,
    default_dtype = lt.get_default_dtype(), default_device = lt.get_default_device()}
  local ok, err = pcall(function()
    for id = 1, loader.num_workers do
      plan.id = id
      pool:send(id, pack({plan = plan}, ""))
    end
  end)
  if not ok then
    pool:close()
    error(err, 0)
  end
  return pool
end

local Pass = {}
Pass.__index = Pass

-- Asks a worker for the next batch. Returns false when there is no other.
function Pass:ask(worker)
  if self.exhausted or self.over[worker] then return false end
  local indices = self.next_indices()
  if indices == nil then
    self.exhausted = true
    return false
  end
  self.asked = self.asked + 1
  self.worker_of[self.asked] = worker
  self.outstanding = self.outstanding + 1
  self.pool:send(worker, writer.pack({pass = self.number, batch = self.asked, indices = indices},
    "indices", true))
  return true
end

local function raise(worker, failure)
  args.fail("DataLoader: worker %d: %s\n%s", worker, failure.text, failure.traceback)
end

-- Receives the next answer of this pass and stores it.
function Pass:receive()
  local timeout = self.loader.timeout
  local worker, bytes, tensors = self.pool:receive(timeout > 0 and timeout or -1)
  if not worker then
    args.fail("DataLoader: expected a batch within %g seconds (argument 'timeout'), got none",
      timeout)
  end
  if not bytes then
    raise(worker, {text = "it has ended: " .. tensors, traceback = ""})
  end
  local answer = reader.unpack(bytes, tensors)
  if not answer.batch then raise(worker, answer.failure) end -- while it was set up
  if answer.pass ~= self.number then return end
  self.outstanding = self.outstanding - 1
  self.answers[answer.batch] = answer
  self.arrived[#self.arrived + 1] = answer.batch
  if not answer.values and not answer.failure then self.over[worker] = true end
  self:ask(worker)
end

-- Returns the number of the batch that is returned next, nil while it has not arrived.
function Pass:due()
  if self.loader.in_order then
    return self.answers[self.next] and self.next
  end
  return table.remove(self.arrived, 1)
end

--- Returns the values of the next batch as a packed list, nil at the end.
function Pass:step()
  while true do
    if not self.pool then return nil end
    args.check(self.pool ~= self.loader.pool or self.loader.current_pass == self, "DataLoader: "
      .. "cannot continue this pass: the persistent workers have begun another one")
    local k = self:due()
    if k then
      local answer, worker = self.answers[k], self.worker_of[k]
      self.answers[k], self.worker_of[k] = nil, nil
      self.next = self.next + 1
      if answer.failure then raise(worker, answer.failure) end
      if answer.values then return answer.values end
    elseif self.outstanding == 0 then
      self:close()
      return nil
    else
      self:receive()
    end
  end
end

--- Ends the pass; its workers end, unless they are persistent.
function Pass:close()
  local pool = self.pool
  self.pool, self.answers = nil, {}
  if pool and not self.loader.persistent_workers then pool:close() end
end
Pass.__close = Pass.close

-- Returns the running workers of a loader, started now unless they are persistent and run.
local function pool_of(loader, seed)
  if not loader.persistent_workers then return start(loader, seed) end
  loader.pool = loader.pool or start(loader, seed)
  return loader.pool
end

--- Begins a pass of a loader in its workers: returns a function that returns the next batch as a
-- packed list, nil at the end, and the value that ends the pass when a loop closes it.
function workers.pass(loader, next_indices, seed)
  local number = (loader.passes or 0) + 1
  local pass = setmetatable({loader = loader, next_indices = next_indices, number = number,
    pool = pool_of(loader, seed), asked = 0, next = 1, outstanding = 0, answers = {}, arrived = {},
    worker_of = {}, over = {}}, Pass)
  loader.passes, loader.current_pass = number, pass
  for id = 1, loader.num_workers do
    pass.pool:send(id, writer.pack({pass = number, seed = seed}, "pass", true))
  end
  for _ = 1, loader.prefetch_factor do
    for id = 1, loader.num_workers do pass:ask(id) end
  end
  return function() return pass:step() end, pass
end

return workers
