--- ZIP archives (PKWARE's APPNOTE 6.3): the directory of an untrusted archive, and a writer of
-- archives.
--
-- Invariant: the bytes of each entry that zip.open returns are inside the file, no two entries
-- overlap, and no name occurs twice.

local core = require "lutra.core"

local zip = {}

local STORED, DEFLATED = 0, 8
local NAME_LIMIT, ENTRY_LIMIT = 4096, 1000000

-- ---- reading

-- Returns the number of entries, and the size and offset of the directory.
local function find_directory(source, fail)
  local size = source:size()
  local n = math.min(size, 65557) -- the end record with the longest comment
  local tail = source:bytes(size - n, n)
  for at = n - 21, 1, -1 do
    if tail:sub(at, at + 3) == "PK\5\6" and at + 21 + ("<I2"):unpack(tail, at + 20) == n then
      local disk, first, here, count, length, offset = ("<I2I2I2I2I4I4"):unpack(tail, at + 4)
      local place = size - n + at - 1
      if (count == 0xFFFF or length == 0xFFFFFFFF or offset == 0xFFFFFFFF) and place >= 20
        and source:bytes(place - 20, 4) == "PK\6\7" then
        local record = ("<i8"):unpack(source:bytes(place - 12, 8))
        if record < 0 or record > size - 56 or source:bytes(record, 4) ~= "PK\6\6" then
          fail "its directory is damaged"
        end
        disk, first, here, count, length, offset = ("<I4I4i8i8i8i8"):unpack(
          source:bytes(record + 16, 40))
      end
      if disk ~= 0 or first ~= 0 or here ~= count then fail "it is split into several files" end
      if count < 0 or count > ENTRY_LIMIT or length < 0 or offset < 0 or length > size
        or offset > size - length then
        fail "its directory is damaged"
      end
      return count, length, offset
    end
  end
  fail "it is truncated: it has no directory of a zip archive"
end

-- Replaces sizes and the offset that are 0xFFFFFFFF by those of the zip64 field.
local function read_extra(entry, extra, fail)
  local at = 1
  while at + 3 <= #extra do
    local id, n = ("<I2I2"):unpack(extra, at)
    if at + 3 + n > #extra then fail "its directory is damaged" end
    local from, last = at + 4, at + 3 + n
    for _, field in ipairs(id == 1 and {"size", "packed", "header"} or {}) do
      if entry[field] == 0xFFFFFFFF then
        if from + 7 > last then fail "its directory is damaged" end
        entry[field], from = ("<i8"):unpack(extra, from)
      end
    end
    at = last + 1
  end
end

-- Sets entry.at, the offset of its bytes, from the header before them.
local function locate(source, entry, fail)
  if entry.header < 0 or entry.packed < 0 or entry.size < 0 then fail "its directory is damaged" end
  local head = entry.header <= source:size() - 30 and source:bytes(entry.header, 30)
  if not head or head:sub(1, 4) ~= "PK\3\4" then fail "its directory is damaged" end
  local name, extra = ("<I2I2"):unpack(head, 27)
  entry.at = entry.header + 30 + name + extra
  if entry.packed > source:size() - entry.at then
    fail(("its entry %q is truncated"):format(entry.name))
  end
end

local function check_apart(entries, fail)
  local sorted = table.move(entries, 1, #entries, 1, {})
  table.sort(sorted, function(a, b) return a.header < b.header end)
  for i = 2, #sorted do
    if sorted[i].header < sorted[i - 1].at + sorted[i - 1].packed then
      fail(("its entries %q and %q overlap"):format(sorted[i - 1].name, sorted[i].name))
    end
  end
end

--- Returns the entries of the archive in `source` (core._source) by name, and as a list: {name, at,
-- packed, size, method, crc}. fail(why) raises the error of a file that is not valid.
function zip.open(source, fail)
  local count, length, offset = find_directory(source, fail)
  local directory, at = source:bytes(offset, length), 1
  local entries, by_name = {}, {}
  for i = 1, count do
    if at + 45 > #directory or directory:sub(at, at + 3) ~= "PK\1\2" then
      fail "its directory is damaged"
    end
    local flags, method, _, _, crc, packed, size, name, extra, comment =
      ("<I2I2I2I2I4I4I4I2I2I2"):unpack(directory, at + 8)
    local header = ("<I4"):unpack(directory, at + 42)
    if name > NAME_LIMIT or at + 45 + name + extra + comment > #directory then
      fail "its directory is damaged"
    end
    local entry = {name = directory:sub(at + 46, at + 45 + name), method = method, crc = crc,
      packed = packed, size = size, header = header}
    read_extra(entry, directory:sub(at + 46 + name, at + 45 + name + extra), fail)
    if flags & 1 ~= 0 then fail(("its entry %q is encrypted"):format(entry.name)) end
    if method ~= STORED and method ~= DEFLATED then
      fail(("its entry %q is compressed by method %d"):format(entry.name, method))
    end
    locate(source, entry, fail)
    if method == STORED and entry.packed ~= entry.size then fail "its directory is damaged" end
    if by_name[entry.name] then fail(("it has the entry %q twice"):format(entry.name)) end
    entries[i], by_name[entry.name] = entry, entry
    at = at + 46 + name + extra + comment
  end
  check_apart(entries, fail)
  return by_name, entries
end

--- Returns the bytes of an entry as a vector of uint8, decompressed. With `checked`, bytes that do
-- not have the directory's checksum are an error.
function zip.read(source, entry, fail, checked)
  local bytes = entry.method == STORED and source:tensor(entry.at, "uint8", entry.size)
    or source:inflate(entry.at, entry.packed, entry.size)
  if checked and core._crc32(bytes) ~= entry.crc then
    fail(("its entry %q is damaged: its checksum differs"):format(entry.name))
  end
  return bytes
end

-- ---- writing

local LIMIT = 0xFFFFFFFF

-- Returns the zip64 field of the numbers, those of them that do not fit 32 bits.
local function extra_of(...)
  local parts = {}
  for _, n in ipairs{...} do
    if n >= LIMIT then parts[#parts + 1] = ("<i8"):pack(n) end
  end
  local text = table.concat(parts)
  return #parts == 0 and "" or ("<I2I2"):pack(1, #text) .. text
end

local function capped(n) return math.min(n, LIMIT) end

--- Returns a writer of an archive whose bytes are passed to `put`: writer:add(name, bytes,
-- compressed) adds an entry, writer:finish() the directory. Timestamps are 1980-01-01, so that
-- equal content gives equal files.
function zip.writer(put)
  local writer, directory, at, count = {}, {}, 0, 0

  local function emit(...)
    for _, text in ipairs{...} do at = at + #text end
    put(...)
  end

  function writer.add(_, name, bytes, compressed)
    local method, crc, size = compressed and DEFLATED or STORED, core._crc32(bytes), #bytes
    local packed = compressed and core._deflate(bytes) or bytes
    local start = at
    -- a local header with a zip64 field states both sizes in it
    local large = size >= LIMIT or #packed >= LIMIT
    local extra = large and ("<I2I2i8i8"):pack(1, 16, size, #packed) or ""
    local version = large and 45 or 20
    local function fields(a, b)
      return ("<I2I2I2I2I2I4I4I4I2"):pack(version, 0x800, method, 0, 33, crc, b, a, #name)
    end
    local both = large and LIMIT
    emit("PK\3\4", fields(both or size, both or #packed), ("<I2"):pack(#extra), name, extra, packed)
    local field = extra_of(size, #packed, start)
    directory[#directory + 1] = "PK\1\2" .. ("<I2"):pack(45) .. fields(capped(size),
      capped(#packed)) .. ("<I2I2I2I2I4I4"):pack(#field, 0, 0, 0, 0, capped(start)) .. name .. field
    count = count + 1
  end

  function writer.finish()
    local start, text = at, table.concat(directory)
    emit(text)
    if start + #text >= LIMIT or count >= 0xFFFF then
      local record = at
      emit("PK\6\6", ("<i8I2I2I4I4i8i8i8i8"):pack(44, 45, 45, 0, 0, count, count, #text, start))
      emit("PK\6\7", ("<I4i8I4"):pack(0, record, 1))
    end
    local few = math.min(count, 0xFFFF)
    emit("PK\5\6", ("<I2I2I2I2I4I4I2"):pack(0, 0, few, few, capped(#text), capped(start), 0))
  end

  return writer
end

return zip
