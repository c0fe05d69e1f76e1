-- Examples of lt.utils.tensorboard.
local lt = require "lutra"

-- Event files, which `tensorboard --logdir runs` shows
local folder = os.tmpname()
os.remove(folder)
local writer = lt.utils.tensorboard.SummaryWriter(folder)
for step = 1, 3 do writer:add_scalar("loss/train", 1 / step, step) end
writer:add_scalars("accuracy", {train = 0.9, test = 0.8}, 1)
writer:add_text("note", "Adam, **learning rate** 0.001", 1)
print(writer:get_logdir() == folder)  --> true

-- Images: floats from 0 to 1, or uint8
writer:add_image("picture", lt.rand(3, 8, 8), 1)
writer:add_image("mask", lt.eye(8), 1, {dataformats = "HW"})
writer:add_images("batch", lt.rand(16, 1, 8, 8), 1)

-- The distribution of weights, the graph of a model, a sound
local model = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.ReLU(), lt.nn.Linear(3, 1))
for name, parameter in model:named_parameters() do writer:add_histogram(name, parameter, 1) end
writer:add_graph(model, lt.ones(4, 2))
writer:add_audio("tone", (lt.arange(800) * 0.3):sin(), 1, {sample_rate = 8000})

-- The hyperparameters of a run and its results
writer:add_hparams({lr = 0.1, optimizer = "Adam"}, {["hparam/accuracy"] = 0.9}, {run_name = "1"})
writer:flush()
writer:close()

-- A subclass: SummaryWriter:extend
local Quiet = lt.utils.tensorboard.SummaryWriter:extend "Quiet"
function Quiet.add_text() end
print(Quiet)  --> class Quiet
os.execute("rm -r " .. folder)
