--- Functions of lt that save and load: values with tensors, safetensors and NumPy files.

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

-- Returns the parser of a function of this file.
local parsers = {}
local function parse(title, signature, ...)
  parsers[title] = parsers[title] or require("lutra.internal.args").reader(title, signature)
  return parsers[title](...)
end

-- Returns a function that moves a tensor to the device given, if any.
local function mover(title, device)
  if device == nil then return function(x) return x end end
  device = require("lutra.internal.args").device(title, device)
  return function(x) return x:to(device) end
end

local safetensors_signature = "(string path, device? device = nil, bool mmap = true)"

--- lt.load_safetensors(path, {device, mmap}): returns the tensors of a safetensors file as a table
-- that iterates in the file's order, and its metadata as a table. The tensors are on the CPU, or on
-- `device`. `path` can also be the index of a file in several parts,
-- "model.safetensors.index.json".
-- With `mmap`, tensors of a file of 1 MiB or more are mapped into memory: a page is read when it is
-- first used. No other program may truncate the file meanwhile (save_safetensors replaces it, which
-- is safe). Raises an error for a file that cannot be read.
function archive.load_safetensors(...)
  local path, device, mmap = parse("load_safetensors", safetensors_signature, ...)
  local move = mover("load_safetensors", device)
  if path:find "%.index%.json$" then
    return require("lutra.internal.safetensors_index").load(path, move, mmap)
  end
  local tensors, notes = core._load_safetensors(path, mmap)
  for _, entry in ipairs(tensors) do entry[2] = move(entry[2]) end
  return ordered_map.new(tensors), ordered_map.new(notes)
end

local open_signature = "(string path, 'pt'|'lutra'|'np' framework = 'pt', device? device = nil)"

--- lt.safe_open(path, {device}): opens a safetensors file, or the index of a file in several parts,
-- to read tensors one at a time. f:keys() lists the names, f:get_tensor(name) returns a tensor on
-- `device`, f:get_slice(name) a slice, f:metadata() the metadata. A file of 1 MiB or more is mapped
-- into memory: what is not used is not read. `framework` has no effect. Raises an error for a file
-- that cannot be read.
function archive.safe_open(...)
  local path, _, device = parse("safe_open", open_signature, ...)
  return require("lutra.internal.safe_open")(path, mover("safe_open", device))
end

local npy_signature = "(string path, device? device = nil)"

--- lt.load_npy(path, {device}): returns the tensor of a NumPy file (.npy), on the CPU or on
-- `device`. Raises an error for a file that cannot be read.
function archive.load_npy(...)
  local path, device = parse("load_npy", npy_signature, ...)
  return mover("load_npy", device)(core.load_npy(path))
end

--- lt.load_npz(path, {device}): returns the tensors of an archive of NumPy arrays (.npz), also a
-- compressed one, as a table that iterates in the archive's order. Raises an error for a file that
-- cannot be read, or that has objects.
function archive.load_npz(...)
  local path, device = parse("load_npz", npy_signature, ...)
  return require("lutra.internal.npz").load(path, mover("load_npz", device))
end

--- lt.save_npz(path, tensors, {compressed}): writes a table of tensors by name as an archive that
-- numpy.load reads; with `compressed` as numpy.savez_compressed does. A list gets NumPy's names
-- arr_0, arr_1... The file is replaced atomically. Raises an error for bfloat16, which NumPy does
-- not have.
function archive.save_npz(path, tensors, options)
  local args = require "lutra.internal.args"
  args.expect(type(path) == "string", "save_npz", "a string", "path", path)
  args.expect(type(tensors) == "table", "save_npz", "a table of tensors", "tensors", tensors)
  local compressed = options
  if args.is_plain(options) then
    for name in pairs(options) do
      args.expect(name == "compressed", "save_npz", "the name 'compressed'", "options", name)
    end
    compressed = options.compressed
  end
  args.expect(compressed == nil or type(compressed) == "boolean", "save_npz", "a boolean",
    "compressed", compressed)
  require("lutra.internal.npz").save(args.path("save_npz", "path", path), tensors,
    compressed == true)
end

--- lt.save(value, path): writes a value to a file: a tensor, number, string or boolean, or a table
-- of such values, nested, also with cycles. Tensors keep dtype, device, shape and strides; those
-- that share memory share it again after lt.load; parameters and `requires_grad` are kept, and so
-- is the order of a state dict. The file is a safetensors file with the tensors under the names of
-- their fields. It is replaced atomically: after an error the old file is unchanged. Raises an
-- error for functions, modules (save m:state_dict()) and other objects.
function archive.save(value, path)
  local args = require "lutra.internal.args"
  args.expect(type(path) == "string", "save", "a string", "path", path)
  require("lutra.internal.saved_values").save(value, args.path("save", "path", path))
end

local load_signature =
  "(string path, any? map_location = nil, bool weights_only = true, bool mmap = false)"

--- lt.load(path, {map_location, weights_only, mmap}): returns the value of a file of lt.save, of
-- torch.save (.pt, .pth, .bin; the zip format and the one before PyTorch 1.6) or the tensors of any
-- safetensors file; the content decides, not the name. It never runs code of a file, whatever
-- `weights_only` is: of PyTorch's files it reads tensors, parameters, numbers, strings, booleans,
-- None, lists, tuples, sets, dicts, devices, dtypes, and numbers and arrays of NumPy; everything
-- else is refused by its name. A dict is an ordered table, None is false in a list and leaves out
-- the key of a dict, a dtype and a device are strings. Names of modules keep PyTorch's numbers:
-- m:load_state_dict(sd, {base = 0}). `map_location` is a device for all tensors, a table from
-- devices to devices, or a function of a tensor and its device that returns the tensor to use, or
-- nil; by default tensors return to the device that they were saved from. With `mmap`, tensors of a
-- file of 1 MiB or more are mapped into memory. Raises an error for a file that cannot be read.
function archive.load(...)
  local path, map_location, _, mmap = parse("load", load_signature, ...)
  return require("lutra.internal.load_file")(path, map_location, mmap)
end

core._signatures[archive.load_safetensors] = safetensors_signature
core._signatures[archive.safe_open] = open_signature
core._signatures[archive.load_npy] = npy_signature
core._signatures[archive.load_npz] = npy_signature
core._signatures[archive.save_npz] = "(string path, any tensors, bool compressed = false)"
core._signatures[archive.save] = "(any value, string path)"
core._signatures[archive.load] = load_signature

return archive
