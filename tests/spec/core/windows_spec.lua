-- Pools, unfold and fold, padding, interpolation and sampling: errors, edges, and gradients.

local lt = require "lutra"
local F = lt.nn.functional

local function message(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return (tostring(text):gsub("^[^ ]+:%d+: ", ""))
end

-- The error of f begins with the text.
local function fails(text, f, ...)
  local found = message(f, ...)
  assert.are.equal(text, found:sub(1, #text))
end

describe("pools", function()
  local x = lt.arange(16.):reshape(1, 1, 4, 4)

  it("adapt to even sizes as windows side by side", function()
    local y = lt.randn(2, 3, 12, 10)
    y[1][1][1][1] = 0 / 0
    local values, indices = F.adaptive_max_pool2d(y, {3, 5}, true)
    for c = 1, 3 do
      for i = 1, 3 do
        for j = 1, 5 do
          local window = y[2][c]:narrow(1, 4 * i - 3, 4):narrow(2, 2 * j - 1, 2)
          local value, at = window:contiguous():view(-1):max(1)
          local row, column = (at:item() - 1) // 2, (at:item() - 1) % 2
          assert.are.equal(value:item(), values[2][c][i][j]:item())
          assert.are.equal((4 * i - 4 + row) * 10 + 2 * j - 1 + column,
            indices[2][c][i][j]:item())
        end
      end
    end
    assert.is_true(values[1][1][1][1]:isnan():item())
    assert.are.equal(1, indices[1][1][1][1]:item())
  end)

  it("take the first of equal maxima and the last NaN of an adaptive window", function()
    local function check(sizes, out, dtype)
      local y = lt.randint(-3, 3, sizes):to(dtype)
      y:masked_fill_(lt.rand(sizes):lt(0.002), 0 / 0)
      local values, indices = F.adaptive_max_pool3d(y, out, true)
      local flat = y:flatten(2):tolist()
      local d, h, w = table.unpack(sizes, 2)
      local function span(o, n, size) return (o - 1) * size // n, (o * size - 1) // n end
      for c = 1, sizes[1] do
        for i = 1, out[1] do
          for j = 1, out[2] do
            for k = 1, out[3] do
              local best, at
              for a = span(i, out[1], d), select(2, span(i, out[1], d)) do
                for b = span(j, out[2], h), select(2, span(j, out[2], h)) do
                  for e = span(k, out[3], w), select(2, span(k, out[3], w)) do
                    local index = (a * h + b) * w + e + 1
                    local v = flat[c][index]
                    if not at or v > best or v ~= v then best, at = v, index end
                  end
                end
              end
              local value = values[c][i][j][k]:item()
              assert.is_true(value == best or value ~= value and best ~= best)
              assert.equal(at, indices[c][i][j][k]:item())
            end
          end
        end
      end
    end
    for _, dtype in ipairs{"float32", "float64"} do
      check({2, 1, 28, 28}, {1, 3, 3}, dtype)
      check({2, 3, 20, 90}, {1, 1, 1}, dtype)
      check({2, 3, 5, 90}, {2, 3, 7}, dtype)
      check({1, 1, 1, 5000}, {1, 1, 3}, dtype)
      check({1, 2, 3, 2100}, {1, 1, 2}, dtype)
      check({1, 1, 4, 64}, {1, 2, 2}, dtype)
    end
  end)

  it("check windows", function()
    fails("max_pool2d: expected at most half of the kernel's size for argument 'padding', got 2",
      F.max_pool2d, x, 2, 2, 2)
    fails("max_pool2d: cannot place a window of size 5: dim 3 of the input has 4 elements",
      F.max_pool2d, x, 5)
    fails("avg_pool2d: expected numbers of at least 1 for argument 'kernel_size', got 0",
      F.avg_pool2d, x, 0)
    fails("avg_pool2d: expected numbers of at least 1 for argument 'stride', got 0",
      F.avg_pool2d, x, 2, 0)
    fails("avg_pool2d: expected 1 or 2 numbers for argument 'kernel_size', got 3 numbers",
      F.avg_pool2d, x, {1, 2, 3})
    fails("avg_pool2d: expected a number other than 0 for argument 'divisor_override', got 0",
      F.avg_pool2d, x, 2, {divisor_override = 0})
    fails("max_pool1d: expected 2 or 3 dimensions for argument 'input', got shape {1, 1, 4, 4}",
      F.max_pool1d, x, 2)
    fails("max_pool2d: expected no empty dimension but the batch for argument 'input'",
      F.max_pool2d, lt.ones(2, 0, 4, 4), 2)
    fails("max_pool2d: expected a real dtype other than bool for argument 'input', got bool",
      F.max_pool2d, x:gt(3), 2)
    fails("adaptive_avg_pool2d: expected sizes from 0 on for argument 'output_size', got -1",
      F.adaptive_avg_pool2d, x, -1)
  end)

  it("keep the sizes that are false", function()
    assert.same({{{{4.5}, {12.5}}}}, F.adaptive_avg_pool2d(x, {2, 1}):totable()) -- x is 1 to 16
    assert.same(F.adaptive_avg_pool2d(x, {4, 2}):totable(),
      F.adaptive_avg_pool2d(x, {false, 2}):totable())
    assert.same(F.adaptive_max_pool2d(x, {1, 4}):totable(),
      F.adaptive_max_pool2d(x, {1, false}):totable())
    fails("adaptive_avg_pool2d: expected an integer or a list of 2 for argument 'output_size'",
      F.adaptive_avg_pool2d, x, {1, false, 2})
    fails("adaptive_max_pool2d: expected an integer for argument 'output_size[2]', got true",
      F.adaptive_max_pool2d, x, {1, true})
    fails("avg_pool2d: expected an integer for argument 'kernel_size[1]', got false",
      F.avg_pool2d, x, {false, 2})
  end)

  it("of powers count windows across the border as full ones", function()
    -- PyTorch's results
    assert.same({{3, 6}}, F.lp_pool1d(lt.tensor{{1., 2, 3}}, 1, 2, 2, true):totable())
    local y = F.lp_pool2d(lt.arange(0., 8):reshape(1, 3, 3), 2, 2, {ceil_mode = true})
    local want = lt.tensor{{{5.0990195, 7.6157731}, {13.0384048, 16}}}
    assert.is_true(y:allclose(want, 1e-6))
    assert.is_true(F.lp_pool1d(lt.tensor{{1., 2, 3, 4}}, 2, 2):allclose(
      lt.tensor{{5 ^ 0.5, 5}}, 1e-6))
  end)

  it("of powers have a gradient of 0 where a window holds zeros", function()
    local v = lt.tensor{{0., 0, 3, 4}}:requires_grad_()
    F.lp_pool1d(v, 2, 2):sum():backward()
    assert.is_true(v.grad:allclose(lt.tensor{{0, 0, 0.6, 0.8}}, 1e-6))
  end)

  it("accept empty batches", function()
    local y, i = F.max_pool2d(lt.ones(0, 2, 4, 4), 2, {return_indices = true})
    assert.are.equal("{0, 2, 2, 2}", tostring(y.shape))
    assert.are.equal("{0, 2, 2, 2}", tostring(i.shape))
  end)

  it("report the index of the last NaN, and the first index among -inf", function()
    local nan, inf = 0 / 0, math.huge
    local y, i = F.max_pool1d(lt.tensor{{1, nan, 3, nan, 0, -inf, -inf, -inf}}, 4, 4,
      {return_indices = true})
    assert.is_true(y[{1, 1}]:item() ~= y[{1, 1}]:item())
    assert.are.equal(4, i[{1, 1}]:item())
    assert.are.equal(0, y[{1, 2}]:item())
    y, i = F.max_pool1d(lt.full({1, 4}, -inf), 2, {return_indices = true})
    assert.are.equal(-inf, y[{1, 1}]:item())
    assert.are.same({{1, 3}}, i:totable())
  end)

  it("compute the same maxima with and without indices", function()
    for _, shape in ipairs{{2, 5, 37, 300}, {1, 5, 9, 7}} do
      local image = lt.randn(shape)
      for _, k in ipairs{{2, 2, 0, 1}, {3, 2, 1, 1}, {3, 1, 1, 2}, {3, 3, 0, 1}, {3, 1, 1, 1},
        {2, 1, 0, 1}, {2, 1, 1, 1}, {3, 2, 0, 1}, {3, 3, 1, 1}, {2, 2, 1, 1}, {4, 2, 2, 1}} do
        local with = F.max_pool2d(image, k[1], k[2], k[3], k[4], true, true)
        assert.is_true(lt.equal(with, F.max_pool2d(image, k[1], k[2], k[3], k[4], true)))
        with = F.max_pool3d(image, k[1], k[2], k[3], k[4], true, true)
        assert.is_true(lt.equal(with, F.max_pool3d(image, k[1], k[2], k[3], k[4], true)))
      end
    end
  end)

  it("of lines take the largest element of each window, or a NaN", function()
    local nan, inf = 0 / 0, math.huge
    -- The largest element of the window `o` of a row, counted from 0.
    local function largest(row, o, size, stride, padding)
      local first, best = o * stride - padding, -inf
      for i = math.max(first + 1, 1), math.min(first + size, #row) do
        if row[i] > best or row[i] ~= row[i] then best = row[i] end
      end
      return best
    end
    local function check(input, size, stride, padding, ceil)
      local rows = input:totable()
      local found = F.max_pool1d(input, size, stride, padding, 1, ceil):totable()
      for r, row in ipairs(rows) do
        local count = (#row + 2 * padding - size) / stride
        count = (ceil and math.ceil(count) or math.floor(count)) + 1
        if (count - 1) * stride >= #row + padding then count = count - 1 end
        assert.equal(count, #found[r])
        for o, value in ipairs(found[r]) do
          local best = largest(row, o - 1, size, stride, padding)
          assert.is_true(value == best or value ~= value and best ~= best)
        end
      end
    end
    for _, dtype in ipairs{"float32", "float64"} do
      for n = 4, 148, 9 do
        local input = lt.randn{3, n, dtype = dtype}
        input:masked_fill_(lt.rand(3, n):lt(0.05), nan):masked_fill_(lt.rand(3, n):lt(0.2), -inf)
        for _, size in ipairs{1, 2, 3, 4, 5, 8} do
          for _, stride in ipairs{1, 2, 3, 4, 8} do
            for padding = math.max(0, (size - n + 1) // 2), size // 2 do
              check(input, size, stride, padding, false)
              check(input, size, stride, padding, true)
            end
          end
        end
      end
    end
  end)

  -- The windows of a row of n elements: {first, last} of each, those of pairs and adaptive ones.
  local function spans_of(n, out)
    local spans = {}
    for o = 0, (out or n // 2) - 1 do
      spans[o + 1] = out and {o * n // out + 1, -(-(o + 1) * n // out)} or {2 * o + 1, 2 * o + 2}
    end
    return spans
  end

  -- Calls f with the elements of each window, in order; returns what f returns, as {rows, columns}.
  local function by_windows(rows, down, across, f)
    local out = {}
    for i, v in ipairs(down) do
      out[i] = {}
      for j, h in ipairs(across) do
        local elements = {}
        for a = v[1], v[2] do
          for b = h[1], h[2] do elements[#elements + 1] = rows[a][b] end
        end
        out[i][j] = f(elements)
      end
    end
    return out
  end

  local function sum_of(elements)
    local sum = 0.0
    for _, v in ipairs(elements) do sum = sum + v end
    return sum
  end

  local function mean_of(elements) return sum_of(elements) / #elements end

  local function max_of(elements) return math.max(table.unpack(elements)) end

  it("of squares, and adaptive ones, combine the elements in their order", function()
    for width = 2, 40 do
      for _, height in ipairs{2, 3, 5} do
        local image = lt.randn{2, 3, height, width, dtype = "float64"}
        local pairs_down, pairs_across = spans_of(height), spans_of(width)
        local out = {(height + 1) // 2, (2 * width + 2) // 3}
        local means, maxima = F.avg_pool2d(image, 2), F.max_pool2d(image, 2)
        local adaptive = F.adaptive_avg_pool2d(image, out)
        for n = 1, 2 do
          for c = 1, 3 do
            local rows = image[{n, c}]:totable()
            assert.same(by_windows(rows, pairs_down, pairs_across, mean_of),
              means[{n, c}]:totable())
            assert.same(by_windows(rows, pairs_down, pairs_across, max_of),
              maxima[{n, c}]:totable())
            assert.same(by_windows(rows, spans_of(height, out[1]), spans_of(width, out[2]),
              mean_of), adaptive[{n, c}]:totable())
          end
        end
      end
    end
  end)

  it("of any size are averaged in the order of their elements", function()
    -- The windows of a row of n elements, without the padding.
    local function windows(n, size, stride, padding)
      local spans = {}
      for first = 1 - padding, n + padding - size + 1, stride do
        spans[#spans + 1] = {math.max(first, 1), math.min(first + size - 1, n)}
      end
      return spans
    end
    for width = 4, 40, 3 do
      local image = lt.randn{6, width, dtype = "float64"}
      local rows = image:totable()
      for _, size in ipairs{3, 4, 5, 7, 9} do
        for stride = 1, 4 do
          for padding = math.max(0, (size - math.min(6, width) + 1) // 2), size // 2 do
            local found = F.avg_pool2d(image:unsqueeze(1), size, stride, padding):squeeze(1)
            local down = windows(6, size, stride, padding)
            local wanted = by_windows(rows, down, windows(width, size, stride, padding),
              function(elements) return sum_of(elements) / size ^ 2 end)
            assert.same(wanted, found:totable())
          end
        end
      end
    end
  end)

  it("average all of the input by one window", function()
    local planes = lt.randn{2, 3, 5, 4, dtype = "float64"}
    local sums = planes:reshape(2, 3, 20):sum(-1):reshape(2, 3, 1, 1)
    for _, options in ipairs{{}, {stride = 1}, {ceil_mode = true}, {count_include_pad = false}} do
      assert.is_true(lt.allclose(F.avg_pool2d(planes, {5, 4}, options), sums / 20, 1e-14, 1e-15))
    end
    assert.is_true(lt.allclose(F.avg_pool2d(planes, {5, 4}, {divisor_override = 7}), sums / 7,
      1e-14, 1e-15))
    assert.same({{{5.5}}}, F.avg_pool2d(lt.arange(2, 9):reshape(1, 2, 4):float(), {2, 4}):totable())
    assert.same({{{5}}}, F.avg_pool2d(lt.arange(2, 9):reshape(1, 2, 4), {2, 4}):totable())
    assert.same({{2.5}, {6.5}}, F.avg_pool1d(lt.arange(1, 8):reshape(2, 4):float(), 4):totable())
    assert.same({{{{4.5}}}}, F.avg_pool3d(lt.arange(1, 8):reshape(1, 2, 2, 2):float(), 2):totable())
    assert.same({{{1 / 0}}}, F.avg_pool2d(lt.full({1, 2, 2}, math.huge), 2):totable())
    assert.same({0, 1, 2, 2}, F.avg_pool2d(lt.zeros(0, 1, 2, 2), {1, 1}).shape)
    local one = lt.ones(2, 3, 5, 4):requires_grad_()
    F.avg_pool2d(one, {5, 4}):sum():backward()
    assert.is_true(lt.allclose(one.grad, lt.full({2, 3, 5, 4}, 0.05)))
  end)

  it("of squares keep NaN, and the mean of -0 is 0", function()
    for at = 1, 4 do
      for _, width in ipairs{2, 34} do
        local image = lt.ones(1, 2, width)
        image[{1, (at + 1) // 2, width - at % 2}] = 0 / 0
        local y = F.max_pool2d(image, 2)
        assert.is_true(y[{1, 1, -1}]:item() ~= y[{1, 1, -1}]:item())
      end
    end
    assert.are.equal(math.huge, 1 / F.avg_pool2d(-lt.zeros(1, 2, 2), 2):item())
  end)

  it("invert by max_unpool", function()
    local y, i = F.max_pool2d(x, 2, {return_indices = true})
    assert.are.equal(tostring(y), tostring(F.max_pool2d(F.max_unpool2d(y, i, 2), 2)))
    fails("max_unpool2d: expected a size between 3 and 5 for argument 'output_size', got 9",
      F.max_unpool2d, y, i, 2, {output_size = {9, 4}})
    fails("max_unpool2d: expected dtype int64 for argument 'indices', got float32",
      F.max_unpool2d, y, y, 2)
  end)
end)

describe("unfold and fold", function()
  it("check windows", function()
    fails("unfold: cannot place a window of size 5 with dilation 1 in 4 elements",
      F.unfold, lt.ones(1, 1, 4, 4), 5)
    fails("fold: expected a multiple of the kernel's 4 elements in dim 2", F.fold,
      lt.ones(1, 3, 4), 3, 2)
    fails("fold: expected 4 columns in dim 3", F.fold, lt.ones(1, 4, 5), 3, 2)
  end)
end)

describe("padding and interpolation", function()
  it("removes more elements from one side than there are", function()
    local x = lt.tensor{1., 2, 3}
    assert.same({7, 7}, F.pad(x, {-5, 4}, "constant", 7):totable())
    assert.same({7}, F.pad(x, {6, -8}, "constant", 7):totable())
    assert.same({2, 3, 0}, F.pad(x, {-1, 1}):totable())
    assert.same({{1, 2}}, F.pad(lt.tensor{{1., 2, 3}, {4, 5, 6}}, {0, -1, 0, -1}):totable())
    assert.same({}, F.pad(x, {-3, 0}):totable())
    local y = lt.ones(0):requires_grad_()
    F.pad(y, {1, 1}):sum():backward()
    assert.same({}, y.grad:totable())
  end)

  it("check their arguments", function()
    local x = lt.ones(1, 1, 4)
    fails("pad: expected at most 3 for mode 'reflect' in dim 3, of 4 elements", F.pad, x, {4, 0},
      "reflect")
    fails("pad: expected two numbers for each dim to pad", F.pad, x, {1, 2, 3})
    assert.matches("for argument 'pad', got 1 number$", select(2, pcall(F.pad, x, 1)))
    fails("pad: cannot pad dim 3, of 4 elements, by -3 and -2: the result has a negative size",
      F.pad, x, {-3, -2})
    fails("pad: cannot pad dim 3, of 4 elements, by 9223372036854775807 and 0: the result is too "
      .. "large", F.pad, x, {math.maxinteger, 0})
    fails("pad: cannot convert the number 300 to \"uint8\": it does not fit", F.pad, x:to "uint8",
      {1, 1}, "constant", 300)
    fails("interpolate: expected either argument 'size' or argument 'scale_factor', got neither",
      F.interpolate, x)
    fails("interpolate: expected 4 dimensions for argument 'input' with mode 'bilinear'",
      F.interpolate, x, 3, nil, "bilinear")
    fails("interpolate: expected no argument 'align_corners' with mode 'nearest'", F.interpolate, x,
      3, nil, "nearest", true)
    fails("grid_sample: expected {1, sizes, 2} with 2 sizes for argument 'grid'", F.grid_sample,
      lt.ones(1, 1, 2, 2), lt.ones(1, 2, 2, 3))
    fails("pixel_shuffle: expected {..., channels, H, W} with a multiple of 4 channels",
      lt.pixel_shuffle, lt.ones(1, 3, 2, 2), 2)
  end)
end)

describe("padding", function()
  -- The element, from 0, that element `at` of a padded dim of n elements is.
  local elements = {
    reflect = function(at, n)
      if at < 0 then at = -at end
      return at >= n and 2 * (n - 1) - at or at
    end,
    replicate = function(at, n) return math.max(0, math.min(at, n - 1)) end,
    circular = function(at, n) return at % n end,
  }

  it("continues a dim by its elements, with and without a gradient", function()
    for mode, element in pairs(elements) do
      for _, n in ipairs{1, 2, 5, 40} do
        local most = mode == "reflect" and n - 1 or mode == "circular" and n or n + 2
        for left = mode == "circular" and 0 or -3, math.min(most, 6) do
          for right = mode == "circular" and 0 or -3, math.min(most, 6) do
            if n + left + right > 0 and left >= -n and right >= -n then
              local row = {}
              for i = 1, n + left + right do row[i] = 1 + element(i - 1 - left, n) end
              for _, dtype in ipairs{"float32", "float64", "int64", "bool", "complex64"} do
                local x = lt.arange(1, n):to(dtype):view(1, n)
                assert.is_true(F.pad(x, {left, right}, mode)
                  :equal(lt.tensor{row}:to(dtype)))
              end
              local x = lt.arange(1., n):view(1, n):requires_grad_()
              assert.same({row}, F.pad(x, {left, right}, mode):totable())
            end
          end
        end
      end
    end
  end)

  it("continues two and three dims", function()
    local x = lt.randn(2, 3, 4, 5, 6)
    for mode in pairs(elements) do
      for _, pad in ipairs{{1, 2, 3, 0}, {2, 1, 0, 3, 2, 1}, {0, 0, 0, 0, 1, 2}} do
        local y = #pad == 4 and x[1] or x
        local want = F.pad(y:clone():requires_grad_(), pad, mode):detach() -- dim by dim
        assert.is_true(F.pad(y, pad, mode):equal(want))
      end
    end
  end)
end)

describe("grid_sample", function()
  -- Calls f with an image and a grid of 2 and 3 dims, some of its places special, and each kind of
  -- sampling.
  local function each_kind(dtype, f)
    local nan, infinite = 0 / 0, math.huge
    for k = 2, 3 do
      local sizes, places = {2, 3, 4, 5, 7}, {2, 3, 5, 23, 3}
      if k == 2 then sizes, places = {2, 3, 5, 70}, {2, 11, 31, 2} end
      local x, grid = lt.randn(sizes):to(dtype), (lt.rand(places) * 4 - 2):to(dtype)
      local flat = grid:view(-1, k)
      for i, v in ipairs{nan, infinite, -infinite, 1, -1, 0, -2, 3} do flat[i]:fill_(v) end
      if dtype ~= "float16" then flat[9]:fill_(1e30) end
      for _, mode in ipairs{"bilinear", "nearest"} do
        for _, padding in ipairs{"zeros", "border", "reflection"} do
          for _, corners in ipairs{true, false} do
            local how = table.concat({k, dtype, mode, padding, tostring(corners)}, " ")
            f(how, x, grid, mode, padding, corners)
          end
        end
      end
    end
  end

  -- The gradients that can be differentiated again are computed by other ops.
  local function gradients(r, again, x, grid, ...)
    x, grid = x:clone():requires_grad_(), grid:clone():requires_grad_()
    local found = lt.autograd.grad({F.grid_sample(x, grid, ...)}, {x, grid},
      {grad_outputs = {r}, create_graph = again})
    return found[1]:detach(), found[2]:detach()
  end

  it("is linear in the image: it computes what its differentiable gradient states", function()
    for _, dtype in ipairs{"float32", "float64"} do
      each_kind(dtype, function(how, x, grid, ...)
        local y = F.grid_sample(x, grid, ...)
        local near = dtype == "float32" and 1e-3 or 1e-10
        for _ = 1, 5 do
          local r = lt.randn_like(y)
          local dx = gradients(r, true, x, grid, ...)
          assert.is_true(math.abs(((x * dx):sum() - (y * r):sum()):item()) < near, how)
        end
      end)
    end
  end)

  it("reads no element for a place outside of the image", function()
    for _, dtype in ipairs{"float32", "float64"} do
      for k = 2, 3 do
        for n = 1, 21 do -- vectors of places and the rest
          local sizes = {1, 2, 3, 4, k == 3 and 5 or nil}
          local x = lt.full(sizes, 0 / 0, {dtype = dtype})
          local grid = lt.full({1, 1, n, k}, 3, {dtype = dtype})
          if k == 3 then grid = grid:unsqueeze(2) end
          for _, mode in ipairs{"bilinear", "nearest", k == 2 and "bicubic" or nil} do
            local y = F.grid_sample(x, grid, mode)
            assert.is_true(y:equal(lt.zeros_like(y)), mode)
          end
        end
      end
    end
  end)

  it("finds the last element of a row whose size is no float32", function()
    local n = 2 ^ 24 + 3 | 0 -- n - 1 is one
    local x = lt.zeros{1, 1, 1, n, dtype = "float32"}
    x[1][1][1][n] = 1
    local grid = lt.tensor({1, 0}, {dtype = "float32"}):view(1, 1, 1, 2)
    for _, mode in ipairs{"bilinear", "nearest", "bicubic"} do
      assert.equal(1, F.grid_sample(x, grid, mode, "zeros", true):item(), mode)
    end
  end)

  it("reads no element behind a row whose last place is no float32", function()
    local n = 2 ^ 24 + 4 | 0 -- n - 1 is rounded up to n
    local x = lt.ones{n + 1, dtype = "float32"}
    x[n + 1] = 1e30
    local row = x:narrow(1, 1, n):view(1, 1, 1, n)
    local grid = lt.tensor({1, 0}, {dtype = "float32"}):view(1, 1, 1, 2)
    for _, mode in ipairs{"bilinear", "nearest", "bicubic"} do
      for _, padding in ipairs{"zeros", "border", "reflection"} do
        for _, corners in ipairs{true, false} do
          local value = F.grid_sample(row, grid, mode, padding, corners):item()
          assert.is_true(value >= 0 and value <= 1.2, mode .. padding)
        end
      end
    end
  end)

  it("computes the gradients that its differentiable form computes", function()
    for dtype, near in pairs{float16 = 2e-2, float32 = 2e-4, float64 = 1e-11} do
      each_kind(dtype, function(how, x, grid, ...)
        local r = lt.randn_like(F.grid_sample(x, grid, ...))
        local dx, dgrid = gradients(r, false, x, grid, ...)
        local wanted_x, wanted_grid = gradients(r, true, x, grid, ...)
        assert.is_true(dx:allclose(wanted_x, near, near), how)
        local scale = wanted_grid:abs():nan_to_num(0):max():item() + 1
        assert.is_true(dgrid:allclose(wanted_grid, {rtol = near, atol = near * scale,
          equal_nan = true}), how)
      end)
    end
  end)

  -- F.grid_sample with mode "bicubic", by loops over the neighbours.
  local function cubic(x, grid, padding, corners)
    local n, c, h, w = table.unpack(x.shape)
    local function position(v, size)
      if corners then return (v + 1) / 2 * (size - 1) end
      return ((v + 1) * size - 1) / 2
    end
    local function weight(d)
      d = math.abs(d)
      if d <= 1 then return (1.25 * d - 2.25) * d * d + 1 end
      return d < 2 and ((-0.75 * d + 3.75) * d - 6) * d + 3 or 0
    end
    local function place(i, size)
      if padding == "border" then return math.max(0, math.min(size - 1, i)) end
      while padding == "reflection" and (i < 0 or i >= size) do
        if size == 1 then return 0 end
        i = i < 0 and -i - (corners and 0 or 1) or 2 * size - (corners and 2 or 1) - i
      end
      return i >= 0 and i < size and i or nil
    end
    local out, places = lt.zeros({n, c, grid:size(2), grid:size(3)}, {dtype = x.dtype}),
      grid:tolist()
    for s = 1, n do
      for i = 1, grid:size(2) do
        for j = 1, grid:size(3) do
          local px, py = position(places[s][i][j][1], w), position(places[s][i][j][2], h)
          local sum = lt.zeros({c}, {dtype = x.dtype})
          for a = math.floor(py) - 1, math.floor(py) + 2 do
            for b = math.floor(px) - 1, math.floor(px) + 2 do
              local row, column = place(a, h), place(b, w)
              if row and column then
                sum = sum + x[{s, {}, row + 1, column + 1}] * (weight(py - a) * weight(px - b))
              end
            end
          end
          out[{s, {}, i, j}] = sum
        end
      end
    end
    return out
  end

  it("interpolates by cubics as a loop does, with its gradients", function()
    for _, dtype in ipairs{"float64", "float32"} do
      local near = dtype == "float64" and 1e-10 or 2e-4
      for _, sizes in ipairs{{2, 3, 5, 7}, {1, 2, 1, 4}} do
        local x = lt.randn(sizes):to(dtype)
        local grid = (lt.rand(sizes[1], 4, 71, 2, {dtype = "float64"}) * 4 - 2):to(dtype)
        for _, padding in ipairs{"zeros", "border", "reflection"} do
          for _, corners in ipairs{true, false} do
            local found = F.grid_sample(x, grid, "bicubic", padding, corners)
            local wanted = cubic(x, grid, padding, corners)
            assert.is_true(found:allclose(wanted, near, near), padding)
            local r = lt.randn_like(found)
            local dx, dgrid = gradients(r, false, x, grid, "bicubic", padding, corners)
            local other_x, other_grid = gradients(r, true, x, grid, "bicubic", padding, corners)
            assert.is_true(dx:allclose(other_x, near, near), padding)
            assert.is_true(dgrid:allclose(other_grid, 20 * near, 20 * near), padding)
          end
        end
      end
    end
    local x, none = lt.randn(1, 1, 3, 3), 0 / 0
    for _, padding in ipairs{"zeros", "border", "reflection"} do
      local grid = lt.tensor{{{{none, 0}, {math.huge, 0}, {0, -math.huge}, {1e30, 0}}}}
      local y = F.grid_sample(x, grid, "bicubic", padding):view(-1)
      for i = 1, 3 do assert.is_true(y[i]:isnan():item()) end
      assert.is_true(y[4]:isfinite():item())
    end
    local half = lt.randn(1, 2, 4, 4):half()
    assert.equal("float16", F.grid_sample(half, half[{{}, {}, {1, 2}}]:permute(1, 3, 4, 2),
      "bicubic").dtype)
  end)

  it("has a gradient for one of its inputs alone, and of any layout", function()
    local x, grid = lt.randn(2, 3, 6, 5), lt.rand(2, 4, 7, 2) * 3 - 1.5
    local r = lt.randn(2, 3, 7, 4):transpose(3, 4)
    local dx, dgrid = gradients(r, false, x, grid)
    local alone = x:permute(4, 1, 3, 2):contiguous():permute(2, 4, 3, 1):requires_grad_()
    F.grid_sample(alone, grid):backward(r)
    assert.is_true(alone.grad:equal(dx))
    alone = grid:flip{3}:flip{3}:requires_grad_()
    F.grid_sample(x, alone):backward(r)
    assert.is_true(alone.grad:equal(dgrid))
    local none = lt.ones(0, 3, 6, 5):requires_grad_()
    F.grid_sample(none, lt.ones(0, 4, 7, 2)):sum():backward()
    assert.are.same({0, 3, 6, 5}, none.grad.shape)
    none = lt.ones(2, 3, 6, 5):requires_grad_()
    F.grid_sample(none, lt.ones(2, 0, 7, 2)):sum():backward()
    assert.is_true(none.grad:eq(0):all():item())
  end)

  it("has the same gradients for any number of threads", function()
    local x, grid = lt.randn(3, 5, 40, 30), lt.rand(3, 60, 50, 2) * 2.2 - 1.1
    local r, threads = lt.randn(3, 5, 60, 50), lt.get_num_threads()
    local dx, dgrid = gradients(r, false, x, grid)
    lt.set_num_threads(threads == 1 and 2 or 1)
    local other_x, other_grid = gradients(r, false, x, grid)
    lt.set_num_threads(threads)
    assert.is_true(dx:equal(other_x) and dgrid:equal(other_grid))
  end)

  it("has the same gradient with a graph, where one input is computed from the other", function()
    local x = lt.randn(1, 2, 3, 3, {dtype = "float64"}):requires_grad_()
    for _, mode in ipairs{"bilinear", "nearest"} do
      local function gradient(f, of, create)
        return (lt.autograd.grad(f(of):sum(), of, {create_graph = create}))
      end
      local function by_image(v)
        return F.grid_sample(v, (v:permute(1, 3, 4, 2) * 0.3):tanh(), mode)
      end
      local function by_grid(v)
        return F.grid_sample((v:permute(1, 4, 2, 3) * 2):sin(), v, mode)
      end
      local grid = lt.rand(1, 3, 3, 2, {dtype = "float64"}):requires_grad_()
      for f, of in pairs{[by_image] = x, [by_grid] = grid} do
        assert.is_true(gradient(f, of, true):allclose(gradient(f, of, false), 1e-12, 1e-12))
      end
    end
    local grid = lt.rand(1, 3, 3, 2):requires_grad_()
    local found = lt.autograd.grad(F.grid_sample(lt.ones(1, 2, 3, 3), grid, "nearest"):sum(), grid,
      {create_graph = true})
    assert.is_true(lt.equal(lt.zeros_like(grid), found))
  end)

  it("returns the elements of the image at their centers", function()
    local x = lt.randn(1, 2, 3, 5)
    local grid = F.affine_grid(lt.tensor{{{1., 0, 0}, {0, 1, 0}}}, {1, 2, 3, 5})
    for _, mode in ipairs{"bilinear", "nearest"} do
      assert.is_true(F.grid_sample(x, grid, mode, "border"):allclose(x, 1e-5, 1e-5))
    end
  end)
end)

describe("interpolation", function()
  it("is the same along either dim, and so is its gradient", function()
    for _, mode in ipairs{"nearest", "nearest-exact", "bilinear", "bicubic"} do
      for _, sizes in ipairs{{40, 80}, {40, 20}, {40, 33}, {7, 50}, {1, 4}, {40, 40}} do
        for _, dtype in ipairs{"float32", "float64"} do
          local across = lt.randn{2, 3, 1, sizes[1], dtype = dtype}:requires_grad_()
          local down = across:detach():transpose(3, 4):contiguous():requires_grad_()
          local wide = F.interpolate(across, {1, sizes[2]}, {mode = mode})
          local high = F.interpolate(down, {sizes[2], 1}, {mode = mode})
          assert.is_true(wide:equal(high:transpose(3, 4)))
          local g = lt.randn{2, 3, 1, sizes[2], dtype = dtype}
          wide:backward(g)
          high:backward(g:transpose(3, 4))
          assert.is_true(across.grad:equal(down.grad:transpose(3, 4)))
        end
      end
    end
  end)

  it("doubles lines by the two weights of each pair of neighbours", function()
    for _, n in ipairs{1, 2, 3, 37} do
      for _, dtype in ipairs{"float32", "float64", "float16"} do
        local x = lt.randn{2, 3, n, dtype = dtype}
        local want = lt.empty(2, 3, 2 * n, {dtype = "float64"})
        for o = 0, 2 * n - 1 do
          local at = math.min(math.max((o + 0.5) / 2 - 0.5, 0), n - 1)
          local low = math.floor(at)
          local high, part = math.min(low + 1, n - 1), at - low
          want:select(3, o + 1):copy_(x:select(3, low + 1):double() * (1 - part)
            + x:select(3, high + 1):double() * part)
        end
        local near = dtype == "float16" and 2e-3 or 1e-6
        assert.is_true(F.interpolate(x, 2 * n, {mode = "linear"}):double()
          :allclose(want, near, near))
      end
    end
  end)

  -- The weights by which n elements become m, as a matrix, by the modes' formulas.
  local function weights(mode, antialias, n, m)
    local function cubic(x, a)
      x = math.abs(x)
      if x < 1 then return ((a + 2) * x - (a + 3)) * x * x + 1 end
      return x < 2 and ((x - 5) * x + 8) * x * a - 4 * a or 0
    end
    local scale, rows = n / m, {}
    for o = 1, m do
      local row, total = {}, 0
      for i = 1, n do row[i] = 0 end
      local function add(at, weight)
        at = math.min(math.max(at, 0), n - 1) + 1
        row[at], total = row[at] + weight, total + weight
      end
      local center = scale * (o - 0.5)
      if antialias then
        local wide = math.max(scale, 1)
        local reach = (mode == "bicubic" and 2 or 1) * wide
        local last = math.min(math.floor(center + reach + 0.5), n) - 1
        for i = math.max(math.floor(center - reach + 0.5), 0), last do
          local x = (i - center + 0.5) / wide
          add(i, mode == "bicubic" and cubic(x, -0.5) or math.max(1 - math.abs(x), 0))
        end
      elseif mode == "nearest" then
        add(math.floor(scale * (o - 1)), 1)
      elseif mode == "bicubic" then
        local low = math.floor(center - 0.5)
        for k = -1, 2 do add(low + k, cubic(center - 0.5 - low - k, -0.75)) end
      else
        local at = math.max(center - 0.5, 0)
        local low = math.floor(at)
        add(low, low + 1 - at)
        add(low + 1, at - low)
      end
      for i = 1, n do row[i] = row[i] / total end
      rows[o] = row
    end
    return lt.tensor(rows, {dtype = "float64"}):t()
  end

  -- Weights of few bits, as PyTorch's for uint8.
  local function rounded(w)
    local bits, most = 0, w:max():item()
    while bits < 22 and math.floor(0.5 + most * 2 ^ (bits + 1)) < 2 ^ 15 do bits = bits + 1 end
    return w:sign() * (w:abs() * 2 ^ bits + 0.5):floor() / 2 ^ bits
  end

  it("of many lines is a product with the weights, and exact for uint8", function()
    local threads = lt.get_num_threads()
    for _, case in ipairs{{"nearest"}, {"bilinear"}, {"bicubic"}, {"bilinear", true},
      {"bicubic", true}} do
      local mode, antialias = case[1], case[2]
      for _, sizes in ipairs{{64, 96}, {64, 128}, {96, 64}, {150, 20}, {1, 3}} do
        local w = weights(mode, antialias, sizes[1], sizes[2])
        for _, lines in ipairs{1, 16, 75} do
          local options = {mode = mode, antialias = antialias}
          for _, dtype in ipairs{"float32", "float64", "uint8"} do
            local bytes, near = dtype == "uint8", dtype == "float64" and 1e-9 or 2e-3
            local x = (lt.rand(1, 1, lines, sizes[1]) * 400):clamp(0, 255):to(dtype)
            local want = x:double():matmul(bytes and mode ~= "nearest" and rounded(w) or w)
            if bytes then want = (want + 0.5):floor():clamp(0, 255) end
            for n = 1, 2 do
              lt.set_num_threads(n)
              local y = F.interpolate(x, {lines, sizes[2]}, options)
              local down = F.interpolate(x:transpose(3, 4), {sizes[2], lines}, options)
              local what = ("%s %s %d %d"):format(mode, dtype, sizes[1], lines)
              assert.are.equal(dtype, y.dtype)
              assert.is_true(bytes and y:double():equal(want)
                or not bytes and y:double():allclose(want, 0, near), what)
              assert.is_true(y:equal(down:transpose(3, 4)), what)
            end
          end
        end
      end
    end
    lt.set_num_threads(threads)
  end)

  it("of two dims is that of one after the other", function()
    local x = lt.randn(2, 3, 20, 31)
    for _, sizes in ipairs{{10, 15}, {40, 62}, {10, 62}, {40, 15}} do
      for _, mode in ipairs{"nearest", "bilinear", "bicubic"} do
        local want = F.interpolate(F.interpolate(x:double(), {20, sizes[2]}, {mode = mode}),
          sizes, {mode = mode})
        assert.is_true(F.interpolate(x, sizes, {mode = mode}):double():allclose(want, 1e-5, 1e-5))
      end
    end
  end)
end)

describe("gradients of windows", function()
  -- The gradient by differences, of the sum of f(x) times fixed weights.
  local function check(f, shape)
    local x = lt.arange(1, lt.zeros(shape):numel()):to("float64"):reshape(shape) * 1.7
    x = x:sin():contiguous():requires_grad_()
    local function loss(v)
      local y = f(v)
      return (y * lt.arange(1, y:numel()):to("float64"):reshape(y.shape):cos()):sum()
    end
    local g = lt.autograd.grad(loss(x), x):flatten():totable()
    local values = x:detach():flatten()
    local h = 1e-6
    for i = 1, #g do
      local up, down = values:clone(), values:clone()
      up[i], down[i] = up[i] + h, down[i] - h
      local slope = (loss(up:reshape(shape)):item() - loss(down:reshape(shape)):item()) / (2 * h)
      assert.is_true(math.abs(slope - g[i]) < 1e-6)
    end
  end

  it("are those of differences", function()
    check(function(x) return F.max_pool2d(x, 3, 2, 1) end, {1, 2, 5, 6})
    check(function(x) return F.avg_pool2d(x, 3, 2, 1, true, false) end, {1, 2, 5, 6})
    check(function(x) return F.avg_pool1d(x, 2, 3) end, {2, 7})
    check(function(x) return F.adaptive_avg_pool2d(x, {3, 4}) end, {1, 2, 5, 6})
    check(function(x) return F.adaptive_max_pool1d(x, 3) end, {2, 7})
    check(function(x) return F.unfold(x, 2, 2, 1, 2) end, {1, 2, 5, 4})
    check(function(x) return F.fold(x, {3, 3}, 2) end, {1, 8, 4})
    for _, mode in ipairs{"bilinear", "bicubic"} do
      for _, antialias in ipairs{false, true} do
        check(function(x)
          return F.interpolate{x, size = {3, 7}, mode = mode, antialias = antialias}
        end, {1, 1, 5, 4})
      end
      check(function(x)
        return F.interpolate{x, size = {3, 7}, mode = mode, align_corners = true}
      end, {1, 1, 5, 4})
    end
    check(function(x) return F.interpolate(x, 5, nil, "nearest-exact") end, {1, 1, 7})
  end)
end)

describe("constant_pad_nd of large tensors", function()
  -- By cat of blocks.
  local function padded(x, pad, value)
    for i = 1, #pad, 2 do
      local dim, shape = x.ndim - (i - 1) // 2, {table.unpack(x.shape)}
      local function block(n)
        shape[dim] = n
        return x:new_full(shape, value)
      end
      x = lt.cat({block(pad[i]), x, block(pad[i + 1])}, dim)
    end
    return x
  end

  it("fills the borders", function()
    for _, case in ipairs{{{500, 400}, {1, 1, 1, 1}}, {{500, 300}, {0, 2}},
      {{400, 400}, {0, 0, 2, 3}}, {{2, 300, 301}, {0, 0, 3, 0, 1, 2}},
      {{3, 3, 130, 300}, {5, 0, 0, 7, 1, 1}}} do
      local x = lt.randn(case[1])
      assert.is_true(lt.constant_pad_nd(x, case[2], 7):equal(padded(x, case[2], 7)))
      x = x:mul(3):long()
      assert.is_true(lt.constant_pad_nd(x, case[2], -2):equal(padded(x, case[2], -2)))
    end
    local x = lt.ones(500, 400, {requires_grad = true})
    lt.constant_pad_nd(x, {1, 2, 3, 4}, 2):sum():backward()
    assert.is_true(x.grad:equal(lt.ones(500, 400)))
  end)
end)
