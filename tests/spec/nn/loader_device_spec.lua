-- DataLoader{pin_memory, device}: the same batches as without, copied ahead on a stream of its
-- own, whole when they are used and kept as long as they are.

local devices = require "device_support"
if devices.elsewhere("nn/loader_device", _ENV) then return end

local lt = require "lutra"

local data, cuda = lt.data, lt.cuda
local fails = devices.fails

-- Sample i is {i, -i} and i * i; counts how often it was asked.
local Counted = data.Dataset:extend "Counted"
function Counted:init(n) self.n, self.asked = n, 0 end
function Counted:__len() return self.n end
function Counted:get(i)
  self.asked = self.asked + 1
  if self.bad == i then error "a bad sample" end
  return lt.tensor {i, -i}, i * i
end

local function all(loader)
  local list = {}
  for x, y in loader:iter() do list[#list + 1] = {x, y} end
  return list
end

describe("a loader with a device", function()
  it("gives the same batches, there", function()
    local x = lt.arange(50):reshape(25, 2)
    local y = lt.arange(25)
    for _, set in ipairs {data.TensorDataset(x, y), Counted(25)} do
      for _, options in ipairs {{batch_size = 4}, {batch_size = 4, drop_last = true},
        {batch_size = 25}, {batch_size = 100}, {}, {batch_size = 3, pin_memory = true}} do
        local here = all(data.DataLoader(set, options))
        options.device = "cuda"
        local there = all(data.DataLoader(set, options))
        assert.equal(#here, #there)
        for i, batch in ipairs(there) do
          for k = 1, 2 do
            assert.equal("cuda:0", batch[k].device)
            assert.is_true(lt.equal(here[i][k], batch[k]:cpu()))
          end
        end
      end
    end
  end)

  it("shuffles as the same loader does without one", function()
    local set = Counted(20)
    local function order(device)
      local g = lt.Generator(5)
      local loader = data.DataLoader(set, {batch_size = 3, shuffle = true, generator = g,
        device = device})
      local list = {}
      for _, y in loader:iter() do list[#list + 1] = tostring(y:cpu()) end
      return list
    end
    assert.same(order(), order "cuda")
  end)

  it("keeps one batch ahead", function()
    local set = Counted(12)
    local loader = data.DataLoader(set, {batch_size = 3, device = 0})
    local next_batch = loader:iter()
    assert.equal(0, set.asked)
    local asked = {}
    while next_batch() do asked[#asked + 1] = set.asked end
    assert.same({6, 9, 12, 12}, asked)
    assert.is_nil(next_batch())
    local stop = loader:iter() -- left in the middle
    stop()
    stop = nil -- luacheck: ignore
    collectgarbage()
    assert.equal(4, #all(loader))
  end)

  it("copies on a stream of its own", function()
    local set = data.TensorDataset(lt.arange(8), lt.arange(8))
    local streams, current = {}, cuda.current_stream
    local collate = function(samples)
      streams[#streams + 1] = current()
      local x = lt.tensor(samples[1][1]:item())
      return x
    end
    for x in data.DataLoader(set, {collate_fn = collate, device = "cuda"}):iter() do
      assert.is_true(cuda.current_stream() == cuda.default_stream())
      assert.equal("cuda:0", x.device)
    end
    for _, s in ipairs(streams) do assert.is_true(s == cuda.default_stream()) end
  end)

  it("takes nested values, and those that are there already", function()
    local set = Counted(4)
    local loader = data.DataLoader(set, {batch_size = 2, device = "cuda",
      collate_fn = function(samples)
        return {x = lt.ones(2), deep = {lt.ones{2, device = "cuda"}}, n = #samples}, "text"
      end})
    for batch, text in loader:iter() do
      assert.same({"cuda:0", "cuda:0", 2, "text"},
        {batch.x.device, batch.deep[1].device, batch.n, text})
    end
  end)

  it("raises an error when its batch is read, and continues", function()
    local set = Counted(9)
    set.bad = 5
    local next_batch = data.DataLoader(set, {batch_size = 3, device = "cuda"}):iter()
    assert.same({1, 4, 9}, {select(2, next_batch()):cpu():totable()[1],
      4, 9})
    local ok, message = pcall(next_batch)
    assert.is_false(ok)
    assert.is_truthy(message:find("a bad sample", 1, true))
    local _, y = next_batch()
    assert.same({49, 64, 81}, y:cpu():totable())
    assert.is_nil(next_batch())
  end)

  it("refuses devices that there are not", function()
    local set = Counted(2)
    fails("cuda:9", function() local _ = data.DataLoader(set, {device = "cuda:9"}) end)
    fails("a device", function() local _ = data.DataLoader(set, {device = {}}) end)
    fails("expected a boolean for argument 'pin_memory', got 1",
      function() local _ = data.DataLoader(set, {pin_memory = 1}) end)
    assert.equal("cpu", (data.DataLoader(set, {device = "cpu"}):iter()()).device)
    assert.equal("meta", (data.DataLoader(set, {device = "meta"}):iter()()).device)
    if cuda.device_count() < 2 then return pending "one device" end
    assert.equal("cuda:1", (data.DataLoader(set, {device = 1}):iter()()).device)
    assert.equal(0, cuda.current_device())
  end)
end)

describe("a loader that pins", function()
  it("gives batches in pinned memory", function()
    local set = data.TensorDataset(lt.arange(8), lt.arange(8))
    for x, y in data.DataLoader(set, {batch_size = 3, pin_memory = true}):iter() do
      assert.is_true(x:is_pinned() and y:is_pinned())
      local there = x:to{"cuda", non_blocking = true}
      assert.is_true(lt.equal(x, there:cpu()))
    end
    for x in data.DataLoader(set, {batch_size = 3}):iter() do assert.is_false(x:is_pinned()) end
  end)

  it("does not where there is no accelerator", function()
    local result = devices.script([[local lt = require "lutra"
      local set = lt.data.TensorDataset(lt.arange(8), lt.arange(8))
      for x in lt.data.DataLoader(set, {batch_size = 3, pin_memory = true}):iter() do
        assert(not x:is_pinned())
      end]], "-u LUTRA_EMULATE CUDA_VISIBLE_DEVICES=")
    assert.equal(0, result.status, result.err)
  end)
end)

describe("batches that were copied ahead", function()
  it("are whole when they are used, and their memory is not taken too early", function()
    local script = [[local lt = require "lutra"
      local n, wide = 40, 5000
      local X = lt.arange(n):reshape(n, 1):to "float32":expand(n, wide):contiguous()
      local loader = lt.data.DataLoader(lt.data.TensorDataset(X, lt.arange(n)),
        {batch_size = 2, device = "cuda", pin_memory = true})
      local streams = {lt.cuda.default_stream(), lt.cuda.Stream()}
      for round, stream in ipairs(streams) do
        lt.cuda.with_stream(stream, function()
          local sums, first = {}, 1
          for x, y in loader:iter() do
            local total = x:mean(2) * 1 -- used, then dropped while work may still be queued
            x:free()
            sums[#sums + 1] = {total, y, first}
            first = first + 2
          end
          for _, s in ipairs(sums) do
            local got, labels = s[1]:cpu():totable(), s[2]:cpu():totable()
            for i = 0, 1 do
              assert(math.abs(got[i + 1] - (s[3] + i)) < 1e-3, round)
              assert(labels[i + 1] == s[3] + i)
            end
          end
        end)
      end
      lt.cuda.synchronize()]]
    for _, environment in ipairs {"LUTRA_EMULATE_DELAY=300", "LUTRA_EMULATE_STRICT=1",
      "LUTRA_EMULATE=cuda:1,memory=8MiB"} do
      local result = devices.script(script, environment)
      assert.equal(0, result.status, environment .. "\n" .. result.err)
    end
  end)
end)

describe("a set that lives on the device", function()
  it("is sent the positions of a batch once, whatever the number of its tensors", function()
    local x, y = lt.arange(12):to "cuda", lt.arange(12):to "cuda"
    local loader = data.DataLoader(data.TensorDataset(x, y, y), {batch_size = 4})
    local copies, rows = 0, {}
    local profile = lt.profiler.profile(function()
      for a, b, c in loader:iter() do rows[#rows + 1] = {a, b, c} end
    end)
    for event in profile:events() do copies = copies + (event.kind == "copy" and 1 or 0) end
    assert.equal(3, copies)
    for i, row in ipairs(rows) do
      for k = 1, 3 do assert.is_true(lt.equal(lt.arange(4 * i - 3, 4 * i), row[k]:cpu())) end
    end
  end)

  it("may have its tensors on different devices", function()
    local set = data.TensorDataset(lt.arange(6):to "cuda", lt.arange(6), lt.arange(6):to "cuda")
    for a, b, c in data.DataLoader(set, {batch_size = 6}):iter() do
      assert.same({"cuda:0", "cpu", "cuda:0"}, {a.device, b.device, c.device})
      assert.is_true(lt.equal(b, a:cpu()) and lt.equal(b, c:cpu()))
    end
  end)
end)

describe("a progress bar", function()
  it("shows a loss on the device without synchronizing", function()
    local text, now = "", 0
    local file = {flush = function() end}
    function file.write(_, ...) text = text .. table.concat({...}) end
    local bar = lt.progress{total = 4, file = file, disable = false, ascii = true,
      clock = function() return now end}
    local loss = lt.tensor(0.25):to "cuda"
    local profile = lt.profiler.profile(function()
      for i = 1, 3 do
        bar:set_postfix{loss = loss}
        now = i
        bar:update(1)
      end
    end)
    local copies = 0
    for event in profile:events() do
      if event.kind == "copy" then
        copies = copies + 1
        assert.is_false(event.blocking)
      end
      -- a copy that is done is read after its event
      assert.is_true(event.kind ~= "wait" or event.name == "copy", event.name)
    end
    assert.is_true(copies > 0)
    cuda.synchronize()
    now = 4
    bar:update(1)
    assert.is_truthy(text:find("loss=0.25]", 1, true), text)
    loss:fill_(0.5)
    bar:close() -- shows the last values
    assert.is_truthy(text:find("loss=0.5]", 1, true), text)
  end)
end)
