--- Batched tensors: how lt.func.vmap runs ops once for all examples.
--
-- Inside a batched run, the tensors of one example are proxies: tensors on the device "meta", with
-- the shape and dtype of one example and without data. `of[proxy]` is the physical tensor, with the
-- batch as its first dim, and the level of the vmap (vmaps nest: the physical tensor of an inner
-- proxy can be a proxy of an outer level). While a run is active, the functions of the core are
-- replaced by ones that take proxies: they run a rule of lutra.func.batching_rules on the physical
-- tensors. Composites written in Lua need no rule: they run through the ops that they call.
--
-- Invariant: no result is wrong. A function that was not replaced finds no data in a proxy, and
-- every result of a rule has the shape and dtype that the op has for one example. Where that does
-- not hold, the run is given up (batching.refuse) and vmap calls the function for each example.

local args = require "lutra.internal.args"
local core = require "lutra.core"

local batching = {}

local of = setmetatable({}, {__mode = "k"})
local level = 0
local sizes = {} -- level -> number of examples
local made = {} -- level -> its proxies
local originals = {} -- replacement -> original

local REFUSED = setmetatable({}, {__tostring = function() return "vmap: cannot batch" end})

--- Gives the batched run up.
function batching.refuse() error(REFUSED, 0) end

--- Returns the level of the innermost batched run, 0 outside.
function batching.level() return level end

-- Returns the original of a function of the core.
local function original(f) return originals[f] or f end

local function empty(shape, dtype)
  return original(core._ops.empty)(shape, {dtype = dtype, device = "meta"})
end

--- Returns the proxy of a physical tensor at a level.
function batching.wrap(physical, at)
  local shape = {}
  for i = 2, physical.ndim do shape[i - 1] = physical:size(i) end
  local proxy = empty(shape, physical.dtype)
  of[proxy] = {physical = physical, level = at}
  table.insert(made[at], proxy)
  return proxy
end

--- Returns the physical tensor of a proxy of the level; nil for other values.
function batching.physical(value, at)
  local found = of[value]
  return found and found.level == at and found.physical or nil
end

-- Returns the tensor with one copy for each example of every active level that it has none for: an
-- input of a gradient inside vmap.
local function expanded(t)
  local own = of[t] and of[t].level or 0
  for at = own + 1, level do
    local shape = {sizes[at]}
    for i = 1, t.ndim do shape[i + 1] = t:size(i) end
    t = batching.wrap(t:unsqueeze(1):expand(shape), at)
  end
  return t
end

--- Returns a copy of the tensor for each example when a batched run is active.
function batching.input(t) return level > 0 and expanded(t) or t end

--- Returns the tensor with data that a proxy stands for.
function batching.bottom(t)
  while of[t] do t = of[t].physical end
  return t
end

--- Returns the number of examples of a level.
function batching.size(at) return sizes[at] end

-- ---- calls

-- Returns the highest level of the proxies among the values.
local function highest(list, n)
  local top = 0
  for i = 1, n do
    local value = list[i]
    local found = of[value]
    if found then
      top = math.max(top, found.level)
    elseif args.is_plain(value) then
      for _, item in pairs(value) do
        if of[item] then top = math.max(top, of[item].level) end
      end
    end
  end
  return top
end

-- Returns the arguments with f(tensor) in place of each tensor.
local function replaced(list, f)
  local copy = {n = list.n}
  for i = 1, list.n do
    local value = list[i]
    if core.is_tensor(value) then
      value = f(value)
    elseif args.is_plain(value) then
      local inner = {}
      for k, v in pairs(value) do inner[k] = core.is_tensor(v) and f(v) or v end
      value = inner
    end
    copy[i] = value
  end
  return copy
end

local function as_meta(t)
  if t.device == "meta" then
    if not of[t] then batching.refuse() end
    return t
  end
  local shape = {}
  for i = 1, t.ndim do shape[i] = t:size(i) end
  return empty(shape, t.dtype)
end

-- Returns whether a physical result is what the op has for one example.
local function fits(result, expected, size)
  if not core.is_tensor(expected) then return not core.is_tensor(result) end
  if not core.is_tensor(result) or result.dtype ~= expected.dtype
    or result.ndim ~= expected.ndim + 1 or result:size(1) ~= size then
    return false
  end
  for i = 1, expected.ndim do
    if result:size(i + 1) ~= expected:size(i) then return false end
  end
  return true
end

-- Returns the results of a rule as proxies; nil where they do not fit.
local function wrapped(results, expected, at)
  local out = {n = expected.n}
  if results.n ~= expected.n then return nil end
  for i = 1, expected.n do
    local result, wanted = results[i], expected[i]
    if args.is_plain(wanted) then
      if not args.is_plain(result) or #result ~= #wanted then return nil end
      out[i] = {}
      for k, item in ipairs(wanted) do
        if not fits(result[k], item, sizes[at]) then return nil end
        out[i][k] = batching.wrap(result[k], at)
      end
    else
      if not fits(result, wanted, sizes[at]) or not core.is_tensor(wanted) then return nil end
      out[i] = batching.wrap(result, at)
    end
  end
  return out
