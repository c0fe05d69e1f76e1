-- Files for :load that :keep did not write: none runs code, each is loaded or refused as a whole.

local lt = require "lutra"
local support = require "program_support"

local has, has_not, session = support.has, support.has_not, support.session

local folder
before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function path(name) return folder .. "/" .. name end

-- Writes a workspace of these lines, with tensors a and b in the file.
local function write(...)
  lt.save_safetensors(path "w.st", {a = lt.ones{2}, b = lt.zeros{2, 3}},
    {["lutra.workspace"] = table.concat({"lutra workspace 1", ...}, "\n")})
end

-- What a session says that loads the file and then runs `asked`.
local function load(asked, before)
  return session((before or "") .. ":load " .. path "w.st" .. "\n" .. (asked or "") .. "\n")
end

-- The file is refused with `expected` in one message that names it; the session goes on as it was.
local function refused(expected)
  local result = load("x, y, rawget(_G, 'g')", "local x <const> = 5\ny = 6\n")
  has(result.err, "error: load: cannot load " .. path "w.st" .. ": ")
  has(result.err, expected)
  has_not(result.err, "attempt to")
  assert.equal("5\t6\tnil\n", result.out)
end

describe("a file for :load", function()
  it("runs no code by the attribute of a variable", function()
    for _, attribute in ipairs {"const> = 1 os.execute('touch %s') local z <const",
      "const> = os.execute('touch %s') local z <const", "close", "const ", "constant"} do
      attribute = attribute:format(path "ran")
      write(('variable "local" "hit" "%s" i1'):format(attribute))
      local result = load "hit\nlocal fresh = 1\nhit, fresh"
      assert.is_nil(io.open(path "ran"), attribute)
      has(result.err, "line 2 of its description is not valid")
      write 'variable "global" "hit" "const" i1'
      has(load().err, "is not valid")
    end
  end)

  it("runs no code by the name of a variable", function()
    for _, name in ipairs {"x = os.execute('touch " .. path "ran" .. "') --", "end", "local", "",
      "1a", "a b", "a-b", "a\\010b", "a.b", "\\195\\169", "_G[1]", "a,b"} do
      for _, scope in ipairs {"local", "global"} do
        write(('variable "%s" "%s" "" i1'):format(scope, name))
        refused "is not valid"
        assert.is_nil(io.open(path "ran"))
      end
    end
    for _, name in ipairs {"_", "lutra_keep"} do -- the prompt's own
      write(('variable "local" "%s" "" i1'):format(name))
      refused "is not valid"
    end
  end)

  it("keeps what is Lua's and Lutra's own", function()
    write('variable "global" "print" "" i1', 'variable "global" "os" "" i1',
      'variable "global" "lt" "" i1', 'variable "global" "_1" "" i1', 'variable "global" "g" "" i7')
    local result = load "type(print), type(os), type(lt), _1, g"
    assert.equal("", result.err)
    has(result.out:gsub("%s+", " "), "print is not loaded: the name belongs to Lua or Lutra")
    has(result.out, '"function"\t"table"\t"table"\tnil\t7\n')
  end)

  it("is refused as a whole", function()
    local good = 'variable "global" "g" "" i1'
    for line, expected in pairs {
      ['variable "upvalue" "x" "" i1'] = "is not valid",
      ['variable "global" "x" "" "\\999"'] = "is not valid",
      ['variable "global" "x" "" i0x10'] = "is not valid",
      ['variable "global" "x" "" t1'] = "refers to a missing entry",
      ['variable "global" "x" "" x0'] = "refers to a missing entry",
      ['table "strange"'] = "is not valid",
      ['table "plain"\nitem t1 i1'] = "is not valid",
      ['table "plain"\nitem nnan i1'] = "is not valid",
      ['tensor "a" "cpu" "strange"'] = "is not valid",
      ['tensor "a" "meta" "plain"'] = "is not valid",
      ['tensor "a" "cpu:1x" "plain"'] = "is not valid",
      ['tensor "none" "cpu" "plain"'] = 'the tensor "none" is missing in the file',
      ['tensor "a\\027[2J" "cpu" "plain"'] = 'the tensor "a\\027[2J" is missing in the file',
      ['view i1 "2" "1" i0'] = "is not valid",
      ['tensor "a" "cpu" "plain"\nview i1 "2" "" i0'] = "is not valid",
      ['tensor "a" "cpu" "plain"\nview i1 "2," "1" i0'] = "is not valid",
      ['tensor "a" "cpu" "plain"\nview i1 "99999999999999999999" "1" i0'] = "is not valid",
      ['tensor "a" "cpu" "plain"\nview i1 "3" "1" i0'] = "as_strided: ",
      ['tensor "a" "cpu" "plain"\nview i1 "2" "9223372036854775807" i0'] = "as_strided: ",
      ['tensor "a" "cpu" "plain"\nview i1 "2" "-1" i1'] = "as_strided: ",
      ['tensor "a" "cpu" "plain"\nview i1 "2" "1" i-9223372036854775808'] = "as_strided: ",
      ['tensor "a" "cpu" "plain"\nview i1 "2" "1" i9223372036854775807'] = "as_strided: ",
      ['table "plain"\nobject "C" t1'] = "is not valid",
      ['object "C" i1 "m"'] = "is not valid",
      ['table "plain"\nobject "C" t1 i1'] = "is not valid",
      ["\27[2J"] = "is not valid: \\027[2J",
    } do
      write(good, line)
      refused(expected)
      write(line, good)
      refused(expected)
    end
  end)

  it("that fits a module and no optimizer leaves both as they were", function()
    local made = "net = nn.Linear(3, 2) opt = optim.SGD(net:parameters(), {lr = 0.5})\n"
      .. "w = net.weight:clone()\n"
    write('tensor "b" "cpu" "plain"', 'tensor "a" "cpu" "plain"', 'table "ordered"',
      'item "weight" x1', 'item "bias" x2', 'table "plain"', 'item "state" i1',
      'object "Linear" t1 "net"', 'object "SGD" t2 "opt"', 'variable "global" "g" "" i1')
    local result = load("net.weight:equal(w), opt.param_groups[1].lr, g", made)
    has(result.err, "load: cannot restore the session: SGD: load_state_dict: ")
    has(result.err, "nothing was loaded")
    assert.equal("true\t0.5\tnil\n", result.out)
  end)

  it("moves no cursor by what is shown of it", function()
    write('tensor "a" "cuda:9" "plain"', 'table "plain"',
      'object "C\\027[2J" t1 "m" "\\027]0;x\\007"',
      'variable "global" "x" "" x1', 'variable "global" "m" "" o1')
    local result = load "x.device"
    assert.equal("", result.err)
    assert.is_nil(result.out:find "[\27\7]")
    has(result.out, "C\\027[2J")
  end)

  it("altered at random is loaded or refused cleanly", function()
    local result = support.run("tests/fuzz/workspace.lua 3 20261122 >/dev/null")
    assert.same({"", 0}, {result.status == 0 and "" or result.err, result.status})
    has(result.err, "files, ")
  end)
end)

