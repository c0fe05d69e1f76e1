-- Whole programs: what a newcomer writes first (modules, data, a training loop) works.

local lt = require "lutra"

local nn, F, optim, data = lt.nn, lt.F, lt.optim, lt.data

describe("a module of one's own", function()
  local CausalMask = nn.Module:extend "CausalMask"
  function CausalMask:init(max_length)
    self:register_buffer("mask", lt.ones{max_length, max_length, dtype = "bool"}:triu(1))
  end
  function CausalMask:forward(x)
    local T = x:size(2)
    return self.mask[{{1, T}, {1, T}}]
  end

  it("keeps a buffer and gives a part of it", function()
    local mask = CausalMask(8)(lt.ones(1, 3))
    assert.same({{false, true, true}, {false, false, true}, {false, false, false}},
      mask:totable())
  end)
end)

-- Two noisy spirals of points, which no straight line divides.
local function spirals(n)
  local angle = lt.rand(n) * 4
  local side = lt.randint(1, 2, {n})
  local turn = angle + side:to "float32" * math.pi
  local X = lt.stack({angle * turn:cos(), angle * turn:sin()}, 2) + 0.1 * lt.randn(n, 2)
  return X, side
end

describe("a training loop", function()
  local device = lt.get_default_device()
  for name, make in pairs {
    SGD = function(p) return optim.SGD(p, {lr = 0.2, momentum = 0.9, nesterov = true}) end,
    Adam = function(p) return optim.Adam(p, {lr = 0.02}) end,
    AdamW = function(p) return optim.AdamW(p, {lr = 0.02}) end,
  } do
    it("learns two spirals with " .. name .. " on " .. device, function()
      lt.manual_seed(7)
      local X, Y = spirals(400)
      local net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.GELU(),
        nn.LayerNorm(32), nn.Dropout(0.05), nn.Linear(32, 2)):to(device)
      assert.equal(device, net:parameters()().device)
      local loader = data.DataLoader(data.TensorDataset(X, Y),
        {batch_size = 64, shuffle = true, pin_memory = true})
      local opt = make(net:parameters())
      for _ = 1, 60 do
        for x, y in loader:iter() do
          x, y = x:to{device, non_blocking = true}, y:to{device, non_blocking = true}
          local loss = F.cross_entropy(net(x), y)
          opt:zero_grad(); loss:backward(); opt:step()
        end
      end
      net:eval()
      local right = lt.no_grad(function()
        return net(X):argmax(2):eq(Y):sum():item()
      end)
      assert.is_true(right >= 380, name .. " got " .. right .. " of 400 right")
    end)
  end

  it("fits a line that is known", function()
    lt.manual_seed(2)
    local x = lt.randn(200, 1)
    local y = 3 * x - 2
    local layer = nn.Linear(1, 1)
    local opt = optim.SGD(layer:parameters(), {lr = 0.1})
    for _ = 1, 300 do
      opt:zero_grad()
      F.mse_loss(layer(x), y):backward()
      opt:step()
    end
    assert.is_true(math.abs(layer.weight:item() - 3) < 1e-3)
    assert.is_true(math.abs(layer.bias:item() + 2) < 1e-3)
  end)
end)
