--- lt.vision.utils: grids of images, image files, boxes.

local lt = require "lutra"
local args = require "lutra.internal.args"

local utils = {}

-- Returns the images as {N, C, H, W} with at least 3 channels.
local function stacked(title, images)
  if args.is_plain(images) then
    args.check(#images > 0, "%s: expected at least one image for argument 'tensor'", title)
    for i, x in ipairs(images) do
      args.expect(lt.is_tensor(x), title, "a tensor", ("tensor[%d]"):format(i), x)
    end
    images = lt.stack(images)
  end
  args.expect(lt.is_tensor(images), title, "a tensor or a list of tensors", "tensor", images)
  args.check(images.ndim >= 2 and images.ndim <= 4,
    "%s: expected 2 to 4 dimensions for argument 'tensor', got shape %s", title,
    images.shape)
  if images.ndim == 2 then images = images:unsqueeze(1) end
  if images.ndim == 3 then
    if images:size(1) == 1 then images = lt.cat({images, images, images}, 1) end
    images = images:unsqueeze(1)
  end
  if images:size(2) == 1 then images = lt.cat({images, images, images}, 2) end
  return images
end

-- Scales from low .. high to 0 .. 1.
local function scaled(x, range)
  local low = range and range[1] or x:min():item()
  local high = range and range[2] or x:max():item()
  return (x:clamp(low, high) - low) / math.max(high - low, 1e-5)
end

local parse_grid = args.signature("make_grid", "list|Tensor tensor, int(>=1) nrow = 8, "
  .. "int(>=0) padding = 2, bool normalize = false, floats? value_range = nil, "
  .. "bool scale_each = false, float pad_value = 0")

local function make_grid(...)
  local images, nrow, padding, normalize, range, each, pad_value = parse_grid(...)
  args.check(not range or #range == 2,
    "make_grid: expected {low, high} for argument 'value_range', got %d numbers", range and #range)
  local x = stacked("make_grid", images)
  if normalize and each then
    local list = {}
    for i, image in ipairs(x:unbind(1)) do list[i] = scaled(image, range) end
    x = lt.stack(list)
  elseif normalize then
    x = scaled(x, range)
  end
  local n = x:size(1)
  if n == 1 then return x:squeeze(1) end
  local columns = math.min(nrow, n)
  local rows = (n + columns - 1) // columns
  local height, width = x:size(3) + padding, x:size(4) + padding
  if not x.dtype:find "float" then pad_value = pad_value // 1 end
  local grid = lt.full({x:size(2), height * rows + padding, width * columns + padding}, pad_value,
    {dtype = x.dtype, device = x.device})
  for i = 0, n - 1 do
    local y0, x0 = i // columns * height + padding + 1, i % columns * width + padding + 1
    grid:narrow(2, y0, x:size(3)):narrow(3, x0, x:size(4)):copy_(x[i + 1])
  end
  return grid
end

--- utils.make_grid(tensor, nrow = 8, padding = 2, normalize = false, value_range = nil, scale_each
-- = false, pad_value = 0): one image {C, H, W} with the images {N, C, H, W}, or of a list of {C,
-- H, W}, in rows of nrow, `padding` pixels of pad_value apart. Gray images get 3 channels.
-- `normalize` scales the values from value_range (or from the smallest and the largest value, with
-- scale_each of each image) to 0 .. 1.
function utils.make_grid(...) return lt.no_grad(make_grid, ...) end

local parse_save = args.signature("save_image", "list|Tensor tensor, string fp, "
  .. "string? format = nil, int(>=1) nrow = 8, int(>=0) padding = 2, bool normalize = false, "
  .. "floats? value_range = nil, bool scale_each = false, float pad_value = 0")

--- utils.save_image(tensor, fp, format = nil, ...): writes utils.make_grid of the images, floats
-- from 0 to 1, to the file `fp`: PNG or JPEG, by its name or by `format`. Further arguments are
-- those of make_grid.
function utils.save_image(...)
  local images, path, format, nrow, padding, normalize, range, each, pad_value = parse_save(...)
  local grid = utils.make_grid(images, nrow, padding, normalize, range, each, pad_value)
  if grid.dtype ~= "uint8" then
    grid = (grid * 255 + 0.5):clamp(0, 255):to{device = "cpu", dtype = "uint8"}
  end
  local io = lt.vision.io
  format = (format or path:match "%.(%w+)$" or ""):lower()
  if format == "png" then return io.write_png(grid, path) end
  if format == "jpg" or format == "jpeg" then return io.write_jpeg(grid, path) end
  return args.fail("save_image: expected a file name that ends in .png, .jpg or .jpeg for argument "
    .. "'fp', got %q", path)
end

-- The colors that are used in turns.
local palette = {{31, 119, 180}, {255, 127, 14}, {44, 160, 44}, {214, 39, 40}, {148, 103, 189},
  {140, 86, 75}, {227, 119, 194}, {127, 127, 127}, {188, 189, 34}, {23, 190, 207}}

-- Returns the color of box i: {r, g, b} from 0 to 255.
local function color_of(colors, i)
  if colors == nil then return palette[(i - 1) % #palette + 1] end
  if type(colors[1]) == "number" then return colors end
  return args.check(colors[i], "draw_bounding_boxes: expected a color for each box for argument "
    .. "'colors', got %d", #colors)
end

local parse_boxes = args.signature("draw_bounding_boxes", "Tensor image, Tensor boxes, "
  .. "list? labels = nil, list? colors = nil, bool fill = false, int(>=1) width = 1")

--- utils.draw_bounding_boxes(image, boxes, labels = nil, colors = nil, fill = false, width = 1):
-- returns the RGB image {3, H, W} with the boxes {N, 4} drawn: x and y of the left top and of the
-- right bottom pixel, from 0. colors is {r, g, b} from 0 to 255, or a list of them; `width` is that
-- of the lines in pixels. `fill` blends each box with its color. Texts (`labels`) are not yet
-- supported.
function utils.draw_bounding_boxes(...)
  local image, boxes, labels, colors, fill, width = parse_boxes(...)
  args.check(not labels, "draw_bounding_boxes: argument 'labels' is not yet supported")
  args.check(image.ndim == 3 and (image:size(1) == 3 or image:size(1) == 1),
    "draw_bounding_boxes: expected an image of shape {3, H, W} for argument 'image', got shape %s",
    image.shape)
  args.check(boxes:numel() == 0 or boxes.ndim == 2 and boxes:size(2) == 4,
    "draw_bounding_boxes: expected shape {N, 4} for argument 'boxes', got %s",
    boxes.shape)
  local out = image:size(1) == 1 and lt.cat({image, image, image}, 1) or image:clone()
  local h, w, scale = out:size(2), out:size(3), out.dtype:find "float" and 255 or 1
  local function paint(x1, y1, x2, y2, color, opacity)
    x1, y1, x2, y2 = math.max(x1, 0), math.max(y1, 0), math.min(x2, w - 1), math.min(y2, h - 1)
    if x2 < x1 or y2 < y1 then return end
    local part = out:narrow(2, y1 + 1, y2 - y1 + 1):narrow(3, x1 + 1, x2 - x1 + 1)
    for c = 1, 3 do
      local channel = part[c]
      local value = scale == 1 and color[c] or color[c] / scale
      if opacity < 1 then value = channel * (1 - opacity) + value * opacity end
      channel:copy_(lt.is_tensor(value) and value or lt.full_like(channel, value))
    end
  end
  for i, box in ipairs(boxes:numel() > 0 and boxes:to("int64"):totable() or {}) do
    local x1, y1, x2, y2 = table.unpack(box)
    args.check(x1 <= x2 and y1 <= y2, "draw_bounding_boxes: expected the left top before the right "
      .. "bottom pixel in box %d", i)
    local color, k = color_of(colors, i), width - 1
    if fill then paint(x1, y1, x2, y2, color, 100 / 255) end
    paint(x1, y1, x2, y1 + k, color, 1)
    paint(x1, y2 - k, x2, y2, color, 1)
    paint(x1, y1, x1 + k, y2, color, 1)
    paint(x2 - k, y1, x2, y2, color, 1)
  end
  return out
end

return require("lutra.internal.strict_table").strict(utils, "utils")
