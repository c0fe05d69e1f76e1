-- The graph behind a tensor: as data, as text, as SVG; :grad.

local lt = require "lutra"
local core = require "lutra.core"
local graph = require "lutra.internal.plot.graph"
local graph_svg = require "lutra.internal.plot.graph_svg"
local graph_text = require "lutra.internal.plot.graph_text"
local program = require "program_support"

local function read(x, names, limit)
  return graph.read(x, limit or 1000, function(leaf)
    for name, tensor in pairs(names or {}) do
      if tensor == leaf then return name end
    end
  end)
end

local function lines(g, limit, width)
  return graph_text.lines(g, {limit = limit or 100, width = width or 80, utf8 = true,
    paint = function(_, text) return text end})
end

local function leaf(...) return lt.ones(..., {requires_grad = true}) end

local function look(input, environment)
  local line = ("env LC_ALL=C.UTF-8 NO_COLOR= %s %s -i --no-init"):format(environment or "",
    program.quote(program.program))
  local result = program.shell(line, table.concat(input, "\n") .. "\n")
  return result.out:gsub("%[%d+%]> ", ""), result.err
end

describe("a graph", function()
  it("has a node for each recorded call, with shapes and what it keeps", function()
    local a, b = leaf{2, 3}, leaf{3, 4}
    local nodes, total = core._graph(a:matmul(b):exp():sum(), 100)
    assert.equal(3, total)
    local names = {}
    for i, node in ipairs(nodes) do names[i] = node.name end
    assert.same({"SumBackward", "ExpBackward", "MmBackward"}, names)
    assert.same({2, 4}, table.move(nodes[1].inputs[1].shape, 1, 2, 1, {}))
    assert.equal(2, nodes[1].inputs[1].node)
    assert.equal("result", nodes[2].saved[1].what) -- exp's gradient is its result's
    assert.equal(32, nodes[2].saved[1].bytes)
    assert.is_true(nodes[3].inputs[1].leaf == a and nodes[3].inputs[2].leaf == b)
    assert.equal(2, #nodes[3].saved)
    assert.is_true(nodes[1].sequence > nodes[2].sequence)
  end)

  it("of a leaf is empty", function()
    assert.same({{}, 0}, {core._graph(leaf{2}, 10)})
    assert.same({{}, 0}, {core._graph(lt.ones(2), 10)})
    assert.is_false(pcall(core._graph, 3, 10))
  end)

  it("passes no gradient to what requires none", function()
    local nodes = core._graph(leaf{2} * lt.ones(2), 10)
    assert.equal(1, #nodes[1].inputs)
  end)

  it("shows what backward freed", function()
    local x = leaf{2}
    local y = x:exp()
    y:sum():backward()
    assert.is_true(core._graph(y, 10)[1].freed)
    assert.same({}, core._graph(y, 10)[1].saved)
  end)

  it("knows functions of the user's, views and writing in place", function()
    local Twice = lt.autograd.Function:extend "Twice"
    function Twice.forward(_, x) return x * 2 end
    function Twice.backward(_, g) return g * 2 end
    assert.equal("TwiceBackward", core._graph(Twice(leaf{2}), 10)[1].name)
    local x = leaf{2, 2}:clone()
    x[1]:mul_(3)
    local g = read(x)
    assert.equal("CopySlicesBackward", g.nodes[1].name)
    assert.equal("CopyBackward", g.nodes[g.nodes[1].below[1].number].name)
  end)

  it("counts edges, and measures the way down", function()
    local w = leaf{2}
    local h = w * 2
    local g = read((h * h + w):sum(), {w = w})
    local by_name = {}
    for _, node in ipairs(g.nodes) do by_name[node.name .. node.height] = node end
    assert.equal(4, g.nodes[1].height) -- sum, add, mul, mul, w
    assert.equal(2, by_name.MulBackward1.uses)
    assert.equal(1, #g.leaves)
    assert.equal(2, g.leaves[1].uses)
    assert.equal("w", g.leaves[1].name)
  end)

  it("is read to a limit, however deep", function()
    local c = leaf{1}
    for _ = 1, 100000 do c = c + 1 end
    local g = read(c, {}, 50)
    assert.equal(100000, g.total)
    assert.equal(50, #g.nodes)
    assert.is_true(g.nodes[50].below[1].cut)
    assert.equal(100000, #read(c, {}, 200000).nodes)
    c = nil -- luacheck: ignore
  end)
end)

describe("a graph as text", function()
  it("is flat where the network is deep", function()
    local w, b = leaf{3, 3}, leaf{3}
    local text = lines(read((w * b):exp():sum(), {w = w, b = b}))
    assert.same({
      "● SumBackward  {}",
      "● ExpBackward  {3, 3}  saves 36 B",
      "● MulBackward  {3, 3}  saves 48 B", -- w and b
      "├─ w  {3, 3}",
      "╰─ b  {3}",
    }, text)
  end)

  it("writes a node that is used twice once, below both", function()
    local w = leaf{2}
    local h = w + 1
    local text, shown = lines(read(h:exp() + h:neg():abs(), {w = w}))
    assert.same({
      "● AddBackward  {2}",
      "├─● ExpBackward  {2}  saves 8 B",
      "│ ╰─↓ AddBackward #1",
      "● AbsBackward  {2}  saves 8 B",
      "● NegBackward  {2}",
      "● AddBackward #1  {2}",
      "╰─ w  {2}",
    }, text)
    assert.equal(5, shown)
  end)

  it("does not go to the right with every layer of a residual network", function()
    local x = leaf{2}
    local y = x + 1
    for _ = 1, 50 do y = y + y:exp() end
    local most = 0
    for _, line in ipairs((lines(read(y), 1000))) do
      most = math.max(most, #line:match "^[│├╰─ ]*")
    end
    assert.is_true(most <= 9, most)
  end)

  it("ends after so many lines, and is cut to the width", function()
    local c = leaf{1}
    for _ = 1, 1000 do c = c:exp() + c end
    local text, shown = lines(read(c), 10, 12)
    assert.equal(10, #text)
    assert.is_true(shown <= 10)
    for _, line in ipairs(text) do assert.is_true(utf8.len(line) <= 12, line) end
  end)
end)

describe("a graph as SVG", function()
  -- Boxes as {class, x, y, width, name}.
  local function boxes(svg)
    local list = {}
    local pattern = '<rect class="(%a+)" x="([%d.]+)" y="([%d.]+)" '
      .. 'width="([%d.]+)"[^\n]-class="name"[^>]*>([^<]*)<'
    for class, x, y, width, name in svg:gmatch(pattern) do
      list[#list + 1] = {class = class, x = tonumber(x), y = tonumber(y), width = tonumber(width),
        name = name}
    end
    return list
  end

  it("has a box for each node and leaf edge, and an arrow for each edge", function()
    local w, b = leaf{2, 2}, leaf{2}
    local svg = graph_svg.text(read((w * b + w):sum(), {w = w, b = b}), "loss")
    local count = {}
    for _, box in ipairs(boxes(svg)) do
      count[box.class .. " " .. box.name] = (count[box.class .. " " .. box.name] or 0) + 1
    end
    assert.same({["node SumBackward"] = 1, ["node AddBackward"] = 1, ["node MulBackward"] = 1,
      ["leaf w"] = 2, ["leaf b"] = 1}, count)
    local _, arrows = svg:gsub('<path class="edge"', "")
    assert.equal(5, arrows)
    assert.truthy(svg:find("<title>loss</title>", 1, true))
  end)

  it("overlaps no boxes, and has each below what leads to it", function()
    lt.manual_seed(8)
    local x = leaf{2}
    local list = {x * 2}
    for i = 2, 60 do
      local a, b = list[math.random(#list)], list[math.random(#list)]
      list[i] = i % 3 == 0 and a:exp() or a + b * x
    end
    local all = list[1]
    for i = 2, #list do all = all + list[i] end
    local svg = graph_svg.text(read(all), "all")
    local width, height = svg:match 'width="(%d+)" height="(%d+)"'
    local drawn = boxes(svg)
    assert.is_true(#drawn > 100)
    for i, a in ipairs(drawn) do
      assert.is_true(a.x >= 0 and a.x + a.width <= tonumber(width))
      assert.is_true(a.y >= 0 and a.y + 40 <= tonumber(height))
      for j = i + 1, #drawn do
        local b = drawn[j]
        assert.is_true(a.y ~= b.y or a.x + a.width <= b.x or b.x + b.width <= a.x)
      end
    end
    for way in svg:gmatch '<path class="edge" d="([^"]*)"' do
      local top, bottom = way:match "^M[%d.]+ ([%d.]+)", way:match "([%d.]+)$"
      assert.is_true(tonumber(top) < tonumber(bottom), way)
    end
  end)

  it("spells names for XML", function()
    local x = leaf{2}
    local svg = graph_svg.text(read(x * 2, {['t["a<b&c"]'] = x}), 'f("<&>")')
    assert.truthy(svg:find("t[&quot;a&lt;b&amp;c&quot;]", 1, true))
    assert.truthy(svg:find("<title>f(&quot;&lt;&amp;&gt;&quot;)</title>", 1, true))
  end)
end)

describe(":grad", function()
  it("names leaves by the session's variables", function()
    local out, err = look{"net = nn.Sequential(nn.Linear(3, 2))", "local x = lt.randn(5, 3)",
      "loss = net(x):sum()", ":grad loss"}
    assert.equal("", err)
    assert.truthy(out:find("├─ net.1.bias  {2}\n", 1, true), out)
    assert.truthy(out:find("╰─ net.1.weight  {2, 3}\n", 1, true), out)
    assert.truthy(out:find("3 nodes, 2 leaves, saves ", 1, true), out)
  end)

  it("cuts what is long and says so", function()
    local out, err = look{"c = lt.ones{1, requires_grad = true}",
      "for i = 1, 100000 do c = c + 1 end", ":grad --lines 3 c", ":grad c"}
    assert.equal("", err)
    assert.truthy(out:find("... 99,997 more nodes\n", 1, true), out)
    assert.truthy(out:find("... 99,940 more nodes\n", 1, true), out)
  end)

  it("writes SVG", function()
    local folder = program.folder()
    local out = look{"w = lt.ones{2, requires_grad = true}",
      (":grad --svg %s/g.svg (w * 2):sum()"):format(folder)}
    assert.equal(("wrote 2 nodes to %s/g.svg\n"):format(folder), (out:gsub("\n\n$", "\n")))
    local file = assert(io.open(folder .. "/g.svg"))
    local text = file:read "a"
    file:close()
    program.remove(folder)
    assert.truthy(text:find "^<svg xmlns=.*</svg>\n$")
    assert.truthy(text:find(">w</text>", 1, true))
  end)

  it("reports what has no graph, and what it expects", function()
    local out, err = look{":grad lt.ones{2, requires_grad = true}", ":grad lt.ones(2)", ":grad",
      ":grad 3", ":grad --lines x lt.ones(2)", ":grad --svg /no/x.svg lt.ones{1, " ..
        "requires_grad = true} * 2"}
    assert.truthy(out:find("a leaf tensor: its gradient is in .grad", 1, true))
    assert.truthy(out:find("it does not require grad", 1, true))
    assert.truthy(err:find("grad: expected an expression, got none", 1, true))
    assert.truthy(err:find("grad: expected a tensor, got a number", 1, true))
    assert.truthy(err:find('expected an integer of at least 1 for option --lines, got "x"', 1,
      true))
    assert.truthy(err:find('grad: cannot write "/no/x.svg": No such file', 1, true))
  end)
end)
