--- Derivatives of expressions, in reverse: each node hands its gradient to its parts by the slope
-- of its row in functions.lua.

local nodes = require "lutra.elementwise.nodes"
local rows = require "lutra.elementwise.functions"

local derive = {}

--- The gradient of each name in `root`, whose own gradient is the node `g`: a table from name to
-- node; a name that changes nothing has none.
function derive.gradients(arena, root, g)
  local gradient, found = {[root] = g}, {}
  local order = nodes.order(root)
  for i = #order, 1, -1 do
    local node = order[i]
    local own, row = gradient[node], rows[node.f]
    if own and node.f == "name" then
      found[node.name] = own
    elseif own and row then
      local slopes = table.pack(row.slope(arena, own, node, node[1], node[2], node[3]))
      for k = 1, row.n do
        local part, slope = node[k], slopes[k]
        if slope and part.f ~= "number" then
          gradient[part] = gradient[part] and arena:add(gradient[part], slope) or slope
        end
      end
    end
  end
  return found
end

return derive
