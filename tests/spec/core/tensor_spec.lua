-- Tensors as Lua objects: made from tables and back, fields, conversions, random state, scopes.
local lt = require "lutra"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

describe("lt.tensor", function()
  it("infers the dtype", function()
    assert.equal("int64", lt.tensor{1, 2}.dtype)
    assert.equal("float32", lt.tensor{1, 2.5}.dtype)
    assert.equal("float32", lt.tensor{1.0}.dtype)
    assert.equal("bool", lt.tensor{true, false}.dtype)
    assert.equal("int64", lt.tensor{true, 2}.dtype)
    assert.equal("int64", lt.tensor(3).dtype)
    assert.equal("float32", lt.tensor(3.0).dtype)
    assert.equal("bool", lt.tensor(true).dtype)
    assert.equal("float32", lt.tensor{}.dtype)
  end)

  it("takes nested tables of any depth, empty ones too", function()
    assert.same({{{1, 2}, {3, 4}}}, lt.tensor{{{1, 2}, {3, 4}}}:totable())
    assert.equal("{0}", tostring(lt.tensor{}.shape))
    assert.equal("{2, 0}", tostring(lt.tensor{{}, {}}.shape))
    assert.equal("{}", tostring(lt.tensor(5).shape))
    assert.equal("{2, 2}", tostring(lt.tensor({lt.zeros(2, 3).shape, {4, 5}}).shape))
  end)

  it("takes options beside the data or after it", function()
    local x = lt.tensor{{1, 2}, {3, 4}, dtype = "float64", requires_grad = true}
    assert.equal("float64", x.dtype)
    assert.is_true(x.requires_grad)
    assert.equal("int8", lt.tensor({1}, {dtype = "int8"}).dtype)
    assert.equal("int8", lt.tensor({1}, "int8").dtype)
    local meta = lt.tensor{{1, 2}, device = "meta"}
    assert.equal("meta {1, 2}", meta.device .. " " .. tostring(meta.shape))
  end)

  it("takes tensors of one element in a table, and copies a tensor", function()
    local a = lt.tensor(1.5)
    assert.same({1.5, 2.0}, lt.tensor{a, 2}:totable())
    local x = lt.ones{2, requires_grad = true}
    local y = lt.tensor(x)
    assert.is_false(y.requires_grad)
    y:zero_()
    assert.same({1, 1}, x:totable())
    assert.equal("int64", lt.tensor(x, {dtype = "int64"}).dtype)
    assert.is_true(rawequal(x, lt.as_tensor(x)))
    assert.equal("int32", lt.as_tensor(x, {dtype = "int32"}).dtype)
    assert.same({1, 2}, lt.as_tensor{1, 2}:totable())
  end)

  it("keeps every bit of an integer", function()
    assert.equal(math.maxinteger, lt.tensor(math.maxinteger):item())
    assert.equal(math.mininteger, lt.tensor{math.mininteger}[1]:item())
    assert.equal(math.maxinteger, lt.tensor({math.maxinteger}, {dtype = "int64"}):totable()[1])
  end)

  it("truncates floats into integer dtypes", function()
    assert.same({2, -2}, lt.tensor({2.7, -2.7}, {dtype = "int64"}):totable())
    assert.same({true, false, true}, lt.tensor({2, 0, -0.5}, {dtype = "bool"}):totable())
  end)

  it("follows the default dtype and device", function()
    lt.set_default_dtype "float64"
    local dtype = lt.tensor{1.5}.dtype
    lt.set_default_dtype "float32"
    assert.equal("float64", dtype)
    assert.equal("meta", lt.with_device("meta", function() return lt.tensor{1}.device end))
    assert.equal("cpu", lt.tensor{1}.device)
  end)

  it("refuses what is not a tensor", function()
    local cyclic = {}
    cyclic[1] = cyclic
    local late = {{1}, {2}}
    late[2][1] = late
    local deep = 1
    for _ = 1, 17 do deep = {deep} end
    assert.matches("element {2} has 1 elements, the ones before it have 2",
      fails(lt.tensor, {{1, 2}, {3}}), 1, true)
    assert.matches("tensor: expected tables of one depth, got a mixed table: element {2} is a "
      .. "table, others are numbers",
      fails(lt.tensor, {1, {2}}), 1, true)
    assert.matches("tensor: expected tables of one depth, got a mixed table: element {2} is 2, "
      .. "others are tables",
      fails(lt.tensor, {{1}, 2}), 1, true)
    assert.matches("cyclic", fails(lt.tensor, cyclic), 1, true)
    assert.matches("tensor: expected tables of one depth, got a mixed table: element {2, 1} is "
      .. "a table, others are numbers", fails(lt.tensor, late), 1, true)
    assert.matches("more than 16 nested levels", fails(lt.tensor, deep), 1, true)
    assert.matches('expected a number or a boolean for element {1}, got the string "1"',
      fails(lt.tensor, {"1"}), 1, true)
    assert.matches("expected a number or a boolean for element {2}, got nil", fails(lt.tensor, {1,
      nil, 3}), 1, true)
    assert.matches("expected a number or a boolean for element {1}, got a tensor of shape {2}",
      fails(lt.tensor, {lt.ones(2)}), 1, true)
    assert.matches("tensor: expected a value for argument 'data', got no value", fails(lt.tensor),
      1, true)
    assert.matches("for the data, got a function", fails(lt.tensor, print), 1, true)
    assert.matches("got 'dtpye'", fails(lt.tensor, {1, dtpye = "int8"}), 1, true)
  end)

  it("refuses numbers that do not fit", function()
    for _, bad in ipairs{0 / 0, math.huge, -math.huge, 1e30} do
      assert.matches("element {2}", fails(lt.tensor, {1, bad}, {dtype = "int64"}), 1, true)
    end
    assert.matches("element {1}", fails(lt.tensor, {300}, {dtype = "uint8"}), 1, true)
    assert.matches("element {1}", fails(lt.tensor, {-1}, {dtype = "uint8"}), 1, true)
    assert.matches("tensor: ", fails(lt.tensor, 2 ^ 31, {dtype = "int32"}), 1, true)
    assert.same({255}, lt.tensor({255}, {dtype = "uint8"}):totable())
  end)
end)

