--- lt.load: chooses the reader by a file's first bytes.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local ordered_map = require "lutra.internal.ordered_map"

-- Formats with a reader of their own, by how they start.
local others = {
  {"\x93NUMPY", "lt.load_npy(path)"}, {"\x89PNG", "lt.vision.io.read_image(path)"},
  {"RIFF", "lt.audio.load(path)"}, {"\x1f\x8b", "lt.load_idx(path)"},
}

local HINT = "\nhint: in Python: torch.save(model.state_dict(), path)"

-- Returns the value of a safetensors file: what lt.save wrote, or the table of its tensors.
local function load_safetensors(path, move, mmap, fail)
  local ok, tensors, notes = pcall(core._load_safetensors, path, mmap)
  if not ok then
    local why = tostring(tensors):match 'cannot read ".-": (.*)$'
    if why then fail(why) else error(tensors, 0) end
  end
  local description
  for _, note in ipairs(notes) do
    if note[1] == "lutra" then description = note[2] end
  end
  if not description then
    for _, entry in ipairs(tensors) do entry[2] = move(entry[2], "cpu") end
    return ordered_map.new(tensors)
  end
  local values = {}
  for _, entry in ipairs(tensors) do values[entry[1]] = entry[2] end
  return require("lutra.internal.saved_values").load(description, values, move, fail)
end

-- Returns whether a file starts with the length of a JSON header, at most 100 MB, and its brace. To
-- be checked first: the length may look like another format, 0x80 like the start of a pickle.
local function is_safetensors(start)
  return #start >= 9 and start:byte(9) == 123 and math.ult(("<i8"):unpack(start), 100000001)
end

--- Returns the value of the file at `path`; see lt.load.
return function(path, map_location, mmap)
  local move = require("lutra.internal.locations").mapper("load", path, map_location)
  local source <close> = core._source("load", path, mmap)
  local start = source:bytes(0, math.min(source:size(), 16))
  local function fail(why)
    args.fail('load: cannot read "%s": %s%s', path, args.reason(why),
      why:find "which is code" and HINT or "")
  end
  if is_safetensors(start) then return load_safetensors(path, move, mmap, fail) end
  local torch_file = require "lutra.internal.torch_file"
  if start:sub(1, 4) == "PK\3\4" or start:sub(1, 4) == "PK\5\6" then
    return torch_file.read_zip(source, move, fail)
  end
  if torch_file.is_old(start) then return torch_file.read_old(source, move, fail) end
  for _, other in ipairs(others) do
    if start:sub(1, #other[1]) == other[1] then
      fail(("it is not a file of lt.save or torch.save\nhint: %s"):format(other[2]))
    end
  end
  if start:sub(1, 1) == "\x80" then
    fail("it is a pickle, not a file of torch.save" .. HINT)
  end
  fail "it is not a file of lt.save or torch.save"
end
