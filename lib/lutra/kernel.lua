--- lt.cuda.kernel(source, name, options): a CUDA kernel from its source text.
--
--     local scale = lt.cuda.kernel([[
--       __global__ void scale(float *y, const float *x, float a, int n) {
--         int i = blockIdx.x * blockDim.x + threadIdx.x;
--         if (i < n) y[i] = a * x[i];
--       }]], "scale")
--     scale({(n + 255) // 256, 256}, y, x, 2, n)
--
-- A GPU's kernels are compiled by NVIDIA's NVRTC, an emulated device's by the system's C++
-- compiler. What was compiled is kept: in memory by source, name and options, on disk beside them
-- by the kind of device (src/cuda/kernel_cache.c).
--
-- Invariant: a kernel object is compiled, on the device that was current when it was made; and it
-- is never launched with arguments that its declaration does not allow.

local core = require "lutra.core"
local args = require "lutra.args"
local excerpt = require "lutra.excerpt"
local nearest = require "lutra.nearest"
local parameters = require "lutra.kernel.parameters"

local Kernel = {__name = "cuda kernel"}
Kernel.__index = Kernel

-- Compile errors ----------------------------------------------------------------

-- How compilers tell of an error, and of the bracket that was never closed: g++ and clang++, with a
-- column and without; then NVRTC.
local FORMATS = {
  "^(.-):(%d+):(%d+): %a* ?error: (.*)$",
  "^(.-):(%d+):(%d+): note: (to match this .*)$",
  "^(.-):(%d+)(): %a* ?error: (.*)$",
  "^(.-)%((%d+)()%): [%a ]*error:? ?(.*)$",
  "^(.-)%((%d+)()%): note[^:]*: (to match this .*)$",
}

-- What is wrong at the end, where the emulation puts lines of its own ("launch").
local END_FORMATS = {
  "^At end of source: error:? (.*)$",
  "^launch:%d+:%d+: error: (expected '}'.*)$",
}

local function first_match(text, formats)
  for _, format in ipairs(formats) do
    local a, b, c, d = text:match(format)
    if a then return a, b, c, d end
  end
end

-- The errors of a compiler's text: a list of {file, line, column, message, drawn, below}, those at
-- the end with a message only. NVRTC tells no column, but draws the line and a caret below it.
local function errors_in(log)
  local found, lines = {}, {}
  for text in log:gmatch "[^\n]+" do lines[#lines + 1] = text end
  for i, text in ipairs(lines) do
    local last = first_match(text, END_FORMATS)
    local file, line, column, message = first_match(text, FORMATS)
    if last then
      found[#found + 1] = {message = last}
    elseif file then
      found[#found + 1] = {file = file, line = tonumber(line), message = message,
        column = type(column) == "string" and tonumber(column) or nil,
        drawn = lines[i + 1], below = lines[i + 2]}
    end
  end
  return found
end

-- A line of the source without the blanks around it, and how many were before it.
local function source_line(source, number)
  local i = 0
  for line in (source .. "\n"):gmatch "([^\n]*)\n" do
    i = i + 1
    if i == number then
      local blanks, text = line:match "^(%s*)(.-)%s*$"
      return text, #blanks
    end
  end
end

-- Where an error is in the line that source_line gave.
local function place_of(e, text, blanks)
  if e.column then return math.max(1, math.min(e.column - blanks, #text + 1)) end
  local at = e.drawn and e.drawn:find(text, 1, true)
  local caret = e.below and e.below:match "^%s*()%^"
  return at and caret and caret >= at and caret - at + 1 or nil
end

local function file_of(name) return name:sub(1, 100) .. ".cu" end -- as in src/cuda/nvrtc.c

local MOST_ERRORS = 3

-- The errors that are in the source, for people: lines of text; {} where none is.
local function explain_errors(errors, source, name)
  local lines, shown, more = {}, 0, 0
  for _, e in ipairs(errors) do
    local text, blanks
    if e.file == file_of(name) then text, blanks = source_line(source, e.line) end
    if text or not e.file then
      shown = shown + 1
      if shown > MOST_ERRORS then
        more = more + 1
      elseif not text then
        lines[#lines + 1] = "  at the end: " .. e.message
      else
        lines[#lines + 1] = ("  line %d: %s"):format(e.line, e.message)
        lines[#lines + 1] = excerpt(text, place_of(e, text, blanks), "    ")
      end
    end
  end
  if more > 0 then lines[#lines + 1] = ("  and %d more"):format(more) end
  return lines
end

-- Where the source is right, and the kernel of that name and type is not in it. NVRTC and the
-- emulation call the place behind the source by these names.
local function explain_type(errors, self)
  local e = errors[1]
  if not e or (e.file ~= "__nv_name_map" and e.file ~= "launch") then return {} end
  local declared = ("void %s(%s)"):format(self.name, parameters.text(self.parameters))
  return {
    '  the compiler knows no kernel "' .. declared .. '"',
    ('  Is it in a namespace (then its name is "space::%s"), behind an #if, or a macro?'):format(
      self.name),
    "  The compiler says: " .. e.message,
  }
end

-- What a compiler said: each error with its line of the source, or all as it came.
local function explain(log, self)
  local errors = errors_in(log)
  local lines = explain_errors(errors, self.source, self.name)
  if #lines == 0 then lines = explain_type(errors, self) end
  if #lines == 0 then
    for text in log:gmatch "[^\n]+" do
      if #lines < 10 then lines[#lines + 1] = "  " .. text end
    end
  end
  return table.concat(lines, "\n")
end

local function refuse(self, log)
  args.fail("cuda.kernel: %s does not compile\n%s", self.name, explain(log, self))
end

-- Making --------------------------------------------------------------------------

local function names_of(kernels)
  local names = {}
  for i, k in ipairs(kernels) do names[i] = k.name end
  return names
end

-- The kernel of that name in the source; without a name, the only one.
local function find(source, name)
  local kernels, bad = parameters.kernels(source)
  local names = names_of(kernels)
  args.check(#kernels > 0 or not bad, "cuda.kernel: in line %d no function can be read behind "
    .. "__global__: it wants __global__ void name(...), with as many ) as (", bad)
  args.check(#kernels > 0, "cuda.kernel: the source has no kernel: a function that is declared "
    .. "__global__ void name(...)")
  if name == nil then
    args.check(#kernels == 1, 'cuda.kernel: argument "name" is missing: the source has the kernels '
      .. "%s", table.concat(names, ", "))
    name = kernels[1].name
  end
  local own = name:gsub("%b<>$", ""):match "[^:]*$" -- of "a::f" and of "f<float>"
  for _, k in ipairs(kernels) do
    if k.name == own then return k, name end
  end
  local near = nearest.find(own, names)
  return args.fail('cuda.kernel: the source has no kernel "%s"; %s', name,
    near and ('did you mean "%s"?'):format(near) or "it has " .. table.concat(names, ", "))
end

local function read_parameters(kernel)
  args.check(not kernel.template, "cuda.kernel: %s is a template, whose parameters are not known. "
    .. "Write it for one type: without \"template <...>\", and float in place of T", kernel.name)
  local list, bad = parameters.read(kernel)
  return list or args.fail("cuda.kernel: the parameter \"%s\" of %s is of a kind that cannot be "
    .. "checked. It wants numbers (float, double, half, bool, int, long long, size_t ...) and "
    .. "pointers to them, by these names", bad, kernel.name)
end

local function check_text(text, what)
  local at = text:find("\0", 1, true)
  args.check(not at, "cuda.kernel: %s has a byte 0 at position %d, and a compiler would read no "
    .. "further", what, at)
end

local function read_options(options)
  if type(options) == "string" then options = {options} end
  for i, option in ipairs(options or {}) do
    args.check(type(option) == "string" and option:find "^%-",
      'cuda.kernel: option %d is %s, it wants an option of the compiler such as "-DN=16" or '
      .. '"--use_fast_math"', i, args.show(option))
    check_text(option, "option " .. i)
  end
  return options or {}
end

local parse = args.signature("cuda.kernel", "source:string, name:string?, options:table|string?")
local made = {} -- kernels by source, name and options

local function new(source, name, options, any_layout)
  local device = core._accelerator.device("cuda", nil, "cuda.kernel")
  local key = table.concat({source, name or "", tostring(any_layout or false),
    table.unpack(options)}, "\0")
  if made[key] then return made[key] end
  check_text(source, "the source")
  local kernel, whole_name = find(source, name)
  local list = read_parameters(kernel)
  local self = setmetatable({name = kernel.name, source = source, parameters = list}, Kernel)
  self._kernel = core._kernel(source, kernel.name, options, list, any_layout,
    parameters.expression(whole_name, list))
  local ok, log = self._kernel:build(device)
  if not ok then refuse(self, log) end
  made[key] = self
  return self
end

--- Puts the kernel on the current stream of its tensors' device: kernel({grid, block,
-- shared_bytes}, arguments...). grid (blocks) and block (threads) are numbers or lists of up to
-- three.
function Kernel:__call(settings, ...)
  local ok, log = self._kernel:launch(settings, ...)
  if not ok then refuse(self, log) end
end

function Kernel:__tostring()
  return ("cuda kernel %s(%s)"):format(self.name, parameters.text(self.parameters))
end

local kernel = {}

--- See the top of the file; `name` may be left out where the source has one kernel. `options`:
-- options of the compiler, a list.
function kernel.new(...)
  local source, name, options = parse(...)
  return new(source, name, read_options(options))
end

--- The same without checks of the layout: for the library, which passes strides.
function kernel.internal(source, name) return new(source, name, {}, true) end

kernel._explain = explain

return kernel
