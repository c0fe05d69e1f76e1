--- data.distributed: the sampler for several processes that train the same model.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Sampler = require "lutra.data.sampler"
local kinds = require "lutra.data.kinds"

local DistributedSampler = Sampler:extend "DistributedSampler"

local parse = args.signature("DistributedSampler", "table|Tensor dataset, int(>=1)? num_replicas, "
  .. "int(>=0)? rank, bool shuffle = true, int seed = 0, bool drop_last = false")

-- Returns the number of processes and the rank of this one: of the process group, or of the
-- environment, nil where there is none.
local function of_job()
  local dist = package.loaded["lutra.distributed"]
  if dist and dist.is_initialized() then return dist.get_world_size(), dist.get_rank() end
  return math.tointeger(tonumber(os.getenv "WORLD_SIZE")),
    math.tointeger(tonumber(os.getenv "RANK"))
end

--- data.distributed.DistributedSampler(dataset, num_replicas, rank, shuffle = true, seed = 0,
-- drop_last = false): the indices of one of `num_replicas` processes. `rank` is the number of the
-- process, from 0 to num_replicas - 1; by default both are those of lt.distributed, or, before
-- init_process_group, of the environment variables WORLD_SIZE and RANK. Every process gets as many
-- indices: indices are repeated to fill the last ones up, or omitted with `drop_last`. Call
-- sampler:set_epoch(epoch) before each pass, so that each has another order. Raises an error for a
-- rank out of range.
function DistributedSampler:init(...)
  local dataset, replicas, rank, shuffle, seed, drop_last = parse(...)
  local size_of_job, rank_in_job = of_job()
  replicas, rank = replicas or size_of_job, rank or rank_in_job
  args.check(replicas and rank, "DistributedSampler: expected the arguments 'num_replicas' and "
    .. "'rank', a process group, or the environment variables WORLD_SIZE and RANK, got none\nhint: "
    .. "lt.distributed.init_process_group()")
  args.check(rank >= 0 and rank < replicas,
    "DistributedSampler: expected an integer from 0 to %d for argument 'rank', got %d",
    replicas - 1, rank)
  local n = kinds.length("DistributedSampler", "dataset", dataset)
  self.dataset, self.num_replicas, self.rank, self.epoch = dataset, replicas, rank, 0
  self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
  self.num_samples = drop_last and n // replicas or (n + replicas - 1) // replicas
  self.total_size = self.num_samples * replicas
end

--- Returns the indices of this process for the current epoch as an int64 tensor.
function DistributedSampler:order()
  local n = kinds.length("DistributedSampler", "dataset", self.dataset)
  local order = self.shuffle
    and lt.randperm(n, {generator = lt.Generator(self.seed + self.epoch), device = "cpu"})
    or lt.arange(n, {device = "cpu"})
  if self.num_samples == 0 then return lt.empty{0, dtype = "int64", device = "cpu"} end
  if self.total_size > n then order = order:tile((self.total_size + n - 1) // n) end
  return order[{{self.rank + 1, self.total_size, self.num_replicas}}]
end

--- #sampler: returns the number of indices of this process.
function DistributedSampler:__len() return self.num_samples end

--- Sets the number of the epoch, which the order of a shuffled pass depends on.
function DistributedSampler:set_epoch(epoch)
  args.expect(math.type(epoch) == "integer", "set_epoch", "an integer", "epoch", epoch)
  self.epoch = epoch
end

return require("lutra.internal.strict_table").strict(
  {DistributedSampler = DistributedSampler}, "data.distributed")
