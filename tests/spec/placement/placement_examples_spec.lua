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
  -- A process that has loaded MPI cannot be searched for leaks: see suite_debug in tests/run.
  local leaks = arguments:find "ranks%.lua" and 'ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"' or ""
  local line = ("env -u LUTRA_EMULATE %s %s OMP_WAIT_POLICY=passive %s %s"):format(environment,
    leaks, program.quote(program.program), arguments)
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
  for line in out:gmatch "\nskipped: ([^\n]*)" do
    assert.is_truthy(line:find("--emulate cuda:2", 1, true), "not what to do about it: " .. line)
  end
  return out
end

-- Scripts about several GPUs, or about CUDA only, which leave that out on a GPU of Apple.
local needs_cuda = {
  ["01_devices.lua"] = true, ["02_availability.lua"] = true, ["22_several_gpus.lua"] = true,
  ["23_data_parallel.lua"] = true, ["24_pipeline.lua"] = true, ["25_custom_kernel.lua"] = true,
}

-- What this machine lacks for a script on emulated devices, or nil.
local function missing(name)
  if not devices.can_emulate() then return "no emulated CUDA in this build" end
  if name:find "custom_kernel" and not devices.can_compile() then return "needs a C++ compiler" end
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
      if missing(name) then return pending(missing(name)) end
      local out = run(name, "-u CUDA_VISIBLE_DEVICES", "--emulate cuda:2")
      assert.is_nil(out:find("skipped", 1, true), out)
    end)

    it(name .. " on an emulated GPU of Apple", function()
      if not devices.can_emulate "mps" then return pending "no emulated mps in this build" end
      local out = run(name, "-u CUDA_VISIBLE_DEVICES", "--emulate mps")
      assert.equal(needs_cuda[name] or false, out:find("skipped", 1, true) ~= nil, out)
    end)

    local rule = wrong_on_purpose[name]
    it(name .. " under the lint" .. (rule and ", which finds what it shows" or ""), function()
      if missing(name) then return pending(missing(name)) end
      local result = lutra("-u CUDA_VISIBLE_DEVICES",
        "--emulate cuda:2 --lint " .. program.quote(folder .. name))
      assert.is_truthy(result.out:find("\nok: ", 1, true), result.all)
      if rule then
        assert.is_truthy(result.err:find(name .. ":%d+: " .. rule .. ": "), result.all)
        assert.is_truthy(result.err:find("\n1 finding\n$"), result.all)
        assert.equal(1, result.status)
        assert.is_truthy(text_of(name):find("lint", 1, true), name .. " does not say so")
      else
        assert.equal("no findings\n", result.err)
        assert.equal(0, result.status)
      end
    end)

    if os.getenv "LUTRA_TEST_GPU" then
      it(name .. " on the GPU", function() run(name, "", "") end)
    end
  end
end)