describe("fields and questions", function()
  local x = lt.zeros{2, 3, dtype = "float64"}

  it("are plain values", function()
    assert.equal("float64", x.dtype)
    assert.equal(lt.float64, x.dtype)
    assert.is_true(x.device == "cpu")
    assert.equal(2, x.ndim)
    assert.equal(8, x.itemsize)
    assert.equal(48, x.nbytes)
    assert.is_true(x.is_cpu and not (x.is_cuda or x.is_mps or x.is_meta))
    assert.is_true(lt.empty{1, device = "meta"}.is_meta)
    assert.is_true(x.is_leaf)
    assert.is_nil(x.grad)
    assert.is_nil(x.grad_fn)
    assert.is_false(x.requires_grad)
  end)

  it("have methods", function()
    assert.equal(6, x:numel())
    assert.equal(2, x:dim())
    assert.equal(3, x:size(2))
    assert.equal(3, x:size(-1))
    assert.equal(3, x:stride(1))
    assert.equal("{3, 1}", tostring(x:stride()))
    assert.equal(3, x[2]:storage_offset())
    assert.is_true(x:is_contiguous())
    assert.is_false(x:t():is_contiguous())
    assert.equal(8, x:element_size())
    assert.is_true(x:is_floating_point())
    assert.is_true(lt.is_tensor(x))
    assert.is_false(lt.is_tensor{1})
    assert.is_false(lt.is_tensor(nil))
    assert.is_true(x:shares_storage(x[1]))
    assert.matches("size: cannot use dim 3: it is out of range, a tensor of shape {2, 3} has 2 "
      .. "dims", fails(x.size, x, 3), 1, true)
    assert.matches("dims count from 1", fails(x.size, x, 0), 1, true)
  end)

  it("transpose", function()
    assert.equal("{3, 2}", tostring(x.T.shape))
    assert.equal("{4, 3, 2}", tostring(lt.zeros(2, 3, 4).T.shape))
    assert.equal("{2, 4, 3}", tostring(lt.zeros(2, 3, 4).mT.shape))
    assert.matches("mT", fails(function() return lt.zeros(2).mT end), 1, true)
  end)

  it("are distinguished from names that do not exist, with the nearest name", function()
    assert.matches('no field or method "shpae"; did you mean "shape"?',
      fails(function() return x.shpae end), 1, true)
    assert.matches('did you mean "softmax"', fails(function() return x:sofmax(1) end), 1, true)
    assert.matches('no field or method "zzzzzz"', fails(function() return x.zzzzzz end), 1, true)
    assert.matches('"color"', fails(function() x.color = 1 end), 1, true)
    assert.matches('cannot assign this field of a tensor', fails(function() x.shape = {6} end), 1,
      true)
    assert.matches("cannot assign a tensor's method", fails(function() x.sum = 1 end), 1, true)
  end)

  it("are found by any string with their name", function()
    for name in pairs(require "lutra.core"._fields) do
      if not name:find "^m?[TH]$" and name ~= "imag" then
        local spelled = name:sub(1, 1) .. name:sub(2)
        assert.equal(tostring(x[name]), tostring(x[spelled]))
        assert.is_not_nil(name == "grad" or name == "grad_fn" or x[name])
      end
    end
    local index = getmetatable(x).__index
    assert.equal("float64", index(x, "dtype", 7))
    assert.matches("dtype: expected a tensor for argument 'self', got 1",
      fails(index, 1, "dtype"), 1, true)
    for _, dtype in ipairs{"float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
      "uint8", "bool", "complex64", "complex128"} do
      assert.equal(dtype, lt.zeros{1, dtype = dtype}.dtype)
    end
  end)

  it("are one object for one tensor", function()
    local p = lt.ones{2, requires_grad = true}
    p:sum():backward()
    assert.is_true(rawequal(p.grad, p.grad))
    local g = lt.zeros(2)
    p.grad = g
    assert.is_true(rawequal(g, p.grad))
    p.grad = nil
    assert.is_nil(p.grad)
    assert.is_true(p == p.data == false)
  end)
end)

