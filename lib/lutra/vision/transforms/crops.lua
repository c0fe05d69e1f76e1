--- Transforms that move pixels: sizes, crops, flips, padding, warps.

local args = require "lutra.internal.args"
local F = require "lutra.vision.transforms.functional"
local images = require "lutra.vision.transforms.images"
local transform = require "lutra.vision.transforms.transform"

local define, define_random = transform.define, transform.define_random
local crops = {}

local RESIZE = "'nearest'|'nearest-exact'|'bilinear'|'bicubic' interpolation = 'bilinear', "
local WARP = "'nearest'|'bilinear' interpolation = 'nearest', "
local PADDING = "'constant'|'edge'|'reflect'|'symmetric' padding_mode = 'constant'"

-- Checks an option that is a size.
local function check_size(self) images.pair(self:type_name(), "size", self.size) end

--- transforms.Resize(size, interpolation = "bilinear", max_size = nil, antialias = true): resizes
-- an image: see functional.resize.
crops.Resize = define("Resize", "ints? size, " .. RESIZE
  .. "int? max_size = nil, bool antialias = true", function(self, img)
  return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)
end)

--- transforms.CenterCrop(size): the center of an image: see functional.center_crop.
crops.CenterCrop = define("CenterCrop", "ints size", function(self, img)
  return F.center_crop(img, self.size)
end, check_size)

--- transforms.FiveCrop(size): the list of the crops at the corners and the center: see
-- functional.five_crop.
crops.FiveCrop = define("FiveCrop", "ints size", function(self, img)
  return F.five_crop(img, self.size)
end, check_size)

--- transforms.TenCrop(size, vertical_flip = false): the list of the five crops of an image and of
-- the mirrored image: see functional.ten_crop.
crops.TenCrop = define("TenCrop", "ints size, bool vertical_flip = false", function(self, img)
  return F.ten_crop(img, self.size, self.vertical_flip)
end, check_size)

--- transforms.Pad(padding, fill = 0, padding_mode = "constant"): adds borders: see functional.pad.
crops.Pad = define("Pad", "ints padding, float|floats? fill = nil, " .. PADDING,
  function(self, img) return F.pad(img, self.padding, self.fill, self.padding_mode) end,
  function(self) self.fill = self.fill or 0 end)

-- Returns {left, top, right, bottom} of a padding of 1, 2 or 4 integers.
local function sides(padding)
  if padding == nil then return {0, 0, 0, 0} end
  local x, y = padding[1], padding[2] or padding[1]
  return {x, y, padding[3] or x, padding[4] or y}
end

--- transforms.RandomCrop(size, padding = nil, pad_if_needed = false, fill = 0, padding_mode =
-- "constant"): a random part of the padded image, of the size {height, width} or one number for
-- both. pad_if_needed pads smaller images. Raises an error for an image that is smaller.
crops.RandomCrop = define("RandomCrop", "ints size, ints? padding = nil, "
  .. "bool pad_if_needed = false, float|floats? fill = nil, " .. PADDING, function(self, img)
  local height, width = images.pair("RandomCrop", "size", self.size)
  local padding = sides(self.padding)
  local _, h, w = table.unpack(F.get_dimensions(img))
  h, w = h + padding[2] + padding[4], w + padding[1] + padding[3]
  if self.pad_if_needed then
    local y, x = math.max(height - h, 0), math.max(width - w, 0)
    padding = {padding[1] + x, padding[2] + y, padding[3] + x, padding[4] + y}
    h, w = h + 2 * y, w + 2 * x
  end
  args.check(h >= height and w >= width, "RandomCrop: expected an image of at least {%d, %d} "
    .. "pixels, got {%d, %d}\nhint: pad_if_needed = true", height, width, h, w)
  if padding[1] + padding[2] + padding[3] + padding[4] > 0 then
    img = F.pad(img, padding, self.fill, self.padding_mode)
  end
  return F.crop(img, transform.offset(h - height), transform.offset(w - width), height, width)
end, function(self)
  check_size(self)
  self.fill = self.fill or 0
  local n = self.padding and #self.padding or 1
  args.check(n == 1 or n == 2 or n == 4,
    "RandomCrop: expected 1, 2 or 4 integers for argument 'padding', got %d", n)
end)

-- Returns top, left, height and width of a random part of an image of that size.
local function random_part(self, h, w)
  local ratios = self.ratio
  for _ = 1, 10 do
    local area = h * w * transform.uniform(self.scale[1], self.scale[2])
    local ratio = math.exp(transform.uniform(math.log(ratios[1]), math.log(ratios[2])))
    local pw, ph = transform.round((area * ratio) ^ 0.5), transform.round((area / ratio) ^ 0.5)
    if pw > 0 and pw <= w and ph > 0 and ph <= h then
      return transform.offset(h - ph), transform.offset(w - pw), ph, pw
    end
  end
  local ph, pw = h, w
  if w / h < ratios[1] then ph = math.min(transform.round(w / ratios[1]), h) end
  if w / h > ratios[2] then pw = math.min(transform.round(h * ratios[2]), w) end
  return (h - ph) // 2, (w - pw) // 2, ph, pw
end

