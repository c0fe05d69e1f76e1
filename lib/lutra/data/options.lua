--- The options of data.DataLoader: their checks, as in PyTorch, and the samplers that follow from
-- them.

local lt = require "lutra"
local args = require "lutra.internal.args"
local indices_of = require "lutra.data.indices"
local kinds = require "lutra.data.kinds"
local samplers = require "lutra.data.samplers"

local NAMES = {"dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
  "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context",
  "generator", "prefetch_factor", "persistent_workers", "pin_memory_device", "in_order", "device"}

local function check_dataset(options)
  local dataset = options.dataset
  options.iterable = kinds.is_iterable(dataset)
  args.check(options.iterable or kinds.is_map(dataset),
    "DataLoader: expected a dataset for argument 'dataset', got %s\n"
    .. "hint: data.DataLoader(data.TensorDataset(X, Y))", args.show(dataset))
end

local function check_batch_size(options)
  local size = options.batch_size
  args.check(size == nil or size == false or (math.tointeger(size) and size >= 1), "DataLoader: "
    .. "expected an integer of at least 1 or false for argument 'batch_size', got %s",
    args.show(size))
  if size == nil then size = 1 end
  if options.batch_sampler then
    args.check(size == 1 and not options.shuffle and not options.sampler and not options.drop_last,
      "DataLoader: cannot use batch_size, shuffle, sampler or drop_last: the batch_sampler gives "
      .. "the batches")
    indices_of.check("DataLoader", "batch_sampler", options.batch_sampler)
  end
  args.check(size or not options.drop_last,
    "DataLoader: cannot drop the last batch: batch_size = false makes no batches")
  options.batch_size = size and math.tointeger(size)
  options.batched = options.batch_size ~= false
end

local function check_order(options)
  if options.iterable then
    for _, name in ipairs {"shuffle", "sampler", "batch_sampler"} do
      args.check(not options[name],
        "DataLoader: cannot use '%s': an iterable dataset gives the order", name)
    end
    return
  end
  args.check(not (options.shuffle and options.sampler),
    "DataLoader: cannot shuffle: the sampler gives the order")
  if options.sampler then indices_of.check("DataLoader", "sampler", options.sampler) end
end

local function check_workers(options)
  local workers = options.num_workers > 0
  args.check(workers or not options.prefetch_factor,
    "DataLoader: cannot use 'prefetch_factor': it requires num_workers of at least 1")
  args.check(workers or not options.persistent_workers,
    "DataLoader: cannot use 'persistent_workers': it requires num_workers of at least 1")
  if workers then options.prefetch_factor = options.prefetch_factor or 2 end
end

-- Sets the samplers that PyTorch's loader has: by default one for the order and one for batches.
local function set_samplers(options)
  options.shuffle = options.shuffle or false
  if options.iterable or options.batch_sampler then return end
  local dataset = options.dataset
  if options.shuffle then
    options.sampler = samplers.RandomSampler(dataset, {generator = options.generator})
  elseif not options.sampler then
    options.sampler = samplers.SequentialSampler(dataset, {}) -- also of a list
  end
  if options.batched then
    options.batch_sampler = samplers.BatchSampler(options.sampler, options.batch_size,
      options.drop_last)
  end
end

--- Returns the options of data.DataLoader by name, checked, from their values in order. `iterable`
-- and `batched` tell the kind of the loader. Raises an error for options that exclude each other.
return function(...)
  local values, options = table.pack(...), {}
  for i, name in ipairs(NAMES) do options[name] = values[i] end
  check_dataset(options)
  check_order(options)
  check_batch_size(options)
  check_workers(options)
  set_samplers(options)
  options.device = options.device and args.device("DataLoader", options.device)
  if options.pin_memory_device and not lt.accelerator.is_available() then
    options.pin_memory_device = nil
  end
  return options
end
