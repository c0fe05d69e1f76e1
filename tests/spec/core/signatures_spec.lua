--- Signatures of functions written in Lua: the grammar of ops.def, read by the core as ops' are.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "no error was raised")
  assert.is_truthy(message:find(text, 1, true), ("%q is not in: %s"):format(text, message))
end

describe("a signature of a Lua function", function()
  it("reads the three spellings of one call", function()
    local parse = args.signature("f",
      "int n, float scale = 0.5, bool bias = true, string? name = nil")
    local function is(expected, ...) assert.same(expected, table.pack(...)) end
    is({3, 0.5, true, nil, n = 4}, parse(3))
    is({3, 2, false, "a", n = 4}, parse(3, 2, false, "a"))
    is({3, 2, false, nil, n = 4}, parse(3, 2, {bias = false}))
    is({3, 0.5, false, "a", n = 4}, parse{3, bias = false, name = "a"})
    is({3, 0.5, true, "a", n = 4}, parse{n = 3.0, name = "a"})
    is({3, 0.5, true, nil, n = 4}, parse(3, nil, nil, nil, nil))
    assert.equal("integer", math.type((parse(3.0))))
  end)

  it("says what is wrong with a call", function()
    local parse = args.signature("f",
      "int(>=1) n, 'a'|'b'|'c' mode = 'a', floats(>=0) betas = {0.9, 1}")
    fails("f: expected an integer of at least 1 for argument 'n', got no value", parse)
    fails("f: expected an integer of at least 1 for argument 'n', got 0", parse, 0)
    fails("f: expected an integer of at least 1 for argument 'n', got 1.5", parse, 1.5)
    fails("f: expected 'a', 'b' or 'c' for argument 'mode', got the string \"d\"", parse, 1, "d")
    fails("f: expected a list of numbers of at least 0 for argument 'betas', got a table", parse,
      {1, betas = {0.5, -1}})
    fails("f: expected an argument name (n, mode, betas), got 'beta'",
      parse,
      1, {beta = 2})
    fails("f: expected one value for argument 'mode', got two: one by position, one by name",
      parse, {1, "b", mode = "b"})
    fails("f: expected at most 3 arguments (n, mode, betas), got 4", parse, 1, "a", {1}, 4)
  end)

  it("has lists as defaults, a new one for each call", function()
    local parse = args.signature("f",
      "floats betas = {0.9, 0.999}, ints stride = 1, ints pad = {0, 2}")
    local betas, stride, pad = parse()
    assert.same({{0.9, 0.999}, {1}, {0, 2}}, {betas, stride, pad})
    betas[1] = 7
    assert.same({0.9, 0.999}, (parse()))
  end)

  it("takes lists of lists", function()
    local parse = args.signature("f", "int|dims[] dims = 2, ints[] pairs = {{1, 2}, {}}, "
      .. "floats[](>=0)? limits = nil, Tensor[][]? rows = nil")
    local dims, pairs = parse()
    assert.same({2, {{1, 2}, {}}}, {dims, pairs})
    assert.equal("integer", math.type(pairs[1][1]))
    pairs[1][1] = 7
    assert.equal(1, select(2, parse())[1][1])
    assert.same({{1, -1}, {2}}, (parse{{1, -1}, {2}}))
    assert.same({{1}, {2}}, (parse({{1}, {2}}, {{3}})))
    assert.same({{3, 4}}, select(2, parse{dims = {{1}}, pairs = {{3, 4}}}))
    assert.same({{0, 0.5}}, select(3, parse{limits = {{0, 0.5}}}))
    local x = lt.ones(1)
    assert.equal(x, select(4, parse{rows = {{x, x}, {}}})[1][2])
    fails("f: expected a 1-based dim for argument 'dims[2][1]', got 0", parse,
      {{1}, {0}})
    fails("f: expected an integer for argument 'pairs[1][2]', got 0.5", parse,
      {pairs = {{1, 0.5}}})
    fails("f: expected a list for argument 'pairs[2]', got 3", parse, {pairs = {{1}, 3}})
    fails("f: expected a number of at least 0 for argument 'limits[1][1]', got -1", parse,
      {limits = {{-1}}})
    fails("f: expected a tensor for argument 'rows[1][2]', got 1", parse, {rows = {{x, 1}}})
    fails("f: expected a list of lists of integers for argument 'pairs', got 1", parse, 2, 1)
    fails("f: expected an integer or a list of lists of dims for argument 'dims', got true",
      parse, true)
    local list = args.signature("g", "ints[] pairs, bool flag = false")
    fails("g: expected a list of lists of integers for argument 'pairs', got no value", list)
    assert.same({{1, 2}, {3}}, (list{{1, 2}, {3}, flag = true}))
    assert.is_true(select(2, list{{1, 2}, {3}, flag = true}))
    local described = args.describe(parse)
    assert.equal("{{1, 2}, {}}", described[2].default)
    assert.equal("ints[]", described[2].type)
    assert.equal("an integer or a list of lists of dims", described[1].expected)
    fails('g: expected a signature, got "(ints[][] pairs)"', args.signature, "g", "ints[][] pairs")
  end)

  it("takes lists spread, in a table, by name and as the one table", function()
    local parse = args.signature("f", "sizes(>=0) size, bool flag = false")
    for _, size in ipairs {parse(2, 3), (parse{2, 3}), (parse({2, 3}, true)),
      (parse{size = {2, 3}}), (parse{{2, 3}, flag = true}), (parse(lt.ones(2, 3).shape))} do
      assert.same({2, 3}, size)
    end
    fails("f: expected sizes (integers) of at least 0 for argument 'size', got a table",
      parse, {2, -1})
    local list = args.signature("g", "list items, int n = 1")
    local a, b = {}, {}
    assert.same({a, b}, (list{a, b, n = 2}))
    assert.is_true(rawequal(a, list{items = {a, b}}[1]))
    assert.equal(2, select(2, list{items = {a, b}, n = 2}))
  end)

  it("takes one of several types", function()
    local parse = args.signature("f",
      "'same'|'valid'|ints padding = 'valid', table|string? options = nil")
    assert.equal("valid", (parse()))
    assert.equal("same", (parse "same"))
    assert.same({1, 2}, (parse({1, 2})))
    assert.equal("-O3", select(2, parse(1, "-O3")))
    fails("f: expected 'same' or 'valid' or integers for argument 'padding', got the string "
      .. "\"full\"", parse, "full")
    fails("f: expected a string or a table for argument 'options', got 3", parse, "same", 3)
  end)

  it("counts dims from 1", function()
    local parse = args.signature("f", "dim dim = -1, dims dims = {1, -2}, position at = 2")
    local dim, dims, at = parse()
    assert.same({-1, {1, -2}, 2}, {dim, dims, at})
    assert.same({2, {3}, -1}, {parse(2, {3}, -1)})
    fails("f: expected a 1-based dim for argument 'dim', got 0\nhint: dims count from 1 (-1 is "
      .. "the last)", parse, 0)
  end)

  it("limits dtypes to those that it names", function()
    local parse = args.signature("f", "dtype(float32|float64) dtype = 'float32'")
    assert.equal("float32", (parse()))
    assert.equal("float64", (parse(lt.float64)))
    fails("f: expected dtype(float32|float64) for argument 'dtype', got the string \"int8\"", parse,
      "int8")
    fails('f: expected a dtype (bool, uint8, int8, int16, int32, int64, float16, bfloat16, '
      .. 'float32, float64, complex64, complex128), got "float7"', parse, "float7")
  end)

  it("is refused where it is malformed", function()
    for _, text in ipairs {"int", "number n", "int n = x", "int n, int n", "'a'|'b' s = 'c'"} do
      fails('expected a signature, got "(' .. text .. ')"', args.signature, "f", text)
    end
  end)

  it("gives help and completion what ops' signatures give", function()
    local parse = args.signature("f", "int(>=0) n, 'a'|'b' mode = 'a', Tensor? x = nil")
    local list, title = args.describe(parse)
    assert.equal("f", title)
    assert.same({name = "n", type = "int", optional = false, least = 0,
      expected = "an integer of at least 0"}, list[1])
    assert.same({name = "mode", type = "string", optional = true, default = '"a"',
      choices = {"a", "b"}, expected = "'a' or 'b'"}, list[2])
    assert.same({name = "x", type = "Tensor", optional = true, default = "nil",
      expected = "a tensor"}, list[3])
    for _, op in ipairs(core.ops()) do
      if op.name == "gelu" then assert.same({"none", "tanh"}, op.params[2].choices) end
    end
  end)
end)

