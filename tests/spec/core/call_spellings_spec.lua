--- Functions in C that are no ops: every spelling of their calls is read by their signature, as
-- ops' calls are.

local core = require "lutra.core"
local lt = require "lutra"

local function message(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  return (tostring(text):gsub("^[^\n]-:%d+: ", ""))
end

local function fails(text, f, ...)
  local got = message(f, ...)
  assert.is_truthy(got:find(text, 1, true), ("%q is not in: %s"):format(text, got))
end

-- Each function in C with a signature: its name, is it a method, its parameters.
local function each(visit)
  local names = {}
  for _, t in ipairs {core._methods, core} do
    for name, f in next, t do names[f] = names[f] or name end
  end
  for f, text in next, core._signatures do
    local method, signature = text:match "^(:?)(.*)$"
    local _, params = core._signature("", signature)
    if debug.getinfo(f, "S").what == "C" then visit(f, names[f] or "", method == ":", params) end
  end
end

describe("a function in C", function()
  it("refuses names that it does not know", function()
    local seen = 0
    each(function(f, name, method, params)
      local given = method and {lt.ones(1)} or {}
      given[#given + 1] = {nonesuch = 1}
      local text = message(f, table.unpack(given))
      assert.is_truthy(text:find("got 'nonesuch'", 1, true), name .. ": " .. text)
      if #params == (method and 1 or 0) then
        assert.is_truthy(text:find("expected no named arguments", 1, true), name .. ": " .. text)
      end
      seen = seen + 1
    end)
    assert.is_true(seen > 90)
  end)

  it("refuses a surplus argument", function()
    each(function(f, name, method, params)
      local given = {}
      for i = 1, #params + 1 do given[i] = true end
      if method then given[1] = lt.ones(1) end
      local text = message(f, table.unpack(given))
      local expected = #params == 0 and "expected no arguments, got 1"
        or ("expected at most %d argument%s ("):format(#params, #params == 1 and "" or "s")
      assert.is_truthy(text:find(expected, 1, true), name .. ": " .. text)
      assert.is_truthy(text:find(("got %d"):format(#params + 1), 1, true), name .. ": " .. text)
    end)
  end)

  it("has a signature, unless it takes any value or calls a function", function()
    local without = {}
    for name, f in next, core do
      if name:match "^%a" and type(f) == "function" and not core._signatures[f]
        and not core._op(name) then
        without[#without + 1] = name
      end
    end
    table.sort(without)
    assert.same({"device", "is_complex", "is_parameter", "is_tensor", "ops"}, without)
    for name, f in next, core._methods do
      if not name:match "^_" and not core._op(name) and not core._op((name:gsub("_$", "")))
        and name ~= "repeat" and debug.getinfo(f, "S").what == "C" then
        assert.is_truthy(core._signatures[f], name .. " has no signature")
      end
    end
  end)
end)

describe("a method that asks a tensor", function()
  local x = lt.ones(2, 3)

  it("takes its argument by position and by name", function()
    for _, size in ipairs {x:size(2), x:size{2}, x:size{dim = 2}, x:size(-1), x:size{dim = -1},
      x:size(2.0), x:size(2, nil), x:size(nil, {dim = 2})} do
      assert.equal(3, size)
    end
    assert.same({2, 3}, {table.unpack(x:size{})})
    assert.same({3, 1}, {table.unpack(x:stride(nil))})
    assert.equal(3, x:stride{dim = 1})
    assert.equal(6, lt.numel(x))
    assert.equal(6, lt.numel{x})
    assert.equal(6, lt.numel{input = x})
    assert.is_true(lt.is_floating_point{self = x})
    assert.is_true(x:shares_storage{other = x:view{6}})
    assert.is_false(x:requires_grad_{requires_grad = false}.requires_grad)
    assert.equal("float64", x:type_as{other = lt.ones{1, dtype = "float64"}}.dtype)
    assert.same({5}, lt.ones(1):set_data{data = lt.tensor{5}}:totable())
  end)

  it("says what is wrong with a call", function()
    fails("size: expected a 1-based dim for argument 'dim', got 0\nhint: dims count from 1 (-1 "
      .. "is the last)", x.size, x, 0)
    fails("size: expected a dim (an integer) for argument 'dim', got 1.5", x.size, x, 1.5)
    fails("size: expected a dim (an integer) for argument 'dim', got the string \"1\"", x.size, x,
      {dim = "1"})
    fails("size: cannot use dim 3: it is out of range, a tensor of shape {2, 3} has 2 dims",
      x.size, x, {dim = 3})
    fails("stride: cannot use dim -3: it is out of range, a tensor of shape {2, 3} has 2 dims",
      x.stride, x, -3)
    fails("size: expected an argument name (dim), got 'dims'\nhint: did you mean 'dim'?", x.size, x,
      {dims = 1})
    fails("size: expected at most 2 arguments (self, dim), got 3", x.size, x, 1, 2)
    fails("nelement: expected at most 1 argument (self), got 2", x.nelement, x, 1)
    fails("float: expected at most 1 argument (self), got 2", x.float, x, 1)
    fails("shares_storage: expected a tensor for argument 'other', got no value", x.shares_storage,
      x)
    fails("requires_grad_: expected a boolean for argument 'requires_grad', got 1",
      x.requires_grad_,
      x, 1)
    fails("register_hook: expected a function for argument 'hook', got 1", x.register_hook, x, 1)
    for _, name in ipairs {"item", "size", "stride", "numel", "dim", "is_contiguous", "data_ptr"} do
      fails(name .. ": ", x[name])
      fails(name .. ": ", x[name], 3)
      fails(name .. ": ", x[name], {})
    end
  end)
end)

describe("a setting", function()
  it("is read and made by name", function()
    assert.equal("float64", lt.promote_types{type1 = "float32", type2 = "float64"})
    assert.equal("float32", lt.result_type{tensor1 = lt.ones(1), tensor2 = 2})
    fails("promote_types: expected an argument name (type1, type2), got 'type3'", lt.promote_types,
      {type3 = "int8"})
    fails("result_type: expected a tensor or a number for argument 'tensor2', got the string \"x\"",
      lt.result_type, 1, "x")
    local dtype, threads = lt.get_default_dtype(), lt.get_num_threads()
    lt.set_default_dtype{dtype = dtype}
    lt.set_num_threads{n = threads}
    lt.set_fallback{on = lt.get_fallback()}
    lt.set_default_device{device = lt.get_default_device{}}
    lt.set_grad_enabled{mode = lt.is_grad_enabled{}}
    assert.same({dtype, threads}, {lt.get_default_dtype(), lt.get_num_threads()})
    fails("get_num_threads: expected no arguments, got 1", lt.get_num_threads, 4)
    fails("is_grad_enabled: expected no arguments, got 1", lt.is_grad_enabled, true)
  end)

  it("may be a generator's", function()
    local g = lt.Generator{seed = 5}
    assert.equal(5, g:initial_seed{})
    local state = g:get_state()
    assert.equal(g, g:manual_seed{seed = 6})
    assert.equal(6, g:initial_seed())
    g:set_state{state = state}
    assert.equal(5, g:initial_seed())
    assert.equal(5, lt.Generator{seed = 5, device = "cpu"}:initial_seed())
    assert.equal(6, lt.Generator("cpu"):manual_seed(6):initial_seed())
    fails("Generator: expected an integer for argument 'seed', got the string \"x\"", lt.Generator,
      {seed = "x"})
    fails("Generator: expected an available device, got \"x\"", lt.Generator, "x")
    fails("manual_seed: expected an integer for argument 'seed', got 0.5", g.manual_seed, g, 0.5)
    fails("seed: expected at most 1 argument (self), got 2", g.seed, g, 1)
    fails("abs: expected at most 1 argument (self), got 2", lt.complex(1, 2).abs,
      lt.complex(1, 2), 3)
  end)
end)

describe("a function of Lua", function()
  it("reads its calls as one in C does", function()
    local init, x = lt.nn.init, lt.ones(2, 2)
    assert.equal(8, lt.iinfo{dtype = "int8"}.bits)
    assert.equal("float64", lt.finfo{lt.float64}.dtype)
    assert.equal(x, init.zeros_{tensor = x})
    assert.same({{0, 0}, {0, 0}}, x:totable())
    assert.same({{1, 1}, {1, 1}}, init.ones_{x}:totable())
    assert.same({{1, 0}, {0, 1}}, init.eye_{tensor = x}:totable())
    assert.equal(math.sqrt(2 / 1.25), init.calculate_gain{nonlinearity = "leaky_relu", param = 0.5})
    fails("finfo: expected at most 1 argument (dtype), got 2", lt.finfo, "float32", 1)
    fails("iinfo: expected an argument name (dtype), got 'dtyp'", lt.iinfo, {dtyp = 1})
    fails("zeros_: expected a tensor for argument 'tensor', got 3", init.zeros_, 3)
    fails("ones_: expected at most 1 argument (tensor), got 2", init.ones_, x, 1)
    fails("calculate_gain: expected a number for argument 'param', got true", init.calculate_gain,
      "leaky_relu", true)
    for _, name in ipairs {"memory_allocated", "memory_stats", "synchronize"} do
      fails("cuda." .. name .. ": expected at most 1 argument (device), got 2", lt.cuda[name], 0,
        1)
      fails('accelerator.' .. name .. ": expected an argument name (device), got 'dev'",
        lt.accelerator[name],
        {dev = 0})
    end
  end)

  it("gives completion its parameters", function()
    local signatures = require "lutra.repl.complete.signatures"
    for name, f in pairs {finfo = lt.finfo, load_npy = lt.load_npy, eye_ = lt.nn.init.eye_,
      memory_stats = lt.cuda.memory_stats} do
      assert.is_true(#signatures.of(f, name).params > 0)
    end
  end)
end)

describe("a recorder", function()
  it("refuses what is not a list of tensors", function()
    local recorder = core._recorder()
    for _, value in ipairs {lt.ones(2), 3, "x", print} do
      fails("expected a list of tensors for argument 'tensors', got", recorder.program, recorder, 1,
        value)
    end
    recorder:stop()
  end)
end)
