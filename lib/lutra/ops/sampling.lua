--- Sampling of images at the places of a grid.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local core = require "lutra.core"

local ops = core._ops

-- ---- grid_sample

-- Maps coordinates from -1..1 to positions from 0 to size - 1.
local function positions(grid, size, corners)
  if corners then return (grid + 1) / 2 * (size - 1) end
  return ((grid + 1) * size - 1) / 2
end

-- Reflects positions at the borders, which are the centers of the outer elements with `corners`,
-- else their outer edges.
local function reflected(x, size, corners)
  local low, span = corners and 0 or -0.5, corners and size - 1 or size
  if span == 0 then return x * 0 end
  local distance = x - low
  distance = lt.where(distance:lt(0), -distance, distance)
  local rest, flips = distance:fmod(span), (distance:detach() / span):floor()
  local at = lt.where(flips:remainder(2):eq(0), rest, span - rest) + low
  return at:masked_fill(flips:ge(2.0 ^ 60), 0) -- an element is below the precision of the position
end

-- Moves positions outside of the image into it, except for zeros.
local function inside(x, size, padding, corners)
  if padding == "border" then return x:clamp(0, size - 1) end
  if padding == "reflection" then return reflected(x, size, corners):clamp(0, size - 1) end
  return x
end

-- Returns the values of `flat`, {N, C, elements}, at integer positions, {N, points} for each dim,
-- times a weight; those outside of the image count 0.
local function taken(flat, sizes, at, weight)
  local index, valid
  for d, x in ipairs(at) do
    local n = sizes[d]
    local within = x:ge(0) & x:le(n - 1)
    valid = valid and valid & within or within
    local place = x:detach():clamp(0, n - 1):to "int64"
    index = index and index * n + place or place
  end
  local points, c = index:size(2), flat:size(2)
  index = (index + 1):clamp(1, flat:size(3)):unsqueeze(2):expand(-1, c, points)
  weight = lt.where(valid, weight or lt.ones_like(at[1]), 0)
  return flat:gather(3, index) * weight:unsqueeze(2)
end

-- Sums over all corners of the cells around the positions: each is {floor, its fraction}.
local function linear(flat, sizes, at)
  local k, sum = #sizes, nil
  local low, part = {}, {}
  for d = 1, k do
    low[d] = at[d]:detach():floor()
    part[d] = at[d] - low[d]
  end
  for corner = 0, (1 << k) - 1 do
    local places, weight = {}, nil
    for d = 1, k do
      local high = corner >> (k - d) & 1 == 1
      places[d] = high and low[d] + 1 or low[d]
      local w = high and part[d] or 1 - part[d]
      weight = weight and weight * w or w
    end
    local v = taken(flat, sizes, places, weight)
    sum = sum and sum + v or v
  end
  return sum
end

