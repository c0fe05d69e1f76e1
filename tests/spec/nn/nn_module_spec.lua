-- Module: registration, walking, state dicts, conversion, hooks, printing.

local lt = require "lutra"
local support = require "nn_support"

local nn = lt.nn
local fails, list, close = support.fails, support.list, support.close

-- A module with a parameter, a buffer, two children and a shared weight.
local Net = nn.Module:extend "Net"
function Net:init()
  self.scale = nn.Parameter(lt.ones(3))
  self:register_buffer("steps", lt.zeros(2))
  self.first = nn.Linear(3, 4)
  self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
end
function Net:forward(x) return self.rest(self.first(x * self.scale)) end

-- The very same objects, in order.
local function identical(expected, actual)
  assert.equal(#expected, #actual)
  for i, object in ipairs(expected) do assert.equal(object, actual[i]) end
end

local function names(iterator) return table.concat(list(1, iterator), " ") end

describe("an init that is called with the class as self", function()
  local function keys(class)
    local found = {}
    for name in next, class do found[#found + 1] = name end
    table.sort(found)
    return found
  end

  it("is an error, which leaves the class unchanged", function()
    local Child = nn.Linear:extend "Child"
    function Child.init() nn.Linear:init(3, 4) end
    local Counted = nn.Module:extend "Counted"
    function Counted:init()
      self.count = 0
      self.layer = nn.Linear(2, 2)
    end
    local cases = {
      {nn.Linear, Child}, {nn.Linear, function() nn.Linear:init(3, 4) end},
      {nn.Conv2d, function() nn.Conv2d:init(3, 4, 2) end},
      {nn.LSTM, function() nn.LSTM:init(3, 4) end}, {Counted, function() Counted:init() end},
      {nn.Dropout, function() nn.Dropout:init() end},
    }
    for _, case in ipairs(cases) do
      local class, before = case[1], keys(case[1])
      fails({"init: expected a module for argument 'self', got the class " .. class.__name,
        "hint: " .. class.__name .. "(...) makes a module; in the init of a subclass write "
          .. "Parent.init(self, ...), with a dot"}, case[2])
      assert.same(before, keys(class))
    end
  end)

  it("does not concern fields of the class that an init sets for a module", function()
    local Numbered = nn.Module:extend "Numbered"
    function Numbered:init()
      Numbered.count = (Numbered.count or 0) + 1
      self.number = Numbered.count
    end
    assert.equal(1, Numbered().number)
    assert.equal(2, Numbered().number)
  end)
end)

describe("nn.Module", function()
  it("registers parameters, buffers and modules in order of assignment", function()
    local net = Net()
    assert.equal("scale first.weight first.bias rest.2.weight rest.2.bias",
      names(net:named_parameters()))
    assert.equal("scale", names(net:named_parameters{recurse = false}))
    assert.equal("net.scale", names(net:named_parameters("net", false)))
    assert.equal("steps", names(net:named_buffers()))
    assert.equal("first rest", names(net:named_children()))
    assert.equal(" first rest rest.1 rest.2", names(net:named_modules()))
    assert.equal(5, #list(1, net:modules()))
    assert.equal(1, #list(1, net:buffers()))
    assert.equal(net.scale, net:parameters()())
    assert.equal(3 + 12 + 4 + 8 + 2, net:num_parameters())
  end)

  it("gives nil for a field that was never set", function()
    local net = Net()
    assert.is_nil(net.nothing)
    assert.is_nil(net[1])
  end)

  it("registers a module over a plain field of the same name", function()
    local net = Net()
    net.extra = false
    net.extra = nn.Linear(2, 2)
    assert.equal("first rest extra", names(net:named_children()))
    net.extra = nil
    assert.equal("first rest", names(net:named_children()))
    assert.is_nil(net.extra)
  end)

  it("keeps one entry when a parameter or a module is replaced", function()
    local net = Net()
    net.scale = nn.Parameter(lt.zeros(5))
    assert.equal(5, net.scale:numel())
    assert.equal("scale first.weight first.bias rest.2.weight rest.2.bias",
      names(net:named_parameters()))
    net.first = nn.ReLU()
    assert.equal("first rest", names(net:named_children()))
    assert.equal("scale rest.2.weight rest.2.bias", names(net:named_parameters()))
  end)

  it("replaces a buffer by a tensor and refuses anything else", function()
    local net = Net()
    net.steps = lt.ones(7)
    assert.equal(7, net:buffers()():numel())
    fails({"Net", "steps", "buffer"}, function() net.steps = 3 end)
    fails({"Net", "scale", "nn.Parameter"}, function() net.scale = lt.ones(3) end)
    fails("name", function() net:register_buffer("a.b", lt.ones(1)) end)
    fails("method", function() net.forward = nn.ReLU() end)
    fails("nn.Parameter", function() net:register_parameter("p", lt.ones(1)) end)
  end)

  it("keeps the place of a parameter that is nil", function()
    local layer = nn.Linear(2, 3, {bias = false})
    assert.is_nil(layer.bias)
    assert.equal("weight", names(layer:named_parameters()))
    layer.bias = nn.Parameter(lt.zeros(3))
    assert.equal("weight bias", names(layer:named_parameters()))
  end)

  it("counts a shared parameter once and names it twice in the state dict", function()
    local net = nn.Sequential(nn.Linear(2, 2, false), nn.Linear(2, 2, false))
    net[2].weight = net[1].weight
    assert.equal(4, net:num_parameters())
    assert.equal("1.weight", names(net:named_parameters()))
    assert.equal("1.weight 2.weight", names(pairs(net:state_dict())))
  end)

  it("refuses a module that contains itself", function()
    local net = Net()
    fails("contains", function() net.rest.back = net end)
    fails("contains", function() net.back = net end)
  end)

  it("sets training mode below and returns itself", function()
    local net = Net()
    assert.is_true(net.rest[1].training)
    assert.equal(net, net:eval())
    for module in net:modules() do assert.is_false(module.training) end
    net:train()
    for module in net:modules() do assert.is_true(module.training) end
    fails("train", function() net:train "yes" end)
  end)

  it("applies a function to children first", function()
    local seen = {}
    Net():apply(function(m) seen[#seen + 1] = m:type_name() end)
    assert.equal("Linear ReLU Linear Sequential Net", table.concat(seen, " "))
  end)

  it("extend only a class, and have a function init", function()
    for _, self in ipairs {lt.ones(2), {}, setmetatable({}, {}), "Net"} do
      local ok, message = pcall(nn.Module.extend, self, "Wrong")
      assert.is_false(ok)
      assert.is_truthy(message:find("extend: expected a class of nn for argument 'self', got ", 1,
        true), message)
    end
    local Wrong = nn.Module:extend "Wrong"
    Wrong.init = 5
    local ok, message = pcall(Wrong)
    assert.is_false(ok)
    assert.is_truthy(message:find("Wrong: expected a function for the class's field 'init', got 5",
      1, true), message)
  end)

  it("calls init of a class and refuses arguments without one", function()
    local Bare = nn.Module:extend "Bare"
    fails("Bare", function() local _ = Bare(1) end)
    fails({"Bare", "forward"}, function() local _ = Bare()(lt.ones(1)) end)
    local Wide = nn.Linear:extend "Wide"
    function Wide:init(n) nn.Linear.init(self, n, 2 * n) end
    assert.equal(6, Wide(3)(lt.ones(1, 3)):size(2))
    assert.is_true(nn.is_module(Wide(3)))
    assert.is_false(nn.is_module(Wide))
    assert.is_false(nn.is_module {})
  end)

  it("iterates over all fields with pairs", function()
    local fields = {}
    for name in pairs(Net()) do fields[name] = true end
    assert.is_true(fields.scale and fields.first and fields.rest and fields.training)
  end)

  it("fills gradients with zeros in place", function()
    local net = nn.Linear(1, 1)
    net(lt.ones(1, 1)):sum():backward()
    local before = net.weight.grad
    net:zero_grad{set_to_none = false}
    assert.equal(0, before:item())
    assert.equal(0, net.weight.grad:item())
  end)

  it("forgets gradients and changes requires_grad", function()
    local net = Net()
    net(lt.ones(1, 3)):sum():backward()
    assert.is_truthy(net.scale.grad)
    net:zero_grad()
    assert.is_nil(net.scale.grad)
    net:requires_grad_(false)
    for p in net:parameters() do assert.is_false(p.requires_grad) end
    assert.equal(0, net:num_parameters{trainable = true})
  end)
end)

describe("conversion", function()
  it("changes floating tensors and keeps the parameters' identity", function()
    local net = Net()
    net:register_buffer("ids", lt.tensor({1, 2}, {dtype = "int64"}))
    local scale = net.scale
    net(lt.ones(1, 3)):sum():backward()
    assert.equal(net, net:double())
    assert.equal(scale, net.scale)
    assert.equal("float64", scale.dtype)
    assert.equal("float64", scale.grad.dtype)
    assert.equal("float64", net.steps.dtype)
    assert.equal("int64", net.ids.dtype)
    assert.is_true(scale.requires_grad)
    assert.is_true(lt.is_parameter(scale))
    assert.equal("float64", net(lt.ones(1, 3, {dtype = "float64"})).dtype)
    assert.equal("float32", net:to "float32".scale.dtype)
    assert.equal("float64", net:to(lt.ones(1, {dtype = "float64"})).scale.dtype)
    assert.equal("float16", net:half().scale.dtype)
    assert.equal("float32", net:float().scale.dtype)
  end)

  it("moves to meta and back as empty memory", function()
    local net = Net():to "meta"
    assert.equal("meta", net:device())
    assert.same({"meta"}, net:devices())
    assert.equal("meta", net.steps.device)
    assert.equal("{5, 2}", tostring(net(lt.empty(5, 3, {device = "meta"})).shape))
    net:to_empty{device = "cpu"}
    assert.equal("cpu", net:device())
    assert.is_nil(nn.ReLU():device())
    net.first:to "meta"
    assert.same({"cpu", "meta"}, net:devices())
  end)

  it("builds on meta under with_device", function()
    local net = lt.with_device("meta", Net)
    for p in net:parameters() do assert.equal("meta", p.device) end
    assert.equal(29, net:num_parameters())
    local wide = lt.with_device("meta", nn.Linear, 100000, 100000)
    assert.equal(100000 * 100001, wide:num_parameters())
  end)

  it("refuses what is neither a device nor a floating dtype", function()
    fails("device", function() Net():to "nowhere" end)
    fails("expected a float dtype for argument 'dtype'", function() Net():to "int64" end)
    fails("to:", function() Net():to() end)
  end)
end)

describe("state dicts", function()
  it("iterate in order and share memory", function()
    local net = Net()
    local state = net:state_dict()
    assert.equal("scale steps first.weight first.bias rest.2.weight rest.2.bias",
      names(pairs(state)))
    assert.is_false(state.scale.requires_grad)
    state.scale:fill_(7)
    assert.equal(7, net.scale[1]:item())
    assert.equal(net.scale, net:state_dict{keep_vars = true}.scale)
    assert.equal("net.scale", names(pairs(net:state_dict "net.")):match "%S+")
  end)

  it("leave out buffers that are not persistent", function()
    local net = Net()
    net:register_buffer("cache", lt.ones(1), false)
    assert.is_nil(net:state_dict().cache)
    assert.is_truthy(net.cache)
  end)

  it("have the tensors of nn.Buffer that were assigned", function()
    local net, data = nn.Module(), lt.ones(2)
    net.mean = nn.Buffer(data)
    net.cache = nn.Buffer(lt.ones(1), {persistent = false})
    assert.equal("mean cache", names(net:named_buffers()))
    assert.equal("mean", names(pairs(net:state_dict())))
    data:fill_(3)
    assert.same({3, 3}, net.mean:totable())
    net:double()
    assert.equal("float64", net.mean.dtype)
    net.mean = lt.zeros(2) -- a buffer is replaced by any tensor
    assert.equal("mean cache", names(net:clone():named_buffers()))
    fails({"Buffer", "'data'", "got 3"}, function() nn.Buffer(3) end)
  end)

  it("use PyTorch's names with base = 0", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    assert.equal("0.weight 0.bias 2.0.weight 2.0.bias", names(pairs(net:state_dict{base = 0})))
    local other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    other:load_state_dict(net:state_dict{base = 0}, {base = 0})
    close(net[3][1].weight:detach(), other[3][1].weight, 0)
    fails("base", function() net:state_dict{base = 2} end)
  end)

  it("load by value", function()
    local a, b = Net(), Net()
    local before = b.first.weight
    local result = b:load_state_dict(a:state_dict())
    assert.same({missing_keys = {}, unexpected_keys = {}}, result)
    assert.equal("<All keys matched successfully>", tostring(result))
    assert.equal(before, b.first.weight)
    close(a.first.weight:detach(), b.first.weight, 0)
    a.first.weight:detach():fill_(0)
    assert.is_false(lt.equal(a.first.weight, b.first.weight))
  end)

  it("load with the metadata of a file behind them", function()
    local path = os.tmpname()
    local a, b = Net(), Net()
    lt.save_safetensors(path, a:state_dict(), {format = "pt"})
    local read = table.pack(lt.load_safetensors(path))
    os.remove(path)
    assert.equal("pt", read[2].format)
    b:load_state_dict(read[1], read[2])
    close(a.first.weight:detach(), b.first.weight, 0)
    b:load_state_dict(read[1], read[2], {strict = false})
  end)

  it("list everything that does not fit and change nothing", function()
    local net = Net()
    local kept = net.scale:clone()
    local message = fails({"missing: steps", "unexpected: more, other",
      "first.weight: expected shape {4, 3}, got {2, 2}", "nothing was loaded"}, function()
      local state = {}
      for name, value in pairs(net:state_dict()) do state[name] = value:clone():fill_(9) end
      state.steps, state.other, state.more = nil, lt.ones(1), lt.ones(1)
      state["first.weight"] = lt.ones(2, 2)
      net:load_state_dict(state)
    end)
    assert.is_truthy(message:find("Net", 1, true))
    close(kept:detach(), net.scale, 0)
    fails("scale: expected a tensor, got 3",
      function() net:load_state_dict({scale = 3}, {strict = false}) end)
    fails("load_state_dict", function() net:load_state_dict(3) end)
    fails("stict", function() net:load_state_dict({}, {stict = false}) end)
  end)

  it("load a part with strict = false", function()
    local net = Net()
    local result = net:load_state_dict({scale = lt.full({3}, 4.0), other = lt.ones(1)},
      {strict = false})
    assert.same({"other"}, result.unexpected_keys)
    assert.equal(5, #result.missing_keys)
    assert.matches("^keys that did not match:\n  missing: [%w.]+, ", tostring(result))
    assert.equal(4, net.scale[2]:item())
  end)

  it("become the module's tensors with assign = true", function()
    local net = lt.with_device("meta", Net)
    local real = Net():double()
    fails("assign", function() net:load_state_dict(real:state_dict()) end)
    local scale = net.scale
    net:load_state_dict(real:state_dict(), {assign = true})
    assert.equal(scale, net.scale)
    assert.equal("cpu", net:device())
    assert.equal("float64", net.scale.dtype)
    assert.equal("cpu", net.steps.device)
    local x = lt.ones(1, 3, {dtype = "float64"})
    close(real(x):detach(), net(x), 0)
  end)
end)

describe("hooks", function()
  it("see and replace inputs and outputs, and go", function()
    local layer, seen = nn.ReLU(), {}
    local before = layer:register_forward_pre_hook(function(module, inputs)
      seen[#seen + 1] = module == layer and inputs[1]:item()
      return inputs[1] * 10
    end)
    local after = layer:register_forward_hook(function(_, inputs, output)
      seen[#seen + 1] = inputs[1]:item()
      return output + 1
    end)
    assert.equal(21, layer(lt.tensor(2.0)):item())
    assert.same({2, 20}, seen)
    before:remove()
    assert.equal(3, layer(lt.tensor(2.0)):item())
    after:remove()
    assert.equal(2, layer(lt.tensor(2.0)):item())
    fails("register_forward_hook: expected a function for argument 'hook', got 3",
      function() layer:register_forward_hook(3) end)
  end)

  it("pass several values through", function()
    local Pair = nn.Module:extend "Pair"
    function Pair.forward(_, a, b) return a, b end
    local pair = Pair()
    pair:register_forward_hook(function() end)
    local a, b = pair(nil, 2)
    assert.is_nil(a)
    assert.equal(2, b)
  end)
end)

describe("printing", function()
  it("is PyTorch's tree, without addresses", function()
    assert.equal([[
Net(
  (first): Linear(in_features=3, out_features=4, bias=true)
  (rest): Sequential(
    (1): ReLU()
    (2): Linear(in_features=4, out_features=2, bias=true)
  )
)]], tostring(Net()))
    assert.equal("Dropout(p=0.25)", tostring(nn.Dropout(0.25)))
    assert.equal("LayerNorm({3, 4}, eps=1e-05, elementwise_affine=true)",
      tostring(nn.LayerNorm {3, 4}))
    assert.equal("Embedding(5, 2, padding_idx=5)", tostring(nn.Embedding(5, 2, -1)))
    assert.equal("GELU(approximate=tanh)", tostring(nn.GELU "tanh"))
    assert.equal("class nn.Linear", tostring(nn.Linear))
  end)
end)

describe("containers", function()
  it("count from 1 and work as lists", function()
    local a, b = nn.ReLU(), nn.Tanh()
    for _, seq in ipairs {nn.Sequential(a, b), nn.Sequential {a, b}, nn.ModuleList {a, b},
      nn.ModuleList(a, b)} do
      assert.equal(2, #seq)
      assert.equal(a, seq[1])
      assert.equal(b, seq["2"])
      assert.is_nil(seq[3])
      local seen = {}
      for i, module in ipairs(seq) do seen[i] = module end
      identical({a, b}, seen)
    end
    assert.equal(0, #nn.ModuleList())
  end)

  it("append, extend and insert", function()
    local m = {}
    for i = 1, 5 do m[i] = nn.Linear(i, i) end
    local layers = nn.ModuleList {m[1]}
    layers:append(m[3]):extend {m[4], m[5]}
    layers:insert(2, m[2])
    for i = 1, 5 do assert.equal(m[i], layers[i]) end
    assert.equal("1 2 3 4 5", names(layers:named_children()))
    fails("insert", function() layers:insert(7, m[1]) end)
    fails("a module", function() layers:append(3) end)
    fails("argument 2", function() local _ = nn.Sequential(m[1], 3) end)
  end)

  it("replace a module by assignment", function()
    local a, b, c = nn.ReLU(), nn.Tanh(), nn.GELU()
    for _, net in ipairs {nn.Sequential(a, b), nn.Sequential {{"up", a}, {"act", b}}} do
      local before = names(net:named_children())
      net[2] = c
      assert.equal(c, net[2])
      assert.equal(2, #list(1, net:children()))
      assert.equal(before, names(net:named_children()))
      net[3] = a
      assert.equal(3, #net)
      net:insert(2, b)
      identical({a, b, c, a}, {net[1], net[2], net[3], net[4]})
      identical({a, b, c, a}, list(2, net:named_children()))
      fails("expected an index from 1 to 5, got 9", function() net[9] = a end)
      fails("a module", function() net[1] = 3 end)
    end
  end)

  it("append the modules that add_module names", function()
    local net = nn.Sequential(nn.Linear(2, 3))
    net:add_module("relu", nn.ReLU())
    net:add_module("out", nn.Linear(3, 4))
    assert.equal(3, #net)
    identical({net.relu, net.out}, {net[2], net[3]})
    assert.same({5, 4}, {table.unpack(net(lt.ones(5, 2)).shape)})
    net:add_module("relu", nn.Tanh())
    assert.equal(3, #net)
    assert.equal("Tanh", net[2]:type_name())
  end)

  it("give a container of a range", function()
    local net = nn.Sequential({"a", nn.Linear(2, 3)}, nn.ReLU(), nn.Linear(3, 4), nn.Tanh())
    local part = net[{{1, 3}}]
    assert.equal(3, #part)
    assert.is_true(part:isinstance(nn.Sequential))
    assert.equal(net.a, part.a)
    identical({net[1], net[2], net[3]}, {part[1], part[2], part[3]})
    assert.equal("a.weight a.bias 3.weight 3.bias", names(part:named_parameters()))
    assert.same({2, 4}, {table.unpack(part(lt.ones(2, 2)).shape)})
    assert.equal("1.weight 1.bias", names(net[{{3, -1}}]:named_parameters()))
    for range, count in pairs{[{}] = 4, [{2}] = 1, [{-2}] = 1, [{3, 9}] = 2, [{3, 2}] = 0} do
      assert.equal(count, #net[{range}])
    end
    assert.equal(2, #nn.ModuleList{nn.ReLU(), nn.ReLU(), nn.ReLU()}[{{2, 3}}])
    for _, key in ipairs{{}, {1, 2}, {{0, 1}}, {{1.5}}, {{1, 2, 3}}} do
      fails("Sequential: expected an index or a range {{first, last}}", function()
        return net[key]
      end)
    end
  end)

  it("count from the end with negative indices", function()
    local a, b, c = nn.ReLU(), nn.Tanh(), nn.GELU()
    local Mlp = nn.Sequential:extend "Mlp"
    for _, net in ipairs {nn.Sequential(a, b), nn.ModuleList {a, b}, Mlp(a, b),
      nn.Sequential {{"up", a}, {"act", b}}} do
      local before, name = names(net:named_children()), net:type_name()
      assert.equal(b, net[-1])
      assert.equal(a, net[-2])
      fails(name .. ": expected an index from -2 to 2, got -3", function() return net[-3] end)
      net[-1] = c
      identical({a, c}, list(1, net:children()))
      assert.equal(c, net[2])
      assert.equal(before, names(net:named_children()))
      fails("expected an index from 1 to 3, got -3", function() net[-3] = a end)
      fails("expected an index from 1 to 3, got 0", function() net[0] = a end)
      fails("a module", function() net[-1] = 3 end)
      net:insert(-1, b)
      identical({a, b, c}, {net[1], net[2], net[3]})
      identical({a, b, c}, {net[-3], net[-2], net[-1]})
      fails("expected an index from 1 to 4 for insert, got -4", function() net:insert(-4, a) end)
      assert.is_nil(net[4])
      assert.is_nil(net.missing)
      assert.equal(3, #net)
    end
    fails("ModuleList: expected an index from", function() return nn.ModuleList()[-1] end)
    local x = lt.ones(2)
    assert.is_true(lt.equal(x:relu(), nn.Sequential(a, a)[-1](x)))
  end)

  it("take names", function()
    local net = nn.Sequential {{"up", nn.Linear(2, 3)}, {"act", nn.ReLU()}}
    assert.equal("up act", names(net:named_children()))
    assert.equal(net.up, net[1])
    assert.equal("{1, 3}", tostring(net(lt.ones(1, 2)).shape))
  end)

  it("pass everything through Sequential", function()
    local x = lt.ones(2)
    assert.equal(x, nn.Sequential()(x))
    local Two = nn.Module:extend "Two"
    function Two.forward(_, a, b) return a + b, a - b end
    local sum, difference = nn.Sequential(Two())(lt.tensor(3), lt.tensor(1))
    assert.equal(4, sum:item())
    assert.equal(2, difference:item())
  end)

  it("make classes of their own", function()
    local Mlp = nn.Sequential:extend "Mlp"
    local mlp = Mlp(nn.Linear(2, 2))
    assert.equal("Mlp", mlp:type_name())
    assert.equal(1, #mlp)
  end)
end)

describe("errors of a call", function()
  it("name the module's place, the shapes and the user's line", function()
    local net = Net()
    fails({"net.first: Linear: expected", "{2, 5}", "{*, 3}"}, function()
      net.scale = nn.Parameter(lt.ones(5))
      local _ = net(lt.ones(2, 5))
    end)
    local layer = nn.Linear(3, 1)
    fails({"Linear: expected an input of shape {*, 3} (in_features = 3), got {}"},
      function() local _ = layer(lt.tensor(1.0)) end)
    fails("Linear: expected a tensor as input, got 3", function() local _ = layer(3) end)
  end)

  it("begin with the path of a nested module", function()
    local Attention = nn.Module:extend "Attention"
    function Attention:init() self.qkv = nn.Linear(4, 8) end
    function Attention:forward(x) return self.qkv(x):matmul(lt.ones(3, 3)) end
    local Block = nn.Module:extend "Block"
    function Block:init() self.attn = Attention() end
    function Block:forward(x) return self.attn(x) end
    local Model = nn.Module:extend "Model"
    function Model:init() self.blocks = nn.ModuleList{Block(), Block()} end
    function Model:forward(x, i) return self.blocks[i](x) end
    local model, batch = Model(), lt.ones(2, 4)
    fails("model.blocks.2.attn: matmul: cannot multiply {2, 8} by {3, 3}",
      function() local _ = model(batch, 2) end)
    fails("model.blocks.1.attn.qkv: Linear: expected an input of shape",
      function() local _ = model(lt.ones(2, 5), 1) end)
    local alone = support.message(model.blocks[1].attn.qkv, lt.ones(1))
    assert.equal("Linear: expected", alone:sub(1, 16))
    fails("Sequential.1: Linear: expected",
      function() local _ = nn.Sequential(nn.Linear(2, 2))(batch) end)
    local hidden = {nn.Linear(3, 3)}
    local Outside = nn.Module:extend "Outside"
    function Outside.forward(_, x) return hidden[1](x) end
    fails("Outside > Linear: Linear: expected", function() local _ = Outside()(batch) end)
    -- An error that a program raises has its own text.
    function Attention.forward() error "by hand" end
    local _, message = pcall(model, batch, 1)
    assert.is_truthy(message:find "%d: by hand$")
  end)

  it("name wrong constructor arguments", function()
    fails({"Linear", "out_features", "expected an integer of at least 0 for argument "
      .. "'out_features', got no value"}, function() local _ = nn.Linear(3) end)
    fails({"Linear", "in_features", "the string"}, function() local _ = nn.Linear("3", 1) end)
    fails({"Linear", "bais", "in_features, out_features, bias"},
      function() local _ = nn.Linear(3, 1, {bais = false}) end)
    fails({"Linear", "in_features"}, function() local _ = nn.Linear(-1, 1) end)
    fails({"Dropout", "'p', got 1.5"}, function() local _ = nn.Dropout(1.5) end)
    fails({"Embedding", "expected an index from 1 to 3 or from -3 to -1", "got 0"},
      function() local _ = nn.Embedding(3, 2, 0) end)
    fails("Parameter", function() local _ = nn.Parameter(3) end)
  end)

  it("take the three spellings", function()
    for _, layer in ipairs {nn.Linear(3, 4, false), nn.Linear(3, 4, {bias = false}),
      nn.Linear {3, 4, bias = false},
      nn.Linear {in_features = 3, out_features = 4, bias = false}} do
      assert.equal("Linear(in_features=3, out_features=4, bias=false)", tostring(layer))
    end
  end)
end)
