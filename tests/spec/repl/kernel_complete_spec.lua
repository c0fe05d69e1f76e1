-- complete_request and is_complete_request, as the protocol describes them.

local complete = require "lutra.repl.kernel.complete"
local is_complete = require "lutra.repl.kernel.is_complete"
local kernel_support = require "kernel_support"
local support = require "program_support"

local kernel

before_each(function() kernel = kernel_support.kernel() end)

-- The reply for code with the cursor at |.
local function reply(code)
  local text, cursor = kernel_support.cursor(code)
  return kernel_support.sent(complete.complete_request(kernel, {code = text, cursor_pos = cursor}))
end

-- The code with the only match in place of its range.
local function completed(code)
  local text, one = kernel_support.cursor(code), reply(code)
  assert.equal(1, #one.matches, ("%q has %d matches"):format(code, #one.matches))
  local from, to = utf8.offset(text, one.cursor_start + 1), utf8.offset(text, one.cursor_end + 1)
  return text:sub(1, from - 1) .. one.matches[1] .. text:sub(to)
end

-- The types of the matches, by text.
local function types(code)
  local list = {}
  for _, item in ipairs(reply(code).metadata._jupyter_types_experimental) do
    list[item.text] = item.type
  end
  return list
end

describe("complete_request", function()
  it("returns matches for a range in code points", function()
    local one = reply "print(tonu"
    assert.equal("ok", one.status)
    assert.same({"tonumber"}, one.matches)
    assert.same({6, 10}, {one.cursor_start, one.cursor_end})
    one = reply 'local s = "äöü€😀" print(tonu| .. s)'
    assert.same({"tonumber"}, one.matches)
    assert.same({24, 28}, {one.cursor_start, one.cursor_end})
  end)

  it("has matches that replace the range as a whole", function()
    kernel.session:execute "local net = {weight = 1}"
    assert.equal("net.weight = 2", completed "net.wei| = 2")
    assert.equal("é = net.weight", kernel_support.cursor(completed("é = net.wei|")))
  end)

  it("replies without matches as ok, with an empty range at the cursor", function()
    for _, code in ipairs {"-- ta|", "xyzzy_nothing|", "3.1|", "ä = xyzzy_no|"} do
      local one, cursor = reply(code), select(2, kernel_support.cursor(code))
      assert.same({}, one.matches)
      assert.same({"ok", cursor, cursor}, {one.status, one.cursor_start, one.cursor_end})
    end
  end)

  it("takes a cursor outside of the text as its nearest end", function()
    local function range(cursor)
      local one = complete.complete_request(kernel, {code = "tonu", cursor_pos = cursor})
      return {one.cursor_start, one.cursor_end}
    end
    assert.same({0, 4}, range(99))
    assert.same({0, 4}, range(nil))
    assert.same({0, 0}, range(-1))
  end)

  it("tells types and signatures in the metadata", function()
    kernel.session:execute "local function scale(x, factor) end"
    local item = reply "scal".metadata._jupyter_types_experimental[1]
    assert.same({start = 0, ["end"] = 4, text = "scale", type = "function",
      signature = "(x, factor)"}, item)
    assert.equal("keyword", types "whil"["while"])
    assert.equal("module", types "strin"["string"])
    assert.equal("class", types "nn.Linea"["Linear"])
    assert.equal("function", types "lt.matmu"["matmul"])
    kernel.session:execute "local thing = {}"
    assert.equal("instance", types "thin"["thing"])
    assert.equal("param", types "nn.Linear{in_feat"["in_features"])
  end)

  it("knows variables of the cell that did not run", function()
    assert.same({"weight_decay"}, reply "local weight_decay = 3\nprint(weight_d|)".matches)
    assert.same({"weight_decay"}, reply ":whos\nlocal weight_decay = 3\nprint(weight_d|)".matches)
  end)

  it("completes commands at the beginning of a line", function()
    assert.equal(":timeit", completed ":timei")
    assert.equal(":timeit x", completed ":timei| x")
    assert.equal("local x = f()\n:timeit", completed "local x = f()\n:timei")
    assert.equal("ä = 1\n:whos\n:devices", completed "ä = 1\n:whos\n:devi")
    assert.equal("command", types ":whos\n:devi"["devices"])
  end)

  it("takes any line end", function()
    assert.equal("x = 1\r\n:whos\r\nprint(tostring", completed "x = 1\r\n:whos\r\nprint(tostri")
    assert.equal(":pwd\r:whos\r", completed ":pwd\r:who|\r")
  end)

  it("completes the arguments of commands: options, code, names, files", function()
    assert.equal(":set colors", completed ":set colo")
    assert.equal(":timeit lt.matmul", completed ":timeit lt.matmu")
    assert.equal("x = 1\n:help timeit", completed "x = 1\n:help timei")
    assert.equal("?lt.matmul", completed "?lt.matmu")
    local folder = support.folder()
    support.shell("touch " .. folder .. "/data.csv")
    assert.equal(":run " .. folder .. "/data.csv", completed(":run " .. folder .. "/dat"))
    assert.equal('io.open("' .. folder .. '/data.csv', completed('io.open("' .. folder .. "/dat"))
    assert.equal("path", types("x = 1\n!cat " .. folder .. "/dat")[folder .. "/data.csv"])
    support.remove(folder)
  end)

  it("completes a method in the next line", function()
    kernel.session:execute 'local x = require("lutra").ones(2)'
    assert.same({"cumsum", "cumsum_"}, reply "y = x\n  :cums".matches)
  end)

  it("reports a field of a wrong type", function()
    assert.error_matches(function() complete.complete_request(kernel, {code = 5}) end,
      "expected a string as 'code', got number")
    assert.error_matches(function()
      complete.complete_request(kernel, {code = "", cursor_pos = "1"})
    end, "expected an integer as 'cursor_pos', got string")
  end)

  it("runs no code", function()
    kernel.session:execute [[ran = 0
      trap = setmetatable({}, {__index = function() ran = ran + 1 end,
        __pairs = function() ran = ran + 1 end})]]
    reply "trap."
    reply "ran = 5 trap.x."
    assert.equal(0, ran) -- luacheck: ignore
  end)
end)

describe("is_complete_request", function()
  local function status(code)
    return kernel_support.sent(is_complete.is_complete_request(kernel, {code = code}))
  end

  it("knows complete code", function()
    for _, code in ipairs {"x = 1", "1 + 1", "", "\n\n", "-- a comment", "--[[ a\ncomment ]]",
      "for i = 1, 3 do print(i) end", "function f() end", "x", "print 'hello'", "f{\n}",
      ":whos", ":nothing", "!ls", "?x", "x??", ":timeit x + 1", "x = 1\n:whos", "return",
      "goto a ::a::", ":timeit\nfor i = 1, 3 do end"} do
      assert.same({status = "complete"}, status(code), code)
    end
  end)

  it("knows incomplete code, and how its next line is indented", function()
    for code, indent in pairs {["for i = 1, 3 do"] = "  ", ["f("] = "  ",
      ["x = {\n  a = 1,"] = "  ", ["if a then\n  while b do"] = "    ", ["x = [[ text"] = "",
      ["--[[ text"] = "", ["x ="] = "", ["function f(a, b)"] = "  ", ["x = 1 +"] = "",
      [":timeit for i = 1, 3 do"] = "  ", [":whos\nfor i = 1, 3 do"] = "  ",
      ["local t = f(function()\n  return {"] = "    "} do
      assert.same({status = "incomplete", indent = indent}, status(code), code)
    end
  end)

  it("knows code that no further line completes", function()
    for _, code in ipairs {"function() function() end end", "x = = 1", "end", ")", "x = 1 y = (2))",
      'print("abc', "1 1", "%timeit x", "for 1 do", ":whos\nx = )", "local 1"} do
      assert.same({status = "invalid"}, status(code), code)
    end
  end)
end)
