--- lt.utils.benchmark: measures how long code takes, and compares measurements in a table.

return require("lutra.internal.strict_table").strict({
  Compare = require "lutra.utils.benchmark.compare",
  Measurement = require "lutra.utils.benchmark.measurement",
  Timer = require "lutra.utils.benchmark.timer",
}, "lt.utils.benchmark")
