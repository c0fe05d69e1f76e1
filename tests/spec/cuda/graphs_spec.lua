-- CUDA graphs: capture and replay, memory that stays, what cannot be captured.

local devices = require "device_support"
if devices.elsewhere("cuda/graphs", _ENV) then return end

local lt = require "lutra"
local nn, F, optim = lt.nn, lt.F, lt.optim

local cuda = lt.cuda
local fails = devices.fails
local two = cuda.device_count() > 1

local function on_device(list) return lt.tensor(list, {device = "cuda", dtype = "float32"}) end

-- The values of a tensor, on the CPU.
local function values(x) return x:to("cpu"):totable() end

local function close(a, b, tolerance)
  local worst = (a:to "cpu" - b:to "cpu"):abs():max():item()
  assert.is_true(worst <= (tolerance or 1e-6), "differs by " .. worst)
end

-- Captures f in a new graph; returns the graph and the results of f.
local function capture(f, ...)
  local g = cuda.CUDAGraph()
  return g, cuda.graph(g, f, ...)
end

describe("a CUDA graph", function()
  it("runs its work at each replay, not at the capture", function()
    local x, y = on_device{1, 2, 3}, on_device{0, 0, 0}
    local g, z = capture(function(a)
      y:add_(a)
      return (a * a + 1):sqrt()
    end, x)
    assert.same({0, 0, 0}, values(y))
    g:replay()
    assert.same({1, 2, 3}, values(y))
    close(z, lt.tensor{2 ^ 0.5, 5 ^ 0.5, 10 ^ 0.5})
    x:copy_(lt.tensor{3, 4, 5})
    g:replay()
    assert.same({4, 6, 8}, values(y))
    close(z, lt.tensor{10 ^ 0.5, 17 ^ 0.5, 26 ^ 0.5})
    g:replay()
    assert.same({7, 10, 13}, values(y))
  end)

  it("gives the results of eager calls: reductions, products, indexing, sorting", function()
    local x = lt.randn{40, 24}:to "cuda"
    local w = lt.randn{24, 16}:to "cuda"
    local indices = lt.randint(1, 16, {40, 3}):to "cuda"
    local function f()
      local y = x:matmul(w)
      local s = F.softmax(y, 2)
      local sorted = y:sort(2)
      return y, s, y:sum(), y:max(1), s:gather(2, indices), F.layer_norm(y, {16}), sorted,
        y:cumsum(1), y[{{2, 30}}]:t():contiguous(), y:argmax(2), lt.cat({y, s}, 2), y:gt(0):sum(2)
    end
    local g = cuda.CUDAGraph()
    local results = table.pack(cuda.graph(g, f))
    for _ = 1, 3 do
      x:copy_(lt.randn{40, 24})
      g:replay()
      local expected = table.pack(f())
      for i = 1, expected.n do
        assert.is_true(lt.equal(results[i], expected[i]), "result " .. i)
      end
    end
  end)

  it("takes part in the order of its stream", function()
    local x = lt.zeros{1000, device = "cuda"}
    local g = capture(function() x:add_(1) end)
    local side = cuda.Stream()
    for _ = 1, 10 do
      side:wait_stream(cuda.current_stream())
      cuda.with_stream(side, function() g:replay() end)
      cuda.current_stream():wait_stream(side)
      x:mul_(2)
    end
    assert.equal(2046, x:max():item())
    assert.equal(2046, x:min():item())
  end)

  it("captures work of streams that join", function()
    local x = on_device{1, 2, 3}
    local side = cuda.Stream()
    local a, b
    local g = capture(function()
      a = x + 1
      local main = cuda.current_stream()
      side:wait_stream(main)
      cuda.with_stream(side, function()
        assert.is_true(cuda.is_current_stream_capturing())
        b = a * 10
      end)
      main:wait_stream(side)
      b:add_(a)
    end)
    x:mul_(2)
    g:replay()
    assert.same({33, 55, 77}, values(b))
    fails("graph", capture, function()
      side:wait_stream(cuda.current_stream())
      cuda.with_stream(side, function() x:add_(1) end)
    end)
    cuda.with_stream(side, function() x:add_(1) end)
    side:synchronize()
    assert.same({3, 5, 7}, values(x))
  end)

  it("trains a model as eager steps do", function()
    local X, Y = lt.randn{32, 8}, lt.randint(1, 4, {32})
    for _, settings in ipairs{{lr = 0.1}, {lr = 0.1, momentum = 0.9, weight_decay = 0.01}} do
      lt.manual_seed(3)
      local function model()
        lt.manual_seed(5)
        return nn.Sequential(nn.Linear(8, 40), nn.LayerNorm(40), nn.GELU(), nn.Dropout(0.2),
          nn.Linear(40, 4)):to "cuda"
      end
      local x, y = X:to "cuda", Y:to "cuda"
      local function step_of(net)
        local opt = optim.SGD(net:parameters(), settings)
        return function()
          opt:zero_grad()
          local loss = F.cross_entropy(net(x), y)
          loss:backward()
          opt:step()
          return loss
        end
      end
      local net, expected = model(), model()
      local step, eager = step_of(net), step_of(expected)
      lt.manual_seed(7)
      step() -- creates the momentum
      lt.manual_seed(7)
      eager()
      local g, loss = capture(step)
      for _ = 1, 5 do
        x:copy_(lt.randn{32, 8})
        local state = lt.get_rng_state()
        g:replay()
        lt.set_rng_state(state)
        assert.equal(eager():item(), loss:item())
      end
      local theirs = expected:state_dict()
      for name, p in pairs(net:state_dict()) do
        assert.is_true(lt.equal(p, theirs[name]), name)
      end
    end
  end)

  it("steps many parameters, whose table is copied to the device", function()
    local params, copies = {}, {}
    for i = 1, 150 do
      params[i] = lt.full({3}, i + 0.0):to "cuda":requires_grad_()
      params[i].grad = lt.ones_like(params[i])
      copies[i] = params[i]
    end
    local opt = optim.SGD(params, {lr = 0.5})
    local g = capture(function() opt:step() end)
    for _ = 1, 50 do lt.ones(3):pin_memory() end
    for _ = 1, 4 do g:replay() end
    for i = 1, 150 do assert.equal(i - 2, copies[i]:max():item()) end
  end)

  it("draws other random numbers at each replay, those of eager calls", function()
    local weights = on_device{1, 2, 3, 4}
    local probabilities = on_device{0.2, 0.5, 0.8}
    local function f()
      local ones = lt.ones{5, 7, device = "cuda"}
      return F.dropout(ones, 0.5, true), lt.randn{3, 5, device = "cuda"},
        lt.rand{9, device = "cuda"}:mul_(2), lt.randperm(10, {device = "cuda"}),
        lt.multinomial(weights, 2), lt.multinomial(weights, 9, true), lt.bernoulli(probabilities),
        lt.randint(1, 1000, {4}, {device = "cuda"}), lt.empty{3, device = "cuda"}:exponential_(),
        lt.randn{6, device = "cuda", dtype = "float64"}
    end
    local g = cuda.CUDAGraph()
    local before = lt.get_rng_state()
    local results = table.pack(cuda.graph(g, f))
    assert.is_true(lt.equal(before, lt.get_rng_state()))
    lt.manual_seed(11)
    local replays = {}
    for i = 1, 3 do
      g:replay()
      replays[i] = {}
      for k, result in ipairs(results) do replays[i][k] = result:clone() end
    end
    local state = lt.get_rng_state()
    lt.manual_seed(11)
    for i = 1, 3 do
      for k, expected in ipairs {f()} do
        assert.is_true(lt.equal(expected, replays[i][k]), i .. ", result " .. k)
      end
    end
    assert.is_true(lt.equal(state, lt.get_rng_state()))
    assert.is_false(lt.equal(replays[1][2], replays[2][2]))
  end)

  it("captures custom kernels", function()
    if not devices.can_compile() then return pending "needs a compiler" end
    local twice = cuda.kernel([[
      __global__ void twice(const float *x, float *y, float a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = a * x[i];
      }]], "twice")
    local x, y = on_device{1, 2, 3}, on_device{0, 0, 0}
    local stream = cuda.Stream()
    local g = cuda.CUDAGraph()
    local sum = cuda.graph(g, {stream = stream}, function()
      local z = cuda.with_stream(stream, function() return lt.ones{3, device = "cuda"} end)
      twice({1, 32}, x, y, 2, 3)
      twice({1, 32}, y, z, 5, 3)
      return z:sum()
    end)
    assert.same({0, 0, 0}, values(y))
    x:fill_(3)
    g:replay()
    assert.same({6, 6, 6}, values(y))
    assert.equal(90, sum:item())
  end)

  it("captures copies of pinned memory", function()
    local from, to = lt.zeros(3):pin_memory(), lt.zeros(3):pin_memory()
    local x = lt.zeros{3, device = "cuda"}
    local g = capture(function()
      x:copy_(from, true)
      to:copy_(x * 2, true)
    end)
    for i = 1, 3 do
      from:fill_(i)
      g:replay()
      assert.same({2 * i, 2 * i, 2 * i}, to:totable()) -- blocks until the replay is done
    end
  end)
end)

