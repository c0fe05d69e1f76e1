--- :devices, each device with what lives there and how full it is.

local occupancy = require "lutra.repl.occupancy"
local style = require "lutra.repl.style"
local texts = require "lutra.plot.texts"

local devices = {}

local SHOWN = 8 -- variables of a device

-- What a bar is made of: tensors, the allocator's cache, other programs, free.
local marks = {utf8 = {"█", "▒", "░", "·"}, ascii = {"#", "=", ":", "."}}

--- A bar of `width` columns for shares of a whole; what is not nothing has at least a column.
local function bar(shares, whole, width)
  local text = texts.is_utf8() and marks.utf8 or marks.ascii
  local left, parts = width, {}
  for i, share in ipairs(shares) do
    local n = whole > 0 and math.floor(share / whole * width + 0.5) or 0
    if n == 0 and share > 0 then n = 1 end
    n = math.min(n, left)
    left = left - n
    parts[i] = text[i]:rep(n)
  end
  return "[" .. table.concat(parts) .. text[#text]:rep(left) .. "]"
end

local function fullness(entry)
  if not entry.total then return nil end
  local reserved = entry.reserved or entry.allocated
  local cached = math.max(0, reserved - entry.allocated)
  local used = entry.free and entry.total - entry.free or reserved
  return bar({entry.allocated, cached, math.max(0, used - reserved)}, entry.total,
    math.min(40, style.width() - 6))
end

local function heading(entry)
  local title = entry.title and entry.title ~= "" and " " .. entry.title or ""
  if entry.emulated and not title:find "mulated" then title = title .. " (emulated)" end
  return style.paint("heading", entry.device)
    .. texts.cut(title, style.width() - #entry.device - 1)
end

local function numbers(entry)
  local parts = {texts.bytes(entry.allocated) .. " in tensors"}
  if entry.reserved then parts[#parts + 1] = texts.bytes(entry.reserved) .. " reserved" end
  if entry.free then parts[#parts + 1] = texts.bytes(entry.free) .. " free" end
  if entry.total then parts[#parts + 1] = texts.bytes(entry.total) .. " in all" end
  return "  " .. texts.wrap(table.concat(parts, ", "), style.width() - 1, 2)
end

-- The variables of a device, largest first, and what else there is.
local function tenants(entry)
  local rows, rest = {}, {bytes = 0, count = 0}
  for i, item in ipairs(entry.lives) do
    if i <= SHOWN then
      rows[i] = {name = item.name, bytes = texts.bytes(item.bytes)}
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
  return rows
end

local tenant_columns = {
  {key = "name", title = "", rank = 2, least = 8},
  {key = "bytes", title = "", rank = 1, least = 9, right = true},
}

local function draw(entry)
  local lines = {heading(entry)}
  if entry.why then
    lines[2] = "  " .. style.paint("warning",
      texts.wrap("cannot be asked: " .. entry.why, style.width() - 1, 2))
    return table.concat(lines, "\n")
  end
  lines[#lines + 1] = entry.total and "  " .. fullness(entry) or nil
  if entry.allocated then lines[#lines + 1] = numbers(entry) end
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

local function legend()
  local m = texts.is_utf8() and marks.utf8 or marks.ascii
  return ("%s tensors, %s cached, %s others, %s free"):format(table.unpack(m))
end

--- Each bar is a device's memory: what tensors hold, what the allocator keeps for later ones, what
-- other programs hold, what is free. Below it stand the variables, the largest first, and the
-- tensors that no variable holds. Looking sets up the driver of an accelerator.
function devices.devices(session)
  local list = occupancy.collect(session)
  for _, entry in ipairs(list) do io.stdout:write(draw(entry), "\n") end
  if not list.accelerated then io.stdout:write(missing_text(list), "\n") end
  io.stdout:write(style.paint("faint", legend()), "\n")
end

return devices
