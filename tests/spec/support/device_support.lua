--- What the specs of devices share: running a spec on emulated devices, or on the GPU where
-- LUTRA_TEST_GPU is set.

local assert = require "luassert"
local program = require "program_support"

local support = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

local emulated = {} -- type of devices -> whether they can be emulated

--- Was this Lutra built with emulated devices of a type ("cuda" where it is left out)?
function support.can_emulate(kind)
  kind = kind or "cuda"
  if emulated[kind] == nil then
    emulated[kind] = program.run(("--emulate %s -e 'os.exit(lt.%s.is_built())'"):format(kind, kind)
      ).status == 0
  end
  return emulated[kind]
end

local can_compile -- nil until the first call

--- Can kernels be compiled from source: by NVRTC for a GPU, where LUTRA_TEST_GPU is set, by a C++
-- compiler for emulated devices?
function support.can_compile()
  if can_compile == nil then
    local on = os.getenv "LUTRA_TEST_GPU" and "" or "--emulate cuda:1 "
    can_compile = program.run(on .. "-e 'lt.cuda.kernel(\"__global__ void k() {}\", \"k\")'").status
      == 0
  end
  return can_compile
end

-- What this build lacks for emulated devices ("cuda:2,mps,peer=off"), or nil.
local function missing(devices)
  for item in devices:gmatch "[^,]+" do
    local kind = item:match "^%a+"
    if not item:find("=", 1, true) and not support.can_emulate(kind) then
      return ("no emulated %s in this build"):format(kind)
    end
  end
end

--- busted's `it` for tests that need emulated devices ("cuda" where they are left out): without any
-- they are skipped. busted's words are in the environment of the file that asks:
-- devices.emulated_it(_ENV).
function support.emulated_it(busted, devices)
  return function(title, f)
    busted.it(title, function()
      local lacks = missing(devices or "cuda")
      if lacks then return busted.pending(lacks) end
      f()
    end)
  end
end

--- The same for tests that make calls of the device's driver fail: with a GPU (LUTRA_TEST_GPU) they
-- are skipped.
function support.faulty_it(busted, devices)
  if not os.getenv "LUTRA_TEST_GPU" then return support.emulated_it(busted, devices) end
  return function(title)
    busted.pending(title .. ": only emulated devices fail when asked to")
  end
end

--- Compiles a kernel's source with NVIDIA's NVRTC: {status, out, err}; or nil, and why it cannot.
function support.nvrtc(source, name)
  local compiler = program.program:gsub("[^/]*$", "tests/test_nvrtc")
  local file = io.open(compiler)
  if not file then return nil, "make test builds tests/test_nvrtc" end
  file:close()
  local path = program.file(source, ".cu")
  local result = program.shell(("%s %s %s"):format(program.quote(compiler), path, name))
  os.remove(path)
  if result.status == 77 then return nil, "needs libnvrtc" end
  return result
end

--- The device on which the specs of any type of device run.
function support.device()
  return (os.getenv "LUTRA_EMULATE" or ""):find "^mps" and "mps" or "cuda:0"
end

