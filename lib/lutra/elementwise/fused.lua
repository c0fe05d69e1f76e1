--- An expression computed by one kernel, made from it and compiled when it is first needed.
--
-- Idea: a kernel computes in one float dtype. It serves arguments of one kind: which are tensors of
-- that dtype, which of another that is converted where it meets one of it, which are bool masks,
-- which are numbers; and of one layout: "flat" where all tensors lie as the result does, else a
-- number of dimensions with strides (0 where a tensor is broadcast), as few as will do.
--
-- Invariant: what the kernel computes has the shape and dtype that ops would give; where dtypes are
-- mixed, ops are asked, on the meta device. What they do not compute in one float dtype does not
-- fit, and they compute it: integers, which wrap around; float16 that becomes float32 later.

local core = require "lutra.core"
local compose = require "lutra.elementwise.compose"
local parse = require "lutra.elementwise.parse"
local rows = require "lutra.elementwise.functions"

local fused = {}

-- dtype -> what memory holds, what is computed in, and the ways between.
local TYPES = {
  float32 = {memory = "float", compute = "float", load = "%s", store = "%s", suffix = "f"},
  float64 = {memory = "double", compute = "double", load = "%s", store = "%s", suffix = ""},
  float16 = {memory = "__half", compute = "float", load = "__half2float(%s)",
    store = "__float2half(%s)", suffix = "f", include = "#include <cuda_fp16.h>\n"},
  bfloat16 = {memory = "__nv_bfloat16", compute = "float", load = "__bfloat162float(%s)",
    store = "__float2bfloat16(%s)", suffix = "f", include = "#include <cuda_bf16.h>\n"},
}
-- dtypes that are only read: what memory holds.
local READ = {int8 = "signed char", uint8 = "unsigned char", int16 = "short", int32 = "int",
  int64 = "long long", bool = "bool"}
local THREADS, MOST_PARAMETERS, MOST_OF_TEXT = 256, 100, 200

local unavailable = false -- no compiler is on this machine

--- Is there code for tensors of this dtype?
function fused.is_dtype(dtype) return TYPES[dtype] ~= nil end

-- What fits ---------------------------------------------------------------------------

-- "real", "test" or "number" for what a function gives; nil where ops have rules of their own. A
-- tensor of another dtype, "other", is a real one where it meets one of the kernel's dtype.
local function kind_of_call(node, kinds)
  local row = rows[node.f]
  local x, y, z = kinds[node[1]], kinds[node[2] or 0], kinds[node[3] or 0]
  if x == "other" or y == "other" or z == "other" then
    local beside = x == "real" or y == "real" or z == "real"
    local asks = node.f == "and" or node.f == "or" or (node.f == "where" and x == "other")
    return beside and not asks and (row.test and "test" or "real") or nil
  elseif row.test then
    local any = x ~= "number" or (row.n == 2 and y ~= "number")
    return any and "test" or nil
  elseif node.f == "where" then
    return x ~= "number" and (y == "real" or z == "real") and y ~= "test" and z ~= "test" and "real"
      or nil
  elseif row.n == 1 then
    return x ~= "test" and x or nil
  elseif x == "number" and y == "number" then
    return "number"
  end
  return (x == "real" or y == "real") and "real" or nil
end

-- What the expression gives for such arguments; nil: it does not fit.
local function result_kind(self, arguments)
  local kinds = {}
  for _, node in ipairs(self._order) do
    local kind = node.f == "number" and "number" or node.f == "name" and arguments[node.name]
      or kind_of_call(node, kinds)
    if not kind then return nil end
    kinds[node] = kind
  end
  local last = kinds[self._root]
  return last ~= "number" and last or nil, kinds
end

