--- :devices, each device with what lives there and how full it is.

local bars = require "lutra.plot.bars"
local flags = require "lutra.repl.flags"
local memory_map = require "lutra.plot.memory_map"
local occupancy = require "lutra.repl.occupancy"
local style = require "lutra.repl.style"
local texts = require "lutra.plot.texts"

local devices = {}

local SHOWN = 8 -- variables of a device

local kinds = {"used", "cached", "others"}
local LABEL = 9 -- columns in front of a bar

local function bar_line(label, columns)
  return "  " .. texts.pad(label, LABEL) .. bars.line(columns, texts.is_utf8(), style.paint)
end

-- A bar of `width` columns for shares of a whole; what is not nothing has at least a column.
local function bar(shares, whole, width)
  local columns = {}
  for i, share in ipairs(shares) do
    local n = whole > 0 and math.floor(share / whole * width + 0.5) or 0
    if n == 0 and share > 0 then n = 1 end
    for _ = 1, math.min(n, width - #columns) do columns[#columns + 1] = kinds[i] end
  end
  for i = #columns + 1, width do columns[i] = "free" end
  return bar_line("memory", columns)
end

-- Bytes in tensors, cached, and of other programs; nil where a device cannot be full.
local function shares(entry)
  if not entry.total then return nil end
  local reserved = entry.reserved or entry.allocated
  local cached = math.max(0, reserved - entry.allocated)
  local used = entry.free and entry.total - entry.free or reserved
  return {entry.allocated, cached, math.max(0, used - reserved)}
end

local function bar_width() return math.min(40, style.width() - LABEL - 5) end

-- " Emulated GPU", behind the device's name.
local function title_of(entry)
  local title = entry.title and entry.title ~= "" and " " .. entry.title or ""
  if entry.emulated and not title:find "mulated" then title = title .. " (emulated)" end
  return title
end

local function heading(entry)
  return style.paint("heading", entry.device)
    .. texts.cut(title_of(entry), style.width() - #entry.device - 1)
end

local function has_blocks(entry) return entry.segments ~= nil and #entry.segments > 0 end

-- The blocks of the allocator, an accelerator's that has any.
local function block_bar(entry)
  return bar_line("reserved", memory_map.columns(entry.segments, bar_width()))
end

local function cache_text(entry)
  local sum = memory_map.summary(entry.segments)
  if sum.cached == 0 then return texts.plural(sum.segments, "segment") .. ", nothing cached" end
  return ("%s, cached %s in %s, largest %s: fragmentation %.0f%%"):format(
    texts.plural(sum.segments, "segment"), texts.bytes(sum.cached),
    texts.plural(sum.blocks, "block"), texts.bytes(sum.largest), 100 * sum.fragmentation)
end

local function numbers(entry)
  local parts = {texts.bytes(entry.allocated) .. " in tensors"}
  if entry.reserved then parts[#parts + 1] = texts.bytes(entry.reserved) .. " reserved" end
  if entry.free then parts[#parts + 1] = texts.bytes(entry.free) .. " free" end
  if entry.total then parts[#parts + 1] = texts.bytes(entry.total) .. " in all" end
  return table.concat(parts, ", ")
end

local function indented(text) return "  " .. texts.wrap(text, style.width() - 1, 2) end

-- The variables of a device, largest first, and what else there is.
local function tenants(entry)
  local rows, rest = {}, {bytes = 0, count = 0}
  for i, item in ipairs(entry.lives) do
    if i <= SHOWN then
      rows[i] = {name = item.name, bytes = texts.bytes(item.bytes),
        note = item.pinned and "pinned" or nil}
    else
      rest.bytes, rest.count = rest.bytes + item.bytes, rest.count + 1
    end
  end
  if rest.count > 0 then
    rows[#rows + 1] = {name = ("%d more variables"):format(rest.count),
      bytes = texts.bytes(rest.bytes)}
  end
  if (entry.other or 0) > 0 then
    rows[#rows + 1] = {name = "other tensors", bytes = texts.bytes(entry.other)}
  end
  if (entry.rounding or 0) > 0 then
    rows[#rows + 1] = {name = "rounding of blocks", bytes = texts.bytes(entry.rounding)}
  end
  return rows
end

local tenant_columns = {
  {key = "name", title = "", rank = 2, least = 8},
  {key = "bytes", title = "", rank = 1, least = 9, right = true},
  {key = "note", title = "", rank = 3, least = 6},
}

local function draw(entry)
  local lines = {heading(entry)}
  if entry.why then
    lines[2] = "  " .. style.paint("warning",
      texts.wrap("cannot be asked: " .. entry.why, style.width() - 1, 2))
    return table.concat(lines, "\n")
  end
  local filled = shares(entry)
  lines[#lines + 1] = filled and bar(filled, entry.total, bar_width()) or nil
  if entry.allocated then lines[#lines + 1] = indented(numbers(entry)) end
  if has_blocks(entry) then
    lines[#lines + 1] = block_bar(entry)
    lines[#lines + 1] = indented(cache_text(entry))
  end
  local rows = tenants(entry)
  local listed = #rows > 0 and texts.table(tenant_columns, rows, style.width() - 5) or {}
  for i = 2, #listed do lines[#lines + 1] = "    " .. listed[i] end
  return table.concat(lines, "\n")
end

-- Why there is no accelerator, where there is none.
local function missing_text(list)
  local lines = {}
  for _, missing in ipairs(list.missing) do
    local text = ("%s: none: %s"):format(missing.kind, missing.why)
    lines[#lines + 1] = texts.wrap(text, style.width() - 1, 2)
  end
  return table.concat(lines, "\n")
end

local fragmentation = "fragmentation: the share of what is cached that is not in its largest block"

local other_tensors = "other tensors: no variable's, but a result's (_1), a graph's, a function's"

local function any_blocks(list)
  for _, entry in ipairs(list) do
    if has_blocks(entry) then return true end
  end
  return false
end

local function legend(list)
  local m, width = bars.marks(texts.is_utf8()), style.width() - 1
  local items = {m.used .. " tensors", m.cached .. " cached for later ones", m.others .. " others",
    m.free .. " free"}
  local last
  if any_blocks(list) then
    items[5], items[6] = m.part .. " tensors and cache", m.edge .. " between segments"
    last = texts.wrap(fragmentation, width, 2)
  end
  local lines = texts.items(items, width)
  lines[#lines + 1] = last
  for _, entry in ipairs(list) do
    if (entry.other or 0) > 0 then
      lines[#lines + 1] = texts.wrap(other_tensors, width, 2)
      break
    end
  end
  for i, line in ipairs(lines) do lines[i] = style.paint("faint", line) end
  return table.concat(lines, "\n")
end

-- What a picture of a device is made of.
local function drawing(entry)
  local made = {title = entry.device .. title_of(entry), total = entry.total,
    shares = not entry.why and shares(entry) or nil, segments = entry.segments,
    numbers = {entry.allocated and numbers(entry)}, lines = {}}
  if entry.why then
    made.numbers = {}
    for line in texts.wrap("cannot be asked: " .. entry.why, 90, 2):gmatch "[^\n]+" do
      table.insert(made.numbers, line)
    end
  end
  if has_blocks(entry) then made.lines[1] = cache_text(entry) end
  local rows = tenants(entry)
  local listed = #rows > 0 and texts.table(tenant_columns, rows, 90) or {}
  for i = 2, #listed do made.lines[#made.lines + 1] = "  " .. listed[i] end
  return made
end

local function write_svg(list, path)
  local drawings = {}
  for i, entry in ipairs(list) do drawings[i] = drawing(entry) end
  local picture = require("lutra.plot.devices_svg").text(drawings,
    any_blocks(list) and fragmentation or nil)
  local ok, why = require("lutra.repl.files").write(path, picture)
  if not ok then error("devices: cannot write " .. why, 0) end
  io.stdout:write("the picture to ", path, "\n")
end

local usage = ":devices [--svg FILE]"

--- The bar `memory` is all of a device's memory: what tensors hold, what the allocator keeps for
-- later ones, what other programs hold, what is free. `reserved` is what the allocator of an
-- accelerator holds, block by block: what is cached in pieces cannot become one large tensor, so
-- fragmentation is the share of it that is not in the largest block. Below stand the variables, the
-- largest first, the tensors that no variable holds, and what is lost because blocks are multiples
-- of 512 bytes. Looking sets up the driver of an accelerator. --svg FILE writes a picture instead.
function devices.devices(session, text)
  local values, rest = flags.read("devices", text, {["--svg"] = flags.text}, usage, true)
  if rest:match "%S" then
    error(("devices: what is \"%s\"? usage: %s"):format(rest, usage), 0)
  end
  local list = occupancy.collect(session)
  if values["--svg"] then return write_svg(list, values["--svg"]) end
  for _, entry in ipairs(list) do io.stdout:write(draw(entry), "\n") end
  if not list.accelerated then io.stdout:write(missing_text(list), "\n") end
  io.stdout:write(legend(list), "\n")
end

return devices
