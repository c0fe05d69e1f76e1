-- Editing at the prompt, as tmux shows it on 40 and on 120 columns; and the logic behind it.

local screen = require "screen_support"
local support = require "program_support"

-- What stands on the screen from the last line that begins with `mark` on, without colours.
local function tail(s, mark)
  local lines = s:lines()
  for i = #lines, 1, -1 do
    if lines[i]:sub(1, #mark) == mark then return table.concat(lines, "\n", i) end
  end
  return table.concat(lines, "\n")
end

-- Waits until that is `expected`.
local function shows(s, expected)
  local mark = expected:match "^%[%d+%]>"
  s:wait(function() return tail(s, mark) == expected end, "there is no\n" .. expected)
end

-- Waits until the cursor is there, from the left edge and from the line that begins with `mark`.
local function cursor_at(s, column, mark, rows_below)
  local function expected_row()
    local lines = s:lines()
    for i = #lines, 1, -1 do
      if lines[i]:sub(1, #mark) == mark then return i + (rows_below or 0) end
    end
  end
  s:wait(function()
    local x, y = s:cursor()
    return x == column and y == expected_row()
  end, ("the cursor is not in column %d, row %d but in %d, %d"):format(column, expected_row() or 0,
    s:cursor()))
end

-- What SGR sets for one of its parameters: which property, and its value.
local function sgr(code)
  local n = tonumber(code) or 0
  if n == 0 then return "all" end
  if n == 1 or n == 2 then return "weight", code end
  if n == 7 or n == 27 then return "reverse", n == 7 and code or nil end
  if n >= 30 and n <= 39 then return "color", n < 39 and code or nil end
end

-- The SGR parameters that are set where `text` stands on the screen (the last such place).
local function color_of(s, text)
  local found
  local set = {}
  for line in s:text(true):gmatch "[^\n]+" do
    local plain, states, at = "", {}, 1
    while at <= #line do
      local codes, after = line:match("^\27%[([%d;]*)m()", at)
      for code in (codes and (codes .. ";") or ""):gmatch "(%d*);" do
        local property, value = sgr(code)
        if property == "all" then set = {} elseif property then set[property] = value end
      end
      if not codes then
        plain = plain .. line:sub(at, at)
        states[#plain] = table.concat({set.weight or "", set.reverse or "", set.color or ""}, ";")
      end
      at = after or at + 1
    end
    local first = plain:find(text, 1, true)
    if first then found = states[first]:gsub("^;+", ""):gsub(";+$", ""):gsub(";+", ";") end
  end
  return found
end

-- Types lines, each with Enter, as a person does: each waits for the prompt.
local function types(s, lines)
  for i, line in ipairs(lines) do
    s:send(line)
    s:expect(line:match "%S.*$")
    if i < #lines then
      local _, y = s:cursor()
      s:key "Enter"
      s:wait(function()
        local _, now = s:cursor()
        return now ~= y or now == 24
      end, "no new line")
    end
  end
end

-- Opens a prompt with these lines in ~/.inputrc.
local function with_inputrc(columns, text, environment)
  local home = support.folder()
  local file = assert(io.open(home .. "/inputrc", "w"))
  file:write(text)
  file:close()
  local s = screen.open{columns = columns, home = home,
    environment = ("INPUTRC=%s/inputrc %s"):format(home, environment or "")}
  s:expect_last "[1]>"
  return s, setmetatable({}, {__close = function()
    s:close()
    support.remove(home)
  end})
end

for _, columns in ipairs {40, 120} do
  local function case(name, options, body)
    if type(options) == "function" then options, body = {}, options end
    it(("%s (%d columns)"):format(name, columns), function()
      if not screen.available() then return pending "needs tmux" end
      options.columns = columns
      local s <close> = screen.open(options)
      s:expect_last "[1]>"
      body(s)
    end)
  end

  describe("a cell of several lines", function()
    case("is indented under its prompt and runs when it is finished", function(s)
      types(s, {"for i = 1, 2 do", "if i > 1 then", "print(i * 21)", "end", "end"})
      shows(s, "[1]> for i = 1, 2 do\n       if i > 1 then\n         print(i * 21)\n"
        .. "       end\n     end")
      cursor_at(s, 9, "[1]>", 4)
      s:key "Enter"
      s:expect_last "[2]>"
      assert.truthy(s:text():find("\n     end\n42\n[2]>", 1, true))
    end)

    case("is gone through by Up and Down, which keep the column", function(s)
      types(s, {"t = {", "11,", "22, 33", "}"})
      s:key("Up", "Up")
      cursor_at(s, 7, "[1]>", 1)
      s:send "7, "
      shows(s, "[1]> t = {\n      7,  11,\n       22, 33\n     }")
      s:key("Down", "Down", "Enter")
      s:expect_last "[2]>"
      s:enter "#t * 1000 + t[1] * 100 + t[4]"
      s:expect "\n4733\n"
    end)

    case("takes a new line above its last one, and by Alt-Enter anywhere", function(s)
      s:send "a = 1"
      s:key "M-Enter"
      s:send "b = a + 1"
      s:expect "     b = a + 1"
      s:key("Up", "End", "Enter")
      s:send "c = 5"
      shows(s, "[1]> a = 1\n     c = 5\n     b = a + 1")
      s:key("Down", "Enter")
      s:expect_last "[2]>"
      s:enter "a + b + c"
      s:expect "\n8\n"
    end)

    case("keeps Home, End, Ctrl-K and Ctrl-U within a line", function(s)
      s:send "x = 1"
      s:key "M-Enter"
      s:send "yy = 2"
      s:key "C-a"
      cursor_at(s, 6, "[1]>", 1)
      s:key "C-k"
      shows(s, "[1]> x = 1")
      s:send "z = 3"
      s:key("Up", "C-e")
      cursor_at(s, 11, "[1]>")
      s:key "C-u"
      shows(s, "[1]>\n     z = 3")
      s:key("C-k")
      shows(s, "[1]> z = 3")
      s:key("C-y") -- what was deleted in a row comes back
      shows(s, "[1]> x = 1\n     z = 3")
    end)

    case("is run by an empty last line even when it is not finished", function(s)
      types(s, {"x = (", "1 +"})
      s:key("Enter", "Enter")
      s:expect "unexpected symbol"
      s:expect_last "[2]>"
    end)

    case("moves lines back that close a block, and forward again", function(s)
      types(s, {"if a then", "b = 1", "else"})
      shows(s, "[1]> if a then\n       b = 1\n     else")
      s:send "where"
      shows(s, "[1]> if a then\n       b = 1\n       elsewhere")
      s:key("C-u")
      s:send "until"
      shows(s, "[1]> if a then\n       b = 1\n     until")
    end)

    case("is taller than the terminal", {rows = 24}, function(s)
      local lines = {"local t = {"}
      for i = 1, 60 do lines[#lines + 1] = ("  %d,"):format(1000 + i) end
      lines[#lines + 1] = "}"
      s:paste(table.concat(lines, "\n"))
      s:expect "1060,"
      cursor_at(s, 7, "     }")
      assert.falsy(s:text():find("1030,", 1, true))
      for _ = 1, 31 do s:key "Up" end
      s:expect "1030,"
      s:wait(function() return not s:text():find("1060,", 1, true) end, "the end stayed")
      s:key "C-e"
      s:send " -- here"
      s:expect "1030, -- here"
      s:key("M->", "C-c")
      s:expect_last "[1]>"
      local all = table.concat(s:lines(true), "\n")
      for i = 1, 60 do
        assert.truthy(all:find(("       %d,"):format(1000 + i), 1, true), "no row " .. i)
      end
    end)
  end)

  describe("colours", function()
    case("show what is typed", function(s)
      s:send "local x = 'text' .. 42 -- note"
      s:expect "-- note"
      assert.equal("34", color_of(s, "local"))
      assert.equal("", color_of(s, "x ="))
      assert.equal("32", color_of(s, "'text'"))
      assert.equal("35", color_of(s, "42"))
      assert.equal("2", color_of(s, "-- note"))
    end)

    case("show a bracket at the cursor and its other half", function(s)
      s:send "f(a[1], {2}) + (3"
      s:expect "(3"
      assert.equal("", color_of(s, "(a"))
      for _ = 1, 5 do s:key "Left" end
      s:wait(function() return color_of(s, "(a") == "1;33" end, "( is not marked")
      assert.equal("1;33", color_of(s, ") +"))
      assert.equal("", color_of(s, "[1"))
      s:key("Left", "Left")
      s:wait(function() return color_of(s, "{2") == "1;33" end, "{ is not marked")
      assert.equal("", color_of(s, "(a"))
    end)

    case("are not there with NO_COLOR", {environment = "NO_COLOR=1"}, function(s)
      s:send "local x = ('text')"
      s:expect "('text')"
      assert.falsy(s:text(true):find("\27", 1, true))
    end)
  end)

  describe("a paste", function()
    case("is one cell and does not run by itself", function(s)
      s:paste "local function f(a)\n\n\treturn a * 2\nend\nf(21)\n"
      s:expect "f(21)"
      s:send "y = 5"
      s:expect "y = 5"
      assert.falsy(s:text():find("[2]>", 1, true))
      for _ = 1, 5 do s:key "BSpace" end
      s:key "Enter"
      s:expect_last "[2]>"
      assert.truthy(s:text():find("\n42\n[2]>", 1, true))
    end)

    case("loses the prompts and the output of a session", function(s)
      s:paste "[7]> x = {\n       1,\n     }\n[8]> x\n{1}\n[9]> #x + 41\n42\n"
      shows(s, "[1]> x = {\n       1,\n     }\n     x\n     #x + 41")
      s:key "Enter"
      s:expect "\n42\n[2]>" -- the value of the last, `x` before it is forgotten
      s:paste "> for i = 1, 1 do\n>> print(i + 6)\n>> end\n7\n> y = 8\n"
      shows(s, "[2]> for i = 1, 1 do\n     print(i + 6)\n     end\n     y = 8")
      s:key "Enter"
      s:expect_last "[3]>"
      assert.truthy(s:text():find("\n7\n[3]>", 1, true))
    end)

    case("has no control characters and its tabs stay", function(s)
      s:paste "x = 'a\7b\1'\r\n\ty = #x\rz = 3"
      shows(s, "[1]> x = 'ab'\n             y = #x\n     z = 3")
      s:key "Enter"
      s:expect_last "[2]>"
      s:enter "x .. y .. z"
      s:expect '"ab23"'
    end)

    case("may be large", function(s)
      local line = ("x = %s -- filled\n"):format(("1"):rep(80))
      s:paste(line:rep((1 << 20) // #line) .. "y = 5")
      s:expect "y = 5"
      s:key "C-c"
      s:expect_last "[1]>"
      s:enter "6 * 7"
      s:expect_last "[2]>"
    end)
  end)

  describe("the history", function()
    local function filled(s)
      s:enter "alpha = 1"
      s:expect_last "[2]>"
      types(s, {"for i = 1, 1 do", "beta = i", "end"})
      s:key "Enter"
      s:expect_last "[3]>"
      s:enter "also = 3"
      s:expect_last "[4]>"
    end

    case("is reached by Up and Down, cell by cell", function(s)
      filled(s)
      s:key "Up"
      shows(s, "[4]> also = 3")
      s:key "Up"
      shows(s, "[4]> for i = 1, 1 do\n       beta = i\n     end")
      cursor_at(s, 9, "[4]>", 2)
      s:key("Up", "Up")
      cursor_at(s, 9, "[4]>")
      s:key "Up"
      shows(s, "[4]> alpha = 1")
      s:key "Down"
      shows(s, "[4]> for i = 1, 1 do\n       beta = i\n     end")
      s:key "Down"
      shows(s, "[4]> also = 3")
      s:key "Down"
      shows(s, "[4]>")
    end)

    case("is searched by the input", function(s)
      filled(s)
      s:send "al"
      s:key "Up"
      shows(s, "[4]> also = 3")
      s:key "Up"
      shows(s, "[4]> alpha = 1")
      s:key "Down"
      shows(s, "[4]> also = 3")
      s:key "Down"
      shows(s, "[4]> al")
      s:key("C-u")
      s:send "for"
      s:key "Up"
      shows(s, "[4]> for i = 1, 1 do\n       beta = i\n     end")
      s:key "Enter"
      s:expect_last "[5]>"
    end)

    case("is searched by Ctrl-R, also within cells", function(s)
      filled(s)
      s:key "C-r"
      s:send "beta"
      shows(s, "[4]> for i = 1, 1 do\n       beta = i\n     end\n(reverse-i-search)`beta':")
      cursor_at(s, 8, "[4]>", 1)
      assert.equal("7", color_of(s, "beta = i"))
      s:key "Enter"
      s:expect_last "[5]>"
      assert.truthy(s:text():find("     end\n[5]>", 1, true), s:text())
    end)

    case("gives back a search that is left", function(s)
      filled(s)
      s:send "typed"
      s:key "C-r"
      s:send "beta"
      s:expect "reverse-i-search"
      s:key "C-g"
      shows(s, "[4]> typed")
    end)
  end)

  describe("keys of the user", function()
    it(("are those of .inputrc (%d columns)"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s, cleaner <close> = with_inputrc(columns, '"\\C-p": "bound"\n'
        .. '"\\e[A": beginning-of-line\n$if lutra\n"\\C-o": lutra-newline\n$endif\n')
      s:send "x"
      s:key "C-p"
      shows(s, "[1]> xbound")
      s:key "Up"
      cursor_at(s, 6, "[1]>")
      s:key("C-e", "C-o")
      s:send "y"
      shows(s, "[1]> xbound\n     y")
      assert.truthy(cleaner)
    end)

    it(("may be vi's (%d columns)"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s, cleaner <close> = with_inputrc(columns, "set editing-mode vi\n")
      types(s, {"for i = 4, 4 do", "print(i + 3)", "end"})
      s:key "Escape"
      cursor_at(s, 8, "[1]>", 2)
      s:send "k0wi"
      s:send "x = 1 "
      shows(s, "[1]> for i = 4, 4 do\n       x = 1 print(i + 3)\n     end")
      s:key "Escape"
      s:send "k$"
      cursor_at(s, 20, "[1]>")
      s:send "bD"
      shows(s, "[1]> for i = 4, 4\n       x = 1 print(i + 3)\n     end")
      s:send "a do"
      s:key "Escape"
      s:send "jj"
      s:key "Enter"
      s:expect "\n7\n"
      s:expect_last "[2]>"
      s:send "y"
      s:key "Escape"
      s:send "dd"
      s:send "k"
      s:expect "[2]> for i = 4"
      s:key "Enter"
      s:expect_last "[3]>"
      assert.truthy(cleaner)
    end)
  end)

  describe("the screen", function()
    case("has room for wide characters and those that combine", function(s)
      s:send "s = '日本語'"
      cursor_at(s, 18, "[1]>")
      s:key("Left", "Left")
      cursor_at(s, 15, "[1]>")
      s:key "BSpace"
      shows(s, "[1]> s = '日語'")
      cursor_at(s, 13, "[1]>")
      s:key("C-a", "C-k")
      s:send "e\u{301}a"
      cursor_at(s, 8, "[1]>")
      s:key("Left", "Left")
      cursor_at(s, 6, "[1]>")
      s:key("C-k")
      s:send(("😀"):rep(columns // 2 - 3))
      cursor_at(s, columns, "[1]>")
      s:send "😀"
      cursor_at(s, 3, "[1]>", 1)
    end)

    case("wraps at its edge exactly", function(s)
      s:send(("a"):rep(columns - 6))
      cursor_at(s, columns, "[1]>")
      s:send "b"
      cursor_at(s, 1, "[1]>", 1)
      s:send "c"
      shows(s, "[1]> " .. ("a"):rep(columns - 6) .. "b\nc")
      s:key("BSpace", "BSpace")
      cursor_at(s, columns, "[1]>")
      shows(s, "[1]> " .. ("a"):rep(columns - 6))
      s:key "C-a"
      s:send "x"
      cursor_at(s, 7, "[1]>")
      shows(s, "[1]> x" .. ("a"):rep(columns - 6))
      s:key("C-e", "Enter")
      s:expect_last "[2]>"
    end)

    case("may get another size", function(s)
      s:send "x = {"
      s:key "Enter"
      cursor_at(s, 8, "[1]>", 1)
      s:send(("1234567, "):rep(7))
      s:expect "1234567,"
      local wrapped = "  " .. ("1234567, "):rep(7)
      local function at_width(width)
        local rows, line = {"[1]> x = {"}, "     " .. wrapped
        while #line > 0 do
          rows[#rows + 1] = line:sub(1, width):gsub("%s+$", "")
          line = line:sub(width + 1)
        end
        return table.concat(rows, "\n")
      end
      shows(s, at_width(columns))
      s:resize(30, 24)
      shows(s, at_width(30))
      s:resize(90, 20)
      shows(s, at_width(90))
      s:send "}"
      s:key "Enter"
      s:expect_last "[2]>"
    end)

    case("is cleared by Ctrl-L", function(s)
      s:enter "6 * 7"
      s:expect_last "[2]>"
      s:send "x = 1"
      s:key "C-l"
      s:wait(function() return s:text() == "[2]> x = 1" end, "was not cleared")
      s:send "2"
      shows(s, "[2]> x = 12")
    end)

    case("keeps output that does not end its line", function(s)
      s:enter "io.write 'no end';"
      s:expect_last "[2]>"
      assert.truthy(s:text():find("\nno end\n[2]>", 1, true))
    end)
  end)

  describe("Tab", function()
    case("indents at the start of a line", function(s)
      s:key "Tab"
      cursor_at(s, 8, "[1]>") -- with the next key already there, Tab would be one of a paste
      s:send "x"
      shows(s, "[1]>   x")
    end)

    case("completes, and lists what there is", function(s)
      s:enter "quite_long_name_1 = 1; quite_long_name_2 = 2;"
      s:expect_last "[2]>"
      s:send "print(quite_l"
      s:key "Tab"
      s:expect "[2]> print(quite_long_name_"
      s:key "Tab"
      s:expect "quite_long_name_1"
      s:expect "quite_long_name_2"
      s:send "2"
      shows(s, "[2]> print(quite_long_name_2")
    end)
  end)

  describe("signals", function()
    case("Ctrl-C drops a cell, Ctrl-D leaves", function(s)
      types(s, {"for i = 1, 2 do", "x"})
      s:key "C-c"
      s:expect_last "[1]>"
      assert.truthy(s:text():find("       x^C\n[1]>", 1, true))
      s:key "C-d"
      assert.equal(0, s:finish())
    end)
  end)

  describe("the editor", function()
    local function editing(name, body)
      local program = support.file("#!/bin/sh\nprintf 'x = 6\\ny = x * 7\\n' >>\"$1\"\n", ".sh")
      os.execute("chmod +x " .. program)
      case(name, {environment = "VISUAL=" .. program}, body)
    end

    editing("of the user is opened by Ctrl-X Ctrl-E", function(s)
      s:send "z = 1"
      s:key("C-x", "C-e")
      shows(s, "[1]> z = 1\n     x = 6\n     y = x * 7")
      s:key "Enter"
      s:expect_last "[2]>"
      s:enter "y + z"
      s:expect "\n43\n"
    end)

    case("survives errors in what it asks", function(s)
      s:enter "package.loaded['lutra.repl.complete'] = {at = function() error {} end};"
      s:expect_last "[2]>"
      s:send "pri"
      s:key "Tab"
      s:send "nt(6 * 7)"
      shows(s, "[2]> print(6 * 7)")
      s:key "Enter"
      s:expect "\n42\n"
    end)

    it(("comes back after Ctrl-Z (%d columns)"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns, command = "env PS1=shell: sh -i"}
      s:expect_last "shell:"
      s:enter(support.quote(support.program))
      s:expect_last "[1]>"
      types(s, {"x = {", "6 * 7"})
      s:key "C-z"
      s:expect_last "shell:"
      s:enter "fg"
      s:wait(function() return s:text():find("fg\n.*%[1%]> x = {\n       6 %* 7") end, "not drawn")
      s:send " }"
      s:key "Enter"
      s:expect_last "[2]>"
      s:enter "x"
      s:expect "{42}"
    end)
  end)

  describe("without readline", function()
    local function goes_on(name, environment)
      case(name, {environment = environment}, function(s)
        for i, line in ipairs {"for i = 1, 1 do", "print(i + 41)"} do
          s:enter(line)
          cursor_at(s, 6, "[1]>", i) -- the terminal echoes what is typed before it is asked for
        end
        s:enter "end"
        s:expect_last "[2]>"
        assert.truthy(s:text():find("\n42\n[2]>", 1, true))
        assert.falsy(s:text(true):find("\27", 1, true))
        s:key "C-d"
        assert.equal(0, s:finish())
      end)
    end
    goes_on("cells go on line by line with libedit", "LUTRA_READLINE=libedit.so.2")
    goes_on("cells go on line by line without any", "LUTRA_READLINE=none")
    goes_on("cells go on line by line on a dumb terminal", "TERM=dumb")

    case("the history of libedit shows cells as one line", {
      environment = "LUTRA_READLINE=libedit.so.2",
    }, function(s)
      s:enter "for i = 1, 1 do -- once"
      s:enter "  print(i + 41)"
      s:enter "end"
      s:expect_last "[2]>"
      s:key "Up"
      s:expect "[2]> for i = 1, 1 do print(i + 41) end"
      s:key "Enter"
      s:expect_last "[3]>"
    end)
  end)
end

describe("lutra --info", function()
  local function info(environment, terminal)
    if terminal and not support.has_terminal() then return nil end
    if terminal then return support.terminal({}, environment, "--info").out end
    return support.shell(environment .. " " .. support.quote(support.program) .. " --info").out
  end

  it("says why the prompt is plain", function()
    if info("TERM=xterm"):find "libreadline%S* not found" then
      return pending "needs libreadline"
    end
    assert.matches("line editor +none: stdin is not a terminal", info "TERM=xterm")
    if not support.has_terminal() then return pending "needs python3" end
    assert.matches("line editor +readline [78]", info("TERM=xterm", true))
    assert.matches("line editor +none: TERM is dumb", info("TERM=dumb", true))
    assert.matches("line editor +none: LUTRA_READLINE says so", info("LUTRA_READLINE=none", true))
    assert.matches("line editor +none: cannot use /no/such.so", info("LUTRA_READLINE=/no/such.so",
      true))
    assert.matches("line editor +libedit: no colours", info("LUTRA_READLINE=libedit.so.2", true))
  end)
end)

-- ---- the Lua half, which needs no terminal

local lexer = require "lutra.repl.lexer"
local editor = require "lutra.repl.editor"

describe("lexer", function()
  local function kinds(text)
    local list, whole = {}, ""
    for kind, token, first in lexer.tokens(text) do
      assert.equal(#whole + 1, first)
      whole = whole .. token
      if kind ~= "space" then list[#list + 1] = kind .. ":" .. token end
    end
    assert.equal(text, whole)
    return table.concat(list, " ")
  end

  it("knows the tokens of Lua", function()
    assert.equal("keyword:local name:x_1 op:= number:0x1p-4 op:.. string:'a\\'b' comment:-- c",
      kinds "local x_1 = 0x1p-4 .. 'a\\'b' -- c")
    assert.equal("number:3e+2 number:.5 number:1..2 op:... op:// op:>= op:~= op::: op:<<",
      kinds "3e+2 .5 1..2 ... // >= ~= :: <<")
    assert.equal("string:[==[ a ]] ]==] op:[ name:a op:]", kinds "[==[ a ]] ]==] [a]")
    assert.equal("comment:--[[ a\nb ]] name:c comment:--[=x name:d",
      kinds "--[[ a\nb ]] c --[=x\nd")
    assert.equal('string:"a\\z  \n  b" string:"a\\\nb"', kinds '"a\\z  \n  b" "a\\\nb"')
  end)

  it("marks invalid input as such, and continues", function()
    assert.equal("name:x bad:? bad:@ name:y", kinds "x ?@ y")
    assert.equal("bad:'abc name:d", kinds "'abc\nd")
    assert.equal("bad:[[ abc", kinds "[[ abc")
    assert.equal("bad:'abc\\", kinds "'abc\\")
    assert.equal("comment:--[[ abc", kinds "--[[ abc")
    assert.equal("bad:\0 bad:\255 name:a", kinds "\0\255a")
    assert.equal("", kinds "")
  end)

  it("leaves spaces and comments out of the significant ones", function()
    assert.same({{"name", "a", 2}, {"op", "=", 11}, {"number", "1", 13}},
      lexer.significant " a --[[]] = 1 -- c")
  end)

  it("refuses what is not text", function()
    assert.has_error(function() lexer.significant(nil) end)
  end)
end)

describe("editor", function()
  local session = require("lutra.repl.session").new()

  local function clean(text) return editor.clean(session, text) end

  it("indents by the blocks that are open", function()
    local function indent(text) return #editor.indent(text, #text) end
    assert.equal(0, indent "x = 1")
    assert.equal(2, indent "for i = 1, 2 do")
    assert.equal(4, indent "for i = 1, 2 do\n  if x then")
    assert.equal(2, indent "for i = 1, 2 do\n  if x then y() end")
    assert.equal(2, indent "f({")
    assert.equal(2, indent "f(function()")
    assert.equal(2, indent "repeat\n  x = 1")
    assert.equal(0, indent "repeat\n  x = 1\nuntil y")
    assert.equal(6, indent "    while x do")
    assert.equal(0, indent "x = 'for do {'")
    assert.equal(0, indent "do x = [[ a") -- a string's lines are its own
    assert.equal(0, indent "end end )")
  end)

  it("moves words that close a block", function()
    local function reindent(text) return editor.reindent(text, #text) end
    assert.equal("", reindent "do\n  end")
    assert.equal(nil, (reindent "do\nend")) -- stands there already
    assert.equal(nil, (reindent "do\n      end")) -- as the user typed it
    assert.equal("  ", reindent "do\nendp")
    assert.equal("  ", reindent "do\n  if x then\n    else")
    assert.equal(nil, (reindent "do\n  else"))
    assert.equal("", reindent "x = {\n  }")
    assert.equal(nil, (reindent "x = {\n  end"))
    assert.equal(nil, (reindent "end"))
  end)

  it("takes prompts and output out of a paste", function()
    assert.equal("x = 1\ny = 2\n", clean "x = 1\r\ny = 2\r\n")
    assert.equal("a\tb", clean "a\tb\0\27[31m\27")
    assert.equal("x = 1", clean "[12]> x = 1")
    assert.equal("x = {\n  1}\nx", clean "[1]> x = {\n       1}\n[2]> x\n{1}")
    assert.equal("x = [[a\n\nb]]", clean "[1]> x = [[a\n\n     b]]\nout")
    assert.equal("x = 1\ny = x", clean "\n[1]> x = 1\n     y = x\n1\n")
    assert.equal("print '     a'", clean "[1]> print '     a'\n     a b c\n")
    assert.equal("x = 1\nfor i = 1, 2 do\nend", clean "> x = 1\n> for i = 1, 2 do\n>> end\n3\n")
    assert.equal("x\n> y", clean "x\n> y") -- no prompt in its first line
    assert.equal("", clean "")
  end)

  it("makes one line of a cell for an editor that has only one", function()
    local join = require("lutra.repl.history").join
    assert.equal("for i = 1, 2 do print(i) end", join "for i = 1, 2 do -- twice\n  print(i)\nend")
    assert.equal("x = [[a\nb]] --[[ c ]] y = '--'", join "x = [[a\nb]] --[[ c ]]\ny = '--'")
    assert.equal("", join "-- only\n")
  end)

  it("lists candidates in columns", function()
    local found
    package.loaded["lutra.repl.complete"], found = {at = function() return found end},
      package.loaded["lutra.repl.complete"]
    local before = found
    found = {first = 1, last = 2, items = {{text = "one"}, {text = "only"}}}
    assert.same({1, 2, "on", "one   only"}, {editor.complete(session, "on", 2)})
    found = {first = 1, last = 2, items = {{text = "only"}}}
    assert.same({1, 2, "only"}, {editor.complete(session, "on", 2)})
    found = {first = 1, last = 0, items = {}}
    for i = 1, 500 do found.items[i] = {text = ("name_%03d"):format(i)} end
    local list = select(4, editor.complete(session, "", 0))
    assert.matches("^name_001 .*\n%.%.%. %d+ more$", list)
    found = nil
    assert.equal(nil, (editor.complete(session, "x", 1)))
    package.loaded["lutra.repl.complete"] = before
  end)
end)