describe("the memory of a CUDA graph", function()
  it("stays at its addresses while others allocate", function()
    local x = on_device{1, 2, 3}
    local y, z, address
    local g = capture(function()
      y = x + 1
      for _ = 1, 20 do z = y * 2 end
      address = z:data_ptr()
    end)
    local other = {}
    for i = 1, 50 do
      collectgarbage()
      other[i] = lt.full({3}, -1, {device = "cuda"})
      assert.is_true(other[i]:data_ptr() ~= address)
    end
    for i = 1, 3 do
      x:fill_(i)
      g:replay()
      assert.equal(address, z:data_ptr())
      assert.same({2 * (i + 1), 2 * (i + 1), 2 * (i + 1)}, values(z))
    end
    for i = 1, 50 do assert.equal(-1, other[i]:max():item()) end
  end)

  it("includes tensors from outside, which live as long as the graph", function()
    local x, w = on_device{1, 2, 3}, on_device{10, 20, 30}
    local stream = cuda.Stream()
    local v = cuda.with_stream(stream, function() return on_device{100, 200, 300} end)
    local y
    local g = cuda.CUDAGraph()
    cuda.graph(g, {stream = stream}, function() y = x + w + v end)
    w:free()
    w, v = nil, nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local others = {}
    for i = 1, 100 do others[i] = lt.zeros{3, device = "cuda"} end
    cuda.with_stream(stream, function()
      for i = 101, 200 do others[i] = lt.zeros{3, device = "cuda"} end
    end)
    cuda.synchronize()
    g:replay()
    assert.same({111, 222, 333}, values(y))
    assert.equal(0, lt.stack(others):abs():max():item())
  end)

  it("returns to the driver when the graph is reset or collected", function()
    local function reserved() return cuda.memory_reserved() end
    local x = lt.zeros{1 << 20, device = "cuda"}
    local w = lt.ones{64, 64, device = "cuda"}
    local function f() return (x + 1):sum() + w:matmul(w):sum() end
    f():item()
    cuda.synchronize()
    collectgarbage()
    collectgarbage()
    cuda.empty_cache()
    local before, allocated = reserved(), cuda.memory_allocated()
    local g, y = capture(f)
    assert.is_true(reserved() >= before + (4 << 20))
    g:replay()
    assert.equal((1 << 20) + 64 ^ 3, y:item())
    y = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    cuda.empty_cache()
    assert.is_true(reserved() >= before + (4 << 20))
    g:reset()
    cuda.empty_cache()
    assert.equal(before, reserved())
    assert.equal(allocated, cuda.memory_allocated())
    assert.equal("CUDAGraph(not captured)", tostring(g))
    -- A result that outlives the graph keeps its memory, which is then ordinary.
    y = cuda.graph(g, f)
    g:replay()
    g = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.equal((1 << 20) + 64 ^ 3, y:item())
    y = nil -- luacheck: ignore
    collectgarbage()
    cuda.empty_cache()
    assert.equal(before, reserved())
  end)

  it("reuses that of dead tensors where the device has no more", function()
    if os.getenv "LUTRA_TEST_GPU" then return pending "a GPU has more memory" end
    local result = devices.script([[
      local lt = require "lutra"
      local x = lt.ones{1 << 20, device = "cuda"}
      local g = lt.cuda.CUDAGraph()
      local ok, message = pcall(lt.cuda.graph, g, function()
        local all = {}
        for i = 1, 40 do all[i] = x + i end
      end)
      assert(not ok and message:find "out of memory", message)
      local y = lt.cuda.graph(g, function()
        local y = x
        for _ = 1, 100 do y = y + 1 end
        return y
      end)
      g:replay()
      assert(y:max():item() == 101 and y:min():item() == 101)
      y = nil
      g:reset()
      collectgarbage()
      lt.cuda.empty_cache()
      assert(lt.cuda.memory_reserved() <= 24 << 20)
    ]], "LUTRA_EMULATE=cuda:1,memory=64MiB")
    assert.equal(0, result.status, result.out .. result.err)
  end)

  it("can be shared by graphs", function()
    local x = on_device{1, 2, 3}
    local pool = cuda.graph_pool_handle()
    local g, h = cuda.CUDAGraph(), cuda.CUDAGraph()
    local y = cuda.graph(g, {pool = pool}, function() return x + 1 end)
    local used = cuda.memory_reserved()
    local z = cuda.graph(h, {pool = g:pool()}, function() return y * 2 end)
    assert.equal(pool, g:pool())
    assert.equal(pool, h:pool())
    assert.equal(used, cuda.memory_reserved())
    g:replay()
    h:replay()
    assert.same({4, 6, 8}, values(z))
    g:reset()
    h:replay()
    assert.same({4, 6, 8}, values(z))
    assert.is_true(cuda.graph_pool_handle() ~= pool)
  end)

  it("is not affected by the collection of graphs during a capture", function()
    local x = on_device{1, 2, 3}
    local y
    local g = capture(function()
      y = x + 1
      for _ = 1, 3 do
        local dead = cuda.CUDAGraph()
        assert.is_false(pcall(cuda.graph, dead, function() end))
      end
      y = y * 2
    end)
    for _ = 1, 3 do capture(function() return x + 1 end) end
    local h, z = capture(function()
      collectgarbage()
      collectgarbage()
      return x * 7
    end)
    g:replay()
    h:replay()
    assert.same({4, 6, 8}, values(y))
    assert.same({7, 14, 21}, values(z))
  end)
end)