describe("an optimizer's settings", function()
  local optim = lt.optim
  local p = lt.ones{2, requires_grad = true}

  it("are read in the three spellings", function()
    local function lr_and_momentum(o) return {o.param_groups[1].lr, o.param_groups[1].momentum} end
    for _, o in ipairs {optim.SGD({p}, 0.5, 0.25), optim.SGD({p}, 0.5, {momentum = 0.25}),
      optim.SGD({p}, {momentum = 0.25, lr = 0.5}), optim.SGD{p, lr = 0.5, momentum = 0.25},
      optim.SGD{params = {p}, lr = 0.5, momentum = 0.25}} do
      assert.same({0.5, 0.25}, lr_and_momentum(o))
    end
  end)

  it("are refused with the message of every other call", function()
    fails("SGD: expected an argument name (params, lr, momentum, dampening, weight_decay, "
      .. "nesterov, maximize, foreach, differentiable, fused), got 'mometum'",
      optim.SGD, {p}, {mometum = 1})
    fails("SGD: expected an argument name (lr, momentum, dampening, weight_decay, nesterov, "
      .. "maximize, foreach, differentiable, fused), got 'mometum'",
      optim.SGD, {{params = {p}, mometum = 1}})
    fails("SGD: expected one value for argument 'lr', got two: one by position, one by name",
      optim.SGD, {p}, 1, {lr = 1})
    fails("SGD: expected a number for argument 'dampening', got nan", optim.SGD, {p},
      {dampening = 0 / 0})
    fails("Adam: expected a boolean for argument 'amsgrad', got 1", optim.Adam, {p}, {amsgrad = 1})
    fails("Adam: expected two numbers from 0 to below 1 for argument 'betas', got a table",
      optim.Adam, {p}, {betas = {0.9}})
    fails("AdamW: expected at most 11 arguments (params, lr, betas, eps, weight_decay, "
      .. "amsgrad, maximize, foreach, capturable, differentiable, fused), got 12", optim.AdamW,
        {p}, 1, {0, 0},
      1, 1, false, false, false, false, false, false, 1)
  end)

  it("are checked when a state is loaded, one by one and together", function()
    local adam = optim.Adam({p})
    local saved = adam:state_dict()
    saved.param_groups[1].betas = {0.5, 1}
    fails("Adam: load_state_dict: expected two numbers from 0 to below 1 for argument 'betas', got "
      .. "a table",
      adam.load_state_dict, adam, saved)
    saved.param_groups[1].betas = {-1, 0.5}
    fails("expected a list of numbers of at least 0 for betas of group 1", adam.load_state_dict,
      adam, saved)
    assert.same({0.9, 0.999}, adam.param_groups[1].betas)
  end)

  it("may be a class's of one's own", function()
    local Mine = optim.Optimizer:extend("Mine", "float(>=0) lr = 0.5, 'a'|'b' mode = 'a'")
    function Mine.update(_, x, grad, _, group) x:sub_(grad, {alpha = group.lr}) end
    local x = lt.ones{2, requires_grad = true}
    local mine = Mine({x}, {mode = "b"})
    x:sum():backward()
    mine:step()
    assert.same({0.5, 0.5}, x:totable())
    assert.truthy(tostring(mine):find("lr=0.5, mode=b", 1, true))
    fails("Mine: expected 'a' or 'b' for argument 'mode', got the string \"c\"", Mine, {x},
      {mode = "c"})
  end)
end)

