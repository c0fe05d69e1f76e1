--- Files of torch.save: the zip format (PyTorch 1.6 and later) and the format before it.
--
-- Their structure is a pickle, which lutra.internal.pickle reads without running code: FUNCTIONS
-- lists all that it may call. Invariant: every tensor lies inside its storage, and every storage
-- inside the file.

local lt = require "lutra"
local core = require "lutra.core"
local pickle = require "lutra.internal.pickle"
local zip = require "lutra.internal.zip"

local torch_file = {}

local None = pickle.None
local MAX_DIMS = require("lutra.internal.dims").MOST
local INVALID = "it has a tensor with an invalid geometry"

-- ---- values

local storages = {Double = "float64", Float = "float32", Half = "float16", BFloat16 = "bfloat16",
  Long = "int64", Int = "int32", Short = "int16", Char = "int8", Byte = "uint8", Bool = "bool",
  ComplexFloat = "complex64", ComplexDouble = "complex128", Untyped = "uint8"}

-- Returns the dtype of a storage's class, "torch.FloatStorage"; nil for any other name.
local function storage_dtype(name)
  return storages[name:match "^torch%.(%w+)Storage$" or name:match "^torch%.storage%.(%w+)Storage$"
    or ""]
end

-- Returns the dtype of a global, "torch.float32"; nil for any other name.
local function dtype_of(name)
  local dtype = name:match "^torch%.(%w+)$"
  return dtype and rawget(lt, dtype) == dtype and dtype or nil
end

local function is_size(n) return math.type(n) == "integer" and n >= 0 end

-- Checks that the geometry is valid and inside of `numel` elements.
local function check_geometry(m, numel, offset, size, stride)
  local dims = type(size) == "table" and m.tuples[size]
  if not dims or type(stride) ~= "table" or m.tuples[stride] ~= dims or dims > MAX_DIMS
    or not is_size(offset) then
    m:fail(INVALID)
  end
  local last, count = offset + 0.0, 1.0 -- floats, which do not overflow
  for i = 1, dims do
    local n, step = size[i], stride[i]
    if not is_size(n) or not is_size(step) then m:fail(INVALID) end
    count = count * n
    last = last + (n - 1.0) * step
  end
  if count > 2 ^ 53 then m:fail(INVALID) end
  if count > 0 and last >= numel or offset > numel then
    m:fail "it has a tensor that lies outside of its storage"
  end
end

-- Returns the tensor of a geometry on a storage; under a dry run, true. `metadata` tells whether
-- its elements are still to be conjugated or negated; then the result is a copy.
local function rebuild(m, storage, offset, size, stride, requires_grad, metadata, dtype)
  if pickle.kind(storage) ~= "storage" then m:fail "it has a tensor without a storage" end
  local flat = storage.tensor
  if not flat then return true end
  if dtype and dtype ~= flat.dtype then flat = flat:view(dtype) end
  check_geometry(m, flat:numel(), offset, size, stride)
  local t = lt.no_grad(function()
    local view = lt.as_strided(flat, size, stride, offset):detach()
    if type(metadata) ~= "table" then return view end
    if metadata.conj == true then view = view:conj():resolve_conj() end
    return metadata.neg == true and -view or view
  end)
  return requires_grad == true and t:requires_grad_(true) or t
end

local functions = {}

functions["torch._utils._rebuild_tensor_v2"] = function(m, storage, offset, size, stride, grad, _,
  metadata)
  return rebuild(m, storage, offset, size, stride, grad, metadata)
end
functions["torch._utils._rebuild_tensor"] = functions["torch._utils._rebuild_tensor_v2"]

functions["torch._utils._rebuild_tensor_v3"] = function(m, storage, offset, size, stride, grad, _,
  dtype, metadata)
  local name = pickle.kind(dtype) == "global" and dtype.name or "?"
  return rebuild(m, storage, offset, size, stride, grad, metadata, dtype_of(name) or m:refuse(name))
end

functions["torch._utils._rebuild_parameter"] = function(m, data, requires_grad)
  if data == true then return true end
  if not lt.is_tensor(data) then m:fail "it has a parameter without a tensor" end
  return lt.nn.Parameter(data:detach(), requires_grad == true)
