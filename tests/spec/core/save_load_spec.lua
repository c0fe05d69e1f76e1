-- lt.save and lt.load of Lua's values.

local lt = require "lutra"
local json = require "lutra.internal.json"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return message
end

local path
before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

local function again(value)
  lt.save(value, path)
  return lt.load(path)
end

local function read()
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

describe("lt.save", function()
  it("keeps numbers, strings and booleans", function()
    for _, x in ipairs{1, -7, math.maxinteger, math.mininteger, 0.1, -0.0, 1e300, 5e-324, 2.0,
      true, false, "", "text", "\0\1\n\"\\", "\255\254", "é", ("x"):rep(100000), math.huge,
      -math.huge} do
      local y = again(x)
      assert.equal(x, y)
      assert.equal(math.type(x), math.type(y))
      assert.equal(tostring(x), tostring(y))
    end
    local nan = again(math.abs(0 / 0))
    assert.is_true(nan ~= nan)
    assert.equal("1 + 2i", tostring(again(lt.complex(1, 2))))
  end)

  it("keeps nested tables, their keys and cycles", function()
    local inner = {1, 2, {3}}
    local t = {inner, inner, [2.5] = "f", [true] = 1, [-1] = "n", ["a b"] = {}, ["\255"] = 1}
    t.self = t
    local u = again(t)
    assert.equal(u[1], u[2])
    assert.equal(u, u.self)
    assert.same({1, 2, {3}}, u[1])
    assert.equal("f", u[2.5])
    assert.equal(1, u[true])
    assert.equal("n", u[-1])
    assert.same({}, u["a b"])
    assert.equal(1, u["\255"])
    local deep = {}
    local inside = deep
    for _ = 1, 5000 do
      inside[1] = {}
      inside = inside[1]
    end
    local depth, v = 0, again(deep)
    while v[1] do depth, v = depth + 1, v[1] end
    assert.equal(5000, depth)
  end)

  it("keeps dtypes, shapes and strides", function()
    for _, dtype in ipairs{"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
      "int8", "uint8", "bool", "complex64", "complex128"} do
      local t = {
        x = lt.tensor({{0, 1, 1}, {1, 0, 1}}, {dtype = dtype}):t(),
        scalar = lt.tensor(1, {dtype = dtype}), empty = lt.zeros(2, 0, {dtype = dtype}),
        wide = lt.ones({1}, {dtype = dtype}):expand(3),
      }
      local u = again(t)
      for name, x in pairs(t) do
        assert.equal(dtype, u[name].dtype)
        assert.equal(tostring(x.shape), tostring(u[name].shape))
        assert.is_true(lt.equal(x, u[name]))
      end
      assert.same({table.unpack(t.x:stride())}, {table.unpack(u.x:stride())})
    end
    assert.equal("{2, 3}", tostring(again(lt.ones(2, 3).shape)))
    assert.same({1, 2}, again(lt.tensor{1, 2}):totable())
  end)

  it("keeps shared memory", function()
    local x = lt.arange(12):reshape(3, 4)
    local u = again{x = x, row = x[2], t = x:t(), same = x, part = {x[{{}, {2, 3}}]}}
    u.row:zero_()
    assert.same({{1, 2, 3, 4}, {0, 0, 0, 0}, {9, 10, 11, 12}}, u.x:totable())
    assert.same({0, 0, 0, 0}, u.t[{{}, 2}]:totable())
    assert.same({{2, 3}, {0, 0}, {10, 11}}, u.part[1]:totable())
    assert.equal(u.x, u.same)
    local a = again{x[1], x[2]} -- a part of the storage
    assert.is_true(a[1]:shares_storage(a[2]))
    assert.same({5, 6, 7, 8}, a[2]:totable())
  end)

  it("keeps parameters and requires_grad", function()
    local p = lt.nn.Parameter(lt.ones(2))
    local u = again{p = p, f = lt.nn.Parameter(lt.ones(2), false),
      g = lt.ones({2}, {requires_grad = true}), twice = p * 2, same = p}
    assert.is_true(lt.is_parameter(u.p))
    assert.is_true(u.p.requires_grad)
    assert.is_true(lt.is_parameter(u.f))
    assert.is_false(u.f.requires_grad)
    assert.is_true(u.g.requires_grad)
    assert.is_false(lt.is_parameter(u.g))
    assert.same({2, 2}, u.twice:totable())
    assert.equal(u.p, u.same)
  end)

  it("keeps a checkpoint of a module and an optimizer", function()
    local nn = lt.nn
    local net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    local opt = lt.optim.Adam(net:parameters(), {lr = 0.5})
    local function step()
      opt:zero_grad()
      net(lt.ones{2, 3}):sum():backward()
      opt:step()
    end
    step()
    lt.save({model = net:state_dict(), optimizer = opt:state_dict(), epoch = 3}, path)
    local names = {}
    for name in pairs(net:state_dict()) do names[#names + 1] = name end
    step()
    local expected = net[1].weight:clone()
    local saved = lt.load(path, {weights_only = true})
    local at = 0
    for name in pairs(saved.model) do
      at = at + 1
      assert.equal(names[at], name)
    end
    assert.equal(3, saved.epoch)
    net:load_state_dict(saved.model)
    opt:load_state_dict(saved.optimizer)
    step()
    assert.is_true(lt.equal(expected, net[1].weight))
  end)

  it("writes a safetensors file with the names of the fields", function()
    lt.save({model = {weight = lt.ones(2)}, list = {lt.zeros(3)}}, path)
    local tensors, metadata = lt.load_safetensors(path)
    assert.same({1, 1}, tensors["model.weight"]:totable())
    assert.same({0, 0, 0}, tensors["list.1"]:totable())
    assert.is_string(metadata.lutra)
    assert.is_table((json.decode(metadata.lutra)))
  end)

  it("has files that lt.load reads, whatever the length of their header is", function()
    local lengths = {}
    for n = 1, 300, 4 do
      local name = ("k"):rep(n)
      lt.save({[name] = n}, path)
      assert.equal(n, lt.load(path)[name])
      local file <close> = assert(io.open(path, "rb"))
      lengths[file:read(1)] = true
    end
    assert.is_true(lengths["\x80"]) -- as a pickle starts
  end)

  it("gives equal files for equal values", function()
    lt.save({b = 1, a = {lt.ones(2)}, c = true}, path)
    local first = read()
    lt.save({c = true, a = {lt.ones(2)}, b = 1}, path)
    assert.equal(first, read())
  end)

  it("refuses what is no data, and leaves the file unchanged", function()
    lt.save({1}, path)
    local before = read()
    for what, value in pairs{
      ["cannot save the value: it is nil"] = {},
      ["cannot save f: it is a function"] = {{f = print}},
      ["cannot save a.b[2]: it is a thread"] = {{a = {b = {1, coroutine.create(print)}}}},
      ["cannot save net: it is"] = {{net = lt.nn.Linear(1, 1)}},
      ["a tensor on meta"] = {{x = lt.ones({2}, {device = "meta"})}},
      ["with a table as a key"] = {{x = {[{}] = 1}}},
    } do
      assert.matches("save: ", fails(lt.save, value[1], path), 1, true)
      assert.matches(what, fails(lt.save, value[1], path), 1, true)
    end
    local x = lt.ones(1)
    x:free()
    assert.matches("a tensor that was freed", fails(lt.save, {x = x}, path), 1, true)
    assert.matches("expected a string for argument 'path', got nil", fails(lt.save, {}), 1, true)
    assert.matches("NUL", fails(lt.save, {}, path .. "\0"), 1, true)
    assert.equal(before, read())
    assert.matches("state_dict()", fails(lt.save, lt.nn.Linear(1, 1), path), 1, true)
  end)
end)

describe("lt.load", function()
  it("sends tensors to map_location", function()
    lt.save({x = lt.ones(2), y = {lt.zeros(1)}}, path)
    local u = lt.load(path, {map_location = "meta"})
    assert.equal("meta", u.x.device)
    assert.equal("meta", u.y[1].device)
    u = lt.load(path, {map_location = function(t) return t + 1 end})
    assert.same({2, 2}, u.x:totable())
  end)

  it("returns the tensors of any safetensors file", function()
    lt.save_safetensors(path, {b = lt.ones(2), a = lt.zeros(1)}, {note = "x"})
    local u = lt.load(path)
    assert.same({1, 1}, u.b:totable())
    assert.equal("meta", lt.load(path, "meta").a.device)
  end)

  -- Writes a file with this description.
  local function write(text)
    lt.save_safetensors(path, {x = lt.arange(4), z = lt.ones(2, 2, {dtype = "float64"})},
      {lutra = text})
  end

  local function with(tensor)
    return ('{"version":1,"value":["x",1],"tables":[],"tensors":[%s]}'):format(tensor)
  end

  it("refuses a description that is not valid", function()
    for text, piece in pairs{
      ["{"] = "damaged", ["[]"] = "damaged", ["1"] = "damaged", ["{}"] = "version",
      ['{"version":2}'] = "version 2, expected 1", ['{"version":1}'] = "damaged",
      ['{"version":1,"tables":[],"tensors":[]}'] = "missing entry",
      ['{"version":1,"value":["t",1],"tables":[],"tensors":[]}'] = "missing entry",
      ['{"version":1,"value":["t",1],"tables":[["plain",["t",1],1]],"tensors":[]}'] = "damaged",
      ['{"version":1,"value":["t",1],"tables":[["plain",1]],"tensors":[]}'] = "damaged",
      ['{"version":1,"value":["t",1],"tables":[["code",1,1]],"tensors":[]}'] = "damaged",
      ['{"version":1,"value":["t",1],"tables":[1],"tensors":[]}'] = "damaged",
      ['{"version":1,"value":["f","1"],"tables":[],"tensors":[]}'] = "missing entry",
      ['{"version":1,"value":["s","0"],"tables":[],"tensors":[]}'] = "missing entry",
      ['{"version":1,"value":["c",1],"tables":[],"tensors":[]}'] = "missing entry",
      [with '1'] = "damaged", [with '{}'] = "does not match", [with '{"name":"x"}'] = "does not",
      [with '{"name":"y","device":"cpu"}'] = "does not match",
      [with '{"name":"x","device":"cpu","role":"code"}'] = "does not match",
      [with '{"name":"x","device":"cpu","complex":true}'] = "does not match",
      [with '{"name":"x","device":"cuda:9"}'] = 'device "cuda:9", which is not available',
      [with '{"name":"x","device":"os.exit"}'] = "which is not available",
      [with '{"name":"x","device":"cpu","role":"grad"}'] = "float",
    } do
      write(text)
      assert.matches(piece, fails(lt.load, path), 1, true)
    end
    for _, view in ipairs{"1", "[]", "[[5],[1],0]", "[[4],[1],1]", "[[2],[1,1],0]", "[[2],[1]]",
      "[[-1],[1],0]", "[[2],[-1],0]", "[[2],[1],-1]", "[[2],[1.5],0]",
      "[[4611686018427387904,4],[1,1],0]", "[[2],[4611686018427387904],0]",
      "[[4611686018427387904],[0],0]"} do
      write(with('{"name":"x","device":"cpu","view":' .. view .. "}"))
      assert.matches("view that is not inside", fails(lt.load, path), 1, true)
    end
    write(with '{"name":"x","device":"cpu","view":[[2,2],[0,3],0]}')
    assert.same({{1, 4}, {1, 4}}, lt.load(path):totable())
  end)
end)

describe("JSON", function()
  it("is read", function()
    local t = json.decode(' {"a": [1, 2.5, -3e2, true, false, null], '
      .. '"b": {"c": "x\\n\\u00e9\\ud83d\\ude00"}, "d": []} ')
    assert.same({1, 2.5, -300.0, true, false, json.null}, t.a)
    assert.equal("integer", math.type(t.a[1]))
    assert.equal("x\né😀", t.b.c)
    assert.equal(1e30, json.decode "1000000000000000000000000000000")
    assert.equal(math.mininteger, json.decode "-9223372036854775808")
  end)

  it("that is not valid is refused with the place", function()
    for text, piece in pairs{
      [""] = "a value at byte 1", ["{"] = "a name", ['{"a"}'] = "':'", ["[1,]"] = "a value",
      ["[1 2]"] = "',' or ']'", ['{"a":1,}'] = "a name", ['{"a":1,"a":2}'] = "each name once",
      ["01"] = "leading zeros", ["-"] = "a value", ["nul"] = "a value", ["1 2"] = "end of the text",
      ['"a'] = "end of the string", ['"\n"'] = "end of the string", ['"\\x"'] = "a valid escape",
      ['"\\u12"'] = "hexadecimal", ['"\\ud800"'] = "second surrogate", ['"\\udc00"'] = "first",
      ["'a'"] = "a value", ["NaN"] = "a value", ["\255"] = "UTF-8", [("["):rep(300)] = "nested",
    } do
      local value, why = json.decode(text)
      assert.is_nil(value)
      assert.matches(piece, why, 1, true)
    end
  end)
end)
