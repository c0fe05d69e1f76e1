-- :where: which elements of its storage a tensor sees, as text and as SVG.

local storage = require "lutra.internal.plot.storage"
local support = require "pictures_support"

local look, is_closed, read_file = support.look, support.is_closed, support.read_file
local widest = support.widest

describe("a storage", function()
  local letters = {used = "#", part = "+", free = "."}
  local function row(view, bytes, width)
    local columns = storage.columns(view, bytes, width)
    for i, kind in ipairs(columns) do columns[i] = letters[kind] end
    return table.concat(columns)
  end
  local column = {offset = 1, shape = {3}, strides = {4}, itemsize = 4} -- of a matrix {3, 4}

  it("is a row of columns with the elements of a view", function()
    assert.equal(".#...#...#..", row(column, 48, 12))
    assert.equal("+.+.+.", row(column, 48, 6))
    assert.equal("+++", row(column, 48, 3))
    assert.equal("..##...##...", row({offset = 2, shape = {2, 2}, strides = {5, 1}, itemsize = 4},
      48, 12))
    assert.equal("##..", row({offset = 0, shape = {4}, strides = {1}, itemsize = 2}, 16, 4))
    assert.equal("....", row({offset = 0, shape = {0}, strides = {1}, itemsize = 2}, 16, 4))
    assert.equal(("+"):rep(4), row({offset = 0, shape = {3000}, strides = {2}, itemsize = 4}, 24000,
      4)) -- too many runs to be distinguished
  end)

  it("has an extent of a view, counted from 1", function()
    assert.equal("elements 2 to 10 of 12", storage.extent(column, 48))
    assert.equal("element 12 of 12", storage.extent({offset = 11, shape = {}, strides = {},
      itemsize = 4}, 48))
    assert.is_nil(storage.extent({offset = 0, shape = {2, 0}, strides = {1, 1}, itemsize = 4}, 8))
  end)
end)

describe(":where", function()
  local lines = {"y = lt.arange(12):reshape(3, 4)", "c = y:select(2, 2)", "d = y:t()", "e = c",
    ":where c"}

  it("draws the storage with a bar for each view on it", function()
    local out, err = look(lines, {arguments = ""})
    assert.equal("", err)
    assert.truthy(out:find("extent   elements 2 to 10 of 12\nheld by  c, d, e, y\n"
      .. "  c, e   [·█···█···█··]\n  d      [████████████]\n  y      [████████████]\n"
      .. "█ its elements, · rest, a column is an element\n", 1, true), out)
    out = look(lines, {arguments = "", locale = "C"})
    assert.truthy(out:find("\n  c, e   [.#...#...#..]\n", 1, true), out)
  end)

  it("draws a large storage in 40 columns at most, and cuts names", function()
    local out = look({"x = lt.zeros{10, 1000, dtype = 'uint8'}", ":set width 40",
      ":where lt.zeros(2, 1000)", ":where x:narrow(1, 4, 2)"},
      {arguments = ""})
    assert.truthy(out:find("\n  lt.zeros(2, 10.. [" .. ("█"):rep(18) .. "]\n", 1, true), out)
    -- rows 4 and 5 of 10: of 18 columns 5.4 to 9
    assert.truthy(out:find("\n  x:narrow(1, 4,.. [·····▄███·········]\n", 1, true), out)
    assert.truthy(out:find("\n  x                [" .. ("█"):rep(18) .. "]\n", 1, true), out)
    assert.truthy(out:find("a column is about 556 elements", 1, true), out)
    assert.is_true(widest(out:match "device.*") <= 39, out)
  end)

  it("names no more views than can be distinguished", function()
    local out = look({"x = lt.zeros(20)", "v = {} for i = 1, 20 do v[i] = x:narrow(1, i, 1) end",
      ":where x"}, {arguments = ""})
    assert.truthy(out:find("\n  and 15 more views\n", 1, true), out)
    assert.truthy(out:find "v%[20%] and 1%s+more\n", out) -- twenty of the 21 names
  end)

  it("works where names are many and long", function()
    local path = os.tmpname()
    local out, err = look({"x = lt.zeros(20)", "v = {} for i = 1, 5000 do v[i] = x end",
      "v[('n'):rep(500)] = x", ":where x", ":where x --svg " .. path}, {arguments = ""})
    assert.equal("", err)
    assert.is_true(widest(out:match "device.*") <= 79, out)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(tonumber(text:match 'width="(%d+)"') < 1100, text)
  end)

  it("says that elements are seen more than once", function()
    local out = look({"x = lt.zeros(4)", ":where x:expand(3, 4)", ":where x, lt.zeros(2)"},
      {arguments = ""})
    assert.truthy(out:find("48 B, of a storage of 16 B: elements are repeated", 1, true))
    assert.truthy(out:find("\n  x      %[████%]\n.*\n\ndevice .*\n  value 2 %[██%]\n"), out)
  end)

  it("says what was meant, and what was nothing", function()
    local _, err = look({":where x y"}, {arguments = ""})
    local _, count = err:gsub("1 | x y", "")
    assert.equal(1, count, err)
    _, err = look({"weights = lt.zeros(3)", ":where wieghts", ":where nil", ":where abc.d",
      ":where abc", ":where lt.zeros(1), lt.zeros(2) --svg x.svg"}, {arguments = ""})
    assert.truthy(err:find("got nil\nhint: did you mean 'weights'?", 1, true), err)
    assert.truthy(err:find("where: expected a tensor, a module or a table of tensors, got nil", 1,
      true), err)
    assert.truthy(err:find("where: expected a tensor, a module or a table of tensors, got nil", 1,
      true), err)
    assert.truthy(err:find("expected one tensor for option --svg", 1, true), err)
  end)
end)

