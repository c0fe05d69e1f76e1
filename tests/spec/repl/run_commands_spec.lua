-- Commands about code and its files: :run, :edit, :save, :history, !, :cd, :set, init.lua.

local support = require "program_support"
local screen = require "screen_support"

local session, quote = support.session, support.quote

local has = support.has

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

local folder

before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

-- A file in the test's folder.
local function file(name, text) return write(folder .. "/" .. name, text) end

-- A session in the test's folder; `environment` is a shell text of assignments.
local function within(input, environment, arguments)
  local line = ("cd %s && env HOME=%s %s %s -i --no-init %s"):format(quote(folder), quote(folder),
    environment or "", quote(support.program), arguments or "")
  local result = support.shell(line, input)
  result.raw, result.out = result.out, "\n" .. result.out
  while result.out:find "\n%[%d+%]> " do result.out = result.out:gsub("\n%[%d+%]> ", "\n") end
  result.out = result.out:sub(2):gsub("\n$", "")
  return result
end

describe(":run", function()
  it("keeps the file's locals and globals, and gives it its arguments", function()
    file("s.lua", "#!/usr/bin/env lutra\nlocal a, b = ...\nlocal n = select('#', ...)\n"
      .. "g = arg[0] .. arg[1] .. arg[2] .. #arg\nlocal line = debug.getinfo(1).currentline\n")
    local result = within(":run s.lua one 'two words'\na, b, n, g, line\narg[1]\n")
    assert.equal("", result.err)
    assert.equal('"one"\t"two words"\t2\t"s.luaonetwo words2"\t5\n"-i"\n', result.out)
  end)

  it("splits words as a shell does", function()
    file("a b.lua", "for i = 1, #arg do io.write('<', arg[i], '>') end print()")
    local result = within([[:run "a b.lua" 'x "y' "it's \"q\" \n" c\ d ~/e a~ "" ]] .. "\n")
    assert.equal("", result.err)
    assert.equal(([[<x "y><it's "q" \n><c d><%s/e><a~><>]]):format(folder) .. "\n", result.out)
  end)

  it("keeps the locals of a file that fails, whose lines are shown", function()
    file("bad.lua", "local a = 1\nlocal function f()\n  error 'no'\nend\na = 2\nf()\n")
    local result = within ":run bad.lua\na, arg[0] ~= 'bad.lua'\n"
    has(result.err, "bad.lua:3: no")
    has(result.err, "bad.lua:6: in")
    assert.equal("2\ttrue\n", result.out)
  end)

  it("says what cannot be run, and runs nothing of it", function()
    file("syntax.lua", "ran = true\nx = = 1\n")
    local result = within(":run\n:run none.lua\n:run syntax.lua\n:run .\n:run 'x\nran\n")
    for _, text in ipairs {"run: expected a file, got none", "none.lua: No such file",
      "syntax.lua:2:", "directory",
      "run: expected a closing quote '"} do
      has(result.err, text)
    end
    assert.equal("nil\n", result.out)
  end)

  it("skips a byte order mark, and takes relative paths from :cd", function()
    assert(os.execute("mkdir " .. quote(folder .. "/sub")))
    write(folder .. "/sub/s.lua", "\xEF\xBB\xBFlocal here = 3")
    local result = within(":cd sub\n:run s.lua\nhere\n")
    assert.equal("", result.err)
    has(result.out, "/sub\n3\n")
  end)

  it("keeps no locals with :set locals off", function()
    file("s.lua", "local a = 1 b = 2")
    local result = within(":set locals off\n:run s.lua\na, b\nlocal c = 1\nc\n")
    assert.truthy(result.out:find "nil\t2\nnil\n$")
  end)

  it("is what -i does with a script", function()
    file("s.lua", "local a = ... b = arg[1]")
    assert.equal('"x"\t"x"\n', within("a, b\n", "", "s.lua x").out)
  end)
end)

describe(":edit", function()
  -- An editor that runs a line of sed on its file.
  local function editor(line)
    local path = file("editor", "#!/bin/sh\n" .. line .. "\n")
    assert(os.execute("chmod +x " .. quote(path)))
    return "VISUAL= EDITOR=" .. quote(path)
  end

  it("runs the last cell again as it was edited", function()
    local result = within("20 + 22\n:edit\n_ + 1\n", editor 'sed -i s/20/30/ "$1"')
    assert.equal("42\n52\n53\n", result.out)
  end)

  it("edits a cell by its number, or begins with nothing", function()
    local result = within("local x = 1\nx\n:edit 1\nx\n", editor 'sed -i s/1/5/ "$1"')
    assert.equal("1\n5\n", result.out)
    assert.equal("7\n", within(":edit\n", editor 'test -s "$1" || echo "3 + 4" > "$1"').out)
  end)

  it("edits a file, then runs it", function()
    local result = within(":edit new.lua\ny\n", editor 'echo "local y = 8" > "$1"')
    assert.equal("8\n", result.out)
    assert.equal("local y = 8\n", read(folder .. "/new.lua"))
  end)

  it("runs nothing when the editor failed, or left nothing", function()
    local result = within("x = (x or 0) + 1\n:edit\nx\n", editor "exit 1")
    has(result.err, "exit status 1")
    assert.equal("1\n", result.out)
    assert.equal("empty, nothing to run\n", within("1;\n:edit\n", editor ': > "$1"').out)
  end)

  it("takes VISUAL first, arguments and all", function()
    file("see", "#!/bin/sh\ntest \"$1\" = -w && sed -i s/1/2/ \"$2\"\n")
    local result = within("1\n:edit\n", ("EDITOR=false VISUAL='sh %s/see -w'"):format(folder))
    assert.equal("1\n2\n", result.out)
  end)

  it("says which cells there are, and what it has no editor for", function()
    has(within(":edit 3\n").err, "edit: cannot find cell 3: no cell was run")
    has(within("1\n:edit 3\n").err, "the cells are 1 to 1")
    has(within(":edit a b\n").err, "edit: expected FILE or the number of a cell, got 2 words")
    has(within("1\n:edit\n", "VISUAL= EDITOR= PATH=/nowhere").err, "edit: cannot find an editor")
  end)
end)

describe("!", function()
  it("runs a command, after what was printed before", function()
    assert.equal("before\nhi\nafter\n", within("print 'before'\n!echo hi\nprint 'after'\n").out)
    assert.equal("hi\n", within(":shell echo hi\n").out)
  end)

  it("reports a status that is not 0", function()
    assert.equal("exit status 3\n", within("!exit 3\n").out)
    assert.equal("ended by signal 9\n", within("!kill -9 $$\n").out)
    has(within("!\n").err, "!: expected a command, got none")
  end)

  it("does not read the cells that follow", function()
    assert.equal("7\n", within("!cat\n7\n").out)
  end)
end)

describe(":cd and :pwd", function()
  it("go to a folder, home and back", function()
    assert(os.execute("mkdir " .. quote(folder .. "/a b")))
    local real = support.shell("cd " .. quote(folder) .. " && pwd -P").out:match "[^\n]+"
    local result = within(":pwd\n:cd a b\n:cd -\n:cd 'a b'\n:cd\n:cd ~/a b\n")
    assert.equal("", result.err)
    assert.equal(table.concat({real, real .. "/a b", real, real .. "/a b", real, real .. "/a b"},
      "\n") .. "\n", result.out)
  end)

  it("say where one cannot go", function()
    local result = within(":cd nowhere\n:cd -\n:pwd\n")
    has(result.err, "cd: cannot change the folder: nowhere: No such file or directory")
    has(result.err, "cd: cannot go back: there is no previous folder")
  end)
end)

describe(":set", function()
  it("lists the options, shows one, changes one", function()
    local list = session(":set\n").out
    for _, row in ipairs(require("lutra.repl.options").rows) do has(list, row.doc) end
    has(session(":set depth\n").out, "4")
    has(session(":set depth 7\n:set depth\n").out, "7")
    has(session(":set depth = 7\n").out, "7")
    has(session(":set results_bytes 1.5 GiB\n").out, "1536MiB")
    has(session(":set locals off\n").out, "off")
  end)

  it("says what is wrong with a value, and which name was meant", function()
    for line, expected in pairs {
      ["depth x"] = 'expected an integer from 0 to 100 for option depth, got "x"',
      ["depth 101"] = "from 0 to 100",
        ["depth 1.5"] = 'an integer from 0 to 100 for option depth, got "1.5"',
      ["items 0"] = "expected an integer of at least 1 for option items",
        ["locals maybe"] = "expected on or off for option locals",
      ["colors red"] = "expected one of auto, on, off", ["results_bytes many"] = "16MiB",
      ["dept 3"] = 'unknown option "dept"\nhint: did you mean \'depth\'?',
      ["zzzzzz 3"] = 'unknown option "zzzzzz"',
    } do
      has(session(":set " .. line .. "\n").err, expected)
    end
  end)
end)

describe(":save", function()
  -- What the script prints that a session saves, and the script.
  local function saved(input)
    within(input)
    local text = read(folder .. "/out.lua")
    local ran = support.run(quote(folder .. "/out.lua"))
    assert.equal("", ran.err)
    return ran.out, text
  end

  it("writes a script that does what the cells did", function()
    local out, text = saved("local x = 20 -- a local\nlocal function f() return x + 1 end\nx = 41\n"
      .. "f()\nx -- shown\nx;\nprint 'once'\nlocal y = 1\ny\nreturn x, y\n:save out.lua\n")
    assert.equal("42\n41\nonce\n1\n41\t1\n", out)
    assert.equal(0, select(2, text:gsub("require", "")))
  end)

  it("requires what the cells use", function()
    local out, text = saved("lt.tensor{1, 2}:sum():item()\nnn.Linear(2, 3).weight.shape\n"
      .. "#optim.SGD({lt.ones{1}}).param_groups\n:save out.lua\n")
    assert.equal("3\n{3, 2}\n1\n", out)
    has(text, 'local nn = require "lutra.nn"')
    assert.falsy(text:find("lutra.data", 1, true))
  end)

  it("keeps results where the cells use them", function()
    assert.equal("3\n4\n3\t4\n", (saved "1 + 2\n_ + 1\n5;\n_2 + 0, _3 + 1;\n:save out.lua 1-2\n"
      and saved "1 + 2\n_ + 1\n_2, _1\n:save --force out.lua\n"))
  end)

  it("leaves out cells that failed, unless they are named", function()
    local out, text = saved("1\nerror 'x'\n2\n:save out.lua\n")
    assert.equal("1\n2\n", out)
    assert.falsy(text:find("error", 1, true))
    out, text = saved("1\nerror 'x'\n2\n:save --force out.lua 1-3\n")
    assert.equal("1\n2\n", out)
    assert.falsy(text:find("error", 1, true))
    out, text = saved("1\nerror 'x'\n2\n:save --force out.lua 2 1\n")
    assert.equal("1\n", out)
    has(text, "-- [2] failed\n-- error 'x'\n")
  end)

  it("takes cells by number and range, each once, in the order given", function()
    assert.equal("4\n1\n2\n", (saved "1\n2\n3\n4\n:save out.lua 4 1-2 1\n"))
  end)

  it("overwrites a file only with --force, and then as a whole", function()
    file("out.lua", "mine")
    local result = within "1\n:save out.lua\n"
    has(result.err, "save: cannot overwrite out.lua: it exists\nhint: :save --force out.lua")
    assert.equal("mine", read(folder .. "/out.lua"))
    within "1\n:save --force out.lua\n"
    has(read(folder .. "/out.lua"), "print(1)")
    assert.is_nil(read(folder .. "/out.lua.new"))
  end)

  it("writes into what a link names, and into devices", function()
    file("true.lua", "old")
    os.execute(("ln -s true.lua %s/link.lua"):format(quote(folder)))
    within "1\n:save --force link.lua\n"
    has(read(folder .. "/true.lua"), "print(1)")
    assert.is_true(os.execute(("test -L %s/link.lua"):format(quote(folder))))
    local result = within "1\n:save --force /dev/full\n:save --force /dev/null\n"
    has(result.err, "error: save: cannot write \"/dev/full\": No space left on device")
    has(result.out, "wrote 1 cell to /dev/null")
    assert.is_true(os.execute "test -c /dev/null && test -c /dev/full")
  end)

  it("says what it cannot write", function()
    for line, expected in pairs {
      ["x.lua 0"] = "cannot find cell 0: the cells are 1 to 1", ["x.lua 2"] = "cannot find cell 2",
      ["x.lua 1-9"] = "cannot find cell 9",
        ["x.lua 3-1"] = "expected a range from a lower to a higher cell, got 3-1",
      ["x.lua one"] = 'numbers or ranges of cells, got "one"',
        [""] = "save: expected a file, got none",
      ["none/x.lua"] = 'save: cannot write "none/x.lua": No such file or directory',
    } do
      has(within("1\n:save " .. line .. "\n").err, expected)
    end
    has(within(":save x.lua\n").err, "no cell succeeded")
    local many = {}
    for i = 1, 201 do many[i] = ("local v%d = %d"):format(i, i) end
    local result = within(table.concat(many, "\n") .. "\nv201\n:save x.lua\n")
    assert.equal("201\n", result.out)
    has(result.err, "too many local variables")
    assert.is_nil(read(folder .. "/x.lua"))
  end)
end)

describe(":history", function()
  it("lists all cells, the last ones, or those that contain a string", function()
    local input = "1\nfor i = 1, 2 do\nend\nerror 'x'\n"
    local first, loop = "[1]> 1\n", "[2]> for i = 1, 2 do\n     end\n"
    local failed = "[3]> error 'x'  -- failed\n"
    has(within(input .. ":history\n").raw, "[4]> " .. first .. loop .. failed .. "[4]> ")
    has(within(input .. ":history 1\n").raw, "[4]> " .. failed .. "[4]> ")
    has(within(input .. ":history for\n").raw, "[4]> " .. loop .. "[4]> ")
  end)
end)

describe("init.lua", function()
  -- A session with that init.lua.
  local function with_init(text, input, arguments)
    assert(os.execute("mkdir -p " .. quote(folder .. "/config/lutra")))
    file("config/lutra/init.lua", text)
    return support.shell(("env XDG_CONFIG_HOME=%s/config %s -i %s"):format(quote(folder),
      quote(support.program), arguments or ""), input)
  end

  it("runs before the session, with its globals", function()
    local result = with_init("require('lutra.repl').set{depth = 1}\nlocal l = 1\nmine = lt.ones{2}",
      "mine, l\n{{{}}}\n{{{1}}}\n")
    assert.equal("", result.err)
    has(result.out, "tensor{1., 1.}\tnil\n")
    has(result.out, "{{...}}\n")
  end)

  it("runs before the script, and not with --no-init", function()
    local script = file("s.lua", "print(mine)")
    has(with_init("mine = 5", "", quote(script)).out, "5\n")
    has(with_init("mine = 5", "", "--no-init " .. quote(script)).out, "nil\n")
  end)

  it("that fails is reported, and the session starts", function()
    local result = with_init("mine = 5\nerror 'oops'", "mine\n")
    has(result.err, "init.lua:2: oops")
    has(result.out, "5\n")
    result = with_init("mine = = 5", "6\n")
    has(result.err, "init.lua:1:")
    has(result.out, "6\n")
    result = with_init("require('lutra.repl').set{dept = 5}", "7\n")
    has(result.err, 'init.lua:1: set: unknown option "dept"\nhint: did you mean \'depth\'?')
    has(result.out, "7\n")
    has(with_init("require('lutra.repl').set(5)", "").err,
      "set: expected a table of options, got a number")
  end)

  it("is looked for in ~/.config where XDG_CONFIG_HOME is not set", function()
    assert(os.execute("mkdir -p " .. quote(folder .. "/.config/lutra")))
    file(".config/lutra/init.lua", "mine = 5")
    local result = support.shell(("env -u XDG_CONFIG_HOME HOME=%s %s -i"):format(quote(folder),
      quote(support.program)), "mine\n")
    has(result.out, "5\n")
  end)
end)


for _, columns in ipairs {40, 120} do
  describe(("at %d columns"):format(columns), function()
    local function on_terminal(title, f)
      it(title, function()
        if not screen.available() then return pending "needs tmux" end
        local s <close> = screen.open{columns = columns, home = folder,
          environment = ("VISUAL= EDITOR=%s/ed"):format(folder),
          command = ("env -C %s %s"):format(folder, quote(support.program))}
        s:expect "[1]>"
        f(s)
      end)
    end

    on_terminal(":run keeps the script's locals", function(s)
      file("s.lua", "local a = ... print('arg', arg[1])")
      s:enter ":run s.lua word"
      s:wait(function() return s:text():find "arg +word" end)
      s:enter "a .. 'ed'"
      s:expect '"worded"'
    end)

    on_terminal(":edit opens the editor and runs its text as a cell", function(s)
      file("ed", "#!/bin/sh\nread -p 'editing ' x\nsed -i \"s/20/$x/\" $1\n")
      assert(os.execute(("chmod +x %s/ed"):format(folder)))
      s:enter "20 + 22"
      s:expect "42"
      s:enter ":edit"
      s:expect "editing"
      s:enter "30"
      s:expect "[2]> 30 + 22\n52\n[3]>"
      s:key "Up"
      s:expect "[3]> 30 + 22"
    end)

    on_terminal("! has the terminal, and its Ctrl-C", function(s)
      s:enter "!echo now; read x; echo got $x"
      s:expect "\nnow"
      s:enter "it"
      s:expect "got it"
      s:enter "!echo ready; read x"
      s:expect "\nready"
      s:key "C-c"
      s:expect "ended by signal 2"
      s:enter "1 + 1"
      s:expect "\n2\n"
    end)

    on_terminal(":cd, :set and :history", function(s)
      s:enter ":cd /"
      s:expect "\n/\n"
      s:enter ":set items 2"
      s:expect "items          2"
      s:enter "{1, 2, 3}"
      s:expect "{1, 2, ... 3 items}"
      s:enter ":history"
      s:expect "\n[1]> {1, 2, 3}\n[2]>"
    end)

    on_terminal(":save writes the cells", function(s)
      s:enter "local x = 6"
      s:expect "[2]>"
      s:enter "x * 7"
      s:expect "42"
      s:enter ":save out.lua"
      s:expect "wrote 2 cells to out.lua"
      assert.equal("42\n", support.run(quote(folder .. "/out.lua")).out)
    end)

    on_terminal("an interrupted :run leaves the session as it was", function(s)
      file("s.lua", "local n = 5 print 'runs' while true do end")
      s:enter ":run s.lua"
      s:expect "\nruns"
      s:key "C-c"
      s:expect "interrupted"
      s:enter "n, arg[0] ~= 's.lua'"
      s:wait(function() return s:text():find "5 +true" end)
    end)

    on_terminal("a :run that swallows Ctrl-C is left by the second", function(s)
      file("s.lua", "local n = 5 print 'runs'\n"
        .. "while true do pcall(function() print 'again' while true do end end) end")
      s:enter ":run s.lua"
      s:expect "\nruns\nagain"
      s:key "C-c"
      s:expect "\nagain\n^Cagain"
      s:key "C-c"
      s:expect "interrupted"
      s:enter "n"
      s:expect "\n5\n"
    end)

    it("init.lua is at work", function()
      if not screen.available() then return pending "needs tmux" end
      assert(os.execute("mkdir -p " .. quote(folder .. "/config/lutra")))
      file("config/lutra/init.lua", "mine = 40")
      local s <close> = screen.open{columns = columns, home = folder}
      s:expect "[1]>"
      s:enter "mine + 2"
      s:expect "\n42\n"
    end)
  end)
end
