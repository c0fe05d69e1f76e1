--- Composite ops written in Lua, which differentiate and run on every device like the ops they
-- call. Each is registered as a row in the form of lt.ops(), beside those of the core's table.

local core = require "lutra.core"
local namespaces = require "lutra.internal.namespaces"

local composites = {}

local rows = {}

--- Registers a composite and returns its function, which parses its arguments by the signature and
-- calls `fn` with them in order. `row` is {signature, doc, fn}. The signature is the name with its
-- namespace ("F.normalize(Tensor input, int dim)"), followed by the grammar of ops.def. The
-- function is added to the namespace (namespaces.def) or to lt; without a namespace the op is
-- internal. Raises an error for an invalid row.
function composites.define(row)
  local args = require "lutra.internal.args"
  args.expect(args.is_plain(row), "_define", "{signature, doc, fn}", "row", row)
  args.expect(type(row.signature) == "string", "_define", "a string", "signature", row.signature)
  args.expect(type(row.doc) == "string", "_define", "a string", "doc", row.doc)
  args.expect(args.is_callable(row.fn), "_define", "a function", "fn", row.fn)
  local namespace, name, signature = row.signature:match "^([%w_%.]-)%.?([%a_][%w_]*)(%(.*)$"
  args.check(name, "_define: expected a name and parameters for argument 'signature', got %q",
    row.signature)
  args.check(namespace == "" or namespace == "lt" or namespaces.has(namespace),
    "_define: expected a namespace (lt, %s) for argument 'signature', got %q", namespaces.names(),
    namespace)
  local fn = row.fn
  local parse, params, results = args.reader(name, signature)
  local function call(...) return fn(parse(...)) end
  rows[#rows + 1] = {
    name = name, namespace = namespace ~= "" and namespace or nil, signature = signature,
    namespaces = namespaces.has(namespace) and {[namespace] = name} or {},
    doc = row.doc, kind = "composite", composite = true, has_gradient = false,
    variants = {["function"] = namespace == "lt", method = false, in_place = false},
    params = params, results = results, call = call, source = fn,
  }
  if not core._ops[name] then core._ops[name] = call end
  if namespace == "lt" then
    rawset(require "lutra", name, call)
  elseif namespace ~= "" then
    namespaces.add(namespace, name, call)
  end
  return call
end

--- Loads the modules that define composites; returns true when they were not loaded before.
function composites.load()
  local loaded = package.loaded["lutra.nn.functional"]
  require "lutra.nn.functional"
  return not loaded
end

--- Returns the list of all ops: the rows of the core's table, then the composites written in Lua,
-- which have no methods but a `namespace`, the function `call` and its implementation `source`.
function composites.ops()
  composites.load()
  local list = core.ops()
  for _, row in ipairs(rows) do
    row.support = {}
    for kind in pairs(list[1].support) do row.support[kind] = true end
    list[#list + 1] = row
  end
  return list
end

return composites
