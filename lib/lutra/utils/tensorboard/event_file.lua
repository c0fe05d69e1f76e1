--- Event files of TensorBoard: records of serialized messages (TFRecord) with masked CRC-32C sums.
--
-- Invariant: after each record the file is complete and flushed, so that a crash loses no record.
-- After a write that failed, on a full disk, the file may end in a part of a record, behind which
-- readers find nothing; later records are in another file of the folder.

local args = require "lutra.internal.args"
local files = require "lutra.files"
local protobuf = require "lutra.internal.protobuf"

local event_file = {}
event_file.__index = event_file

-- ---- checksums

local crc_table = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = c & 1 == 1 and c >> 1 ~ 0x82F63B78 or c >> 1 end
  crc_table[i] = c
end

--- Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of a string.
function event_file.crc32c(text)
  local crc = 0xFFFFFFFF
  for first = 1, #text, 4096 do
    for _, byte in ipairs{text:byte(first, first + 4095)} do
      crc = crc >> 8 ~ crc_table[(crc ~ byte) & 255]
    end
  end
  return crc ~ 0xFFFFFFFF
end

--- Returns the masked form that records have: a sum of data that contains sums would be weak.
function event_file.masked(text)
  local crc = event_file.crc32c(text)
  return ((crc >> 15 | crc << 17) & 0xFFFFFFFF) + 0xa282ead8 & 0xFFFFFFFF
end

--- Returns a record: the length and its sum, the data and their sum.
function event_file.record(data)
  local length = ("<I8"):pack(#data)
  return length .. ("<I4"):pack(event_file.masked(length)) .. data
    .. ("<I4"):pack(event_file.masked(data))
end

-- ---- files

local count = 0 -- files of this process, for their names

-- Writes a record with the fields of an event, and flushes it; closes the file when that fails.
-- Returns true, or nil and the reason.
local function append(self, content, step, walltime)
  local event = protobuf.double(1, walltime or files.now())
    .. (step and protobuf.int(2, step) or "") .. content
  local ok, why = self.file:write(event_file.record(event))
  if ok then ok, why = self.file:flush() end
  if not ok then self:close() end
  return ok, why
end

local function check_written(self, ok, why)
  args.check(ok, "SummaryWriter: cannot write %s: %s", self.path, why)
end

-- Creates a file with the first record. Raises an error when that is not possible, and then leaves
-- no file.
local function create(self)
  local pid, host = files.process()
  local path = ("%s/events.out.tfevents.%010d.%s.%d.%d%s"):format(self.folder, os.time(),
    host:gsub("[/%c]", "_"), pid, count, self.suffix)
  count = count + 1
  local file, why = io.open(path, "wb")
  args.check(file, "SummaryWriter: cannot write %s", why)
  self.file, self.path = file, path
  local ok
  ok, why = append(self, protobuf.bytes(3, "brain.Event:2"))
  if not ok then os.remove(path) end
  check_written(self, ok, why)
end

--- Creates the folder and an event file in it, with the first record. Raises an error when that is
-- not possible.
function event_file.new(folder, suffix)
  local ok, why = files.make(folder)
  args.check(ok, "SummaryWriter: cannot create the folder: %s", why)
  local self = setmetatable({folder = folder, suffix = suffix}, event_file)
  create(self)
  return self
end

--- Writes an event: `content` are the fields that say what it is, `step` an integer or nil,
-- `walltime` seconds since 1970, by default the current time.
function event_file:add(content, step, walltime)
  if not self.file then create(self) end
  check_written(self, append(self, content, step, walltime))
end

--- Writes an event with one value of a summary.
function event_file:add_value(value, step, walltime)
  self:add(protobuf.bytes(5, protobuf.bytes(1, value)), step, walltime)
end

--- Closes the file.
function event_file:close()
  if self.file then self.file:close() end
  self.file = nil
end

return event_file
