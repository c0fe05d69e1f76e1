--- lt.utils: helpers under the names that they have in PyTorch.

return require("lutra.internal.strict_table").lazy({}, "lt.utils", {
  benchmark = "lutra.utils.benchmark",
  checkpoint = "lutra.utils.checkpoint",
  data = "lutra.data",
  tensorboard = "lutra.utils.tensorboard",
})
