--- The command :image: a tensor as an image in the terminal, in a notebook or in a file.

local command_line = require "lutra.repl.command_line"
local inspect = require "lutra.repl.inspect"

local image = {}

local function fail(message, ...) error("image: " .. message:format(...), 0) end

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

--- Shapes are {H, W}, {C, H, W} and {H, W, C} with one, three or four channels, and batches of
-- these. Values are 0 to 1, or bytes 0 to 255; otherwise the least value is black and the largest
-- white. Large images are scaled to the terminal. In a notebook the image is a PNG picture. --out
-- FILE writes the image, of a batch the first one, to a file.
function image.image(session, text)
  local expression, options = command_line.options("image", text, {out = "value"})
  local value = inspect.values(session, "image", expression)[1]
  local rich = require "lutra.repl.rich.image"
  if options.out then
    local found = rich.read(value, 1)
    return write_file(found.list, found.lo, found.hi, options.out)
  end
  require("lutra.repl.rich.show")(rich.text(value), function()
    return {["image/png"] = rich.png(value)}
  end)
end

return image
