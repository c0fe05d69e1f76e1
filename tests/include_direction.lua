-- The line without a circle: vm-bindings -> tensor -> kernel.h <- cpu | cuda | mps | meta. Reads
-- every #include under src/ and fails for one that points the wrong way, for a device that reaches
-- a private header of the core, for a name of Lutra's in the emulated CUDA, and for a circle among
-- the modules that all others need.
-- Run it from the repository's root: `lua5.4 tests/include_direction.lua`.

-- What each part may include, besides itself and the system's headers.
local may = {
  ["src/tensor"] = {},
  ["src/tensor/accel"] = {"src/tensor"}, -- what vendors share: the core knows devices by device.h
  ["src/cpu"] = {"src/tensor"},
  ["src/meta"] = {"src/tensor"},
  ["src/cuda"] = {"src/tensor", "src/tensor/accel"},
  ["src/emulation"] = {}, -- what emulated devices share: knows nothing of Lutra
  ["src/cuda/emulated"] = {"src/emulation"}, -- a CUDA runtime: knows nothing of Lutra
  ["src/mps"] = {"src/tensor", "src/tensor/accel"},
  ["src/mps/emulated"] = {"src/emulation"}, -- metal.h on a CPU; its contract is src/mps/metal.h
  ["src/vm-bindings"] = {"src/tensor"},
  ["src/repl"] = {"src/tensor", "src/vm-bindings", "src/repl/editor", "src/repl/kernel"},
  ["src/repl/editor"] = {"src/vm-bindings"}, -- edits a cell: who reads cells is above it
  ["src/repl/kernel"] = {"src/tensor", "src/repl"}, -- the channels of a notebook
}

-- System headers that belong to some parts only.
local lua_parts = {"src/vm-bindings", "src/repl", "src/repl/editor", "src/repl/kernel"}
local reserved = {
  {pattern = "^lua[%w]*%.h$", what = "Lua", parts = lua_parts},
  {pattern = "^lauxlib%.h$", what = "Lua", parts = lua_parts},
  {pattern = "^cu", what = "CUDA", parts = {"src/cuda", "src/cuda/emulated"}},
  {pattern = "^nvrtc", what = "CUDA", parts = {"src/cuda", "src/cuda/emulated"}},
  {pattern = "^Metal/", what = "Metal", parts = {"src/mps"}},
  {pattern = "^cblas", what = "BLAS", parts = {"src/cpu"}},
}

local function contains(list, value)
  for _, v in ipairs(list) do
    if v == value then return true end
  end
  return false
end

