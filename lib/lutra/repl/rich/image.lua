--- Tensors as images: for :image, lt.display and notebooks.

local core = require "lutra.core"
local host = require "lutra.repl.host"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local image = {}

local MOST, GAP = 64, 1 -- the maximum number of images of a batch, pixels between them
-- Pixels of a picture: at most; those of small images are enlarged by an integer up to SMALL.
local MOST_PIXELS, SMALL = 640, 256

-- Returns the colour depth of the terminal in bits, nil without colours.
local function depth()
  if not style.on(1) or not texts.is_utf8() then return nil end
  local says = os.getenv "COLORTERM" or ""
  return (says:find "truecolor" or says:find "24bit") and 24 or 8
end

-- Returns the columns and rows of pixels that fit on the terminal.
local function room()
  local _, rows = host.terminal_size()
  return style.width() - 1, 2 * math.max(4, (rows or 26) - 3)
end

-- Returns the number of images of a batch per row, and their size: the largest at which all fit,
-- in as few rows as possible.
local function grid(count, width, height, room_x, room_y)
  local best
  for columns = 1, count do
    local rows = (count + columns - 1) // columns
    local cell_x, cell_y = (room_x + GAP) // columns - GAP, (room_y + GAP) // rows - GAP
    if cell_x >= 1 and cell_y >= 1 then
      local w, h = require("lutra.internal.plot.pixels").fit(width, height, cell_x, cell_y)
      if not best or w * h >= best.width * best.height then
        best = {columns = columns, width = w, height = h}
      end
    end
  end
  return best
end

-- Copies the rows of image number i into its position among all rows.
local function paste(all, rows, i, place)
  local top = (i - 1) // place.columns * (place.height + GAP)
  local left = (i - 1) % place.columns * (place.width + GAP)
  for y, row in ipairs(rows) do
    all[top + y] = all[top + y] or {}
    for x, pixel in ipairs(row) do all[top + y][left + x] = pixel end
  end
end

local function draw(list, lo, hi)
  local pixels, all = require "lutra.internal.plot.pixels", {}
  local room_x, room_y = room()
  local place = grid(#list, list[1]:size(3), list[1]:size(2), room_x, room_y)
  for i, t in ipairs(list) do
    paste(all, pixels.rows(pixels.scale(t, lo, hi, place.width, place.height)), i, place)
  end
  local last = 0
  for y in pairs(all) do last = math.max(last, y) end
  for y = 1, last do all[y] = all[y] or {} end
  local columns = math.min(#list, place.columns)
  local width = columns * (place.width + GAP) - GAP
  return require("lutra.internal.plot.blocks").lines(all, width, depth())
end

local function caption(t, shown, count, note)
  local parts = {inspect.shape(t) .. " " .. t.dtype}
  if shown < count then parts[#parts + 1] = ("%d of %s"):format(shown, texts.count(count)) end
  if note then parts[#parts + 1] = note end
  return texts.wrap(table.concat(parts, ", "), style.width() - 1, 0)
end

-- Returns the images of a tensor as views {channels, height, width}, at most `limit`; their number;
-- the least and the largest value, and a note on these. Raises an error for other values.
local function read(value, limit)
  if not core.is_tensor(value) then
    error(("image: expected a tensor, got %s"):format(inspect.a(value)), 0)
  end
  local pixels = require "lutra.internal.plot.pixels"
  local t = require("lutra.internal.plot.data").tensor(value, "image")
  local list, count = pixels.split(t, limit)
  local lo, hi, note = pixels.range(list)
  return {list = list, count = count, lo = lo, hi = hi, note = note}
end
image.read = read

--- Returns a tensor as lines of colours or characters for the terminal, with a caption.
function image.text(value)
  local found = read(value, MOST)
  return table.concat(draw(found.list, found.lo, found.hi), "\n") .. "\n"
    .. style.paint("faint", caption(value, #found.list, found.count, found.note))
end

-- Returns an image of values 0 to 1 as bytes {height, width, 4}, opaque, enlarged by an integer.
local function enlarged(t, times)
  local lt = require "lutra"
  t = (t * 255):round():to("cpu"):to("uint8")
  if t:size(1) == 1 then t = t:expand(3, t:size(2), t:size(3)) end
  t = lt.cat({t, lt.full({1, t:size(2), t:size(3)}, 255, {dtype = "uint8", device = "cpu"})}, 1)
  t = t:permute(2, 3, 1)
  if times == 1 then return t end
  return t:repeat_interleave(times, 1):repeat_interleave(times, 2)
end

-- Returns images of the same size in a grid, with transparent gaps.
local function tiled(list)
  local lt = require "lutra"
  if #list == 1 then return list[1] end
  local columns = math.ceil(math.sqrt(#list))
  local height, width, rows = list[1]:size(1), list[1]:size(2), {}
  local function blank(h, w) return lt.zeros({h, w, 4}, {dtype = "uint8", device = "cpu"}) end
  for i = 1, #list, columns do
    local row = {}
    for k = i, i + columns - 1 do
      if k > i then row[#row + 1] = blank(height, 2 * GAP) end
      row[#row + 1] = list[k] or blank(height, width)
    end
    if i > 1 then rows[#rows + 1] = blank(2 * GAP, columns * (width + 2 * GAP) - 2 * GAP) end
    rows[#rows + 1] = lt.cat(row, 2)
  end
  return lt.cat(rows, 1)
end

--- Returns a tensor as the bytes of a PNG file; of a batch a grid of up to 64 images. Large images
-- are scaled down, small ones enlarged.
function image.png(value)
  return require("lutra").no_grad(function()
    local pixels, found = require "lutra.internal.plot.pixels", read(value, MOST)
    local columns = math.ceil(math.sqrt(#found.list))
    local size = math.max(1, MOST_PIXELS // columns)
    local w, h = pixels.fit(found.list[1]:size(3), found.list[1]:size(2), size, size)
    local times = math.max(1, SMALL // columns // math.max(w, h))
    local list = {}
    for i, t in ipairs(found.list) do
      list[i] = enlarged(pixels.scale(t, found.lo, found.hi, w, h), times)
    end
    return require("lutra.internal.png").encode(tiled(list):contiguous())
  end)
end

return image
