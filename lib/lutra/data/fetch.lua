--- Fetching of batches from a dataset, in the main program and in workers.
--
-- A fetcher is a function of the indices of a batch (a list or an int64 tensor, or one index where
-- the loader does not batch; for an iterable dataset, the number of samples). It returns the values
-- of the batch as a packed list, nil at the end of an iterable dataset.

local lt = require "lutra"
local args = require "lutra.internal.args"
local collating = require "lutra.data.collate"
local kinds = require "lutra.data.kinds"
local indices_of = require "lutra.data.indices"

local fetch = {}

-- Returns a sample as the collate_fn of a user gets it: a single value, or the list of several.
local function as_value(sample)
  if sample.n == 1 then return sample[1] end
  return sample
end

-- Returns the values of a batch from the list of packed samples.
local function join(plan, samples)
  if not plan.collate_fn then return table.pack(collating.default_collate(samples)) end
  for k, sample in ipairs(samples) do samples[k] = as_value(sample) end
  return table.pack(plan.collate_fn(samples))
end

-- Returns the values of one sample, for a loader that does not batch.
local function convert(plan, sample)
  if not plan.collate_fn then return sample end
  return table.pack(plan.collate_fn(as_value(sample)))
end

-- Raises an error unless the indices of a batch are a list or a tensor.
local function check_indices(indices)
  args.check(type(indices) == "table" or lt.is_tensor(indices), "DataLoader: expected a list of "
    .. "indices for each batch from argument 'batch_sampler', got %s", args.show(indices))
end

-- Returns the indices of a batch as an int64 tensor.
local function index_tensor(indices)
  check_indices(indices)
  return indices_of("DataLoader", "sampler", indices)
end

local function by_index(plan)
  local dataset = plan.dataset
  if not plan.batched then
    return function(index) return convert(plan, table.pack(kinds.sample(dataset, index))) end
  end
  if not plan.collate_fn then
    if lt.is_tensor(dataset) then
      return function(indices)
        local rows = index_tensor(indices)
        return table.pack(dataset:index_select(1, rows:to(dataset.device)))
      end
    elseif args.is_callable(dataset.get_batch) then
      return function(indices)
        return table.pack(dataset:get_batch(index_tensor(indices)))
      end
    end
  end
  return function(indices)
    local samples = {}
    check_indices(indices)
    if lt.is_tensor(indices) then indices = indices:totable() end
    for k, i in ipairs(indices) do samples[k] = table.pack(kinds.sample(dataset, i)) end
    return join(plan, samples)
  end
end

local function from_stream(plan)
  local step, state, control, over
  local function next_sample()
    if not step then
      step, state, control = plan.dataset:iter()
      args.expect(args.is_callable(step), "DataLoader", "an iterator", "dataset:iter()", step)
    end
    local sample = table.pack(step(state, control))
    control = sample[1]
    if control == nil then
      over = true
      return nil
    end
    return sample
  end
  if not plan.batched then
    return function()
      local sample = not over and next_sample()
      return sample and convert(plan, sample) or nil
    end
  end
  return function(count)
    local samples = {}
    while #samples < count and not over do samples[#samples + 1] = next_sample() end
    if #samples == 0 or (plan.drop_last and #samples < count) then return nil end
    return join(plan, samples)
  end
end

-- Raises an error for a batch whose first value is nil, which would end the loop.
local function check(values)
  args.check(values == nil or values[1] ~= nil, "DataLoader: expected at least one value of a "
    .. "batch, got nil\nhint: the dataset's get or the collate_fn returned nothing")
  return values
end

--- Returns a new fetcher for one pass. `plan` is a table {dataset, iterable, batched, drop_last,
-- collate_fn}.
function fetch.new(plan)
  local read = (plan.iterable and from_stream or by_index)(plan)
  return function(indices) return check(read(indices)) end
end

-- Sets the default generator and math.random to their former sequences. Lua cannot read the state
-- of math.random, so that continues from a seed drawn before.
local function restore(state, a, b)
  return setmetatable({}, {__close = function()
    lt.set_rng_state(state)
    math.randomseed(a, b)
  end})
end

--- Returns fetcher(indices). The fetcher draws the random numbers of `seed`, from lt's default
-- generator and from math.random, and the caller's sequences are the same whatever it draws.
function fetch.seeded(fetcher, indices, seed)
  local _ <close> = restore(lt.get_rng_state(), math.random(0), math.random(0))
  lt.manual_seed(seed)
  math.randomseed(seed)
  return fetcher(indices)
end

return fetch