-- Places of the names that the expression has.
local function places_of(self)
  if self._places then return self._places end
  local places = {}
  for i, name in ipairs(self.names) do
    if self._used[name] then places[#places + 1] = i end
  end
  self._places = places
  return places
end

local LETTERS = {float32 = "f", float64 = "d", float16 = "h", bfloat16 = "g", bool = "t",
  int8 = "a", uint8 = "c", int16 = "s", int32 = "i", int64 = "l"}
local DTYPES = {}
for dtype, letter in pairs(LETTERS) do DTYPES[letter] = dtype end

-- A letter for each value: "n" for a number, else the dtype's, a capital where there are no
-- dimensions; the device that the tensors have in common, and the first of them; nil where they
-- have none.
local function classify(places, values)
  local key, device, first = "", nil, nil
  for k = 1, #places do
    local x = values[places[k]]
    if type(x) == "number" then
      key = key .. "n"
    else
      local letter, where = LETTERS[x.dtype], x.device
      if not x.is_cuda or not letter or (device and device ~= where) then return nil end
      device, first = where, first or x
      key = key .. (x.ndim == 0 and letter:upper() or letter)
    end
  end
  if not device then return nil end
  return key, device, first
end

-- The float dtype that all but masks have, or nil; and whether they are of more than one dtype.
local function common_dtype(dtypes)
  local found, mixed = nil, false
  for _, dtype in pairs(dtypes) do
    if dtype ~= "bool" then
      mixed = mixed or (found and found ~= dtype) or false
      found = found or dtype
    end
  end
  return not mixed and TYPES[found] and found or nil, mixed
end

-- What ops give for values of that key, by node: of each tensor only its dtype means something.
local function ask_ops(self, key, dtypes)
  local values = {}
  for k, place in ipairs(places_of(self)) do
    local dtype, shape = dtypes[self.names[place]], key:sub(k, k):find "%u" and {} or {1}
    values[place] = dtype and core.empty(shape, {device = "meta", dtype = dtype}) or 1.5
  end
  local ok, results = pcall(compose.trace, self, values)
  return ok and results or nil
end

-- The dtype in which ops compute a function of tensors of these results.
local function dtype_of_call(node, results)
  local x, y = results[node[1]], results[node[2]]
  if rows[node.f].test and core.is_tensor(x) and core.is_tensor(y) then
    return core.result_type(x, y)
  end
  return core.is_tensor(results[node]) and results[node].dtype
end

-- The float dtype in which ops compute first.
local function float_dtype(self, results)
  for _, node in ipairs(self._order) do
    local dtype = rows[node.f] and dtype_of_call(node, results)
    if TYPES[dtype] then return dtype end
  end
end

-- Do ops compute all of it in this dtype?
local function is_all_in(dtype, self, results, kinds)
  for _, node in ipairs(self._order) do
    local meets = kinds[node[1]] == "other" or kinds[node[2]] == "other"
      or kinds[node[3]] == "other"
    if rows[node.f] and (meets or kinds[node] == "real") and
      dtype_of_call(node, results) ~= dtype then return false end
  end
  return true
end

-- What is known of values of one key: {dtype, kinds and dtypes by name, result, node_kinds,
-- kernels}; false: they do not fit.
local function make_plan(self, key)
  local kinds, dtypes = {}, {}
  for k, place in ipairs(places_of(self)) do
    dtypes[self.names[place]] = DTYPES[key:sub(k, k):lower()]
  end
  local dtype, mixed = common_dtype(dtypes)
  local results = mixed and ask_ops(self, key, dtypes)
  dtype = dtype or results and float_dtype(self, results)
  if not dtype then return false end
  for _, place in ipairs(places_of(self)) do
    local name = self.names[place]
    local own = dtypes[name]
    kinds[name] = not own and "number" or own == "bool" and "test" or own == dtype and "real"
      or "other"
  end
  local result, node_kinds = result_kind(self, kinds)
  if not result or result == "other" then return false end
  if mixed and not is_all_in(dtype, self, results, node_kinds) then return false end
  return {kinds = kinds, dtypes = dtypes, dtype = dtype, result = result, node_kinds = node_kinds,
    kernels = {}, out = {dtype = result == "test" and "bool" or dtype}}
end

local function plan_for(self, key)
  self._plans = self._plans or {}
  if self._plans[key] == nil then self._plans[key] = make_plan(self, key) end
  return self._plans[key]
end

-- The kernel's text ---------------------------------------------------------------------

local function number_text(value)
  if value ~= value then return "(0.0 / 0.0)" end
  if value == math.huge then return "(1.0 / 0.0)" end
  if value == -math.huge then return "(-1.0 / 0.0)" end
  return math.type(value) == "integer" and ("%d"):format(value) or ("%.17g"):format(value)
end

-- The names that a plan's kernel takes, in their order, as {name, symbol, kind, dtype, place}.
local function parameters_of(self, plan)
  local list = {}
  for i, name in ipairs(self.names) do
    if self._used[name] then
      list[#list + 1] = {name = name, symbol = "p" .. i, kind = plan.kinds[name],
        dtype = plan.dtypes[name], place = i}
    end
  end
  return list
end

local function declare(plan, list, rank)
  local types, words = TYPES[plan.dtype], {}
  words[1] = (plan.result == "test" and "bool" or types.memory) .. " *out"
  for _, p in ipairs(list) do
    words[#words + 1] = (p.kind == "number" and "double "
      or ("const %s *"):format(READ[p.dtype] or TYPES[p.dtype].memory)) .. p.symbol
  end
  words[#words + 1] = "long long n"
  for d = 1, rank do words[#words + 1] = "long long size" .. d end
  for _, p in ipairs(list) do
    for d = 1, p.kind ~= "number" and rank or 0 do
      words[#words + 1] = ("long long %s_%d"):format(p.symbol, d)
    end
  end
  return table.concat(words, ", ")
end

-- Lines that find each tensor's element.
local function find_elements(list, rank)
  local lines = {}
  if rank > 0 then
    local starts = {}
    for _, p in ipairs(list) do
      if p.kind ~= "number" then starts[#starts + 1] = p.symbol .. "_at = 0" end
    end
    lines[1] = "  long long rest = i, step, " .. table.concat(starts, ", ") .. ";"
  end
  for d = rank, 1, -1 do
    local line = ("  step = rest %% size%d; rest /= size%d;"):format(d, d)
    for _, p in ipairs(list) do
      if p.kind ~= "number" then
        line = line .. (" %s_at += step * %s_%d;"):format(p.symbol, p.symbol, d)
      end
    end
    lines[#lines + 1] = line
  end
  return lines
end

-- An element of a parameter, in the type that the kernel computes in.
local function load_element(p, element, types)
  if p.kind == "test" then return element end
  local own = TYPES[p.dtype]
  local value = own and own.load:format(element) or element
  return p.kind == "real" and value or ("(%s)%s"):format(types.compute, value)
end

local function value_of(node, list, plan, rank)
  local types = TYPES[plan.dtype]
  if node.f == "number" then return number_text(node.value) end
  if node.f == "name" then
    for _, p in ipairs(list) do
      if p.name == node.name then
        if p.kind == "number" then return ("(%s)%s"):format(types.compute, p.symbol) end
        local element = ("%s[%s]"):format(p.symbol, rank > 0 and p.symbol .. "_at" or "i")
        return load_element(p, element, types)
      end
    end
  end
  if node.f == "pow" and node[2].f == "number" and node[2].value == 2 then
    return ("v%d * v%d"):format(node[1].id, node[1].id)
  end
  return (rows[node.f].code:gsub("%$(.)", function(c)
    return c == "f" and types.suffix or "v" .. node[tonumber(c)].id
  end))
end

-- The functions that the code calls.
local function add_helpers(self, types, lines)
  local seen = {}
  for _, node in ipairs(self._order) do
    local helper = rows[node.f] and rows[node.f].helper
    if helper and not seen[helper] then
      seen[helper] = true
      lines[#lines + 1] = helper:gsub("%$T", types.compute):gsub("%$f", types.suffix)
    end
  end
end

-- The headers of the types that are read and written.
local function includes_of(plan)
  local own, text = {[plan.dtype] = true}, ""
  for _, dtype in pairs(plan.dtypes) do own[dtype] = true end
  for _, dtype in ipairs {"float16", "bfloat16"} do
    if own[dtype] then text = text .. TYPES[dtype].include end
  end
  return text
end

local function write(self, plan, rank)
  local types, list = TYPES[plan.dtype], parameters_of(self, plan)
  local lines = {includes_of(plan) .. "// " .. parse.write(self._root, MOST_OF_TEXT)}
  add_helpers(self, types, lines)
  table.move({
    "__global__ void elementwise(" .. declare(plan, list, rank) .. ") {",
    "  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
    "  if (i >= n) return;",
  }, 1, 3, #lines + 1, lines)
  table.move(find_elements(list, rank), 1, rank + 1, #lines + 1, lines)
  for _, node in ipairs(self._order) do
    lines[#lines + 1] = ("  const %s v%d = %s;%s"):format(
      plan.node_kinds[node] == "test" and "bool" or types.compute, node.id,
      value_of(node, list, plan, rank), node.f == "name" and "  // " .. node.name or "")
  end
  local last = "v" .. self._root.id
  lines[#lines + 1] = ("  out[i] = %s;\n}\n"):format(
    plan.result == "test" and last or types.store:format(last))
  return table.concat(lines, "\n")
end

--- The kernel for tensors of `dtype` and no numbers, that lie flat, or have `rank` dimensions.
function fused.source(self, dtype, rank)
  local plan = plan_for(self, LETTERS[dtype]:rep(#places_of(self)))
  return plan and write(self, plan, rank or 0) or nil
end

-- Layouts ---------------------------------------------------------------------------------

-- The shape that the tensors broadcast to; nil where they do not, which ops say.
local function broadcast(tensors)
  local shape, rank = {}, 0
  for _, t in ipairs(tensors) do rank = math.max(rank, #t.shape) end
  for d = 1, rank do shape[d] = 1 end
  for _, t in ipairs(tensors) do
    local own = t.shape
    for d = 1, #own do
      local at = d + rank - #own
      if own[d] ~= 1 then
        if shape[at] ~= 1 and shape[at] ~= own[d] then return nil end
        shape[at] = own[d]
      end
    end
  end
  return shape
end

-- Strides of t for the shape: 0 where it is repeated.
local function strides_for(t, shape)
  local own, strides, out = t.shape, t:stride(), {}
  local skip = #shape - #own
  for d = 1, #shape do
    out[d] = d > skip and own[d - skip] ~= 1 and strides[d - skip] or 0
  end
  return out
end

-- Joins neighbouring dimensions that every tensor goes through as through one. Returns sizes, and
-- a list of strides for each tensor.
local function collapse(tensors, shape)
  local sizes, all, from = {}, {}, {}
  for i, t in ipairs(tensors) do all[i], from[i] = {}, strides_for(t, shape) end
  for d = 1, #shape do
    local last = #sizes
    local joins = last > 0
    for i = 1, #tensors do
      joins = joins and all[i][last] == from[i][d] * shape[d]
    end
    if shape[d] ~= 1 then
      if joins then sizes[last] = sizes[last] * shape[d] else sizes[last + 1] = shape[d] end
      for i = 1, #tensors do all[i][#sizes] = from[i][d] end
    end
  end
  if #sizes == 0 then
    sizes[1] = 1
    for i = 1, #tensors do all[i][1] = 0 end
  end
  return sizes, all
end

-- Running ----------------------------------------------------------------------------------

-- Is a failure to compile about what is not installed, so that ops must do?
local function is_missing(message)
  return message:find("on this machine", 1, true) or message:find("cuda_fp16.h", 1, true)
    or message:find("cuda_bf16.h", 1, true)
end

local function kernel_for(self, plan, rank)
  local kernel = plan.kernels[rank]
  if kernel then return kernel end
  local make = require("lutra.internal.kernel").internal
  local ok, made = pcall(make, write(self, plan, rank), "elementwise")
  if not ok then
    if type(made) ~= "string" or not is_missing(made) then error(made, 0) end
    unavailable = true
    return nil
  end
  plan.kernels[rank] = made
  return made
end

-- For tensors that do not lie as one: the result's shape, the number of dimensions to go through,
-- and their sizes and strides; nil where there is none.
local function layout_of(self, plan, given)
  local tensors = {}
  for k, place in ipairs(places_of(self)) do
    if plan.kinds[self.names[place]] ~= "number" then tensors[#tensors + 1] = given[k + 1] end
  end
  local shape = broadcast(tensors)
  if not shape then return nil end
  local sizes, strides = collapse(tensors, shape)
  local rank, extra = #sizes, sizes
  for i = 1, #tensors do table.move(strides[i], 1, rank, #extra + 1, extra) end
  if #extra + #self.names > MOST_PARAMETERS then return nil end
  return shape, rank, extra
end

--- How a kernel computes these values: {kernel, given, ...}; nil: it does not.
function fused.prepare(self, values)
  if unavailable then return nil end
  local places = places_of(self)
  local key, device, first = classify(places, values)
  local plan = key and plan_for(self, key)
  if not plan then return nil end
  local given = {false} -- the result comes first
  for k = 1, #places do given[k + 1] = values[places[k]] end
  local shape, rank, extra = nil, 0, nil
  if not core._same_layout(table.unpack(given, 2)) then
    shape, rank, extra = layout_of(self, plan, given)
    if not shape then return nil end
  end
  local kernel = kernel_for(self, plan, rank)
  return kernel and {kernel = kernel, given = given, plan = plan, device = device, like = first,
    shape = shape, extra = extra}
end

--- Computes them.
function fused.run(job)
  local given, extra = job.given, job.extra
  local out = not job.shape and core.empty_like(job.like, job.plan.out)
    or core.empty(job.shape, {device = job.device, dtype = job.plan.out.dtype})
  local n = out:numel()
  if n == 0 then return out end
  given[1], given[#given + 1] = out, n
  if extra then table.move(extra, 1, #extra, #given + 1, given) end
  job.kernel({(n + THREADS - 1) // THREADS, THREADS}, table.unpack(given))
  return out
end

return fused
