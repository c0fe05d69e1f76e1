--- Fused computation of expressions and their gradients, in one pass over memory.
--
-- A program (program.lua) is recorded once per kind of arguments (dtypes, numbers, which tensors
-- have dimensions). The CPU interprets it; for a CUDA device a kernel is generated from it
-- (source.lua) for one layout: "flat" when all tensors have the layout of the result, else for the
-- least number of dimensions with strides (0 where a tensor is broadcast).
--
-- Invariant: functions return nil for work that is left to the ops: few elements on the CPU, other
-- devices, and arguments that an op rejects, so that the op reports the error.

local core = require "lutra.core"
local evaluate = require "lutra.elementwise.evaluate"
local parse = require "lutra.elementwise.parse"
local program = require "lutra.elementwise.program"
local source = require "lutra.elementwise.source"

local fused = {}

local THREADS, MOST_PARAMETERS, MOST_OF_TEXT = 256, 100, 200
local LEAST = 8192     -- elements on the CPU: fewer stay in the cache between ops
local MOST_PLANS = 200 -- of one expression, as each different number argument needs its own plan

local unavailable = false -- true when there is no compiler on this machine

--- Returns whether a kernel can compute with tensors of this dtype alone.
fused.is_dtype = source.is_float

-- Plans -----------------------------------------------------------------------------------

