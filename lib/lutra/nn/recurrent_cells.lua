--- nn.RNNCell, nn.LSTMCell and nn.GRUCell: one step of a recurrent layer.

local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local steps = require "lutra.nn.recurrent_steps"

local cells = {}

--- nn.RNNCellBase: the base class of the cells.
local RNNCellBase = Module:extend "RNNCellBase"
cells.RNNCellBase = RNNCellBase

local SIZES <const> = "int(>=0) input_size, int(>=0) hidden_size, bool bias%s, "
local OPTIONS <const> = "device? device = nil, dtype? dtype = nil"

local parse_base = args.signature("RNNCellBase",
  SIZES:format "" .. "int(>=1) num_chunks, " .. OPTIONS)

--- nn.RNNCellBase(input_size, hidden_size, bias, num_chunks, {device, dtype}): registers weight_ih
-- {num_chunks * hidden_size, input_size}, weight_hh {num_chunks * hidden_size, hidden_size} and,
-- with `bias`, bias_ih and bias_hh {num_chunks * hidden_size}.
function RNNCellBase:init(...)
  local input_size, hidden_size, bias, chunks, device, dtype = parse_base(...)
  local options = {device = device, dtype = dtype}
  local function parameter(...) return lt.nn.Parameter(lt.empty({...}, options)) end
  local n = chunks * hidden_size
  self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
  self.weight_ih = parameter(n, input_size)
  self.weight_hh = parameter(n, hidden_size)
  self:register_parameter("bias_ih", bias and parameter(n) or nil)
  self:register_parameter("bias_hh", bias and parameter(n) or nil)
  self:reset_parameters()
end

--- Draws all parameters from the uniform distribution between -b and b, b = 1 / sqrt(hidden_size).
function RNNCellBase:reset_parameters()
  local bound = self.hidden_size > 0 and 1 / math.sqrt(self.hidden_size) or 0
  for p in self:parameters() do init.uniform_(p, -bound, bound) end
end

function RNNCellBase:extra_repr()
  local text = ("%d, %d"):format(self.input_size, self.hidden_size)
  if not self.bias then text = text .. ", bias=false" end
  if self.nonlinearity and self.nonlinearity ~= "tanh" then
    text = text .. ", nonlinearity=" .. self.nonlinearity
  end
  return text
end

-- Raises an error unless `x`, an argument, has one or two dimensions, the last of this size.
local function check_argument(self, name, x, size)
  if x.ndim ~= 1 and x.ndim ~= 2 then
    self:fail("expected 1 or 2 dimensions for argument '%s', got %d: %s", name, x.ndim,
      tostring(x.shape))
  elseif x:size(-1) ~= size then
    self:fail("expected %d for the last size of argument '%s', got %s", size, name,
      tostring(x.shape))
  end
end

-- Returns the states after one step. `states` is nil, which stands for zeros, or a list of tensors;
-- `names` are their names in messages.
local function step(self, mode, x, states, names)
  self:check_tensor(x)
  check_argument(self, "input", x, self.input_size)
  local batched = x.ndim == 2
  if not batched then x = x:unsqueeze(1) end
  local inner = {}
  for i, name in ipairs(names) do
    local state = states and states[i]
    if not states then
      state = x:new_zeros(x:size(1), self.hidden_size)
    elseif not lt.is_tensor(state) then
      self:fail("expected a tensor for argument '%s', got %s", name, args.show(state))
    else
      check_argument(self, name, state, self.hidden_size)
      if (state.ndim == 2) ~= batched or batched and state:size(1) ~= x:size(1) then
        self:fail("expected shape %s for argument '%s', got %s", batched
          and ("{%d, %d}"):format(x:size(1), self.hidden_size)
          or ("{%d}"):format(self.hidden_size), name, tostring(state.shape))
      end
      if not batched then state = state:unsqueeze(1) end
    end
    inner[i] = state
  end
  local h, c = steps.once(mode, self, x, table.unpack(inner))
  if not batched then h, c = h:squeeze(1), c and c:squeeze(1) end
  return h, c
end

--- nn.RNNCell: one step of an Elman network (Elman 1990).
local RNNCell = RNNCellBase:extend "RNNCell"
cells.RNNCell = RNNCell

local parse_rnn = args.signature("RNNCell", SIZES:format " = true"
  .. "'tanh'|'relu' nonlinearity = 'tanh', " .. OPTIONS)

--- nn.RNNCell(input_size, hidden_size, {bias = true, nonlinearity = "tanh", device, dtype}): the
-- next state h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh.
function RNNCell:init(...)
  local input_size, hidden_size, bias, nonlinearity, device, dtype = parse_rnn(...)
  RNNCellBase.init(self, input_size, hidden_size, bias, 1, {device = device, dtype = dtype})
  self.nonlinearity = nonlinearity
end

--- cell(input, hx): maps an input {N, input_size} or {input_size} and the state {N, hidden_size} or
-- {hidden_size} (nil for zeros) to the next state. Raises an error for other shapes.
function RNNCell:forward(input, hx)
  local mode = self.nonlinearity == "tanh" and "RNN_TANH" or "RNN_RELU"
  local h = step(self, mode, input, hx ~= nil and {hx} or nil, {"hx"})
  return h
end

--- nn.LSTMCell: one step of long short-term memory (Hochreiter and Schmidhuber 1997).
local LSTMCell = RNNCellBase:extend "LSTMCell"
cells.LSTMCell = LSTMCell

local parse_lstm = args.signature("LSTMCell", SIZES:format " = true" .. OPTIONS)

--- nn.LSTMCell(input_size, hidden_size, {bias = true, device, dtype}): the gates i, f, g, o are the
-- four blocks of rows of the weights; c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o)
-- tanh(c').
function LSTMCell:init(...)
  local input_size, hidden_size, bias, device, dtype = parse_lstm(...)
  RNNCellBase.init(self, input_size, hidden_size, bias, 4, {device = device, dtype = dtype})
end

--- local h, c = cell(input, {h, c}): maps an input {N, input_size} or {input_size} and two states
-- {N, hidden_size} or {hidden_size} (nil for zeros) to the next states. Raises an error for other
-- shapes.
function LSTMCell:forward(input, hx)
  if hx ~= nil and not args.is_plain(hx) then
    self:fail("expected a table {h, c} for argument 'hx', got %s", args.show(hx))
  end
  return step(self, "LSTM", input, hx, {"hx[1]", "hx[2]"})
end

--- nn.GRUCell: one step of a network of gated recurrent units (Cho et al. 2014).
local GRUCell = RNNCellBase:extend "GRUCell"
cells.GRUCell = GRUCell

local parse_gru = args.signature("GRUCell", SIZES:format " = true" .. OPTIONS)

--- nn.GRUCell(input_size, hidden_size, {bias = true, device, dtype}): the gates r, z, n are the
-- three blocks of rows of the weights; n = tanh(W_in x + b_in + r (W_hn h + b_hn)), h' = (1 - z) n
-- + z h.
function GRUCell:init(...)
  local input_size, hidden_size, bias, device, dtype = parse_gru(...)
  RNNCellBase.init(self, input_size, hidden_size, bias, 3, {device = device, dtype = dtype})
end

--- cell(input, hx): shapes as for nn.RNNCell.
function GRUCell:forward(input, hx)
  local h = step(self, "GRU", input, hx ~= nil and {hx} or nil, {"hx"})
  return h
end

return cells
