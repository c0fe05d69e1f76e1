--- Formats the statistics of an allocator as a table.

local rows = {
  {"allocated_bytes", "allocated memory"},
  {"active_bytes", "active memory"},
  {"requested_bytes", "requested memory"},
  {"reserved_bytes", "reserved memory"},
  {"inactive_split_bytes", "free in segments"},
  {"allocation", "allocations"},
  {"active", "active blocks"},
  {"segment", "segments"},
  {"inactive_split", "free blocks"},
}
local pools = {
  {"all", ""}, {"large_pool", "  in large blocks"}, {"small_pool", "  in small blocks"},
}
local columns = {"current", "peak", "allocated", "freed"}
local line = ("-"):rep(76)

local function bytes_text(n)
  local units, i = {"B", "KiB", "MiB", "GiB", "TiB"}, 1
  while n >= 10240 and i < #units do n, i = n / 1024, i + 1 end
  return ("%.0f %s"):format(n, units[i])
end

local function row_text(stats, row, pool)
  local cells = {}
  for i, column in ipairs(columns) do
    local n = stats[("%s.%s.%s"):format(row[1], pool[1], column)]
    cells[i] = ("%12s"):format(row[1]:find "bytes$" and bytes_text(n) or tostring(n))
  end
  local title = pool[1] == "all" and row[2] or pool[2]
  return ("%-24s"):format(title) .. table.concat(cells, " ")
end

--- Returns the table for a device with these properties and statistics; with `abbreviated`, without
-- the rows per pool.
return function(device, properties, stats, abbreviated)
  local lines = {
    ("Memory of %s: %s, %s"):format(device, properties.name or "",
      bytes_text(properties.total_memory or 0)),
    ("retries %d, out of memory %d, segments reserved %d, released %d"):format(
      stats.num_alloc_retries, stats.num_ooms, stats.num_device_alloc, stats.num_device_free),
    line,
    ("%-24s%12s %12s %12s %12s"):format("", "current", "peak", "total added", "total freed"),
    line,
  }
  for _, row in ipairs(rows) do
    for i, pool in ipairs(pools) do
      if i == 1 or not abbreviated then lines[#lines + 1] = row_text(stats, row, pool) end
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end