--- transforms.RandomResizedCrop(size, scale = {0.08, 1}, ratio = {3/4, 4/3}, interpolation =
-- "bilinear", antialias = true): a random part of the image, of a random share of its area and
-- ratio of width to height, resized to `size`.
crops.RandomResizedCrop = define("RandomResizedCrop", "ints size, floats? scale = nil, "
  .. "floats? ratio = nil, " .. RESIZE .. "bool antialias = true", function(self, img)
  local _, h, w = table.unpack(F.get_dimensions(img))
  local top, left, height, width = random_part(self, h, w)
  local size = {images.pair("RandomResizedCrop", "size", self.size)}
  return F.resized_crop(img, top, left, height, width, size, self.interpolation, self.antialias)
end, function(self)
  self.scale, self.ratio = self.scale or {0.08, 1.0}, self.ratio or {3 / 4, 4 / 3}
  check_size(self)
  transform.check_range(self, "scale")
  transform.check_range(self, "ratio")
end)

--- transforms.RandomHorizontalFlip(p = 0.5): mirrors left to right with probability p.
crops.RandomHorizontalFlip = define_random("RandomHorizontalFlip", "float p = 0.5",
  function(_, img) return F.horizontal_flip(img) end)

--- transforms.RandomVerticalFlip(p = 0.5): mirrors top to bottom with probability p.
crops.RandomVerticalFlip = define_random("RandomVerticalFlip", "float p = 0.5",
  function(_, img) return F.vertical_flip(img) end)

--- transforms.RandomRotation(degrees, interpolation = "nearest", expand = false, center = nil, fill
-- = 0): rotates by a random angle from -degrees to degrees, or from degrees[1] to degrees[2]: see
-- functional.rotate.
crops.RandomRotation = define("RandomRotation", "float|floats degrees, " .. WARP
  .. "bool expand = false, floats? center = nil, float|floats? fill = nil", function(self, img)
  local angle = transform.uniform(self.degrees[1], self.degrees[2])
  return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)
end, function(self)
  self.fill = self.fill or 0
  transform.check_range(self, "degrees", 0.0)
end)

--- transforms.RandomAffine(degrees, translate = nil, scale = nil, shear = nil, interpolation =
-- "nearest", fill = 0, center = nil): functional.affine with random arguments: an angle from
-- `degrees`, as in RandomRotation; a translation of at most the shares translate {x, y} of width
-- and height; a scale from scale {low, high}; a shear in x from {low, high}, or in x and y from
-- {x low, x high, y low, y high}.
crops.RandomAffine = define("RandomAffine", "float|floats degrees, floats? translate = nil, "
  .. "floats? scale = nil, float|floats? shear = nil, " .. WARP
  .. "float|floats? fill = nil, floats? center = nil", function(self, img)
  local _, h, w = table.unpack(F.get_dimensions(img))
  local angle = transform.uniform(self.degrees[1], self.degrees[2])
  local function moved(share, size)
    return transform.round(transform.uniform(-share * size, share * size))
  end
  local move, shear, scale = {0, 0}, {0.0, 0.0}, 1.0
  if self.translate then move = {moved(self.translate[1], w), moved(self.translate[2], h)} end
  if self.scale then scale = transform.uniform(self.scale[1], self.scale[2]) end
  if self.shear then
    shear[1] = transform.uniform(self.shear[1], self.shear[2])
    if self.shear[3] then shear[2] = transform.uniform(self.shear[3], self.shear[4]) end
  end
  return F.affine(img, angle, move, scale, shear, self.interpolation, self.fill, self.center)
end, function(self)
  self.fill = self.fill or 0
  transform.check_range(self, "degrees", 0.0)
  transform.check_range(self, "scale")
  if self.scale then
    args.check(self.scale[1] > 0,
      "RandomAffine: expected numbers above 0 for argument 'scale', got %g", self.scale[1])
  end
  if type(self.shear) == "number" then transform.check_range(self, "shear", 0.0) end
  local shear, move = self.shear or {0, 0}, self.translate or {0, 0}
  args.check(#shear == 2 or #shear == 4,
    "RandomAffine: expected 1, 2 or 4 numbers for argument 'shear', got %d", #shear)
  args.check(#move == 2 and math.min(move[1], move[2]) >= 0 and math.max(move[1], move[2]) <= 1,
    "RandomAffine: expected {x, y} from 0 to 1 for argument 'translate'")
end)

--- transforms.RandomPerspective(distortion_scale = 0.5, p = 0.5, interpolation = "bilinear", fill =
-- 0): moves the corners, with probability p, by at most half of distortion_scale of the size.
crops.RandomPerspective = define_random("RandomPerspective", "float distortion_scale = 0.5, "
  .. "float p = 0.5, 'nearest'|'bilinear' interpolation = 'bilinear', "
  .. "float|floats? fill = nil", function(self, img)
  local _, h, w = table.unpack(F.get_dimensions(img))
  local x = math.tointeger(self.distortion_scale * (w // 2) // 1)
  local y = math.tointeger(self.distortion_scale * (h // 2) // 1)
  local function corner(right, below)
    local dx, dy = transform.offset(x), transform.offset(y)
    return {right and w - 1 - dx or dx, below and h - 1 - dy or dy}
  end
  local starts = {{0, 0}, {w - 1, 0}, {w - 1, h - 1}, {0, h - 1}}
  local ends = {corner(false, false), corner(true, false), corner(true, true), corner(false, true)}
  return F.perspective(img, starts, ends, self.interpolation, self.fill)
end, function(self)
  self.fill = self.fill or 0
  args.check(self.distortion_scale >= 0 and self.distortion_scale <= 1,
    "RandomPerspective: expected a number from 0 to 1 for argument 'distortion_scale', got %g",
    self.distortion_scale)
end)

return crops