-- Returns the positions of the arguments that occur in the expression.
local function positions_of(self)
  if self._places then return self._places end
  local positions = {}
  for i, name in ipairs(self.names) do
    if self._used[name] then positions[#positions + 1] = i end
  end
  self._places = positions
  return positions
end

-- Returns whether the arguments have too few elements for one pass on the CPU; a cheap check.
local function is_small(self, values)
  for _, position in ipairs(positions_of(self)) do
    local x = values[position]
    if type(x) ~= "number" and (x.is_cuda or x:numel() >= LEAST) then return false end
  end
  return true
end

-- Returns the kinds of the values as a string, their device, the tensors, and whether there are
-- numbers; nil when ops compute the expression.
local function classify(self, values)
  if is_small(self, values) then return nil end
  local words, tensors, device, numbers = {}, {}, nil, false
  for _, position in ipairs(positions_of(self)) do
    local x = values[position]
    if type(x) == "number" then
      words[#words + 1] = math.type(x) == "integer" and ("%d"):format(x) or ("%a"):format(x)
      numbers = true
    else
      if device and x.device ~= device then return nil end
      device = x.device
      tensors[#tensors + 1] = x
      words[#words + 1] = x.dtype .. (x.ndim == 0 and "." or "")
    end
  end
  if not device then return nil end
  if device ~= "cpu" and (unavailable or not tensors[1].is_cuda) then return nil end
  return table.concat(words, " "), device, tensors, numbers
end

local function kinds_of(self, values)
  local kinds = {}
  for i in ipairs(self.names) do kinds[i] = false end
  for _, position in ipairs(positions_of(self)) do
    local x = values[position]
    kinds[position] = type(x) == "number" and x or {dtype = x.dtype, zero_dim = x.ndim == 0}
  end
  return kinds
end

-- Returns whether a step of the program computes with complex numbers.
local function has_complex(made)
  for _, step in ipairs(made) do
    if step.compute:find "complex" then return true end
  end
  return false
end

-- Returns the plan of a computation in one pass, {made, out = {dtype}, kernels, gradients,
-- numbers}; false when that is not possible.
local function make_plan(self, values, numbers)
  local kinds = kinds_of(self, values)
  local ok, made = pcall(program.of, self, kinds)
  if not ok or not made or #made == 0 or has_complex(made) then return false end
  return {made = made, kinds = kinds, numbers = numbers, out = {dtype = made.outputs[1].dtype},
    fits = source.fits(made), kernels = {}, gradients = {}}
end

local function plan_for(self, key, values, numbers)
  if not self._plans or self._plan_count >= MOST_PLANS then
    self._plans, self._plan_count = {}, 0
  end
  if self._plans[key] == nil then
    self._plans[key] = make_plan(self, values, numbers)
    self._plan_count = self._plan_count + 1
  end
  return self._plans[key]
end

--- Returns the source of the kernel for tensors of `dtype`, without number parameters, that are
-- contiguous, or have `rank` dimensions with strides.
function fused.source(self, dtype, rank)
  local kinds = {}
  for i, name in ipairs(self.names) do kinds[i] = self._used[name] and {dtype = dtype} end
  local made = program.of(self, kinds)
  return made and source.write(made, rank or 0, parse.write(self._root, MOST_OF_TEXT)) or nil
end

-- Layouts ---------------------------------------------------------------------------------

-- Returns the shape that the tensors broadcast to; nil when they do not, which the ops report.
local function broadcast(tensors)
  local shape, rank = {}, 0
  for _, t in ipairs(tensors) do rank = math.max(rank, #t.shape) end
  for d = 1, rank do shape[d] = 1 end
  for _, t in ipairs(tensors) do
    local own = t.shape
    for d = 1, #own do
      local at = d + rank - #own
      if own[d] ~= 1 then
        if shape[at] ~= 1 and shape[at] ~= own[d] then return nil end
        shape[at] = own[d]
      end
    end
  end
  return shape
end

-- Returns the strides of t in the shape, 0 where it is broadcast.
local function strides_for(t, shape)
  local own, strides, out = t.shape, t:stride(), {}
  local skip = #shape - #own
  for d = 1, #shape do
    out[d] = d > skip and own[d - skip] ~= 1 and strides[d - skip] or 0
  end
  return out
end

-- Merges adjacent dimensions that are contiguous in every tensor. Returns the sizes, and a list of
-- strides for each tensor.
local function collapse(tensors, shape)
  local sizes, all, from = {}, {}, {}
  for i, t in ipairs(tensors) do all[i], from[i] = {}, strides_for(t, shape) end
  for d = 1, #shape do
    local last = #sizes
    local joins = last > 0
    for i = 1, #tensors do
      joins = joins and all[i][last] == from[i][d] * shape[d]
    end
    if shape[d] ~= 1 then
      if joins then sizes[last] = sizes[last] * shape[d] else sizes[last + 1] = shape[d] end
      for i = 1, #tensors do all[i][#sizes] = from[i][d] end
    end
  end
  if #sizes == 0 then
    sizes[1] = 1
    for i = 1, #tensors do all[i][1] = 0 end
  end
  return sizes, all
end

-- Running ----------------------------------------------------------------------------------

-- Returns whether compilation failed because a component is not installed; then ops are used.
local function is_missing(message)
  return message:find("on this machine", 1, true) or message:find("cuda_fp16.h", 1, true)
    or message:find("cuda_bf16.h", 1, true)
end

-- Returns the kernel of a source; nil when there is no compiler.
local function compile(text)
  local ok, made = pcall(require("lutra.internal.kernel").internal, text, "elementwise")
  if ok then return made end
  if type(made) ~= "string" or not is_missing(made) then error(made, 0) end
  unavailable = true
  return nil
end

--- Returns the kernel of a program for contiguous inputs, or inputs of `rank` dimensions with
-- strides; nil when there is no compiler, or no kernel can compute the program.
function fused.kernel(made, rank, comment)
  if unavailable or not source.fits(made) then return nil end
  return compile((source.write(made, rank, comment)))
end

-- Returns the kernel of a plan, compiled on first use, and the numbers that it takes; nil when it
-- needs too many parameters or there is no compiler.
local function kernel_for(self, plan, rank)
  local found = plan.kernels[rank]
  if found then return found.kernel, found.numbers end
  local comment = parse.write(self._root, MOST_OF_TEXT)
  local text, numbers = source.write(plan.made, rank, comment, plan.numbers)
  local parameters = #plan.made.outputs + #plan.made.inputs * (1 + rank) + rank + #numbers + 1
  if parameters > MOST_PARAMETERS and plan.numbers then
    parameters = parameters - #numbers
    text, numbers = source.write(plan.made, rank, comment)
  end
  if parameters > MOST_PARAMETERS then return nil end
  local made = compile(text)
  if not made then return nil end
  plan.kernels[rank] = {kernel = made, numbers = numbers}
  return made, numbers
end

-- Returns, for tensors of different layouts, the result's shape, the number of dimensions to
-- iterate over, and their sizes and strides; nil when the tensors do not broadcast.
local function layout_of(tensors)
  local shape = broadcast(tensors)
  if not shape then return nil end
  local sizes, strides = collapse(tensors, shape)
  local rank, extra = #sizes, sizes
  for i = 1, #tensors do table.move(strides[i], 1, rank, #extra + 1, extra) end
  return shape, rank, extra
end

-- Returns the job of a kernel that computes the plan; nil when no kernel can.
local function prepare_kernel(self, plan, device, tensors)
  if not plan.fits then return nil end
  local shape, rank, extra = nil, 0, nil
  if not core._same_layout(table.unpack(tensors)) then
    shape, rank, extra = layout_of(tensors)
    if not shape then return nil end
  end
  local kernel, numbers = kernel_for(self, plan, rank)
  return kernel and {kernel = kernel, numbers = numbers, tensors = tensors, plan = plan,
    device = device, shape = shape or tensors[1].shape, extra = extra}
end

--- Returns the job that computes the expression for these values in one pass; nil when ops compute
-- it.
function fused.prepare(self, values)
  local key, device, tensors, numbers = classify(self, values)
  local plan = key and plan_for(self, key, values, numbers)
  if not plan then return nil end
  if device ~= "cpu" then return prepare_kernel(self, plan, device, tensors) end
  return #plan.made > 1 and broadcast(tensors) and {plan = plan, tensors = tensors} or nil
end

local function run_kernel(job)
  local given, outputs, n = {}, {}, nil
  for i, out in ipairs(job.plan.made.outputs) do
    outputs[i] = core.empty(job.shape, {device = job.device, dtype = out.dtype})
    given[i], n = outputs[i], outputs[i]:numel()
  end
  if n == 0 then return outputs end
  table.move(job.tensors, 1, #job.tensors, #given + 1, given)
  table.move(job.numbers, 1, #job.numbers, #given + 1, given)
  given[#given + 1] = n
  if job.extra then table.move(job.extra, 1, #job.extra, #given + 1, given) end
  job.kernel({(n + THREADS - 1) // THREADS, THREADS}, table.unpack(given))
  return outputs
end

-- Returns the outputs of a job; nil when an integer divisor is 0, which the op reports.
local function outputs_of(job)
  if job.kernel then return run_kernel(job) end
  return job.plan.made.program:run(job.tensors)
end

--- Returns the value of a job; nil when an integer divisor is 0, which the op reports.
function fused.run(job)
  local outputs = outputs_of(job)
  return outputs and outputs[1]
end

-- Gradients ---------------------------------------------------------------------------------

local function gradient_plan(plan, required, chosen)
  local key = {chosen and "chosen" or ""}
  for i in ipairs(plan.kinds) do key[i + 1] = required[i] and "1" or "0" end
  key = table.concat(key)
  if plan.gradients[key] == nil then
    local made, zeros = program.gradients(plan.self, plan.kinds, required, chosen)
    plan.gradients[key] = {made = made, zeros = zeros, numbers = plan.numbers, kernels = {},
      fits = made and source.fits(made)}
  end
  return plan.gradients[key]
end

--- Returns whether the value of a job has a gradient with respect to an argument that is true in
-- `required`.
function fused.has_gradient(self, job, required)
  job.plan.self = self
  return gradient_plan(job.plan, required, job.kernel ~= nil).zeros ~= nil
end

--- Returns the gradients by position of the arguments that are true in `required`, of the result's
-- shape or the argument's own; `g` is the gradient of the result. They are recorded by autograd
-- when gradients are enabled.
function fused.gradients(self, values, required, g)
  local job = fused.prepare(self, values)
  local found = {}
  if not job then return found end
  job.plan.self = self
  local plan = gradient_plan(job.plan, required, job.kernel ~= nil)
  for _, position in ipairs(plan.zeros or {}) do
    found[position] = core.zeros_like(values[position])
  end
  if not plan.made then return found end
  local tensors = table.move(job.tensors, 1, #job.tensors, 1, {})
  tensors[#tensors + 1] = g
  local outputs
  if not core.is_grad_enabled() then
    local own = job.kernel and prepare_kernel(self, plan, job.device, tensors)
      or not job.kernel and {plan = plan, tensors = tensors}
    outputs = own and outputs_of(own)
  end
  outputs = outputs or evaluate.replay(plan.made, tensors)
  for i, position in ipairs(plan.made.positions) do found[position] = outputs[i] end
  return found
end

return fused