-- For each script, what breaks a claim of it: a string of it, and the string put in its place.
local broken = {
  ["01_devices.lua"] = {'lt.set_default_device "cpu"', ""},
  ["02_availability.lua"] = {"\n  lt.cuda.set_device(1)", ""},
  ["03_creation.lua"] = {"lt.zeros{500, 500, device = device}", "lt.zeros(500, 500):to(device)"},
  ["04_moving.lua"] = {"\nx = x:to(device)\n", "\nx:to(device)\n"},
  ["05_mismatch.lua"] = {"local z = x + y:to(x.device)", "local z = x + y"},
  ["06_mask_in_forward.lua"] = {"device = x.device, dtype = x.dtype}\n", "dtype = x.dtype}\n"},
  ["07_models.lua"] = {"assert(model:to(device) == model)", ""},
  ["08_buffers.lua"] = {'self:register_buffer("mask", lt', "self.mask = (lt"},
  ["09_data_loader.lua"] = {"shuffle = true, pin_memory = true}", "shuffle = true}"},
  ["10_repeated_transfers.lua"] = {"x:to(device)) end", "x:to(device)):cpu():cuda() end"},
  ["11_item.lua"] = {"model(x), y):detach() end", "model(x), y):item() end"},
  ["12_to_host.lua"] = {"lt.save_npy(path, y)", "lt.save_npy(path, x)"},
  ["13_timing.lua"] = {"local y = a:matmul(b)\n  synchronize()", "local y = a:matmul(b)"},
  ["14_memory.lua"] = {"\naccelerator.empty_cache()", ""},
  ["15_any_device.lua"] = {"Linear(128, 10):to(device)", "Linear(128, 10)"},
  ["16_train_step.lua"] = {"batch[2]:to(device)", "batch[2]"},
  ["17_helper_tensors.lua"] = {"= x:new_zeros(x:size(1), 1)", "= lt.zeros(x:size(1), 1)"},
  ["18_debugging.lua"] = {'model:register_buffer("positions", model.positions)', ""},
  ["19_cpu_or_gpu.lua"] = {"local product = there:matmul(there)", "local product = there * there"},
  ["20_meta.lua"] = {"for i = 1, LAYERS do", "for i = 1, LAYERS - 1 do"},
  ["21_batches_on_device.lua"] = {"{batch_size = 50, device = device}", "{batch_size = 50}"},
  ["22_several_gpus.lua"] = {'local z = x0 + x1:to "cuda:0"', "local z = x0 + x1"},
  ["23_data_parallel.lua"] = {'nn.parallel.gather(outputs, "cuda:0")', "outputs[1]"},
  ["24_pipeline.lua"] = {"work[1]:wait_event(done[k - IN_FLIGHT])", ""},
  ["25_custom_kernel.lua"] = {"ctx.a = a", "ctx.a = 0"},
  ["26_data_parallel_ranks.lua"] = {"\n  lt.manual_seed(1)", ""},
}

-- `text` with the one place where `from` is in it made `to`.
local function replaced(text, from, to)
  local start, stop = text:find(from, 1, true)
  assert(start, from)
  return text:sub(1, start - 1) .. to .. text:sub(stop + 1)
end

describe("a claim that is not true", function()
  if os.getenv "LUTRA_TEST_DEBUG" then return end -- what scripts check is the same in each build
  for _, name in ipairs(scripts()) do
    it("is found by " .. name, function()
      if missing(name) then return pending(missing(name)) end
      local text = replaced(text_of(name), table.unpack(broken[name]))
      assert(load(text))
      local path = program.file(text, name)
      local result = lutra("-u CUDA_VISIBLE_DEVICES",
        "--emulate cuda:2,link=pcie4 " .. program.quote(path))
      os.remove(path)
      assert.equal(1, result.status, result.all)
      assert.is_nil(result.out:find("\nok: ", 1, true), result.all)
    end)
  end
end)

describe("scripts of several devices", function()
  it("say with one device what to do about it", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    for _, name in ipairs {"22_several_gpus.lua", "23_data_parallel.lua", "24_pipeline.lua"} do
      local out = run(name, "-u CUDA_VISIBLE_DEVICES", "--emulate cuda:1")
      assert.is_truthy(out:find("\nskipped: ", 1, true), out)
    end
  end)
end)

