--- lt.distributed.algorithms.ddp_comm_hooks: hooks for the communication of
-- DistributedDataParallel.

return require("lutra.internal.strict_table").lazy({}, "distributed.algorithms.ddp_comm_hooks", {
  default_hooks = "lutra.distributed.algorithms.ddp_comm_hooks.default_hooks",
})
