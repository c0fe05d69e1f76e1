--- lt.distributed.algorithms: algorithms on top of collectives.

return require("lutra.internal.strict_table").lazy({}, "distributed.algorithms", {
  ddp_comm_hooks = "lutra.distributed.algorithms.ddp_comm_hooks",
})
