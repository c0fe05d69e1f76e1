--- Functions that move the pixels of images, for lutra.vision.transforms.functional: flips, crops,
-- padding, resizing. Formulas and defaults are those of torchvision.transforms.v2.functional.

local lt = require "lutra"
local args = require "lutra.internal.args"
local images = require "lutra.vision.transforms.images"

local geometry = {}

local parse_flip = args.signature("horizontal_flip", "Tensor img")

--- functional.horizontal_flip(img): mirrors an image {..., H, W} left to right.
function geometry.horizontal_flip(...)
  return images.check("horizontal_flip", parse_flip(...), 2):flip(-1)
end

local parse_vertical = args.signature("vertical_flip", "Tensor img")

--- functional.vertical_flip(img): mirrors an image {..., H, W} top to bottom.
function geometry.vertical_flip(...)
  return images.check("vertical_flip", parse_vertical(...), 2):flip(-2)
end

--- functional.hflip(img): another name of functional.horizontal_flip.
geometry.hflip = geometry.horizontal_flip
--- functional.vflip(img): another name of functional.vertical_flip.
geometry.vflip = geometry.vertical_flip

local parse_dimensions = args.signature("get_dimensions", "Tensor img")

--- functional.get_dimensions(img): returns the list of channels, height and width.
function geometry.get_dimensions(...)
  local img = images.check("get_dimensions", parse_dimensions(...), 2)
  return {img.ndim == 2 and 1 or img:size(-3), img:size(-2), img:size(-1)}
end

local parse_size = args.signature("get_image_size", "Tensor img")

--- functional.get_image_size(img): returns the list of width and height.
function geometry.get_image_size(...)
  local img = images.check("get_image_size", parse_size(...), 2)
  return {img:size(-1), img:size(-2)}
end

-- Returns the height and the width that an image of height h and width w is resized to. One number
-- is the shorter edge; the longer one is at most `most`.
local function resized_size(h, w, size, most)
  if #size == 2 then return size[1], size[2] end
  local short, long = math.min(h, w), math.max(h, w)
  local new_short, new_long = size[1] or short, size[1] and size[1] * long // short or long
  if not size[1] or most and new_long > most then
    new_short, new_long = most * new_short // new_long, most
  end
  if w <= h then return new_long, new_short end
  return new_short, new_long
end

local parse_resize = args.signature("resize", "Tensor img, ints? size, "
  .. "'nearest'|'nearest-exact'|'bilinear'|'bicubic' interpolation = 'bilinear', "
  .. "int(>=1)? max_size = nil, bool antialias = true")

