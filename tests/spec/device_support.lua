--- What the specs of devices share: running a spec on emulated devices, or on the GPU where
-- LUTRA_TEST_GPU is set.

local assert = require "luassert"
local program = require "program_support"

local support = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

--- Was this Lutra built with emulated CUDA devices?
function support.can_emulate()
  return program.run "--emulate cuda:2 -e 'os.exit(lt.cuda.is_built())'".status == 0
end

--- Must the spec `name` be run in another process, where there are devices? Then there is a test
-- that does it, and the file that asks ends: `if devices.elsewhere("streams", _ENV) then return
-- end`. busted's words are in the environment of that file.
function support.elsewhere(name, busted)
  if os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU" then return false end
  busted.describe(name .. " on emulated devices", function()
    busted.it("passes", function()
      if not support.can_emulate() then
        return busted.pending "no emulated CUDA in this build"
      end
      local result = program.shell(("env -u CUDA_VISIBLE_DEVICES LUTRA_EMULATE=cuda:2 %s %s %s")
        :format(program.quote(program.program), program.quote(root .. "tests/busted.lua"),
          program.quote(("%stests/spec/%s_spec.lua"):format(root, name))))
      assert.equal(0, result.status, "\n" .. result.out .. result.err)
    end)
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
  assert.is_truthy(message:match "^[^\n]*tests/spec/[%w_]+%.lua:%d+: ", message)
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
