--- Saving and loading named tensors (safetensors files).

local core = require "lutra.core"
local ordered = require "lutra.ordered"

local archive = {}

local function show(x) return require("lutra.args").show(x) end
local function fail(...) return require("lutra.args").fail(...) end

local function check_table(name, x)
  if type(x) ~= "table" then
    fail('save_safetensors: argument "%s" is %s, it wants a table', name, show(x))
  end
end

--- Writes a table of tensors by name, and metadata (strings by name, nil for none).
-- The file is written beside `path` and renamed, so that it is always whole.
function archive.save_safetensors(path, tensors, metadata)
  check_table("tensors", tensors)
  if metadata ~= nil then check_table("metadata", metadata) end
  local names, values, keys, notes = ordered.keys(tensors), {}, {}, {}
  for i, name in ipairs(names) do
    if type(name) ~= "string" then
      fail("save_safetensors: a name is %s, it wants a string", show(name))
    end
    values[i] = tensors[name]
  end
  for i, key in ipairs(ordered.keys(metadata or {})) do
    keys[i], notes[i] = key, metadata[key]
  end
  core._save_safetensors(path, names, values, keys, notes)
end

--- Reads a safetensors file: a table of tensors that iterates in the file's order,
-- and its metadata.
function archive.load_safetensors(path)
  local tensors, notes = core._load_safetensors(path)
  return ordered.new(tensors), ordered.new(notes)
end

return archive