-- "src/cpu/../tensor/x.h" -> "src/tensor/x.h"
local function normal(path)
  local out = {}
  for piece in path:gmatch "[^/]+" do
    if piece == ".." then
      out[#out] = nil
    elseif piece ~= "." then
      out[#out + 1] = piece
    end
  end
  return table.concat(out, "/")
end

local function part_of(path)
  return path:match "^src/%w+/emulated" or path:match "^src/tensor/accel/" and "src/tensor/accel"
    or path:match "^src/repl/editor" or path:match "^src/repl/kernel"
    or path:match "^src/[^/]+" or path:match "^tests/c"
end

-- The file that the include line `#include "name"` in `file` names, or nil. As the compiler looks:
-- beside the file, then in the -I folders.
local function included(file, name, exists)
  local from = part_of(file)
  for _, folder in ipairs {file:match "^(.*)/", "src", "src/tensor", from, from .. "/include",
    "src/emulation/include"} do
    local path = normal(folder .. "/" .. name)
    if exists(path) then return path end
  end
end

-- Why `file` may not hold the include line `text`, or nil; `exists(path)` tells of a file.
local function objection(file, text, exists)
  local open, name = text:match '^%s*#%s*include%s*([<"])([^>"]+)'
  if not name then return nil end
  local from = part_of(file)
  if not may[from] then return "stands in a part of src/ that the rules do not know" end
  if open == "<" then
    for _, rule in ipairs(reserved) do
      if name:match(rule.pattern) and not contains(rule.parts, from) then
        return ("<%s>: %s belongs to %s"):format(name, rule.what, table.concat(rule.parts, ", "))
      end
    end
    return nil
  end
  local path = included(file, name, exists)
  if not path then
    return ('"%s" is in none of the folders that the build looks in'):format(name)
  end
  local to = part_of(path)
  if from == "src/mps/emulated" and path == "src/mps/metal.h" then return nil end
  if to == from or contains(may[from], to) then return nil end
  return ('"%s" is %s: %s may include only itself%s'):format(name, path, from,
    #may[from] > 0 and " and " .. table.concat(may[from], ", ") or "")
end

-- What a device does not see: its files and all that they include use kernel.h instead. A device
-- that is not part of the tree can use no more than these do.
local private = {
  ["src/tensor/core.h"] = true, ["src/tensor/trace.h"] = true, ["src/tensor/infer.h"] = true,
  ["src/tensor/autograd/autograd.h"] = true,
}
local function is_device(file)
  return file:find "^src/cpu/" or file:find "^src/meta/"
    or file:find "^src/mps/" and not file:find "^src/mps/emulated/"
    or file:find "^src/cuda/" and not file:find "^src/cuda/emulated/"
    or file:find "^tests/c/plugin_" or file:find "^tests/c/toy_device"
end

-- The includes that lead from `file` to a private header, "a.c -> b.h -> src/tensor/core.h", or
-- nil.
local function way_to_private(file, text_of, exists, seen)
  seen = seen or {}
  if seen[file] then return nil end
  seen[file] = true
  for name in ("\n" .. text_of(file)):gmatch '\n%s*#%s*include%s*"([^"]+)"' do
    local path = included(file, name, exists)
    if path and private[path] then return file .. " -> " .. path end
    local way = path and way_to_private(path, text_of, exists, seen)
    if way then return file .. " -> " .. way end
  end
end

local checks = dofile "tests/checks.lua"
local check = checks.check

-- The rules themselves: what they must refuse, they refuse.
local there = {
  ["src/tensor/lutra.h"] = true, ["src/cpu/cpu.h"] = true, ["src/vm-bindings/b.h"] = true,
  ["src/cuda/emulated/runtime.h"] = true, ["src/tensor/accel/accel.h"] = true,
  ["src/repl/repl.h"] = true, ["src/repl/editor/keys.h"] = true, ["src/emulation/queue.h"] = true,
  ["src/mps/metal.h"] = true, ["src/mps/mps.h"] = true,
  ["src/emulation/include/emulated/threads.h"] = true,
}
local function judge(refused, file, text)
  local reason = objection(file, text, function(path) return there[path] end)
  check((reason ~= nil) == refused, ("%s in %s must be %s"):format(text, file,
    refused and "refused" or "allowed"))
end
judge(true, "src/tensor/a.c", "#include <lua.h>")
judge(true, "src/cpu/a.c", "# include <lauxlib.h>")
judge(true, "src/tensor/a.c", '#include "../cpu/cpu.h"')
judge(true, "src/tensor/io/a.c", '#include "cpu/cpu.h"')
judge(true, "src/meta/a.c", '#include "../cpu/cpu.h"')
judge(true, "src/cpu/a.c", '#include "../vm-bindings/b.h"')
judge(true, "src/vm-bindings/b.c", '#include "cpu/cpu.h"')
judge(true, "src/tensor/a.c", "#include <cuda_runtime.h>")
judge(true, "src/cuda/a.cu", '#include "emulated/runtime.h"')
judge(true, "src/cuda/emulated/a.cpp", '#include "lutra.h"')
judge(true, "src/emulation/a.cpp", '#include "lutra.h"')
judge(true, "src/emulation/a.cpp", '#include "cuda/emulated/runtime.h"')
judge(true, "src/emulation/a.cpp", "#include <cuda_runtime.h>")
judge(true, "src/cuda/a.c", '#include "emulation/queue.h"')
judge(true, "src/mps/emulated/a.cpp", '#include "../mps.h"')
judge(false, "src/mps/emulated/a.cpp", '#include "../metal.h"')
judge(false, "src/mps/emulated/a.cpp", '#include "emulation/queue.h"')
judge(false, "src/cuda/emulated/a.cpp", '#include "emulation/queue.h"')
judge(false, "src/cuda/emulated/a.cpp", '#include "emulated/threads.h"')
judge(true, "src/new/a.c", "#include <math.h>")
judge(true, "src/cpu/a.c", '#include "lost.h"')
judge(true, "src/tensor/trace.c", '#include "accel/accel.h"')
judge(true, "src/vm-bindings/a.c", '#include "accel/accel.h"')
judge(true, "src/repl/editor/keys.c", '#include "../repl.h"')
judge(false, "src/cuda/cuda.h", '#include "accel/accel.h"')
judge(false, "src/tensor/accel/a.c", '#include "lutra.h"')
judge(false, "src/repl/lineread.c", '#include "editor/keys.h"')
judge(false, "src/cpu/kernels/a.c", '#include "../../tensor/lutra.h"')
judge(false, "src/cpu/kernels/a.c", '#include "lutra.h"')
judge(false, "src/repl/a.c", '#include "vm-bindings/b.h"')
judge(false, "src/vm-bindings/a.c", "#include <lua.h>")

-- Devices: each of these, in a file of a device, leads to a private header or does not.
local texts = {
  ["src/tensor/core.h"] = '#include "kernel.h"\n', ["src/tensor/kernel.h"] = "int x;\n",
  ["src/tensor/trace.h"] = "\n", ["src/cpu/rows.h"] = ' # include "../tensor/core.h"\n',
  ["src/cpu/sort.h"] = '#include "kernel.h"\n#include "sort.h"\n',
  ["src/tensor/accel/accel.h"] = '#include "kernel.h"\n',
}
for include, refused in pairs {
  ["core.h"] = true, ["trace.h"] = true, ["../cpu/rows.h"] = true, ["../tensor/core.h"] = true,
  ["kernel.h"] = false, ["../cpu/sort.h"] = false, ["accel/accel.h"] = false,
} do
  for _, file in ipairs {"src/cuda/a.c", "tests/c/plugin_a.c"} do
    if file:find "^src" or not include:find "^%.%." then
      texts[file] = ('\n#include "%s"\n'):format(include)
      local way = way_to_private(file, function(path) return texts[path] end,
        function(path) return texts[path] ~= nil end)
      check(is_device(file) and (way ~= nil) == refused, ("%s in %s must be %s"):format(include,
        file, refused and "refused" or "allowed"))
    end
  end
end
check(not is_device "src/cuda/emulated/a.cpp" and not is_device "src/tensor/elementwise_loop.c",
  "neither CUDA's emulation nor the core is a device")

-- The sources.
local function exists(path)
  local f = io.open(path)
  return f and f:close()
end
local function text_of(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end
local source = {
  c = true, h = true, def = true, cu = true, cuh = true, cpp = true, m = true, metal = true,
}
local files, devices = 0, 0
for file in io.popen("find src tests/c -type f | sort"):lines() do
  if source[file:match "%.(%w+)$"] and is_device(file) then
    devices = devices + 1
    local way = way_to_private(file, text_of, exists)
    check(not way, ("%s: a device includes kernel.h instead"):format(way))
  end
  if source[file:match "%.(%w+)$"] and file:find "^src/" then
    files = files + 1
    local number, why = 0, {}
    for line in io.lines(file) do
      number = number + 1
      local reason = objection(file, line, exists)
      if reason then why[#why + 1] = ("%s:%d: %s"):format(file, number, reason) end
    end
    check((part_of(file) ~= "src/cuda/emulated" and part_of(file) ~= "src/emulation")
      or not text_of(file):find "%f[%w_]lt_c%a+_",
      file .. ": an emulated runtime names no function of Lutra's devices")
    check(#why == 0, table.concat(why, "\n       "))
  end
end

-- Lua: which modules of the library a module needs, at once or when it is used.
local function needs(path)
  local list = {}
  for line in io.lines(path) do
    for name in line:gsub("%-%-.*", ""):gmatch [=[require%s*%(?%s*["']([%w_.]+)["']]=] do
      list[#list + 1] = name
    end
  end
  return list
end
local function reaches(from, to, seen)
  local path = "lib/" .. from:gsub("%.", "/") .. ".lua"
  if seen[from] or not exists(path) then return false end
  seen[from] = true
  for _, name in ipairs(needs(path)) do
    if name == to or reaches(name, to, seen) then return true end
  end
  return false
end
for from, above in pairs {
  ["lutra.internal.args"] = {"lutra.internal.args", "lutra.autograd", "lutra"},
  ["lutra.autograd"] = {"lutra.autograd", "lutra"},
} do
  check(#needs("lib/" .. from:gsub("%.", "/") .. ".lua") > 0,
    from .. " needs no module: look at `needs`")
  for _, name in ipairs(above) do
    check(not reaches(from, name, {}), ("%s needs %s, directly or not"):format(from, name))
  end
end

-- lib/lutra/ shows what a program may require: the libraries of lt, and the modules that README.md
-- or docs/ name. The rest is in lib/lutra/internal/, in a library's own folder, or data.
local public = {cli = true, repl = true, internal = "folder", lessons = "folder", ops = "folder"}
for line in io.lines "lib/lutra.lua" do
  for name in line:gmatch '"lutra%.([%w_]+)' do public[name] = true end
end
local listing <close> = assert(io.popen "ls lib/lutra")
for entry in listing:lines() do
  local name = entry:gsub("%.lua$", "")
  check(public[name] == true or name == entry and public[name] == "folder",
    ("lib/lutra/%s is no library of lt: it belongs in lib/lutra/internal/"):format(entry))
end

check(files > 0 and devices > 100, "no sources under src/: run this from the repository's root")

checks.finish()
