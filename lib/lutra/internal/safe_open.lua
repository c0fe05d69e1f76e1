--- lt.safe_open: a safetensors file whose tensors are read one at a time.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local ordered_map = require "lutra.internal.ordered_map"
local retitle = require "lutra.internal.retitle"

-- ---- slices

-- slice -> {tensor, move}
local contents = setmetatable({}, {__mode = "k"})
local methods = {}

--- s:get_shape(): returns the sizes of the whole tensor.
function methods.get_shape(self) return contents[self].tensor.shape end

--- s:get_dtype(): returns the dtype of the tensor.
function methods.get_dtype(self) return contents[self].tensor.dtype end

-- A part of a tensor that is read by an index: s[{{1, 2}}], s["1:2"].
local Slice = {__name = "SafeSlice"}
function Slice.__index(self, key)
  if methods[key] then return methods[key] end
  return contents[self].move(contents[self].tensor[key])
end

-- ---- files

local File = {__name = "SafeFile"}
File.__index = File

local function tensor_of(self, title, name)
  args.expect(type(name) == "string", title, "a string", "name", name)
  local t = rawget(self._tensors, name)
  if not t then
    local near = require("lutra.internal.nearest").find(name, ordered_map.keys(self._tensors))
    args.fail("%s: expected the name of a tensor in the file for argument 'name', got %q%s", title,
      name, near and ("\nhint: did you mean %q?"):format(near) or "")
  end
  return t
end

--- f:keys(): returns the names of the tensors as a list, in the file's order.
function File:keys() return ordered_map.keys(self._tensors) end

--- f:metadata(): returns the metadata, an ordered table of strings.
function File:metadata() return self._notes end

--- f:get_tensor(name): returns a tensor on the device of the file.
function File:get_tensor(name) return self._move(tensor_of(self, "get_tensor", name)) end

--- f:get_slice(name): returns a tensor that is read by an index, s[{{1, 10}}]; s:get_shape() and
-- s:get_dtype() describe all of it.
function File:get_slice(name)
  local slice = setmetatable({}, Slice)
  contents[slice] = {tensor = tensor_of(self, "get_slice", name), move = self._move}
  return slice
end

-- Returns the tensors and the metadata of the file, or of the files of an index.
local function read(path)
  if path:find "%.index%.json$" then
    return require("lutra.internal.safetensors_index").load(path, function(x) return x end, true)
  end
  local tensors, notes = core._load_safetensors(path, true)
  return ordered_map.new(tensors), ordered_map.new(notes)
end

--- Opens the file at `path`; `move` moves a tensor to the device.
return function(path, move)
  local tensors, notes = retitle("load_safetensors", "safe_open", read, path)
  return setmetatable({_tensors = tensors, _notes = notes, _move = move}, File)
end