--- functional.resize(img, size, interpolation = "bilinear", max_size = nil, antialias = true):
-- resizes {..., C, H, W} to `size`, {height, width}; one number is the size of the shorter edge,
-- and the longer edge is at most max_size. nil as size resizes the longer edge to max_size.
-- `antialias` averages all pixels when bilinear and bicubic interpolation make an image smaller.
function geometry.resize(...)
  local img, size, mode, most, antialias = parse_resize(...)
  images.check("resize", img)
  args.check(size or most, "resize: expected argument 'max_size' when argument 'size' is nil")
  args.check(not (most and size and #size == 2),
    "resize: expected one integer for argument 'size' with argument 'max_size', got 2")
  if size then
    images.pair("resize", "size", size)
    args.check(not (most and most <= size[1]), "resize: expected an integer above 'size' for "
      .. "argument 'max_size', got %d", most or 0)
  end
  local h, w = img:size(-2), img:size(-1)
  args.check(h > 0 and w > 0, "resize: expected an image with pixels, got shape %s",
    img.shape)
  local height, width = resized_size(h, w, size or {}, most)
  height, width = math.max(height, 1), math.max(width, 1)
  if height == h and width == w then return img end
  local smooth = mode == "bilinear" or mode == "bicubic"
  local native = images.is_float(img) or img.dtype == "uint8"
  local x = images.batch(img)
  if not native then x = x:to "float32" end
  x = lt.F.interpolate(x, {height, width}, {mode = mode, antialias = smooth and antialias})
  if not native then x = x:round():to(img.dtype) end
  return images.unbatch(x, img)
end

-- Returns left, right, top and bottom of a padding: 1, 2 or 4 integers.
local function sides(title, padding)
  local n = #padding
  args.check(n == 1 or n == 2 or n == 4,
    "%s: expected 1, 2 or 4 integers for argument 'padding', got %d", title, n)
  local left, top = padding[1], padding[2] or padding[1]
  return left, padding[3] or left, top, padding[4] or top
end

-- Returns {..., W} with columns mirrored at the edges, edge included, in the dim `dim`.
local function pad_symmetric(img, dim, before, after)
  local n, list = img:size(dim), {}
  args.check(before <= n and after <= n, "pad: expected a padding of at most %d for mode "
    .. "'symmetric', got %d", n, math.max(before, after))
  for i = before, 1, -1 do list[#list + 1] = i end
  for i = 1, n do list[#list + 1] = i end
  for i = n, n - after + 1, -1 do list[#list + 1] = i end
  return img:index_select(dim, lt.tensor(list, {dtype = "int64", device = img.device}))
end

-- Returns {..., C, H, W} with a border of the values `fill`, one per channel.
local function pad_colors(img, left, right, top, bottom, fill)
  local inside = lt.F.pad(lt.ones_like(img, {dtype = "bool"}), {left, right, top, bottom},
    "constant", 0)
  local out = lt.F.pad(img, {left, right, top, bottom}, "constant", 0)
  local color = lt.tensor(fill, {device = img.device}):to(img.dtype):reshape(-1, 1, 1)
  return lt.where(inside, out, color)
end

local PADDING = "'constant'|'edge'|'reflect'|'symmetric' padding_mode = 'constant'"
local parse_pad = args.signature("pad",
  "Tensor img, ints padding, float|floats? fill = nil, " .. PADDING)

--- functional.pad(img, padding, fill = 0, padding_mode = "constant"): adds borders to {..., C, H,
-- W}. padding is one number, {left and right, top and bottom} or {left, top, right, bottom}; fill
-- is a number or a list with one for each channel. Modes: "constant", "edge" (repeats the outer
-- pixels), "reflect" (mirrors without the outer pixels) and "symmetric" (mirrors with them).
function geometry.pad(...)
  local img, padding, fill, mode = parse_pad(...)
  images.check("pad", img)
  local left, right, top, bottom = sides("pad", padding)
  if type(fill) == "table" and #fill == 1 then fill = fill[1] end
  if type(fill) == "table" then
    args.check(mode == "constant",
      "pad: expected a number for argument 'fill' with mode '%s', got a list", mode)
    return pad_colors(img, left, right, top, bottom, fill)
  end
  local x = images.batch(img)
  local all = {left, right, top, bottom}
  if mode == "constant" then
    if not images.is_float(img) then fill = math.tointeger((fill or 0) // 1) end
    x = lt.F.pad(x, all, "constant", fill or 0)
  elseif mode == "symmetric" then
    x = pad_symmetric(pad_symmetric(x, -1, left, right), -2, top, bottom)
  else
    local wide = images.is_float(img) and x or x:to "float32"
    x = lt.F.pad(wide, all, mode == "edge" and "replicate" or mode):to(img.dtype)
  end
  return images.unbatch(x, img)
end

-- Returns the part of {..., C, H, W} at the offset (top, left), with zeros outside the image.
local function crop(img, top, left, height, width)
  local h, w = img:size(-2), img:size(-1)
  local bottom, right = top + height, left + width
  local y1, y2, x1, x2 = math.max(top, 0), math.min(bottom, h), math.max(left, 0),
    math.min(right, w)
  local rows, columns = math.max(y2 - y1, 0), math.max(x2 - x1, 0)
  if rows == 0 or columns == 0 then
    local shape = {}
    for d = 1, img.ndim - 2 do shape[d] = img:size(d) end
    shape[#shape + 1], shape[#shape + 2] = height, width
    return img:new_zeros(shape)
  end
  local part = img:narrow(-2, y1 + 1, rows):narrow(-1, x1 + 1, columns)
  if rows == height and columns == width then return part end
  return lt.F.pad(part, {x1 - left, right - x2, y1 - top, bottom - y2}, "constant", 0)
end

local parse_crop = args.signature("crop",
  "Tensor img, int top, int left, int(>=0) height, int(>=0) width")

--- functional.crop(img, top, left, height, width): the part of {..., C, H, W} whose corner is
-- `top` rows and `left` columns from that of the image (0, 0 is the image's corner; offsets are no
-- indices). What is outside the image is 0. A part inside it is a view.
function geometry.crop(...)
  local img, top, left, height, width = parse_crop(...)
  return crop(images.check("crop", img, 2), top, left, height, width)
end

-- Rounds half to even, as Python's round.
local function rounded(x)
  local low = x // 1
  local rest = x - low
  if rest > 0.5 or rest == 0.5 and low % 2 == 1 then low = low + 1 end
  return math.tointeger(low)
end

local parse_center = args.signature("center_crop", "Tensor img, ints output_size")

--- functional.center_crop(img, output_size): the center of {..., C, H, W}, of the size {height,
-- width} or one number for both; a smaller image is padded with 0.
function geometry.center_crop(...)
  local img, size = parse_center(...)
  images.check("center_crop", img, 2)
  local height, width = images.pair("center_crop", "output_size", size)
  local h, w = img:size(-2), img:size(-1)
  if height > h or width > w then
    local x, y = math.max(width - w, 0), math.max(height - h, 0)
    img = lt.F.pad(img, {x // 2, (x + 1) // 2, y // 2, (y + 1) // 2}, "constant", 0)
    h, w = img:size(-2), img:size(-1)
  end
  return crop(img, rounded((h - height) / 2), rounded((w - width) / 2), height, width)
end

local parse_resized_crop = args.signature("resized_crop", "Tensor img, int top, int left, "
  .. "int(>=1) height, int(>=1) width, ints size, "
  .. "'nearest'|'nearest-exact'|'bilinear'|'bicubic' interpolation = 'bilinear', "
  .. "bool antialias = true")

--- functional.resized_crop(img, top, left, height, width, size, interpolation = "bilinear",
-- antialias = true): functional.crop, then functional.resize.
function geometry.resized_crop(...)
  local img, top, left, height, width, size, mode, antialias = parse_resized_crop(...)
  images.check("resized_crop", img)
  return geometry.resize(crop(img, top, left, height, width), size, mode, nil, antialias)
end

local function five_crop(title, img, size)
  images.check(title, img, 2)
  local height, width = images.pair(title, "size", size)
  local h, w = img:size(-2), img:size(-1)
  args.check(height <= h and width <= w, "%s: expected a size of at most {%d, %d} for argument "
    .. "'size', got {%d, %d}", title, h, w, height, width)
  return {crop(img, 0, 0, height, width), crop(img, 0, w - width, height, width),
    crop(img, h - height, 0, height, width), crop(img, h - height, w - width, height, width),
    geometry.center_crop(img, {height, width})}
end

local parse_five = args.signature("five_crop", "Tensor img, ints size")

--- functional.five_crop(img, size): returns the list of the crops at the corners (top left, top
-- right, bottom left, bottom right) and at the center. Raises an error when the image is smaller.
function geometry.five_crop(...)
  local img, size = parse_five(...)
  return five_crop("five_crop", img, size)
end

local parse_ten = args.signature("ten_crop",
  "Tensor img, ints size, bool vertical_flip = false")

--- functional.ten_crop(img, size, vertical_flip = false): returns the list of the five crops of
-- functional.five_crop and those of the mirrored image.
function geometry.ten_crop(...)
  local img, size, vertical = parse_ten(...)
  local list = five_crop("ten_crop", img, size)
  return table.move(five_crop("ten_crop", img:flip(vertical and -2 or -1), size), 1, 5, 6, list)
end

return geometry
