--- Functions of lt that save and load tensors: safetensors and NumPy files.

local core = require "lutra.core"
local ordered_map = require "lutra.internal.ordered_map"

local archive = {}

local function show(x) return require("lutra.internal.args").show(x) end
local function fail(...) return require("lutra.internal.args").fail(...) end

local function check_table(name, x)
  if type(x) ~= "table" then
    fail("save_safetensors: expected a table for argument '%s', got %s", name, show(x))
  end
end

--- Writes a table of tensors by name, and metadata (strings by name, or nil). The file is replaced
-- atomically: after an error the old file is unchanged.
function archive.save_safetensors(path, tensors, metadata)
  check_table("tensors", tensors)
  if metadata ~= nil then check_table("metadata", metadata) end
  local names, values, keys, notes = ordered_map.keys(tensors), {}, {}, {}
  for i, name in ipairs(names) do
    if type(name) ~= "string" then
      fail("save_safetensors: expected strings as names in argument 'tensors', got %s", show(name))
    end
    values[i] = tensors[name]
  end
  for i, key in ipairs(ordered_map.keys(metadata or {})) do
    keys[i], notes[i] = key, metadata[key]
  end
  core._save_safetensors(path, names, values, keys, notes)
end

local load_signature = "(string path, device? device = nil)"

-- Returns the path, and a function that moves a tensor to the device given, if any.
local function parse_load(title, path, device)
  local args = require "lutra.internal.args"
  path, device = args.reader(title, load_signature)(path, device)
  if device == nil then return path, function(x) return x end end
  device = args.device(title, device)
  return path, function(x) return x:to(device) end
end

--- lt.load_safetensors(path, {device}): returns the tensors of a safetensors file as a table that
-- iterates in the file's order, and its metadata as a table. The tensors are on the CPU, or on
-- `device`. Raises an error for a file that cannot be read.
function archive.load_safetensors(path, device)
  local file, move = parse_load("load_safetensors", path, device)
  local tensors, notes = core._load_safetensors(file)
  for _, entry in ipairs(tensors) do entry[2] = move(entry[2]) end
  return ordered_map.new(tensors), ordered_map.new(notes)
end

--- lt.load_npy(path, {device}): returns the tensor of a NumPy file (.npy), on the CPU or on
-- `device`. Raises an error for a file that cannot be read.
function archive.load_npy(path, device)
  local file, move = parse_load("load_npy", path, device)
  return move(core.load_npy(file))
end

core._signatures[archive.load_safetensors] = load_signature
core._signatures[archive.load_npy] = load_signature

return archive
