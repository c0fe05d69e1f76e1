--- lt.utils: helpers under the names that they have in PyTorch.

return require("lutra.internal.strict_table").lazy({}, "lt.utils", {
  checkpoint = "lutra.utils.checkpoint",
  data = "lutra.data",
  tensorboard = "lutra.utils.tensorboard",
})
