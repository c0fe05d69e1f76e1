--- The command :image: a tensor as an image in the terminal or in a file.

local core = require "lutra.core"
local host = require "lutra.repl.host"
local command_line = require "lutra.repl.command_line"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local image = {}

local MOST, GAP = 64, 1 -- the maximum number of images of a batch, pixels between them

local function fail(message, ...) error("image: " .. message:format(...), 0) end

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

local function write_file(list, lo, hi, path)
  if not (path:find "%.p[pgn]m$") then
    fail("expected a file name that ends with .ppm or .pgm, got \"%s\"", path)
  end
  local t, pixels = list[1], require "lutra.internal.plot.pixels"
  local whole = pixels.ppm(pixels.scale(t, lo, hi, t:size(3), t:size(2)))
  local ok, why = require("lutra.repl.files").write(path, whole)
  if not ok then fail("cannot write %s", why) end
  io.stdout:write(("wrote %d x %d pixels to %s\n"):format(t:size(3), t:size(2), path))
end

local function caption(t, shown, count, note)
  local parts = {inspect.shape(t) .. " " .. t.dtype}
  if shown < count then parts[#parts + 1] = ("%d of %s"):format(shown, texts.count(count)) end
  if note then parts[#parts + 1] = note end
  return texts.wrap(table.concat(parts, ", "), style.width() - 1, 0)
end

--- Shapes are {H, W}, {C, H, W} and {H, W, C} with one, three or four channels, and batches of
-- these. Values are 0 to 1, or bytes 0 to 255; otherwise the least value is black and the largest
-- white. Large images are scaled to the terminal. --out FILE writes the image, of a batch the
-- first one, to a file.
function image.image(session, text)
  local expression, options = command_line.options("image", text, {out = "value"})
  local value = inspect.values(session, "image", expression)[1]
  if not core.is_tensor(value) then
    fail("expected a tensor, got %s", inspect.a(value))
  end
  local t = require("lutra.internal.plot.data").tensor(value, "image")
  local pixels = require "lutra.internal.plot.pixels"
  local list, count = pixels.split(t, options.out and 1 or MOST)
  local lo, hi, note = pixels.range(list)
  if options.out then return write_file(list, lo, hi, options.out) end
  io.stdout:write(table.concat(draw(list, lo, hi), "\n"), "\n")
  io.stdout:write(style.paint("faint", caption(value, #list, count, note)), "\n")
end

return image
