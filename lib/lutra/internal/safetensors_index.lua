--- The index of a safetensors file in several parts, "model.safetensors.index.json" (Hugging Face):
-- {"metadata": {...}, "weight_map": {TENSOR: FILE...}}.
--
-- Invariant: only files in the folder of the index are read, and every tensor is in exactly the
-- file that the index names.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local json = require "lutra.internal.json"
local ordered_map = require "lutra.internal.ordered_map"

local safetensors_index = {}

local LIMIT = 100000000 -- bytes of the index, as of a header
local ordered_meta = getmetatable(ordered_map.new())

local function is_object(x) return type(x) == "table" and getmetatable(x) == ordered_meta end

-- Returns the files in order of appearance, the names of the tensors in order, and the index.
local function read(path, fail)
  local source <close> = core._source("load_safetensors", path, false)
  if source:size() > LIMIT then fail "it is larger than 100 MB" end
  local index, why = json.decode(source:bytes(0, source:size()))
  if not index then fail(why) end
  if not is_object(index) or not is_object(index.weight_map) then fail "it has no weight_map" end
  local files, seen = {}, {}
  for name, file in pairs(index.weight_map) do
    if type(file) ~= "string" or file == "" or file:find "[/\\%z]" or file:find "^%.%.?$" then
      fail(("tensor %q is in the file %s, expected the name of a file in the same folder"):format(
        name, args.show(file)))
    end
    if not seen[file] then
      seen[file] = true
      files[#files + 1] = file
    end
  end
  return files, index
end

--- Returns the tensors of all parts as an ordered table in the order of the index, each changed by
-- `move`, and the index's metadata. Raises an error when a part lacks a tensor or has one that
-- belongs to no or another part.
function safetensors_index.load(path, move, mmap)
  local function fail(why)
    args.fail('load_safetensors: cannot read "%s": %s', path, args.reason(why))
  end
  local files, index = read(path, fail)
  local folder, found = path:match "^(.*/)" or "", {}
  for _, file in ipairs(files) do
    for _, entry in ipairs((core._load_safetensors(folder .. file, mmap))) do
      local name = entry[1]
      if index.weight_map[name] ~= file then
        fail(("file %q has tensor %q, which the index does not have there"):format(file, name))
      end
      found[name] = entry[2]
    end
  end
  local tensors, notes = ordered_map.new(), ordered_map.new()
  for name, file in pairs(index.weight_map) do
    if not found[name] then fail(("file %q lacks tensor %q"):format(file, name)) end
    tensors[name] = move(found[name])
    found[name] = nil
  end
  for key, value in pairs(is_object(index.metadata) and index.metadata or {}) do
    notes[key] = type(value) ~= "table" and tostring(value) or nil
  end
  return tensors, notes
end

return safetensors_index
