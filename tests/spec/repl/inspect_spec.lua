-- Looking at a session: :whos, :devices, :where, :tree, :print.

local program = require "program_support"
local devices = require "device_support"

-- What a prompt without a terminal writes for these lines, and its errors. options:
-- arguments, locale ("C.UTF-8").
local function look(lines, options)
  options = options or {}
  local line = ("env LC_ALL=%s NO_COLOR= %s -i --no-init %s"):format(options.locale or "C.UTF-8",
    program.quote(program.program), options.arguments or "")
  local result = program.shell(line, table.concat(lines, "\n") .. "\n")
  return result.out:gsub("%[%d+%]> ", ""), result.err
end

-- The line of a table that begins with this word, its columns one space apart.
local function row(text, name)
  for line in ("\n" .. text):gmatch "\n([^\n]*)" do
    if line:match "^%S*" == name then return (line:gsub(" +", " ")) end
  end
end

local function widest(text)
  local most = 0
  for line in text:gmatch "[^\n]+" do most = math.max(most, utf8.len(line)) end
  return most
end

local emulated = {arguments = "--emulate cuda:2,memory=256MiB"}

describe(":whos", function()
  it("shows type, shape, dtype, device, bytes and what requires a gradient", function()
    local out = look{"x = lt.zeros(3, 4)", "local w = lt.ones{5, dtype = 'float64', " ..
      "requires_grad = true}", "n = 42", "s = 'a\\nb'", "f = print", "t = {1, 2, 3}", ":whos"}
    assert.equal("name type shape dtype device bytes grad", row(out, "name"))
    assert.equal("x tensor {3, 4} float32 cpu 48 B", row(out, "x"))
    assert.equal("w tensor {5} float64 cpu 40 B requires_grad", row(out, "w"))
    assert.equal("n integer 42", row(out, "n"))
    assert.equal('s string "a\\nb"', row(out, "s"))
    assert.equal("f function", row(out, "f"))
    assert.equal("t table 3 items", row(out, "t"))
  end)

  it("lets no name, key or string move the cursor or take the room of the rest", function()
    local out = look{"m = setmetatable({}, {__name = '\\27[31mred\\n'})",
      "s = '\\0\\27\\255\\r'", "long = ('x'):rep(1 << 20)", "t = {['a\\n\\27'] = lt.zeros(1)}",
      ":whos", ":tree {m, t}"}
    assert.equal("m \\027[31mred\\n 0 items", row(out, "m"))
    assert.equal('s string "\\000\\027\\255\\r"', row(out, "s"))
    assert.equal('long string "' .. ("x"):rep(22) .. '.."', row(out, "long"))
    assert.truthy(out:find('["a\\n\\027"]  {1} float32', 1, true))
    assert.is_nil(out:find "[\0-\8\11-\31\255]")
  end)

  it("marks what shares memory, and counts it once", function()
    local out = look{"x = lt.zeros(3, 4)", "y = x:t()", "part = x[1]", "other = lt.zeros(2)",
      "box = {x}", ":whos"}
    assert.equal("x tensor {3, 4} float32 cpu 48 B box part y", row(out, "x"))
    assert.equal("y tensor {4, 3} float32 cpu 48 B box part x", row(out, "y"))
    assert.equal("part tensor {4} float32 cpu 16 B box x y", row(out, "part"))
    assert.equal("other tensor {2} float32 cpu 8 B", row(out, "other"))
    assert.equal("box table 1 item cpu 48 B part x y", row(out, "box"))
    assert.truthy(out:find("total on cpu: 56 B in 2 storages", 1, true))
  end)

  it("knows parameters, modules and optimizers", function()
    local out = look{"net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))",
      "opt = optim.SGD(net:parameters(), {lr = 0.1})", "p = net[1].bias", ":whos"}
    -- 3 x 4 + 4 and 4 x 2 + 2
    assert.equal("net Sequential 26 params cpu 104 B requires_grad opt p", row(out, "net"))
    assert.equal("opt SGD 1 group cpu 104 B requires_grad net p", row(out, "opt"))
    assert.equal("p Parameter {4} float32 cpu 16 B requires_grad net opt", row(out, "p"))
    assert.truthy(out:find("total on cpu: 104 B in 4 storages", 1, true))
  end)

  it("counts by device", function()
    local out = look({"x = lt.zeros{256, device = 'cuda:1'}", "y = lt.zeros(10)",
      "m = lt.empty{1000, 1000, device = 'meta'}", ":whos"}, emulated)
    assert.equal("x tensor {256} float32 cuda:1 1.0 KiB", row(out, "x"))
    assert.truthy(out:find("total on cuda:1: 1.0 KiB in 1 storage\n", 1, true))
    assert.truthy(out:find("total on cpu: 40 B in 1 storage\n", 1, true))
    assert.truthy(out:find("total on meta: 0 B in 1 storage\n", 1, true))
  end)

  it("takes a pattern", function()
    local out = look{"w1 = 1", "w2 = 2", "v = 3", ":whos w*", ":whos ?", ":whos z", ":whos w."}
    assert.equal("w1 integer 1", row(out, "w1"))
    local _, count = out:gsub("\nv  ", "")
    assert.equal(1, count)
    assert.truthy(out:find("no variable matches z", 1, true))
    assert.truthy(out:find("no variable matches w.", 1, true))
  end)

  it("says that there is nothing", function()
    assert.equal("no variables\n", (look{":whos"}:gsub("\n\n$", "\n")))
  end)

  it("runs no code of the variables'", function()
    local out, err = look{"function boom() error 'user code ran' end",
      "bad = setmetatable({lt.zeros(2)}, {__index = boom, __pairs = boom, __len = boom, " ..
        "__tostring = boom, __eq = boom, __name = 3})",
      "locked = setmetatable({}, {__metatable = setmetatable({}, {__index = boom})})", ":whos"}
    assert.equal("", err)
    assert.equal("bad table 1 item cpu 8 B", row(out, "bad"))
    assert.equal("locked table 0 items", row(out, "locked"))
  end)

  it("ends on tables that hold themselves, and on very deep ones", function()
    local out = look{"t = {}; t.t = t; t.x = lt.zeros(2)", "d = {}; local e = d",
      "for i = 1, 1000000 do e[1] = {}; e = e[1] end", ":whos"}
    assert.equal("t table 2 items cpu 8 B", row(out, "t"))
    assert.equal("d table 1 item", row(out, "d"))
  end)

  it("leaves columns out where there is no room", function()
    local lines = {"a_tensor_with_a_long_name_indeed = lt.zeros(1000, 1000, 3)",
      "net = nn.Sequential(nn.Linear(3, 4))", "opt = optim.SGD(net:parameters())",
      ":set width 40", ":whos"}
    local out = look(lines)
    local list = out:match "name.*$"
    assert.is_true(widest(list) <= 39, list)
    assert.equal("name shape device bytes", row(list, "name"))
    assert.truthy(list:find("11.4 MiB", 1, true))
  end)
end)