--- Returns the dtypes of a list that this device has.
function support.dtypes(list)
  local has, found = {}, {}
  local capability = require "lutra".accelerator.get_device_capability(support.device())
  for _, dtype in ipairs(capability.supported_dtypes) do has[dtype] = true end
  for _, dtype in ipairs(list) do
    if has[dtype] then found[#found + 1] = dtype end
  end
  return found
end

--- Must the spec `name` be run in another process, where there are devices? Then there are tests
-- that do it, and the file that asks ends:
--   if devices.elsewhere("cuda/streams", _ENV) then return end
-- busted's words are in the environment of that file. `options` (may be left out):
--
-- emulate: a list of what the devices are, by default {"cuda:2"}: the spec runs on each
-- any: the spec runs on support.device(), of any type; with LUTRA_TEST_GPU on NVIDIA's GPU
-- reverse: again with threads and blocks in the reverse order: a result that depends on it is
--   wrong, or is missing a barrier
-- compiles: kernels from source are needed: skipped where none can be compiled
-- bits: a script whose output is the same on every run and in any order of threads
function support.elsewhere(name, busted, options)
  options = options or {}
  if os.getenv "LUTRA_EMULATE" then return false end -- the outer process has asked
  local kinds = options.emulate or {"cuda:2"}
  -- no GPU of NVIDIA can run it
  local apple = not options.any and table.concat(kinds, ","):find "mps"
  if os.getenv "LUTRA_TEST_GPU" and not apple then
    if not options.compiles or support.can_compile() then return false end
    busted.it(name .. " on a GPU", function() busted.pending "needs libnvrtc" end)
    return true
  end
  local debug_build = os.getenv "LUTRA_TEST_DEBUG" -- too slow to do everything twice
  local function run(kind, order, ...)
    local words = {...}
    for i, word in ipairs(words) do words[i] = program.quote(word) end
    -- compiled kernels are kept beside the program, not in the user's home
    local cache = '"$(cd "$(dirname ' .. program.quote(program.program) .. ')" && pwd)/cache"'
    return program.shell(("env -u CUDA_VISIBLE_DEVICES -u CUDA_LAUNCH_BLOCKING XDG_CACHE_HOME=%s "
      .. "LUTRA_EMULATE=%s,memory=%s LUTRA_EMULATE_ORDER=%s %s %s"):format(cache, kind,
      options.memory or "256MiB", order, program.quote(program.program), table.concat(words, " ")))
  end
  local test = support.emulated_it(busted, table.concat(kinds, ","))

  busted.describe(name .. " on emulated devices", function()
    for _, order in ipairs {"forward", options.reverse and not debug_build and "reverse" or nil} do
      for _, kind in ipairs(kinds) do
        local which = options.emulate and " on " .. kind or ""
        test("passes, threads " .. order .. which, function()
          if options.compiles and not support.can_compile() then
            return busted.pending "needs a C++ compiler"
          end
          local result = run(kind, order, root .. "tests/busted.lua",
            ("%stests/spec/%s_spec.lua"):format(root, name))
          assert.equal(0, result.status, "\n" .. result.out .. result.err)
        end)
      end
    end
    if not options.bits or debug_build then return end
    for _, kind in ipairs(options.any and kinds or {kinds[#kinds]}) do
      test("has the same bits on every run, in any order of threads, on " .. kind, function()
        local path = program.file(options.bits)
        local first, again = run(kind, "forward", path), run(kind, "forward", path)
        local reverse = run(kind, "reverse", path)
        os.remove(path)
        assert.equal(0, first.status, first.err)
        assert.is_true(#first.out > 500, "it says little: " .. first.out)
        assert.equal(first.out, again.out)
        assert.equal(first.out, reverse.out)
      end)
    end
  end)
  return true
end

--- Fails unless fn(...) raises an error whose message holds every given text and begins with a
-- line outside the library. Returns the message.
function support.fails(texts, fn, ...)
  local values = table.pack(...)
  local ok, message = pcall(function()
    local result = fn(table.unpack(values, 1, values.n))
    return result -- no tail call: the error is to be raised at a line of this file
  end)
  assert.is_false(ok, "no error was raised")
  for _, text in ipairs(type(texts) == "table" and texts or {texts}) do
    assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
  end
  assert.is_truthy(message:match "^[^\n]*tests/spec/[%w_/]+%.lua:%d+: ", message)
  return message
end

--- Runs a script in a process of its own with the same devices. Returns {out, err, status}.
function support.script(text, environment)
  local path = program.file(text)
  local result = program.shell(("env %s %s %s"):format(environment or "",
    program.quote(program.program), program.quote(path)))
  os.remove(path)
  return result
end

return support
