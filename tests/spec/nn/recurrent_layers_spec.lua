-- Recurrent layers and cells: values and gradients of PyTorch, names of parameters, wrong input.

local lt = require "lutra"
local support = require "nn_support"
local recurrent = require "recurrent_support"
local wide = require "wide_support"

local nn, rnn = lt.nn, lt.nn.utils.rnn
local fails, close, wave = support.fails, support.close, recurrent.wave
local golden = support.golden "recurrent"

-- The first states of a case: waves, which require grad.
local function states_of(case, module)
  if not case.state then return {} end
  local count = module.num_layers * (module.bidirectional and 2 or 1)
  local batch = case.shape[case.options.batch_first and 1 or 2]
  local list = {}
  for i = 1, case.name == "LSTM" and 2 or 1 do
    local size = i == 1 and module.proj_size > 0 and module.proj_size or module.hidden_size
    local shape = #case.shape == 3 and {count, batch, size} or {count, size}
    list[i] = wave(shape, 4 + i):requires_grad_()
  end
  return list
end

-- A state as the layer `name` takes it: {h, c} or h.
local function as_given(name, states)
  if #states == 0 then return nil end
  if name:find "LSTM" then return states end
  return states[1]
end

local function title(case)
  local parts = {}
  for key, value in pairs(case.options) do parts[#parts + 1] = key .. "=" .. tostring(value) end
  table.sort(parts)
  return ("%s{%s} of %s%s%s"):format(case.name, table.concat(parts, ", "),
    table.concat(case.shape, "x"), case.state and " with a state" or "",
    case.lengths and ", packed" or "")
end

describe("recurrent layers against PyTorch " .. golden.version, function()
  for number, case in ipairs(golden.layers) do
    it(title(case) .. ", case " .. number, function()
      local module = nn[case.name](3, case.hidden, case.options)
      recurrent.set_parameters(module)
      local x = wave(case.shape, 0):requires_grad_()
      local states = states_of(case, module)
      local out, last
      if case.lengths then
        local first = case.options.batch_first
        local packed = rnn.pack_padded_sequence(x, case.lengths, first, false)
        out, last = module(packed, as_given(case.name, states))
        assert.is_true(rnn.is_packed(out))
        out = rnn.pad_packed_sequence(out, {batch_first = first})
      else
        out, last = module(x, as_given(case.name, states))
      end
      local outputs = {out, last}
      if case.name == "LSTM" then outputs = {out, last[1], last[2]} end
      recurrent.check(case, module, {x, table.unpack(states)}, outputs)
    end)
  end

  for number, case in ipairs(golden.cells) do
    it(title(case) .. ", case " .. number, function()
      local module = nn[case.name](3, 2, case.options)
      recurrent.set_parameters(module)
      local x = wave(case.shape, 0):requires_grad_()
      local states = {}
      local sizes = table.move(case.shape, 1, #case.shape, 1, {})
      sizes[#sizes] = 2
      for i = 1, case.state and (case.name == "LSTMCell" and 2 or 1) or 0 do
        states[i] = wave(sizes, 4 + i):requires_grad_()
      end
      recurrent.check(case, module, {x, table.unpack(states)},
        {module(x, as_given(case.name, states))})
    end)
  end
end)

describe("a recurrent layer", function()
  local function names(module)
    return support.list(1, module:named_parameters())
  end

  it("has PyTorch's names of parameters, in its order", function()
    assert.same({"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l1",
      "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"}, names(nn.GRU(3, 2, 2)))
    assert.same({"weight_ih_l0", "weight_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse",
      "weight_hh_l0_reverse", "weight_hr_l0_reverse"},
      names(nn.LSTM{3, 4, bias = false, bidirectional = true, proj_size = 2}))
    assert.same({"weight_ih", "weight_hh", "bias_ih", "bias_hh"}, names(nn.GRUCell(3, 2)))
    assert.equal("{12, 6}", tostring(nn.LSTM(3, 3, {num_layers = 2, bidirectional = true})
      .weight_ih_l1.shape))
  end)

  it("lists its parameters in all_weights, also in a class made from it", function()
    local Mine = nn.LSTM:extend "Mine"
    for _, lstm in ipairs{nn.LSTM(3, 4, {num_layers = 2, proj_size = 2}), Mine(3, 4, 2)} do
      local all = lstm.all_weights
      assert.equal(2, #all)
      assert.equal(lstm.weight_ih_l0, all[1][1])
      assert.equal(lstm.bias_hh_l1, all[2][4])
      assert.equal(lstm.weight_hr_l1, all[2][5])
    end
    nn.GRU(3, 2):flatten_parameters()
  end)

  it("starts from the uniform distribution of PyTorch", function()
    for _, p in ipairs(support.list(1, nn.LSTM(10, 16):parameters())) do
      assert.is_true(p:abs():max():item() <= 0.25)
      assert.is_true(p:abs():max():item() > 0.2)
    end
  end)

  it("prints the options that differ from the defaults", function()
    assert.equal("LSTM(3, 4, proj_size=2, num_layers=2, bias=false, batch_first=true, "
      .. "dropout=0.5, bidirectional=true)", tostring(nn.LSTM(3, 4, 2, false, true, 0.5, true, 2)))
    assert.equal("RNNCell(3, 4, nonlinearity=relu)",
      tostring(nn.RNNCell(3, 4, {nonlinearity = "relu"})))
  end)

  it("drops between layers in training mode only", function()
    local gru = nn.GRU(3, 4, {num_layers = 2, dropout = 1})
    recurrent.set_parameters(gru)
    local x = wave({5, 2, 3}, 0)
    local whole = gru:eval()(x)
    local dropped = gru:train()(x)
    assert.is_false(lt.allclose(whole, dropped))
    gru.weight_ih_l1:set_data(lt.zeros_like(gru.weight_ih_l1:detach()))
    close(gru:eval()(x), gru:train()(x), 1e-12)
  end)

  it("runs in every float dtype and on meta", function()
    for _, dtype in ipairs{"float32", "float16", "bfloat16"} do
      local out, state = nn.LSTM(3, 2, {dtype = dtype})(lt.ones(4, 2, 3, {dtype = dtype}))
      assert.equal(dtype, out.dtype)
      assert.equal(dtype, state[2].dtype)
    end
    local out, last = nn.GRU(3, 2, {device = "meta"})(lt.ones(4, 2, 3, {device = "meta"}))
    assert.equal("{4, 2, 2}", tostring(out.shape))
    assert.equal("{1, 2, 2}", tostring(last.shape))
    assert.equal("{4, 0, 2}", tostring(nn.GRU(3, 2)(lt.ones(4, 0, 3)).shape))
  end)

  it("has second derivatives", function()
    for _, name in ipairs{"RNN", "LSTM", "GRU"} do
      local module = nn[name](2, 2)
      recurrent.set_parameters(module)
      local x = wave({3, 1, 2}, 0):requires_grad_()
      local function slope(input)
        local out = module(input)
        local g = lt.autograd.grad((out * out):sum(), input, {create_graph = true})
        return (g * wave(g.shape, 2)):sum()
      end
      slope(x):backward()
      local step = wide.is_narrow and 1e-2 or 1e-5
      for i = 1, 6 do
        local e = lt.zeros(6, {dtype = wide.dtype})
        e[i] = step
        local function at(sign)
          return slope((x:detach() + sign * e:reshape(3, 1, 2)):requires_grad_()):item()
        end
        local expected = (at(1) - at(-1)) / (2 * step)
        assert.is_true(math.abs(x.grad:reshape(-1)[i]:item() - expected)
          <= wide.tolerance(1e-8, 1e-2), name)
      end
    end
  end)

  it("refuses wrong options", function()
    fails({"LSTM", "'hidden_size'"}, function() nn.LSTM(3, 0) end)
    fails({"GRU", "'num_layers'"}, function() nn.GRU(3, 2, 0) end)
    fails({"RNN", "'nonlinearity'"}, function() nn.RNN(3, 2, 1, "sigmoid") end)
    fails({"LSTM", "0 to 1", "'dropout'"}, function() nn.LSTM(3, 2, {dropout = 1.5}) end)
    fails({"LSTM", "below hidden_size", "'proj_size'"},
      function() nn.LSTM(3, 2, {proj_size = 2}) end)
    fails({"RNNBase", "'proj_size'"}, function() nn.RNNBase("GRU", 3, 4, {proj_size = 2}) end)
    fails({"GRUCell", "'input_size'"}, function() nn.GRUCell(-1, 2) end)
    fails({"RNNCellBase", "'num_chunks'"}, function() nn.RNNCellBase(3, 2, true) end)
  end)

  it("refuses wrong input", function()
    local lstm, gru = nn.LSTM(3, 2), nn.GRU(3, 2)
    fails({"LSTM", "2 or 3 dimensions", "'input'"}, function() lstm(lt.ones(3)) end)
    fails({"LSTM", "3 (input_size)", "'input'", "{4, 1, 2}"}, function() lstm(lt.ones(4, 1, 2)) end)
    fails({"LSTM", "3 (input_size)", "'input'", "got {4, 2}"}, function() lstm(lt.ones(4, 2)) end)
    local batches = nn.LSTM(3, 2, {batch_first = true})
    fails({"LSTM", "'input'", "got {4, 1, 2}"}, function() batches(lt.ones(4, 1, 2)) end)
    fails({"LSTM", "'input'", "got {4, 0, 3}"}, function() batches(lt.ones(4, 0, 3)) end)
    fails({"GRU", 'dtype "float32"', "'input'", '"float16"', 'x:to "float32"'},
      function() gru(lt.ones(4, 1, 3, {dtype = "float16"})) end)
    fails({"GRU", "at least 1 element", "'input'"}, function() gru(lt.ones(0, 1, 3)) end)
    fails({"GRU", "{1, 5, 2}", "'hx'", "{1, 4, 2}"},
      function() gru(lt.ones(4, 5, 3), lt.ones(1, 4, 2)) end)
    fails({"GRU", "{1, 2}", "'hx'", "{1, 1, 2}"},
      function() gru(lt.ones(4, 3), lt.ones(1, 1, 2)) end)
    fails({"LSTM", "{h, c}", "'hx'"}, function() lstm(lt.ones(4, 5, 3), lt.ones(1, 5, 2)) end)
    fails({"LSTM", "'hx[2]'", "nil"}, function() lstm(lt.ones(4, 5, 3), {lt.ones(1, 5, 2)}) end)
    fails({"LSTM", "{1, 5, 2}", "'hx[2]'"},
      function() lstm(lt.ones(4, 5, 3), {lt.ones(1, 5, 2), lt.ones(1, 5, 3)}) end)
    fails({"GRU", "2 dimensions", "'input'"},
      function() gru(rnn.pack_sequence{lt.ones(3)}) end)
    fails("GRU", function() gru(3) end)
  end)

  it("refuses wrong input of a cell", function()
    local cell = nn.LSTMCell(3, 2)
    fails({"LSTMCell", "1 or 2 dimensions", "'input'"}, function() cell(lt.ones(1, 1, 3)) end)
    fails({"LSTMCell", "'input'", "{4, 2}"}, function() cell(lt.ones(4, 2)) end)
    fails({"LSTMCell", "{h, c}", "'hx'"}, function() cell(lt.ones(4, 3), lt.ones(4, 2)) end)
    fails({"LSTMCell", "{4, 2}", "'hx[1]'", "{1, 2}"},
      function() cell(lt.ones(4, 3), {lt.ones(1, 2), lt.ones(4, 2)}) end)
    fails({"GRUCell", "{2}", "'hx'"}, function() nn.GRUCell(3, 2)(lt.ones(3), lt.ones(1, 2)) end)
    fails({"RNNCell", "a tensor", "'hx'"}, function() nn.RNNCell(3, 2)(lt.ones(3), 1) end)
  end)
end)

describe("a recurrent layer over a sequence", function()
  local steps = require "lutra.nn.recurrent_steps"
  local sequence = require "lutra.nn.recurrent_sequence"

  local SHAPES <const> = {LSTM = 4, GRU = 3, RNN_TANH = 1, RNN_RELU = 1}

  -- The results and gradients of one direction, computed by `run`: a list of tensors.
  local function results(run, mode, sizes, reverse, bias, dtype)
    local gates = SHAPES[mode] * 5
    local function leaf(shape, seed) return wave(shape, seed):to(dtype):requires_grad_() end
    local x = leaf(sizes and {9, 3} or {3, 3, 3}, 1)
    local p = {weight_ih = leaf({gates, 3}, 2), weight_hh = leaf({gates, 5}, 3)}
    if bias then p.bias_ih, p.bias_hh = leaf({gates}, 4), leaf({gates}, 5) end
    local states = {leaf({3, 5}, 6), mode == "LSTM" and leaf({3, 5}, 7) or nil}
    local out, last = run(mode, p, x, sizes, states, reverse)
    local loss = (out * wave(out.shape, 8):to(dtype)):sum() + (last[1] * last[1]):sum()
    if last[2] then loss = loss + (last[2] * last[2]):sum() end
    loss:backward{retain_graph = true}
    loss:backward() -- a second time, from the same saved tensors
    return {out, last[1], last[2] or last[1], x.grad, p.weight_ih.grad, p.weight_hh.grad,
      states[1].grad, bias and p.bias_ih.grad or x.grad, bias and p.bias_hh.grad or x.grad,
      (states[2] or states[1]).grad}
  end

  for mode in pairs(SHAPES) do
    it("computes what the steps compute: " .. mode, function()
      for _, sizes in ipairs{false, {3, 3, 2, 1}} do
        for _, reverse in ipairs{false, true} do
          for _, bias in ipairs{false, true} do
            for _, dtype in ipairs{wide.dtype, "float32"} do
              local expected = results(steps.run, mode, sizes or nil, reverse, bias, dtype)
              local actual = results(sequence.run, mode, sizes or nil, reverse, bias, dtype)
              for i, t in ipairs(expected) do
                close(t:detach():to(wide.dtype), actual[i],
                  dtype == "float64" and 1e-12 or 1e-5, ("result %d"):format(i))
              end
            end
          end
        end
      end
    end)
  end

  it("computes the same while a profiler records the ops", function()
    for mode in pairs(SHAPES) do
      for _, reverse in ipairs{false, true} do
        local expected, actual = results(sequence.run, mode, nil, reverse, true, "float32"), nil
        lt.profiler.profile(function()
          actual = results(sequence.run, mode, nil, reverse, true, "float32")
        end)
        for i, t in ipairs(expected) do assert.is_true(t:equal(actual[i])) end
      end
    end
  end)

  it("computes only gradients that are required", function()
    local lstm = nn.LSTM(3, 2)
    lstm.weight_ih_l0:requires_grad_(false)
    local x = wave({4, 2, 3}, 0):to "float32"
    local _, state = lstm(x)
    state[2]:sum():backward()
    assert.is_nil(lstm.weight_ih_l0.grad)
    assert.is_true(lstm.weight_hh_l0.grad:abs():sum():item() > 0)
    lstm:requires_grad_(false)
    assert.is_false(lstm(x).requires_grad)
  end)

  it("refuses matrices of other sizes", function()
    local function x(...) return lt.zeros(...) end
    local ops = lt._ops
    fails({"lstm_run", "{6, 8}", "'gates'", "{7, 8}"}, function()
      ops._lstm_run(x(7, 8), x(6, 2), x(6, 2), x(3, 2), x(3, 2), x(8, 2), false)
    end)
    fails({"lstm_run", "{6, 2}", "'c'", "{5, 2}"}, function()
      ops._lstm_run(x(6, 8), x(6, 2), x(5, 2), x(3, 2), x(3, 2), x(8, 2), false)
    end)
    fails({"lstm_run_backward", "{3, 2}", "'dc'"}, function()
      ops._lstm_run_backward(x(6, 8), x(6, 2), x(6, 2), x(2, 2), x(3, 2), x(3, 2), x(8, 2), true)
    end)
    fails({"gru_run", "{6, 2}", "'weight'"}, function()
      ops._gru_run(x(6, 6), x(6, 6), x(6, 2), x(3, 2), x(6, 3), false)
    end)
    fails({"gru_run_backward", "{6, 6}", "'hidden'"}, function()
      ops._gru_run_backward(x(6, 6), x(6, 5), x(6, 2), x(6, 2), x(3, 2), x(3, 2), x(6, 2), false)
    end)
  end)

  it("is saturated by large inputs, and passes NaN on", function()
    for _, name in ipairs{"LSTM", "GRU"} do
      local module = nn[name](1, 1, {bias = false})
      for p in module:parameters() do p:set_data(lt.full(p.shape, 1000.0)) end
      for _, x in ipairs{1.0, -1.0} do
        local input = lt.full({3, 1, 1}, x, {requires_grad = true})
        local out = module(input)
        assert.is_true(out:abs():max():item() <= 1)
        out:sum():backward()
        assert.equal(0, input.grad:abs():sum():item())
      end
      assert.is_true(module(lt.full({1, 1, 1}, lt.nan)):isnan():all():item())
    end
  end)
end)
