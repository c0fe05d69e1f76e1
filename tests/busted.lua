-- Runs the busted specs: `build/lutra tests/busted.lua [busted's options] [files]`, or the same
-- with lua5.4. Without files it takes all of tests/spec. Whichever Lua runs it is the Lua that the
-- specs run in; stock Lua takes the module from LUTRA_BUILD (default `build`).

local root = arg[0]:match("^(.*)/tests/[^/]*$") or "."
local build = os.getenv "LUTRA_BUILD" or root .. "/build"
-- In a bundle (tools/build/bundle) busted is there: before this folder, whose busted.lua is this.
local bundled = build .. "/bundle/lua/?"
package.path = root .. "/lib/?.lua;" .. root .. "/lib/?/init.lua;"
  .. root .. "/tests/spec/support/?.lua;"
  .. ("%s.lua;%s/init.lua;"):format(bundled, bundled) .. package.path
package.cpath = ("%s/lib/?.so;%s;%s.so"):format(build, package.cpath, bundled)

-- busted gives each spec file the packages that were loaded before it: one Lutra for all of them,
-- with its libraries, or lt.nn and require "lutra.nn" would differ in the second file.
-- LUTRA_TEST_DEVICE names the device where their tensors are made, unless a spec says otherwise.
local lt = require "lutra"
require("lutra.internal.strict_table").load_all(lt)
local device = os.getenv "LUTRA_TEST_DEVICE"
if device then lt.set_default_device(device) end

-- busted asks lua-term only whether stdout is a terminal. Debian has it for one architecture at a
-- time, so it is missing for a cross-compiled Lutra.
if not pcall(require, "term") then
  package.preload.term = function() return {isatty = function() return false end} end
end

local own = {"--output=" .. root .. "/tests/busted_output.lua", "--pattern=_spec"}
local files = false
for _, a in ipairs(arg) do
  own[#own + 1] = a
  files = files or a:sub(1, 1) ~= "-"
end
if not files then own[#own + 1] = root .. "/tests/spec" end
table.move(own, 1, #own, 1, arg)

require "busted.runner" {standalone = false}
