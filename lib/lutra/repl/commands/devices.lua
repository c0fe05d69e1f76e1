--- The command :devices: the memory usage of each device and the tensors on it.

local bars = require "lutra.internal.plot.bars"
local device_map = require "lutra.repl.device_map"
local command_line = require "lutra.repl.command_line"
local memory_map = require "lutra.internal.plot.memory_map"
local occupancy = require "lutra.repl.occupancy"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local devices = {}

local function view()
  return {width = style.width() - 1, utf8 = texts.is_utf8(), paint = style.paint}
end

-- Returns the description behind the device's name, such as " Emulated GPU".
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

-- Returns the bar of the allocator's blocks, for an accelerator that has any.
local function block_bar(entry)
  local columns = memory_map.columns(entry.segments, device_map.bar_width(view()))
  return device_map.bar_line("reserved", columns, view())
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
  if entry.total then parts[#parts + 1] = texts.bytes(entry.total) .. " in total" end
  return table.concat(parts, ", ")
end

local function indented(text) return "  " .. texts.wrap(text, style.width() - 1, 2) end

-- Returns the lines of a device's tensors and of other memory.
local function tensor_lines(entry)
  local rows = device_map.tensors(entry)
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
      texts.wrap("not available: " .. entry.why, style.width() - 1, 2))
    return table.concat(lines, "\n")
  end
  lines[#lines + 1] = device_map.memory("memory", entry, view())
  if entry.allocated then lines[#lines + 1] = indented(numbers(entry)) end
  if has_blocks(entry) then
    lines[#lines + 1] = block_bar(entry)
    lines[#lines + 1] = indented(cache_text(entry))
  end
  local rows = tensor_lines(entry)
  local listed = #rows > 0 and texts.table(tenant_columns, rows, style.width() - 5) or {}
  for i = 2, #listed do lines[#lines + 1] = "    " .. listed[i] end
  return table.concat(lines, "\n")
end

-- Returns why there is no accelerator, when there is none.
local function missing_text(list)
  local lines = {}
  for _, missing in ipairs(list.missing) do
    local text = ("%s: none: %s"):format(missing.kind, missing.why)
    lines[#lines + 1] = texts.wrap(text, style.width() - 1, 2)
  end
  return table.concat(lines, "\n")
end

local fragmentation = "fragmentation: the share of cached memory outside its largest block"

local other_tensors = "other tensors: held by results (_1), autograd graphs or functions"

local function any_blocks(list)
  for _, entry in ipairs(list) do
    if has_blocks(entry) then return true end
  end
  return false
end

local function legend(list)
  local m, width = bars.marks(texts.is_utf8()), style.width() - 1
  local items, last = device_map.legend(texts.is_utf8()), nil
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

-- Returns the data for the SVG picture of a device.
local function drawing(entry)
  local made = {title = entry.device .. title_of(entry), total = entry.total,
    shares = not entry.why and device_map.shares(entry) or nil, segments = entry.segments,
    numbers = {entry.allocated and numbers(entry)}, lines = {}}
  if entry.why then
    made.numbers = {}
    for line in texts.wrap("not available: " .. entry.why, 90, 2):gmatch "[^\n]+" do
      table.insert(made.numbers, line)
    end
  end
  if has_blocks(entry) then made.lines[1] = cache_text(entry) end
  local rows = tensor_lines(entry)
  local listed = #rows > 0 and texts.table(tenant_columns, rows, 90) or {}
  for i = 2, #listed do made.lines[#made.lines + 1] = "  " .. listed[i] end
  return made
end

-- Returns the picture of all devices.
local function picture_of(list)
  local drawings = {}
  for i, entry in ipairs(list) do drawings[i] = drawing(entry) end
  return require("lutra.internal.plot.devices_svg").text(drawings,
    any_blocks(list) and fragmentation or nil)
end

local function write_svg(list, path)
  local ok, why = require("lutra.repl.files").write(path, picture_of(list))
  if not ok then error("devices: cannot write " .. why, 0) end
  io.stdout:write("wrote the picture to ", path, "\n")
end

-- Returns the devices as text for the terminal.
local function text_of(list)
  local parts = {}
  for i, entry in ipairs(list) do parts[i] = draw(entry) end
  if not list.accelerated then parts[#parts + 1] = missing_text(list) end
  parts[#parts + 1] = legend(list)
  return table.concat(parts, "\n")
end

local usage = ":devices [--svg FILE]"

--- The bar `memory` shows all memory of a device: allocated to tensors, cached by the allocator,
-- used by other programs, free. The bar `reserved` shows the blocks of an accelerator's allocator.
-- Cached memory in separate pieces cannot hold one large tensor; fragmentation is the share of it
-- that is not in the largest block. Below are the variables on the device, the largest first, the
-- tensors that no variable holds, and the bytes lost because blocks are multiples of 512 bytes.
-- The command initializes the driver of an accelerator. --svg FILE writes a
-- picture instead; a notebook shows it with the text.
function devices.devices(session, text)
  local values, rest = command_line.leading_options("devices", text,
    {["--svg"] = command_line.text}, usage, true)
  if rest:match "%S" then
    error(("devices: unexpected argument \"%s\"\nhint: %s"):format(rest, usage), 0)
  end
  local list = occupancy.collect(session)
  if values["--svg"] then return write_svg(list, values["--svg"]) end
  require("lutra.repl.rich.show")(text_of(list), function()
    return {["image/svg+xml"] = picture_of(list)}
  end)
end

return devices
