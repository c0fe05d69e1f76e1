-- Learns to continue sine waves: an LSTM, trained by L-BFGS.
--
--   lutra examples/time_sequence.lua [--steps 8] [--out FILE.svg] [--device cpu]
--
-- The network sees a point of a wave and predicts the next one. Afterwards it continues a wave on
-- its own predictions. The network and the data are those of PyTorch's example
-- "time_sequence_prediction", with fewer and shorter waves.
--
-- test: --steps 2

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim = lt.nn, lt.F, lt.optim

local options = cli.parse(arg, {
  {"steps", 8, "steps of L-BFGS, each of up to 20 evaluations", least = 1},
  {"waves", 40, "number of waves to train on", least = 1},
  {"length", 200, "points per wave", least = 2},
  {"out", "", "SVG or PNG file for the plot"},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- Waves of the same length with random phases, {waves, length}. The first three are for testing.
local TESTS, PERIOD = 3, 20
local phases = lt.randint(-4 * PERIOD, 4 * PERIOD, {options.waves + TESTS, 1})
local waves = ((lt.arange(options.length) + phases) / PERIOD):sin():to(device)
local training, testing = waves[{{TESTS + 1, -1}}], waves[{{1, TESTS}}]

local Sequence = nn.Module:extend "Sequence"

function Sequence:init()
  self.first = nn.LSTMCell(1, 51)
  self.second = nn.LSTMCell(51, 51)
  self.head = nn.Linear(51, 1)
end

-- wave: {batch, time}. Returns the predictions of the points 2 to time + 1, and of `future` points
-- after them, {batch, time + future}.
function Sequence:forward(wave, future)
  local outputs, a, b = {}, nil, nil
  for t = 1, wave:size(2) + (future or 0) do
    local x = t <= wave:size(2) and wave[{{}, {t}}] or outputs[#outputs]
    a = {self.first(x, a)}
    b = {self.second(a[1], b)}
    outputs[#outputs + 1] = self.head(b[1])
  end
  return lt.cat(outputs, 2)
end

local net = Sequence():to(device)
local optimizer = optim.LBFGS(net:parameters(), {lr = 0.8})

local reached
for step = 1, options.steps do
  -- L-BFGS evaluates the loss several times a step, so it is given a function that does.
  local bar = lt.progress{total = 25, desc = ("step %d/%d"):format(step, options.steps)}
  optimizer:step(function()
    optimizer:zero_grad()
    local loss = F.mse_loss(net(training[{{}, {1, -2}}]), training[{{}, {2, -1}}])
    loss:backward()
    bar:update(1)
    bar:set_postfix {loss = loss}
    return loss
  end)
  bar:close()
  reached = lt.no_grad(function()
    return F.mse_loss(net(testing[{{}, {1, -2}}]), testing[{{}, {2, -1}}]):item()
  end)
  print(("step %d: test loss %.6f"):format(step, reached))
end

-- Continue a wave, and plot it.
local FUTURE = options.length
local continued = lt.no_grad(net, testing, FUTURE)[1]:cpu()
local truth = ((lt.arange(2, options.length + FUTURE + 1) + phases[{1, 1}]) / PERIOD):sin()
local figure = lt.plot.line(truth, {label = "wave"})
figure:line(continued, {label = "prediction"})
print(figure)
if options.out ~= "" then cli.try(figure.save, figure, options.out) end

-- Check the result: a wave has a mean square of 0.5.
local goal = options.steps >= 8 and 0.002 or options.steps >= 2 and 0.05 or 1
if reached ~= reached or reached > goal then
  cli.fail(("expected a test loss of at most %g, got %.6f"):format(goal, reached))
end
