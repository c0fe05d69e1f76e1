--- nn.RNN, nn.LSTM and nn.GRU: recurrent layers over sequences, in one or both directions.
--
-- Invariant: the parameters of a layer and direction have PyTorch's names, weight_ih_l0,
-- weight_hh_l0_reverse..., whose layers count from 0, so that state dicts are exchangeable.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local init = require "lutra.nn.initializers"
local Module = require "lutra.nn.module"
local numbers = require "lutra.internal.numbers"
local rnn = require "lutra.nn.packed_sequences"
local steps = require "lutra.nn.recurrent_steps"

local recurrent = {}

--- nn.RNNBase: the base class of nn.RNN, nn.LSTM and nn.GRU.
local RNNBase = Module:extend "RNNBase"
recurrent.RNNBase = RNNBase

-- The names of the parameters of a direction of a layer, without their suffix, in order.
local function parameter_names(self)
  local list = {"weight_ih", "weight_hh"}
  if self.bias then table.move({"bias_ih", "bias_hh"}, 1, 2, 3, list) end
  if self.proj_size > 0 then list[#list + 1] = "weight_hr" end
  return list
end

-- Iterates over the directions of all layers: their number, layer (from 0), whether it is the
-- reverse direction, and the suffix of their parameters' names.
local function directions(self)
  local count, i = self.bidirectional and 2 or 1, 0
  return function()
    i = i + 1
    local layer, reverse = (i - 1) // count, count == 2 and i % 2 == 0
    if layer >= self.num_layers then return nil end
    return i, layer, reverse, ("_l%d%s"):format(layer, reverse and "_reverse" or "")
  end
end

-- The fields of an instance that are computed: all_weights, a list of the parameters of each
-- direction of each layer, in PyTorch's order.
local function computed_fields(class)
  return {__names = class, __index = function(fields, key)
    if key ~= "all_weights" then return class[key] end
    local list, names = {}, parameter_names(fields)
    for i, _, _, suffix in directions(fields) do
      list[i] = {}
      for k, name in ipairs(names) do list[i][k] = fields[name .. suffix] end
    end
    return list
  end}
end
RNNBase.__fields = computed_fields(RNNBase)

--- Returns a subclass, as nn.Module:extend does.
function RNNBase:extend(name)
  local class = Module.extend(self, name)
  class.__fields = computed_fields(class)
  return class
end

local SIZES <const> = "int(>=1) input_size, int(>=1) hidden_size, int(>=1) num_layers = 1, "
local OPTIONS <const> = "bool bias = true, bool batch_first = false, float dropout = 0, "
  .. "bool bidirectional = false, "
local LAST <const> = "device? device = nil, dtype? dtype = nil"
local PROJECTION <const> = "int(>=0) proj_size = 0, "
local MODE <const> = "'LSTM'|'GRU'|'RNN_TANH'|'RNN_RELU' mode, "

local parse_base = args.signature("RNNBase", MODE .. SIZES .. OPTIONS .. PROJECTION .. LAST)

--- nn.RNNBase(mode, input_size, hidden_size, ...): a layer of the given kind, "LSTM", "GRU",
-- "RNN_TANH" or "RNN_RELU"; the other arguments are those of nn.LSTM.
function RNNBase:init(...)
  local title = self:type_name()
  local device, dtype
  self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias, self.batch_first,
    self.dropout, self.bidirectional, self.proj_size, device, dtype = parse_base(...)
  args.check(self.dropout >= 0 and self.dropout <= 1,
    "%s: expected a probability from 0 to 1 for argument 'dropout', got %g", title, self.dropout)
  args.check(self.proj_size < self.hidden_size, "%s: expected an integer below hidden_size, %d, "
    .. "for argument 'proj_size', got %d", title, self.hidden_size, self.proj_size)
  args.check(self.proj_size == 0 or self.mode == "LSTM",
    "%s: expected 0 for argument 'proj_size', which only LSTM has, got %d", title, self.proj_size)
  if self.dropout > 0 and self.num_layers == 1 then
    warn(title, ": dropout is applied after all layers but the last one; it has no effect with ",
      "num_layers = 1")
  end
  local size = self.proj_size > 0 and self.proj_size or self.hidden_size
  local gates = steps.kinds[self.mode].gates * self.hidden_size
  for _, layer, _, suffix in directions(self) do
    local input = layer == 0 and self.input_size or size * (self.bidirectional and 2 or 1)
    local shapes = {weight_ih = {gates, input}, weight_hh = {gates, size}, bias_ih = {gates},
      bias_hh = {gates}, weight_hr = {self.proj_size, self.hidden_size}}
    for _, name in ipairs(parameter_names(self)) do
      self[name .. suffix] =
        lt.nn.Parameter(lt.empty(shapes[name], {device = device, dtype = dtype}))
    end
  end
  self:reset_parameters()
end

--- Draws all parameters from the uniform distribution between -b and b, b = 1 / sqrt(hidden_size).
function RNNBase:reset_parameters()
  local bound = 1 / math.sqrt(self.hidden_size)
  for p in self:parameters() do init.uniform_(p, -bound, bound) end
end

--- Has no effect: it exists for programs that call PyTorch's function of this name.
function RNNBase:flatten_parameters() local _ = self end

function RNNBase:extra_repr()
  local text = ("%d, %d"):format(self.input_size, self.hidden_size)
  for _, option in ipairs{{"proj_size", 0}, {"num_layers", 1}, {"bias", true},
    {"batch_first", false}, {"dropout", 0}, {"bidirectional", false}} do
    local name, default = option[1], option[2]
    if self[name] ~= default then
      text = text .. (", %s=%s"):format(name, numbers.text(self[name]))
    end
  end
  return text
end

local function shape_text(sizes) return "{" .. table.concat(sizes, ", ") .. "}" end

-- Raises an error unless the input's data has the layer's input size and dtype, and elements along
-- dimension `time` (nil: packed data, which always has some).
local function check_input(self, x, time)
  if x:size(-1) ~= self.input_size then
    self:fail("expected %d (input_size) for the last size of argument 'input', got %s",
      self.input_size, tostring(x.shape))
  end
  local dtype = self.weight_ih_l0.dtype
  if x.dtype ~= dtype then
    self:fail("expected dtype \"%s\", that of the weights, for argument 'input', got \"%s\"\n"
      .. 'hint: x:to "%s", or net:to "%s" for the parameters of a module', dtype, x.dtype, dtype,
      x.dtype)
  end
  if time and x:size(time) == 0 then
    self:fail("expected a sequence of at least 1 element for argument 'input', got %s",
      tostring(x.shape))
  end
end

-- Returns the first states {layers * directions, N, H} as a list: those given, or zeros.
local function first_states(self, x, batch, batched, hx)
  local states, list = steps.kinds[self.mode].states, {}
  local size = self.proj_size > 0 and self.proj_size or self.hidden_size
  local count = self.num_layers * (self.bidirectional and 2 or 1)
  if states == 2 and hx ~= nil and not args.is_plain(hx) then
    self:fail("expected a table {h, c} for argument 'hx', got %s", args.show(hx))
  end
  local given = states == 2 and hx or hx ~= nil and {hx} or nil
  for i = 1, states do
    local width = i == 1 and size or self.hidden_size
    local name = states == 2 and ("hx[%d]"):format(i) or "hx"
    if given == nil then
      list[i] = x:new_zeros(count, batch, width)
    else
      if not lt.is_tensor(given[i]) then
        self:fail("expected a tensor for argument '%s', got %s", name, args.show(given[i]))
      end
      local shape = batched and {count, batch, width} or {count, width}
      if tostring(given[i].shape) ~= shape_text(shape) then
        self:fail("expected shape %s for argument '%s', got %s", shape_text(shape), name,
          tostring(given[i].shape))
      end
      list[i] = batched and given[i] or given[i]:unsqueeze(2)
    end
  end
  return list
end

local NAMES <const> = {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"}

-- Returns the computation of a layer under autocast, with PyTorch's dtypes: in the lower precision,
-- but GRUs on the CPU as their steps.
local function under_autocast(mode, compute, x)
  if mode == "GRU" and x.device == "cpu" and core._autocast_of "cpu" then return steps.run end
  return require("lutra.internal.autocast").wrap("LOW", compute)
end

-- Runs all layers over `x`, {T, N, I} or packed with `sizes`. Returns the output and the last
-- states {layers * directions, N, H} as a list.
local function run(self, x, sizes, states)
  local last, outputs = {}, {}
  for i = 1, #states do last[i] = {} end
  for number, layer, reverse, suffix in directions(self) do
    if layer > 0 and not reverse and self.dropout > 0 and self.training then
      x = lt.dropout(x, self.dropout, true)
    end
    local p, first = {}, {}
    for _, name in ipairs(NAMES) do p[name] = self[name .. suffix] end
    for i, state in ipairs(states) do first[i] = state[number] end
    local sequence = require "lutra.nn.recurrent_sequence"
    local compute = sequence.supports(p) and sequence.run or steps.run
    if core._autocast_any() then compute = under_autocast(self.mode, compute, x) end
    local out, ending = compute(self.mode, p, x, sizes, first, reverse)
    for i, state in ipairs(ending) do last[i][number] = state end
    outputs[#outputs + 1] = out
    if reverse or not self.bidirectional then
      x = #outputs == 1 and outputs[1] or lt.cat(outputs, -1)
      outputs = {}
    end
  end
  for i, list in ipairs(last) do
    last[i] = #list == 1 and list[1]:unsqueeze(1) or lt.stack(list, 1)
  end
  return x, last
end

-- Returns f applied to each state of a list, as the value that users get.
local function results(f, states)
  for i, state in ipairs(states) do states[i] = f(state) end
  return states[2] and states or states[1]
end

local function permuted(state, index) return index and state:index_select(2, index) or state end

local function forward_packed(self, packed, hx)
  local x, sizes = packed.data, packed.batch_sizes:totable()
  if x.ndim ~= 2 then
    self:fail("expected packed data of 2 dimensions for argument 'input', got %d: %s", x.ndim,
      tostring(x.shape))
  end
  check_input(self, x)
  local states = first_states(self, x, sizes[1], true, hx)
  if hx ~= nil then
    for i, state in ipairs(states) do states[i] = permuted(state, packed.sorted_indices) end
  end
  local out, last = run(self, x, sizes, states)
  return rnn.PackedSequence(out, packed.batch_sizes, packed.sorted_indices,
    packed.unsorted_indices),
    results(function(state) return permuted(state, packed.unsorted_indices) end, last)
end

--- local output, hn = layer(input, hx): runs the layer over `input`: {L, N, input_size}, or {N, L,
-- input_size} with batch_first, or {L, input_size}, one sequence, or a packed sequence
-- (nn.utils.rnn). `hx` is the first state {num_layers * directions, N, hidden_size}, without N for
-- one sequence; nil stands for zeros. Returns the output of the last layer for each element, {L, N,
-- directions * hidden_size} or in the layout of the input, and the last state. An LSTM's states are
-- tables: local output, state = lstm(input, {h, c}). Layers count from the first, the reverse
-- direction after the other. Raises an error for other shapes, and for another dtype than that of
-- the parameters.
function RNNBase:forward(input, hx)
  if rnn.is_packed(input) then return forward_packed(self, input, hx) end
  local x = self:check_tensor(input)
  if x.ndim ~= 2 and x.ndim ~= 3 then
    self:fail("expected 2 or 3 dimensions for argument 'input', got %d: %s", x.ndim,
      tostring(x.shape))
  end
  local batched = x.ndim == 3
  check_input(self, x, batched and self.batch_first and 2 or 1)
  if not batched then
    x = x:unsqueeze(2)
  elseif self.batch_first then
    x = x:transpose(1, 2)
  end
  local out, last = run(self, x, nil, first_states(self, x, x:size(2), batched, hx))
  if not batched then
    out = out:squeeze(2)
  elseif self.batch_first then
    out = out:transpose(1, 2)
  end
  return out, results(function(state) return batched and state or state:squeeze(2) end, last)
end

--- nn.RNN: a layer of Elman networks (Elman 1990).
local RNN = RNNBase:extend "RNN"
recurrent.RNN = RNN

local parse_rnn = args.signature("RNN",
  SIZES .. "'tanh'|'relu' nonlinearity = 'tanh', " .. OPTIONS .. LAST)

--- nn.RNN(input_size, hidden_size, {num_layers = 1, nonlinearity = "tanh", bias = true, batch_first
-- = false, dropout = 0, bidirectional = false, device, dtype}): h_t = tanh(W_ih x_t + b_ih + W_hh
-- h_(t-1) + b_hh), or relu in place of tanh. In training mode, `dropout` is the probability with
-- which the output of each layer but the last one is zeroed. Raises an error unless the sizes are
-- positive and 0 <= dropout <= 1.
function RNN:init(...)
  local input_size, hidden_size, layers, nonlinearity, bias, batch_first, dropout, bidirectional,
    device, dtype = parse_rnn(...)
  RNNBase.init(self, nonlinearity == "tanh" and "RNN_TANH" or "RNN_RELU", input_size, hidden_size,
    layers, bias, batch_first, dropout, bidirectional, 0, {device = device, dtype = dtype})
  self.nonlinearity = nonlinearity
end

--- nn.LSTM: a layer with long short-term memory (Hochreiter and Schmidhuber 1997).
local LSTM = RNNBase:extend "LSTM"
recurrent.LSTM = LSTM

local parse_lstm = args.signature("LSTM", SIZES .. OPTIONS .. PROJECTION .. LAST)

--- nn.LSTM(input_size, hidden_size, {num_layers = 1, bias = true, batch_first = false, dropout = 0,
-- bidirectional = false, proj_size = 0, device, dtype}): c_t = f c_(t-1) + i g, h_t = o tanh(c_t),
-- where i, f, o = sigmoid and g = tanh of W_ih x_t + b_ih + W_hh h_(t-1) + b_hh, in blocks of rows
-- i, f, g, o. With proj_size, h_t is multiplied by weight_hr {proj_size, hidden_size} (Sak et al.
-- 2014). Raises an error unless 0 <= proj_size < hidden_size; other options as for nn.RNN.
function LSTM:init(...) RNNBase.init(self, "LSTM", parse_lstm(...)) end

--- nn.GRU: a layer of gated recurrent units (Cho et al. 2014).
local GRU = RNNBase:extend "GRU"
recurrent.GRU = GRU

local parse_gru = args.signature("GRU", SIZES .. OPTIONS .. LAST)

--- nn.GRU(input_size, hidden_size, {num_layers = 1, bias = true, batch_first = false, dropout = 0,
-- bidirectional = false, device, dtype}): h_t = (1 - z) n + z h_(t-1), where r, z = sigmoid of W_ih
-- x_t + b_ih + W_hh h_(t-1) + b_hh and n = tanh(W_in x_t + b_in + r (W_hn h_(t-1) + b_hn)), in
-- blocks of rows r, z, n. Options as for nn.RNN.
function GRU:init(...)
  local input_size, hidden_size, layers, bias, batch_first, dropout, bidirectional, device, dtype =
    parse_gru(...)
  RNNBase.init(self, "GRU", input_size, hidden_size, layers, bias, batch_first, dropout,
    bidirectional, 0, {device = device, dtype = dtype})
end

return recurrent