-- The weights of four neighbours (Keys' cubic, a = -0.75) of a position with fraction t.
local function cubic_weights(t)
  local a <const> = -0.75
  local function near(x) return ((a + 2) * x - (a + 3)) * x * x + 1 end
  local function far(x) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a end
  return {far(t + 1), near(t), near(1 - t), far(2 - t)}
end

-- Sums over the 4 neighbours in each dim from `d` on; `places` are those in the dims before.
local function cubic(flat, sizes, at, padding, corners, places, d)
  if d > #sizes then return taken(flat, sizes, places) end
  local low = at[d]:detach():floor()
  local weights, sum = cubic_weights(at[d] - low), nil
  for i = 1, 4 do
    places[d] = inside(low + (i - 2), sizes[d], padding, corners):trunc()
    local v = cubic(flat, sizes, at, padding, corners, places, d + 1) * weights[i]:unsqueeze(2)
    sum = sum and sum + v or v
  end
  return sum
end

local function check_grid(title, x, grid)
  local shape, points, dtype = x.shape, grid.shape, x.dtype
  local k = #shape - 2
  if k ~= 2 and k ~= 3 then
    args.fail("%s: expected 4 or 5 dimensions for argument 'input', got shape %s", title, shape)
  end
  if #points ~= k + 2 or points[k + 2] ~= k or points[1] ~= shape[1] then
    args.fail("%s: expected {%d, sizes, %d} with %d sizes for argument 'grid', got %s", title,
      shape[1], k, k, points)
  end
  if dtype ~= grid.dtype then
    args.fail("%s: expected the input's dtype %s for argument 'grid', got %s", title, dtype,
      grid.dtype)
  end
  if dtype ~= "float32" then tensors.check_float(title, "input", x) end
  for d = 3, k + 2 do
    if shape[d] == 0 then
      args.fail("%s: expected a non-empty image for argument 'input', got shape %s", title, shape)
    end
  end
end

-- The numbers of lt_GridMode and of lt_GridPadding.
local MODE_NUMBERS = {bilinear = 0, nearest = 1, bicubic = 2}
local PADDING_NUMBERS = {zeros = 0, border = 1, reflection = 2}

-- Samples by other ops, which can be differentiated any number of times.
local function composed(x, grid, mode, padding, corners)
  local k = x.ndim - 2
  local shape = {x:size(1), x:size(2)}
  for d = 1, k do shape[2 + d] = grid:size(1 + d) end
  local dtype = x.dtype
  if dtype:find "16" and (mode ~= "bicubic" or k == 3) then -- as the op computes it, and PyTorch
    x, grid = x:to "float32", grid:to "float32"
  end
  local flat, sizes, at = x:flatten(3), {}, {}
  for d = 1, k do -- the grid's last dim is x, y, z
    sizes[d] = x:size(2 + d)
    at[d] = positions(grid:select(-1, k + 1 - d):flatten(2), sizes[d], corners)
    if mode ~= "bicubic" then at[d] = inside(at[d], sizes[d], padding, corners) end
  end
  local out
  if mode == "bicubic" then
    out = cubic(flat, sizes, at, padding, corners, {}, 1)
  elseif mode == "nearest" then
    for d = 1, k do at[d] = at[d]:round() end
    out = taken(flat, sizes, at, at[1]:sign() * 0 + 1) -- a weight of 1, for a gradient of 0
  else
    out = linear(flat, sizes, at)
  end
  return out:reshape(shape):to(dtype)
end

-- Samples by kernels with a gradient of their own; its gradient is computed by `composed`.
local Sampled = lt.autograd.Function:extend "grid_sample"

function Sampled.forward(ctx, x, grid, mode, padding, corners)
  ctx:save_for_backward(x, grid)
  ctx.mode, ctx.padding, ctx.corners = mode, padding, corners
  return ops._grid_sample(x, grid, MODE_NUMBERS[mode], PADDING_NUMBERS[padding], corners)
end

-- Returns the gradients for x and the grid as functions of g, x and the grid.
local function differentiable(ctx, g, x, grid)
  local nearest = ctx.mode == "nearest"
  local first, second = ctx.needs_input_grad[1], ctx.needs_input_grad[2] and not nearest
  local dgrid = ctx.needs_input_grad[2] and lt.zeros_like(grid) or nil
  if not first and not second then return nil, dgrid end
  -- views of their own, for one of x and grid may be computed from the other
  x, grid = first and x:view_as(x) or x, second and grid:view_as(grid) or grid
  local found = lt.autograd.grad({composed(x, grid, ctx.mode, ctx.padding, ctx.corners)},
    {first and x or grid, first and second and grid or nil},
    {grad_outputs = {g}, create_graph = true, allow_unused = true})
  return first and found[1] or nil, second and found[first and 2 or 1] or dgrid
end

function Sampled.backward(ctx, g)
  local x, grid = ctx:saved()
  if lt.is_grad_enabled() then return differentiable(ctx, g, x, grid) end
  local mode, padding = MODE_NUMBERS[ctx.mode], PADDING_NUMBERS[ctx.padding]
  local dx, dgrid
  if ctx.needs_input_grad[1] then
    dx = ops._grid_sample_backward(g, grid, {table.unpack(x.shape, 3)}, mode, padding,
      ctx.corners)
  end
  if ctx.needs_input_grad[2] then
    dgrid = ctx.mode == "nearest" and lt.zeros_like(grid)
      or ops._grid_sample_grid_backward(g, x, grid, mode, padding, ctx.corners)
  end
  return dx, dgrid
end

local function has_gradients(x)
  if not core._supported("_grid_sample_backward", x.device:match "^%a+", x.dtype) then
    return false
  end
  local shape, elements = x.shape, 1
  for d = 3, #shape do elements = elements * shape[d] end
  return elements < core._grid_elements
end

local function grid_sample(title, x, grid, mode, padding, corners)
  check_grid(title, x, grid)
  if mode == "bicubic" and x.ndim == 5 then
    return composed(x, grid, mode, padding, corners)
  end
  if not lt.is_grad_enabled() or not (x.requires_grad or grid.requires_grad) then
    return ops._grid_sample(x, grid, MODE_NUMBERS[mode], PADDING_NUMBERS[padding], corners)
  end
  return (has_gradients(x) and Sampled or composed)(x, grid, mode, padding, corners)
end

lt._define{
  signature = "F.grid_sample(Tensor input, Tensor grid, 'bilinear'|'nearest'|'bicubic' mode = "
    .. "'bilinear', 'zeros'|'border'|'reflection' padding_mode = 'zeros', "
    .. "bool? align_corners = nil)",
  doc = "Values of {N, C, H, W} at the grid {N, h, w, 2} of x, y from -1 to 1 (the borders), or of "
    .. "{N, C, D, H, W} at {N, d, h, w, 3}. align_corners: -1 and 1 are the centers of the outer "
    .. "elements, else their edges.",
  example = "F.grid_sample(lt.arange(4.):reshape(1, 1, 2, 2), lt.zeros(1, 1, 1, 2))",
  fn = function(x, grid, mode, padding, corners)
    return grid_sample("grid_sample", x, grid, mode, padding, corners == true)
  end,
}

local MODES = {[0] = "bilinear", "nearest", "bicubic"}
local PADDINGS = {[0] = "zeros", "border", "reflection"}

for k, name in pairs{[2] = "grid_sampler_2d", [3] = "grid_sampler_3d", [0] = "grid_sampler"} do
  lt._define{
    signature = ("lt.%s(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
      .. "bool align_corners)"):format(name),
    doc = "F.grid_sample with numbers for modes: bilinear, nearest, bicubic and zeros, border, "
      .. "reflection, from 0.",
    example = ("lt.%s(lt.ones(1, 1%s), lt.zeros(1%s, %d), 0, 0, false)"):format(name,
      (", 2"):rep(k == 3 and 3 or 2), (", 1"):rep(k == 3 and 3 or 2), k == 3 and 3 or 2),
    fn = function(x, grid, mode, padding, corners)
      args.check(MODES[mode], "%s: expected 0, 1 or 2 for argument 'interpolation_mode', got %d",
        name, mode)
      args.check(PADDINGS[padding], "%s: expected 0, 1 or 2 for argument 'padding_mode', got %d",
        name, padding)
      args.check(k == 0 or x.ndim == k + 2,
        "%s: expected %d dimensions for argument 'input', got shape %s", name, k + 2,
        x.shape)
      return grid_sample(name, x, grid, MODES[mode], PADDINGS[padding], corners)
    end,
  }
end

-- ---- affine_grid

-- Returns n coordinates from -1 to 1, or the centers of n cells between them.
local function coordinates(n, corners, like)
  if n <= 1 then return lt.zeros(n, {dtype = like.dtype, device = like.device}) end
  local line = lt.linspace(-1, 1, n, {dtype = like.dtype, device = like.device})
  return corners and line or line * ((n - 1) / n)
end

local function affine_grid(title, theta, size, corners)
  local k = #size - 2
  args.check(k == 2 or k == 3, "%s: expected 4 or 5 sizes for argument 'size', got %d", title,
    #size)
  args.check(theta.ndim == 3 and theta:size(1) == size[1] and theta:size(2) == k
    and theta:size(3) == k + 1, "%s: expected shape {%d, %d, %d} for argument 'theta', got %s",
    title, size[1], k, k + 1, theta.shape)
  tensors.check_float(title, "theta", theta)
  local parts, shape = {}, {table.unpack(size, 3)}
  for d = 1, k do -- x, y, z: from the last size to the first
    local view = {}
    for e = 1, k do view[e] = e == k + 1 - d and shape[e] or 1 end
    parts[d] = coordinates(shape[k + 1 - d], corners, theta):reshape(view):expand(shape)
  end
  parts[k + 1] = lt.ones(shape, {dtype = theta.dtype, device = theta.device})
  local points = lt.stack(parts, k + 1):flatten(1, k):unsqueeze(1)
  local out = lt.matmul(points:expand(size[1], -1, -1), theta:transpose(2, 3))
  local result = {size[1], table.unpack(shape)}
  result[#result + 1] = k
  return out:reshape(result)
end

lt._define{
  signature = "F.affine_grid(Tensor theta, ints size, bool? align_corners = nil)",
  doc = "The grid for F.grid_sample of the affine maps theta, {N, 2, 3} or {N, 3, 4}, for a result "
    .. "of `size`, {N, C, H, W} or {N, C, D, H, W}.",
  example = "F.affine_grid(lt.tensor{{{1., 0, 0}, {0, 1, 0}}}, {1, 1, 2, 2})",
  fn = function(theta, size, corners)
    return affine_grid("affine_grid", theta, size, corners == true)
  end,
}
