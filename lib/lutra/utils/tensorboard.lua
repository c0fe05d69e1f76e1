--- lt.utils.tensorboard: event files for TensorBoard.

return require("lutra.internal.strict_table").strict({
  SummaryWriter = require "lutra.utils.tensorboard.writer",
}, "lt.utils.tensorboard")
