--- An expression computed by ops, one after the other: on every device, with every dtype, and on
-- the tape.

local core = require "lutra.core"
local rows = require "lutra.elementwise.functions"

local compose = {}

-- A comparison of numbers gives true or false, with which one can calculate as with 1 and 0.
local function as_operand(x, beside_tensor)
  if type(x) ~= "boolean" then return x end
  if beside_tensor then return core.tensor(x) end
  return x and 1 or 0
end

local function apply(node, x, y, z)
  local row = rows[node.f]
  local any = core.is_tensor(x) or core.is_tensor(y) or core.is_tensor(z)
  if row.n == 2 and not row.test then x, y = as_operand(x, any), as_operand(y, any) end
  if row.n == 1 and not row.test then x = as_operand(x, false) end
  return (any and row.ops or row.number)(x, y, z)
end

--- The value of an expression; `order` is nodes.order of it, `values` are those of its names.
function compose.run(order, values)
  local done = {}
  for _, node in ipairs(order) do
    if node.f == "number" then
      done[node] = node.value
    elseif node.f == "name" then
      done[node] = values[node.name]
    else
      done[node] = apply(node, done[node[1]], done[node[2] or 0], done[node[3] or 0])
    end
  end
  local root = order[#order]
  if root.f == "name" and core.is_tensor(done[root]) then return done[root]:clone() end
  return done[root]
end

return compose
