--- optim: algorithms that change parameters by their gradients; one a file.

return require("lutra.internal.fields").strict({
  Optimizer = require "lutra.optim.optimizer",
  SGD = require "lutra.optim.sgd",
  Adam = require "lutra.optim.adam",
  AdamW = require "lutra.optim.adamw",
  RMSprop = require "lutra.optim.rmsprop",
}, "optim")