end

local function repeated(t, n)
  local list = {}
  for i = 1, n do list[i] = t end
  return list
end

--- The ops that ran in a loop: name -> number of calls.
batching.looped = {}

-- Runs an op for each example and stacks the results, with a warning for each op.
local function loop(op, f, list, at)
  local looped = batching.looped
  looped[op.name] = (looped[op.name] or 0) + 1
  if looped[op.name] == 1 then
    io.stderr:write("warning: vmap: ", op.name, " has no rule for a batch; it runs once for each ",
      "example\n")
  end
  local columns, count = {}, nil
  for k = 1, sizes[at] do
    local own = replaced(list, function(t)
      local physical = batching.physical(t, at)
      return physical and physical:select(1, k) or t
    end)
    local results = table.pack(f(table.unpack(own, 1, own.n)))
    count = results.n
    for i = 1, count do
      if not core.is_tensor(results[i]) then batching.refuse() end
      columns[i] = columns[i] or {}
      columns[i][k] = results[i]
    end
  end
  local out = {n = count}
  for i = 1, count do out[i] = batching.wrap(core._ops.stack(columns[i]), at) end
  return out
end

-- Calls an op on proxies.
local function call(op, f, read, list)
  local at = highest(list, list.n)
  local values = table.pack(read(table.unpack(list, 1, list.n)))
  values.n = #op.params
  local like = replaced(values, as_meta)
  local expected = table.pack(original(f)(table.unpack(like, 1, values.n)))
  local rules = require "lutra.func.batching_rules"
  local rule = rules.find(op)
  if rule then
    local results = table.pack(rule(values, expected, at, op))
    local out = (results.n > 1 or results[1] ~= nil) and wrapped(results, expected, at)
    if out then return table.unpack(out, 1, out.n) end
  end
  if op.kind == "view" or rules.is_view(op.name) then batching.refuse() end
  local out = loop(op, function(...) return core._ops[op.name](...) end, values, at)
  return table.unpack(out, 1, out.n)
end

-- ---- replacements

local replacements -- list of {table, key, replacement, original}
local installed = false
local current = {} -- original -> replacement

