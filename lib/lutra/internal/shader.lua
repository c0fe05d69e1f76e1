--- lt.mps.compile_shader(source): compiles kernels in the Metal Shading Language from source.
--
--     local lib = lt.mps.compile_shader([==[
--       #include <metal_stdlib>
--       using namespace metal;
--       kernel void scale(device float *y, device const float *x, constant float &a,
--                         uint i [[thread_position_in_grid]]) {
--         y[i] = a * x[i];
--       }]==])
--     lib.scale(y, x, 2)
--
-- A kernel that the source declares in plain words is checked: its arguments must match its
-- parameters. One that a macro declares is found by its name, and takes any arguments: a float is
-- passed as float, an integer as long, a boolean as bool, unless arg_casts says otherwise.
--
-- Invariant: the first kernel of a library has been compiled on the device, and the whole source
-- with it.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local explain = require "lutra.internal.kernel.explain"
local metal = require "lutra.internal.kernel.metal"
local nearest = require "lutra.internal.nearest"

local FUNCTION = "mps.compile_shader"

-- Raises the error for a failed compilation.
local function fail_compile(source, log)
  args.fail("%s: cannot compile the source\n%s", FUNCTION,
    explain(log, {source = source, file = "program_source"}))
end

-- Returns the C object of a kernel, compiled.
local function compiled(source, name, list)
  local kernel = core._kernel(source, name, {}, list, false, "", true)
  local ok, log = kernel:build "mps"
  if not ok then fail_compile(source, log) end
  return kernel
end

-- Functions -------------------------------------------------------------------

local Function = {__name = "mps kernel"}

-- Returns the options of a call, which may be its last argument, and the number of the others.
local function split_options(...)
  local n = select("#", ...)
  local last = n > 0 and select(n, ...) or nil
  if args.is_plain(last) and last[1] == nil then return last, n - 1 end
  return {}, n
end

-- The types that arg_casts can name.
local CASTS = {float32 = true, float16 = true, int8 = true, int16 = true, int32 = true,
  int64 = true, uint8 = true, uint16 = true, uint32 = true, uint64 = true, bool = true}

-- Returns the parameter that fits the value of an argument of a kernel that was not declared.
local function parameter_for(self, i, value, cast)
  local element = cast
  args.check(not cast or CASTS[cast], "%s: expected a type such as \"int32\" for argument "
    .. "'arg_casts[%d]', got %s", self.name, i, args.show(cast))
  local item = args.is_plain(value) and value[1] or value
  if not element then
    element = math.type(item) == "integer" and "int64" or math.type(item) == "float" and "float32"
      or type(item) == "boolean" and "bool" or "any"
  end
  local pointer = args.is_plain(value) or element == "any"
  return {name = "argument " .. i, type = element, element = element, lanes = 1, numbers = 1,
    pointer = pointer, written = element == "any" and type(value) ~= "string",
    list = pointer and args.is_plain(value) or type(value) == "string"}
end

-- Returns the C object for a call of a kernel that was not declared.
local function for_values(self, casts, n, ...)
  local list, key = {}, {}
  for i = 1, n do
    local value = select(i, ...)
    local is_number = type(value) ~= "userdata"
    local cast = type(casts) == "table" and casts[i] or type(casts) == "string" and casts or nil
    list[i] = parameter_for(self, i, value, is_number and cast or nil)
    key[i] = list[i].element .. (list[i].pointer and "*" or "") .. (list[i].list and "+" or "")
  end
  key = table.concat(key, ",")
  self._kernels[key] = self._kernels[key] or compiled(self._source, self.name, list)
  return self._kernels[key]
end

--- f(arguments..., {threads, group_size, threadgroup_bytes, arg_casts}): launches the kernel on
-- the current stream. threads: the number of threads in all, a number or a list of up to three, by
-- default the number of elements of the first tensor. group_size: the threads of a threadgroup, by
-- default what the device chooses. threadgroup_bytes: the size of [[threadgroup(0)]]. Raises an
-- error for arguments that do not match the declaration.
function Function:__call(...)
  local options, n = split_options(...)
  local casts = options.arg_casts
  local settings = {}
  for key, value in pairs(options) do
    if key ~= "arg_casts" then settings[key] = value end
  end
  local kernel = self._kernel or for_values(self, casts, n, ...)
  local values = table.pack(...)
  local ok, log = kernel:launch(settings, table.unpack(values, 1, n))
  if not ok then fail_compile(self._source, log) end
