-- Examples of the methods of nn.Module.
local lt = require "lutra"
local nn = lt.nn
lt.manual_seed(1)

-- Define a module: nn.Module:extend
local Scale = nn.Module:extend "Scale"
function Scale:init(n)
  self.inner = nn.Linear(n, n)
  self.weight = nn.Parameter(lt.ones(n))
  self:register_buffer("count", lt.zeros(1))
  self.mean = nn.Buffer(lt.zeros(n)) -- the same, by assignment
  self:register_parameter("bias", nil)
end
function Scale:forward(x)
  self:check_tensor(x)
  if x:size(-1) ~= 3 then self:fail("expected 3 features, got %d", x:size(-1)) end
  return self.inner(x) * self.weight
end
function Scale:extra_repr() return "scale" end

-- Call it
local net = Scale(3)
print(net(lt.ones(1, 3)).shape, net:type_name(), nn.Module.is_module(net))  --> {1, 3}	Scale	true
print(net:isinstance(nn.Module), lt.isinstance(net, nn.Linear))  --> true	false
print(select(2, pcall(net, lt.ones(1, 4))))  --> ...

-- Children, given by name or by method
net:register_module("last", nn.ReLU())
net:add_module("extra", nn.Identity())
for name, child in net:named_children() do print(name, child:type_name()) end
--> inner	Linear
--> last	ReLU
--> extra	Identity

-- Iterate over children and all modules
for child in net:children() do assert(nn.is_module(child)) end
for module in net:modules() do assert(nn.is_module(module)) end
for path, module in net:named_modules() do assert(path and module) end

-- Parameters and buffers
for name, p in net:named_parameters() do print(name, p.shape) end
--> weight	{3}
--> inner.weight	{3, 3}
--> inner.bias	{3}
print(net:num_parameters(), net:parameters()().device)  --> 15	cpu
for name, b in net:named_buffers() do print(name, b.shape) end
--> count	{1}
--> mean	{3}
for b in net:buffers() do assert(b) end

-- Modules, parameters and buffers at a path
print(net:get_submodule("inner"):type_name())  --> Linear
print(net:get_parameter("inner.weight").shape, net:get_buffer("count").shape)  --> {3, 3}	{1}
net:set_submodule("extra", nn.Tanh())

-- Where a module is
print(net:device(), #net:devices())  --> cpu	1

-- Training and evaluation mode, frozen parameters, gradients
net:train()
net:eval()
print(net.training)  --> false
net:requires_grad_(false)
net:zero_grad()

-- Call a function for every module
net:apply(function(module) module.visited = true end)

-- Dtypes and devices
print(net:double().weight.dtype, net:half().weight.dtype)     --> float64	float16
print(net:bfloat16().weight.dtype, net:float().weight.dtype)  --> bfloat16	float32
print(net:to("cpu"):device(), net:cpu():device())             --> cpu	cpu
if lt.cuda.is_available() then net:cuda():cpu() end
if lt.mps.is_available() then net:mps():cpu() end

net:type("float32"):share_memory()

-- A deep copy
local copy = net:clone()
print(lt.equal(copy.weight, net.weight), copy.weight == net.weight)  --> true	false

-- A model built without memory, then given memory and values
local huge = lt.with_device("meta", Scale, 3)
huge:to_empty "cpu"
huge:load_state_dict(net:state_dict())
print(lt.equal(huge.weight, net.weight))  --> true

-- Hooks before and after forward
local handle = net:register_forward_hook(function(_, _, output) return output * 0 end)
print(net(lt.ones(1, 3)):sum():item())  --> 0.0
handle:remove()
net:register_forward_pre_hook(function(_, inputs) assert(#inputs == 1) end, {prepend = true})
print(net(lt.ones(1, 3)).shape, net:forward(lt.ones(1, 3)).shape)  --> {1, 3}	{1, 3}

-- Hooks in backward: gradients of the inputs and of the results
local layer = nn.Linear(1, 1, false)
nn.init.constant_(layer.weight, 3)
layer:register_full_backward_hook(function(_, grad_input, grad_output)
  print(grad_input[1]:item(), grad_output[1]:item())
end)
layer:register_full_backward_pre_hook(function(_, grad_output) return grad_output[1] * 2 end)
layer(lt.ones(1, 1, {requires_grad = true})):sum():backward()  --> 6.0	2.0

-- Hooks of state dicts
layer:register_state_dict_pre_hook(function(_, prefix) print("saving " .. prefix .. "weight") end)
layer:register_state_dict_post_hook(function(_, state, prefix)
  state[prefix .. "version"] = lt.tensor(2)
end)
layer:register_load_state_dict_pre_hook(function(_, state, prefix)
  state[prefix .. "version"] = nil
end)
layer:register_load_state_dict_post_hook(function(_, keys) print(#keys.missing_keys) end)
layer:load_state_dict(layer:state_dict())
--> saving weight
--> 0

-- Hooks for all modules
local function nothing() end
local handles = {
  nn.modules.module.register_module_forward_pre_hook(nothing),
  nn.modules.module.register_module_forward_hook(function(module) print(module:type_name()) end),
  nn.modules.module.register_module_full_backward_pre_hook(nothing),
  nn.modules.module.register_module_full_backward_hook(nothing),
  nn.modules.module.register_module_parameter_registration_hook(nothing),
  nn.modules.module.register_module_buffer_registration_hook(nothing),
  nn.modules.module.register_module_module_registration_hook(nothing),
}
nn.ReLU()(lt.ones(1))  --> ReLU
for _, each in ipairs(handles) do each:remove() end
