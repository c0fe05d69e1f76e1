-- Draws docs/images/ring.svg: a ring of four ranks, and what each of them has after every step of
-- an all_reduce.
--
--   lua5.4 tools/docs/ring.lua >docs/images/ring.svg
--
-- The contents of the chunks come from running the algorithm: in step s rank i sends chunk (i - s)
-- mod p to the next rank, which adds it in the first p - 1 steps and takes it in the others. The
-- picture has colours for a light and for a dark page. A test compares the file with this output.

local P = 4
local CELL, ROW, GAP, TOP, MARGIN = 52, 24, 20, 46, 7
local PANEL = P * CELL
local WIDTH = 4 * PANEL + 5 * GAP
local HEIGHT = 2 * (TOP + P * ROW) + 3 * GAP - 4

local parts = {}
local function add(format, ...) parts[#parts + 1] = format:format(...) end

local function text(x, y, class, value) -- the middle of it is at x
  add('<text x="%g" y="%g" class="%s">%s</text>', x, y, class, value)
end

-- An arrow from left to right.
local function arrow(x, y, length)
  add('<path class="arrow" d="M%g %g h%g m-5 -4 l5 4 l-5 4"/>', x, y, length)
end

-- has[rank][chunk]: the list of ranks whose numbers are in it.
local function start()
  local has = {}
  for rank = 0, P - 1 do
    has[rank] = {}
    for chunk = 0, P - 1 do has[rank][chunk] = {rank} end
  end
  return has
end

local function sent(rank, step) return (rank - step) % P end

-- Returns what the ranks have after step `step`.
local function advance(has, step)
  local after = {}
  for rank = 0, P - 1 do
    after[rank] = {}
    for chunk = 0, P - 1 do after[rank][chunk] = has[rank][chunk] end
  end
  for rank = 0, P - 1 do
    local to, chunk = (rank + 1) % P, sent(rank, step)
    local received = has[rank][chunk]
    if step < P - 1 then
      received = table.move(received, 1, #received, 1, {})
      table.insert(received, to)
    end
    after[to][chunk] = received
  end
  return after
end

-- Draws a state, and the messages of the next step as arrows.
local function panel(x, y, title, has, step)
  text(x + PANEL / 2, y + 12, "title", title)
  for rank = 0, P - 1 do
    text(x + (rank + 0.5) * CELL, y + 32, "rank", "rank " .. rank)
    for chunk = 0, P - 1 do
      local list = has[rank][chunk]
      local left, top = x + rank * CELL, y + TOP - 6 + chunk * ROW
      add('<rect x="%g" y="%g" width="%g" height="%g" rx="3" class="n%d"/>', left + MARGIN,
        top + 1, CELL - 2 * MARGIN, ROW - 2, #list)
      text(left + CELL / 2, top + ROW / 2 + 4, #list == P and "cell last" or "cell",
        #list == P and "sum" or table.concat(list, "+"))
    end
  end
  if step >= 2 * (P - 1) then return end
  for rank = 0, P - 1 do
    local middle = y + TOP - 6 + (sent(rank, step) + 0.5) * ROW
    arrow(x + (rank + 1) * CELL - 6, middle, 12)
    if rank == P - 1 then arrow(x - 6, middle, 12) end -- the ring: it arrives at rank 0
  end
end

-- Draws the ranks as a ring.
local function ring(x, y)
  text(x + PANEL / 2, y + 12, "title", "the ring")
  local places = {[0] = {38, 46}, {138, 46}, {138, 122}, {38, 122}}
  local lines = {"M62 46 H112 m-6 -4 l6 4 l-6 4", "M138 66 V100 m-4 -6 l4 6 l4 -6",
    "M114 122 H64 m6 -4 l-6 4 l6 4", "M38 102 V68 m-4 6 l4 -6 l4 6"}
  for _, line in ipairs(lines) do
    add('<path class="arrow" transform="translate(%g %g)" d="%s"/>', x, y, line)
  end
  for rank = 0, P - 1 do
    local at = places[rank]
    add('<circle cx="%g" cy="%g" r="20" class="n1"/>', x + at[1], y + at[2])
    text(x + at[1], y + at[2] + 4, "cell", "rank " .. rank)
  end
end

ring(GAP + 16, GAP - 6)
local has = start()
for step = 0, 2 * (P - 1) do
  local place = step + 1
  local title = step == 0 and "start: four chunks each" or "after step " .. step
  if step == P - 1 then title = title .. ": reduce_scatter" end
  if step == 2 * (P - 1) then title = title .. ": all_reduce" end
  panel(GAP + place % 4 * (PANEL + GAP), GAP - 6 + place // 4 * (TOP + P * ROW + GAP), title, has,
    step)
  has = advance(has, step)
end

io.write(([[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
<title>An all_reduce of four ranks in a ring: the chunks of each rank after every step</title>
<!-- Made by tools/docs/ring.lua. -->
<style>
text { font: 12px ui-sans-serif, system-ui, sans-serif; text-anchor: middle; fill: #1f2937 }
.title { font-weight: bold } .cell { font-size: 10px }
.rank { font-size: 11px; fill: #57606a }
.page { fill: #ffffff } .arrow { stroke: #c2410c; stroke-width: 2; fill: none }
.n1 { fill: #e3ecf8 } .n2 { fill: #bcd3f0 } .n3 { fill: #8db4e6 } .n4 { fill: #1d4f91 }
.last { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e9f0 } .rank { fill: #aab4c2 } .page { fill: #1e2430 } .arrow { stroke: #fb923c }
  .n1 { fill: #2c3a52 } .n2 { fill: #33507d } .n3 { fill: #3b68ab } .n4 { fill: #8fbcf5 }
  .last { fill: #14181f }
}
</style>
<rect width="100%%" height="100%%" rx="8" class="page"/>
%s
</svg>
]]):format(WIDTH, HEIGHT, WIDTH, HEIGHT, table.concat(parts, "\n")))
