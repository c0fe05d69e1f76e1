#!/usr/bin/env python3
"""Training steps, data loading and files: Lutra beside PyTorch on the CPU, in one run, in turns.
Prints microseconds (the least of the rounds) and Lutra's time over PyTorch's.

    python3 bench/training.py [--only PATTERN] [--threads 2] [--rounds 7] [--lutra PROGRAM]

Files are written to a temporary folder and read from memory (the page cache).
"""

import os
import shutil
import tempfile

from pairs import main, row, step

FOLDER = tempfile.mkdtemp()

OPTIMIZE = """
local function step()
  local loss = F.cross_entropy(net(x), t)
  opt:zero_grad(); loss:backward(); opt:step()
end"""
OPTIMIZE_PY = """
def step():
    loss = F.cross_entropy(net(x), t)
    opt.zero_grad(); loss.backward(); opt.step()
"""

step("step of the MNIST CNN, batch 64", """
local net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
  nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
  nn.Dropout(0.5), nn.Linear(128, 10))
local opt = optim.AdamW(net:parameters(), {lr = 0.001})
local x, t = lt.randn(64, 1, 28, 28), lt.randint(1, 10, {64})
""" + OPTIMIZE, """
net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
    nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
    nn.Dropout(0.5), nn.Linear(128, 10))
opt = optim.AdamW(net.parameters(), lr=0.001)
x, t = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
""" + OPTIMIZE_PY)

step("step of ResNet-18 at 32 x 32, batch 16", """
local net = lt.vision.models.resnet18{num_classes = 10}
local opt = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9})
local x, t = lt.randn(16, 3, 32, 32), lt.randint(1, 10, {16})
""" + OPTIMIZE, """
import torchvision
net = torchvision.models.resnet18(num_classes=10)
opt = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
x, t = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
""" + OPTIMIZE_PY)

RECURRENT = """
local net = nn.%s(64, 128, {num_layers = 2})
local head = nn.Linear(128, 10)
local opt = optim.Adam(nn.ModuleList{net, head}:parameters(), {lr = 0.001})
local x, t = lt.randn(35, 32, 64), lt.randint(1, 10, {35 * 32})
local function step()
  local loss = F.cross_entropy(head((net(x))):view(-1, 10), t)
  opt:zero_grad(); loss:backward(); opt:step()
end"""
RECURRENT_PY = """
net = nn.%s(64, 128, num_layers=2)
head = nn.Linear(128, 10)
opt = optim.Adam(nn.ModuleList([net, head]).parameters(), lr=0.001)
x, t = torch.randn(35, 32, 64), torch.randint(0, 10, (35 * 32,))
def step():
    loss = F.cross_entropy(head(net(x)[0]).view(-1, 10), t)
    opt.zero_grad(); loss.backward(); opt.step()
"""
for name in ("LSTM", "GRU"):
    step("step of %s, 2 layers, width 128, batch 32, time 35" % name, RECURRENT % name,
         RECURRENT_PY % name)

step("step of a Transformer block, width 256, batch 8 x 128", """
local net = nn.TransformerEncoderLayer(256, 8, {batch_first = true})
local opt = optim.AdamW(net:parameters(), {lr = 0.001})
local x = lt.randn(8, 128, 256)
local function step()
  local loss = net(x):square():mean()
  opt:zero_grad(); loss:backward(); opt:step()
end""", """
net = nn.TransformerEncoderLayer(256, 8, batch_first=True)
opt = optim.AdamW(net.parameters(), lr=0.001)
x = torch.randn(8, 128, 256)
def step():
    loss = net(x).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
""")

for name in ("AdamW", "SGD"):
    step("%s over 10^7 parameters" % name, """
local p = nn.Parameter(lt.randn(1000, 10000))
p.grad = lt.randn(1000, 10000)
local opt = optim.%s({p}, {lr = 0.001})
local function step() opt:step() end""" % name, """
p = nn.Parameter(torch.randn(1000, 10000))
p.grad = torch.randn(1000, 10000)
opt = optim.%s([p], lr=0.001)
step = opt.step
""" % name)

# One pass over 10,000 samples of 784 numbers, as tuples from a dataset of the user's.
for workers in (0, 2):
    step("DataLoader, 10^4 samples, batch 64, %d workers" % workers, """
local data = lt.data
local Samples = data.Dataset:extend "Samples"
function Samples:init() self.x, self.y = lt.randn(10000, 784), lt.randint(1, 10, {10000}) end
function Samples:__len() return 10000 end
function Samples:get(i) return self.x[i], self.y[i] end
local loader = data.DataLoader(Samples(), {batch_size = 64, shuffle = true, num_workers = %d,
  persistent_workers = %s})
local function step() for x, y in loader:iter() do end end""" % (workers, "true" if workers else "false"), """
class Samples(torch.utils.data.Dataset):
    def __init__(self): self.x, self.y = torch.randn(10000, 784), torch.randint(0, 10, (10000,))
    def __len__(self): return 10000
    def __getitem__(self, i): return self.x[i], self.y[i]
loader = torch.utils.data.DataLoader(Samples(), batch_size=64, shuffle=True, num_workers=%d,
    persistent_workers=%s)
def step():
    for x, y in loader: pass
""" % (workers, bool(workers)))
step("DataLoader of a TensorDataset, 10^4 samples, batch 64", """
local set = lt.data.TensorDataset(lt.randn(10000, 784), lt.randint(1, 10, {10000}))
local loader = lt.data.DataLoader(set, {batch_size = 64, shuffle = true})
local function step() for x, y in loader:iter() do end end""", """
set = torch.utils.data.TensorDataset(torch.randn(10000, 784), torch.randint(0, 10, (10000,)))
loader = torch.utils.data.DataLoader(set, batch_size=64, shuffle=True)
def step():
    for x, y in loader: pass
""")

# Files of 100 MB: 25 tensors of 10^6 float32. The last row is a plain read of such a file.
PATH = os.path.join(FOLDER, "model")
try:
    import safetensors.torch
    import torch
except ImportError:
    pass # the rows then report that there is no file
else:
    tensors = {"layer%d.weight" % i: torch.randn(1000, 1000) for i in range(25)}
    torch.save(tensors, PATH + ".pt")
    safetensors.torch.save_file(tensors, PATH + ".safetensors")
    del tensors

# Every element is read once, since a memory-mapped file is read when it is used.
LOAD = """
local function step()
  for _, t in pairs((lt.%s("%s"))) do t:sum() end
end"""
LOAD_PY = """
import safetensors.torch
def step():
    for t in %s("%s").values(): t.sum()
"""
step("load .pt of 100 MB and sum", LOAD % ("load", PATH + ".pt"),
     LOAD_PY % ("torch.load", PATH + ".pt"))
step("load .safetensors of 100 MB and sum", LOAD % ("load_safetensors", PATH + ".safetensors"),
     LOAD_PY % ("safetensors.torch.load_file", PATH + ".safetensors"))
row("plain read of 100 MB", "io.open('%s.safetensors', 'rb'):read 'a'" % PATH,
    "open('%s.safetensors', 'rb').read()" % PATH)

if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(FOLDER)
