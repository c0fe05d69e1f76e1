--- Momentum in the opposite direction of the learning rate: what CyclicLR and OneCycleLR share.

local args = require "lutra.internal.args"

local momentum = {}

--- Sets the momentum of a group: `momentum`, or the first of `betas`.
function momentum.set(self, group, value)
  if self.use_beta1 then
    group.betas = {value, table.unpack(group.betas, 2)}
  else
    group.momentum = value
  end
end

--- Reads the bounds of each group, base and max, and starts at max when a schedule starts. Returns
-- both lists. Raises an error for an optimizer without momentum.
function momentum.open(self, optimizer, base, max, last_epoch)
  args.check(optimizer.defaults.momentum ~= nil or optimizer.defaults.betas ~= nil,
    "%s: expected an optimizer with momentum or betas for cycle_momentum = true, got %s\n"
    .. "hint: {cycle_momentum = false}", self.__name, args.show(optimizer))
  self.use_beta1 = optimizer.defaults.betas ~= nil
  local least = self:per_group("base_momentum", optimizer, base)
  local most = self:per_group("max_momentum", optimizer, max)
  if last_epoch == -1 then
    for i, group in ipairs(optimizer.param_groups) do
      momentum.set(self, group, most[i])
      group.max_momentum, group.base_momentum = most[i], least[i]
    end
  end
  return least, most
end

return momentum
