-- lt.vision.models: names and shapes of parameters, and outputs, against torchvision
-- (tools/golden/vision_models.py).

local lt = require "lutra"
local golden = require "golden_support"

local models = lt.vision.models

-- The element k of parameter i, as in the script.
local function fill(net)
  local i = 0
  lt.no_grad(function()
    for p in net:parameters() do
      i = i + 1
      local n = p:numel()
      local k = lt.arange(n) + i
      local scale = (p.ndim > 1 and n // p:size(1) or 4) ^ -0.5
      p:copy_((((k * 7919) % 1009):to "float32" / 1009 - 0.45):mul(scale):reshape(p.shape))
    end
  end)
end

describe("lt.vision.models", function()
  for _, case in ipairs(golden.file "vision_models") do
    if case.state then
      it(case.name .. " has torchvision's parameters", function()
        local net = lt.with_device("meta", models[case.name])
        local got = {}
        for name, t in pairs(net:state_dict{base = 0}) do
          got[#got + 1] = name .. " " .. table.concat(t.shape, "x")
        end
        assert.same(case.state, got)
      end)
    else
      it(case.name .. " has torchvision's outputs", function()
        local options = {num_classes = 5, image_size = case.name:find "vit" and 64 or nil}
        local net = models[case.name](options):eval()
        fill(net)
        local k = lt.arange(2 * 3 * 64 * 64)
        local x = (((k * 7919) % 1009):to "float32" / 1009 - 0.5):reshape(2, 3, 64, 64)
        local out = lt.no_grad(net, x)
        local expected = lt.tensor(case.out.data):reshape(case.out.shape)
        local scale = expected:abs():max():item()
        assert.is_true((out - expected):abs():max():item() <= 2e-4 * scale)
      end)
    end
  end

  it("report wrong weights", function()
    local ok, message = pcall(models.squeezenet1_1, {weights = "DEFAULT"})
    assert.is_false(ok)
    assert.is_truthy(message:find("squeezenet1_1: expected the path of a file for argument "
      .. "'weights', got \"DEFAULT\"", 1, true))
  end)
end)
