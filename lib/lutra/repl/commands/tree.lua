--- The command :tree: a module or nested tables of tensors as a tree.

local core = require "lutra.core"
local inspect = require "lutra.repl.inspect"

local tree = {}

--- For a module: its modules, parameters and buffers, with the number of parameters and their bytes
-- on each device; shared tensors count once. For a table, such as a state dict: its entries.
function tree.tree(session, text)
  local values = inspect.values(session, "tree", text)
  local value = values[1]
  if type(value) ~= "table" and not core.is_tensor(value) then
    error(("tree: expected a module or a table, got %s"):format(inspect.a(value)), 0)
  end
  local rich = require "lutra.repl.rich.tree"
  require("lutra.repl.rich.show")(rich.text(value), function()
    return {["text/html"] = rich.html(value)}
  end)
end

return tree
