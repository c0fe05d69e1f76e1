--- lt.distributed.nn: collectives with gradients, in `functional`.

return require("lutra.internal.strict_table").lazy({}, "distributed.nn", {
  functional = "lutra.distributed.nn.functional",
})
