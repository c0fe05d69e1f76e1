--- Translation of a call of PyTorch to Lutra: indices and dimensions count from 1, ranges include
-- both ends. Most of it follows from the types of Lutra's own signatures; the table `before`
-- has the rest, by name of the function.
--
-- A call is {args, n, kw, lt, params, done}: decoded arguments, still PyTorch's. A function of
-- `before` translates some of them and marks them in `done`, by position or name, so that the
-- signature's types do not apply to them a second time.

local lt = require "lutra"

local translate = {before = {}, renamed = {}, functions = {}, results = {}}
local before = translate.before

-- ---- values

local function is_integer(t) return lt.is_tensor(t) and t.dtype:find "int" ~= nil end

--- Returns a number, a list or an integer tensor with 1 added to each value that is not negative.
function translate.shift(v)
  if math.type(v) == "integer" then return v >= 0 and v + 1 or v end
  if is_integer(v) then return v:numel() == 0 and v or v + v:ge(0):to(v.dtype) end
  if type(v) == "table" and getmetatable(v) == nil then
    local list = {}
    for i, x in ipairs(v) do list[i] = translate.shift(x) end
    return list
  end
  return v
end
local shift = translate.shift

-- The last index of PyTorch's range of ends before `stop`: 1-based and inclusive.
local function last(stop)
  if stop == nil then return nil end
  return stop < 0 and stop - 1 or stop
end

local function has(kind, name)
  return ("|" .. kind:gsub("%?", "") .. "|"):find("|" .. name .. "|", 1, true) ~= nil
end

--- Returns a value translated by the type of a parameter.
function translate.by_type(v, param)
  local kind = param.type
  if lt.is_tensor(v) then
    return (has(kind, "Index") or has(kind, "Index[]")) and shift(v) or v
  elseif kind:find "Index" or kind:find "dim" or has(kind, "position")
    or param.name == "dim" and type(v) == "number" then
    if has(kind, "int") and param.name ~= "dim" and type(v) == "number" then return v end
    return shift(v)
  end
  return v
end

-- ---- rules of single functions

-- Marks and replaces argument i, or `name` among the named arguments.
local function replace(c, i, name, f)
  if i and i <= c.n then
    if c.args[i] ~= nil then c.args[i] = f(c.args[i]) end
    c.done[i] = true
  elseif name and c.kw[name] ~= nil then
    c.kw[name] = f(c.kw[name])
    c.done[name] = true
  end
end

local function shifted(...)
  local which = {...}
  return function(c)
    for _, w in ipairs(which) do replace(c, w[1], w[2], shift) end
  end
end

-- The values of torch.arange(start, stop, step) as Lutra's bounds.
function before.arange(c)
  local start, stop, step = c.args[1], c.args[2] or c.kw["end"], c.args[3] or c.kw.step or 1
  if stop == nil then start, stop = 0, start end
  local function number(v) return type(v) == "boolean" and (v and 1 or 0) or v end
  start, stop, step = number(start), number(stop), number(step)
  local count = math.ceil((stop - start) / step)
  local final = start + (math.max(count, 0) - 1) * step
  if math.type(start) == "integer" and math.type(step) == "integer"
    and math.type(stop) == "float" then
    start, final = start + 0.0, final + 0.0
  end
  c.args, c.n = {start, final, step}, 3
  c.kw["end"], c.kw.step = nil, nil
end

function before.randint(c)
  if type(c.args[2]) == "number" then
    c.args[2] = c.args[2] - 1
  else
    table.insert(c.args, 2, c.args[1] - 1)
    c.args[1], c.n = 0, c.n + 1
  end
end

function before.randint_like(c)
  if type(c.args[3]) == "number" then
    c.args[3] = c.args[3] - 1
  elseif c.kw.high then
    c.kw.high = c.kw.high - 1
  else
    c.args[3], c.args[2], c.n = c.args[2] - 1, 0, 3
  end
end

-- An index of __getitem__ in the form of a table index.
local function index_of(v)
  if type(v) ~= "table" then return shift(v) end
  if v.slice then
    local a, b, s = v.slice[1], v.slice[2], v.slice[3]
    if b == 0 then return {1, 0} end
    if a == nil and b == nil and s == nil then return {} end
    return {shift(a or 0), last(b) or -1, s}
  end
  if v.ellipsis then return "..." end
  return lt.tensor(shift(v), {dtype = "int64"})
end

-- Whether a list selects by dimension: a tuple, or a list with more than numbers.
local function is_tuple(v)
  if v.tuple then return true end
  for _, x in ipairs(v) do
    if type(x) ~= "number" then return true end
  end
  return false
end

before["__getitem__"] = function(c)
  local index = c.args[2]
  if type(index) == "table" and is_tuple(index) then
    local list = {}
    for i = 1, index.n or #index do
      if index[i] == nil then list[i] = lt.newaxis else list[i] = index_of(index[i]) end
    end
    c.args[2] = list
  elseif type(index) == "table" and not index.ellipsis then
    local one = index_of(index)
    c.args[2] = lt.is_tensor(one) and one or {one}
  else
    c.args[2] = index_of(index)
  end
  c.done[2] = true
end
translate.renamed["__getitem__"] = function(x, index) return x[index] end

