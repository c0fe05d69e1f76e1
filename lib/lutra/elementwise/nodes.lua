--- Expressions as graphs: what elementwise expressions are parsed into and derived in.
--
-- Idea: a node is a function of nodes ({f = "mul", x, y}), a number ({f = "number", value = 2}) or
-- a name ({f = "name", name = "x"}). Equal nodes of one arena are one object, so what occurs twice
-- is computed once, wherever it came from.
--
-- Invariant: a node's id is above the ids of its parts: going through nodes by id meets each after
-- its parts.

local nodes = {}

local Arena = {}
Arena.__index = Arena

--- A new arena: nodes of one are never mixed with those of another.
function nodes.arena() return setmetatable({count = 0, known = {}}, Arena) end

local function intern(arena, key, node)
  local known = arena.known[key]
  if known then return known end
  arena.count = arena.count + 1
  node.id = arena.count
  arena.known[key] = node
  return node
end

--- A number; 2 and 2.0 are different ones, as they are in Lua.
function Arena:number(value)
  if value ~= value then value = 0 / 0 end
  local key = math.type(value) == "integer" and ("i%d"):format(value) or ("f%a"):format(value)
  return intern(self, key, {f = "number", value = value})
end

function Arena:name(name) return intern(self, "n" .. name, {f = "name", name = name}) end

--- The function `f` of nodes, as it stands.
function Arena:call(f, ...)
  local node, key = {f = f, ...}, {f}
  for i, part in ipairs(node) do key[i + 1] = part.id end
  return intern(self, table.concat(key, ","), node)
end

-- Derivatives are made by these: the same functions, less what says nothing -----------

local function is(node, value) return node.f == "number" and node.value == value end

-- A fold of two numbers, or nil.
local function fold(arena, x, y, f)
  if x.f == "number" and y.f == "number" then return arena:number(f(x.value, y.value)) end
end

-- f(where(c, x, y)) with a 0 in it is where(c, f(x), f(y)): so a 0 that stands for "not chosen" is
-- never multiplied by an infinity.
local function into(arena, node, f)
  if node.f == "where" and (is(node[2], 0) or is(node[3], 0)) then
    return arena:where(node[1], f(node[2]), f(node[3]))
  end
end

function Arena:neg(x)
  if x.f == "neg" then return x[1] end
  if x.f == "number" then return self:number(-x.value) end
  return into(self, x, function(part) return self:neg(part) end) or self:call("neg", x)
end

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

function Arena:sub(x, y)
  if is(y, 0) then return x end
  if is(x, 0) then return self:neg(y) end
  return fold(self, x, y, function(a, b) return a - b end) or self:call("sub", x, y)
end

function Arena:mul(x, y)
  if is(x, 0) or is(y, 0) then return self:number(0) end
  if is(x, 1) then return y end
  if is(y, 1) then return x end
  if is(x, -1) then return self:neg(y) end
  if is(y, -1) then return self:neg(x) end
  return fold(self, x, y, function(a, b) return a * b end)
    or into(self, x, function(part) return self:mul(part, y) end)
    or into(self, y, function(part) return self:mul(x, part) end)
    or self:call("mul", x, y)
end

function Arena:div(x, y)
  if is(x, 0) then return self:number(0) end
  if is(y, 1) then return x end
  return into(self, x, function(part) return self:div(part, y) end) or self:call("div", x, y)
end

function Arena:pow(x, y)
  if is(y, 1) then return x end
  return self:call("pow", x, y)
end

function Arena:where(condition, x, y)
  if x == y then return x end
  return self:call("where", condition, x, y)
end

--- The nodes that `root` is made of, itself the last, each after its parts.
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