describe("a capture", function()
  -- The call fails at its line, and so does the capture, also when the error is caught; then
  -- everything works as before.
  local function refused(words, f, caught)
    local x = on_device{1, 2, 3}
    local g = cuda.CUDAGraph()
    local inside
    fails(words, cuda.graph, g, function()
      local y = x + 1
      f(x, y)
      inside = true
    end)
    assert.is_nil(inside, "the call did not fail")
    if caught ~= false then
      fails("captured", cuda.graph, g, function() pcall(f, x, x + 1) end)
    end
    assert.is_false(cuda.is_current_stream_capturing())
    assert.is_true(cuda.current_stream() == cuda.default_stream())
    local y = cuda.graph(g, function() return x * 2 end)
    g:replay()
    assert.same({2, 4, 6}, values(y))
    assert.same({1, 2, 3}, values(x))
  end

  it("refuses what would block the host", function()
    refused({"item", "cannot copy to the host", 'captured on "cuda:0"', "g:replay()"},
      function(x) return x:sum():item() end)
    refused("cannot copy to the host", function(x) return x:totable() end)
    refused("cannot copy to the host", function(x) return tostring(x) end)
    refused("cannot copy to the host", function(x) return x:to "cpu" end)
    refused("cannot copy to the host", function(x) return x:nonzero() end)
    refused("cannot copy to the host", function(x) return x:masked_select(x:gt(1)) end)
    refused("cannot copy to the host", function(x) if x:gt(1):any():item() then return 1 end end)
    refused({"cannot copy from the host", "hint: "}, function() return on_device{1, 2} end)
    refused("cannot copy from the host", function(x) x:copy_(lt.ones(3)) end)
    refused({"synchronize", "cannot synchronize the device"}, function() cuda.synchronize() end)
    refused("cannot synchronize the stream", function() cuda.current_stream():synchronize() end)
    refused("event that was recorded", function()
      local e = cuda.Event()
      e:record()
      e:synchronize()
    end)
    refused("cannot release cached memory", function() cuda.empty_cache() end)
  end)

  it("refuses work outside of it", function()
    local side = cuda.Stream()
    refused("wait for work outside of the capture", function()
      cuda.current_stream():wait_stream(side)
    end)
    if two then
      refused("cannot copy between devices", function(x) return x:to "cuda:1" end)
      local other = cuda.with_device(1, function() return cuda.Stream() end)
      refused("cannot use a stream of another device", function()
        other:wait_stream(cuda.current_stream())
      end)
    end
    local e
    local g = capture(function() e = cuda.current_stream():record_event() end)
    fails("while a graph was captured", e.synchronize, e)
    fails("while a graph was captured", side.wait_event, side, e)
    g:replay()
    e:record()
    e:synchronize()
    assert.is_true(e:query())
  end)

  it("refuses what a replay could not repeat", function()
    local generator = lt.Generator():manual_seed(3)
    local noise, square = lt.zeros{3, device = "cuda"}, lt.eye(3):to "cuda"
    refused("cannot draw from a Generator", function() noise:normal_(0, 1, generator) end)
    refused("cannot run a Fourier transform", function(x) return lt.fft.fft(x) end)
    refused({"cannot decompose or solve matrices"}, function() return lt.linalg.inv(square) end)
    local p = lt.ones{3, device = "cuda", requires_grad = true}
    p.grad = lt.ones_like(p)
    local adam = optim.AdamW({p})
    adam:step()
    refused({"AdamW: step", "cannot capture", "g:replay()"}, function() adam:step() end, false)
    local sgd = optim.SGD({p}, {lr = 0.1, momentum = 0.9})
    refused({"SGD: step", "state", "before the capture"}, function() sgd:step() end, false)
    assert.is_nil(next(sgd.state))
    local rms = optim.RMSprop({p})
    rms:step()
    local before = p:clone()
    local g = capture(function() rms:step() end)
    assert.is_true(lt.equal(before, p))
    g:replay()
    assert.is_false(lt.equal(before, p))
  end)

  it("ends with an error of its function", function()
    local x = on_device{1, 2, 3}
    local g = cuda.CUDAGraph()
    fails("my error", cuda.graph, g, function()
      x:add_(1)
      error "my error"
    end)
    assert.is_false(cuda.is_current_stream_capturing())
    assert.same({1, 2, 3}, values(x))
    local ok, message = pcall(cuda.graph, g, function() error({code = 7}) end)
    assert.is_false(ok)
    assert.equal(7, message.code)
    fails("expected a graph that was captured", g.replay, g)
  end)

  it("is reported by is_current_stream_capturing", function()
    assert.is_false(cuda.is_current_stream_capturing())
    local g, inside, outside = capture(function()
      return cuda.is_current_stream_capturing(),
        cuda.with_stream(cuda.default_stream(), cuda.is_current_stream_capturing)
    end)
    assert.is_true(inside)
    assert.is_false(outside)
    assert.equal("CUDAGraph(captured)", tostring(g))
  end)

  it("can begin and end without a function", function()
    local x = on_device{1, 2, 3}
    local g, y = cuda.CUDAGraph(), nil
    cuda.with_stream(cuda.Stream(), function()
      cuda.synchronize()
      g:capture_begin()
      assert.equal("CUDAGraph(capturing)", tostring(g))
      y = x + 1
      fails("has not ended", g.replay, g)
      g:capture_end()
    end)
    g:replay()
    assert.same({2, 3, 4}, values(y))
    fails("expected a graph whose capture is underway", g.capture_end, g)
    do
      local h <close> = cuda.CUDAGraph()
      cuda.with_stream(cuda.Stream(), function() h:capture_begin() end)
    end
    assert.same({5, 6, 7}, values(x + 4))
  end)

  it("checks its arguments", function()
    local g = cuda.CUDAGraph()
    fails("expected a CUDAGraph for argument 'cuda_graph', got nil", cuda.graph, nil, print)
    fails("expected a function for argument 'f', got nil", cuda.graph, g, {})
    fails("'options'", cuda.graph, g, 3, print)
    fails("expected an argument name", cuda.graph, g, {pol = 1}, print)
    fails("argument 'pool'", cuda.graph, g, {pool = "x"}, print)
    fails("argument 'pool'", cuda.graph, g, {pool = -1}, print)
    fails("expected a Stream", cuda.graph, g, {stream = 3}, print)
    fails("cannot capture the default stream", cuda.graph, g, {stream = cuda.default_stream()},
      print)
    fails("cannot capture the default stream", g.capture_begin, g)
    fails("expected a graph that was captured", g.replay, g)
    fails("expected a graph that was captured", g.pool, g)
    fails("argument 'self'", g.replay, 3)
    g:reset()
    g = capture(function() end)
    fails("captured already", cuda.graph, g, function() end)
    g:reset()
    cuda.graph(g, function() end)
    g:replay()
    fails("another graph is being captured", capture, function() capture(print) end)
    fails("cannot replay a graph", capture, function() g:replay() end)
    assert.is_nil(rawget(g, "nothing"))
  end)

  it("is of the current device", function()
    if not two then return pending "one device" end
    local x = lt.tensor({1, 2, 3}, {device = "cuda:1"})
    local g = cuda.CUDAGraph()
    local y = cuda.with_device(1, function()
      return cuda.graph(g, function()
        assert.equal(1, cuda.current_device())
        return x * 2
      end)
    end)
    g:replay() -- on the current stream of cuda:1
    assert.same({2, 4, 6}, values(y))
    assert.equal(0, cuda.current_device())
  end)
end)

