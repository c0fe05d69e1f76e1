--- Recurrent layers over whole sequences, as functions with a gradient of their own: faster than
-- the steps of lutra.nn.recurrent_steps, with the same results.
--
-- The elements of all sequences are the rows of matrices, those of time 1 first. Successive times
-- with the same number of sequences are a block; an op of the core runs a block of an LSTM or GRU
-- (_lstm_run, _gru_run: src/tensor/composite_recurrent.c). The products with weight_ih, and the
-- gradients of all weights, are one multiplication for all times. A gradient that is differentiated
-- again is computed by the steps.
--
-- A kind is {forward, backward}. forward(run) computes the outputs run.h {S, H} from run.x {S, I},
-- the parameters and run.states, and sets run.saved to what backward needs; it returns the list of
-- the last states. backward(run, grads, last) gets the gradients of the outputs and of the last
-- states; it returns the gradients of W_ih x + b_ih and of W_hh h + b_hh, the first states of each
-- block as before() does, and the gradients of the first states.

local core = require "lutra.core"
local lt = require "lutra"
local steps = require "lutra.nn.recurrent_steps"

local ops = core._ops

-- Returns the blocks of a plan: `size` has the number of sequences of each block, `count` that of
-- its times and `first` its first row. With `single`, each time is a block.
local function blocks_of(plan, single)
  if plan.times and not single then
    return {size = {plan.rows}, count = {plan.times}, first = {1}}
  end
  local blocks, row, before = {size = {}, count = {}, first = {}}, 1, nil
  for t = 1, plan.times or #plan.sizes do
    local n, b = plan.rows or plan.sizes[t], #blocks.size
    if n == before and not single then
      blocks.count[b] = blocks.count[b] + 1
    else
      blocks.size[b + 1], blocks.count[b + 1], blocks.first[b + 1] = n, 1, row
    end
    row, before = row + n, n
  end
  return blocks
end

-- Returns the rows of block b; those of times `from` to `to` of it, when they are given.
local function part(run, matrix, b, from, to)
  local blocks = run.blocks
  if not from then
    if #blocks.size == 1 then return matrix end
    from, to = 1, blocks.count[b]
  end
  local n = blocks.size[b]
  return matrix:narrow(1, blocks.first[b] + (from - 1) * n, (to - from + 1) * n)
end

-- Returns the rows of block b at the time that the direction reaches last.
local function ending(run, matrix, b)
  local t = run.reverse and 1 or run.blocks.count[b]
  return part(run, matrix, b, t, t)
end

-- Returns the states before each block, a list for each matrix of states.
local function before(run, matrices)
  local lists = {}
  for k = 1, #run.states do lists[k] = {} end
  steps.walk(run.blocks.size, run.reverse, run.states, function(b, states)
    local after = {}
    for k, state in ipairs(states) do
      lists[k][b], after[k] = state, ending(run, matrices[k], b)
    end
    return after
  end)
  return lists
end

