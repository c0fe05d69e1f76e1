-- The counters of host memory, and its cache of freed blocks.
local lt = require "lutra"
local accelerator = lt.accelerator

local n = 1 << 20 -- elements: 4 MiB, a class of the cache

describe("the counters of host memory", function()
  before_each(function()
    collectgarbage()
    collectgarbage()
  end)

  it("follow tensors", function()
    local before = accelerator.memory_allocated "cpu"
    accelerator.reset_peak_memory_stats "cpu"
    local x = lt.ones(n)
    assert.equal(before + 4 * n, accelerator.memory_allocated "cpu")
    assert.equal(before + 4 * n, accelerator.memory_stats "cpu"["allocated_bytes.all.current"])
    assert.is_true(accelerator.memory_reserved "cpu" >= before + 4 * n)
    x:free()
    assert.equal(before, accelerator.memory_allocated "cpu")
    assert.equal(before + 4 * n, accelerator.max_memory_allocated {device = "cpu"})
    assert.is_true(accelerator.max_memory_reserved "cpu" >= before + 4 * n)
    accelerator.reset_peak_memory_stats "cpu"
    assert.equal(before, accelerator.max_memory_allocated "cpu")
  end)

  it("include the cache until it is emptied", function()
    lt.ones(n):free()
    accelerator.empty_cache "cpu"
    assert.equal(accelerator.memory_allocated "cpu", accelerator.memory_reserved "cpu")
    local requests = accelerator.memory_stats "cpu".num_device_alloc
    for _ = 1, 10 do lt.ones(n):free() end
    local cached = accelerator.memory_reserved "cpu" - accelerator.memory_allocated "cpu"
    requests = accelerator.memory_stats "cpu".num_device_alloc - requests
    if lt.info().build == "debug" then -- blocks are not cached under sanitizers
      assert.same({0, 10}, {cached, requests})
    else
      assert.same({4 * n, 1}, {cached, requests})
    end
    accelerator.empty_cache "cpu"
    assert.equal(accelerator.memory_allocated "cpu", accelerator.memory_reserved "cpu")
  end)

  it("exist as a summary, with the memory of the machine", function()
    assert.matches("Memory of cpu", accelerator.memory_summary "cpu", 1, true)
    local free, total = accelerator.get_memory_info "cpu"
    assert.is_true(total > 0 and free <= total)
  end)
end)
