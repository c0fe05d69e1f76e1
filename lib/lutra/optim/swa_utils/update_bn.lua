--- update_bn: the statistics of batch normalization for averaged weights.

local lt = require "lutra"
local args = require "lutra.internal.args"

-- Calls fn with the first value of each batch of a DataLoader, an iterator, or a list.
local function each_input(loader, fn)
  if type(loader) == "table" and loader.iter then loader = loader:iter() end
  if not args.is_callable(loader) then
    local list, i = loader, 0
    loader = function()
      i = i + 1
      return list[i]
    end
  end
  for batch in loader do fn(args.is_plain(batch) and batch[1] or batch) end
end

local parse = args.signature("update_bn", "any loader, any model, device? device = nil")

local function update(loader, model, device)
  local layers = {}
  for module in model:modules() do
    if module._is_batch_norm then
      module:reset_running_stats()
      layers[#layers + 1] = {module, module.momentum}
    end
  end
  if #layers == 0 then return end
  local was_training = model.training
  model:train()
  for _, row in ipairs(layers) do row[1].momentum = false end
  local ok, message = pcall(each_input, loader, function(x)
    model(device and x:to(device) or x)
  end)
  for _, row in ipairs(layers) do row[1].momentum = row[2] end
  model:train(was_training)
  if not ok then error(message, 0) end
end

--- optim.swa_utils.update_bn(loader, model, {device = nil}): sets the running statistics of a
-- model's layers of batch normalization to those of one pass over `loader`: a DataLoader, an
-- iterator, or a list, of batches or of lists whose first value is the input. Inputs are moved to
-- `device` if given. Raises an error unless `model` is a module; the layers keep their momentum in
-- any case.
return function(...)
  local loader, model, device = parse(...)
  args.expect(lt.nn.is_module(model), "update_bn", "a module", "model", model)
  args.expect(type(loader) == "table" or args.is_callable(loader), "update_bn",
    "a loader, an iterator or a list", "loader", loader)
  lt.no_grad(update, loader, model, device)
end
