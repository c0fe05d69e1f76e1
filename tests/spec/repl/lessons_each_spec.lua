-- Each of the lessons that come with Lutra: what it starts with fails; what is right passes, in
-- whatever style; what is wrong, or only looks right, fails, with a message about what was seen.

local lessons = require "lessons_support"
local support = require "program_support"
local has = lessons.has

-- What should not pass and what is said of it; places are written as "cell[N]:1".
local tries = {}

tries["01_place_it"] = {
  right = {
    "function place() return lt.with_device('cuda', lt.zeros, 1000, 1000) end",
    "place = function() lt.set_default_device 'cuda:0' return lt.zeros(1000, 1000) end",
    "function place() return lt.empty{1000, 1000, device = 'cuda:0'}:zero_() end",
    "local function place() return lt.zeros{1, device = lt.best_device()}:expand(1000, 1000) end",
  },
  wrong = {
    {"function place() return lt.zeros(1000, 1000):to 'cuda:0' end",
      "made on another device and copied: 1 copy, 3.8 MiB, at cell[N]:1"},
    {"function place() return lt.zeros{1000, 1000, device = 'cuda:1'} end",
      "expected a tensor on cuda:0 from place(), got one on cuda:1"},
    {"function place() return lt.zeros{10, device = 'cuda:0'} end",
      "expected shape {1000, 1000} from place(), got {10}"},
    {"function place() lt.zeros{1000, 1000, device = 'cuda:0'} end",
      "expected a tensor from place(), got nothing; is a return missing?"},
    {"function place() return lt.ones{1000, 1000, device = 'cuda:0'} end",
      "expected only zeros"},
    {"kept = lt.zeros(1000, 1000):to 'cuda:0' function place() return kept end",
      "it existed before the call of place()"},
    {"function place() return lt.zeros{1 << 20, 1 << 20, device = 'cuda:0'} end",
      "the code failed: cell[N]:1: zeros: out of memory on \"cuda:0\""},
  },
}

tries["02_fix_the_mismatch"] = {
  right = {
    "function predict(x, w) return x:matmul(w:to(x.device)) + lt.ones(4):to(x.device) end",
    "predict = function(x, w) return lt.matmul(x, w:to(x)):add_(1) end",
    "function predict(x, w) return lt.with_device(x.device, function() "
      .. "return F.linear(x, w:to(x.device):t(), lt.ones(4)) end) end",
  },
  wrong = {
    {"function predict(x, w) return x:cpu():matmul(w) + lt.ones(4) end",
      "expected a result on cuda:0, as x, got one on cpu"},
    {"function predict(x, w) return x:to'cuda:0':matmul(w:to'cuda:0') + "
      .. "lt.ones{4, device = 'cuda:0'} end",
        "expected a result on cuda:1, as x, got one on cuda:0"},
    {"function predict(x, w) return (x:cpu():matmul(w) + lt.ones(4)):to(x.device) end",
      "copied away from cuda:0 (1 copy), at cell[N]:1"},
    {"function predict(x, w) return lt.full({2, 4}, 4.0):to(x.device) end",
      "not the matrix product of x and w, plus 1: got shape {2, 4} and first element 4.0000"},
    {"function predict(x, w) return x:sum() end", "got shape {} and"},
    {"function predict(x, w) return x:matmul(w) end",
      "the code failed: with x on cuda:0: cell[N]:1"},
  },
}

tries["03_count_the_transfers"] = {
  right = {"prediction.out, prediction.home = 2, 3", "local prediction = {home = 3.0, out = 2}"},
  wrong = {
    {"prediction = {out = 1, home = 3}",
      "you predict 1 out to the GPU; the trace has more: number 2 is at lesson 3:5"},
    {"prediction = {out = 2, home = 1}",
      "2 out is right; but you predict 1 home to the host; the trace has more: number 2 is at"},
    {"prediction = {out = 5, home = 7}", "you predict 5 out to the GPU; the trace has fewer"},
    {"prediction = {out = -1, home = 3}",
      "expected prediction = {out = 5, home = 7} with two numbers"},
    {"prediction = 5", "expected prediction = {out = 5, home = 7} with two numbers"},
  },
}