describe(":where --svg", function()
  local runs = storage.runs

  it("marks the elements that a tensor sees", function()
    assert.same({{0, 11}}, runs(0, {3, 4}, {4, 1}))
    assert.same({{0, 11}}, runs(0, {4, 3}, {1, 4})) -- turned round, they are all of them still
    assert.same({{1, 1}, {5, 5}, {9, 9}}, runs(1, {3}, {4}))
    assert.same({{1, 2}, {5, 6}, {9, 10}}, runs(1, {3, 2}, {4, 1}))
    assert.same({{7, 7}}, runs(7, {}, {}))
    assert.same({{2, 2}}, runs(2, {5, 1}, {0, 9})) -- expanded: one element, again and again
    assert.same({{0, 4}}, runs(0, {3, 3}, {1, 1})) -- overlapping
    assert.same({}, runs(3, {0, 4}, {4, 1}))
    local list, complete = runs(1, {3000}, {2})
    assert.same({{1, 5999}}, list)
    assert.is_false(complete)
  end)

  it("writes the storage with the view marked", function()
    local path = os.tmpname()
    local out, err = look({"x = lt.zeros(3, 4)", "y = x:select(2, 2)",
      ":where --svg " .. path .. " y", ":where y --svg " .. path}, {arguments = ""})
    assert.equal("", err)
    local _, count = out:gsub("the picture to ", "")
    assert.equal(2, count)
    local text = read_file(path)
    os.remove(path)
    assert.is_true(is_closed(text), text)
    -- y sees elements 2, 6 and 10 of 12, x all of them
    local mine, all = {}, 0
    for number in text:gmatch "<title>element (%d+): elements of the tensor</title>" do
      if #mine < 3 then mine[#mine + 1] = tonumber(number) else all = all + 1 end
    end
    assert.same({2, 6, 10}, mine, text)
    assert.equal(12, all, text)
    assert.truthy(text:find("extent   elements 2 to 10 of 12", 1, true), text)
    assert.truthy(text:find("strides  {4}, not contiguous", 1, true), text)
  end)

  it("draws what has no data, or no elements", function()
    local path = os.tmpname()
    for _, expression in ipairs {"lt.zeros(0)", "lt.empty{2, device = 'meta'}", "lt.tensor(1)"} do
      local _, err = look({":where --svg " .. path .. " " .. expression}, {arguments = ""})
      assert.equal("", err)
      assert.is_true(is_closed(read_file(path)))
    end
    os.remove(path)
  end)

  it("says what cannot be drawn or written", function()
    local _, err = look({":where --svg /nowhere/x.svg lt.zeros(2)", ":where --svg x.svg {}",
      ":where --svg x.svg nn.ReLU()", ":where --svg x.svg 3", ":where --svg x.svg"},
      {arguments = ""})
    assert.truthy(err:find("where: cannot write \"/nowhere/x.svg\": ", 1, true), err)
    assert.truthy(err:find("where: expected one tensor for option --svg, got a table", 1, true),
      err)
    assert.truthy(err:find("where: expected one tensor for option --svg, got a module", 1, true),
      err)
    assert.truthy(err:find("where: expected one tensor for option --svg, got a number", 1, true),
      err)
    assert.truthy(err:find("where: expected a value for option --svg", 1, true), err)
  end)
end)
