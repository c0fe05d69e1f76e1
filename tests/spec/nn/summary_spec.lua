-- nn.summary: shapes, counts and its table.

local lt = require "lutra"
local support = require "nn_support"

local nn = lt.nn
local fails = support.fails

local Net = nn.Module:extend "Net"
function Net:init()
  self.features = nn.Sequential(nn.Conv2d(1, 4, 3, {groups = 1}), nn.ReLU())
  self.head = nn.Linear(16, 2)
  self.head.bias:requires_grad_(false)
end
function Net:forward(x) return self.head(self.features(x):flatten(2)) end

describe("nn.summary", function()
  it("counts parameters, multiplications and bytes", function()
    local net = Net()
    local s = nn.summary(net, {3, 1, 4, 4})
    assert.equal(4 * 9 + 4 + 34, s.total_params)
    assert.equal(4 * 9 + 4 + 32, s.trainable_params)
    -- 3 images of 2 x 2 positions, 36 weights; 3 rows, 32 weights
    assert.equal(3 * 4 * 36 + 3 * 32, s.total_mult_adds)
    assert.equal(3 * 16 * 4, s.input_bytes)
    assert.equal(4 * (48 + 48 + 6), s.output_bytes)
    assert.equal(4 * 74, s.param_bytes)
    local seen = {}
    for i, row in ipairs(s.layers) do
      seen[i] = ("%d %s %s %s %s"):format(row.depth, row.name or "", row.type, row.input,
        row.output)
    end
    assert.same({"0  Net {3, 1, 4, 4} {3, 2}",
      "1 features Sequential {3, 1, 4, 4} {3, 4, 2, 2}",
      "2 1 Conv2d {3, 1, 4, 4} {3, 4, 2, 2}", "2 2 ReLU {3, 4, 2, 2} {3, 4, 2, 2}",
      "1 head Linear {3, 16} {3, 2}"}, seen)
    assert.equal("cpu", net:device())
    assert.is_true(net.training)
  end)

  it("prints as a table", function()
    local text = tostring(nn.summary(nn.Sequential(nn.Linear(1000, 1000), nn.Tanh()), {2, 1000}))
    assert.is_truthy(text:find("├─ Linear (1)", 1, true))
    assert.is_truthy(text:find("{2, 1000}  {2, 1000}  1,001,000  2,000,000", 1, true))
    assert.is_truthy(text:find("Total params: 1,001,000", 1, true))
    assert.is_truthy(text:find("Params size (MB): 4.00", 1, true))
    local closed = tostring(nn.summary(Net(), {3, 1, 4, 4}, {depth = 1}))
    assert.is_nil(closed:find "Conv2d")
    assert.is_truthy(closed:find("├─ Sequential (features)", 1, true))
  end)

  it("takes several inputs, dtypes and data, and none", function()
    local Two = nn.Module:extend "Two"
    function Two:init() self.table = nn.Embedding(10, 3) end
    function Two:forward(ids, x) return self.table(ids) * x end
    local s = nn.summary(Two(), {{2, 4}, {2, 1, 3}}, {dtypes = {"int64", "float32"}})
    assert.equal("{2, 4, 3}", s.layers[1].output)
    assert.equal("{2, 4}, {2, 1, 3}", s.layers[1].input)
    assert.equal(0, s.total_mult_adds)
    s = nn.summary(Two(), {input_data = {lt.tensor{{1, 2}}, lt.ones(3)}, device = "cpu"})
    assert.equal("{1, 2, 3}", s.layers[1].output)
    assert.equal(30, nn.summary(Two()).total_params)
  end)

  it("marks modules that run again, and leaves hooks alone", function()
    local act, calls = nn.Linear(2, 2), 0
    act:register_forward_hook(function() calls = calls + 1 end)
    local s = nn.summary(nn.Sequential(act, act), {1, 2})
    assert.equal(6, s.total_params)
    assert.equal(8, s.total_mult_adds)
    assert.is_true(s.layers[3].repeated)
    assert.equal(0, calls)
  end)

  it("needs no memory for a large model", function()
    local wide = lt.with_device("meta", nn.Linear, 100000, 100000)
    assert.equal(100000 * 100001, nn.summary(wide, {1, 100000}).total_params)
  end)

  it("explains a forward that fails", function()
    local Reads = nn.Module:extend "Reads"
    function Reads.forward(_, x) return x * x:sum():item() end
    fails({"summary: cannot call the model on \"meta\"", '{device = "cpu"}'},
      function() nn.summary(Reads(), {2}) end)
    assert.equal("{2}", nn.summary(Reads(), {2}, {device = "cpu"}).layers[1].output)
    fails("summary: expected a module for argument 'model', got 3", function() nn.summary(3) end)
    fails("of shape {*, 16}", function() nn.summary(Net(), {3, 1, 5, 5}) end)
  end)
end)
