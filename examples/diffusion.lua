-- Trains a diffusion model that draws digits from noise (DDPM, Ho et al. 2020).
--
--   lutra examples/diffusion.lua --data DIR [--device cpu] [--epochs 10] [--out FILE.png]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz of MNIST. Noise is added to the
-- images in 200 small steps, and a small UNet learns to predict it. To draw, the steps are taken
-- backwards, from pure noise to an image.
--
-- test: --data $DATA/mnist --epochs 1 --limit 1280 --width 8 --steps 20
-- test on cuda:1: --data $DATA/mnist --epochs 1 --limit 64 --width 8 --steps 2 --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz",
    required = true},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"epochs", 10, "passes over the training images", least = 1},
  {"limit", 10000, "number of training images", least = 64},
  {"steps", 200, "steps from an image to noise", least = 1},
  {"width", 32, "channels of the widest images", least = 1},
  {"out", "", "PNG file for the sample images"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

local images = cli.try(data.mnist, options.data, "t10k")[{{1, options.limit}}]
images = images:unsqueeze(2):to(device):float() / 127.5 - 1
local loader = data.DataLoader(data.TensorDataset(images),
  {batch_size = 64, shuffle = true, drop_last = true})

-- The noise: after step t an image is sqrt(kept[t]) * image + sqrt(1 - kept[t]) * noise.
local T = options.steps
local beta = T > 1 and lt.linspace(1e-4 * 1000 / T, math.min(0.02 * 1000 / T, 0.5), T)
  or lt.tensor{0.5}
beta = beta:to(device)
local kept = (1 - beta):cumprod(1)

-- The network ---------------------------------------------------------------------------------

-- Two convolutions whose result depends on the time.
local Block = nn.Module:extend "Block"

function Block:init(from, to, time)
  self.first = nn.Conv2d(from, to, 3, {padding = 1})
  self.second = nn.Conv2d(to, to, 3, {padding = 1})
  self.time = nn.Linear(time, to)
  self.skip = from == to and nn.Identity() or nn.Conv2d(from, to, 1)
end

function Block:forward(x, time)
  local y = F.silu(self.first(x)) + self.time(time):unsqueeze(-1):unsqueeze(-1)
  return self.skip(x) + F.silu(self.second(y))
end

-- A UNet (Ronneberger et al. 2015): images shrink twice and grow twice, and each size on the way up
-- also sees the images of that size on the way down.
local UNet = nn.Module:extend "UNet"

function UNet:init(width)
  local time = 4 * width
  self.time = nn.Sequential(nn.Linear(32, time), nn.SiLU(), nn.Linear(time, time), nn.SiLU())
  self.enter = nn.Conv2d(1, width, 3, {padding = 1})
  self.down1 = Block(width, width, time)
  self.down2 = Block(width, 2 * width, time)
  self.middle = Block(2 * width, 2 * width, time)
  self.up2 = Block(4 * width, width, time)
  self.up1 = Block(2 * width, width, time)
  self.leave = nn.Conv2d(width, 1, 3, {padding = 1})
  self:register_buffer("frequencies", lt.exp(lt.linspace(0, -math.log(1000), 16)))
end

-- x: {batch, 1, 28, 28}, t: {batch}, steps from 1. Returns the predicted noise.
function UNet:forward(x, t)
  local angles = t:float():unsqueeze(2) * self.frequencies
  local time = self.time(lt.cat({angles:sin(), angles:cos()}, 2))
  local a = self.down1(self.enter(x), time)                                   -- 28 x 28
  local b = self.down2(F.avg_pool2d(a, 2), time)                              -- 14 x 14
  local c = self.middle(F.avg_pool2d(b, 2), time)                             -- 7 x 7
  c = F.interpolate(c, {scale_factor = 2, mode = "nearest"})
  local d = self.up2(lt.cat({c, b}, 2), time)
  d = F.interpolate(d, {scale_factor = 2, mode = "nearest"})
  return self.leave(self.up1(lt.cat({d, a}, 2), time))
end

-- Training ------------------------------------------------------------------------------------

local net = UNet(options.width):to(device)
local optimizer = optim.AdamW(net:parameters(), {lr = 2e-3})
local reached
for epoch = 1, options.epochs do
  local total = 0
  local bar = lt.progress(loader, {desc = ("epoch %d/%d"):format(epoch, options.epochs)})
  for x in bar do
    local t = lt.randint(1, T, {x:size(1)}):to(device)
    local noise = lt.randn_like(x)
    local share = kept[t]:reshape(-1, 1, 1, 1)
    local noisy = share:sqrt() * x + (1 - share):sqrt() * noise
    local loss = F.mse_loss(net(noisy, t), noise)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    total = total + loss:detach()
    bar:set_postfix {loss = loss}
  end
  reached = (total / #loader):item()
  print(("epoch %d: loss %.4f"):format(epoch, reached))
end

-- Draw: from noise, one step back at a time (Algorithm 2 of the paper).
local function draw(count)
  local x = lt.randn(count, 1, 28, 28, {device = device})
  for t = T, 1, -1 do
    local noise = net(x, lt.full({count}, t, {dtype = "int64", device = device}))
    x = (x - beta[t] / (1 - kept[t]):sqrt() * noise) / (1 - beta[t]):sqrt()
    if t > 1 then x = x + beta[t]:sqrt() * lt.randn_like(x) end
  end
  return x:clamp(-1, 1)
end

local samples = (lt.no_grad(draw, 16):cpu() + 1) / 2
local grid = lt.vision.utils.make_grid(samples, {nrow = 8})
print(lt.plot.image(grid[1]))
if options.out ~= "" then cli.try(lt.vision.utils.save_image, grid, options.out) end

-- Check the result: predicting no noise at all has a loss of 1.
local goal = options.epochs >= 10 and options.limit == 10000 and 0.06
  or #loader >= 20 and 0.85 or math.huge
if reached ~= reached or reached > goal then
  cli.fail(("expected a loss of at most %g, got %.4f"):format(goal, reached))
end