describe("examples/placement/19_cpu_or_gpu.lua", function()
  local path = program.quote(folder .. "19_cpu_or_gpu.lua")

  -- The lines of the picture: {title (a number of rows, or ""), what is drawn}.
  local function picture(arguments, width)
    local result = lutra("", ("%s %s --width %d"):format(path, arguments, width))
    assert.equal(0, result.status, result.all)
    assert.is_nil(result.out:find("\27", 1, true), "colours are not asked for")
    local lanes = {}
    for title, drawn in result.out:gmatch "\n *(%d*) |([^\n]*)|%f[\n]" do
      lanes[#lanes + 1] = {title, drawn}
      assert.equal(width, #drawn + 9)
    end
    return lanes, result.out
  end

  -- The made-up times are equal where 1e-6 + 2 n^3 / 100e9 = 10e-6 + 2 n^3 / 10e12.
  local equal = (9e-6 / (2 / 100e9 - 2 / 10e12)) ^ (1 / 3)

  it("draws where the curves cross, in letters, as wide as it may be", function()
    for _, width in ipairs {30, 40, 100, 160} do
      local lanes, out = picture("--example", width)
      assert.equal(8 + 2, #lanes) -- 2 to 256 rows, the crossing and the ticks
      local crossed, from = false, nil
      for i = 1, #lanes - 1 do
        local title, drawn = table.unpack(lanes[i])
        if title == "" then
          crossed = true
          assert.is_truthy(drawn:find "^%-+$", drawn)
        else
          local rows, c, g = tonumber(title), drawn:find "c", drawn:find "g"
          from = from or crossed and rows
          assert.equal(rows > equal, crossed)
          assert.equal(crossed, g < c)
        end
      end
      assert.is_true(from / 2 < equal and equal < from)
      assert.is_truthy(out:find(("from %d rows on, cuda:0 is faster"):format(from), 1, true), out)
    end
  end)

  it("says where there is no crossing", function()
    local lanes, out = picture("--example --largest 64", 78)
    for i = 1, #lanes - 1 do assert.is_true(lanes[i][2]:find "c" < lanes[i][2]:find "g") end
    assert.is_truthy(out:find("no crossing: up to 64 rows", 1, true), out)
    lanes, out = picture("--largest 8", 78)
    if out:find("skipped", 1, true) then
      assert.equal(3 + 1, #lanes)
      assert.is_truthy(out:find("a crossing takes two devices", 1, true), out)
    end
  end)
end)

describe("arguments of examples/placement", function()
  it("that are invalid are reported in one line", function()
    for arguments, text in pairs {
      ["13_timing.lua --size 0"] = "--size and --repeats: expected at least 1",
      ["13_timing.lua --repeats many"] = 'expected a number for option --repeats, got "many"',
      ["19_cpu_or_gpu.lua --largest 3"] = "expected --largest of at least 4",
      ["19_cpu_or_gpu.lua --width 8"] = "--width of at least 30",
      ["19_cpu_or_gpu.lua --wide"] = "unknown option --wide",
    } do
      local result = lutra("", folder .. arguments)
      assert.equal(1, result.status, result.all)
      assert.is_truthy(result.err:match "^[^\n]+\n$", "not one line: " .. result.err)
      assert.is_truthy(result.err:find(text, 1, true), result.err)
    end
  end)

  it("name a script in the folder that one is in, too", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local result = program.shell(("cd %s && %s --emulate cuda:2 05_mismatch.lua"):format(
      program.quote(folder), program.quote(program.program)))
    assert.equal(0, result.status, result.out .. result.err)
    assert.is_truthy(result.out:find("\n  05_mismatch.lua:", 1, true), result.out)
  end)
end)

describe("examples/placement/README.md", function()
  it("lists every script, in order, with Lua that is in it", function()
    local listed, text = {}, nil
    for row in text_of "README.md":gmatch "\n(| [^\n]*)" do
      local title, lua = row:match "^| (.-) ?| .- | (.-) |$"
      local name, target = title:match "^%[([%w_]+)%]%(([%w_]+%.lua)%)$"
      if name then
        assert.equal(name .. ".lua", target)
        listed[#listed + 1], text = target, text_of(target)
      end
      if listed[1] then
        assert.is_truthy(lua:find("`", 1, true), row)
        for code in lua:gmatch "`([^`]+)`" do
          assert.is_truthy(text:find(code, 1, true), code .. " is not in " .. listed[#listed])
        end
      end
    end
    assert.same(scripts(), listed)
  end)

  it("names those that are wrong on purpose", function()
    local numbers = {}
    for name in pairs(wrong_on_purpose) do numbers[#numbers + 1] = name:sub(1, 2) end
    table.sort(numbers)
    local last = table.remove(numbers)
    local expected = ("what %s and %s do wrong on purpose"):format(table.concat(numbers, ", "),
      last)
    assert.is_truthy(text_of "README.md":find(expected, 1, true), expected)
  end)
end)
