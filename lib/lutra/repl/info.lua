--- `lutra --info`: the program's version, libraries and devices.
--
-- The facts come from lutra.core.info(); this file formats them and omits unknown ones.

local host = require "lutra.repl.host"

local info = {}

local function facts()
  local ok, core = pcall(require, "lutra.core")
  if not ok then return nil, core end
  return type(core.info) == "function" and core.info() or {}
end

local function line(name, value)
  if value == nil or value == "" then return end
  io.stdout:write(("%-13s %s\n"):format(name, tostring(value)))
end

-- Describes a library: {name = "OpenBLAS", core = "SkylakeX", threads = 2} -> "OpenBLAS, core
-- SkylakeX, threads 2".
local function describe(value)
  if type(value) ~= "table" then return value end
  local parts, keys = {}, {}
  for key in pairs(value) do
    if key ~= "name" then keys[#keys + 1] = tostring(key) end
  end
  table.sort(keys)
  if value.name then parts[1] = tostring(value.name) end
  for _, key in ipairs(keys) do parts[#parts + 1] = key .. " " .. tostring(value[key]) end
  return table.concat(parts, ", ")
end

-- Describes a device: {name = "GPU", total_memory = 25276510208, major = 8, minor = 0} -> "GPU,
-- memory 23.5 GiB, ...".
local function describe_properties(properties)
  local function memory(bytes)
    if not bytes then return nil end
    local giga = bytes / 2 ^ 30
    return giga >= 1 and ("%.1f GiB"):format(giga) or ("%.0f MiB"):format(bytes / 2 ^ 20)
  end
  return describe {
    name = properties.name ~= "" and properties.name or nil,
    ["memory"] = memory(properties.total_memory),
    ["free"] = memory(properties.free_memory),
    ["processors"] = properties.multi_processor_count,
    ["capability"] = properties.major and properties.major .. "." .. properties.minor,
  }
end

-- The purposes of NVIDIA's optional libraries.
local PURPOSES = {
  cuBLAS = "matrix products, convolutions", cuBLASLt = "loaded by cuBLAS",
  cuSOLVER = "decompositions of matrices; else on the CPU",
  cuFFT = "Fourier transforms; else on the CPU",
  cuDNN = "not used in this build", NVRTC = "custom kernels, lt.elementwise",
  NCCL = "lt.distributed on CUDA devices",
}

-- Returns the release of NVIDIA's driver, or nil.
local function driver_release()
  local file <close> = io.open "/proc/driver/nvidia/version"
  return file and (file:read "l" or ""):match "%s(%d+%.%d+[%.%d]*)%s"
end

--- Returns the lines about a CUDA device: a list of {name, text}. fact(what) is core.fact of the
-- device, `release` the driver's release, or nil.
function info.device_lines(fact, release)
  local lines = {}
  local function add(name, text) lines[#lines + 1] = {"    " .. name, text} end
  local driver, toolkit, archs, code = fact "driver", fact "runtime", fact "archs", fact "code"
  if driver then
    add("driver", (release and release .. ", " or "") .. "for CUDA " .. driver)
  end
  if toolkit then add("toolkit", "CUDA " .. toolkit) end
  if archs then
    local isa = fact "isa" or "unknown"
    local notes = {
      native = "",
      PTX = ", compiled from PTX by the driver at the first use",
      none = (": no code for it in this build; build Lutra with make CUDA_ARCHS=%s"):format(
        isa:match "%d+"),
    }
    add("code", archs)
    add("GPU", isa .. (notes[code] or ""))
  end
  for name, path in (fact "libraries" or ""):gmatch "([^\t\n]+)\t([^\n]*)" do
    local purpose = PURPOSES[name] or ""
    add(name, path ~= "" and path or ("not found (%s)"):format(purpose))
  end
  return lines
end

-- Prints the devices of one type; or, when there is none, the reason.
local function print_type(kind)
  if not kind.available then
    local why = kind.why and kind.why ~= "" and ": " .. kind.why or ""
    line("  " .. tostring(kind.name), "not available" .. why)
    return
  end
  for _, properties in ipairs(kind.list) do
    local emulated = properties.emulated and " (emulated)" or ""
    local why = properties.why and properties.why:match("^[^\n]*"):gsub("^lutra: ", "")
    line("  " .. properties.device .. emulated, why or "available")
    local text = describe_properties(properties)
    if text and text ~= "" then line("", text) end
    local core = require "lutra.core"
    local function fact(what) return core._accelerator.fact(properties.device, what) end
    if kind.name == "mps" then line("    GPU", fact "isa") end
    if kind.name == "cuda" then
      for _, one in ipairs(info.device_lines(fact, driver_release())) do line(one[1], one[2]) end
    end
  end
end

-- Returns the name of the MPI library, or why there is none.
local function mpi()
  local name, why = require("lutra.core")._communication.find_library "cpu"
  return name or "not available: " .. why:match "^[^\n]*"
end

local function version_text(f)
  return ("Lutra %s (%s)"):format(f.version or "of an unknown version", _VERSION)
end

--- Prints everything. Returns the exit status: 1 when the core cannot be loaded.
function info.print()
  local f, reason = facts()
  io.stdout:write(version_text(f or {}), "\n")
  if not f then
    io.stderr:write("lutra: cannot load the core: ", tostring(reason), "\n")
    return 1
  end
  line("compiler", f.compiler)
  line("build", f.build)
  line("cpu", f.cpu)
  line("instructions", f.isa)
  line("threads", f.threads)
  line("blas", describe(f.blas))
  line("vector math", describe(f.vector_math))
  line("zlib", f.zlib)
  line("mpi", mpi())
  line("line editor", host.editor())
  line("library", package.searchpath("lutra", package.path))
  if type(f.devices) == "table" then
    io.stdout:write "devices\n"
    for _, kind in ipairs(f.devices) do print_type(kind) end
  end
  return 0
end

return info
