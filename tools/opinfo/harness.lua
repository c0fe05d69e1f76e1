--- Runs the cases that tools/opinfo/generate.py writes, and compares with PyTorch's results.

local lt = require "lutra"
local translate = dofile((debug.getinfo(1, "S").source:match "^@(.*/)" or "") .. "translate.lua")

local harness = {}

local device = os.getenv "LUTRA_TEST_DEVICE" or "cpu"
local on_meta = device:match "^meta" ~= nil
local narrow = device:match "^mps" ~= nil

-- relative and absolute tolerance of results and of gradients, by dtype
local TOLERANCE = {
  float32 = {1e-4, 2e-5, 1e-3, 1e-4}, float64 = {1e-7, 1e-8, 1e-6, 1e-7},
  complex64 = {1e-4, 2e-5, 1e-3, 1e-4}, complex128 = {1e-7, 1e-8, 1e-6, 1e-7},
  float16 = {5e-3, 5e-3, 1e-2, 1e-2}, bfloat16 = {2e-2, 2e-2, 4e-2, 4e-2},
}
local EXACT = {0, 0, 0, 0}

-- ---- the op table

local rows -- "F.relu" or "relu" -> the entry of lt.ops()
local function row_of(space, name)
  if not rows then
    local found = {}
    for _, row in ipairs(lt.ops()) do
      local v = row.variants
      if v["function"] or v.method or v.in_place then found[row.name] = row end
      for _, alias in ipairs(row.aliases or {}) do found[alias] = found[alias] or row end
      for s, n in pairs(row.namespaces) do found[s .. "." .. n] = row end
    end
    rows = found
  end
  return rows[(space ~= "" and space .. "." or "") .. name]
end

local function field(t, name)
  local ok, v = pcall(function() return t[name] end)
  return ok and v or nil
end

-- The table of a namespace, "signal.windows" included, or nil.
local function space_of(space)
  local t = lt
  for part in space:gmatch "[^.]+" do t = t and field(t, part) end
  return t
end

-- The parameters and results of a function without a row in lt.ops().
local function signature_of(f)
  local signatures = require("lutra.core")._signatures
  local text = type(f) == "function" and signatures and signatures[f]
  if not text then return {}, {} end
  local ok, _, params, results = pcall(require("lutra.internal.args").reader, "opinfo",
    (text:gsub("^:", "")))
  if not ok then return {}, {} end
  if text:sub(1, 1) == ":" then table.insert(params, 1, {name = "self", type = "Tensor"}) end
  return params, results or {}
end

-- ---- values

local File = {}
File.__index = File

-- Reads the cases of a row and the storages they refer to.
function harness.open(folder, name)
  local self = setmetatable({}, File)
  self.cases = dofile(folder .. "/" .. name .. ".lua")
  self.tensors = lt.load_safetensors(folder .. "/" .. name .. ".safetensors")
  return self
end

-- The tensor of a reference; `at` is the device.
function File:tensor(v, at, leaves)
  local t = self.tensors[tostring(v.t)]
  if at then t = t:to(at) end
  if v.c then t = lt.complex(t:select(-1, 1), t:select(-1, 2)) end
  if leaves then t = t:clone() end
  if v.size then t = t:as_strided(v.size, v.stride, v.offset or 0) end
  if v.g and leaves then
    t = t:detach():requires_grad_()
    leaves[v.g] = t
  end
  return t
end