end
functions["torch._utils._rebuild_parameter_with_state"] =
  functions["torch._utils._rebuild_parameter"]

functions["torch._utils._rebuild_meta_tensor_no_storage"] = function(m, dtype, size)
  local name = pickle.kind(dtype) == "global" and dtype.name or "?"
  for i = 1, m.tuples[size] or m:fail(INVALID) do
    if not is_size(size[i]) then m:fail(INVALID) end
  end
  return lt.empty(size, {dtype = dtype_of(name) or m:refuse(name), device = "meta"})
end

-- A tensor with attributes of Python: (function, class, arguments, attributes).
functions["torch._tensor._rebuild_from_type_v2"] = function(m, f, class, arguments)
  local name = pickle.kind(class) == "global" and class.name or "?"
  if name ~= "torch.Tensor" and name ~= "torch.nn.parameter.Parameter" then m:refuse(name) end
  return m:call(f, arguments)
end

functions["torch.Size"] = function(m, sizes) return sizes or m:tuple({}, 0) end

functions["torch.device"] = function(m, kind, index)
  if type(kind) ~= "string" then m:fail "it has an invalid device" end
  return is_size(index) and ("%s:%d"):format(kind, index) or kind
end

functions["collections.OrderedDict"] = function(m, items)
  local dict = m:dict()
  for _, item in ipairs(items or {}) do
    if type(item) ~= "table" or #item ~= 2 then m:fail "it has an invalid OrderedDict" end
    m:set_items(dict, item, 2)
  end
  return dict
end

