--- The map of a device: a bar of its memory usage, and the tensors on it.
--
-- :devices shows the complete map, :transfers a short one. A device is an entry of
-- lutra.repl.occupancy; a view is {width, utf8, paint}, the options of lutra.internal.plot.

local bars = require "lutra.internal.plot.bars"
local texts = require "lutra.internal.text"

local device_map = {}

local SHOWN, FEW = 8, 4 -- the maximum number of variables of a device, and in a short map
local LABEL = 9 -- columns in front of a bar

local kinds = {"used", "cached", "others"}

--- Returns the width of a bar in columns.
function device_map.bar_width(view) return math.min(40, view.width - LABEL - 4) end

--- Returns a bar of kinds (lutra.internal.plot.bars) with a label.
function device_map.bar_line(label, columns, view)
  return "  " .. texts.pad(label, LABEL) .. bars.line(columns, view.utf8, view.paint)
end

--- Returns the bytes in tensors, cached, and of other programs; nil for a device without a memory
-- limit.
function device_map.shares(entry)
  if not entry.total then return nil end
  local reserved = entry.reserved or entry.allocated
  local cached = math.max(0, reserved - entry.allocated)
  local used = entry.free and entry.total - entry.free or reserved
  return {entry.allocated, cached, math.max(0, used - reserved)}
end

--- Returns the bar of a device's memory usage, in which every nonzero part has at least one column;
-- nil as for shares.
function device_map.memory(label, entry, view)
  local shares, columns = device_map.shares(entry), {}
  if not shares then return nil end
  local width = device_map.bar_width(view)
  for i, share in ipairs(shares) do
    local n = entry.total > 0 and math.floor(share / entry.total * width + 0.5) or 0
    if n == 0 and share > 0 then n = 1 end
    for _ = 1, math.min(n, width - #columns) do columns[#columns + 1] = kinds[i] end
  end
  for i = #columns + 1, width do columns[i] = "free" end
  return device_map.bar_line(label, columns, view)
end

--- Returns the legend of that bar: a list of strings.
function device_map.legend(utf8)
  local m = bars.marks(utf8)
  return {m.used .. " tensors", m.cached .. " cached", m.others .. " others",
    m.free .. " free"}
end

--- Returns the tensors of a device as rows {name, bytes (string), note}: variables, the largest
-- first, and tensors that no variable holds.
function device_map.tensors(entry, limit)
  local rows, rest = {}, {bytes = 0, count = 0}
  for i, item in ipairs(entry.tensors) do
    if i <= (limit or SHOWN) then
      rows[i] = {name = item.name, bytes = texts.bytes(item.bytes),
        note = item.pinned and "pinned" or nil}
    else
      rest.bytes, rest.count = rest.bytes + item.bytes, rest.count + 1
    end
  end
  if rest.count > 0 then
    rows[#rows + 1] = {name = texts.plural(rest.count, "more variable"),
      bytes = texts.bytes(rest.bytes)}
  end
  if (entry.other or 0) > 0 then
    rows[#rows + 1] = {name = "other tensors", bytes = texts.bytes(entry.other)}
  end
  return rows
end

-- Returns "x 4.0 MiB, y 8 B (pinned)" in lines of `width` columns; long names are truncated.
local function names(rows, width)
  local items = {}
  for i, row in ipairs(rows) do
    local rest = " " .. row.bytes .. (row.note and " (" .. row.note .. ")" or "")
    items[i] = texts.cut(row.name, width - texts.width(rest) - 1) .. rest
  end
  return texts.items(items, width)
end

--- Returns the devices of a list that hold tensors as a few lines: the memory usage of an
-- accelerator, and the tensors. The host has no bar, as its memory is also used by other programs.
function device_map.short(list, view)
  local lines, drawn = {"memory in use after the run:"}, false
  for _, entry in ipairs(list) do
    local label, rows = entry.device, device_map.tensors(entry, FEW)
    local live = names(rows, view.width - LABEL - 2)
    if entry.why then
      live = {"not available, see :devices"}
    elseif #rows > 0 and entry.reserved then
      lines[#lines + 1] = device_map.memory(label, entry, view)
      label, drawn = "", true
    end
    for _, line in ipairs(live) do
      lines[#lines + 1] = "  " .. texts.pad(label, LABEL) .. line
      label = ""
    end
  end
  if #lines == 1 then lines[1] = lines[1] .. " no tensors" end
  for _, line in ipairs(drawn and texts.items(device_map.legend(view.utf8), view.width) or {}) do
    lines[#lines + 1] = view.paint("faint", line)
  end
  return lines
end

return device_map
