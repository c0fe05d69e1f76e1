--- lt.distributed.fsdp: modules whose parameters are distributed over the ranks.

local strict_table = require "lutra.internal.strict_table"
local FSDP = require "lutra.distributed.fsdp.wrapper"
local optimizer_states = require "lutra.distributed.fsdp.optimizer_states"
local states = require "lutra.distributed.fsdp.states"
local wrapping = require "lutra.distributed.fsdp.wrapping"

local fsdp = {
  FullyShardedDataParallel = FSDP,
  FSDP = FSDP,
  size_based_auto_wrap_policy = wrapping.size_based_auto_wrap_policy,
  state_dict_type = states.state_dict_type,
  set_state_dict_type = states.set_state_dict_type,
  summon_full_params = states.summon_full_params,
  optim_state_dict = optimizer_states.optim_state_dict,
  optim_state_dict_to_load = optimizer_states.optim_state_dict_to_load,
}
for _, name in ipairs {"state_dict_type", "set_state_dict_type", "summon_full_params",
  "optim_state_dict", "optim_state_dict_to_load"} do
  FSDP[name] = fsdp[name]
end

return strict_table.strict(fsdp, "lt.distributed.fsdp")