describe(":devices", function()
  it("lists the tensors of each, the largest first", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local out = look({"small = lt.zeros{256, device = 'cuda:1'}",
      "big = lt.zeros{1024, 1024, device = 'cuda:1'}", "view = big[1]",
      "net = nn.Linear(3, 4):to 'cuda:0'", "m = lt.empty{7, device = 'meta'}",
      "host = lt.zeros(1024)", ":devices"}, emulated)
    local cpu, first, second, meta = out:match "cpu(.*)cuda:0(.*)cuda:1(.*)meta(.*)"
    assert.equal(" host 4.0 KiB", (cpu:match "\n( +host[^\n]*)":gsub(" +", " ")))
    assert.equal(" net 64 B", (first:match "\n( +net[^\n]*)":gsub(" +", " ")))
    assert.is_true(second:find "big +4.0 MiB" < second:find "small +1.0 KiB", second)
    assert.is_nil(second:find "view") -- its memory is big's
    assert.truthy(second:find("256.0 MiB in total", 1, true))
    assert.truthy(meta:find "m +0 B")
    assert.is_nil(out:find "none:")
  end)

  it("counts tensors that no variable holds", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local out = look({"do local hidden = lt.zeros{1024, 256, device = 'cuda:0'}",
      "function keep() return hidden end end", "x = lt.zeros{256, device = 'cuda:0'}",
      ":devices"}, emulated)
    local first = out:match "cuda:0(.*)cuda:1"
    assert.truthy(first:find "x +1.0 KiB", first)
    assert.truthy(first:find "other tensors +1.0 MiB", first)
  end)

  it("draws how full a device is", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local out = look({"x = lt.zeros{128, 1024, 256, device = 'cuda:0'}", ":devices"},
      {arguments = emulated.arguments, locale = "C"})
    local bar = out:match "cuda:0[^\n]*\n  memory   %[([^%]]*)%]"
    local _, filled = bar:gsub("#", "")
    assert.equal(40, #bar)
    assert.equal(20, filled) -- 128 MiB of 256
  end)

  it("says why there is no accelerator, and what does not answer", function()
    local plain = look({":devices"}, {})
    assert.truthy(plain:find "\nmps: none: " or plain:find "\ncuda:0 ", plain)
    local broken, err = look({"local a = require 'lutra.core'._accelerator",
      "a.memory_info = function() error 'the driver is gone' end", ":devices"}, emulated)
    assert.equal("", err)
    local _, count = broken:gsub("not available: [^\n]*the driver is gone", "")
    assert.equal(2, count)
  end)

  it("fits 40 columns", function()
    local out = look({"x = lt.zeros{256, device = 'cuda:0'}", ":set width 40", ":devices"},
      emulated)
    assert.is_true(widest(out:match "\ncuda.*$") <= 40, out)
  end)
end)

describe(":where", function()
  it("says where a tensor's memory is", function()
    local out = look{"x = lt.zeros(3, 4)", "y = x:select(2, 2)", ":where x", ":where y",
      "print(('%x'):format(x:data_ptr()))"}
    assert.truthy(out:find("shape    {3, 4} float32\nstrides  {4, 1}, contiguous\n", 1, true))
    assert.truthy(out:find("bytes    48 B, all of its storage\nextent   elements 1 to 12 of 12\n"
      .. "held by  x, y\n", 1, true))
    assert.truthy(out:find("offset   1 element\n", 1, true)) -- column 2
    assert.truthy(out:find("strides  {4}, not contiguous\n", 1, true))
    assert.truthy(out:find("bytes    12 B, of a storage of 48 B\n", 1, true))
    local address = out:match "\n(%x+)\n"
    local _, count = out:gsub("storage  0x" .. address .. "\n", "")
    assert.equal(2, count, out)
  end)

  it("says device, pinned memory and gradients", function()
    if not devices.can_emulate() then return pending "no emulated CUDA in this build" end
    local out = look({"x = lt.ones{2, device = 'cuda:1', requires_grad = true}", ":where x",
      "x:sum():backward()", ":where x", ":where x * 2", ":where lt.zeros(3):pin_memory()",
      ":where lt.empty{2, device = 'meta'}", ":where lt.zeros(0)"}, emulated)
    assert.truthy(out:find("device   cuda:1\n", 1, true))
    assert.truthy(out:find("leaf, no grad yet", 1, true))
    assert.truthy(out:find("leaf, its grad is on cuda:1", 1, true))
    assert.truthy(out:find("result of MulBackward", 1, true))
    assert.truthy(out:find("device   cpu, pinned memory", 1, true))
    assert.truthy(out:find("none: a tensor on meta has no data", 1, true))
    assert.truthy(out:find("none: it is empty", 1, true))
  end)

  it("says what a tensor is a view of", function()
    local out = look{"x = lt.zeros(3, 4)", "y = x:view(4, 3)", ":where y[1]",
      ":where lt.zeros(5):view(5, 1)", ":where x"}
    assert.truthy(out:find("view of  x\nheld by  x, y\n", 1, true), out)
    assert.truthy(out:find("view of  a tensor {5} that no variable holds\n", 1, true), out)
    assert.is_nil(out:match "no variable holds.*view of")
  end)

  it("lists the tensors of modules and tables", function()
    local out = look{"net = nn.Linear(3, 4)", ":where net", ":where {a = {lt.zeros(2)}}"}
    assert.truthy(row(out, "weight"):find "^weight {4, 3} float32 cpu 0x%x+ 48 B$")
    assert.truthy(row(out, "a[1]"):find "^a%[1%] {2} float32 cpu 0x%x+ 8 B$")
  end)

  it("reports what it expects", function()
    local _, err = look{":where", ":where 3", ":where {}", ":where nothing", ":where x y"}
    assert.truthy(err:find("where: expected an expression, got none\nhint: :where x", 1, true))
    assert.truthy(err:find("where: expected a tensor, a module or a table of tensors, got a number",
      1, true))
    assert.truthy(err:find("where: cannot find a tensor in {}", 1, true))
    assert.truthy(err:find("where: expected a tensor, a module or a table of tensors, got nil", 1,
      true))
    assert.truthy(err:find("where:1: syntax error", 1, true))
  end)
end)

describe(":tree", function()
  it("draws a module with shapes, counts and bytes", function()
    local out = look{"net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))",
      "net[3].bias.requires_grad = false", ":tree net"}
    assert.truthy(out:find([[
Sequential 26 params (24 trained), 104 B on cpu
├─ 1  Linear 16 params, 64 B on cpu
│  ├─ weight  {4, 3} float32
│  └─ bias  {4} float32
├─ 2  ReLU
└─ 3  Linear 10 params (8 trained), 40 B on cpu
   ├─ weight  {2, 4} float32
   └─ bias  {2} float32 frozen
]], 1, true), out)
  end)

  it("draws nested tables and state dicts", function()
    local out = look({"t = {x = lt.zeros(2), name = 'a', deep = {lt.ones(2, 2)}}; t.self = t",
      ":tree t", ":tree nn.Linear(1, 2):state_dict()"}, {locale = "C"})
    assert.truthy(out:find([[
table 6 elements, 24 B on cpu
|- deep  table 4 elements, 16 B on cpu
|  `- [1]  {2, 2} float32
|- name  "a"
|- self  table (seen above)
`- x  {2} float32
]], 1, true), out)
    assert.truthy(out:find("`- weight  {2, 1} float32", 1, true), out)
  end)

  it("counts a shared parameter once", function()
    local out = look{"a = nn.Linear(3, 3, {bias = false}); b = nn.Linear(3, 3, {bias = false})",
      "b.weight = a.weight", ":tree nn.Sequential(a, b)"}
    assert.truthy(out:find("Sequential 9 params, 36 B on cpu", 1, true), out)
  end)

  it("ends, and reports what it expects", function()
    local out, err = look{"t = {}; for i = 1, 5000 do t[i] = i end", ":tree t", ":tree 3", ":tree",
      "d = {}; local e = d; for i = 1, 100 do e[1] = {}; e = e[1] end", ":tree d"}
    local _, lines = out:gsub("\n", "")
    assert.is_true(lines < 450, lines .. " lines")
    assert.truthy(err:find("tree: expected a module or a table, got a number", 1, true))
    assert.truthy(err:find("tree: expected an expression, got none", 1, true))
  end)
end)

describe(":print", function()
  it("chooses how tensors print", function()
    local out = look{"x = lt.arange(1, 3)", ":print summary", "x", ":print short", "x / 3",
      ":print full", "#tostring(lt.zeros(2000)) > 2000", ":print default", "x"}
    assert.truthy(out:find("i64[3] n=3 (24 B) x∈[1|", 1, true), out)
    assert.truthy(out:find("tensor{0.33, 0.67, 1.00}", 1, true), out)
    assert.truthy(out:find("\ntrue\n", 1, true), out)
    assert.truthy(out:find("tensor{1, 2, 3}", 1, true), out)
  end)

  it("says what is set, and what there is", function()
    local out, err = look{":print full", ":print", ":print pretty"}
    assert.equal("profile full", row(out, "profile"))
    assert.equal("threshold inf", row(out, "threshold"))
    assert.equal("sci_mode auto", row(out, "sci_mode"))
    assert.equal('error: print: expected "default", "short", "full" or "summary" for argument '
      .. "'profile', got \"pretty\"\n", err)
  end)
end)
