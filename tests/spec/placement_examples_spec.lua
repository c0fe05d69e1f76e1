-- The scripts of examples/placement check their own claims: each ends with status 0 and says
-- `ok: ...` on the CPU, on two emulated devices and, where LUTRA_TEST_GPU is set, on the GPU.
-- What a script leaves out for want of a device it says in a line `skipped: ...`, which may be all
-- of it; with two devices nothing is left out.

local program = require "program_support"
local devices = require "device_support"

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or ""
local folder = root .. "examples/placement/"

-- Scripts that show what is wrong, too, and the rule of the lint that finds it.
local wrong_on_purpose = {
  ["09_data_loader.lua"] = "T6",
  ["10_repeated_transfers.lua"] = "T2",
  ["11_item.lua"] = "T1",
  ["13_timing.lua"] = "T7",
}

local function scripts()
  local list = {}
  local pipe <close> = assert(io.popen("ls " .. program.quote(folder)))
  for name in pipe:lines() do
    if name:match "%.lua$" then list[#list + 1] = name end
  end
  return list
end

local function text_of(name)
  local file <close> = assert(io.open(folder .. name))
  return file:read "a"
end

-- Runs the program with assignments for its environment. Returns {out, err, status, all}.
local function lutra(environment, arguments)
  local line = ("env -u LUTRA_EMULATE %s OMP_WAIT_POLICY=passive %s %s"):format(environment,
    program.quote(program.program), arguments)
  local result = program.shell(line)
  result.out = "\n" .. result.out
  result.all = result.out .. result.err
  return result
end

-- Runs a script on what is there after assignments for the environment and options; its output.
local function run(name, environment, options)
  local result = lutra(environment, options .. " " .. program.quote(folder .. name))
  assert.equal(0, result.status, result.all)
  assert.equal("", result.err, result.all)
  local out = result.out
  assert.is_truthy(out:find("\nok: ", 1, true) or out:find("\nskipped: ", 1, true), result.all)
  return out
end

describe("examples/placement", function()
  it("has scripts, which check what they claim", function()
    local names = scripts()
    assert.is_true(#names >= 20, "there are only " .. #names)
    for _, name in ipairs(names) do
      local text = text_of(name)
      local _, checks = text:gsub("assert%(", "")
      assert.is_true(checks >= 2, name .. " claims what it does not check")
      assert.is_truthy(text:match "^%-%- [^\n]+\n%-%-\n", name .. " does not say what it is about")
    end
  end)

  for _, name in ipairs(scripts()) do
    it(name .. " on the CPU", function() run(name, "CUDA_VISIBLE_DEVICES=", "") end)

    it(name .. " on two emulated devices", function()
      if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
      local out = run(name, "-u CUDA_VISIBLE_DEVICES", "--emulate cuda:2")
      assert.is_nil(out:find("skipped", 1, true), out)
    end)

    local rule = wrong_on_purpose[name]
    it(name .. " under the lint" .. (rule and ", which finds what it shows" or ""), function()
      if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
      local result = lutra("-u CUDA_VISIBLE_DEVICES",
        "--emulate cuda:2 --lint " .. program.quote(folder .. name))
      assert.is_truthy(result.out:find("\nok: ", 1, true), result.all)
      if rule then
        assert.is_truthy(result.err:find(name .. ":%d+: " .. rule .. ": "), result.all)
        assert.is_truthy(result.err:find("\n1 finding\n$"), result.all)
        assert.equal(1, result.status)
        assert.is_truthy(text_of(name):find("lint", 1, true), name .. " does not say so")
      else
        assert.equal("nothing to mend\n", result.err)
        assert.equal(0, result.status)
      end
    end)

    if os.getenv "LUTRA_TEST_GPU" then
      it(name .. " on the GPU", function() run(name, "", "") end)
    end
  end
end)
