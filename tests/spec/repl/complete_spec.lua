-- Completion: what is offered for a line and its cursor. The expected values follow from the
-- variables that each test makes and from the signatures in lt.ops() and in lib/lutra.

local lt = require "lutra"
local nn = require "lutra.nn"
local complete = require "lutra.repl.complete"
local host = require "lutra.repl.host"
local locals = require "lutra.repl.locals"
local options = require "lutra.repl.options"
local commands = require "lutra.repl.commands"
local screen = require "screen_support"
local support = require "program_support"

local session

-- A session whose locals are the fields of `variables`.
local function with(variables)
  session = {locals = locals.new()}
  for name, value in pairs(variables) do session.locals:set(name, value) end
end

local function at(text, point) return complete.at(text, point or #text, session) end

-- The texts that are offered, by text.
local function offered(text, point)
  local found = {}
  for _, item in ipairs((at(text, point) or {items = {}}).items) do found[item.text] = item end
  return found
end

local function list(text, point)
  local texts = {}
  for i, item in ipairs((at(text, point) or {items = {}}).items) do texts[i] = item.text end
  return texts
end

local function has(text, ...)
  local found = offered(text)
  for _, name in ipairs {...} do
    assert.is_truthy(found[name], ("%q does not offer %q"):format(text, name))
  end
end

local function has_not(text, ...)
  local found = offered(text)
  for _, name in ipairs {...} do
    assert.is_nil(found[name], ("%q offers %q"):format(text, name))
  end
end

describe("completion of names", function()
  before_each(function() with {} end)

  it("offers globals and keywords, sorted, with the range that they replace", function()
    local found = at("print(tonu")
    assert.same({7, 10}, {found.first, found.last})
    assert.same({"tonumber"}, list "print(tonu")
    assert.same({"rawequal", "rawget", "rawlen", "rawset"}, list "raw")
    assert.equal("keyword", offered "whil"["while"].kind)
  end)

  it("offers locals of the session before globals of the same name", function()
    with {print = 3, weight_a = lt.zeros(2)}
    assert.equal("local", offered "prin".print.kind)
    assert.same({"weight_a"}, list "weigh")
    assert.equal("float32 {2} cpu", offered "weigh".weight_a.note)
  end)

  it("offers what is loaded only when it is read", function()
    has("o", "optim")
    has("l", "lt")
    has("", "nn", "F", "data", "tensor")
  end)

  it("takes any case where no name begins as typed", function()
    with {Weights = 1}
    assert.same({"Weights"}, list "weig")
    with {Weights = 1, weigh = 2}
    assert.same({"weigh"}, list "weig")
    assert.is_nil(at "qqq_nothing")
  end)

  it("hides names with an underscore until one is typed", function()
    with {_private = 1}
    has_not("", "_private", "_G", "_VERSION")
    has("_", "_private", "_G")
  end)

  it("looks at the text up to the cursor only", function()
    local found = at("tostr(1)", 4)
    assert.same({1, 4}, {found.first, found.last})
    assert.same({"tostring"}, list("tostr(1)", 4))
    assert.same({"tostring"}, list("tostXYZ", 4))
  end)

  it("knows the locals of the text, where they are seen", function()
    assert.same({"alpha_one"}, list "local alpha_one = 1\nprint(alpha_")
    assert.same({"alpha_one", "alpha_two"}, list "local alpha_one <const>, alpha_two = 1\nalpha_")
    assert.same({"alpha"}, list "local function f(alpha, ...) return alph")
    has("function t.a:f() sel", "self")
    has_not("function t.a.f() sel", "self")
    assert.same({"beta_i"}, list "for beta_i = 1, 3 do beta_")
    assert.same({"beta_k", "beta_v"}, list "for beta_k, beta_v in pairs(t) do beta_")
    assert.is_nil(at "do local gamma_a = 1 end gamma_")
    assert.is_nil(at "for gamma_i = 1, 3 do end gamma_")
    assert.is_nil(at "local f = function(gamma_a) return gamma_a end gamma_")
    assert.is_nil(at "if x then local gamma_a else gamma_")
    assert.same({"gamma_a"}, list "repeat local gamma_a = 1 if x then end gamma_")
    assert.same({"delta_a"}, list "delta_a = 1\nprint(delta_")
  end)

  it("offers nothing where a name is declared", function()
    assert.is_nil(at "local pri")
    assert.is_nil(at "local a, pri")
    assert.is_nil(at "for pri")
    assert.is_nil(at "function f(pri")
    assert.is_nil(at "function a.b:f(x, pri")
    assert.is_nil(at "goto pri")
    assert.same({"function"}, list "local fun")
    assert.same({"print"}, list "f(a, prin")
    assert.same({"print"}, list "local a, b = c, prin")
    assert.same({"close", "const"}, list "local a <const>, b <")
  end)

  it("offers nothing in comments, in numbers and behind a whole expression", function()
    assert.is_nil(at "-- pri")
    assert.is_nil(at "--[[ pri")
    assert.is_nil(at "--[==[ a ]] pri")
    assert.is_nil(at "x = 0xpri")
    assert.is_nil(at "x = 12")
    assert.is_nil(at "x ")
    assert.same({"print"}, list "--[[ a ]] prin")
    assert.same({"print"}, list "-- a\nprin")
  end)

  it("does not fail on bytes, on unfinished and on wrong code", function()
    assert.is_truthy(at "")
    assert.same({"print"}, list "\0 \xff prin")
    assert.same({"print"}, list ")) end end ]] prin")
    assert.same({"print"}, list "((({{{ function( if x prin" )
    assert.is_nil(at "a.b[.c")
    assert.is_nil(at "]:x")
    assert.is_nil(complete.at("a.", 2, nil))
    assert.same({"print"}, (function() session = nil return list "prin" end)())
  end)
end)

describe("completion of fields and methods", function()
  it("offers fields after a dot, what can be called after a colon", function()
    with {t = {alpha = 1, beta = function() end, ["no name"] = 2, ["end"] = 3, [1] = 4}}
    assert.same({"alpha", "beta"}, list "t.")
    assert.same({"beta"}, list "t:")
    assert.same({"alpha"}, list "local x = 1 + t.al")
    assert.same({"format"}, list "string.forma")
  end)

  it("follows chains of fields and literal indexes", function()
    with {t = {a = {{deep_field = 1}, b = {other = 2}}, n = 1}, k = "b"}
    assert.same({"deep_field"}, list "t.a[1].")
    assert.same({"other"}, list 't["a"].b.')
    assert.same({"other"}, list "t.a[k].")
    assert.same({"deep_field"}, list "f(x, t.a [1] .de")
    assert.is_nil(at "t.a[n].")
    assert.is_nil(at "t.a.b.c.d.")
    assert.is_nil(at "t.n.")
    assert.is_nil(at "t.a[1].missing.x")
  end)

  it("follows __index chains of tables, also in a ring", function()
    local a, b = {from_a = 1}, {from_b = 2}
    setmetatable(a, {__index = b})
    setmetatable(b, {__index = a})
    with {t = setmetatable({own = 0}, {__index = a})}
    assert.same({"from_a", "from_b", "own"}, list "t.")
  end)

  it("calls nothing of the user's", function()
    local function forbidden() error "called" end
    local meta = {__index = forbidden, __pairs = forbidden, __len = forbidden, __eq = forbidden,
      __tostring = forbidden, __call = forbidden, __name = forbidden, __close = forbidden,
      __concat = forbidden, __lt = forbidden, __metatable = "guarded"}
    local calls = 0
    with {
      t = setmetatable({raw = 1, call_me = function() calls = calls + 1 end}, meta),
      inner = setmetatable({}, {__index = setmetatable({below = 1}, meta)}),
      lazy = setmetatable({}, {__index = function() calls = calls + 1 end}),
      index_of_meta = setmetatable({}, setmetatable({}, meta)),
    }
    assert.same({"call_me", "raw"}, list "t.")
    assert.same({"below"}, list "inner.")
    assert.is_nil(at "lazy.")
    assert.is_nil(at "lazy.x.")
    assert.is_nil(at "index_of_meta.")
    assert.is_nil(at "t.call_me().")
    assert.is_nil(at "t:call_me():")
    assert.is_nil(at 't.call_me"x".')
    assert.same({"call_me", "raw"}, list 't["')
    has("t", "t")
    assert.equal(0, calls)
    for _ = 1, 100 do setmetatable({}, {__gc = function() calls = calls + 1 end}) end
    local within = 0 -- finalizers that ran in a call; between them they may
    for _ = 1, 20 do
      local before = calls
      complete.at("", 0)
      within = within + calls - before
    end
    assert.equal(0, within)
    assert.is_true(collectgarbage "isrunning")
    local before = getmetatable(_G)
    local probed = 0
    setmetatable(_G, {__index = function() probed = probed + 1 end})
    at "no_such_global.x"
    at "no_such_gl"
    setmetatable(_G, before)
    assert.equal(0, probed)
  end)

  it("offers the fields and methods of tensors", function()
    with {x = lt.zeros(2, 3)}
    has("x.", "shape", "dtype", "device", "grad", "requires_grad", "is_cuda", "T", "matmul")
    has("x:", "matmul", "relu_", "to", "numel", "backward")
    has_not("x:", "shape", "dtype")
    has("x.T:", "matmul")
    has("x[1]:", "matmul")
    has('x["1:2"]:', "matmul")
    has("x.shape:", "numel")
    assert.equal("(dim = nil, keepdim = false)", offered "x:max".max.note)
    for _, op in ipairs(lt.ops()) do
      local is_public = op.variants.method and op.name:sub(1, 1) ~= "_"
      local is_name = load(("x:%s()"):format(op.name)) -- no keyword, as in x["repeat"](x, 2)
      if is_public and is_name then has("x:" .. op.name, op.name) end
    end
  end)

  it("knows what ops, classes and strings give", function()
    with {x = lt.zeros(2)}
    has("lt.zeros(3):", "matmul")
    has("lt.randn{2, 3}:", "matmul")
    has("lt.tensor{1, 2}:", "matmul")
    has("x:max(1):", "matmul")
    has("x:relu():sum{dim = 1}:", "matmul")
    has("x:float():cpu():", "matmul")
    has("(x + 1):", "matmul")
    has("(2 * x):exp():", "matmul")
    has("F.relu(x):", "matmul")
    has("nn.Linear(2, 3):", "forward", "parameters", "reset_parameters")
    has("nn.Linear(2, 3):eval():", "parameters")
    has("nn.Linear(2, 3)(x):", "matmul")
    has("optim.SGD(p):", "step", "zero_grad")
    has('("x"):', "upper", "format")
    has('("x"):upper():', "gsub")
    has('require"lutra.nn".', "Linear")
    assert.is_nil(at "x:split(1):mat") -- a list
    assert.is_nil(at "x:item():mat")
    assert.is_nil(at "(x == x).mat")
    assert.is_nil(at "unknown(x):mat")
  end)

  it("knows what was assigned to locals and globals of the text", function()
    has("local y = lt.zeros(3)\ny:", "matmul")
    has("local a, b = 1, lt.zeros(3) print(a) b:", "matmul")
    has("local layer = nn.Linear(2, 3)\nlayer:", "parameters")
    has("local y = lt.zeros(3) * 2 local z = y:relu() z:", "matmul")
    has("y_global = lt.zeros(3); y_global:", "matmul")
    with {x = lt.zeros(2)}
    has("local x = x:", "matmul")
    assert.is_nil(at "local x = 1 x:mat")
    assert.is_nil(at "local x; x:mat")
    assert.is_nil(at "local function f(x) x:mat")
    assert.is_nil(at "local a = a.b a.")
  end)

  it("offers parameters, submodules, buffers and methods of modules", function()
    local Net = nn.Module:extend "Net"
    function Net:init()
      self.fc = nn.Linear(2, 3)
      self:register_buffer("running", lt.zeros(2))
      self.scale = nn.Parameter(lt.ones(1))
    end
    function Net.helper() error "called" end
    with {net = Net(), row = nn.Sequential(nn.Linear(2, 3), nn.ReLU())}
    has("net.", "fc", "running", "scale", "training", "parameters", "helper")
    has("net:", "parameters", "helper", "to", "eval")
    has_not("net:", "fc", "running", "training")
    has("net.fc.", "weight", "bias", "in_features")
    has("net.fc.weight:", "matmul")
    has("row[1].", "weight")
    has("row:", "append", "forward")
    assert.equal("float32 {3, 2} cpu", offered "net.fc.wei".weight.note)
  end)

  it("offers the libraries that wait to be loaded, and what they hold", function()
    local result = support.run([[-e 'local complete = require "lutra.repl.complete"
      local function first(text) return complete.at(text, #text).items[1].text end
      print(package.loaded["lutra.optim"], first "lt.opti", first "lt.optim.AdamW")']])
    assert.equal("nil\toptim\tAdamW\n", result.out, result.err)
    has("lt.backends.cuda.matmul.", "allow_tf32")
  end)

  it("knows userdata by what their metatable says", function()
    with {f = io.stdout, g = lt.Generator()}
    has("f:", "write", "close")
    has("g:", "manual_seed", "get_state")
  end)
end)

describe("completion of arguments", function()
  before_each(function() with {x = lt.zeros(2, 3), unrelated_name = 1} end)

  it("offers names with their defaults in a table of arguments", function()
    local found = offered "lt.zeros{3, "
    assert.equal("argument", found.dtype.kind)
    assert.equal("dtype = nil", found.dtype.note)
    assert.equal("bool = false", found.requires_grad.note)
    assert.is_nil(found.size)
    assert.is_nil(found.unrelated_name)
    has("lt.zeros(3, {", "dtype", "device", "requires_grad")
    has("x:sum{", "dim", "keepdim", "dtype")
    has("x:sum{1, ", "keepdim")
    has_not("x:sum{1, ", "dim")
    has("lt.tensor({1, 2}, {", "dtype", "device", "requires_grad")
    has_not("x:sum(1, {", "dim", "self")
  end)

  it("offers no name twice, also not one given behind the cursor", function()
    has_not("lt.zeros{3, dtype = d, ", "dtype")
    has_not("lt.zeros(3, {device = 'cpu', dtype = f{dim = 1}, ", "dtype", "device", "dim")
    local text = "lt.zeros{3, , device = 1}"
    assert.is_nil(offered(text, 12).device)
    assert.is_truthy(offered(text, 12).dtype)
    assert.is_truthy(offered("lt.zeros{3, }, {device = 1}", 12).device)
  end)

  it("puts arguments before names that begin alike", function()
    with {device_of = 2, detail = 3}
    assert.same({"device", "debug", "detail"}, {table.unpack(list "lt.zeros{3, de", 1, 3)})
    assert.same({"device", "device_of"}, list "lt.zeros{3, devi")
    has_not("lt.zeros{3, dtype = de", "device")
  end)

  it("knows the library's Lua functions and classes", function()
    local found = offered "nn.Linear{"
    assert.equal("bool = true", found.bias.note)
    assert.equal("int", found.in_features.note)
    has("nn.Linear(2, 3, {", "bias", "device")
    has_not("nn.Linear(2, 3, {", "in_features", "out_features")
    assert.equal("float = 0.001", offered "optim.Adam{"["lr"].note)
    assert.equal("floats = {0.9, 0.999}", offered "optim.Adam(p, {".betas.note)
    has("F.normalize(x, {", "p", "dim", "eps")
    has("data.DataLoader(d, {", "batch_size", "shuffle")
    has("nn.MSELoss{reduction = '", "mean", "sum", "none")
    has("lt.gelu(x, '", "none", "tanh")
    has("lt.set_printoptions{", "precision", "sci_mode")
  end)

  it("offers only names of variables in other tables", function()
    has("local t = {unrel", "unrelated_name")
    has_not("local t = {", "dtype")
    has_not("lt.zeros{{", "dtype")
    has("f{unrel", "unrelated_name")
  end)

  it("offers dtypes and devices where they are expected", function()
    local dtypes = {"bfloat16", "float16", "float32", "float64"}
    for _, text in ipairs {'lt.zeros{3, dtype = "', 'lt.zeros(3, {dtype="', 'x:to "', "x:to('",
      'x:to{dtype = "', 'lt.set_default_dtype "', 'lt.finfo("', 'if x.dtype == "', 'x:to [['} do
      has(text, table.unpack(dtypes))
    end
    for _, text in ipairs {'lt.zeros{3, device = "', 'x:to "', 'x:to("', 'lt.set_default_device("',
      'x:to{device = "', 'x.device ~= "', 'nn.Linear(1, 2, {device = "', 'lt.device("'} do
      has(text, "cpu", "meta")
    end
    has_not('lt.zeros{3, dtype = "', "cpu")
    has_not('lt.zeros{3, device = "', "float32")
    has("lt.zeros{3, dtype = ", '"float32"')
    assert.same({"float16", "float32", "float64"}, list 'lt.zeros{dtype = "fl')
  end)

  it("offers the accelerators that are here", function()
    local result = support.run([[--emulate cuda:2 -e 'local complete = require "lutra.repl.complete"
      for _, item in ipairs(complete.at("x = lt.zeros{device = \"cu", 25).items) do
        print(item.text)
      end']])
    if result.err:find "without its emulation" then return end
    assert.equal("cuda:0\ncuda:1\n", result.out, result.err)
  end)
end)

describe("completion in strings", function()
  it("offers the string keys of tables", function()
    with {t = {["a key"] = 1, ["a\\b"] = 2, ['a"q'] = 3, other = 4, [1] = 5}}
    assert.same({"a key", 'a\\"q', "a\\\\b", "other"}, list 't["')
    assert.same({"a key", 'a"q', "a\\\\b"}, list "t['a")
    assert.same({"a\\b"}, list "t[ [[a\\")
    assert.same({"a key"}, list 't["a k')
    local found = at 't["a k'
    assert.same({4, 6}, {found.first, found.last})
  end)

  it("offers the keys of state dicts", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    with {net = net, sd = net:state_dict()}
    local keys = {"1.bias", "1.weight", "3.bias", "3.weight"}
    assert.same(keys, list 'sd["')
    assert.same(keys, list 'net:state_dict()["')
    assert.same({"3.bias", "3.weight"}, list "local s = net:state_dict() print(s['3.")
    has('net["', "training", "1", "3")
    has_not('net["', "forward")
    has('sd["1.weight"]:', "matmul")
  end)

  it("offers nothing in a key of what is not known", function()
    with {x = lt.zeros(2)}
    assert.is_nil(at 'unknown_table["')
  end)

  describe("offers paths", function()
    local folder
    setup(function()
      folder = support.folder()
      assert(os.execute(("cd %s && mkdir data data/inner && touch data.csv 'two words.txt' "
        .. "'qu\"ote' .hidden data/inner/x.lua"):format(support.quote(folder))))
    end)
    teardown(function() support.remove(folder) end)

    it("in strings", function()
      assert.same({folder .. "/data.csv", folder .. "/data/"}, list('io.open("' .. folder .. "/da"))
      assert.same({folder .. "/data/inner/"}, list("f '" .. folder .. "/data/"))
      assert.same({folder .. '/qu\\"ote'}, list('f("' .. folder .. "/qu"))
      assert.same({folder .. '/qu"ote'}, list("f('" .. folder .. "/qu"))
      assert.same({folder .. "/two words.txt"}, list("f('" .. folder .. "/two w"))
      has("f'" .. folder .. "/.", folder .. "/.hidden")
      has_not("f'" .. folder .. "/", folder .. "/.hidden")
      assert.is_nil(at("f'" .. folder .. "/nothing/"))
      local item = offered('io.open("' .. folder .. "/da")[folder .. "/data/"]
      assert.same({"data/", "folder"}, {item.shown, item.kind})
    end)

    it("from the folder we are in and the home folder", function()
      local here = host.getcwd()
      assert(host.chdir(folder))
      local relative = list "f'da"
      assert(host.chdir(here))
      assert.same({"data.csv", "data/"}, relative)
      local code = [[local text = "f'~/data/in"
        print(require("lutra.repl.complete").at(text, #text).items[1].text)]]
      local result = support.shell(("HOME=%s %s -e %s"):format(support.quote(folder),
        support.quote(support.program), support.quote(code)))
      assert.equal(folder .. "/data/inner/\n", result.out, result.err)
    end)

    it("of commands, written as their words are", function()
      assert.same({folder .. "/two\\ words.txt"}, list(":run " .. folder .. "/two"))
      assert.same({folder .. "/two\\ words.txt"}, list(":run " .. folder .. "/two\\ w"))
      assert.same({'"' .. folder .. "/two words.txt"}, list(':run "' .. folder .. "/two w"))
      assert.same({folder .. "/data/"}, list(":cd " .. folder .. "/da"))
      assert.same({folder .. "/data.csv", folder .. "/data/"}, list("!ls -l " .. folder .. "/da"))
      assert.same({folder .. "/two\\ words.txt"}, list("! cat " .. folder .. "/two"))
      local found = at(":run a.lua " .. folder .. "/two")
      assert.equal(12, found.first)
    end)
  end)

  it("offers modules behind require", function()
    assert.same({"lutra.repl.complete", "lutra.repl.complete."}, list 'require "lutra.repl.complet')
    has('require("lutra.nn.l', "lutra.nn.linear", "lutra.nn.losses")
  end)
end)

describe("completion of commands", function()
  before_each(function() with {x = lt.zeros(2)} end)

  it("offers every command with its line of help", function()
    local found = offered ":"
    for _, row in ipairs(commands.rows) do
      assert.equal(row.doc, found[row.name].note)
    end
    assert.same({"help"}, list ":hel")
    assert.equal(2, at(":hel").first)
    assert.is_nil(at ":no_such_command")
    assert.is_nil(at ":no_such_command pri")
  end)

  it("offers what the row says of the argument", function()
    assert.same({"quit"}, list ":help qui")
    local found = offered ":set "
    for _, row in ipairs(options.rows) do assert.is_truthy(found[row.name]) end
    assert.truthy(at(":set results_b").items[1].note:find("^16MiB: "))
    assert.is_nil(at ":reload lutra.n") -- only modules of the user's
    assert.same({"auto", "off", "on"}, list ":set colors ")
    assert.same({"off", "on"}, list ":set locals ")
    has(":lesson ", "1", "10", "list", "end")
    assert.same({"list"}, list ":lesson l")
    assert.same({"solution"}, list ":hint s")
  end)

  it("offers the flags and words of a usage, and completes code behind flags", function()
    commands.add {name = "flags_for_test", argument = "code", doc = "-",
      usage = "[--sort KEY] [--trace FILE] [--quick] [-n N] CODE"}
    assert.same({"--quick", "--sort", "--trace", "-n"}, list ":flags_for_test -")
    assert.same({"--trace"}, list ":flags_for_test --quick --tr")
    assert.same({"zeros", "zeros_like"}, list ":flags_for_test --sort time --quick lt.zero")
    assert.same({"zeros", "zeros_like"}, list ":flags_for_test -n 3 -x + lt.zero")
    assert.same({"/etc/"}, list ":flags_for_test --trace /etc")
    assert.is_nil(at ":flags_for_test --sort t")
    commands.add {name = "words_for_test", doc = "-", usage = "[full | short]"}
    assert.same({"full", "short"}, list ":words_for_test ")
    assert.same({"short"}, list ":words_for_test s")
  end)

  it("completes code behind commands that take some, and names behind ?", function()
    assert.same({"zeros", "zeros_like"}, list "?lt.zero")
    assert.same({"zeros", "zeros_like"}, list "??lt.zero")
    assert.same({2, 5}, {at("?prin").first, at("?prin").last})
    commands.add {name = "code_for_test", argument = "code", doc = "-"}
    local found = at ":code_for_test x:matm"
    assert.same({"matmul"}, list ":code_for_test x:matm")
    assert.same({18, 21}, {found.first, found.last})
  end)
end)

describe("completion among many names", function()
  it("finds one of 10000 globals", function() -- how quickly: bench/prompt
    for i = 1, 10000 do rawset(_G, "global_" .. i, i) end
    local all, one = #at("global_").items, #at("global_777").items
    for i = 1, 10000 do rawset(_G, "global_" .. i, nil) end
    assert.same({10000, 11}, {all, one}) -- 777 and 7770 to 7779
  end)
end)

describe("the list of candidates", function()
  local listing = require "lutra.repl.complete.listing"

  it("has a line and a note for each where there is room", function()
    local items = {{text = "dim", note = "dims = nil"}, {text = "keepdim", note = "bool = false"}}
    assert.equal("dim      dims = nil\nkeepdim  bool = false", listing.text(items, 40, 2))
    assert.equal("dim      di..\nkeepdim  bo..", listing.text(items, 13, 2))
    assert.equal("dim      keepdim", listing.text(items, 40, 1))
  end)

  it("says how many it leaves out", function()
    local items = {}
    for i = 1, 9 do items[i] = {text = "path/" .. i, shown = tostring(i)} end
    assert.equal("1  3\n2  4\n... 5 more", listing.text(items, 5, 2))
  end)

  it("has no control characters and breaks no character", function()
    assert.equal("a?b", listing.text({{text = "a\nb"}}, 40, 5))
    assert.equal("\u{e9}\u{e9}\u{e9}..", listing.text({{text = ("\u{e9}"):rep(9)}}, 5, 5))
    assert.equal("", listing.text({}, 40, 5))
  end)
end)

-- What a person sees.
for _, columns in ipairs {40, 120} do
  describe(("Tab on %d columns"):format(columns), function()
    if not screen.available() then
      return it("needs tmux", function() pending "no tmux here" end)
    end
    local s
    setup(function()
      s = screen.open {columns = columns, rows = 24}
      s:expect_last "[1]>"
    end)
    teardown(function() s:close() end)

    -- Types `text` and Tab at a prompt of its own; waits for each of the texts.
    local function tab(text, ...)
      s:key "C-l"
      s:wait(function() return #s:lines() == 1 end, "the screen is not empty")
      s:send(text)
      s:key "Tab"
      for _, expected in ipairs {...} do s:expect(expected) end
      s:key "C-a"
      s:key "C-k"
    end

    it("completes globals, fields, methods, arguments, dtypes, keys, paths and commands", function()
      s:enter "local weights = lt.zeros(2, 3); local sd = nn.Linear(2, 3):state_dict();"
      s:expect_last "[2]>"
      tab("print(weig", "print(weights")
      tab("lt.optim.SG", "lt.optim.SGD")
      tab("weights:matm", "weights:matmul")
      tab("lt.zeros{3, requires", "lt.zeros{3, requires_grad")
      tab("lt.zeros{3, d", "dtype", "dtype = nil", "device = nil")
      tab('weights:to "float6', 'weights:to "float64')
      tab("weights:to{device = 'me", "weights:to{device = 'meta")
      tab('sd["we', 'sd["weight')
      tab('io.open("/etc/hostn', 'io.open("/etc/hostname')
      tab(":hel", ":help")
      tab("?weights:matm", "?weights:matmul")
    end)

    it("completes the variables of a frame that is looked into", function()
      s:enter "local function fails(inner_value) local t = inner_value .. nil; return t end"
      s:enter "fails(lt.zeros(2))"
      s:enter ":debug"
      s:expect "debug[3]>"
      tab("inner_va", "inner_value")
      tab("inner_value:matm", "inner_value:matmul")
    end)

    it("keeps to the width", function()
      tab("weights:max", "maximum", "(dim = nil")
      for _, line in ipairs(s:lines()) do assert.is_true(#line <= columns, line) end
    end)
  end)
end
