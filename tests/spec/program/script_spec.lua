-- Scripts and what runs them: options, exit statuses, LUTRA_PATH, -W, --check, -i after an error.

local support = require "program_support"
local screen = require "screen_support"
local run, quote = support.run, support.quote

local has = support.has

-- The program's absolute name, for command lines that change the folder.
local function program()
  local folder, name = support.program:match "^(.*)/([^/]*)$"
  return ("\"$(cd %s && pwd)/%s\""):format(quote(folder or "."), name)
end

-- Runs `line`, in which $dir is a folder that holds `files` (name -> text), $lutra the program.
local function with_files(files, line, input)
  local dir = support.folder()
  for name, text in pairs(files) do
    local file = assert(io.open(dir .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  local result = support.shell(("lutra=%s; dir=%s; %s"):format(program(), dir, line), input)
  support.remove(dir)
  result.dir = dir
  return result
end

describe("the exit status", function()
  it("is 0 after success and 1 after an uncaught error, wherever the code comes from", function()
    assert.equal(0, run("-e 'x = 1'").status)
    assert.equal(1, run("-e 'error(1)'").status)
    assert.equal(1, run("", "error 'x'").status)
    assert.equal(1, run("-", "x = = 1").status)
    assert.equal(1, with_files({["a.lua"] = "error 'x'"}, "$lutra $dir/a.lua").status)
    assert.equal(1, with_files({["a.lua"] = "x ="}, "$lutra $dir/a.lua").status)
    assert.equal(1, with_files({}, "$lutra $dir").status)
    assert.equal(1, with_files({}, "$lutra $dir/none.lua").status)
  end)

  it("is what os.exit says", function()
    assert.equal(3, run("-e 'os.exit(3)' -e 'print(1)'").status)
    assert.equal(1, run("-e 'os.exit(false)'").status)
    assert.equal(0, run("-e 'os.exit(true, true)'").status)
  end)

  it("is 2 for invalid arguments", function()
    for _, wrong in ipairs {"-l", "--check", "--emulate", "-z", "--lessons", "--lesson=x"} do
      local result = run(wrong)
      assert.equal(2, result.status, wrong)
      has(result.err, wrong)
    end
  end)

  it("is 1 where --stubs cannot write", function()
    local result = run("--stubs /dev/null/x")
    assert.equal(1, result.status)
    has(result.err, '--stubs: cannot write "/dev/null/x/library/lutra.lua": Not a directory')
  end)

  it("reports that the output could not be written", function()
    local full = io.open "/dev/full"
    if not full then
      pending "needs /dev/full"
      return
    end
    full:close()
    local result = run("-e 'print(1)' >/dev/full")
    assert.equal(1, result.status)
    has(result.err, "lutra: cannot write to stdout: ")
  end)
end)

describe("a script", function()
  it("may start with a byte order mark and #!, and may have any ends of lines", function()
    local text = "#!/usr/bin/env lutra\r\nlocal a = 1\r\nprint(a,\r\n"
      .. " debug.getinfo(1, 'l').currentline)"
    for _, mark in ipairs {"", "\xEF\xBB\xBF"} do
      assert.equal("1\t4\n", with_files({["a.lua"] = mark .. text}, "$lutra $dir/a.lua").out)
      assert.equal("1\t4\n", run("", mark .. text).out)
    end
  end)

  it("may be compiled", function()
    local compiled = string.dump(load "print('compiled', ...)")
    assert.equal("compiled\tx\n", with_files({a = compiled}, "$lutra $dir/a x").out)
    assert.equal("compiled\tx\n", with_files({a = "#!lutra\n" .. compiled}, "$lutra $dir/a x").out)
    assert.equal("compiled\n", run("", compiled).out)
  end)

  it("may come from a pipe", function()
    local result = with_files({}, "mkfifo $dir/p; echo 'local t = nil; t.x = 1' >$dir/p & "
      .. "$lutra $dir/p")
    has(result.err, "  >    1 | local t = nil; t.x = 1\n         |                ^\n")
  end)

  it("that changes or goes away while it runs is shown as it was", function()
    local text = "os.rename(arg[0], arg[0] .. '.old')\nlocal f = io.open(arg[0], 'w')\n"
      .. "f:write('other\\nother\\nother\\nother\\n') f:close()\nerror 'now'\n"
    local result = with_files({["a.lua"] = text}, "$lutra $dir/a.lua")
    has(result.err, "  >    4 | error 'now'\n")
    text = "os.remove(arg[0])\nerror 'now'\n"
    has(with_files({["a.lua"] = text}, "$lutra $dir/a.lua").err, "  >    2 | error 'now'\n")
  end)

  it("that read error is one line", function()
    local result = with_files({}, "$lutra $dir/none.lua")
    assert.equal(("lutra: cannot open %s/none.lua: No such file or directory\n"):format(result.dir),
      result.err)
    result = with_files({}, "$lutra $dir/")
    assert.equal(("lutra: cannot read %s/: Is a directory\n"):format(result.dir), result.err)
  end)

  it("is found by #! with its arguments", function()
    local result = with_files({},
      "printf '#!%s\\nprint(arg[0] == \"'$dir'/a\", ...)' $lutra >$dir/a; chmod +x $dir/a; "
        .. "$dir/a 1 '2 3'")
    assert.equal("true\t1\t2 3\n", result.out)
  end)
end)

describe("-e and -l", function()
  it("are taken in their order, and -l knows a name for the module", function()
    local result = run("-l s=string -e 'print(s == string)' -l math -e 'print(math.pi > 3)'")
    assert.same({out = "true\ntrue\n", err = "", status = 0}, result)
    assert.equal("m\n", with_files({["mm.lua"] = "return {name = 'm'}"},
      "cd $dir; $lutra -l mm -e 'print(mm.name)'").out)
  end)

  it("say which of them failed", function()
    local result = run("-e 'function f() error(1) end' -e 'f()'")
    assert.equal(1, result.status)
    has(result.err, "(command line):1: in function 'f'\n  >    1 | function f() error(1) end\n")
    has(result.err, "(command line 2):1: in main chunk\n       1 | f()\n")
    result = run("-l no.such.module -e 'print(1)'")
    assert.equal(1, result.status)
    assert.equal("", result.out)
    has(result.err, "module 'no.such.module' not found")
  end)
end)

describe("LUTRA_PATH", function()
  it("holds patterns that come before all others", function()
    local files = {["mine.lua"] = "return 'mine'", ["string2.lua"] = "return 2"}
    local line = "cd /; LUTRA_PATH=\"/nowhere/?.lua;$dir/?.lua\" $lutra -e 'print(%s)'"
    assert.equal("mine\n", with_files(files, line:format "(require \"mine\")").out)
    assert.equal("true\n", with_files(files, line:format "require \"lutra\" == lt").out)
    local first = "package.path:find(\"^/nowhere/%?%.lua;/[^;]*;[^;]*/%?%.lua;\") ~= nil"
    assert.equal("true\n", with_files(files, line:format(first)).out)
  end)

  it("takes ;; for the others", function()
    local files = {["mine.lua"] = "return 'mine'"}
    for _, value in ipairs {";;$dir/?.lua", "/nowhere/?.lua;;$dir/?.lua", "$dir/?.lua;;"} do
      local result = with_files(files, ("cd /; LUTRA_PATH=\"%s\" $lutra -e '%s'"):format(value,
        "print(require \"mine\" == \"mine\", require \"lutra\" == lt, package.path:find \";;\")"))
      assert.equal("true\ttrue\tnil\n", result.out, value .. result.err)
    end
  end)

  it("changes nothing when it is empty", function()
    local plain = run("-e 'print(package.path)'").out
    assert.equal(plain, support.shell(("LUTRA_PATH= %s -e 'print(package.path)'"):format(
      quote(support.program))).out)
  end)
end)

describe("require", function()
  local files = {["a.lua"] = "print((require 'mine'))", ["mine.lua"] = "return 'found'"}

  it("finds the modules beside the script, from any folder", function()
    for _, line in ipairs{"cd /; $lutra $dir/a.lua", "cd $dir; $lutra a.lua",
      "cd $dir/..; $lutra \"$(basename \"$dir\")/a.lua\""} do
      local result = with_files(files, line)
      assert.same({"found\n", ""}, {result.out, result.err}, line)
    end
  end)

  it("searches the script's folder after LUTRA_PATH and before all others", function()
    local show = {["a.lua"] = "print(package.path)"}
    local result = with_files(show, "cd /; LUTRA_PATH='/nowhere/?.lua' $lutra $dir/a.lua")
    has(result.out, ("/nowhere/?.lua;%s/?.lua;%s/?/init.lua;"):format(result.dir, result.dir))
    assert.equal(1, (result.out:find("/nowhere", 1, true)))
  end)

  it("finds the module that a script of the same name requires", function()
    local named = {["lutra.lua"] = "print(require('lutra').pi > 3, (require 'mine'))",
      ["mine.lua"] = "return 'found'"}
    local result = with_files(named, "cd $dir; $lutra lutra.lua")
    assert.same({"true\tfound", ""}, {result.out:match "^[^\n]*", result.err})
  end)

  it("finds the library beside a file lutra.lua, and what is in the folder", function()
    local beside = {["a.lua"] = "print(require('lutra').pi > 3, (require 'mine'))",
      ["mine.lua"] = "return 'found'", ["lutra.lua"] = "error 'not the library'"}
    local result = with_files(beside, "cd /; $lutra $dir/a.lua")
    assert.same({"true\tfound\n", ""}, {result.out, result.err})
  end)

  it("does not search folders whose names contain ; or ?, nor any for stdin", function()
    local result = with_files(files, "mkdir \"$dir/a;b\"; cp $dir/*.lua \"$dir/a;b\"; "
      .. "cd /; $lutra \"$dir/a;b/a.lua\"")
    has(result.err, "module 'mine' not found")
    has(with_files(files, "cd /; $lutra <$dir/a.lua").err, "module 'mine' not found")
  end)
end)

describe("-W", function()
  it("warns once of each place that reads an undefined global", function()
    local result = with_files({["a.lua"] = "local count = 1\nfor i = 1, 3 do\n  print(cuont)\nend\n"
      .. "print(prnt, cuont)\n"}, "cd $dir; $lutra -W a.lua")
    assert.same({out = "nil\nnil\nnil\nnil\tnil\n", status = 0, dir = result.dir,
      err = "lutra: warning: a.lua:3: undefined global 'cuont'; did you mean 'count'?\n"
        .. "lutra: warning: a.lua:5: undefined global 'prnt'; did you mean 'print'?\n"
        .. "lutra: warning: a.lua:5: undefined global 'cuont'; did you mean 'count'?\n"}, result)
  end)

  it("says nothing of names that were assigned, of rawget, of the library's names", function()
    local result = run("-W -e 'x = nil; y = 1; y = nil; "
      .. "print(x, y, rawget(_G, \"zzz\"), lt ~= nil)'")
    assert.same({out = "nil\tnil\tnil\ttrue\n", err = "", status = 0}, result)
    result = run("-W -e 'local n = nn.Linear(2, 3); "
      .. "print(optim.SGD(n:parameters(), {lr = 1}) ~= nil)'")
    assert.same({out = "true\n", err = "", status = 0}, result)
  end)

  it("knows what other tables hold", function()
    has(run("-W -e 'print(sqrt)'").err, "undefined global 'sqrt'; did you mean 'lt.sqrt' or")
  end)

  it("works for stdin and at the prompt", function()
    has(run("-W", "\nprint(qqqq)").err, "lutra: warning: stdin:2: undefined global 'qqqq'\n")
    local result = support.session("local width = 3\nwitdh\n", "-W --no-init")
    has(result.err, "lutra: warning: cell[2]:1: undefined global 'witdh'; did you mean 'width'?\n")
    assert.equal("nil\n", result.out)
  end)

  it("does not concern the warnings of the library, which -w switches off", function()
    local code = quote "warn('take ', 'care')"
    assert.equal("lutra: warning: take care\n", run("-W -e " .. code).err)
    assert.equal("lutra: warning: take care\n", run("-e " .. code).err)
    assert.equal("", run("-w -e " .. code).err)
    local loss = "lt.F.mse_loss(lt.ones(2), lt.ones(3, 2))"
    has(run("", "local lt = require 'lutra' " .. loss).err, "lutra: warning: mse_loss: the target")
    has(support.session(loss .. "\n").err, "lutra: warning: mse_loss: the target's shape {3, 2}")
  end)

  it("comes with a warning about a range that its step reduces to one element", function()
    local function warnings(line, options)
      return with_files({["a.lua"] = "local lt = require 'lutra'\nlocal x = lt.arange(9)\n"
        .. "for i = 1, 2 do\n" .. line .. "\nend\n"}, "cd $dir; $lutra " .. options
        .. " a.lua").err
    end
    local expected = "lutra: warning: a.lua:4: the range {1, 3, 5} is its first element: the step "
      .. "skips the others; x[lt.tensor{1, 3, 5}] indexes by a list\n"
    assert.equal(expected, warnings("local y = x[{{1, 3, 5}}]", "-W"))
    assert.equal(expected, warnings("x[{{1, 3, 5}}] = 0", "-W"))
    assert.equal("", warnings("local y = x[{{1, 3, 5}}]", "-w"))
    for _, range in ipairs{"{1, 3, 2}", "{3, 3, 5}", "{3, 1, 5}", "{1, -1, 20}", "{1, 3}", "{}"} do
      assert.equal("", warnings("local y = x[{" .. range .. "}]", "-W"), range)
    end
  end)

  it("is the default of scripts, which -w switches off, and of nothing else", function()
    local files = {["a.lua"] = "print(cuont)"}
    assert.equal("lutra: warning: a.lua:1: undefined global 'cuont'\n",
      with_files(files, "cd $dir; $lutra a.lua").err)
    assert.equal("", with_files(files, "cd $dir; $lutra -w a.lua").err)
    assert.equal("", with_files(files, "cd $dir; $lutra -w -W a.lua").err)
    assert.equal("", run("-e 'print(undefined_name)'").err)
    assert.equal("", run("-", "print(undefined_name)").err)
    -- modules elsewhere, as of other projects, are silent without -W
    local all = {["a.lua"] = "package.path = arg[1] .. '/?.lua'; require 'other'",
      ["far/other.lua"] = "print(cuont)"}
    assert.equal("", with_files({["a.lua"] = all["a.lua"]}, "mkdir $dir/far; echo '"
      .. all["far/other.lua"] .. "' > $dir/far/other.lua; mkdir $dir/near; mv $dir/a.lua "
      .. "$dir/near; cd /; $lutra $dir/near/a.lua $dir/far").err)
  end)
end)

describe("--check", function()
  it("compiles all files, runs none, and reports each error", function()
    local files = {["a.lua"] = "print 'ran'", ["b.lua"] = "x = 1\nx = = 2\n", ["c.lua"] = "x = ("}
    local result = with_files(files, "cd $dir; $lutra --check a.lua b.lua c.lua none.lua")
    assert.equal(1, result.status)
    assert.equal("", result.out)
    assert.equal("lutra: b.lua:2: unexpected symbol near '='\n"
      .. "       1 | x = 1\n  >    2 | x = = 2\n         |     ^\n"
      .. "lutra: c.lua:1: unexpected symbol near <eof>\n  >    1 | x = (\n         |      ^\n"
      .. "lutra: cannot open none.lua: No such file or directory\n", result.err)
    result = with_files(files, "cd $dir; $lutra --check a.lua")
    assert.same({"", "", 0}, {result.out, result.err, result.status})
  end)

  it("reads stdin for -, and needs a file", function()
    local result = run("--check -", "#!lutra\nx = = 1")
    assert.equal(1, result.status)
    has(result.err, "lutra: stdin:2: unexpected symbol near '='\n")
    has(result.err, "  >    2 | x = = 1\n         |     ^\n")
    assert.same({out = "", err = "", status = 0}, run("--check -", "error 'not run'"))
    assert.equal(2, run("--check").status)
  end)
end)

describe("-i after code that fails", function()
  it("enters the prompt with the variables that a script has set", function()
    local path = support.file "local a = {1, 2}\nb = 3\nlocal c = a.x.y\nd = 4\n"
    local result = support.session("#a, b, d\n", quote(path) .. " --no-init")
    assert.equal("2\t3\tnil\n", result.out)
    assert.equal(0, result.status)
    has(result.err, ("%s:3: attempt to index a nil value (field 'x')"):format(path))
    has(result.err, "  >    3 | local c = a.x.y\n         |             ^\n")
    os.remove(path)
  end)

  it("comes to the prompt with the state of -e, which runs before a script", function()
    local result = support.session("a, b\n", "--no-init -e 'local a = 5' -e 'b = a + 1'")
    assert.equal("5\t6\n", result.out)
    result = support.session("a, b\n", "--no-init -e 'local a = 5; error \"x\"' -e 'b = 1'")
    assert.equal("5\tnil\n", result.out)
    has(result.err, "(command line):1: x")
    assert.equal(0, result.status)
    local path = support.file "print(a)\n"
    assert.equal("7\n", support.session("", "--no-init -e 'a = 7' " .. quote(path)).out)
    os.remove(path)
  end)

  it("leaves the prompt when what was given does not parse or is not there", function()
    has(support.session("1 + 1\n", "--no-init -e 'x = = 1'").err, "unexpected symbol near '='")
    assert.equal("2\n", support.session("1 + 1\n", "--no-init -e 'x = = 1'").out)
    assert.equal("2\n", support.session("1 + 1\n", "--no-init /nonexistent.lua").out)
  end)
end)

describe("on a terminal of", function()
  for _, columns in ipairs {40, 120} do
    it(columns .. " columns -W warns, --check shows the place, the status is reported", function()
      if not screen.available() then
        pending "needs tmux"
        return
      end
      local path = support.file "local first = 1\nprint(frist)\n"
      local wrong = support.file "x = 1\nx = = 2\n"
      do
        local s <close> = screen.open{columns = columns, arguments = "-W " .. quote(path)}
        -- The edge of the screen may break the line; tmux scrolls when the program has ended.
        s:wait(function()
          return table.concat(s:lines(true)):gsub(" ", ""):find("didyoumean'first'?", 1, true)
        end)
        assert.equal(0, s:finish())
      end
      do
        local s <close> = screen.open{columns = columns, arguments = "--check " .. quote(wrong)}
        s:expect "  >    2 | x = = 2\n         |     ^"
        assert.equal(1, s:finish())
      end
      do
        local s <close> = screen.open{columns = columns, arguments = "-W --no-init"}
        s:expect "[1]>"
        s:enter "prinnt"
        s:expect "cell[1]:1"
        s:expect "[2]>"
        s:key "C-d"
        assert.equal(0, s:finish())
      end
      os.remove(path)
      os.remove(wrong)
    end)
  end
end)
