--- The files of a checkpoint's folder.
--
--   checkpoint.safetensors.index.json     which files and tensors the checkpoint consists of
--   shards-G-R.safetensors                the tensors that rank R wrote
--   values-G.safetensors                  the described state dict, by lt.save
--
-- G is the number of the save. The index is
--
--   {"metadata": {"format": FORMAT, "generation": G, "world_size": N, "values": FILE},
--    "weight_map": {TENSOR: FILE...},
--    "tensors": {ID: {"shape": [...], "dtype": D, "sharded": B,
--                     "pieces": [[TENSOR, FIRST, COUNT]...]}}}
--
-- so that lt.load_safetensors reads the tensors from it, too.
--
-- Invariant: a save writes new files first and then replaces the index, atomically; a save that
-- ends early leaves the files that the former index names. A piece lies inside its tensor.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"
local files = require "lutra.files"
local json = require "lutra.internal.json"

local layout = {}

local FORMAT = "lutra.distributed.checkpoint 1"
local INDEX = "checkpoint.safetensors.index.json"
local LIMIT = 100000000 -- bytes of the index

local function join(folder, name) return folder:gsub("/+$", "") .. "/" .. name end
layout.join = join

--- Returns the names of the files of a save.
function layout.shard_name(generation, rank)
  return ("shards-%d-%d.safetensors"):format(generation, rank)
end
function layout.values_name(generation) return ("values-%d.safetensors"):format(generation) end

-- Returns the number of the save to which a file belongs, also an unfinished one of a killed
-- process, whose name ends in ".tmp"; nil for other files.
local function generation_of(name)
  name = name:gsub("(%.safetensors)%..*%.tmp$", "%1")
  local number = name:match "^shards%-(%d+)%-%d+%.safetensors$"
    or name:match "^values%-(%d+)%.safetensors$"
  return number and math.tointeger(tonumber(number))
end

--- Returns the largest number of a save of which the folder has a file, 0 without any.
function layout.generation(folder)
  local last = 0
  for _, name in ipairs(files.list(folder) or {}) do
    last = math.max(last, generation_of(name) or 0)
  end
  return last
end

--- Writes the index, atomically. Raises an error when it cannot be written.
function layout.write(folder, index)
  local text = json.encode(index)
  local ok, why = atomic_file.write(join(folder, INDEX), function(put) put(text) end)
  args.check(ok, "save: cannot write %s", why)
end

--- Removes the files of saves that the folder's index does not name.
function layout.clean(folder, generation)
  for _, name in ipairs(files.list(folder) or {}) do
    local number = generation_of(name)
    if number and number ~= generation then os.remove(join(folder, name)) end
  end
end

local function is_file_name(x)
  return type(x) == "string" and x ~= "" and not x:find "[/\\%z]" and not x:find "^%.%.?$"
end

local function is_count(x) return math.type(x) == "integer" and x >= 0 end

-- Returns the number of elements of a shape from the index, nil when it is none.
local function numel_of(shape)
  if type(shape) ~= "table" then return nil end
  local numel = 1
  for _, size in ipairs(shape) do
    if not is_count(size) or size > 0 and numel > math.maxinteger // size then return nil end
    numel = numel * size
  end
  return numel
end

-- Returns why the entry of a tensor is not valid, or nil. The pieces must cover the tensor.
local function entry_problem(entry, weight_map)
  local numel = type(entry) == "table" and numel_of(entry.shape)
  if not numel or type(entry.dtype) ~= "string" or type(entry.pieces) ~= "table" then
    return "expected shape, dtype and pieces"
  end
  local next_one = 1
  for _, piece in ipairs(entry.pieces) do
    local name, first, count = table.unpack(type(piece) == "table" and piece or {})
    if type(name) ~= "string" or not is_count(first) or not is_count(count)
      or not is_file_name(weight_map[name]) then
      return "expected pieces of a name in weight_map, a first element and a count"
    end
    if first ~= next_one or count > numel - first + 1 then
      return "its pieces do not cover it"
    end
    next_one = first + count
  end
  return next_one ~= numel + 1 and "its pieces do not cover it" or nil
end

-- Returns why an index is not valid, or nil.
local function problem(index)
  if type(index) ~= "table" or type(index.metadata) ~= "table"
    or index.metadata.format ~= FORMAT then
    return "it is not the index of a checkpoint of lt.distributed.checkpoint.save"
  end
  if type(index.weight_map) ~= "table" or type(index.tensors) ~= "table"
    or not is_file_name(index.metadata.values) or not is_count(index.metadata.world_size) then
    return "it lacks weight_map, tensors, values or world_size"
  end
  for id, entry in pairs(index.tensors) do
    local why = entry_problem(entry, index.weight_map)
    if why then return ("tensor %q: %s"):format(id, why) end
  end
end

--- Returns the index of a folder. Raises an error when there is none and when it is not valid.
function layout.read(folder)
  local path = join(folder, INDEX)
  if files.kind(path) == nil then
    args.fail('load: cannot read "%s": expected a checkpoint, got no file %s\nhint: a checkpoint '
      .. "is complete when lt.distributed.checkpoint.save has returned", folder, INDEX)
  end
  local source <close> = core._source("load", path, false)
  args.check(source:size() <= LIMIT, 'load: cannot read "%s": it is larger than 100 MB', path)
  local index, why = json.decode(source:bytes(0, source:size()))
  why = not index and why or problem(index)
  args.check(not why, 'load: cannot read "%s": %s', path, args.reason(why or ""))
  return index
end

--- Returns an index without tensors.
function layout.new(generation, world_size)
  return {metadata = {format = FORMAT, generation = generation, world_size = world_size,
    values = layout.values_name(generation)}, weight_map = {}, tensors = {}}
end

return layout
