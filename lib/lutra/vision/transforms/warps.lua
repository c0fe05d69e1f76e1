--- Functions that warp images, for lutra.vision.transforms.functional: affine maps, rotation,
-- perspective. Formulas and defaults are those of torchvision.transforms.v2.functional.

local lt = require "lutra"
local args = require "lutra.internal.args"
local images = require "lutra.vision.transforms.images"

local warps = {}

local OPTIONS = "'nearest'|'bilinear' interpolation = 'nearest'"

-- Returns the inverse of the map that rotates by `angle`, scales, shears (all in degrees) and
-- translates around the center {x, y}: {a, b, c, d, e, f} for x' = a x + b y + c, y' = d x + e y +
-- f.
local function inverse_matrix(center, angle, translate, scale, shear)
  local rotation, sx, sy = math.rad(angle), math.rad(shear[1]), math.rad(shear[2])
  local cx, cy = center[1], center[2]
  local x, y = cx + translate[1], cy + translate[2]
  local a = math.cos(rotation - sy) / math.cos(sy)
  local b = -(a * math.tan(sx) + math.sin(rotation))
  local c = math.sin(rotation - sy) / math.cos(sy)
  local d = math.cos(rotation) - c * math.tan(sx)
  local m = {d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0}
  m[3] = cx - m[1] * x - m[2] * y
  m[6] = cy - m[4] * x - m[5] * y
  return m
end

-- Returns the coordinates of the pixels of a {height, width} image around its center, {1, height *
-- width, 3}: x + offset, y + offset, 1.
local function base_grid(height, width, offset_x, offset_y, options)
  local x = lt.arange(0, width - 1, options) + offset_x
  local y = lt.arange(0, height - 1, options) + offset_y
  x, y = x:reshape(1, -1):expand(height, width), y:reshape(-1, 1):expand(height, width)
  return lt.stack({x, y, lt.ones_like(x)}, -1):reshape(1, height * width, 3)
end

local function options_of(img)
  return {dtype = images.is_float(img) and img.dtype or "float32", device = img.device}
end

-- Returns the grid for F.grid_sample of the matrix, for a result of that size.
local function affine_grid(img, matrix, height, width)
  local options = options_of(img)
  local theta = lt.tensor(matrix, options):reshape(1, 2, 3):transpose(2, 3)
  local half = lt.tensor({0.5 * img:size(-1), 0.5 * img:size(-2)}, options)
  local grid = base_grid(height, width, (1 - width) * 0.5, (1 - height) * 0.5, options)
  return grid:bmm(theta / half):reshape(1, height, width, 2)
end