-- Returns the outputs before each time as rows, {S, H}; `starts` are those before each block.
local function shifted(run, starts)
  local list = {}
  for b, start in ipairs(starts) do
    local count = run.blocks.count[b]
    if run.reverse then
      list[#list + 1] = part(run, run.h, b, 2, count)
      list[#list + 1] = start
    else
      list[#list + 1] = start
      list[#list + 1] = part(run, run.h, b, 1, count - 1)
    end
  end
  return lt.cat(list, 1)
end

local kinds = {}

local lstm = {}
kinds.LSTM = lstm

function lstm.forward(run)
  local p = run.p
  local gates = lt.linear(run.x, p.weight_ih, p.bias_ih and p.bias_ih + p.bias_hh)
  local size = p.weight_hh:size(2)
  local h, c = gates:new_empty(gates:size(1), size), gates:new_empty(gates:size(1), size)
  run.h, run.saved = h, {gates, c}
  return steps.walk(run.blocks.size, run.reverse, run.states, function(b, states)
    ops._lstm_run(part(run, gates, b), part(run, h, b), part(run, c, b), states[1], states[2],
      p.weight_hh, run.reverse)
    return {ending(run, h, b), ending(run, c, b)}
  end)
end

function lstm.backward(run, grad, last)
  local d, c = run.saved[1]:clone(), run.saved[2]
  local starts = before(run, {run.h, c})
  last[2] = last[2]:clone() -- _lstm_run_backward changes it in place
  local first = steps.walk(run.blocks.size, not run.reverse, last, function(b, states)
    local dh = ops._lstm_run_backward(part(run, d, b), part(run, c, b), part(run, grad, b),
      states[2], starts[2][b], states[1], run.p.weight_hh, run.reverse)
    return {dh, states[2]}
  end)
  return d, d, starts[1], first
end

local gru = {}
kinds.GRU = gru

function gru.forward(run)
  local p = run.p
  local x = lt.linear(run.x, p.weight_ih, p.bias_ih)
  local h, hidden = x:new_empty(x:size(1), p.weight_hh:size(2)), lt.empty_like(x)
  run.h, run.saved = h, {x, hidden}
  return steps.walk(run.blocks.size, run.reverse, run.states, function(b, states)
    ops._gru_run(part(run, x, b), part(run, hidden, b), part(run, h, b), states[1], p.weight_hh,
      run.reverse, p.bias_hh)
    return {ending(run, h, b)}
  end)
end

function gru.backward(run, grad, last)
  local d, e = run.saved[1]:clone(), run.saved[2]:clone()
  local starts = before(run, {run.h})
  local first = steps.walk(run.blocks.size, not run.reverse, last, function(b, states)
    return {ops._gru_run_backward(part(run, d, b), part(run, e, b), part(run, run.h, b),
      part(run, grad, b), starts[1][b], states[1], run.p.weight_hh, run.reverse)}
  end)
  return d, e, starts[1], first
end

-- Each time is a block here.
local function rnn(relu)
  local kind = {single = true}

  function kind.forward(run)
    local p = run.p
    local h = lt.linear(run.x, p.weight_ih, p.bias_ih and p.bias_ih + p.bias_hh)
    local w = p.weight_hh:t()
    run.h, run.saved = h, {}
    return steps.walk(run.blocks.size, run.reverse, run.states, function(b, states)
      local now = part(run, h, b):addmm_(states[1], w)
      return {relu and now:relu_() or now:tanh_()}
    end)
  end

  function kind.backward(run, grad, last)
    local d = lt.empty_like(run.h)
    local first = steps.walk(run.blocks.size, not run.reverse, last, function(b, states)
      local now = part(run, d, b)
      ops._rnn_backward({now}, {part(run, run.h, b)}, {part(run, grad, b) + states[1]}, relu)
      return {now:matmul(run.p.weight_hh)}
    end)
    return d, d, before(run, {run.h})[1], first
  end

  return kind
end
kinds.RNN_TANH, kinds.RNN_RELU = rnn(false), rnn(true)

-- ---- the function

local Sequence = lt.autograd.Function:extend "recurrent_layer"

local function parameters(weight_ih, weight_hh, bias_ih, bias_hh)
  return {weight_ih = weight_ih, weight_hh = weight_hh, bias_ih = bias_ih, bias_hh = bias_hh}
end

-- Returns the run of a plan: {mode, reverse}, and the number of sequences at each time, as a list
-- `sizes` or as `rows` at all of `times` times.
local function new_run(plan, x, p, h, c)
  return {x = x, p = p, states = {h, c}, reverse = plan.reverse,
    blocks = blocks_of(plan, kinds[plan.mode].single)}
end

-- The arguments after `plan` are x, the parameters and the first states.
function Sequence.forward(ctx, plan, x, weight_ih, weight_hh, bias_ih, bias_hh, h, c)
  local run = new_run(plan, x, parameters(weight_ih, weight_hh, bias_ih, bias_hh), h, c)
  local last = kinds[plan.mode].forward(run)
  for i, state in ipairs(last) do last[i] = state:clone() end -- it may be a part of the outputs
  ctx.plan = plan
  ctx:save_for_backward(x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, run.h,
    run.saved[1], run.saved[2])
  return run.h, last[1], last[2]
end

-- Returns the gradients by the steps, which can be differentiated.
local function differentiable(ctx, inputs, grads)
  local plan = ctx.plan
  local x, weight_ih, weight_hh, bias_ih, bias_hh, h, c = table.unpack(inputs, 1, 7)
  local p = parameters(weight_ih, weight_hh, bias_ih, bias_hh)
  local shape = plan.times and {plan.times, plan.rows}
  if shape then x = x:unflatten(1, shape) end
  local out, last = steps.run(plan.mode, p, x, plan.sizes, {h, c}, plan.reverse)
  if shape then out = out:flatten(1, 2) end
  local wanted, at = {}, {}
  for i = 1, 7 do
    if inputs[i] and ctx.needs_input_grad[i + 1] then
      wanted[#wanted + 1], at[#at + 1] = inputs[i], i
    end
  end
  local found = lt.autograd.grad({out, last[1], last[2]}, wanted,
    {grad_outputs = grads, create_graph = true, allow_unused = true})
  local result = {}
  for k, i in ipairs(at) do result[i] = found[k] end
  return nil, table.unpack(result, 1, 7)
end

function Sequence.backward(ctx, grad, ...)
  local saved = table.pack(ctx:saved())
  local last = {...}
  if lt.is_grad_enabled() then return differentiable(ctx, saved, {grad, table.unpack(last)}) end
  local x, weight_ih, weight_hh, bias_ih, bias_hh, h, c = table.unpack(saved, 1, 7)
  local run = new_run(ctx.plan, x, parameters(weight_ih, weight_hh, bias_ih, bias_hh), h, c)
  run.h, run.saved = saved[8], {saved[9], saved[10]}
  local d, e, starts, first = kinds[ctx.plan.mode].backward(run, grad, last)
  local needs = ctx.needs_input_grad
  local sum = needs[5] and d:sum(1) or nil
  return nil, needs[2] and d:matmul(weight_ih) or nil, needs[3] and d:t():matmul(x) or nil,
    needs[4] and e:t():matmul(shifted(run, starts)) or nil, sum,
    needs[6] and (e == d and sum or e:sum(1)) or nil, first[1], first[2]
end

local sequence = {}

--- Returns whether `run` has the layer: LSTMs with proj_size are computed by the steps.
function sequence.supports(p) return p.weight_hr == nil end

--- Does what steps.run does.
function sequence.run(mode, p, x, sizes, states, reverse)
  local times, rows
  if not sizes then
    times, rows = x:size(1), x:size(2)
    x = x:reshape(times * rows, x:size(3))
  end
  local out, h, c = Sequence({mode = mode, sizes = sizes, times = times, rows = rows,
    reverse = reverse}, x, p.weight_ih, p.weight_hh, p.bias_ih, p.bias_hh, states[1], states[2])
  return times and out:reshape(times, rows, out:size(2)) or out, {h, c}
end

return sequence