for name, f in pairs {
  radd = function(x, y) return y + x end,
  rsub = function(x, y) return y - x end,
  rmul = function(x, y) return y * x end,
  rdiv = function(x, y) return y / x end,
  rmod = function(x, y) return y % x end,
  rpow = function(x, y) return y ^ x end,
  rand = function(x, y) return y & x end,
  ror = function(x, y) return y | x end,
  rxor = function(x, y) return lt.bitwise_xor(y, x) end,
  rmatmul = function(x, y) return lt.matmul(y, x) end,
} do
  translate.renamed["__" .. name .. "__"] = f
end
for _, name in ipairs {"T", "H", "mT", "mH"} do
  translate.renamed[name] = function(x) return x[name] end
end
for _, name in ipairs {"cauchy", "exponential", "geometric", "log_normal", "uniform"} do
  translate.renamed[name] = function(x, ...) return x[name .. "_"](x, ...) end
end
translate.renamed["normal.in_place"] = function(x, ...) return x:normal_(...) end
translate.renamed["repeat"] = function(x, ...) return x["repeat"](x, ...) end
for _, name in ipairs {"real", "imag"} do
  translate.renamed[name] = function(x)
    local ok, f = pcall(function() return lt[name] end)
    if ok and type(f) == "function" then return f(x) end
    return x[name]
  end
end

-- torch.slice_scatter(input, src, dim=0, start=None, end=None, step=1): first and last.
local function first_and_last(i, j)
  return function(c)
    replace(c, i, "start", shift)
    if j <= c.n then
      replace(c, j, nil, last)
    elseif c.kw["end"] ~= nil then
      c.kw.stop = last(c.kw["end"])
    end
    c.kw["end"] = nil
  end
end
before.slice_scatter = first_and_last(4, 5)
before.slice = first_and_last(3, 4)

-- Where a new piece begins; a number is a number of pieces.
local function pieces(c)
  local function f(v)
    if type(v) == "number" or lt.is_tensor(v) and v.ndim == 0 then return v end
    return shift(v)
  end
  replace(c, 2, "indices_or_sections", f)
  for _, name in ipairs {"indices", "tensor_indices_or_sections"} do replace(c, nil, name, f) end
end
before.tensor_split, before.hsplit, before.vsplit, before.dsplit = pieces, pieces, pieces, pieces

-- Labels of losses: classes count from 1; negative ones (ignored, or the end) stay.
before.cross_entropy = shifted({2, "target"}, {5, "ignore_index"})
before.nll_loss = shifted({2, "target"}, {5, "ignore_index"})
before.linear_cross_entropy = shifted({3, "target"}, {nil, "ignore_index"})
before.multi_margin_loss = shifted({2, "target"})
before.multilabel_margin_loss = shifted({2, "target"})
before.ctc_loss = shifted({2, "targets"}, {5, "blank"})
before.embedding = shifted({1, "input"}, {3, "padding_idx"})
before.embedding_bag = shifted({1, "input"}, {3, "offsets"}, {nil, "padding_idx"})
before.bincount = shifted({1, "input"})
before.one_hot = shifted({1, "self"})
before.index_put = shifted({2, "indices"})
-- dims of tensordot: a number of dimensions, or two lists.
before.tensordot = function(c)
  local function f(v) return type(v) == "number" and v or shift(v) end
  replace(c, 3, "dims", f)
end

--- Functions whose results among equal values have no promised order: an index is correct when it
-- selects the expected value.
translate.unordered = {}
for _, name in ipairs {"topk", "kthvalue", "median", "nanmedian", "mode", "sort", "argsort"} do
  translate.unordered[name] = true
end

--- The functions that PyTorch's samples apply to results that are unique only up to them
-- (output_process_fn_grad), by name, or by "row name". They get the row's name and the results.
translate.process = {}
local process = translate.process

local function uniform(row, u, s, v)
  local k = s:size(-1)
  if row == "svd" then v = v.mH end
  return u:narrow(-1, 1, k), s, v:narrow(-2, 1, k)
end

function process.fn_U(row, ...)
  local u = uniform(row, ...)
  return u:abs()
end

function process.fn_S(row, ...)
  local _, s = uniform(row, ...)
  return s
end

function process.fn_Vh(row, ...)
  local _, s, v = uniform(row, ...)
  return s, v:abs()
end

function process.fn_UVh(row, ...)
  local u, s, v = uniform(row, ...)
  return u:matmul(v), s
end

function process.fn(_, u, s, v) return u:matmul(v.mH), s end

function process.out_fn(row, a, b, c)
  if row == "linalg.eig" or row == "linalg.eigh" then return a, b:abs() end
  if row == "linalg.lu" or row == "lu_unpack" then return b, c end
  return a, b, c
end

-- Functions that are arguments, by their names.
function process.PairwiseDistance(a, b) return lt.pairwise_distance(a, b) end
function process.cosine_similarity(a, b) return lt.cosine_similarity(a, b) end

-- Rows whose function in the database is a composition.
local function of_product(name)
  return function(a, b, ...)
    local f = lt
    for part in name:gmatch "[^.]+" do f = f[part] end
    return f(a:matmul(b.mT), ...)
  end
end
translate.renamed.svd_lowrank = of_product "svd_lowrank"
translate.renamed.pca_lowrank = of_product "pca_lowrank"
translate.renamed["linalg.pinv.singular"] = of_product "linalg.pinv"
translate.renamed["linalg.lstsq.grad_oriented"] = function(a, b, options)
  local solution, residuals = lt.linalg.lstsq(a, b, options)
  return solution, residuals
end
for _, name in ipairs {"resize_", "resize_as_", "zero_"} do
  translate.renamed[name] = function(x, ...)
    local copy = x:clone()
    return copy[name](copy, ...)
  end
end

return translate