describe("conversion to Lua", function()
  it("gives numbers, booleans and nested tables", function()
    assert.equal(3, lt.tensor(3):item())
    assert.equal("integer", math.type(lt.tensor(3):item()))
    assert.equal("float", math.type(lt.tensor(3.0):item()))
    assert.is_true(lt.tensor{true}:item())
    assert.same({{1, 2}, {3, 4}}, lt.tensor{{1, 2}, {3, 4}}:totable())
    assert.same({{1, 3}, {2, 4}}, lt.tensor{{1, 2}, {3, 4}}:t():tolist())
    assert.equal(2.5, lt.tensor(2.5):totable())
    assert.same({{}, {}}, lt.zeros(2, 0):totable())
    assert.same({true, false}, lt.tensor{true, false}:totable())
    assert.same({0.5}, lt.tensor({0.5}, {dtype = "bfloat16"}):totable())
  end)

  it("gives rows of any length, strided ones too", function()
    for _, n in ipairs{0, 1, 2, 100, 255, 256, 257, 5000} do
      for _, dtype in ipairs{"float32", "float64", "int64"} do
        local pairs_ = lt.stack({lt.arange(1, n), lt.arange(n + 1, 2 * n)}, 2):to(dtype)
        local column, rows = pairs_[{{}, 2}]:totable(), pairs_:t():totable()
        assert.equal(n, #column)
        for _, list in ipairs{column, rows[2]} do
          for i = 1, n do
            if list[i] ~= n + i then assert.equal(n + i, list[i]) end
          end
        end
        assert.equal(n > 0 and (dtype == "int64" and "integer" or "float") or nil,
          math.type(column[n]))
      end
    end
  end)

  it("gives rows of every dtype", function()
    for _, dtype in ipairs{"float16", "bfloat16", "int32", "int16", "int8", "uint8"} do
      assert.same({1, 0, 3}, lt.tensor({1, 0, 3}, {dtype = dtype}):totable())
    end
    assert.same({true, false}, lt.tensor{1, 0}:bool():totable())
    local complex = lt.complex(lt.tensor{1.0, 2.0}, lt.tensor{3.0, 4.0}):totable()
    assert.equal("1 + 3i 2 + 4i", ("%s %s"):format(complex[1], complex[2]))
    assert.equal("nan", tostring((lt.tensor{0.0} / 0):totable()[1])) -- without its sign
    assert.same({{{1.0}, {2.0}}}, lt.tensor{{{1.0}, {2.0}}}:totable())
  end)

  it("refuses what is no tensor, and further arguments", function()
    local totable = lt.zeros(1).totable
    assert.matches("totable: expected a tensor for argument 'self', got", fails(totable), 1, true)
    assert.matches("totable: expected a tensor for argument 'self', got 3", fails(totable, 3), 1,
      true)
    assert.matches("totable: expected at most 1 argument", fails(totable, lt.zeros(1), 2), 1, true)
  end)

  it("needs data, and one element", function()
    assert.matches("item: ", fails(function() return lt.ones(2):item() end), 1, true)
    assert.matches("{2}", fails(function() return lt.ones(2):item() end), 1, true)
    local meta = lt.ones{1, device = "meta"}
    assert.matches('item: cannot read a tensor on "meta": it has no data', fails(meta.item, meta),
      1, true)
    assert.matches('totable: cannot read a tensor on "meta": it has no data', fails(meta.totable,
      meta), 1, true)
  end)
end)

describe("new tensors like another", function()
  it("keep dtype and device", function()
    local x = lt.zeros{2, dtype = "float64"}
    assert.equal("float64", x:new_tensor{1, 2}.dtype)
    assert.equal("{3, 1}", tostring(x:new_zeros(3, 1).shape))
    assert.equal("float64", x:new_zeros(3, 1).dtype)
    assert.equal("bool", lt.ones_like(x, {dtype = "bool"}).dtype)
    assert.equal("float64", lt.randn_like(x).dtype)
    assert.equal("float64", lt.ones(1):type_as(x).dtype)
  end)
end)

describe("results", function()
  it("come as several values, as a list or as a boolean", function()
    local v, i = lt.tensor{{1, 5}, {7, 2}}:max(2)
    assert.same({5, 7}, v:totable())
    assert.same({2, 1}, i:totable())
    assert.equal(7, lt.tensor{{1, 5}, {7, 2}}:max():item())
    assert.same({3, 5}, lt.max(lt.tensor{3, 2}, lt.tensor{1, 5}):totable())
    local pieces = lt.arange(5):split(2)
    assert.equal(3, #pieces)
    assert.same({5}, pieces[3]:totable())
    assert.is_true(lt.equal(lt.ones(2), lt.ones(2)))
    assert.is_false(lt.ones(2):equal(lt.zeros(2)))
    local rows = lt.where(lt.tensor{false, true, true})
    assert.same({2, 3}, rows[1]:totable())
    assert.same({9, 2}, lt.where(lt.tensor{true, false}, 9, lt.tensor{1, 2}):totable())
  end)

  it("of equal depend on every element of large tensors", function()
    for _, shape in ipairs{{20011}, {1, 20011}, {20011, 1}, {7, 9, 400}, {130, 140}} do
      local x = lt.arange(1, math.tointeger(lt.ones(shape):numel())):view(table.unpack(shape))
      for _, a in ipairs{x, x:double(), x:transpose(1, -1)} do
        assert.is_true(a:equal(a:clone()))
        assert.is_true(a:equal(a:contiguous():float()))
        for _, i in ipairs{1, 4096, 4097, 10000, a:numel()} do
          local b = a:clone():contiguous()
          b:view(-1)[i] = -1
          assert.is_false(a:equal(b))
        end
      end
    end
    local nan = lt.zeros(10000)
    nan[9000] = 0 / 0
    assert.is_false(nan:equal(nan))
    assert.is_true(lt.ones(1):expand(300, 300):equal(lt.ones(300, 300)))
  end)

  it("of nonzero are one tensor, or a list by dim", function()
    local x = lt.tensor{{0, 3}, {4, 0}}
    assert.same({{1, 2}, {2, 1}}, x:nonzero():totable())
    assert.same({{1, 2}, {2, 1}}, lt.nonzero(x):totable())
    local list = x:nonzero{as_tuple = true}
    assert.equal(2, #list)
    assert.same({1, 2}, list[1]:totable())
    assert.same({2, 1}, list[2]:totable())
    assert.same({2}, lt.nonzero(lt.tensor{0.0, 0.5}, {as_tuple = true})[1]:totable())
  end)

  it("in place are self", function()
    local x = lt.ones(2)
    assert.is_true(rawequal(x, x:add_(1)))
    assert.is_true(rawequal(x, x:copy_(lt.zeros(2))))
    assert.is_true(rawequal(x, x:zero_()))
    assert.is_true(rawequal(x, x:uniform_()))
    assert.is_true(rawequal(x, x:requires_grad_()))
  end)
end)

describe("random numbers", function()
  it("repeat with a seed, a state and a generator", function()
    lt.manual_seed(7)
    local a = lt.randn(5)
    local state = lt.get_rng_state()
    local b = lt.randn(5)
    lt.manual_seed(7)
    assert.is_true(lt.equal(a, lt.randn(5)))
    lt.set_rng_state(state)
    assert.is_true(lt.equal(b, lt.randn(5)))
    assert.is_false(lt.equal(a, b))
    assert.equal(7, lt.initial_seed())
    local g = lt.Generator():manual_seed(7)
    assert.is_true(lt.equal(a, lt.randn(5, {generator = g})))
    local kept = g:get_state()
    local c = lt.rand{3, generator = g}
    g:set_state(kept)
    assert.is_true(lt.equal(c, lt.rand{3, generator = g}))
    assert.equal("Generator(seed 7)", tostring(g))
  end)

  it("need a generator where one is asked for", function()
    assert.matches("expected a Generator for argument 'generator', got 3",
      fails(lt.rand, 2, {generator = 3}), 1, true)
    assert.matches("expected an integer for argument 'seed', got the string \"x\"",
      fails(lt.manual_seed, "x"), 1, true)
    assert.matches("expected a state that get_state returned for argument 'state', got a "
      .. "tensor of shape {2}", fails(lt.set_rng_state, lt.ones(2)), 1, true)
  end)
end)

describe("scopes", function()
  it("return what the function returns and restore", function()
    local x = lt.ones{1, requires_grad = true}
    local a, b = lt.no_grad(function(...) return (x * 2).requires_grad, ... end, 5)
    assert.is_false(a)
    assert.equal(5, b)
    assert.is_true(lt.is_grad_enabled())
    lt.no_grad(function()
      assert.is_true(lt.enable_grad(function() return (x * 2).requires_grad end))
      assert.is_false((x * 2).requires_grad)
    end)
    assert.is_false(lt.inference_mode(function() return (x * 2).requires_grad end))
    assert.is_true((x * 2).requires_grad)
    lt.set_grad_enabled(false)
    assert.is_false((x * 2).requires_grad)
    lt.set_grad_enabled(true)
  end)

  it("restore on errors, which pass through as they are", function()
    local object = {}
    local ok, caught = pcall(lt.no_grad, function() error(object) end)
    assert.is_false(ok)
    assert.is_true(rawequal(object, caught))
    assert.is_true(lt.is_grad_enabled())
    pcall(lt.with_device, "meta", error)
    assert.equal("cpu", lt.get_default_device())
    pcall(lt.inference_mode, error)
    assert.is_true((lt.ones{1, requires_grad = true} * 2).requires_grad)
  end)

  it("are functions of functions", function()
    assert.matches("no_grad: expected a function for argument 'f', got 3", fails(lt.no_grad, 3), 1,
      true)
    assert.matches("nowhere", fails(lt.with_device, "nowhere", print), 1, true)
  end)
end)

describe("devices and dtypes", function()
  it("are checked by name", function()
    assert.equal("cpu", lt.device "cpu")
    assert.equal("meta", lt.device "meta")
    assert.matches("device: ", fails(lt.device, "tpu"), 1, true)
    assert.matches("cpu, meta", fails(lt.device, "tpu"), 1, true)
    assert.equal("boolean", type(lt.cuda.is_available()))
    assert.equal("boolean", type(lt.backends.mps.is_available()))
    assert.equal("integer", math.type(lt.cuda.device_count()))
    assert.is_true(lt.cuda.is_available() or lt.mps.is_available() or lt.best_device() == "cpu")
  end)

  it("promote as PyTorch does", function()
    assert.equal("float32", lt.promote_types("int64", "float32"))
    assert.equal("int16", lt.promote_types("uint8", "int8"))
    assert.equal("float32", lt.promote_types("float16", "bfloat16"))
    for _, case in ipairs{{"int64", "float16", true}, {"float16", "int64", false},
      {"complex64", "float64", false}, {"uint8", "bool", false}, {"bool", "uint8", true}} do
      assert.equal(case[3], lt.can_cast(case[1], case[2]))
    end
    assert.has_error(function() lt.can_cast("int64", "int65") end)
    assert.equal("float32", lt.result_type(lt.tensor{1}, 1.5))
    assert.equal("float16", lt.result_type(lt.ones{1, dtype = "float16"}, 1.5))
  end)

  it("have ranges", function()
    assert.equal(2 ^ -23, lt.finfo("float32").eps)
    assert.equal(65504.0, lt.finfo("float16").max)
    assert.equal(2.0 ^ -126, lt.finfo("bfloat16").tiny)
    assert.equal(1.7976931348623157e308, lt.finfo("float64").max)
    assert.equal(255, lt.iinfo("uint8").max)
    assert.equal(-128, lt.iinfo("int8").min)
    assert.equal(math.maxinteger, lt.iinfo("int64").max)
    assert.matches("finfo: ", fails(lt.finfo, "int8"), 1, true)
  end)

  it("run on as many threads as asked", function()
    local n = lt.get_num_threads()
    lt.set_num_threads(1)
    assert.equal(1, lt.get_num_threads())
    lt.set_num_threads(n)
    assert.matches("set_num_threads", fails(lt.set_num_threads, 0), 1, true)
  end)
end)

describe("the op table", function()
  it("is there as data", function()
    local ops, seen = lt.ops(), {}
    for _, op in ipairs(ops) do seen[op.name] = op end
    assert.is_true(#ops > 200)
    local sum = seen.sum
    assert.equal("reduce", sum.kind)
    assert.is_true(sum.variants["function"] and sum.variants.method and not sum.variants.in_place)
    assert.equal("dim", sum.params[2].name)
    assert.equal("dims", sum.params[2].type)
    assert.equal("nil", sum.params[2].default)
    assert.is_true(sum.has_gradient)
    assert.is_true(sum.support.cpu)
    assert.is_true(#sum.doc > 5)
    assert.equal("Index", seen.argmax.results[1].type)
  end)

  it("has every variant as a function or method", function()
    for _, op in ipairs(lt.ops()) do
      assert.is_true(op.variants["function"] == false or lt[op.name] ~= nil)
      assert.is_true(op.variants.method == false or lt._methods[op.name] ~= nil)
      assert.is_true(op.variants.in_place == false or lt._methods[op.name .. "_"] ~= nil)
      assert.is_true(lt._ops[op.name] ~= nil)
    end
  end)
end)
