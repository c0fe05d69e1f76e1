-- Examples of the functions and values of lt.
local lt = require "lutra"
local nn = lt.nn

-- Make tensors from Lua values
print(lt.tensor{{1, 2}, {3, 4}})
--> tensor{{1, 2},
-->        {3, 4}, shape = {2, 2}}
print(lt.tensor({1, 2}, {dtype = lt.float64}))  --> tensor{1., 2., dtype = "float64"}
local a = lt.tensor{1., 2.}
print(lt.as_tensor(a) == a)  --> true

print(lt.frombuffer("\1\0\0\0\2\0\0\0", "int32"))  --> tensor{1, 2, dtype = "int32"}

-- Ask about values
print(lt.is_tensor(a), lt.is_parameter(a), lt.is_floating_point(a), lt.is_complex(a), lt.numel(a))  --> true	false	true	false	2

-- Constants
print(lt.pi, lt.e)                 --> 3.1415926535898	2.718281828459
print(lt.tensor{lt.inf, lt.nan})   --> tensor{inf, nan}
print(a[{lt.newaxis, {}}].shape)   --> {1, 2}

-- Dtypes are strings
print(lt.float64, lt.float32, lt.float16, lt.bfloat16)         --> float64	float32	float16	bfloat16
print(lt.int64, lt.int32, lt.int16, lt.int8, lt.uint8, lt.bool) --> int64	int32	int16	int8	uint8	bool
print(lt.complex64, lt.complex128)                              --> complex64	complex128
print(lt.finfo("float32").eps, lt.iinfo("int8").max)            --> 1.1920928955078e-07	127
print(lt.promote_types("int64", "float16"), lt.result_type(a, 2))  --> float16	float32
print(lt.can_cast("int64", "float16"), lt.can_cast("float16", "int64"))  --> true	false

-- PyTorch's other names of dtypes
print(lt.half, lt.float, lt.double, lt.cfloat, lt.cdouble)  --> float16	float32	float64	complex64	complex128
print(lt.short, lt.int, lt.long)  --> int16	int32	int64

-- The default dtype and device
lt.set_default_dtype "float64"
print(lt.get_default_dtype(), lt.zeros(1).dtype)  --> float64	float64
lt.set_default_dtype "float32"
lt.set_default_device "meta"
print(lt.get_default_device(), lt.zeros(1).device)  --> meta	meta
lt.set_default_device "cpu"

-- Devices
print(lt.device "cpu", lt.device_properties("cpu").name ~= nil)  --> cpu	true
local device = lt.best_device()
print(lt.with_device("meta", function() return nn.Linear(4096, 4096).weight.device end))  --> meta
if lt.cuda.is_available() then lt.synchronize(device) end

-- A stream as the current one
if lt.cuda.is_available() then
  lt.with_stream(lt.cuda.Stream(), function() return lt.ones{2, device = "cuda"} end)
end

-- Ops without a kernel on their device run on the CPU
lt.set_fallback(true)
print(lt.get_fallback())  --> true
lt.set_fallback(false)

-- Gradients on and off
local w = lt.ones{2, requires_grad = true}
print(lt.no_grad(function() return (w * 2).requires_grad end))       --> false
print(lt.inference_mode(function() return lt.is_inference_mode_enabled() end))  --> true
lt.no_grad(function()
  print(lt.is_grad_enabled())                                         --> false
  print(lt.enable_grad(function() return (w * 2).requires_grad end))  --> true
end)

-- Turn gradients off until they are turned on again
local before = lt.set_grad_enabled(false)
print((w * 2).requires_grad)  --> false
lt.set_grad_enabled(before)
print(lt.set_grad_enabled(false, function() return (w * 2).requires_grad end))  --> false

-- Random numbers
lt.manual_seed(7)
print(lt.initial_seed())  --> 7
local state = lt.get_rng_state()
local first = lt.rand(3)
lt.set_rng_state(state)
print(lt.equal(first, lt.rand(3)))  --> true

-- A generator of its own
local g = lt.Generator()
g:manual_seed(1)
local r = lt.rand{3, generator = g}

-- A seed from the system
print(math.type(lt.seed()))  --> integer

-- Threads of the CPU
local threads = lt.get_num_threads()
lt.set_num_threads(1)
print(lt.get_num_threads())  --> 1
lt.set_num_threads(threads)

-- How tensors print
lt.set_printoptions{precision = 2}
print(lt.tensor{lt.pi}, lt.get_printoptions().precision)  --> tensor{3.14}	2
lt.set_printoptions{profile = "default"}

-- Files
local path = os.tmpname()
lt.save_npy(path, lt.tensor{1., 2.})
print(lt.load_npy(path))  --> tensor{1., 2.}
lt.save_safetensors(path, {weight = lt.ones(2, 2), bias = lt.zeros(2)})
print(lt.load_safetensors(path).bias)  --> tensor{0., 0.}