functions["builtins.set"] = function(m, items) return m:set(items or {}, #(items or {})) end
functions["builtins.frozenset"] = functions["builtins.set"]

functions["builtins.bytearray"] = function(m, text, encoding)
  if encoding then return functions["_codecs.encode"](m, text, encoding) end
  return type(text) == "string" and text or ""
end

-- Pickles of protocol 2 write bytes as (str, "latin1").
functions["_codecs.encode"] = function(m, text, encoding)
  if type(text) ~= "string" or encoding ~= "latin1" then m:refuse "_codecs.encode" end
  local ok, bytes = pcall(text.gsub, text, utf8.charpattern, function(c)
    return #c > 1 and string.char(utf8.codepoint(c)) or nil
  end)
  return ok and bytes or m:fail "it has invalid bytes"
end

functions["builtins.complex"] = function(m, re, im)
  if type(re) ~= "number" or type(im) ~= "number" then m:fail "it has an invalid number" end
  return lt.complex(re, im)
end

-- ---- NumPy's numbers and arrays

functions["numpy.dtype"] = function(m, code)
  if type(code) ~= "string" then m:refuse "numpy.dtype" end
  return pickle.internal{kind = "dtype", code = code:gsub("^[<>|=]", ""), order = "<"}
end

-- Returns the tensor of an array's bytes, by the reader of .npy files.
local function array(m, dtype, sizes, fortran, bytes)
  local dims = type(sizes) == "table" and m.tuples[sizes]
  if pickle.kind(dtype) ~= "dtype" or type(bytes) ~= "string" or not dims then
    m:refuse "numpy.ndarray"
  end
  local shape = ""
  for i = 1, dims do
    if not is_size(sizes[i]) then m:refuse "numpy.ndarray" end
    shape = shape .. ("%d,"):format(sizes[i])
  end
  if not dtype.code:find "^%w+$" or dtype.code:find "^O" then
    m:refuse("numpy.dtype " .. dtype.code)
  end
  local header = ("{'descr': '%s%s', 'fortran_order': %s, 'shape': (%s), }\n"):format(dtype.order,
    dtype.code, fortran and "True" or "False", shape)
  local ok, t = pcall(core._npy_parse, ("\x93NUMPY\1\0%s"):format(("<s2"):pack(header)) .. bytes,
    "array")
  return ok and t or m:refuse("numpy.dtype " .. dtype.code)
end

functions["numpy.core.multiarray.scalar"] = function(m, dtype, bytes)
  return array(m, dtype, m:tuple({}, 0), false, bytes):item()
end
functions["numpy._core.multiarray.scalar"] = functions["numpy.core.multiarray.scalar"]

functions["numpy.core.multiarray._reconstruct"] = function()
  return pickle.internal{kind = "array"}
end
functions["numpy._core.multiarray._reconstruct"] =
  functions["numpy.core.multiarray._reconstruct"]

functions["numpy._core.numeric._frombuffer"] = function(m, bytes, dtype, sizes, order)
  return array(m, dtype, sizes, order == "F", bytes)
end
functions["numpy.core.numeric._frombuffer"] = functions["numpy._core.numeric._frombuffer"]

-- ---- the machine's host

local function build(m, object, state)
  local kind = pickle.kind(object)
  if kind == "dtype" then
    local order = type(state) == "table" and state[2]
    object.order = order == ">" and ">" or "<"
  elseif kind == "array" then
    if type(state) ~= "table" or m.tuples[state] ~= 5 then m:refuse "numpy.ndarray" end
    object.value = array(m, state[3], state[2], state[4] == true, state[5])
  elseif not m.dicts[object] and not lt.is_tensor(object) then
    m:fail "it has an object with a state that is not supported"
  end
  return object -- an OrderedDict's attributes, such as _metadata, are not read
end

local function plain(m, value)
  if value.kind == "storage" then return value.tensor or true end
  if value.kind == "array" and value.value then return value.value end
  local name = value.name or "numpy." .. value.kind
  return dtype_of(name) or m:refuse(name)
end

-- Returns a host that finds storages by read_storage(m, dtype, key, numel, location, view).
local function host(read_storage)
  local known = {}
  return {functions = functions, build = build, plain = plain, persistent = function(m, id)
    local count = type(id) == "table" and m.tuples[id] or 0
    local tag, class, key, location, numel, view = table.unpack(id, 1, count)
    local dtype = pickle.kind(class) == "global" and storage_dtype(class.name)
    if tag ~= "storage" or type(key) ~= "string" or type(location) ~= "string" then
      m:fail "it refers to an object that is no storage"
    end
    if not dtype then m:refuse(pickle.kind(class) == "global" and class.name or "a storage") end
    if not is_size(numel) then m:fail "it has a storage with an invalid size" end
    if view == None then view = nil end
    if view ~= nil and (type(view) ~= "table" or m.tuples[view] ~= 3) then
      m:fail "it has an invalid view of a storage"
    end
    local name = view and key .. "/" .. tostring(view[1]) or key
    local storage = known[name]
    if storage and (storage.dtype ~= dtype or storage.numel ~= numel) then
      -- one storage, seen as another dtype: PyTorch writes such views of untyped storages
      m:fail "it has a storage with two dtypes"
    end
    if not storage then
      storage = pickle.internal{kind = "storage", dtype = dtype, numel = numel,
        tensor = read_storage(m, dtype, key, numel, location, view)}
      known[name] = storage
    end
    return storage
  end}
end

-- Runs the machine; fail(why) raises the error of the file.
local function unpickle(text, at, machine_host, fail)
  local ok, value, after = pcall(pickle.read, text, at, machine_host)
  if ok then return value, after end
  if value == pickle.truncated then return fail(tostring(value), value) end
  if type(value) == "table" and value.pickle then return fail(value.pickle) end
  error(value, 0)
end

-- ---- the zip format

-- Returns the contents of a small entry.
local function text_of(source, entry, fail)
  return core._tensor_bytes(zip.read(source, entry, fail))
end

--- Returns the value of a zip archive of torch.save in `source`; move(t, location) moves a storage
-- to its device.
function torch_file.read_zip(source, move, fail)
  local entries, list = zip.open(source, fail)
  local folder
  for _, entry in ipairs(list) do
    local name = entry.name:match "^(.*/)data%.pkl$"
    if name and not name:find("/.*/") then folder = folder or name end
  end
  if not folder then
    fail(list[1] and list[1].name:find "%.npy$" and "it is an archive of NumPy arrays\nhint: "
      .. "lt.load_npz(path)" or "it is a zip archive without data.pkl, not a file of torch.save")
  end
  if entries[folder .. "constants.pkl"] then
    fail "it is a TorchScript program, not data\nhint: torch.save(model.state_dict(), path)"
  end
  local order = entries[folder .. "byteorder"]
  local swap = order ~= nil and text_of(source, order, fail) == "big"
  local function read_storage(m, dtype, key, numel, location)
    local entry = entries[folder .. "data/" .. key]
    if not entry then m:fail("it lacks the storage %q", key) end
    local size = lt.empty({}, {dtype = dtype}):element_size()
    if entry.size % size ~= 0 or entry.size // size ~= numel then
      m:fail("its storage %q has %d bytes, expected %d elements of %d bytes", key, entry.size,
        numel, size)
    end
    local t
    if entry.method == 0 then
      t = source:tensor(entry.at, dtype, numel, swap)
    else
      if swap then m:fail "it is compressed and big-endian, which is not supported" end
      t = zip.read(source, entry, fail):view(dtype)
    end
    return move(t, location)
  end
  local text = text_of(source, entries[folder .. "data.pkl"], fail)
  local value, after = unpickle(text, 1, host(read_storage), fail)
  if after <= #text then fail "its pickled data has bytes after its end" end
  return value
end

-- ---- the format before PyTorch 1.6

local MAGIC = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."

--- Returns whether the first bytes of a file are those of the old format.
function torch_file.is_old(start) return start:sub(1, #MAGIC) == MAGIC end

-- Calls f with a longer and longer start of the file until it is not truncated.
local function with_text(source, f, fail)
  local size = source:size()
  local n = math.min(size, 1 << 20)
  while true do
    local text, cut = source:bytes(0, n), {}
    local ok, result = pcall(f, text, function(why, truncated)
      if truncated and n < size then error(cut, 0) end
      fail(why)
    end)
    if ok then return result end
    if result ~= cut then error(result, 0) end
    n = math.min(size, n * 4)
  end
end

-- Returns the offset of each storage's elements by key, and its number of elements. `dtypes` are
-- the dtypes that the objects expect.
local function locate(source, at, keys, dtypes, fail)
  local found = {}
  for _, key in ipairs(keys) do
    local dtype = dtypes[key]
    if type(key) ~= "string" or not dtype or found[key] then
      fail "its list of storages is damaged"
    end
    if at > source:size() - 8 then fail "it is truncated: a storage is missing" end
    local numel = ("<i8"):unpack(source:bytes(at, 8))
    local size = lt.empty({}, {dtype = dtype}):element_size()
    at = at + 8
    if numel < 0 or numel > (source:size() - at) // size then
      fail "it is truncated: a storage ends past the end of the file"
    end
    found[key] = {at = at, numel = numel}
    at = at + numel * size
  end
  return found
end

--- Returns the value of a file in the old format.
function torch_file.read_old(source, move, fail)
  return with_text(source, function(text, stop)
    local nothing = host(function(m) m:fail "its header is damaged" end)
    local version, system, keys
    local at = #MAGIC + 1
    version, at = unpickle(text, at, nothing, stop)
    system, at = unpickle(text, at, nothing, stop)
    if version ~= 1001 or type(system) ~= "table" then fail "its version is not supported" end
    if system.little_endian == false then fail "it is big-endian, which is not supported" end
    local start, dtypes = at, {}
    -- The storages follow the objects: the first pass finds their dtypes and its end.
    at = select(2, unpickle(text, start, host(function(_, dtype, key)
      dtypes[key] = dtype
    end), stop))
    keys, at = unpickle(text, at, nothing, stop)
    if type(keys) ~= "table" then fail "its list of storages is damaged" end
    local found, loaded = locate(source, at - 1, keys, dtypes, fail), {}
    local value = unpickle(text, start, host(function(m, dtype, key, numel, location, view)
      local place = found[key] or m:fail("it lacks the storage %q", key)
      if not loaded[key] then
        if not view and place.numel ~= numel then m:fail "it has a storage with an invalid size" end
        loaded[key] = move(source:tensor(place.at, dtype, place.numel), location)
      end
      if not view then return loaded[key] end
      local offset, count = view[2], view[3]
      if not is_size(offset) or not is_size(count) or offset > place.numel
        or count > place.numel - offset then
        m:fail "it has a storage with an invalid size"
      end
      return lt.as_strided(loaded[key], {count}, {1}, offset)
    end), stop)
    return {value}
  end, fail)[1]
end

return torch_file