end

function Function:__tostring()
  if not self.parameters then return ("mps kernel %s(...)"):format(self.name) end
  local words = {}
  for i, p in ipairs(self.parameters) do words[i] = p.type .. p.name end -- "device float *x"
  return ("mps kernel %s(%s)"):format(self.name, table.concat(words, ", "))
end

local LIMITS = {max_threads_per_threadgroup = 1, thread_execution_width = 2,
  static_thread_group_memory_length = 3}

-- f.max_threads_per_threadgroup, f.thread_execution_width, f.static_thread_group_memory_length
function Function:__index(name)
  local kernel, at = rawget(self, "_kernel"), LIMITS[name]
  return kernel and at and (select(at, kernel:limits "mps")) or nil
end

-- Libraries -------------------------------------------------------------------

local Library = {__name = "ShaderLibrary"}
local sources = setmetatable({}, {__mode = "k"}) -- library -> {source, names, functions}

local function names_of(kernels)
  local names = {}
  for i, k in ipairs(kernels) do names[i] = k.name end
  table.sort(names)
  return names
end

local function new_function(source, kernel)
  local list, bad = metal.read(kernel)
  args.check(list, "%s: cannot check the parameter \"%s\" of %s: expected memory (device float *x, "
    .. "constant float *x), a value (constant float &x) or a built-in with its attribute\n"
    .. "hint: textures and samplers are not supported", FUNCTION, bad, kernel.name)
  return setmetatable({name = kernel.name, parameters = list, _source = source,
    _kernel = compiled(source, kernel.name, list)}, Function)
end

-- Returns a kernel by its name; raises an error when the source has none of that name.
function Library:__index(name)
  local own = sources[self]
  local f = own.functions[name]
  if f or type(name) ~= "string" then return f end
  for _, kernel in ipairs(own.kernels) do
    if kernel.name == name then f = new_function(own.source, kernel) end
  end
  local by_macro = own.source:find("host_name", 1, true) or own.source:find "#%s*define"
  if not f and by_macro then
    f = setmetatable({name = name, _source = own.source, _kernels = {}}, Function)
  end
  local names = names_of(own.kernels)
  local near = not f and nearest.find(name, names)
  args.check(f, "%s: expected one of %s, got \"%s\"%s", FUNCTION, table.concat(names, ", "), name,
    near and ('\nhint: did you mean "%s"?'):format(near) or "")
  own.functions[name] = f
  return f
end

function Library:__newindex(name) -- luacheck: ignore self
  args.fail("%s: cannot set %s: the kernels of a library are fixed", FUNCTION, args.show(name))
end

function Library:__pairs()
  return function(_, at)
    local names = names_of(sources[self].kernels)
    for _, name in ipairs(names) do
      if not at or name > at then return name, self[name] end
    end
  end, self, nil
end

function Library:__tostring()
  return ("ShaderLibrary(%s)"):format(table.concat(names_of(sources[self].kernels), ", "))
end

local parse = args.signature(FUNCTION, "string source")

--- Returns the library of a source: a table of its kernels by name.
return function(...)
  local source = parse(...)
  core._accelerator.device("mps", nil, FUNCTION)
  local zero = source:find("\0", 1, true)
  args.check(not zero, "%s: expected text without NUL bytes for argument 'source', got one at byte "
    .. "%d", FUNCTION, zero)
  local kernels = metal.kernels(source)
  local any = #kernels > 0 or source:find "%f[%w_]kernel%f[^%w_]"
  args.check(any, "%s: expected a kernel in argument 'source', got none\n"
    .. "hint: kernel void name(device float *x, uint i "
    .. "[[thread_position_in_grid]]) { ... }", FUNCTION)
  local library = setmetatable({}, Library)
  sources[library] = {source = source, kernels = kernels, functions = {}}
  if kernels[1] then local _ = library[kernels[1].name] end
  return library
end