-- Nested values with tensors, and checkpoints of PyTorch (.pt, .pth)
lt.save({weight = lt.ones(2), epoch = 3}, path)
local checkpoint = lt.load(path, {map_location = "cpu"})
print(checkpoint.weight, checkpoint.epoch)  --> tensor{1., 1.}	3

-- A safetensors file, one tensor at a time
local model = lt.safe_open(path)
print(table.concat(model:keys(), " "), model:get_tensor "weight")  --> weight	tensor{1., 1.}
print(model:get_slice "weight"[{{1, 1}}], model:metadata().lutra ~= nil)  --> tensor{1.}	true

-- An archive of NumPy arrays
lt.save_npz(path, {x = lt.tensor{1., 2.}, y = lt.tensor{3}}, {compressed = true})
print(lt.load_npz(path).x)  --> tensor{1., 2.}

-- An IDX file, as MNIST's
local file <close> = assert(io.open(path, "wb"))
file:write("\0\0\8\1\0\0\0\3abc")
file:close()
print(lt.load_idx(path))  --> tensor{97, 98, 99, dtype = "uint8"}
os.remove(path)

-- A function that is recorded once for each kind of arguments, and then runs a plan
local norm = lt.compile(function(x)
  local d = x - x:mean(-1, true)
  return d / ((d * d):mean(-1, true) + 1e-5):sqrt()
end)
print(norm(lt.tensor{{1., 2., 3.}}))  --> tensor{{-1.2247,  0.0000,  1.2247}, shape = {1, 3}}
print(norm:reason())                  --> nil
local plan = norm:plans()[1]
print(plan.arguments, plan.calls, plan.steps)  --> (float32 {1, 3})	7	1

-- A module whose call is compiled; why a function has no plan
local net = lt.compile(nn.Sequential(nn.Linear(3, 4), nn.Tanh()))
print(net(lt.ones(2, 3)).shape, net[1].weight.shape)  --> {2, 4}	{4, 3}
local sign = lt.compile(function(x) return x:sum():item() > 0 and 1 or -1 end)
print(sign(lt.ones(3)), sign:reason())  --> 1	it reads the value of a tensor
sign:reset()

-- On a CUDA device: the steps of a plan as one CUDA graph
local fast = lt.compile(function(x) return (x * 2 + 1):tanh() end, {mode = "reduce-overhead"})
print(fast(lt.zeros(2)))         --> tensor{0.7616, 0.7616}
print(fast:plans()[1].graphs)    --> 0

-- An elementwise function from an expression: one kernel, with its gradient
local swish = lt.elementwise "x / (1 + exp(-x))"
print(swish(lt.tensor{0., 1.}))  --> tensor{0.0000, 0.7311}

-- Its derivative, and its source for a GPU
local square = lt.elementwise "x * x"
print(square:derivative "x"(lt.tensor{3.}))       --> tensor{6.}
print(square:source("float32"):find "float" ~= nil)  --> true

-- A progress bar
for i in lt.progress{{1, 2, 3}, desc = "epochs"} do assert(i) end

-- A progress bar that is moved by hand
local bar = lt.progress{total = 10, desc = "steps"}
bar:update(5)
bar:set_description "half"
bar:set_postfix{loss = 0.5}
bar:write "a line above the bar"
bar:refresh()
bar:close()

-- Show a value: in a notebook as a table, an image, a plot or a tree, else as text
local shown = lt.display(lt.tensor{1., 2.}, {heat = true})
shown:update(lt.tensor{3.})
lt.display({1, 2, 3}, {["text/html"] = "<b>1, 2, 3</b>"})
lt.display{["text/plain"] = "done", ["text/html"] = "<b>done</b>"}

-- Forms of an object of your own in a notebook
local Temperature = {__tostring = function(t) return t.celsius .. " C" end,
  __mimebundle = function(t) return {["text/html"] = ("<b>%g</b> &deg;C"):format(t.celsius)} end}
lt.display(setmetatable({celsius = 21}, Temperature))

-- Remove the output of a cell of a notebook before the next output
lt.clear_output{wait = true}

-- Time and memory
local start = lt.clock()
print(lt.clock() - start < 10, lt.memory_live() > 0)  --> true	true

-- Facts about this build and its ops
print(type(lt.info()), #lt.ops() > 200)  --> table	true
local table_ = lt.coverage "log_softmax"
print(table_[1].devices.cpu.bfloat16, table_[1].devices.cpu.int64)  --> true	nil
print(lt.terminal_width(1) == nil or lt.isatty(1))  --> true

-- Stop at a line and look at its variables; here the condition is false
lt.breakpoint(false)