local it = devices.faulty_it(_ENV)

-- Trains with a graph in a process of its own, whatever fails; returns its number of captures that
-- succeeded, its last loss and its errors.
local PROGRAM = [[
  local lt = require "lutra"
  local nn, F, optim = lt.nn, lt.F, lt.optim
  lt.manual_seed(1)
  local errors = {}
  local function try(f, ...)
    local ok, result = pcall(f, ...)
    if not ok then errors[#errors + 1] = tostring(result) end
    return ok and (result == nil or result)
  end
  local X, Y = lt.randn(64, 8), lt.randint(1, 4, {64})
  local net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
  local ready = try(net.to, net, "cuda") or try(net.to, net, "cuda")
  local opt = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
  local captures, last = 0, nil
  for _ = 1, ready and 4 or 0 do
    local x, y = try(X.to, X, "cuda"), try(Y.to, Y, "cuda")
    local function step()
      opt:zero_grad()
      local loss = F.cross_entropy(net(x), y)
      loss:backward()
      opt:step()
      return loss
    end
    if try(step) then
      local g = lt.cuda.CUDAGraph()
      local loss = try(lt.cuda.graph, g, step)
      assert(not try(lt.cuda.is_current_stream_capturing) or #errors > 0)
      if loss then
        captures = captures + 1
        for _ = 1, 3 do try(g.replay, g) end
        last = try(loss.item, loss)
      end
      try(g.reset, g)
    end
  end
  pcall(lt.cuda.synchronize)
  collectgarbage()
  collectgarbage()
  assert(lt.ones(3):sum():item() == 3) -- the CPU does not mind
  io.write(captures, " captures, loss ", tostring(last), "\n", table.concat(errors, "\n"), "\n")
]]

local function train(...)
  local settings = {...}
  local result = devices.script(PROGRAM, ...)
  local what = table.concat(settings, " ")
  assert.equal(0, result.status, what .. ": status " .. tostring(result.status) .. "\n"
    .. result.out .. result.err)
  local captures, loss, errors = result.out:match "^(%d+) captures, loss (%S+)\n(.*)$"
  assert.is_string(captures, what .. ": " .. result.out .. result.err)
  return tonumber(captures), loss, errors, what
end

describe("a program with graphs", function()
  local loss

  it("computes the same in strict mode, in reverse order, with delays", function()
    local captures, errors
    captures, loss, errors = train "LUTRA_EMULATE_FAULT="
    assert.equal(4, captures, errors)
    assert.equal("\n", errors)
    for _, setting in ipairs {"LUTRA_EMULATE_STRICT=1", "LUTRA_EMULATE_ORDER=reverse",
      "LUTRA_EMULATE_DELAY=100", "LUTRA_EMULATE_POISON=1", "CUDA_LAUNCH_BLOCKING=1",
      "LUTRA_MEMORY_DEBUG=1"} do
      local n, same, messages = train(setting)
      assert.equal(4, n, setting .. messages)
      assert.equal("\n", messages, setting)
      assert.equal(loss, same, setting)
    end
  end)

  -- One failure: at most that capture is lost, and the next one works.
  for _, kind in ipairs {"graph", "oom", "event", "stream", "host", "blas"} do
    it("survives a failure of: " .. kind, function()
      for _, n in ipairs {1, 2, 3, 4, 5, 6, 9, 14} do
        local captures, _, errors, what = train("LUTRA_EMULATE_FAULT=" .. kind .. "@" .. n)
        assert.is_true(captures >= 3, what .. ": " .. captures .. " captures\n" .. errors)
        assert.is_falsy(errors:find "until the program restarts", what .. "\n" .. errors)
      end
    end)
  end

  -- Code that is loaded at a launch: its second try succeeds, also in a capture.
  it("is not affected by a launch that failed because memory ran out", function()
    for _, n in ipairs {1, 5, 30, 40, 60, 100} do
      local captures, same, errors, what = train("LUTRA_EMULATE_FAULT=load@" .. n)
      assert.equal(4, captures, what .. errors)
      assert.equal("\n", errors, what)
      assert.equal(loss, same, what)
    end
  end)

  -- Failures after which the device may be lost, in the capture or in a replay.
  for _, kind in ipairs {"launch", "illegal", "copy", "sync"} do
    it("survives the loss of its device: " .. kind, function()
      for _, n in ipairs {1, 4, 20, 40, 60, 80} do
        local captures, _, errors, what = train("LUTRA_EMULATE_FAULT=" .. kind .. "@" .. n)
        if captures < 3 then
          assert.is_truthy(errors:find "CUDA error %d+", what .. "\n" .. errors)
        end
      end
    end)
  end
end)
