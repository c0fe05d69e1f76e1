--- The computation of recurrent layers: the step of each kind of layer, and its run over time.
--
-- A kind is {gates, states, step}: the number of blocks of hidden_size rows in weight_ih, the
-- number of states, and step(x, w, h, c), which computes the next states from x = W_ih x + b_ih
-- {N, gates * hidden_size}, the weights `w` and the last states {N, hidden_size}. Its first result
-- is the output, too. The formulas are those of PyTorch's nn.RNN, nn.LSTM (Hochreiter and
-- Schmidhuber 1997; with proj_size Sak et al. 2014) and nn.GRU (Cho et al. 2014).

local lt = require "lutra"

local steps = {}

-- The weights of one direction of one layer, as steps use them: {hh, bias, hr}; hh is transposed.
-- The bias of the hidden state is added to the inputs, except for a GRU, which multiplies it.
local function weights_of(kind, p)
  return {hh = p.weight_hh:t(), bias = kind.keeps_bias and p.bias_hh or nil,
    hr = p.weight_hr and p.weight_hr:t()}
end

-- The bias that is added to the inputs, or nil.
local function input_bias(kind, p)
  if p.bias_ih == nil then return nil end
  return kind.keeps_bias and p.bias_ih or p.bias_ih + p.bias_hh
end

local function elman(activation)
  return {gates = 1, states = 1, step = function(x, w, h)
    return activation(lt.addmm(x, h, w.hh))
  end}
end

local function lstm(x, w, h, c)
  local i, f, g, o = table.unpack(lt.addmm(x, h, w.hh):chunk(4, 2))
  c = f:sigmoid() * c + i:sigmoid() * g:tanh()
  h = o:sigmoid() * c:tanh()
  return w.hr and h:matmul(w.hr) or h, c
end

local function gru(x, w, h)
  local hidden = w.bias and lt.addmm(w.bias, h, w.hh) or h:matmul(w.hh)
  local xr, xz, xn = table.unpack(x:chunk(3, 2))
  local hr, hz, hn = table.unpack(hidden:chunk(3, 2))
  local r, z = (xr + hr):sigmoid(), (xz + hz):sigmoid()
  local n = (xn + r * hn):tanh()
  return n + z * (h - n)
end

--- The kinds by PyTorch's names of modes.
steps.kinds = {
  RNN_TANH = elman(lt.tanh),
  RNN_RELU = elman(lt.relu),
  LSTM = {gates = 4, states = 2, step = lstm},
  GRU = {gates = 3, states = 1, step = gru, keeps_bias = true},
}

--- Returns the states after one step of the kind `mode`, for inputs {N, I} and states {N, H}. `p`
-- has the parameters weight_ih, weight_hh, and bias_ih and bias_hh or neither.
function steps.once(mode, p, x, h, c)
  local kind = steps.kinds[mode]
  return kind.step(lt.linear(x, p.weight_ih, input_bias(kind, p)), weights_of(kind, p), h, c)
end

-- Returns f applied to each state of a list; `others` are further lists of states.
local function map(f, states, ...)
  local result, others = {}, {...}
  for i, state in ipairs(states) do
    result[i] = f(state, others[1] and others[1][i])
  end
  return result
end

local function rows(first, count)
  return function(state) return state:narrow(1, first, count) end
end

local function join(a, b) return lt.cat({a, b}, 1) end

-- Adapts the states of the sequences that run to `count` sequences. Those that end are put on the
-- list `ended`; those that begin (in the reverse direction) are rows of `start`.
local function resize(states, count, start, ended)
  local now = states[1]:size(1)
  if count < now then
    ended[#ended + 1] = map(rows(count + 1, now - count), states)
    return map(rows(1, count), states)
  elseif count > now then
    return map(join, states, map(rows(now + 1, count - now), start))
  end
  return states
end

--- Calls step(t, states), which returns the next states, for each time of the list `sizes`, the
-- numbers of sequences at each time, which do not increase; from the last time to the first with
-- `reverse`. `start` is a list of the first states {N, H}. Returns a list of the last ones.
function steps.walk(sizes, reverse, start, step)
  local first, last, by = 1, #sizes, 1
  if reverse then first, last, by = last, first, -1 end
  local ended = {}
  local states = resize(start, sizes[first], start, {})
  for t = first, last, by do
    states = step(t, resize(states, sizes[t], start, ended))
  end
  for i = #ended, 1, -1 do states = map(join, states, ended[i]) end
  return states
end

--- Runs one direction of one layer over `x`: {T, N, I}, or {S, I}, packed, with the list `sizes`
-- of the sequences at each time. `states` is a list of the first states {N, H}; `p` has its
-- parameters. Returns the outputs, {T, N, H} or {S, H}, and a list of the last states.
function steps.run(mode, p, x, sizes, states, reverse)
  local kind = steps.kinds[mode]
  local w = weights_of(kind, p)
  x = lt.linear(x, p.weight_ih, input_bias(kind, p))
  local inputs, times, outputs = sizes and x:split(sizes, 1) or x:unbind(1), sizes, {}
  if not sizes then
    times = {}
    for t = 1, #inputs do times[t] = x:size(2) end
  end
  local last = steps.walk(times, reverse, states, function(t, now)
    local after = {kind.step(inputs[t], w, now[1], now[2])}
    outputs[t] = after[1]
    return after
  end)
  return sizes and lt.cat(outputs, 1) or lt.stack(outputs, 1), last
end

return steps
