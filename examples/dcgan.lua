-- Trains two networks against each other until one of them draws digits.
--
--   lutra examples/dcgan.lua --data DIR [--device cpu] [--epochs 10] [--out FILE.png]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz of MNIST. The generator makes
-- images from random numbers; the discriminator tells them from real ones (DCGAN,
-- Radford et al. 2016). The networks are those of PyTorch's example "dcgan", for images of 28 x 28.
--
-- test: --data $DATA/mnist --epochs 1 --limit 2560 --width 16
-- test on cuda:1: --data $DATA/mnist --epochs 1 --limit 128 --width 4 --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

local CODE = 64 -- random numbers per image

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz",
    required = true},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"epochs", 10, "passes over the training images", least = 1},
  {"limit", 10000, "number of training images", least = 64},
  {"width", 32, "channels of the narrowest layer", least = 1},
  {"out", "", "PNG file for the sample images"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

local images = cli.try(data.mnist, options.data, "t10k")[{{1, options.limit}}]
images = images:unsqueeze(2):to(device):float() / 127.5 - 1 -- from -1 to 1, as tanh
local loader = data.DataLoader(data.TensorDataset(images),
  {batch_size = 64, shuffle = true, drop_last = true})

-- The networks --------------------------------------------------------------------------------

local w = options.width

local generator = nn.Sequential(
  nn.ConvTranspose2d(CODE, 4 * w, 7, {bias = false}),                               -- 7 x 7
  nn.BatchNorm2d(4 * w), nn.ReLU(),
  nn.ConvTranspose2d(4 * w, 2 * w, 4, {stride = 2, padding = 1, bias = false}),     -- 14 x 14
  nn.BatchNorm2d(2 * w), nn.ReLU(),
  nn.ConvTranspose2d(2 * w, 1, 4, {stride = 2, padding = 1}), nn.Tanh())            -- 28 x 28

local discriminator = nn.Sequential(
  nn.Conv2d(1, 2 * w, 4, {stride = 2, padding = 1}), nn.LeakyReLU(0.2),             -- 14 x 14
  nn.Conv2d(2 * w, 4 * w, 4, {stride = 2, padding = 1, bias = false}),              -- 7 x 7
  nn.BatchNorm2d(4 * w), nn.LeakyReLU(0.2),
  nn.Conv2d(4 * w, 1, 7), nn.Flatten(1))                                            -- 1 x 1

for _, net in ipairs {generator, discriminator} do
  net:apply(function(layer)
    if layer.weight and layer.running_mean then
      nn.init.normal_(layer.weight, 1, 0.02)
    elseif layer.weight then
      nn.init.normal_(layer.weight, 0, 0.02)
    end
  end)
  net:to(device)
end

local function optimizer_of(net)
  return optim.Adam(net:parameters(), {lr = 2e-4, betas = {0.5, 0.999}})
end
local generator_step, discriminator_step = optimizer_of(generator), optimizer_of(discriminator)

-- Returns the loss of calling all these scores real (1) or generated (0).
local function loss_of(scores, real)
  return F.binary_cross_entropy_with_logits(scores, lt.full_like(scores, real and 1 or 0))
end

-- Training ------------------------------------------------------------------------------------

local fixed = lt.randn(16, CODE, 1, 1, {device = device})
local real_score, fake_score
for epoch = 1, options.epochs do
  local bar = lt.progress(loader, {desc = ("epoch %d/%d"):format(epoch, options.epochs)})
  for real in bar do
    local fake = generator(lt.randn(real:size(1), CODE, 1, 1, {device = device}))

    -- The discriminator learns to tell the images apart; detach keeps the generator out of it.
    local on_real, on_fake = discriminator(real), discriminator(fake:detach())
    local loss_d = loss_of(on_real, true) + loss_of(on_fake, false)
    discriminator_step:zero_grad()
    loss_d:backward()
    discriminator_step:step()

    -- The generator learns to be taken for real.
    local loss_g = loss_of(discriminator(fake), true)
    generator_step:zero_grad()
    loss_g:backward()
    generator_step:step()

    real_score, fake_score = on_real:detach():sigmoid():mean(), on_fake:detach():sigmoid():mean()
    bar:set_postfix {discriminator = loss_d, generator = loss_g}
  end
  print(("epoch %d: real images are called real with %.2f, generated ones with %.2f"):format(epoch,
    real_score:item(), fake_score:item()))
end

generator:eval()
local samples = lt.no_grad(generator, fixed):cpu()
local grid = lt.vision.utils.make_grid((samples + 1) / 2, {nrow = 8})
print(lt.plot.image(grid[1]))
if options.out ~= "" then cli.try(lt.vision.utils.save_image, grid, options.out) end

-- Check the result: the drawn images are as bright as digits (13 % of MNIST's light), and differ.
local brightness, spread = ((samples + 1) / 2):mean():item(), samples:std(1):mean():item()
print(("mean brightness %.3f, deviation between images %.3f"):format(brightness, spread))
if options.epochs >= 10 and not (brightness > 0.05 and brightness < 0.3 and spread > 0.1) then
  cli.fail "expected images as bright as digits that differ from each other"
end
if spread ~= spread or spread == 0 then cli.fail "expected images that differ from each other" end
