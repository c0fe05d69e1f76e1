-- The commands of the prompt in a notebook: what is paged, read, coloured, and not available.

local front = require "lutra.repl.front"
local kernel_support = require "kernel_support"
local lt = require "lutra"
local options = require "lutra.repl.options"
local style = require "lutra.repl.style"
local support = require "program_support"

local kernel, pages, answers, prompts
local files = getmetatable(io.stdout).__index -- the methods of files
local write = files.write

-- What running inputs in the session, one after the other, writes to stdout, without colours.
local function output(...)
  local parts = {}
  function files.write(file, ...)
    if file ~= io.stdout then return write(file, ...) end
    for _, part in ipairs {...} do parts[#parts + 1] = tostring(part) end
    return file
  end
  local ok, why = pcall(function(...)
    for _, text in ipairs {...} do kernel.ended = kernel.session:execute(text) end
  end, ...)
  files.write = write
  assert(ok, why)
  return (table.concat(parts):gsub("\27%[[%d;]*m", ""))
end

local has = support.has

before_each(function()
  kernel, pages, answers, prompts = kernel_support.kernel(), {}, {}, {}
  kernel.session.locals:set("lt", lt)
  front.notebook = {
    page = function(_, text) pages[#pages + 1] = text end,
    input = function(_, prompt)
      prompts[#prompts + 1] = prompt
      local answer = table.remove(answers, 1)
      if answer == nil then return nil, "eof" end
      if answer == false then return nil, "interrupt" end
      return answer
    end,
  }
  package.loaded["lutra.repl"] = {session = kernel.session}
end)

after_each(function()
  front.notebook = nil
  package.loaded["lutra.repl"] = nil
end)

describe("in a notebook", function()
  it("help is shown in the pager", function()
    local text = output(":help", "?lt.matmul", "lt.matmul?", ":apropos softmax", ":help timeit")
    assert.equal("", text)
    assert.equal(5, #pages)
    has(pages[2], "lt.matmul(")
    has(pages[5], ":timeit")
    assert.is_nil(pages[1]:find("Ctrl-C", 1, true))
    assert.is_nil(pages[1]:find("empty line", 1, true))
  end)

  it("output has colours and 100 columns, unless set otherwise", function()
    assert.equal(100, style.width())
    assert.is_true(style.on(1))
    assert.is_true(style.on(2))
    options.set("width", 60)
    options.set("colors", "off")
    local width, on = style.width(), style.on(1)
    options.set("width", 0)
    options.set("colors", "auto")
    assert.same({60, false}, {width, on})
  end)

  it("output is UTF-8 in any locale", function()
    local file = support.file [[
      require("lutra.repl.front").notebook = {}
      print(require("lutra.internal.text").is_utf8())]]
    local result = support.shell(("LC_ALL=C %s %s"):format(support.program, file))
    assert.equal("true\n", result.out)
    os.remove(file)
  end)

  it("has no colours with NO_COLOR", function()
    local file = support.file [[
      require("lutra.repl.front").notebook = {}
      print(require("lutra.repl.style").on(1))]]
    assert.equal("false\n", support.shell(("NO_COLOR=1 %s %s"):format(support.program, file)).out)
    assert.equal("true\n", support.shell(("env -u NO_COLOR TERM=dumb %s %s"):format(support.program,
      file)).out)
    os.remove(file)
  end)

  it(":edit reports that it is not available", function()
    output ":edit"
    has(kernel.errors[1], "edit: cannot open an editor: it is not available in a notebook\nhint: ")
  end)

  it("a shell command has an empty stdin and reports its status", function()
    local folder = support.folder()
    has(output("!cat >" .. folder .. "/read; exit 3"), "exit status 3")
    assert.equal("", assert(io.open(folder .. "/read")):read "a")
    support.remove(folder)
    assert.same({}, kernel.errors)
  end)

  it(":quit, quit and exit end the session", function()
    for _, text in ipairs {":quit", "quit", "exit()", ":q"} do
      output(text)
      assert.is_true(kernel.ended, text)
    end
    output "x = 1"
    assert.is_falsy(kernel.ended)
    x = nil -- luacheck: ignore
  end)

  it(":debug works cell by cell after an error", function()
    output("function inner(n) local secret = n + 1; error 'boom' end",
      "function outer(x) inner(x * 2) return x end", "outer(10)")
    has(kernel.errors[1], "boom")
    local text = output ":debug"
    has(text, "in function 'inner'")
    has(text, "\nThe next cells run in the marked frame; :continue leaves the debugger.\n")
    kernel.session.show = function(_, results) kernel.shown = results[1] end
    output "secret"
    assert.equal(21, kernel.shown)
    has(output ":locals", "secret = 21")
    has(output ":bt", "in function 'outer'")
    output(":up", "x")
    assert.equal(10, kernel.shown)
    output(":continue", "1 + 1")
    assert.equal(2, kernel.shown)
    inner, outer = nil, nil -- luacheck: ignore
  end)

  it("lt.breakpoint reads inputs from the front end until it continues", function()
    local seen = {}
    kernel.session.show = function(_, results) seen[#seen + 1] = results[1] end
    answers = {"a", "a = (", "a + 1)", ":c"}
    output "do local a = 5; lt.breakpoint(); kept = a end"
    assert.same({"debug> ", "debug> ", (" "):rep(7), "debug> "}, prompts)
    assert.same({5}, seen)
    assert.equal(6, kept) -- luacheck: ignore
    assert.same({}, kernel.errors)
    kept = nil -- luacheck: ignore
  end)

  it("lt.breakpoint continues at the end of input; :quit or an interrupt stop the code", function()
    answers = {}
    output "lt.breakpoint() passed = 1"
    assert.equal(1, passed) -- luacheck: ignore
    answers = {":quit"}
    output "lt.breakpoint() passed = 2"
    has(kernel.errors[1], "stopped in the debugger")
    answers = {false}
    output "lt.breakpoint() passed = 3"
    has(kernel.errors[2], "stopped in the debugger")
    assert.equal(1, passed) -- luacheck: ignore
    assert.is_nil(kernel.session.debugger)
    passed = nil -- luacheck: ignore
  end)

  it("an empty line ends an incomplete input at a breakpoint", function()
    answers = {"for i = 1, 2 do", "", ":c"}
    output "lt.breakpoint()"
    assert.equal(1, #kernel.errors)
    assert.equal(3, #prompts)
  end)

  it("a lesson says where to correct its code", function()
    local home = support.folder()
    local file = support.file [[
      require("lutra.repl.front").notebook = {next_input = function(_, text)
        print("NEXT " .. text)
      end}
      require("lutra.repl.globals").install()
      local session = require("lutra.repl.session").new()
      session:mark_builtin()
      session:execute ":lesson 1"
      session:execute ":hint solution"]]
    local line = ("XDG_STATE_HOME=%s NO_COLOR=1 LUTRA_EMULATE=%s %s %s")
    local result = support.shell(line:format(home, "cuda:2", support.program, file))
    has(result.out, "\nRun for you; correct it in the next cell:\n")
    assert.equal(2, select(2, result.out:gsub("NEXT function place%(%)\n", "")))
    assert.equal("", result.err)
    result = support.shell(line:format(home, "", support.program, file))
    has(result.err, "\nhint: restart the kernel, then :emulate cuda:2,memory=256MiB and "
      .. ":lesson 1\n")
    support.remove(home)
    os.remove(file)
  end)

  it("the pieces of a cell are one cell in :history and :save", function()
    local s, whole = kernel.session, "x = 1\n:pwd\ny = 2"
    s.number = 4
    s:execute("x = 1", whole)
    s.number = 4
    s:execute("\n\ny = 2", whole)
    assert.equal("x = 1\ny = 2", s.cells[4].text)
    assert.equal(whole, require("lutra.repl.host").sources["cell[4]"])
    has(output ":history", "[4]> x = 1\n     y = 2\n")
    x, y = nil, nil -- luacheck: ignore
  end)
end)