--- Opens the sample of tests/golden/opinfo: returns a list of files, which share their storages.
function harness.open_sample(folder)
  local tensors = lt.load_safetensors(folder .. "/cases.safetensors")
  local files = {}
  for _, family in ipairs(dofile(folder .. "/families.lua")) do
    for _, cases in ipairs(dofile(folder .. "/" .. family .. ".lua")) do
      files[#files + 1] = setmetatable({cases = cases, tensors = tensors}, File)
    end
  end
  return files
end

function File:decode(v, at, leaves)
  if type(v) ~= "table" then return v end
  if v.t then return self:tensor(v, at, leaves) end
  if v.none or v.option then return nil end
  if v.dtype then return v.dtype end
  if v.device then return at end
  if v.complex then return lt.complex(v.complex[1], v.complex[2]) end
  if v.ellipsis then return v end
  if v.options then
    local options = {}
    for k, x in pairs(v.options) do options[k] = self:decode(x, at, leaves) end
    return options
  end
  if v["function"] then return translate.process[v["function"]] or v["function"] end
  local list = {}
  if v.slice then
    for i = 1, 3 do list[i] = self:decode(v.slice[i], at, leaves) end
    return {slice = list}
  end
  for i = 1, v.n do list[i] = self:decode(v.l[i], at, leaves) end
  if v.tuple then list.n, list.tuple = v.n, true end
  return list
end

-- Removes the marks of tuples, which the arguments of Lutra's functions do not have.
local function plain(v)
  if type(v) == "table" and getmetatable(v) == nil then
    v.n, v.tuple = nil, nil
    for _, x in pairs(v) do plain(x) end
  end
  return v
end

-- The values of a result, in one list: the elements of tables and shapes, too.
local function flatten(out, v)
  if type(v) == "table" and not lt.is_tensor(v) and not (getmetatable(v) or {}).__mul then
    for i = 1, #v do flatten(out, v[i]) end
  else
    out[#out + 1] = v
  end
  return out
end

-- ---- comparison

local function flat_numbers(t)
  t = t:detach():to "cpu"
  if t.dtype:find "complex" then
    local re, im = flat_numbers(t.real:contiguous()), flat_numbers(t.imag:contiguous())
    return table.move(im, 1, #im, #re + 1, re)
  end
  if t:numel() == 0 then return {} end
  return t:contiguous():reshape(t:numel()):totable()
end

local function differs(a, b, rtol, atol)
  if a == b then return false end
  if type(a) ~= "number" or type(b) ~= "number" then return true end
  if a ~= a or b ~= b then return (a ~= a) ~= (b ~= b) end
  if a == math.huge or b == math.huge or a == -math.huge or b == -math.huge then return true end
  return math.abs(a - b) > atol + rtol * math.abs(b)
end

-- Returns nil when the tensor `actual` is `expected`, or what differs.
local function compare(actual, expected, tolerance, offset, values)
  if not lt.is_tensor(actual) then
    return ("expected a tensor, got %s"):format(tostring(actual))
  end
  if tostring(actual.shape) ~= tostring(expected.shape) then
    return ("expected shape %s, got %s"):format(tostring(expected.shape), tostring(actual.shape))
  end
  if actual.dtype ~= expected.dtype then
    return ("expected dtype %s, got %s"):format(expected.dtype, actual.dtype)
  end
  if not values then return nil end
  local a, b = flat_numbers(actual), flat_numbers(expected)
  local atol, scale = tolerance[2 + offset], 0
  if atol > 0 then -- sums of large terms that cancel
    for i = 1, #b do
      local size = math.abs(b[i])
      if size > scale and size < math.huge then scale = size end
    end
    atol = atol + scale * tolerance[1 + offset] / 50
  end
  for i = 1, #b do
    if differs(a[i], b[i], tolerance[1 + offset], atol) then
      return ("element %d of %s: expected %s, got %s"):format(i, tostring(expected.shape),
        tostring(b[i]), tostring(a[i]))
    end
  end
end

local function tolerance_of(dtype) return TOLERANCE[dtype] or EXACT end

-- ---- one case

local weight_cache = {}
local function weights(shape, n, dtype)
  local key = tostring(shape) .. dtype
  if not weight_cache[key] then
    local list = {}
    for i = 1, n do list[i] = ((i - 1) * 7 % 11 + 3) / 8 end
    local w = lt.tensor(list, {dtype = narrow and "float32" or "float64", device = "cpu"})
    weight_cache[key] = w:reshape(shape, {}):to(dtype):to(device)
  end
  return weight_cache[key]
end

local function loss_of(outputs)
  local total
  for _, out in ipairs(outputs) do
    if lt.is_tensor(out) and out.requires_grad then
      local part
      if out.dtype:find "complex" then
        local re, im = out.real, out.imag
        local w = weights(re.shape, re:numel(), re.dtype):to(out.device)
        part = (re * w - im * w * 0.5):sum()
      else
        part = (out * weights(out.shape, out:numel(), out.dtype):to(out.device)):sum()
      end
      if not narrow then part = part:to "float64" end
      total = total and total + part or part
    end
  end
  return total
end

local function gradients(case, file, results, leaves)
  local loss = loss_of(results)
  if not loss then return "the result does not require grad" end
  local second = case.gg ~= nil and not narrow
  local found = lt.autograd.grad(loss, leaves, {create_graph = second, allow_unused = true})
  local function check(list, expected, title)
    for i, e in ipairs(expected) do
      local want = file:decode(e)
      local g = list[i]
      if want == nil and g ~= nil then want = lt.zeros_like(leaves[i]):detach():to "cpu" end
      if g == nil and want ~= nil then g = lt.zeros_like(leaves[i]):detach() end
      if want ~= nil then
        local text = compare(g, want, tolerance_of(want.dtype), 2, true)
        if text then return ("%s of tensor %d: %s"):format(title, i, text) end
      end
    end
  end
  local text = check(found, case.g, "gradient")
  if text or not second then return text end
  local total
  for i = 1, #leaves do
    local g = found[i]
    if g ~= nil and g.requires_grad then
      local part = g.dtype:find "complex" and (g.real:square() + g.imag:square()):sum()
        or (g * g):sum()
      total = total and total + part or part
    end
  end
  if not total then
    return check({}, case.gg, "second gradient")
  end
  return check(lt.autograd.grad(total, leaves, {allow_unused = true}), case.gg, "second gradient")
end

-- Whether the function in F accepts `inplace`.
local function takes_inplace(entry)
  for _, param in ipairs(entry.params) do
    if param.name == "inplace" then return true end
  end
  return entry.inplace
end

-- The function to call, its parameters and results; nil when there is none.
local function target(file, case, x)
  local row, space, name = file.cases.row, file.cases.space, file.cases.name
  if case.k == "function" or case.k == "out" then
    local f = translate.renamed[row] or space == "" and translate.renamed[name]
    local t = space_of(space)
    local own = t and field(t, name)
    if not f and type(own) == "function" then f = own end
    local entry = row_of(space, name)
    if not f and space == "" and lt.is_tensor(x) then f = field(x, name) end
    if entry then return f, entry.params, entry.results end
    return f, signature_of(own or f)
  end
  name = case.f or name
  if case.k == "alias" then
    name = name:gsub("^torch%.", "")
    space, name = name:match "^(.-)%.?([^.]+)$"
    if space == "nn.functional" then space = "F" end
    local t = space_of(space)
    local f = t and field(t, name) or space == "" and lt.is_tensor(x) and field(x, name) or nil
    local entry = row_of(space, name) or row_of(file.cases.space, file.cases.name)
    if entry then return f, entry.params, entry.results end
    return f, signature_of(f)
  end
  if translate.renamed[name] and case.k ~= "in_place" then
    return translate.renamed[name], {}, {}
  end
  local f = lt.is_tensor(x) and field(x, name) or nil
  local base = case.k == "in_place" and name:gsub("_$", "") or name
  if not f and case.k == "in_place" then f = field(space_of(space) or {}, name) end
  local entry = row_of("", base) or row_of(space, base)
  if not f and case.k == "in_place" and entry and takes_inplace(entry) then
    f = field(space_of(space) or {}, base)
    case.kw.inplace = true
  end
  if entry then return f, entry.params, entry.results end
  return f, signature_of(f)
end

local function translated(c, file)
  local rule = translate.before[file.cases.row] or translate.before[file.cases.name]
  if rule then rule(c) end
  local spread -- the last list parameter takes the rest
  for i = 1, c.n do
    local param = c.params[i] or spread
    if param and (param.type:find "dims" or param.type:find "sizes") then spread = param end
    if param and not c.done[i] and c.args[i] ~= nil then
      c.args[i] = translate.by_type(c.args[i], param)
    end
    plain(c.args[i])
  end
  for _, param in ipairs(c.params) do
    local v = c.kw[param.name]
    if v ~= nil and not c.done[param.name] then
      c.kw[param.name] = translate.by_type(v, param)
    end
  end
  for _, v in pairs(c.kw) do plain(v) end
end

-- Replaces index results that select the expected values by the expected indices. self is the
-- input, `dim` PyTorch's (0-based, the last by default).
local function accept_order(file, case, self, found, expected)
  local at = #expected
  if not translate.unordered[file.cases.name] or not lt.is_tensor(found[at])
    or on_meta or found[at].dtype ~= "int64" or not lt.is_tensor(expected[at])
    or tostring(found[at].shape) ~= tostring(expected[at].shape) or expected[at]:numel() == 0
    or self.ndim == 0 or at == 1 and file.cases.name ~= "argsort" then
    return
  end
  local dim = case.kw.dim
  for i = 2, case.n do
    local first = file.cases.name == "topk" or file.cases.name == "kthvalue"
    if dim == nil and math.type(case.a[i]) == "integer" and not (first and i == 2) then
      dim = case.a[i]
    end
  end
  dim = dim or -1
  dim = dim >= 0 and dim + 1 or dim
  local x, a, b = self:detach():to "cpu", found[at]:to "cpu", expected[at]
  local squeezed = a.ndim < x.ndim
  if squeezed then a, b = a:unsqueeze(dim), b:unsqueeze(dim) end
  if compare(x:gather(dim, a + 1), x:gather(dim, b + 1), EXACT, 0, true) == nil then
    found[at] = expected[at]
  end
end

local function run(file, case)
  local leaves = {}
  local c = {args = {}, n = case.n, kw = {}, done = {}}
  for i = 1, case.n do c.args[i] = file:decode(case.a[i], device, leaves) end
  local f, results
  f, c.params, results = target(file, case, c.args[1])
  for k, v in pairs(case.kw) do c.kw[k] = file:decode(v, device, leaves) end
  if f == nil then return "missing: " .. (case.f or file.cases.name) end
  local expected = {}
  for _, r in ipairs(case.r) do flatten(expected, plain(file:decode(r)) or "none") end
  translated(c, file)
  if case.k == "in_place" and c.args[1].requires_grad then c.args[1] = c.args[1]:detach() end
  local self = c.args[1]
  if case.k == "out" then
    local out = {}
    for i, e in ipairs(expected) do
      out[i] = lt.is_tensor(e) and lt.empty(e.shape, {dtype = e.dtype, device = device}) or nil
    end
    c.kw.out = #out == 1 and out[1] or out
    for i = 1, c.n do
      local a = c.args[i]
      if lt.is_tensor(a) then c.args[i] = a:detach() end
      for k, t in ipairs(type(a) == "table" and a or {}) do
        if lt.is_tensor(t) then a[k] = t:detach() end
      end
    end
  end
  local final = c.n > 0 and c.args[c.n]
  local ends_in_table = type(final) == "table" and getmetatable(final) == nil
  if next(c.kw) ~= nil or ends_in_table and not translate.renamed[file.cases.row] then
    c.n = c.n + 1
    c.args[c.n] = c.kw
  end
  local packed = table.pack(f(table.unpack(c.args, 1, c.n)))
  for i = 1, packed.n do
    local kind = results[i] and results[i].type
    if file.cases.name:find "^unique" and not case.kw.return_inverse then kind = nil end -- counts
    local index = kind == "Index" or kind == "Index[]"
    if index and lt.is_tensor(packed[i]) then
      packed[i] = packed[i] - 1
    elseif index and type(packed[i]) == "table" then
      for k, t in ipairs(packed[i]) do packed[i][k] = t - 1 end
    end
    local after = translate.results[file.cases.row] or translate.results[file.cases.name]
    if after then packed[i] = after(packed[i], i, file.cases.row) end
  end
  local found = {}
  for i = 1, packed.n do flatten(found, packed[i]) end
  if case.p then
    local process = translate.process[case.p]
    if not process then return "no process " .. case.p end
    found = flatten({}, table.pack(process(file.cases.row, table.unpack(found))))
  end
  if #found ~= #expected then
    return ("expected %d results, got %d"):format(#expected, #found)
  end
  accept_order(file, case, self, found, expected)
  local values = not case.random and not on_meta
  for i, e in ipairs(expected) do
    local text
    if lt.is_tensor(e) then
      text = compare(found[i], e, tolerance_of(e.dtype), 0, values)
    elseif values and type(e) == "number" and type(found[i]) == "number" then
      local t = tolerance_of(case.d)
      text = differs(found[i], e, t[1], t[2]) and
        ("expected %s, got %s"):format(tostring(e), tostring(found[i])) or nil
    elseif values and found[i] ~= e and e ~= "none" then
      text = ("expected %s, got %s"):format(tostring(e), tostring(found[i]))
    end
    if text then return ("result %d: %s"):format(i, text) end
  end
  if case.k == "in_place" and not rawequal(found[1], self) then
    return "the result is not self"
  end
  if case.g and not on_meta then return gradients(case, file, found, leaves) end
end

-- Whether the device has the dtypes of the case, and is not among those that are known to fail.
local function possible(case)
  if case.skip and case.skip[device:match "^%a+"] then return false end
  return not (narrow and (case.d == "float64" or case.d == "complex128"))
end

--- Runs the cases of a file. Calls report(case, text) for each; text is nil when it passes.
function harness.run(file, report)
  for _, case in ipairs(file.cases) do
    if possible(case) then
      local ok, text = xpcall(run, function(e)
        return type(e) == "string" and e or tostring(e)
      end, file, case)
      if not ok then text = text or "error" end
      report(case, text)
    end
  end
end

return harness