describe(":keep", function()
  it("leaves out globals that have no name of a variable", function()
    local result = session("_G['a b'], _G['end'], ok = 1, 2, 3\n:keep " .. path "w.st" .. "\n")
    assert.equal("", result.err)
    has(result.out:gsub("%s+", " "), "kept 0 tensors in 1 variable: ok not kept: a b (not a valid "
      .. "variable name), end (not a valid variable name)")
    assert.equal("3\n", (load("ok").out:gsub("^.-\n", "")))
  end)
end)

describe("the library", function()
  -- Each of these compiles code that the user typed or runs as such, or Lutra's own, or a program's
  -- functions in a worker thread (transfer/reader). Files of values (workspaces, tensors, history,
  -- records) never come to them.
  local compilers = {
    "internal/transfer/reader", "lessons/03_count_the_transfers", "repl/cell", "repl/check",
    "repl/commands/time", "repl/error_span", "repl/frame_code", "repl/help/ops",
    "repl/kernel/debug/lines", "repl/lesson/catalog", "repl/locals", "repl/notebook_script",
    "repl/reload", "repl/script", "repl/session", "repl/startup", "utils/benchmark/timer",
  }

  local compiles = {load = true, loadfile = true, loadstring = true, dofile = true}

  -- Does the code call one of Lua's functions that compile?
  local function calls_compiler(code)
    local tokens = require("lutra.repl.lexer").significant(code)
    for i, token in ipairs(tokens) do
      local before, after = tokens[i - 1] or {}, tokens[i + 1] or {}
      local own = before[2] == "." or before[2] == ":" or before[2] == "function"
      if token[1] == "name" and compiles[token[2]] and not own
        and (after[2] == "(" or after[1] == "string") then return true end
    end
    return false
  end

  it("compiles code in these files only", function()
    local found, root = {}, package.searchpath("lutra", package.path):match "^(.*)%.lua$"
    for file in io.popen("find " .. support.quote(root) .. " -name '*.lua' | sort"):lines() do
      local code <close> = assert(io.open(file))
      if calls_compiler(code:read "a") then found[#found + 1] = file:sub(#root + 2, -5) end
    end
    assert.same(compilers, found)
  end)
end)
