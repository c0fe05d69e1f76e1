--- Expression graphs, which elementwise expressions are parsed into and differentiated in.
--
-- A node is a function of nodes ({f = "mul", x, y}), a number ({f = "number", value = 2}) or a
-- name ({f = "name", name = "x"}). Equal nodes of one arena are the same object, so that common
-- subexpressions are computed once.
--
-- Invariant: the id of a node is greater than the ids of its operands, so that nodes sorted by id
-- are in topological order.

local nodes = {}

local Arena = {}
Arena.__index = Arena

--- Returns a new arena. Nodes of different arenas must not be mixed.
function nodes.arena() return setmetatable({count = 0, known = {}}, Arena) end

local function intern(arena, key, node)
  local known = arena.known[key]
  if known then return known end
  arena.count = arena.count + 1
  node.id = arena.count
  arena.known[key] = node
  return node
end

--- Returns the node of a number; 2 and 2.0 are different, as in Lua.
function Arena:number(value)
  if value ~= value then value = 0 / 0 end
  local key = math.type(value) == "integer" and ("i%d"):format(value) or ("f%a"):format(value)
  return intern(self, key, {f = "number", value = value})
end

--- Returns the node of a name.
function Arena:name(name) return intern(self, "n" .. name, {f = "name", name = name}) end

--- Returns the node of function `f` of nodes, without simplification.
function Arena:call(f, ...)
  local node, key = {f = f, ...}, {f}
  for i, part in ipairs(node) do key[i + 1] = part.id end
  return intern(self, table.concat(key, ","), node)
end

-- Arithmetic with simplification, for derivatives --------------------------------------

local function is(node, value) return node.f == "number" and node.value == value end

-- Returns the constant f(x, y) of two numbers, or nil.
local function fold(arena, x, y, f)
  if x.f == "number" and y.f == "number" then return arena:number(f(x.value, y.value)) end
end

-- Returns where(c, f(x), f(y)) for f(where(c, x, y)) when x or y is 0, else nil. So a 0 for a
-- branch that is not selected is never multiplied by infinity.
local function distribute(arena, node, f)
  if node.f == "where" and (is(node[2], 0) or is(node[3], 0)) then
    return arena:where(node[1], f(node[2]), f(node[3]))
  end
end

--- Returns the node of -x.
function Arena:neg(x)
  if x.f == "neg" then return x[1] end
  if x.f == "number" then return self:number(-x.value) end
  return distribute(self, x, function(part) return self:neg(part) end) or self:call("neg", x)
end

--- Returns the node of x + y.
function Arena:add(x, y)
  if is(x, 0) then return y end
  if is(y, 0) then return x end
  if y.f == "neg" then return self:call("sub", x, y[1]) end
  if x.f == "where" and y.f == "where" and x[1] == y[1]
    and (is(x[2], 0) or is(y[2], 0)) and (is(x[3], 0) or is(y[3], 0)) then
    return self:where(x[1], self:add(x[2], y[2]), self:add(x[3], y[3]))
  end
  return fold(self, x, y, function(a, b) return a + b end) or self:call("add", x, y)
end

--- Returns the node of x - y.
function Arena:sub(x, y)
  if is(y, 0) then return x end
  if is(x, 0) then return self:neg(y) end
  return fold(self, x, y, function(a, b) return a - b end) or self:call("sub", x, y)
end

--- Returns the node of x * y; 0 when a factor is 0, whatever the other is.
function Arena:mul(x, y)
  if is(x, 0) or is(y, 0) then return self:number(0) end
  if is(x, 1) then return y end
  if is(y, 1) then return x end
  if is(x, -1) then return self:neg(y) end
  if is(y, -1) then return self:neg(x) end
  return fold(self, x, y, function(a, b) return a * b end)
    or distribute(self, x, function(part) return self:mul(part, y) end)
    or distribute(self, y, function(part) return self:mul(x, part) end)
    or self:call("mul", x, y)
end

--- Returns the node of x / y; 0 when x is 0, whatever y is.
function Arena:div(x, y)
  if is(x, 0) then return self:number(0) end
  if is(y, 1) then return x end
  return distribute(self, x, function(part) return self:div(part, y) end) or self:call("div", x, y)
end

--- Returns the node of x ^ y.
function Arena:pow(x, y)
  if is(y, 1) then return x end
  return self:call("pow", x, y)
end

--- Returns the node of where(condition, x, y).
function Arena:where(condition, x, y)
  if x == y then return x end
  return self:call("where", condition, x, y)
end

--- Returns the nodes of the graph of `root` in topological order; `root` is the last.
function nodes.order(root)
  local found, list, stack = {}, {}, {root}
  while #stack > 0 do
    local node = table.remove(stack)
    if not found[node] then
      found[node] = true
      list[#list + 1] = node
      for _, part in ipairs(node) do stack[#stack + 1] = part end
    end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

return nodes
