-- data.read_csv: RFC 4180, inferred types, missing values, errors with line and column.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

local path = os.tmpname()

local function read(text, options)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return data.read_csv(path, options)
end

describe("data.read_csv", function()
  teardown(function() os.remove(path) end)

  it("infers the types of columns", function()
    local csv = read("id,price,name,open,mixed\n1,2.5,ann,true,1\n-2,1e3,bob,false,x\n")
    assert.equal(2, #csv)
    assert.same({"id", "price", "name", "open", "mixed"}, csv.names)
    assert.same({1, -2}, csv:column("id"):totable())
    assert.equal("int64", csv.columns.id.dtype)
    assert.same({2.5, 1000.0}, csv:column(2):totable())
    assert.equal("float64", csv.columns.price.dtype)
    assert.same({"ann", "bob"}, csv:column "name")
    assert.same({true, false}, csv.columns.open:totable())
    assert.same({"1", "x"}, csv.columns.mixed)
    assert.same({id = -2, price = 1000.0, name = "bob", open = false, mixed = "x"}, csv:row(2))
    assert.equal("CSV data of 2 rows: id, price, name, open, mixed", tostring(csv))
  end)

  it("reads quotes, line breaks in fields, CRLF, a byte order mark and empty lines", function()
    local csv = read('\xEF\xBB\xBFa,"b ""x""",c\r\n"1,5","line 1\r\nline 2",3\r\n\r\n"",z,"4"')
    assert.same({"a", 'b "x"', "c"}, csv.names)
    assert.same({"1,5", ""}, csv:column "a")
    assert.same({"line 1\r\nline 2", "z"}, csv:column(2))
    assert.same({3, 4}, csv:column("c"):totable())
    assert.same({1, 2}, read("a\r1\r2\r"):column("a"):totable())
    assert.same({1, 2}, read("a\n1\n2"):column("a"):totable())
  end)

  it("combines columns to a tensor", function()
    local csv = read("x,y,name\n1,0.5,a\n2,1.5,b\n")
    local x = csv:tensor{"x", "y"}
    assert.equal("float32", x.dtype)
    assert.same({{1, 0.5}, {2, 1.5}}, x:totable())
    assert.same({{1}, {2}}, csv:tensor({"x"}, "int64"):totable())
    fails("expected columns of numbers, got strings in 'name'", function() csv:tensor() end)
    fails({"expected a column of the file", "did you mean 'name'"},
      function() csv:column "nmae" end)
    fails("from 1 to 2", function() csv:row(3) end)
  end)

  it("has options", function()
    local csv = read("# a comment, with a comma\n1;2;3\n4;5;6\n",
      {delimiter = ";", header = false, skip = 1})
    assert.same({"column_1", "column_2", "column_3"}, csv.names)
    assert.same({2, 5}, csv:column("column_2"):totable())
    csv = read("1,2\n3,4\n", {header = false, names = {"a", "b"}, max_rows = 1})
    assert.same({{1, 2}}, csv:tensor():totable())
    csv = read("a,b,c\n1,2,3\n", {columns = {"c", 1}})
    assert.same({"a", "c"}, csv.names)
    assert.same({'5" disk'}, read('a\n5" disk\n', {quote = false}):column "a")
  end)

  it("reads missing values as NaN and empty strings, and counts them", function()
    local csv = read("n,s,t\n1,x,\n,NA,\nNaN,z,\n")
    local n = csv:column("n"):totable()
    assert.equal(1.0, n[1])
    assert.is_true(n[2] ~= n[2] and n[3] ~= n[3])
    assert.same({"x", "", "z"}, csv:column "s")
    assert.same({n = 2, s = 1, t = 3}, csv.missing)
    assert.same({"?", "1"}, read("a\n?\n1\n"):column "a")
    assert.equal(1, read("a\n?\n1\n", {missing_values = {"?"}}).missing.a)
    fails({path .. ":3:1: expected a value of the column 'n'"},
      function() read("n,s\n1,x\n,y\n", {missing = "error"}) end)
  end)

  it("reads numbers as decimal numbers only", function()
    assert.same({math.huge, -math.huge}, read("a\ninf\n-Infinity\n"):column("a"):totable())
    assert.same({9223372036854775807}, read("a\n9223372036854775807\n"):column("a"):totable())
    assert.equal("float64", read("a\n9223372036854775808\n"):column("a").dtype)
    assert.same({1.5, 0.5, 2.0}, read("a\n +1.5\n.5\n2.\n"):column("a"):totable())
    for _, text in ipairs{"0x10", "1e", "1-2", "--1", ".", "1 2", "e5"} do
      assert.same({text}, read("a\n" .. text .. "\n"):column "a")
    end
  end)

  it("names line and column of an error", function()
    fails({path .. ":3:1: expected 2 fields, as in the first line, got 1"},
      function() read "a,b\n1,2\n3\n" end)
    fails({path .. ":4:7: expected 2 fields, as in the first line, got 3"},
      function() read 'a,b\n"1\n",2\n12,34,5\n' end)
    fails({path .. ":2:3: expected a closing quote"}, function() read 'a,b\n1,"2\n3,4\n' end)
    fails({path .. ":2:4: expected a delimiter or the end of the line after a quote, got \"x\""},
      function() read 'a\n"1"x\n' end)
    fails({path .. ":2:2: expected no quote", "quote = false"}, function() read 'a\n1"2\n' end)
    fails("the file has no lines", function() read "" end)
    fails({"different names of columns, got 'a' for the columns 1 and 2"},
      function() read "a,a\n1,2\n" end)
    fails("expected at most 16384 fields", function() read((","):rep(1 << 14)) end)
    fails("expected at most 16777216 bytes", function() read(("x"):rep((1 << 24) + 1)) end)
    fails("cannot open /no/such/file", function() data.read_csv "/no/such/file" end)
    fails("one character for argument 'delimiter'", function() read("a", {delimiter = "ab"}) end)
    fails("columns[1]", function() read("a\n1\n", {columns = {"b"}}) end)
    fails("2 names", function() read("a,b\n1,2\n", {names = {"a"}}) end)
  end)

  it("reads any bytes, or raises an error of its own", function()
    math.randomseed(17)
    local alphabet = {'"', ",", "\n", "\r", "1", ".", "-", "a", "\0", "\xEF\xBB\xBF", "e", '""',
      " "}
    for _ = 1, 1000 do
      local parts = {}
      for i = 1, math.random(0, 30) do parts[i] = alphabet[math.random(#alphabet)] end
      local text = table.concat(parts)
      local ok, result = pcall(read, text)
      if ok then
        for _, name in ipairs(result.names) do
          assert.equal(result.rows, #result.columns[name])
        end
      else
        assert.is_truthy(tostring(result):find "read_csv: ", ("%q: %s"):format(text, result))
      end
    end
  end)
end)
