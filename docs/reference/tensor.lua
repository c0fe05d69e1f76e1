-- Examples of the methods and fields of tensors.
local lt = require "lutra"

-- Fields
local x = lt.tensor({{1., 2., 3.}, {4., 5., 6.}}, {requires_grad = true})
print(x.shape, x.dtype, x.device, x.ndim)     --> {2, 3}	float32	cpu	2
print(x.requires_grad, x.is_leaf, x.grad_fn)  --> true	true	nil
print(x.itemsize, x.nbytes)                   --> 4	24
print(x.T.shape, x.mT.shape)                  --> {3, 2}	{3, 2}
print(x.H.shape, x.mH.shape)                  --> {3, 2}	{3, 2}
print(x.is_cpu, x.is_cuda, x.is_mps, x.is_meta)  --> true	false	false	false

-- The gradient of a leaf tensor
local loss = (x * x):sum()
loss:backward()
print(x.grad)
--> tensor{{ 2.,  4.,  6.},
-->        { 8., 10., 12.}, shape = {2, 3}}

-- The same memory without gradients
x.data:mul_(10)
print(x[1][1]:item())  --> 10.0

-- Real and imaginary parts of complex tensors
local z = lt.tensor{lt.complex(1, 2), lt.complex(3, -4)}
print(z.real, z.imag)  --> tensor{1., 3.}	tensor{ 2., -4.}
print(z:is_complex(), z:cdouble().dtype, lt.ones(2):cfloat().dtype)  --> true	complex128	complex64

-- One of two values, by a condition
print(x.data:where(x.data:gt(30), 0))
--> tensor{{ 0.,  0.,  0.},
-->        {40., 50., 60.}, shape = {2, 3}}

-- Sizes
local m = lt.zeros(2, 3)
print(m:size(), m:size(1), m:dim(), m:numel(), m:nelement())  --> {2, 3}	2	2	6	6
print(m:stride(), m:stride(1), m:storage_offset(), m:element_size())  --> {3, 1}	3	0	4

-- Memory
print(m:is_contiguous(), m:t():is_contiguous(), m:t():shares_storage(m))  --> true	false	true
print(m:data_ptr() == m:view(6):data_ptr())  --> true

-- Values as Lua numbers and tables
print(lt.tensor{1.5}:item())                 --> 1.5
print(lt.tensor{{1, 2}, {3, 4}}:totable()[2][1])  --> 3
print(lt.tensor{7, 8}:tolist()[2])           --> 8

-- Dtypes
local n = lt.tensor{0, 1, 2}
print(n:float().dtype, n:double().dtype, n:half().dtype, n:bfloat16().dtype)  --> float32	float64	float16	bfloat16
print(n:long().dtype, n:int().dtype, n:short().dtype, n:char().dtype, n:byte().dtype)  --> int64	int32	int16	int8	uint8
print(n:bool())  --> tensor{false,  true,  true}
print(n:is_floating_point(), n:type_as(m).dtype, n:type(), n:type("bool").dtype)  --> false	float32	int64	bool

-- A tensor like another one
print(m:new_tensor({1, 2}))  --> tensor{1., 2.}

-- Devices
print(m:cpu().device, m:to("meta").device)  --> cpu	meta
if lt.cuda.is_available() then
  local on_gpu = m:cuda()
  local pinned = m:pin_memory()
  assert(on_gpu.device == "cuda:0" and pinned:is_pinned())
  on_gpu:record_stream(lt.cuda.current_stream())
end
if lt.mps.is_available() then m:mps() end

-- Gradients
local w = lt.ones(2):requires_grad_()
local y = w * 3
y:retain_grad()
local handle = w:register_hook(function(g) return g * 100 end)
y:sum():backward()
print(w.grad, y.grad)  --> tensor{300., 300.}	tensor{1., 1.}
handle:remove()

-- Replace a tensor's values and memory, leave the graph
local v = lt.zeros(2)
v:set_data(lt.tensor{1., 2., 3.})
print(v, (w * 2):detach_().requires_grad)  --> tensor{1., 2., 3.}	false

-- One line about a tensor
print(v:summary():match "^%S+")  --> f32[3]

-- Free the memory now
local big = lt.zeros(1000)
big:free()
print(pcall(big.sum, big))  --> ...

-- After a gradient is accumulated: x:register_post_accumulate_grad_hook
do
  local x = lt.ones{2, requires_grad = true}
  local handle = x:register_post_accumulate_grad_hook(function(p) print(p.grad) end)
  x:sum():backward()  --> tensor{1., 1.}
  handle:remove()
end
