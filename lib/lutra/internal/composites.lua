--- Composite ops written in Lua, which differentiate and run on every device like the ops they
-- call. Each is registered as a row in the form of lt.ops(), beside those of the core's table.
--
-- Their files, the folder lutra/ops and lutra.nn.functional, are loaded when one of their names is
-- first used: first those whose text contains the name, then all.

local autocast = require "lutra.internal.autocast"
local classes = require "lutra.internal.autocast_classes"
local core = require "lutra.core"
local namespaces = require "lutra.internal.namespaces"

local has_out = core._has_out

local composites = {}

local rows = {}

-- ---- definitions

local FIELDS = {{"signature", "string"}, {"doc", "string"}, {"method", "boolean"},
  {"in_place", "boolean"}, {"example", "string"}}

local function check_row(row)
  local args = require "lutra.internal.args"
  args.expect(args.is_plain(row), "_define", "{signature, doc, fn}", "row", row)
  for i, field in ipairs(FIELDS) do
    local name, kind = field[1], field[2]
    local optional = i > 2
    args.expect(type(row[name]) == kind or optional and row[name] == nil, "_define",
      "a " .. kind, name, row[name])
  end
  args.expect(args.is_callable(row.fn), "_define", "a function", "fn", row.fn)
  args.expect(row.change == nil or args.is_callable(row.change), "_define", "a function", "change",
    row.change)
  for _, name in ipairs{"aliases", "also"} do
    args.expect(row[name] == nil or args.is_plain(row[name]), "_define", "a list of names", name,
      row[name])
  end
end

-- Returns the namespace ("" for none), the name and the parameters that a signature states.
local function split(row)
  local args = require "lutra.internal.args"
  local path, signature = row.signature:match "^([%w_%.]+)(%(.*)$"
  local namespace, name = (path or ""):match "^(.-)%.?([%a_][%w_]*)$"
  args.check(name, "_define: expected a name and parameters for argument 'signature', got %q",
    row.signature)
  args.check(namespace == "" or namespace == "lt" or namespaces.has(namespace),
    "_define: expected a namespace (lt, %s) for argument 'signature', got %q", namespaces.names(),
    namespace)
  return namespace, name, signature
end

-- Returns the arguments of a call without `out`, which is a name in the last one.
local function without_out(...)
  local arguments = table.pack(...)
  local names = {}
  for key, value in pairs(arguments[arguments.n]) do
    if key ~= "out" then names[key] = value end
  end
  arguments[arguments.n] = names
  return table.unpack(arguments, 1, arguments.n)
end

