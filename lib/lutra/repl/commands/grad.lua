--- The command :grad: the autograd graph of a tensor.

local core = require "lutra.core"
local command_line = require "lutra.repl.command_line"
local inspect = require "lutra.repl.inspect"
local style = require "lutra.repl.style"
local texts = require "lutra.internal.text"

local grad = {}

local LINES, DRAWN = 60, 500 -- the maximum number of lines, and of nodes in a picture in a file

local function fail(message, ...) error("grad: " .. message:format(...), 0) end

-- Returns a function from a leaf tensor to the shortest path to it from the session's variables.
local function namer(session)
  local holders = inspect.holders(inspect.variables(session))
  return function(leaf)
    local best
    for _, holder in ipairs(holders[core._memory(leaf)] or {}) do
      if holder.tensor == leaf and (not best or #holder.path < #best) then best = holder.path end
    end
    return best
  end
end

local function write_svg(g, path, title)
  local picture = require("lutra.internal.plot.graph_svg").text(g, title)
  local ok, why = require("lutra.repl.files").write(path, picture)
  if not ok then fail("cannot write %s", why) end
  io.stdout:write(("wrote %s to %s\n"):format(texts.plural(#g.nodes, "node"), path))
  if g.total > #g.nodes then
    io.stdout:write(("(the nearest of %s)\n"):format(texts.count(g.total)))
  end
end

local function count_of(value)
  local n = math.tointeger(tonumber(value))
  if not n or n < 1 then
    fail("expected an integer of at least 1 for option --lines, got \"%s\"", value)
  end
  return n
end

--- Shows the autograd graph of a tensor: a node for each recorded op, with the shape of its result
-- and the bytes of its saved tensors; leaf tensors by the names of variables. A node that is used
-- more than once is written once, with a number, and referenced by it. --lines N writes at most N
-- lines (60); --svg FILE writes a picture, which a notebook shows, too.
function grad.grad(session, text)
  local expression, options = command_line.options("grad", text, {svg = "value", lines = "value"})
  local limit = options.lines and count_of(options.lines) or LINES
  local values = inspect.values(session, "grad", expression)
  local x = values[1]
  if not core.is_tensor(x) then fail("expected a tensor, got %s", inspect.a(x)) end
  if core._is_freed(x) then
    io.stdout:write(expression, " was freed: it has no autograd graph\n")
    return
  end
  if x.is_leaf then
    io.stdout:write(texts.wrap(x.requires_grad
      and "a leaf tensor: its gradient is in .grad, it has no autograd graph"
      or "it does not require grad: it has no autograd graph", style.width() - 1, 0), "\n")
    return
  end
  local most = options.svg and DRAWN or math.max(4 * limit, 1000)
  local name_of = namer(session)
  local g = require("lutra.internal.plot.graph").read(x, most, name_of)
  if options.svg then return write_svg(g, options.svg, expression) end
  local rich = require "lutra.repl.rich.graph"
  require("lutra.repl.rich.show")(rich.text(g, limit), function()
    return {["image/svg+xml"] = rich.svg(x, expression, name_of)}
  end)
end

return grad
