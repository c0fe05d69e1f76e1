--- A canvas of dots, several per character: 2 x 4 braille dots, or 1 x 2 in ASCII (. ' :).
--
-- Dots are numbered from 1, from the left and from the top; dots outside are ignored. A character
-- has the colour of the dot drawn last.

local canvas = {}
canvas.__index = canvas

-- The bits of the dots of a braille pattern in Unicode, by column and row.
local braille = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}
local ascii = {{1, 2}}
local ascii_marks = {[0] = " ", "'", ".", ":"}

--- Returns a canvas of so many characters. Its fields width and height count dots.
function canvas.new(columns, rows, utf8_terminal)
  local bits = utf8_terminal and braille or ascii
  return setmetatable({
    columns = columns, rows = rows, bits = bits, is_utf8 = utf8_terminal,
    dots_x = #bits, dots_y = #bits[1], width = columns * #bits, height = rows * #bits[1],
    cells = {}, colors = {},
  }, canvas)
end

--- Draws one dot.
function canvas:dot(x, y, color)
  if x < 1 or y < 1 or x > self.width or y > self.height then return end
  local column, row = (x - 1) // self.dots_x, (y - 1) // self.dots_y
  local cell = row * self.columns + column
  local bit = self.bits[(x - 1) % self.dots_x + 1][(y - 1) % self.dots_y + 1]
  self.cells[cell] = (self.cells[cell] or 0) | bit
  self.colors[cell] = color
end

--- Draws a straight line, including its ends.
function canvas:line(x0, y0, x1, y1, color)
  local steps = math.max(math.abs(x1 - x0), math.abs(y1 - y0))
  for i = 0, steps do
    local share = steps == 0 and 0 or i / steps
    self:dot(math.floor(x0 + (x1 - x0) * share + 0.5), math.floor(y0 + (y1 - y0) * share + 0.5),
      color)
  end
end

local function character(self, bits)
  if not self.is_utf8 then return ascii_marks[bits] end
  return bits == 0 and " " or utf8.char(0x2800 + bits)
end

-- Returns the characters of a row up to its last dot as runs of one colour: {text, color}.
local function runs(self, row)
  local list, last = {}, 0
  for column = 1, self.columns do
    if self.cells[row * self.columns + column - 1] then last = column end
  end
  for column = 1, last do
    local cell = row * self.columns + column - 1
    local text, color = character(self, self.cells[cell] or 0), self.colors[cell]
    local run = list[#list]
    if run and (run.color == color or text == " ") then
      run.text = run.text .. text
    else
      list[#list + 1] = {text = text, color = color}
    end
  end
  return list
end

--- Returns the rows as strings without trailing spaces. paint(color, text) colours them.
function canvas:lines(paint)
  local lines = {}
  for row = 0, self.rows - 1 do
    local parts = {}
    for i, run in ipairs(runs(self, row)) do
      parts[i] = run.color and paint and paint(run.color, run.text) or run.text
    end
    lines[row + 1] = table.concat(parts)
  end
  return lines
end

return canvas