-- Returns the pixels of `img` at the grid; `fill` (a number or one per channel) is the color
-- outside the image.
local function sample(title, img, grid, mode, fill)
  local x = images.batch(img)
  local n, channels = x:size(1), x:size(2)
  if type(fill) == "number" then fill = {fill} end
  args.check(not fill or #fill == 1 or #fill == channels,
    "%s: expected 1 or %d numbers for argument 'fill', got %d", title, channels, fill and #fill)
  local wide = x:to(grid.dtype)
  grid = grid:expand(n, grid:size(2), grid:size(3), 2)
  if fill then wide = lt.cat({wide, lt.ones_like(wide:narrow(2, 1, 1))}, 2) end
  local out = lt.F.grid_sample(wide, grid, mode, "zeros", false)
  if fill then
    local mask = out:narrow(2, channels + 1, 1)
    local color = images.per_channel(out, fill)
    out = out:narrow(2, 1, channels)
    out = mode == "nearest" and lt.where(mask:lt(0.5), color, out) or (out - color) * mask + color
  end
  if not images.is_float(img) then out = out:round():to(img.dtype) end
  return images.unbatch(out, img)
end

-- Returns the center of a warp relative to that of the image.
local function center_of(title, img, center)
  if not center then return {0.0, 0.0} end
  args.check(#center == 2, "%s: expected {x, y} for argument 'center', got %d numbers", title,
    #center)
  return {center[1] - img:size(-1) * 0.5, center[2] - img:size(-2) * 0.5}
end

local parse_affine = args.signature("affine", "Tensor img, float angle, floats translate, "
  .. "float scale, float|floats shear, " .. OPTIONS
  .. ", float|floats? fill = nil, floats? center = nil")

--- functional.affine(img, angle, translate, scale, shear, interpolation = "nearest", fill = nil,
-- center = nil): rotates {..., C, H, W} by `angle` degrees clockwise, scales and shears it (degrees
-- {x, y}), and moves it by translate {x, y} pixels. center is {x, y} in pixels from the left top
-- corner, the image's center by default. Pixels from outside are `fill`, 0 by default.
function warps.affine(...)
  local img, angle, translate, scale, shear, mode, fill, center = parse_affine(...)
  images.check("affine", img)
  args.check(#translate == 2, "affine: expected {x, y} for argument 'translate', got %d numbers",
    #translate)
  args.check(scale > 0, "affine: expected a number above 0 for argument 'scale', got %g", scale)
  if type(shear) == "number" then shear = {shear, 0.0} end
  args.check(#shear == 1 or #shear == 2, "affine: expected 1 or 2 numbers for argument 'shear', "
    .. "got %d", #shear)
  shear = {shear[1], shear[2] or shear[1]}
  local matrix = inverse_matrix(center_of("affine", img, center), angle, translate, scale, shear)
  return sample("affine", img, affine_grid(img, matrix, img:size(-2), img:size(-1)), mode, fill)
end

-- Returns the height and the width that contain a warped image.
local function expanded(matrix, h, w)
  local left, right, top, bottom = math.huge, -math.huge, math.huge, -math.huge
  for _, sign in ipairs{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} do
    local x, y = sign[1] * 0.5 * w, sign[2] * 0.5 * h
    local nx = matrix[1] * x + matrix[2] * y + matrix[3] + 0.5 * w
    local ny = matrix[4] * x + matrix[5] * y + matrix[6] + 0.5 * h
    left, right = math.min(left, nx), math.max(right, nx)
    top, bottom = math.min(top, ny), math.max(bottom, ny)
  end
  return math.ceil(bottom) - math.floor(top), math.ceil(right) - math.floor(left)
end

local parse_rotate = args.signature("rotate", "Tensor img, float angle, " .. OPTIONS
  .. ", bool expand = false, floats? center = nil, float|floats? fill = nil")

--- functional.rotate(img, angle, interpolation = "nearest", expand = false, center = nil, fill =
-- nil): rotates {..., C, H, W} by `angle` degrees counterclockwise around `center` ({x, y} in
-- pixels, the image's center by default). With `expand` the result contains the whole rotated
-- image. Pixels from outside are `fill`, 0 by default.
function warps.rotate(...)
  local img, angle, mode, expand, center, fill = parse_rotate(...)
  images.check("rotate", img)
  angle = angle % 360
  local h, w = img:size(-2), img:size(-1)
  if not center then
    if angle == 0 then return img:clone() end
    if angle == 180 then return img:rot90(2, {-2, -1}) end
    if (expand or h == w) and angle % 90 == 0 then
      return img:rot90(angle == 90 and 1 or 3, {-2, -1})
    end
  end
  local matrix = inverse_matrix(center_of("rotate", img, center), -angle, {0.0, 0.0}, 1.0,
    {0.0, 0.0})
  local height, width = h, w
  if expand then height, width = expanded(matrix, h, w) end
  return sample("rotate", img, affine_grid(img, matrix, height, width), mode, fill)
end

-- Returns the 8 coefficients of the perspective map from endpoints to startpoints.
local function coefficients(starts, ends)
  local a, b = {}, {}
  for i = 1, 4 do
    local x, y, u, v = ends[i][1], ends[i][2], starts[i][1], starts[i][2]
    a[2 * i - 1] = {x, y, 1, 0, 0, 0, -u * x, -u * y}
    a[2 * i] = {0, 0, 0, x, y, 1, -v * x, -v * y}
    b[2 * i - 1], b[2 * i] = u, v
  end
  local options = {dtype = "float64", device = "cpu"}
  return lt.linalg.solve(lt.tensor(a, options), lt.tensor(b, options)):totable()
end

local function check_points(name, points)
  local ok = #points == 4
  for _, p in ipairs(points) do ok = ok and type(p) == "table" and #p == 2 end
  args.check(ok, "perspective: expected 4 points {x, y} for argument '%s'", name)
end

local parse_perspective = args.signature("perspective", "Tensor img, list? startpoints, "
  .. "list? endpoints, 'nearest'|'bilinear' interpolation = 'bilinear', "
  .. "float|floats? fill = nil, floats? coefficients = nil")

--- functional.perspective(img, startpoints, endpoints, interpolation = "bilinear", fill = nil,
-- coefficients = nil): maps the corners `startpoints` of {..., C, H, W} (left top, right top, right
-- bottom, left bottom; each {x, y}) to `endpoints`. The 8 coefficients of the inverse map may be
-- given instead.
function warps.perspective(...)
  local img, starts, ends, mode, fill, c = parse_perspective(...)
  images.check("perspective", img)
  if not c then
    args.check(starts and ends, "perspective: expected arguments 'startpoints' and 'endpoints', "
      .. "or argument 'coefficients'")
    check_points("startpoints", starts)
    check_points("endpoints", ends)
    c = coefficients(starts, ends)
  end
  args.check(#c == 8, "perspective: expected 8 numbers for argument 'coefficients', got %d", #c)
  local options, h, w = options_of(img), img:size(-2), img:size(-1)
  local grid = base_grid(h, w, 0.5, 0.5, options)
  local above = lt.tensor({{c[1], c[2], c[3]}, {c[4], c[5], c[6]}}, options)
    / lt.tensor({{0.5 * w}, {0.5 * h}}, options)
  local below = lt.tensor({{c[7], c[8], 1}, {c[7], c[8], 1}}, options)
  local quotient = grid:matmul(above:t()) / grid:matmul(below:t()) - 1
  return sample("perspective", img, quotient:reshape(1, h, w, 2), mode, fill)
end

return warps
