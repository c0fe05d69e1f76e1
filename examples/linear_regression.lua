-- Fits a linear model to a table: the price of a house by its area, its age and its rooms.
--
--   lutra examples/linear_regression.lua [--csv FILE] [--target price] [--out FILE.svg]
--
-- FILE is a CSV file with a line of names; all other columns predict the column --target. Without
-- --csv it writes a table of 400 houses to a temporary file and reads that.
--
-- test:
-- test on cuda:1: --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local options = cli.parse(arg, {
  {"csv", "", "CSV file; a generated table by default"},
  {"target", "price", "name of the column to predict"},
  {"steps", 300, "training steps", least = 1},
  {"out", "", "SVG or PNG file for the plot"},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- Writes a table in which the price is known: 50 + 2.5 area - 1.2 age + 12 rooms, and noise of 10.
local NOISE = 10

local function write_houses(path)
  local area, age = lt.rand(400) * 150 + 30, lt.rand(400) * 60
  local rooms = (area / 30):floor() + lt.randint(0, 2, {400})
  local price = 50 + 2.5 * area - 1.2 * age + 12 * rooms + NOISE * lt.randn(400)
  local rows = lt.stack({area, age, rooms, price}, 2):totable()
  local file = assert(io.open(path, "w"))
  file:write("area,age,rooms,price\n")
  for _, row in ipairs(rows) do file:write(("%.1f,%.1f,%d,%.1f\n"):format(table.unpack(row))) end
  file:close()
end

local path = options.csv
if path == "" then
  path = os.tmpname()
  write_houses(path)
end
local csv = cli.try(data.read_csv, path)
if options.csv == "" then os.remove(path) end

-- Features {rows, columns} and the target {rows}; each is scaled to a mean of 0 and a deviation
-- of 1, so that one learning rate suits all of them.
local names, columns = {}, {}
for _, name in ipairs(csv.names) do
  if name ~= options.target then
    names[#names + 1] = name
    columns[#columns + 1] = csv:column(name):float()
  end
end
if not csv.columns[options.target] then
  cli.fail(("--target: the table has no column %q"):format(options.target))
end
local x, y = lt.stack(columns, 2):to(device), csv:column(options.target):float():to(device)
local x_mean, x_std, y_mean, y_std = x:mean(1), x:std(1), y:mean(), y:std()
local inputs, targets = (x - x_mean) / x_std, (y - y_mean) / y_std

-- Training: gradient descent on all rows.
local net = nn.Linear(#names, 1):to(device)
local optimizer = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
local bar = lt.progress{total = options.steps, desc = "training"}
for _ = 1, options.steps do
  local loss = F.mse_loss(net(inputs):squeeze(2), targets)
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  bar:update(1)
  bar:set_postfix {loss = loss}
end
bar:close()

-- The model in the units of the table.
local predicted = lt.no_grad(function() return net(inputs):squeeze(2) * y_std + y_mean end)
local slopes = (net.weight:detach():squeeze(1) * y_std / x_std):totable()
for i, name in ipairs(names) do
  print(("  %-8s changes %s by %8.3f"):format(name, options.target, slopes[i]))
end
local deviation = (predicted - y):std():item()
print(("deviation of the prediction: %.2f"):format(deviation))

local figure = lt.plot.scatter(y:cpu(), predicted:cpu(), {label = "prediction"})
print(figure)
if options.out ~= "" then cli.try(figure.save, figure, options.out) end

-- Check the result: the model finds the slopes, and what remains is the noise.
if options.csv == "" and not (deviation < 1.2 * NOISE and math.abs(slopes[1] - 2.5) < 0.2) then
  cli.fail(("expected a deviation of about %d and a slope of about 2.5 for the area"):format(NOISE))
end