describe("a composite written in Lua", function()
  local define = lt._define

  it("is a row of the op table", function()
    local found = {}
    for _, op in ipairs(lt.ops()) do
      if op.namespace == "F" then found[op.name] = op end
    end
    local row = found.normalize
    assert.equal("(Tensor input, float p = 2, dims? dim = 2, float eps = 1e-12)", row.signature)
    assert.equal("composite", row.kind)
    assert.equal("Tensor", row.results[1].type)
    assert.same({"input", "2", "float"}, {row.params[1].name, row.params[2].default,
      row.params[4].type})
    assert.is_true(row.support.cpu and row.support.meta)
    assert.equal(lt.F.normalize, row.call)
    assert.truthy(found.embedding and lt.F.cosine_similarity == lt.cosine_similarity)
  end)

  it("reads its arguments as ops do", function()
    local x = lt.tensor{{3, 4}, {0, 2}}:double()
    for _, y in ipairs {lt.F.normalize(x, 2, 1), lt.F.normalize(x, {dim = 1}),
      lt.F.normalize{x, dim = 1}, lt.F.normalize{input = x, dim = -2}} do
      assert.is_true(lt.allclose(x / lt.tensor({3, 20 ^ 0.5}, {dtype = "float64"}), y))
    end
    fails("normalize: expected a 1-based dim for argument 'dim', got 0", lt.F.normalize, x, 2, 0)
    fails("normalize: expected an argument name (input, p, dim, eps), got 'dims'", lt.F.normalize,
      x,
      {dims = 1})
    fails("cosine_similarity: expected a tensor for argument 'x2', got no value",
      lt.F.cosine_similarity,
      x)
  end)

  it("is refused where its row is malformed", function()
    fails("_define: expected {signature, doc, fn} for argument 'row', got nil", define)
    fails("_define: expected a string for argument 'doc', got nil", define, {signature = "f()"})
    fails("_define: expected a function for argument 'fn', got 3", define,
      {signature = "f(int n)", doc = "x", fn = 3})
    fails("_define: expected a name and parameters for argument 'signature', got", define,
      {signature = "(int n)", doc = "x", fn = print})
    fails('f: expected a signature, got "(int)"', define, {signature = "f(int)", doc = "x",
      fn = print})
  end)
end)

describe("functions of the library", function()
  it("take data by name", function()
    assert.same({1, 2}, lt.tensor{data = {1, 2}, dtype = "int64"}:totable())
    assert.same({1, 2}, lt.tensor{1, 2, dtype = "int64"}:totable())
    assert.equal("{0}", tostring(lt.tensor{dtype = "float32"}.shape))
  end)

  it("name the strings that they take", function()
    fails("MSELoss: expected 'mean', 'sum' or 'none' for argument 'reduction', got the string",
      lt.nn.MSELoss, {reduction = "avg"})
    fails("GELU: expected 'none' or 'tanh' for argument 'approximate', got the string", lt.nn.GELU,
      "fast")
    fails("kaiming_normal_: expected 'fan_in' or 'fan_out' for argument 'mode', got the string",
      lt.nn.init.kaiming_normal_, lt.ones(2, 2), {mode = "fan"})
    fails('Linear: expected a dtype (bool, uint8, int8, int16, int32, int64, float16, '
      .. 'bfloat16, float32, float64, complex64, complex128), got "float7"', lt.nn.Linear, 2, 3,
        {dtype = "float7"})
  end)
end)