tries["04_out_of_the_loop"] = {
  right = {
    "function total(model, batches) return model(lt.cat(batches)):sum():item() end",
    "function total(m, b) local l = {} for i, x in ipairs(b) do l[i] = m(x):sum() end "
      .. "return lt.stack(l):sum():item() end",
    "function total(m, b) local s = lt.zeros{1, device = 'cuda:0'} lt.no_grad(function() "
      .. "for _, x in ipairs(b) do s:add_(m(x):sum()) end end) return s:item() end",
  },
  wrong = {
    {"function total(m, b) local l = {} for i, x in ipairs(b) do l[i] = m(x):sum():cpu() end "
      .. "return lt.stack(l):sum():item() end",
      "the host was blocked by the GPU 10 times, at cell[N]:1 (10 times)"},
    {"function total(m, b) m:cpu() local s = 0 for _, x in ipairs(b) do s = s + m(x:cpu()):sum() "
      .. "end return s:item() end", "the host was blocked by the GPU 12 times"},
    {"function total(m, b) return m(lt.cat(b)):sum() end",
      "expected a number from total(model, batches), got a tensor"},
    {"function total(m, b) return m(b[1]):sum():item() end", "expected the sum over all batches, "},
    {"function total() return 0 / 0 end", "expected the sum over all batches, "},
  },
}

tries["05_fit_in_memory"] = {
  right = {
    "function energy(x) local h = x:to 'cuda:0' return 9 * lt.dot(h, h):item() end",
    "function energy(x) local s = 0 for _, p in ipairs(x:split(1 << 21)) do "
      .. "s = s + (p:to 'cuda:0' * 3):square():sum() end return s:item() end",
  },
  wrong = {
    {"function energy(x) x:mul_(3) x:mul_(x) return x:to 'cuda:0':sum():item() end",
      "x itself was changed"},
    {"function energy(x) return 9 * lt.dot(x, x):item() end",
      "only 0 B of 96 MiB were copied to cuda:0"},
    {"function energy(x) x:to 'cuda:0' return 9 * lt.dot(x, x):item() end",
      "nothing was computed there"},
    {"function energy(x) x:to 'cuda:0':neg_() return (x * 3):square():sum():item() end",
      "large tensors were computed on the CPU, at cell[N]:1"},
    {"function energy(x) x:to 'cuda:0' return 0 / 0 end", "expected the sum of (3 * x)^2, "},
  },
}

