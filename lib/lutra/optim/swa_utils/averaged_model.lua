--- AveragedModel: a copy of a model whose parameters are averages over the training.

local lt = require "lutra"
local args = require "lutra.internal.args"
local averages = require "lutra.optim.swa_utils.averages"

local AveragedModel = lt.nn.Module:extend "AveragedModel"

local parse = args.signature("AveragedModel", "any model, device? device = nil, "
  .. "function? avg_fn = nil, function? multi_avg_fn = nil, bool use_buffers = false")

--- optim.swa_utils.AveragedModel(model, {device = nil, avg_fn = nil, multi_avg_fn = nil,
-- use_buffers = false}): a module with a deep copy of `model` in the field `module`, on `device` if
-- given. By default its parameters become the means of the models given to update_parameters.
-- avg_fn(average, current, n) returns another average of a tensor, where n, a tensor, counts the
-- earlier models; multi_avg_fn(averages, currents, n) updates lists of tensors of one dtype and
-- device in place. With use_buffers, buffers are averaged like parameters; otherwise they are
-- copied. Raises an error for both functions, and when `model` is no module.
function AveragedModel:init(...)
  local model, device, avg_fn, multi_avg_fn, use_buffers = parse(...)
  args.expect(lt.nn.is_module(model), "AveragedModel", "a module", "model", model)
  args.check(not (avg_fn and multi_avg_fn),
    "AveragedModel: expected one of the arguments 'avg_fn' and 'multi_avg_fn', got both")
  self.module = model:clone()
  if device then self.module:to(device) end
  self:register_buffer("n_averaged", lt.tensor(0, {dtype = "int64", device = device}))
  self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
end

--- Returns what the averaged model returns.
function AveragedModel:forward(...) return self.module(...) end

-- Returns the detached parameters of a module as a list, with its buffers if `with_buffers`.
local function tensors_of(module, with_buffers)
  local list = {}
  for p in module:parameters() do list[#list + 1] = p:detach() end
  if with_buffers then
    for b in module:buffers() do list[#list + 1] = b:detach() end
  end
  return list
end

-- Calls fn(averages, currents, n) for the tensors of each device and dtype.
local function each_group(mine, theirs, n, fn)
  local groups, order = {}, {}
  for i, average in ipairs(mine) do
    local key = average.device .. " " .. average.dtype
    if not groups[key] then
      groups[key] = {{}, {}}
      order[#order + 1] = key
    end
    table.insert(groups[key][1], average)
    table.insert(groups[key][2], theirs[i])
  end
  for _, key in ipairs(order) do
    local device = groups[key][1][1].device
    fn(groups[key][1], groups[key][2], n:to(device))
  end
end

local function update(self, model)
  local mine = tensors_of(self.module, self.use_buffers)
  local theirs = tensors_of(model, self.use_buffers)
  args.check(#mine == #theirs,
    "update_parameters: expected a model of %d tensors for argument 'model', got %d", #mine,
    #theirs)
  for i, average in ipairs(mine) do theirs[i] = theirs[i]:to(average.device) end
  local n = self.n_averaged
  if n:item() == 0 then
    for i, average in ipairs(mine) do average:copy_(theirs[i]) end
  elseif self.multi_avg_fn then
    each_group(mine, theirs, n, self.multi_avg_fn)
  else
    local average_of = self.avg_fn or averages.get_swa_avg_fn()
    for i, average in ipairs(mine) do
      average:copy_(average_of(average, theirs[i], n:to(average.device)))
    end
  end
  if not self.use_buffers then
    local current = model:buffers()
    for buffer in self.module:buffers() do buffer:detach():copy_(current():detach()) end
  end
  n:add_(1)
end

--- Updates the averages by the parameters of `model`; the first call copies them. Raises an error
-- for a model of other parameters.
function AveragedModel:update_parameters(model)
  args.expect(lt.nn.is_module(model), "update_parameters", "a module", "model", model)
  lt.no_grad(update, self, model)
end

return AveragedModel
