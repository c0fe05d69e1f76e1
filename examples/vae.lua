-- Trains an autoencoder, or a variational one, which can draw digits that nobody wrote.
--
--   lutra examples/vae.lua --data DIR [--kind vae] [--device cpu] [--epochs 10] [--out FILE.png]
--
-- DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz of MNIST. An autoencoder
-- (--kind autoencoder) compresses an image to 20 numbers and restores it. The variational one
-- (Kingma and Welling 2014) compresses it to a normal distribution over 20 numbers, so that numbers
-- drawn from a standard normal distribution decode to new images. The network is that of PyTorch's
-- example "vae".
--
-- test: --data $DATA/mnist --epochs 1
-- test: --data $DATA/mnist --epochs 1 --kind autoencoder
-- test on cuda:1: --data $DATA/mnist --epochs 1 --limit 512 --device cuda

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

-- The largest loss per test image, in nats, after so many epochs.
local GOALS = {vae = {[1] = 215, [10] = 125}, autoencoder = {[1] = 190, [10] = 95}}

local options = cli.parse(arg, {
  {"data", nil, "folder with MNIST's t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz",
    required = true},
  {"kind", "vae", "autoencoder or vae", choices = {"autoencoder", "vae"}},
  {"device", "cpu", "device to train on: cpu, cuda or mps"},
  {"epochs", 10, "passes over the training images", least = 1},
  {"limit", 9000, "number of training images", least = 1},
  {"out", "", "PNG file for the sample images"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)
local variational = options.kind == "vae"

local images = cli.try(data.mnist, options.data, "t10k"):reshape(-1, 784):to(device):float() / 255
local last = math.min(options.limit, 9000)
local loader = data.DataLoader(data.TensorDataset(images[{{1, last}}]),
  {batch_size = 128, shuffle = true})
local test_images = images[{{9001, -1}}]

-- The model ---------------------------------------------------------------------------------

local Model = nn.Module:extend "Model"

function Model:init()
  self.encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
  self.mean = nn.Linear(400, 20)
  if variational then self.log_variance = nn.Linear(400, 20) end
  self.decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))
end

-- x: {batch, 784}. Returns logits of the pixels, and the mean and the logarithm of the variance
-- of the code.
function Model:forward(x)
  local h = self.encoder(x)
  local mean = self.mean(h)
  if not variational then return self.decoder(mean), mean end
  local log_variance = self.log_variance(h)
  -- The reparameterization trick: the randomness does not depend on the parameters, so that
  -- gradients pass through the mean and the deviation.
  local code = mean + lt.randn_like(mean) * (log_variance / 2):exp()
  return self.decoder(code), mean, log_variance
end

-- Returns the loss per image: the cross entropy of the pixels, and for the VAE the Kullback-Leibler
-- divergence of the code's distribution from the standard normal one (Appendix B of the paper).
local function loss_of(model, x)
  local logits, mean, log_variance = model(x)
  local loss = F.binary_cross_entropy_with_logits(logits, x, {reduction = "sum"})
  if log_variance then
    loss = loss - 0.5 * (1 + log_variance - mean ^ 2 - log_variance:exp()):sum()
  end
  return loss / x:size(1)
end

-- Training ----------------------------------------------------------------------------------

local model = Model():to(device)
local optimizer = optim.Adam(model:parameters(), {lr = 1e-3})
local test_loss
for epoch = 1, options.epochs do
  local bar = lt.progress(loader, {desc = ("epoch %d/%d"):format(epoch, options.epochs)})
  for x in bar do
    local loss = loss_of(model, x)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    bar:set_postfix {loss = loss}
  end
  test_loss = lt.no_grad(loss_of, model, test_images):item()
  print(("epoch %2d: test loss %.1f"):format(epoch, test_loss))
end

-- Sample images: from random codes, or restored ones beside their originals.
local samples = lt.no_grad(function()
  if variational then return model.decoder(lt.randn(16, 20, {device = device})):sigmoid() end
  return lt.cat{test_images[{{1, 8}}], model(test_images[{{1, 8}}]):sigmoid()}
end)
local grid = lt.vision.utils.make_grid(samples:cpu():reshape(16, 1, 28, 28), {nrow = 8})
print(lt.plot.image(grid[1]))
if options.out ~= "" then cli.try(lt.vision.utils.save_image, grid, options.out) end

-- Check the result.
local goal = last == 9000 and GOALS[options.kind][options.epochs] or math.huge
if test_loss ~= test_loss or test_loss > goal then
  cli.fail(("expected a test loss of at most %g, got %.1f"):format(goal, test_loss))
end