local function put(t, key, new)
  local old = rawget(t, key)
  replacements[#replacements + 1] = {t, key, new, old}
  originals[new], current[old] = old, current[old] or new
end

local function is_c(f) return type(f) == "function" and debug.getinfo(f, "S").what == "C" end

-- Replaces a function of an op in a table.
local function put_op(t, key, op, method, in_place)
  local old = rawget(t, key)
  if not is_c(old) then return end
  local read
  put(t, key, function(...)
    local list = table.pack(...)
    if in_place then batching.refuse() end
    if highest(list, list.n) == 0 then return old(...) end
    read = read or (args.reader(op.name, op.signature, method))
    return call(op, core._ops[op.name], read, list)
  end)
end

local PLAIN = {dim = true, numel = true, nelement = true, size = true, is_floating_point = true,
  is_complex = true, element_size = true, _version = true}
local MOVES = {float = true, double = true, half = true, bfloat16 = true, int = true, long = true,
  short = true, char = true, byte = true, bool = true, cpu = true, requires_grad_ = true}

-- Returns f, which gives up when it gets a proxy.
local function guarded(old)
  return function(...)
    local list = table.pack(...)
    if highest(list, list.n) > 0 then batching.refuse() end
    return old(...)
  end
end

local function put_methods(by_name)
  local methods = core._methods
  for name in pairs(MOVES) do
    local old = rawget(methods, name)
    put(methods, name, function(t, ...)
      local own = of[t]
      if not own then return old(t, ...) end
      local result = own.physical[name](own.physical, ...)
      return result == own.physical and t or batching.wrap(result, own.level)
    end)
  end
  for name, old in pairs(methods) do
    local is_op = by_name[name] or by_name[name:gsub("_$", "")]
    if is_c(old) and not is_op and not PLAIN[name] and not MOVES[name] then
      put(methods, name, guarded(old))
    end
  end
end

-- Replaces the functions of all ops in the table.
local function put_ops(t, by_name, method)
  for key, value in pairs(t) do
    if is_c(value) then
      local op = by_name[key]
      if op then
        put_op(t, key, op, method, false)
      elseif key:sub(-1) == "_" and by_name[key:sub(1, -2)] then
        put_op(t, key, by_name[key:sub(1, -2)], method, true)
      end
    end
  end
end

-- Replaces core._grad: gradients of proxies are those of the physical tensors.
local function put_grad()
  local function grad(outputs, inputs, options)
    local top = math.max(highest(outputs, #outputs), highest(inputs, #inputs))
    if options.grad_outputs then
      top = math.max(top, highest(options.grad_outputs, #options.grad_outputs))
    end
    if top == 0 then return originals[core._grad](outputs, inputs, options) end
    local function down(t)
      local physical = batching.physical(t, top)
      if physical then return physical end
      local shape = {sizes[top]}
      for i = 1, t.ndim do shape[i + 1] = t:size(i) end
      return t:unsqueeze(1):expand(shape)
    end
    local new = {outputs = {}, inputs = {}, grads = options.grad_outputs and {}}
    for i, t in ipairs(outputs) do
      new.outputs[i] = down(t)
      if new.grads then new.grads[i] = down(options.grad_outputs[i]) end
    end
    for i, t in ipairs(inputs) do
      new.inputs[i] = batching.physical(t, top) or batching.refuse()
    end
    if not new.grads then
      new.grads = {}
      for i, t in ipairs(new.outputs) do new.grads[i] = core._ops.ones_like(t) end
    end
    local own = {}
    for k, v in pairs(options) do own[k] = v end
    own.grad_outputs = new.grads
    local list, result = core._grad(new.outputs, new.inputs, own), {}
    for i = 1, #inputs do result[i] = list[i] and batching.wrap(list[i], top) end
    return result
  end
  put(core, "_grad", grad)
end

local OPERATORS = {__add = "add", __sub = "sub", __mul = "mul", __div = "div",
  __idiv = "floor_divide", __mod = "remainder", __pow = "pow", __unm = "neg"}
local REFUSING = {"__newindex", "__tostring", "__lt", "__le", "__band", "__bor", "__bxor", "__bnot",
  "__shl", "__shr", "__len"}

-- Returns the field `key` of a proxy.
local function field(old, t, own, key)
  if type(key) == "string" then
    if core._methods[key] or key == "shape" or key == "ndim" or key == "dtype" then
      return old(t, key)
    end
    if key == "T" or key == "mT" then return core._methods.transpose(t, -1, -2) end
    if key == "requires_grad" or key == "device" or key == "is_leaf" then
      return own.physical[key]
    end
  elseif math.type(key) == "integer" then
    return core._ops.select(t, 1, key)
  end
  return batching.refuse()
end

local function put_metatable()
  local meta = debug.getmetatable(core._ops.zeros(1))
  for event, name in pairs(OPERATORS) do
    local old = rawget(meta, event)
    put(meta, event, function(a, b)
      if not of[a] and not of[b] then return old(a, b) end
      if event == "__unm" then return core._ops.neg(a) end
      return core._ops[name](a, b)
    end)
  end
  for _, event in ipairs(REFUSING) do put(meta, event, guarded(rawget(meta, event))) end
  local old = rawget(meta, "__index")
  put(meta, "__index", function(t, key)
    local own = of[t]
    if not own then return old(t, key) end
    return field(old, t, own, key)
  end)
end

-- Creates the replacements of all functions.
local function prepare()
  replacements = {}
  local by_name = {}
  local lt = package.loaded.lutra
  for _, op in ipairs(core.ops()) do
    by_name[op.name] = by_name[op.name] or op -- those of the core come first
    for _, alias in ipairs(op.aliases) do by_name[alias] = by_name[alias] or op end
  end
  put_ops(core._ops, by_name, false)
  put_ops(core, by_name, false)
  put_ops(core._methods, by_name, true)
  put_methods(by_name)
  put_ops(lt, by_name, false)
  for _, space in ipairs(core._namespaces) do put_ops(space.ops, by_name, false) end
  put_metatable()
  put_grad()
  for _, name in ipairs{"_backward", "_gradients", "_custom", "_graph", "_kernel", "_store"} do
    put(core, name, guarded(core[name]))
  end
end

-- Puts values[new] in the place of values[old] in each replacement.
local function exchange(old, new)
  for _, entry in ipairs(replacements) do
    if rawget(entry[1], entry[2]) == entry[old] then rawset(entry[1], entry[2], entry[new]) end
  end
end

local function install()
  if installed then return end
  if not replacements then prepare() end
  exchange(4, 3)
  installed = true
end

local function uninstall()
  exchange(3, 4)
  installed = false
end

--- Returns the results of the function of a run as trees of physical tensors.
function batching.unwrapped(results, at)
  local tree = require "lutra.internal.tree"
  for i = 1, results.n do
    local count = 0
    results[i] = tree.map(results[i], function(t)
      count = count + 1
      local physical = batching.physical(t, at)
      if physical then return physical end
      if t.device == "meta" and not of[t] then batching.refuse() end
      return core._ops.stack(repeated(t, sizes[at]))
    end)
    if count == 0 then batching.refuse() end
  end
  for _, proxy in ipairs(made[at]) do
    if proxy:_version() ~= 0 then batching.refuse() end
  end
  return results
end

--- Calls f(at) with batched runs on, where `at` is the level of `size` examples. Returns true and
-- f's results, or false and the error: any error, also of an op.
function batching.run(size, f)
  level = level + 1
  sizes[level], made[level] = size, {}
  local at = level
  install()
  local results = table.pack(pcall(f, at))
  level, made[at] = at - 1, nil
  if level == 0 then uninstall() end
  return table.unpack(results, 1, results.n)
end

--- Returns the replacement of a function of the core while a run is active, otherwise the function.
function batching.current(f) return installed and current[f] or f end

return batching