tries["06_overlap"] = {
  right = {
    -- the computing on a stream of its own, and the copies on the usual one
    "function run(m, b) local c, r = lt.cuda.Stream(0), {} for i, x in ipairs(b) do "
      .. "local t = x:pin_memory():to{'cuda:0', non_blocking = true} "
      .. "c:wait_event(lt.cuda.current_stream(0):record_event()) "
      .. "lt.cuda.with_stream(c, function() r[i] = m(t) t:record_stream(c) end) end return r end",
    -- what the model reads is kept without record_stream
    "function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "for i, x in ipairs(b) do local p = x:pin_memory() "
      .. "local t = lt.cuda.with_stream(c, function() return p:to{'cuda:0', non_blocking = true} "
      .. "end) here:wait_stream(c) r[i] = m(t) end return r end",
    -- it waits both ways
    "function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "for i, x in ipairs(b) do local p = x:pin_memory() "
      .. "local t = lt.cuda.with_stream(c, function() return p:to{'cuda:0', non_blocking = true} "
      .. "end) here:wait_stream(c) r[i] = m(t) c:wait_stream(here) end return r end",
    -- one copy of all batches
    "function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "local all = lt.cat(b):pin_memory() local t = lt.cuda.with_stream(c, function() "
      .. "return all:to{'cuda:0', non_blocking = true} end) here:wait_stream(c) "
      .. "t:record_stream(here) for i, x in ipairs(t:chunk(4)) do r[i] = m(x) end return r end",
    "function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "for i, x in ipairs(b) do lt.cuda.set_stream(c) "
      .. "local t = x:pin_memory():to{'cuda:0', non_blocking = true} lt.cuda.set_stream(here) "
      .. "here:wait_stream(c) t:record_stream(here) r[i] = m(t) end return r end",
  },
  wrong = {
    {"function run(m, b) local r = {} for i, x in ipairs(b) do "
      .. "r[i] = m(x:to{'cuda:0', non_blocking = true}) end return r end",
      "4 copies from memory that is not pinned, at cell[N]:1 (4 times)"},
    {"function run(m, b) local r = {} for i, x in ipairs(b) do "
      .. "r[i] = m(x:pin_memory():to{'cuda:0', non_blocking = true}) end return r end",
      "the host is not blocked, but 4 copies are on the computing stream, at cell[N]:1 (4 times)"},
    {"function run(m, b) local c, r = lt.cuda.Stream(0), {} for i, x in ipairs(b) do "
      .. "local p = x:pin_memory() r[i] = m(lt.cuda.with_stream(c, function() "
      .. "return p:to{'cuda:0', non_blocking = true} end)) end return r end",
      "model(x) may start before batch 1 has arrived", "the computing stream does not wait"},
    {"function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "for i, x in ipairs(b) do here:wait_stream(c) local p = x:pin_memory() "
      .. "r[i] = m(lt.cuda.with_stream(c, function() "
      .. "return p:to{'cuda:0', non_blocking = true} end)) end return r end", -- too early
      "may start before batch 1 has arrived"},
    {"function run(m, b) local c, here, r = lt.cuda.Stream(0), lt.cuda.current_stream(0), {} "
      .. "for i, x in ipairs(b) do local p = b[1]:pin_memory() "
      .. "local t = lt.cuda.with_stream(c, function() return p:to{'cuda:0', non_blocking = true} "
      .. "end) here:wait_stream(c) t:record_stream(here) r[i] = m(t) end return r end",
      "result 2 is not model(x) of batch 2"},
    {"function run(m, b) m:cpu() local r = {} for i, x in ipairs(b) do r[i] = m(x):to 'cuda:0' end "
      .. "m:to 'cuda:0' return r end", "the model was run on the CPU 4 times, at cell[N]:1"},
    {"function run(m, b) return m(b[1]:to 'cuda:0') end",
      "expected a table of 4 results from run(model, batches), one for each batch, got a tensor"},
    {"function run(m, b) return b end", "expected result 1 on cuda:0, got it on cpu"},
  },
}

tries["07_pipeline"] = {
  right = {
    "function pipeline(a, b, x) local r = {} for i, p in ipairs(x:split(8)) do "
      .. "r[i] = b(a(p):to 'cuda:1') end return lt.cat(r) end",
    -- one piece is sent ahead
    "function pipeline(a, b, x) local r, sent = {}, nil for i, p in ipairs(x:chunk(4)) do "
      .. "local h = a(p):to 'cuda:1' if sent then r[#r + 1] = b(sent) end sent = h end "
      .. "r[#r + 1] = b(sent) return lt.cat(r) end",
    "function pipeline(a, b, x) local out = lt.empty{64, 8, device = 'cuda:1'} "
      .. "lt.no_grad(function() for i = 1, 49, 16 do local s = {i, i + 15} "
      .. "out[{s}] = b(a(x[{s}]):to{'cuda:1', non_blocking = true}) end end) return out end",
  },
  wrong = {
    {"function pipeline(a, b, x) return b(a(x):to 'cuda:1') end",
      "was copied to cuda:1 in 1 chunk, not in 4"},
    {"function pipeline(a, b, x) local h, r = {}, {} for i, p in ipairs(x:chunk(4)) do "
      .. "h[i] = a(p):to 'cuda:1' end for i, p in ipairs(h) do r[i] = b(p) end "
      .. "return lt.cat(r) end",
        "4 chunks were copied, but all work of cuda:1 was queued after the"},
    {"function pipeline(a, b, x) local r = {} for i, p in ipairs(x:chunk(4)) do "
      .. "r[i] = b(a(p):to 'cuda:1') lt.cuda.synchronize(1) end return lt.cat(r) end",
      "the host was blocked 4 times, at cell[N]:1 (4 times)"},
    {"function pipeline(a, b, x) a:to 'cuda:1' local r = {} for i, p in ipairs(x:chunk(4)) do "
      .. "r[i] = b(a(p:to 'cuda:1')) end return lt.cat(r) end",
      "the halves of the model are on cuda:1 and cuda:1 now"},
    {"function pipeline(a, b, x) return lt.zeros{64, 8, device = 'cuda:1'} end",
      "of shape {64, 8}, is not that of second(first(x))"},
    {"function pipeline(a, b, x) return a(x) end",
      "expected a result on cuda:1, got one on cuda:0"},
  },
}

tries["08_any_device"] = {
  right = {
    "function scale(x) return x * lt.arange{1, 3, dtype = x.dtype, device = x.device} end",
    "function scale(x) return x * lt.ones_like(x):cumsum(2) end",
    "function scale(x) local r = {} for i = 1, 3 do r[i] = x[{{}, i}] * i end "
      .. "return lt.stack(r, 2) end",
  },
  wrong = {
    {"function scale(x) return x * lt.tensor({1.0, 2, 3}, {device = lt.best_device()}) end",
      "the code failed: with x on cpu: cell[N]:1: mul: "},
    {"function scale(x) return (x:double() * lt.tensor({1, 2, 3}, {device = x.device})):float() "
      .. "end", "more than 4 bytes per element was made, such as float64, at cell[N]:1"},
    {"function scale(x) return (x:to 'cuda:0' * lt.tensor({1.0, 2, 3}, {device = 'cuda:0'}))"
      .. ":to(x.device) end", "x was on cpu, but another GPU was used"},
    {"function scale(x) return (x:cpu() * lt.tensor{1.0, 2, 3}):to(x.device) end",
      "x was on cuda:0, but 1 copy was made to another device, at cell[N]:1"},
    {"function scale(x) return lt.tensor{1.0, 2, 3}:expand(5, 3):to(x.device) end",
      "got 3.0000 as the last element of a row, expected"},
    {"function scale(x) return x:double() end",
      "expected a result of dtype float32, as x, got float64"},
  },
}

tries["09_meta"] = {
  right = {
    "function bytes_to_train(make) local n = 0 lt.with_device('meta', function() "
      .. "for p in make():parameters() do n = n + p:numel() end end) return 16 * n end",
    -- an optimizer that takes a step on meta, and what it keeps
    "function bytes_to_train(make) local m, n = lt.with_device('meta', make), 0 "
      .. "local o = optim.AdamW(m:parameters()) "
      .. "for p in m:parameters() do p.grad = lt.zeros_like(p) end o:step() "
      .. "for p in m:parameters() do n = n + p.nbytes + p.grad.nbytes "
      .. "for _, s in pairs(o.state[p]) do "
      .. "if lt.is_tensor(s) and s.ndim > 0 then n = n + s.nbytes end end end return n end",
    "bytes_to_train = function(make) lt.set_default_device 'meta' local n = 0 "
      .. "for _, p in make():named_parameters() do n = n + 4 * p.nbytes end return n end",
  },
  wrong = {
    {"function bytes_to_train(make) local n = 0 for p in lt.with_device('meta', make):parameters() "
      .. "do n = n + p.nbytes end return n end", "only the parameters of a small model"},
    {"function bytes_to_train(make) local n = 0 for p in make():parameters() "
      .. "do n = n + p.nbytes end return 4 * n end",
      "memory was allocated 4 times, at cell[N]:1 (4 times)"},
    {"function bytes_to_train(make) return 5 end", "got 5, expected four times the 3068 bytes"},
    {"function bytes_to_train(make) return 4 * 3068 end",
      "right for a small model; wrong for 40 layers of 16384 x 16384: 12272"},
  },
}

-- A training loop over b, the batches on the device; `after` is what follows each step.
local function train(after, ending)
  return "function train(model, batches, epochs) local b, total, losses = {}, 0, {} "
    .. "local o = optim.AdamW(model:parameters(), {lr = 0.05}) "
    .. "for i, v in ipairs(batches) do b[i] = {v[1]:to 'cuda:0', v[2]:to 'cuda:0'} end "
    .. "for _ = 1, epochs do for _, v in ipairs(b) do "
    .. "local loss = F.cross_entropy(model(v[1]), v[2]) o:zero_grad() loss:backward() o:step() "
    .. after .. " end end " .. ending .. " end"
end

tries["10_clean_lint"] = {
  right = {
    train("losses[#losses + 1] = loss:detach()", "return lt.stack(losses):mean():item()"),
    train("lt.no_grad(function() total = total + loss end)", "return (total / 15):item()"),
    "function train(model, batches, epochs) local o, total = optim.AdamW(model:parameters(), "
      .. "{lr = 0.05}), lt.zeros{1, device = 'cuda:0'} local xs, ys = {}, {} "
      .. "for i, v in ipairs(batches) do xs[i], ys[i] = table.unpack(v) end "
      .. "xs = lt.cat(xs):pin_memory():to{'cuda:0', non_blocking = true}:chunk(3) "
      .. "ys = lt.cat(ys):pin_memory():to{'cuda:0', non_blocking = true}:chunk(3) "
      .. "for _ = 1, epochs do for i, x in ipairs(xs) do "
      .. "local loss = F.cross_entropy(model(x), ys[i]) o:zero_grad() loss:backward() o:step() "
      .. "total:add_(loss:detach()) end end return total:item() / 15 end",
  },
  wrong = {
    {train("total = total + loss:item()", "return total / 15"),
      "the lint has 1 finding: cell[N]:1: T1: item reads one number from cuda:0 15 times"},
    {"function train() return 1 end", "expected the mean loss of the original loop, "},
    {train("total = total + loss:detach()", "lt.no_grad(function() model.weight:zero_() end) "
      .. "return total:item() / 15"), "the weight of the model is not that of the original loop"},
    {"function train() end", "expected a number from train(model, batches, epochs), got nothing"},
    {train("total = total + loss:detach()", "return total / 15"),
      "expected a number from train(model, batches, epochs), got a tensor"},
    {"function train(model, batches, epochs) model:cpu() local o, n = "
      .. "optim.AdamW(model:parameters(), {lr = 0.05}), 0 for _ = 1, epochs do "
      .. "for _, v in ipairs(batches) do local loss = F.cross_entropy(model(v[1]), v[2]) "
      .. "o:zero_grad() loss:backward() o:step() n = n + loss:item() end end "
      .. "model:to 'cuda:0' return n / 15 end",
      "the mean loss is right, but the model was trained on the CPU, at cell[N]:1 (30 times)"},
  },
}

local home
before_each(function() home = support.folder() end)
after_each(function() support.remove(home) end)

-- What :check says of each code, entered one after the other in lesson `number`; of the code that
-- the lesson starts with first.
local function verdicts(number, codes)
  local input = {":lesson " .. number, "print '<<'", ":check", "print '>>'"}
  for _, code in ipairs(codes) do
    table.move({code, "print '<<'", ":check", "print '>>'"}, 1, 4, #input + 1, input)
  end
  local result = lessons.session(home, table.concat(input, "\n") .. "\n")
  assert.equal("", result.err)
  local list = {}
  for text in result.out:gmatch "<<\n(.-)>>" do
    list[#list + 1] = text:gsub("cell%[%d+%]", "cell[N]")
  end
  assert.equal(#codes + 1, #list, result.out)
  return list
end

describe("lesson 05_fit_in_memory", function()
  it("measures the peak where there is memory for more", function()
    local said = lessons.session(home, ":lesson 5\n:check\n", "--emulate cuda:1,memory=1GiB -i")
    has(said.out, "not yet: the sum is right, but the peak was 288.0 MiB on cuda:0")
  end)
end)

for number, file in ipairs(lessons.files()) do
  local name = file:match "^(.*)%.lua$"
  describe("lesson " .. name, function()
    local lesson = dofile(lessons.root .. "lib/lutra/lessons/" .. file)

    it("begins with what fails, and passes what is right, however it is written", function()
      local codes = {lesson.solution, table.unpack(tries[name].right)}
      local said = verdicts(number, codes)
      has(said[1], "not yet: ")
      for i, code in ipairs(codes) do
        assert(said[i + 1]:find "%]> done: ", code .. "\n" .. said[i + 1])
      end
    end)

    it("fails what is wrong, and says what it saw", function()
      local codes = {}
      for i, try in ipairs(tries[name].wrong) do codes[i] = try[1] end
      local said = verdicts(number, codes)
      for i, try in ipairs(tries[name].wrong) do
        has(said[i + 1], "not yet: ", table.unpack(try, 2))
      end
    end)

    it("fits a terminal of 80 columns", function()
      for line in (lesson.text .. "\n" .. lesson.start):gmatch "[^\n]+" do
        local code = lesson.start:find(line, 1, true) or line:find "^ "
        assert(not code or #line <= 75, line)
      end
    end)
  end)
end
