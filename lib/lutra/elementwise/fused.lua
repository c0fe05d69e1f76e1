--- Expressions, and their gradients, computed in one pass over memory.
--
-- Idea: for arguments of one kind (dtypes, numbers, which tensors have dimensions) the program is
-- made once (program.lua). The CPU runs it as it is; for a CUDA device a kernel is made from it
-- (source.lua), for one layout: "flat" where all tensors lie as the result does, else a number of
-- dimensions with strides (0 where a tensor is broadcast), as few as will do.
--
-- Invariant: nil is returned for what is left to the ops: few elements on the CPU, other devices,
-- and arguments that an op refuses, so that the op reports the error.

local core = require "lutra.core"
local evaluate = require "lutra.elementwise.evaluate"
local parse = require "lutra.elementwise.parse"
local program = require "lutra.elementwise.program"
local source = require "lutra.elementwise.source"

local fused = {}

local THREADS, MOST_PARAMETERS, MOST_OF_TEXT = 256, 100, 200
local LEAST = 8192     -- elements on the CPU: fewer are in the cache between ops, too
local MOST_PLANS = 200 -- of one expression: numbers that differ in each call make as many

local unavailable = false -- no compiler is on this machine

--- Is there a kernel for tensors of this dtype alone?
fused.is_dtype = source.is_float

-- Plans -----------------------------------------------------------------------------------

-- Places of the names that the expression has.
local function places_of(self)
  if self._places then return self._places end
  local places = {}
  for i, name in ipairs(self.names) do
    if self._used[name] then places[#places + 1] = i end
  end
  self._places = places
  return places
end

-- Returns true when they have too few elements for one pass on the CPU. Checked first: it is cheap.
local function is_small(self, values)
  for _, place in ipairs(places_of(self)) do
    local x = values[place]
    if type(x) ~= "number" and (x.is_cuda or x:numel() >= LEAST) then return false end
  end
  return true
end

-- Returns the kinds of the values as a string, their device, the tensors, and whether there are
-- numbers; nil where ops compute it.
local function classify(self, values)
  if is_small(self, values) then return nil end
  local words, tensors, device, numbers = {}, {}, nil, false
  for _, place in ipairs(places_of(self)) do
    local x = values[place]
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
  for _, place in ipairs(places_of(self)) do
    local x = values[place]
    kinds[place] = type(x) == "number" and x or {dtype = x.dtype, zero_dim = x.ndim == 0}
  end
  return kinds
end

-- Is a part of the program computed in complex numbers?
local function has_complex(made)
  for _, step in ipairs(made) do
    if step.compute:find "complex" then return true end
  end
  return false
end

-- Returns how to compute it in one pass, {made, out = {dtype}, kernels, gradients, numbers}; false
-- where that is not possible.
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

--- The kernel for tensors of `dtype` and no numbers, that lie flat, or have `rank` dimensions.
function fused.source(self, dtype, rank)
  local kinds = {}
  for i, name in ipairs(self.names) do kinds[i] = self._used[name] and {dtype = dtype} end
  local made = program.of(self, kinds)
  return made and source.write(made, rank or 0, parse.write(self._root, MOST_OF_TEXT)) or nil
end

-- Layouts ---------------------------------------------------------------------------------

-- The shape that the tensors broadcast to; nil where they do not, which ops say.
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

-- Strides of t for the shape: 0 where it is repeated.
local function strides_for(t, shape)
  local own, strides, out = t.shape, t:stride(), {}
  local skip = #shape - #own
  for d = 1, #shape do
    out[d] = d > skip and own[d - skip] ~= 1 and strides[d - skip] or 0
  end
  return out
end

-- Joins neighbouring dimensions that every tensor goes through as through one. Returns sizes, and
-- a list of strides for each tensor.
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

-- Is a failure to compile about what is not installed, so that ops must do?
local function is_missing(message)
  return message:find("on this machine", 1, true) or message:find("cuda_fp16.h", 1, true)
    or message:find("cuda_bf16.h", 1, true)
end


-- The kernel of a plan, and the numbers that it takes.
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
  local make = require("lutra.internal.kernel").internal
  local ok, made = pcall(make, text, "elementwise")
  if not ok then
    if type(made) ~= "string" or not is_missing(made) then error(made, 0) end
    unavailable = true
    return nil
  end
  plan.kernels[rank] = {kernel = made, numbers = numbers}
  return made, numbers
end

-- For tensors that do not lie as one: the result's shape, the number of dimensions to go through,
-- and their sizes and strides; nil where there is none.
local function layout_of(tensors)
  local shape = broadcast(tensors)
  if not shape then return nil end
  local sizes, strides = collapse(tensors, shape)
  local rank, extra = #sizes, sizes
  for i = 1, #tensors do table.move(strides[i], 1, rank, #extra + 1, extra) end
  return shape, rank, extra
end

-- Returns the job of a kernel that computes the plan; nil where no kernel can.
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

--- Returns the job that computes these values in one pass; nil where ops compute them.
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

-- Returns the outputs of a job; nil where an integer divisor is 0, which the op itself reports.
local function outputs_of(job)
  if job.kernel then return run_kernel(job) end
  return job.plan.made.program:run(job.tensors)
end

--- Returns the value of a job; nil where an integer divisor is 0, which the op itself reports.
function fused.run(job)
  local outputs = outputs_of(job)
  return outputs and outputs[1]
end

-- Gradients ---------------------------------------------------------------------------------

local function gradient_plan(plan, wanted, chosen)
  local key = {chosen and "chosen" or ""}
  for i in ipairs(plan.kinds) do key[i + 1] = wanted[i] and "1" or "0" end
  key = table.concat(key)
  if plan.gradients[key] == nil then
    local made, zeros = program.gradients(plan.self, plan.kinds, wanted, chosen)
    plan.gradients[key] = {made = made, zeros = zeros, numbers = plan.numbers, kernels = {},
      fits = made and source.fits(made)}
  end
  return plan.gradients[key]
end

--- Returns whether the value of a job has a gradient by an argument in `wanted` (by place).
function fused.has_gradient(self, job, wanted)
  job.plan.self = self
  return gradient_plan(job.plan, wanted, job.kernel ~= nil).zeros ~= nil
end

--- The gradients, by place, of the arguments in `wanted`, of the result's shape or the argument's
-- own; `g` is that of the result. They are recorded on the tape where gradients are enabled.
function fused.gradients(self, values, wanted, g)
  local job = fused.prepare(self, values)
  local found = {}
  if not job then return found end
  job.plan.self = self
  local plan = gradient_plan(job.plan, wanted, job.kernel ~= nil)
  for _, place in ipairs(plan.zeros or {}) do found[place] = core.zeros_like(values[place]) end
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
  for i, place in ipairs(plan.made.places) do found[place] = outputs[i] end
  return found
end

return fused