-- Calls an op that writes its results into `out`, a tensor or a list of them; returns out.
local function call_out(name, fn, parse, ...)
  local out = select(-1, ...).out
  local results = table.pack(fn(parse(without_out(...))))
  if core.is_tensor(out) then return core._store(name, out, results[1]) end
  local args = require "lutra.internal.args"
  args.expect(args.is_plain(out) and #out == results.n, name, results.n .. " tensors", "out", out)
  for i, tensor in ipairs(out) do core._store(name, tensor, results[i]) end
  return table.unpack(out)
end

-- Copies the result of an op into self, which keeps its shape and dtype.
local function write(name, self, result)
  local args = require "lutra.internal.args"
  args.check(result.shape == self.shape,
    "%s: cannot write a result of shape %s into self, a tensor of shape %s", name,
    result.shape, self.shape)
  args.check(core.can_cast(result.dtype, self.dtype),
    "%s: cannot write a result of dtype %s into self, a tensor of dtype %s", name, result.dtype,
    self.dtype)
  return self:copy_(result)
end

-- Returns the name that an op has in its namespace: "sum" for "masked_sum" in lt.masked.
local function name_in(namespace, name)
  local prefix = namespace .. "_"
  return name:sub(1, #prefix) == prefix and name:sub(#prefix + 1) or name
end

-- Adds the op's functions and methods under one name.
local function publish(row, namespace, name)
  local lt = require "lutra"
  local reader = require("lutra.internal.args").reader
  local fn, title = row.callee, name_in(namespace, name)
  local takes_out = not row.signature:find("%f[%w_]out%f[^%w_]")
  local function caller(parse)
    return function(...)
      if takes_out and has_out(...) then return call_out(title, fn, parse, ...) end
      return fn(parse(...))
    end
  end
  local call = caller((reader(title, row.signature)))
  if not core._ops[name] then core._ops[name] = call end
  if namespace == "lt" then
    rawset(lt, name, call)
  elseif namespace ~= "" then
    namespaces.add(namespace, title, call)
  end
  for _, other in ipairs(row.also) do namespaces.add(other, name, call) end
  if row.variants.method then core._methods[name] = caller((reader(name, row.signature, true))) end
  if row.variants.in_place then
    local own = reader(name .. "_", row.signature, true)
    -- Calls fn with a copy of self where autograd may save it.
    local function result(self, ...)
      return fn(self.requires_grad and self:clone() or self, ...)
    end
    core._methods[name .. "_"] = function(self, ...)
      local changed = row.change and row.change(own(self, ...))
      return changed or write(name .. "_", self, result(own(self, ...)))
    end
  end
  return call
end

--- Registers a composite and returns its function, which parses its arguments by the signature and
-- calls `fn` with them in order. The fields of `row`:
--
-- * `signature`: the name with its namespace ("F.normalize(Tensor input, int dim)"), followed by
--   the grammar of ops.def. The function is added to the namespace (namespaces.def) or to lt;
--   without a namespace the op is internal. As in ops.def, "linalg.linalg_norm" is linalg.norm, for
--   a name that another op has.
-- * `doc`: its documentation. `example`: an expression that calls it, for help.
-- * `fn`: its implementation.
-- * `method`: x:name() exists, too. `in_place`: x:name_() exists, too; it copies the result into x,
--   unless there is `change`, which changes x alike and returns it, or nil where it cannot.
-- * `aliases`: a list of other names, with the same variants.
-- * `also`: a list of further namespaces that contain the function.
--
-- Raises an error for an invalid row.
function composites.define(row)
  check_row(row)
  local namespace, name, signature = split(row)
  local _, params, results = require("lutra.internal.args").reader(name, signature)
  local spaces = {}
  if namespaces.has(namespace) then spaces[namespace] = name_in(namespace, name) end
  for _, other in ipairs(row.also or {}) do spaces[other] = name end
  local op = {
    name = name, namespace = namespace ~= "" and namespace or nil, signature = signature,
    namespaces = spaces, aliases = row.aliases or {}, also = row.also or {}, doc = row.doc,
    kind = "composite", composite = true, has_gradient = false, example = row.example,
    variants = {["function"] = namespace == "lt", method = row.method == true,
      in_place = row.in_place == true},
    traits = {}, params = params, results = results, source = row.fn, change = row.change,
  }
  local class = classes[row.signature:match "^[%w_%.]+"]
  op.traits.autocast = type(class) == "string" and class or nil
  op.callee = class and autocast.wrap(class, row.fn) or row.fn
  rows[#rows + 1] = op
  op.call = publish(op, namespace, name)
  for _, alias in ipairs(op.aliases) do publish(op, namespace, alias) end
  return op.call
end

-- ---- loading

local loaded = {} -- modules

local folder -- of the files, by module: path, or false without a file

local function modules()
  if folder then return folder end
  folder = {["lutra.nn.functional"] = false}
  local own = debug.getinfo(1, "S").source:gsub("^@", "")
  local path = own:gsub("internal([/\\])composites%.lua$", "ops.lua")
  for _, module in ipairs(require("lutra.internal.folder").modules("lutra.ops", path)) do
    folder[module] = path:gsub("%.lua$", "/" .. module:match "[^.]*$" .. ".lua")
  end
  return folder
end

local function text_of(path)
  local file = path and io.open(path)
  if not file then return "" end
  local text <const> = file:read "a"
  file:close()
  return text
end

-- Loads a module; returns true when it was not loaded before.
local function load_module(module)
  if loaded[module] then return false end
  loaded[module] = true
  require(module)
  return true
end

--- Loads all modules that define composites; returns true when one was not loaded before.
function composites.load()
  local found = false
  for module in pairs(modules()) do found = load_module(module) or found end
  return found
end

--- Loads what may define the composite or the namespace `name`, and returns the value that table
-- `t` has under it then, or nil.
function composites.find(t, name)
  if type(name) ~= "string" or name:find "^_" then return nil end
  local base = name:gsub("_$", "")
  for module, path in pairs(modules()) do
    if not loaded[module] and path then
      local text = text_of(path)
      if text:find("." .. base .. "(", 1, true) or text:find('"' .. base .. '"', 1, true)
        or text:find('"' .. base .. ".", 1, true) then
        load_module(module)
      end
    end
  end
  if rawget(t, name) == nil then composites.load() end
  return rawget(t, name)
end

--- Returns the list of all ops: the rows of the core's table, then the composites written in Lua,
-- which have a `namespace`, the function `call` and its implementation `source`.
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
