--- The workers of a DataLoader as the program sees them.
--
-- Batch k of a pass is fetched by worker (k - 1) % num_workers + 1, so that the order of a stream's
-- batches is the same in every run; without in_order, by the worker with the fewest batches to do.
-- One batch is asked for when one is returned, so that at most num_workers * prefetch_factor are
-- fetched or wait for their turn. An answer of a pass that was left early is ignored.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local named = require "lutra.internal.transfer.named"
local reader = require "lutra.internal.transfer.reader"
local writer = require "lutra.internal.transfer.writer"

local workers = {}

-- Returns bytes and tensors of a message; raises an error that names the part that cannot travel.
local function pack(message, is_command)
  local bytes, tensors, what = writer.pack(message, "", is_command)
  if bytes then return bytes, tensors end
  local path = tensors:gsub("^%.", ""):gsub("^plan%.", "")
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
      pool:send(id, pack{plan = plan})
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

-- Returns the worker that fetches the next batch; nil when all have reached the end of a stream.
function Pass:next_worker()
  local count, least = self.loader.num_workers, nil
  if self.loader.in_order then return self.asked % count + 1 end
  for id = 1, count do
    if not self.over[id] and (not least or self.tasks[id] < self.tasks[least]) then least = id end
  end
  return least
end

-- Stores the answer for batch k.
function Pass:store(k, answer)
  self.answers[k] = answer
  self.arrived[#self.arrived + 1] = k
end

-- Asks for the next batch, if there is one. When the sampler fails, its error takes the place of
-- the batch.
function Pass:ask()
  local worker = not self.exhausted and self:next_worker()
  if not worker then return end
  local k = self.asked + 1
  local ok, bytes, tensors = true, nil, nil
  if not self.over[worker] then
    ok, bytes, tensors = pcall(function()
      local indices = self.next_indices()
      if indices ~= nil then
        return pack({pass = self.number, batch = k, indices = indices}, true)
      end
      self.exhausted = true
    end)
    if self.exhausted then return end
  end
  self.asked, self.worker_of[k] = k, worker
  if not ok then
    self.exhausted = true
    self:store(k, {sampler_error = {bytes}})
  elseif bytes then
    self.outstanding, self.tasks[worker] = self.outstanding + 1, self.tasks[worker] + 1
    self.pool:send(worker, bytes, tensors)
  else
    self:store(k, {})
  end
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
    self:stop()
    raise(worker, {text = "it has ended: " .. tensors, traceback = ""})
  end
  local ok, answer = pcall(reader.unpack, bytes, tensors)
  if not ok then
    self:stop()
    error(answer, 0)
  end
  if not answer.batch then -- it could not be set up
    self:stop()
    raise(worker, answer.failure)
  end
  if answer.pass ~= self.number then return end
  self.outstanding, self.tasks[worker] = self.outstanding - 1, self.tasks[worker] - 1
  self:store(answer.batch, answer)
  if answer.values or answer.failure or self.over[worker] then return end
  self.over[worker], self.running = true, self.running - 1
  if self.running == 0 then self.exhausted = true end
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
      self:ask()
      if answer.sampler_error then error(answer.sampler_error[1], 0) end
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

-- Ends the pass and its workers, also persistent ones, because one of them cannot go on.
function Pass:stop()
  local pool = self.pool
  if self.loader.pool == pool then self.loader.pool = nil end
  self.pool, self.answers = nil, {}
  pool:close()
end

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
    worker_of = {}, tasks = {}, over = {}, running = loader.num_workers}, Pass)
  loader.passes, loader.current_pass = number, pass
  for id = 1, loader.num_workers do
    pass.tasks[id] = 0
    pass.pool:send(id, pack({pass = number, seed = seed}, true))
  end
  for _ = 1, loader.prefetch_factor * loader.num_workers do pass:ask() end
  return function() return pass:step() end, pass
end

return workers
