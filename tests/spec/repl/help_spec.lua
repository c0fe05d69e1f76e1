-- Help: pages of ops, functions, classes and values; :help, ?x, x??, :apropos; the pager.

local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local core = require "lutra.core"
local builtin = require "lutra.repl.help.builtin"
local examples = require "lutra.repl.help.examples"
local help = require "lutra.repl.help"
local lt = require "lutra"
local lua = require "lutra.repl.help.lua"
local ops = require "lutra.repl.help.ops"
local screen = require "screen_support"
local support = require "program_support"
local wrap = require "lutra.repl.help.wrap"

-- A session with these locals, as far as help looks at one.
local function session_of(variables)
  return {
    locals = {get = function(_, name) return variables[name] ~= nil, variables[name] end},
    variables = function() return next, variables, nil end,
  }
end

local none = session_of {}
local function text(subject, session, width)
  local page, why = help.text(subject, session or none, {width = width or 80})
  return page or error(why, 2)
end

local function has(page, part) assert.truthy(page:find(part, 1, true), page) end

local by_name = {}
for _, op in ipairs(ops.public()) do by_name[op.name] = op end

describe("the page of an op", function()
  it("has everything the issue asks for", function()
    local page = text "lt.softmax"
    has(page, "lt.softmax(self, dim, {dtype = nil})") -- ops.def
    has(page, "x:softmax(dim, {dtype = nil})")
    has(page, "Softmax along dim: e^x / sum(e^x).")
    has(page, "shapes    {2} -> {2}")
    has(page, "dtypes    floats")
    has(page, "gradient  yes")
    has(page, "devices   cpu, ")
    has(page, "> lt.softmax(lt.tensor{0.0, 0}, 1)\ntensor{0.5000, 0.5000}") -- e^0 / (e^0 + e^0)
  end)

  it("is the same from the function, the method, in place and without a prefix", function()
    local x = session_of {x = lt.ones(2)}
    for subject in ("x:sin x.sin x:sin_ sin lt.sin() x:sin()"):gmatch "%S+" do
      assert.equal(text "lt.sin", text(" " .. subject .. " ", x))
    end
  end)

  it("says of each which dtypes it takes", function()
    local function dtypes(name) return table.concat(ops.dtypes(by_name[name]), " ") end
    assert.equal("int64 int32 int16 int8 uint8 bool", dtypes "bitwise_and")
    assert.equal("float64 float32 float16 bfloat16", dtypes "softmax")
    assert.equal(12, #ops.dtypes(by_name.cat))
    assert.equal("complex128 complex64", dtypes "view_as_real")
    assert.falsy(dtypes("neg"):find "bool") -- -x of a boolean is not defined
  end)

  it("shows for each whether it has a gradient", function()
    local expected = {sin = "yes", matmul = "yes", cat = "yes", embedding = "yes", sort = "yes",
      floor = "zero everywhere", sign = "zero everywhere", argmax = "no", eq = "no", zeros = "no",
      detach = "no", isnan = "no", scatter_add = "yes", cross_entropy = "yes"}
    for name, answer in pairs(expected) do
      assert.equal(name .. " " .. answer, name .. " " .. ops.gradient(by_name[name]))
    end
  end)

  it("derives the shapes", function()
    assert.equal("{2, 3}, {3, 4} -> {2, 4}", ops.shapes(by_name.matmul))
    assert.equal("{2, 2} -> {2}, {2}", ops.shapes(by_name.max))
    assert.equal("[{2}, {1}] -> {3}", ops.shapes(by_name.cat))
    assert.equal("-> {2, 3}", ops.shapes(by_name.zeros))
  end)

  it("changes nothing: random numbers, printing, the default device", function()
    lt.manual_seed(7)
    local expected = lt.rand(3)
    local options = lt.get_printoptions()
    lt.manual_seed(7)
    text("lt.rand", none, 30)
    text("lt.empty", none, 30)
    assert.truthy(lt.equal(expected, lt.rand(3)))
    assert.same(options, lt.get_printoptions())
    assert.equal("cpu", lt.get_default_device())
    local page = text "lt.softmax"
    lt.set_default_dtype "float64"
    lt.set_default_device "meta"
    local again = text "lt.softmax"
    assert.equal("float64 meta", lt.get_default_dtype() .. " " .. lt.get_default_device())
    lt.set_default_device "cpu"
    lt.set_default_dtype "float32"
    assert.equal(page, again)
  end)
end)

describe("every op", function()
  it("has an example that runs, and a page that fits 40 and 120 columns", function()
    for _, op in ipairs(ops.public()) do
      assert.truthy(examples.of(op), "no example of " .. op.name)
      for _, width in ipairs {40, 120} do
        local page = ops.page(op, width, function(_, t) return t end)
        has(page, op.namespaces.special or op.name)
        assert.truthy(page:find "\nshapes%s" and page:find "\ndevices%s", op.name)
        for line in page:gmatch "[^\n]+" do
          local long = utf8.len(line) > width and line:find " " and not line:find "%(%{?[^ ]*$"
          assert.falsy(long, op.name .. ": " .. line)
        end
      end
    end
  end)

  it("has no example without an op", function()
    for _, name in ipairs(examples.names()) do assert.truthy(by_name[name], name) end
  end)

  it("takes the dtype float32, int64 or complex64", function()
    for _, op in ipairs(ops.public()) do
      local list = table.concat(ops.dtypes(op), " ")
      local some = list:find "float32" or list:find "int64" or list:find "complex64"
      assert.truthy(some, op.name .. ": " .. list)
    end
  end)

  it("gives in its example what mathematics says", function()
    local cases = {
      sqrt = {1, 2, 3}, exp2 = {2 ^ -1.5, 1, 4}, cumsum = {1, 3, 6}, dot = 32, trace = 5,
      hypot = {5, 13}, var = 5 / 3, argmax = 2, logsumexp = math.log(2), outer = {{1, 10, 100},
        {2, 20, 200}}, pow = {1, 4, 9}, log10 = {0, 1, 3}, diag = {{1, 0}, {0, 2}},
    }
    for name, expected in pairs(cases) do
      local result = load("return " .. examples.of(by_name[name]), "=e", "t", {lt = lt})()
      local close = lt.allclose(result:to "float64", lt.tensor(expected, {dtype = "float64"}))
      assert.truthy(close, name)
    end
  end)
end)

describe("every name of the library", function()
  it("has a description", function()
    for _, entry in ipairs(catalogue.public_names()) do
      assert.truthy(#entry[2] > 2, "nothing is written about " .. entry[1])
    end
  end)

  it("has a page", function()
    for _, entry in ipairs(catalogue.public_names()) do
      if entry[1]:match "^[%w_%.]+$" and not entry[1]:match "^x%." then
        has(text(entry[1]), entry[1]:match "[%w_]+$")
      end
    end
  end)

  it("of what loads a file names its arguments", function()
    for _, name in ipairs {"load_npy", "load_safetensors"} do
      local page = support.session("?lt." .. name).out
      has(page, ("lt.%s(path, "):format(name))
      has(page, "device")
    end
  end)

  it("which waits to be used is found", function()
    local found = {}
    for name, t in catalogue.libraries() do found[t] = name end
    for _, entry in ipairs(catalogue.public_names()) do found[entry[3] or 0] = entry[1] end
    for name in pairs(getmetatable(lt).__libraries) do assert.truthy(found[lt[name]], name) end
    has(support.session(":apropos lint").out, "lt.placement.lint")
    has(support.session(":apropos elementwise").out, "lt.elementwise")
  end)

  it("in C that is no op has a row, and each row has its function", function()
    for name, value in next, core do
      if type(value) == "function" and name:match "^[^_]" and not ops.find(value) then
        assert.truthy(builtin.functions[name] or builtin.methods[name], name)
      end
    end
    for name in next, core._methods do
      if name:match "^[^_]" and not ops.find(core._methods[name]) then
        assert.truthy(builtin.methods[name] or name == "summary", name)
      end
    end
    for name in pairs(builtin.methods) do assert.truthy(core._methods[name], name) end
    local x = lt.ones(2, 2)
    for name in pairs(builtin.fields) do
      local of = name == "imag" and x:to "complex64" or x
      assert.truthy(pcall(function() return of[name] end), name)
    end
    for name in next, core._fields do assert.truthy(builtin.fields[name], name) end
    for name in pairs(builtin.values) do assert.truthy(rawget(lt, name), name) end
  end)

  it("of Lua's standard library has a row, and each row has its value", function()
    for library in pairs(lua.libraries) do
      for name in next, package.loaded[library] do
        local full = library .. "." .. name
        assert.truthy(lua.names[full] or full == "debug.setcstacklimit", full)
      end
    end
    for name in pairs(lua.file_methods) do assert.is_function(io.stdout[name]) end
    for name, row in pairs(lua.names) do
      local library, field = name:match "^(%w+)%.(%w+)$"
      local value = library and package.loaded[library][field] or rawget(_G, name)
      local optional = row[2]:find "Of older Lua" or name == "debug.setcstacklimit"
      assert.truthy(value ~= nil or optional, name)
      if type(value) == "function" then has(text(name), row[2]:match "^%S+") end
    end
  end)
end)

describe("help about Lua code", function()
  it("is the comment above a function, its parameters and its place", function()
    local page = text "nn.utils.clip_grad_norm_"
    has(page, "nn.utils.clip_grad_norm_(parameters, max_norm, {norm_type = 2,")
    has(page, "function in lutra/nn/utils/gradients.lua:")
    has(page, "Scales the gradients of `parameters`")
  end)

  it("finds comments in cells", function()
    local result = support.session(
      "do\n--- Doubles.\n-- Any number.\nfunction twice(n, ...) return 2 * n end\nend\n"
      .. "?twice\ntwice??\n")
    assert.equal("", result.err)
    has(result.out, "twice(n, ...)\nfunction in cell[1]:4\n\nDoubles. Any number.")
    has(result.out, "-- cell[1]:4\nfunction twice(n, ...) return 2 * n end")
  end)

  it("describes classes: construction, source, methods", function()
    local page = text "nn.Linear"
    has(page, "nn.Linear(in_features, out_features, {bias = true, device = nil, dtype = nil})")
    has(page, "class, based on Module, in lutra/nn/linear.lua:")
    has(page, "nn.Linear: the affine map y = x W' + b")
    has(page, "reset_parameters()  Draws new values for weight and bias")
    has(text "optim.AdamW", "weight_decay = 0.01")
    page = text "F.normalize"
    has(page, "F.normalize(input, {p = 2, dim = 2, eps = 1e-12})")
    has(page, "one or several dimensions: from 1, -1 is the last; default 2")
    has(text "lt.gelu", '"none" or "tanh"; default "none"')
    has(text "nn.ReLU", "nn.ReLU{inplace = false}")
    has(text "nn.Tanh", "nn.Tanh()")
  end)

  it("describes a class of the user's, and its source", function()
    local result = support.session(table.concat({
      "do",
      "  --- A net.",
      "  Net = nn.Module:extend \"Net\"",
      "  --- Of a size.",
      "  function Net:init(size) self.size = size end",
      "end",
      "?Net", "net = Net(3)", "?net", "Net??", "net??", ""}, "\n"))
    assert.equal("", result.err)
    has(result.out, "Net(size)\nclass, based on Module, in cell[1]:3\n\nA net.\n\nOf a size.")
    has(result.out, "net: an instance of Net")
    local _, count = result.out:gsub("%-%- cell%[1%]:3\n", "")
    assert.equal(2, count)
  end)

  it("describes a module and its parts", function()
    local net = lt.nn.Sequential(lt.nn.Linear(3, 4), lt.nn.ReLU())
    local session = session_of {net = net}
    has(text("net", session), "net: an instance of nn.Sequential")
    has(text("net", session), "1  Linear\n")
    has(text("net[1]", session), "weight  parameter {4, 3}, float32 on cpu")
    has(text("net[1].weight", session), "shape     {4, 3}")
    has(text("net:forward", session), "Calls the modules in order")
  end)

  it("runs nothing of the user's", function()
    local ran = false
    local function run() ran = true end
    local t = setmetatable({1, 2}, {__index = run, __tostring = run, __pairs = run, __len = run,
      __call = run, __name = "trap"})
    local session = session_of {t = t, f = run}
    has(text("t", session), "a trap with 2 fields")
    help.text("t.x", session)
    help.text("t:x", session)
    help.text("t()", session)
    help.text("f()", session)
    help.source("t", session)
    help.apropos("t", session, {width = 80})
    assert.is_false(ran)
  end)
end)

describe("help about other things", function()
  it("describes tensors, fields, dtypes, devices, keywords, commands and values", function()
    local session = session_of {x = lt.tensor{{1, 5}}, t = {a = 1}, n = 3, s = "cuda"}
    has(text("x", session), "shape   ")
    has(text("x", session), "from 1 to 5")
    has(text("x.shape", session), "The sizes")
    has(text "\"float32\"", "A dtype: floats, 4 bytes")
    has(text "lt.int8", "A dtype: integers, 1 byte an")
    has(text "\"cpu\"", "A device")
    has(text "for", "for i = first, last, step do ... end")
    has(text ":help", ":help [COMMAND]")
    has(text "apropos", ":apropos WORD")
    has(text("t", session), "a table with 1 field")
    has(text("n", session), "number 3")
    has(text "lt.pi", "number pi")
    has(text "nn", "Sequential")
    has(text "string", "patterns")
    has(text "math.pi", "number pi")
    has(text "io.stdout:write", "file:write(...)")
    has(text "os", "An environment variable, or nil.")
    has(text("s:upper", session_of {s = "x"}), "string.upper")
    has(text "lt.randn(3):sum", "lt.sum(self")
    has(text "x:cuda", "x:cuda{device = nil, non_blocking = false}") -- as it is written in help
    has(text "cuda", "NVIDIA GPUs")
  end)

  it("says what may be meant when there is nothing of the name", function()
    local function why(subject, session) return select(2, help.text(subject, session or none)) end
    assert.equal("cannot find lt.matmull\nhint: did you mean 'lt.matmul'?", why "lt.matmull")
    assert.equal("cannot find matmull\nhint: did you mean 'matmul'?", why "matmull")
    local session = session_of {x = lt.ones(2)}
    assert.equal("cannot find x:summ\nhint: did you mean 'x:sum'?", why("x:summ", session))
    assert.equal("cannot find unheard_of_thing\n"
      .. "hint: :apropos unheard_of_thing searches for the word",
      why "unheard_of_thing")
    for subject in ("1+ ) x. ? ' :: lt..x ( [[ \0"):gmatch "%S+" do
      assert.is_string(why(subject))
    end
    assert.is_string(why "")
    assert.is_string(why "a b")
  end)

  it("says why there is no source", function()
    local function why(subject) return select(2, help.source(subject, none)) end
    assert.equal("cannot show the source of print: it is written in C", why "print")
    assert.equal("cannot show the source of lt.pi: it is a number", why "lt.pi")
    assert.truthy(help.source("lt.matmul", none):find("src/tensor/ops.def", 1, true))
    assert.truthy(help.source("lt.no_grad", none):find("function scopes.no_grad(f, ...)", 1, true))
    assert.truthy(help.source("optim.AdamW", none):find("AdamW.decoupled = true", 1, true))
  end)

  it("colours the source", function()
    local page = help.source("lt.no_grad", none, {paint = function(kind, t)
      return "<" .. kind .. ">" .. t .. "</>"
    end})
    has(page, "<keyword>function</> scopes.no_grad(f, ...)")
  end)

  it("searches names and descriptions", function()
    local page = help.apropos("softmax", none, {width = 80})
    assert.truthy(page:find "^lt%.log_softmax", page)
    has(page, "lt.scaled_dot_product_attention") -- its text speaks of softmax
    has(help.apropos("WHOS", none), ":whos")
    has(help.apropos("gsub", none), "string.gsub")
    has(help.apropos("my_vari", session_of {my_variable = lt.ones(2)}),
      "my_variable  tensor {2}, float32 on cpu")
    assert.is_nil((help.apropos("no such word anywhere", none)))
  end)
end)

describe("the layout", function()
  it("keeps to the width, also of code and rows", function()
    local long = ("word "):rep(40)
    for line in wrap.text(long, 37, 4):gmatch "[^\n]+" do assert.truthy(#line <= 37) end
    assert.equal("f(a,\n  b = 1)", wrap.code("f(a, b = 1)", 8, 2))
    assert.equal("  a    one\n  bcd  two", wrap.rows({{"a", "one"}, {"bcd", "two"}}, 40, 2))
  end)

  it("keeps code in comments as it is", function()
    assert.equal("One two.\n\n    code  here\n\nThree.",
      wrap.comment({"One", "two.", "", "    code  here", "", "Three."}, 40))
  end)

  it("has no class without functions that breaks it", function()
    local Empty = lt.nn.Module:extend "Empty"
    assert.truthy(classes.page("Empty", Empty, 40, function(_, t) return t end))
    assert.truthy(classes.source(Empty, function(_, t) return t end) or true)
  end)
end)

describe("help in the debugger", function()
  it("is about the variables of the frame", function()
    local result = support.session(table.concat({"function f() local net = nn.ReLU() error 'x' end",
      "f()", ":debug", "?net", "nn.ReLU??", "?lt.pi", ":quit", ""}, "\n"))
    has(result.out, "net: an instance of nn.ReLU")
    has(result.out, "define(\"ReLU\"")
    has(result.out, "number pi")
  end)
end)

describe("the commands", function()
  it("are listed where the core does not load", function()
    local path = support.file "package.preload['lutra.core'] = function() error 'broken' end"
    local result = support.session(":help\n:help quit\n:hlep\n?lt.sum\n", path)
    os.remove(path)
    has(result.err, "broken")
    has(result.out, "Type Lua")
    has(result.out, "also :q, :exit")
    has(result.err, "unknown command :hlep")
  end)

  it(":help lists every command by group; with a name it describes one", function()
    local result = support.session ":help\n:help :apropos\n:help lt.matmul\n:h quit\n"
    assert.equal("", result.err)
    for _, row in ipairs(require("lutra.repl.commands").rows) do
      has(result.out, "\n  :" .. row.name)
    end
    has(result.out, "\nSession\n")
    has(result.out, "Searches for a word in the names and descriptions")
    has(result.out, "lt.matmul(self, other)")
    has(result.out, "also :q, :exit")
  end)

  it("are not what a comment or a string with a question mark asks for", function()
    local result = support.session "-- why?\nprint 'what?' -- how?\n"
    assert.same({"what?\n", ""}, {result.out, result.err})
  end)

  it("say what is wrong", function()
    local result = support.session(":help nonsense\n:doc\n:source\n:apropos\n"
      .. ":apropos qqqqq\n?lt.foo\n")
    has(result.err, "unknown command :nonsense")
    has(result.err, "error: doc: expected a name, got none\nhint: ?lt.matmul")
    has(result.err, "error: source: expected a name, got none\nhint: nn.Linear??")
    has(result.err, "error: apropos: expected a word, got none\nhint: :apropos softmax")
    has(result.err, "error: apropos: cannot find the word \"qqqqq\"")
    has(result.err, "error: doc: cannot find lt.foo")
    assert.falsy(result.err:find "Traceback")
  end)

  it("write no escapes and use no pager in a pipe", function()
    local result = support.shell("printf ':help\\n?lt\\nnn.Linear??\\n' | PAGER='echo paged' "
      .. support.quote(support.program) .. " -i")
    assert.falsy(result.out:find "\27" or result.out:find "paged")
    has(result.out, "lt, tensor, nn, F, optim and data are")
  end)
end)

for _, columns in ipairs {40, 120} do
  describe(("on a terminal of %d columns"):format(columns), function()
    it("?x, x? and x?? show pages that fit", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 60, environment = "PAGER=cat"}
      s:expect_last "[1]>"
      s:enter "?lt.relu"
      s:expect "> lt.relu(lt.tensor{-1.5, 0, 2})"
      s:expect "tensor{0., 0., 2.}"
      s:enter "nn.ReLU?"
      s:expect "max(x, 0)"
      s:enter "lt.no_grad??"
      s:expect "function scopes.no_grad(f, ...)"
      s:enter ":apropos kaiming"
      s:expect "nn.init.kaiming_normal_"
    end)

    it("pages have colours where the terminal has them, and none with NO_COLOR", function()
      if not screen.available() then return pending "needs tmux" end
      for _, environment in ipairs {"PAGER=cat", "PAGER=cat NO_COLOR=1"} do
        local s <close> = screen.open{columns = columns, rows = 30, environment = environment}
        s:expect_last "[1]>"
        s:enter "?lt.pi"
        s:expect "number pi"
        local bold = s:text(true):find "\27%[1mlt%.pi" ~= nil
        assert.equal(environment == "PAGER=cat", bold)
      end
    end)

    it("long pages go through $PAGER, else less; short ones do not", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, rows = 12,
        environment = "PAGER='sed -n 1s/^/PAGED:/p'"}
      s:expect_last "[1]>"
      s:enter ":help"
      s:expect "PAGED:Type Lua"
      s:expect_last "[1]>"
      s:key "C-l"
      s:enter "?lt.pi"
      s:expect "number pi"
      assert.falsy(s:text():find "PAGED:The circle")
    end)

    it("less pages, and q comes back", function()
      local less = os.execute "command -v less >/dev/null 2>&1"
      if not screen.available() or not less then return pending "needs tmux and less" end
      local s <close> = screen.open{columns = columns, rows = 12, environment = "PAGER="}
      s:expect_last "[1]>"
      s:enter ":help"
      s:expect_last ":"
      s:send "q"
      s:expect_last "[1]>"
      s:enter "6 * 7"
      s:expect "42"
    end)
  end)
end
