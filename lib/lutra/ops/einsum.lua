--- einsum: sums of products, in the notation of Einstein's sums.
--
-- An operand is a tensor with one label for each of its dims; the dims of an ellipsis get labels of
-- their own. Two operands are contracted at a time, by one (batched) matrix product, or by an
-- elementwise product where nothing is summed. The order of three or more operands is the one with
-- the fewest multiplications.

local lt = require "lutra"
local args = require "lutra.internal.args"
local core = require "lutra.core"
local is_half = require("lutra.internal.tensors").is_half

local SEARCHED = 8 -- operands up to which the best order is searched

-- ---- notation

-- Raises an error of einsum.
local function fail(message, ...) args.fail("einsum: " .. message, ...) end

-- Returns the labels of one part of an equation, in order, with "..." as a label.
local function labels_of(text)
  local labels, i = {}, 1
  while i <= #text do
    local c = text:sub(i, i)
    if text:sub(i, i + 2) == "..." then
      for _, label in ipairs(labels) do
        if label == "..." then fail("expected one ellipsis in %q, got two", text) end
      end
      labels[#labels + 1], i = "...", i + 3
    elseif c:match "%a" then
      labels[#labels + 1], i = c, i + 1
    else
      fail("expected letters, '...', ',' and '->' for argument 'equation', got %q", c)
    end
  end
  return labels
end

-- Returns the labels of the operands, a list of lists, and those of the result, nil if the equation
-- does not state them.
local function parse(equation)
  local text = equation:gsub("%s", "")
  local left, right = text:match "^(.-)%->(.*)$"
  local operands = {}
  for part in ((left or text) .. ","):gmatch "([^,]*)," do
    operands[#operands + 1] = labels_of(part)
  end
  return operands, right and labels_of(right)
end

local PARSED = 64 -- equations that are kept
local parsed, parsed_count = {}, 0

-- Returns what parse returns, in lists that later calls share, and a table for what else is known
-- of the equation.
local function parse_once(equation)
  local found = parsed[equation]
  if not found then
    found = table.pack(parse(equation))
    if parsed_count == PARSED then parsed, parsed_count = {}, 0 end
    parsed[equation], parsed_count = found, parsed_count + 1
  end
  return found[1], found[2], found
end

-- Returns a list of numbers and "..." as labels; number 1 is A, 27 is a.
local function labels_of_list(list)
  if not args.is_plain(list) then fail("expected a list of labels, got %s", args.show(list)) end
  local labels = {}
  for i, id in ipairs(list) do
    if id == "..." then
      labels[i] = id
    else
      if math.type(id) ~= "integer" or id < 1 or id > 52 then
        fail("expected integers from 1 to 52 and \"...\" in a list of labels, got %s",
          args.show(id))
      end
      labels[i] = string.char(id <= 26 and 64 + id or 70 + id)
    end
  end
  return labels
end

-- Reads the call's arguments: an equation and operands, or operands that are each followed by the
-- list of their labels. Returns the operands, their labels, those of the result or nil, and the
-- table of the equation if there is one.
local function read(...)
  local given = {}
  for i = 1, select("#", ...) do given[#given + 1] = (select(i, ...)) end
  if type(given[1]) == "string" then
    local tensors = {}
    for i = 2, #given do
      if type(given[i]) == "table" and not lt.is_tensor(given[i]) then
        table.move(given[i], 1, #given[i], #tensors + 1, tensors)
      else
        tensors[#tensors + 1] = given[i]
      end
    end
    local operands, result, equation = parse_once(given[1])
    return tensors, operands, result, equation
  end
  local tensors, operands, result = {}, {}, nil
  for i = 1, #given, 2 do
    if i == #given then
      result = labels_of_list(given[i])
    else
      tensors[#tensors + 1], operands[#operands + 1] = given[i], labels_of_list(given[i + 1])
    end
  end
  return tensors, operands, result
end

-- ---- operands with one label for each dim

-- Returns the labels of x's dims: "..." is replaced by labels of its own, which are numbered from
-- the last dim, so that ellipses are aligned there.
local function expand_labels(x, labels, number)
  local rest = x.ndim - #labels
  local expanded, has_ellipsis = {}, false
  for _, label in ipairs(labels) do
    if label == "..." then
      has_ellipsis = true
      for k = rest + 1, 1, -1 do expanded[#expanded + 1] = "." .. k end
    else
      expanded[#expanded + 1] = label
    end
  end
  if #expanded ~= x.ndim or (rest < -1 and has_ellipsis) then
    fail("expected %s%d dimension%s for operand %d by its labels, got %s",
      has_ellipsis and "at least " or "", has_ellipsis and #labels - 1 or #labels,
      #labels == 1 and "" or "s", number, tostring(x.shape))
  end
  return expanded
end

-- Returns x and its labels, with the diagonal taken where a label is repeated.
local function take_diagonals(x, labels, number)
  local at, d = {}, 1
  while d <= #labels do
    local first = at[labels[d]]
    if first then
      if x:size(first) ~= x:size(d) then
        fail("expected equal sizes for the repeated label '%s' of operand %d, got %d and %d",
          labels[d], number, x:size(first), x:size(d))
      end
      local label = labels[d]
      x = x:diagonal(0, first, d) -- removes both dims, and adds the diagonal as the last one
      table.remove(labels, d)
      table.remove(labels, first)
      labels[#labels + 1] = label
      return take_diagonals(x, labels, number)
    end
    at[labels[d]], d = d, d + 1
  end
  return x, labels
end

-- Returns the size of each label. A size of 1 is broadcast.
local function sizes_of(operands)
  local sizes = {}
  for i, o in ipairs(operands) do
    for d, label in ipairs(o.labels) do
      local size, known = o.x:size(d), sizes[label]
      if known and known ~= 1 and size ~= 1 and size ~= known then
        fail("expected size %d for the label '%s' of operand %d, as before, got %d: %s", known,
          label, i, size, tostring(o.x.shape))
      end
      if not known or known == 1 then sizes[label] = size end
    end
  end
  return sizes
end

-- Removes the dims of size 1 that other operands broadcast.
local function drop_broadcast(o, sizes)
  for d = #o.labels, 1, -1 do
    if o.x:size(d) == 1 and sizes[o.labels[d]] ~= 1 then
      o.x = o.x:squeeze(d)
      table.remove(o.labels, d)
    end
  end
end

-- Returns the labels of the result when the equation does not state them: those of the ellipses,
-- then those that occur once, sorted.
local function implicit_result(lists)
  local counts, result = {}, {"..."}
  for _, labels in ipairs(lists) do
    for _, label in ipairs(labels) do counts[label] = (counts[label] or 0) + 1 end
  end
  for label, n in pairs(counts) do
    if n == 1 and label ~= "..." then result[#result + 1] = label end
  end
  table.sort(result)
  return result
end

-- Returns the labels of the result's dims; checks that each occurs in an operand, and once.
local function result_labels(stated, sizes)
  local labels, seen = {}, {}
  for _, label in ipairs(stated) do
    if label == "..." then
      local last = 0
      while sizes["." .. last + 1] do last = last + 1 end
      for k = last, 1, -1 do labels[#labels + 1] = "." .. k end
    else
      if not sizes[label] then
        fail("expected the labels of operands in the result, got '%s'", label)
      end
      if seen[label] then fail("expected each label of the result once, got '%s' twice", label) end
      labels[#labels + 1], seen[label] = label, true
    end
  end
  return labels
end

-- ---- contraction

-- Returns the set of a list's values.
local function set_of(list)
  local set = {}
  for _, v in ipairs(list) do set[v] = true end
  return set
end

-- Returns an operand with the labels summed that are not in `kept`. `dtype` is that of the sum.
local function sum_out(o, kept, dtype)
  local dims, labels = {}, {}
  for d, label in ipairs(o.labels) do
    if kept[label] then labels[#labels + 1] = label else dims[#dims + 1] = d end
  end
  if #dims == 0 then return o end
  return {x = o.x:sum{dim = dims, dtype = dtype}, labels = labels}
end

-- Returns o's tensor with its dims in the order of `labels`, which are all of its labels.
local function arranged(o, labels)
  local at, dims, moved = {}, {}, false
  for d, label in ipairs(o.labels) do at[label] = d end
  for i, label in ipairs(labels) do
    dims[i] = at[label]
    moved = moved or dims[i] ~= i
  end
  return moved and o.x:permute(dims) or o.x
end

-- Returns the elementwise product of two operands, whose labels are all kept.
local function multiply(a, b)
  local labels, in_b = table.move(a.labels, 1, #a.labels, 1, {}), set_of(b.labels)
  local in_a = set_of(a.labels)
  for _, label in ipairs(b.labels) do
    if not in_a[label] then labels[#labels + 1] = label end
  end
  local x, own = a.x, {}
  for d = #a.labels + 1, #labels do x = x:unsqueeze(d) end
  for _, label in ipairs(labels) do
    if in_b[label] then own[#own + 1] = label end
  end
  local y = arranged(b, own)
  for d, label in ipairs(labels) do
    if not in_b[label] then y = y:unsqueeze(d) end
  end
  return {x = x * y, labels = labels}
end

-- Returns one list of the labels of three.
local function joined(first, second, third)
  local list = {}
  for _, part in ipairs{first, second, third} do table.move(part, 1, #part, #list + 1, list) end
  return list
end

-- Returns the number of elements with these labels.
local function product_of(sizes, labels)
  local n = 1
  for _, label in ipairs(labels) do n = n * sizes[label] end
  return n
end

-- Returns the contraction of two operands: the sum over the labels that are not in `kept`.
local function contract(a, b, kept, sizes)
  local in_a, in_b = set_of(a.labels), set_of(b.labels)
  local kept_a, kept_b = setmetatable({}, {__index = kept}), setmetatable({}, {__index = kept})
  for label in pairs(in_b) do kept_a[label] = true end
  for label in pairs(in_a) do kept_b[label] = true end
  a, b = sum_out(a, kept_a, a.x.dtype), sum_out(b, kept_b, b.x.dtype)
  local batch, left, right, summed = {}, {}, {}, {}
  for _, label in ipairs(a.labels) do
    local list = in_b[label] and (kept[label] and batch or summed) or left
    list[#list + 1] = label
  end
  for _, label in ipairs(b.labels) do
    if not in_a[label] then right[#right + 1] = label end
  end
  if #summed == 0 then return multiply(a, b) end
  local n, k, m = product_of(sizes, left), product_of(sizes, summed), product_of(sizes, right)
  local x = arranged(a, joined(batch, left, summed))
  local y = arranged(b, joined(batch, summed, right))
  local labels, shape = joined(batch, left, right), {}
  for d, label in ipairs(labels) do shape[d] = sizes[label] end
  local product
  if #batch == 0 then
    product = x:reshape(n, k):mm(y:reshape(k, m))
  else
    local count = product_of(sizes, batch)
    product = x:reshape(count, n, k):bmm(y:reshape(count, k, m))
  end
  return {x = product:reshape(shape), labels = labels}
end

-- ---- order of contractions

-- Returns the order of contractions of n operands with the fewest multiplications as a tree: a
-- number, or {tree, tree}. masks[i] has a bit for each label of operand i; `result` is the mask of
-- the result, `size` returns the product of a mask's sizes.
local function best_order(masks, result, size)
  local n = #masks
  local all = (1 << n) - 1
  local labels, best = {}, {} -- by set of operands
  for set = 1, all do
    local inside, outside = 0, result
    for i = 1, n do
      local has = set >> (i - 1) & 1 == 1
      inside, outside = has and inside | masks[i] or inside, has and outside or outside | masks[i]
    end
    labels[set] = inside & outside
  end
  for i = 1, n do labels[1 << (i - 1)], best[1 << (i - 1)] = masks[i], {cost = 0, tree = i} end
  for set = 1, all do
    local found = best[set] or {cost = math.huge}
    local part = (set - 1) & set
    while part > 0 and not best[set] do
      local rest = set ~ part
      if part > rest then
        local c = best[part].cost + best[rest].cost + size(labels[part] | labels[rest])
        if c < found.cost then
          found = {cost = c, tree = {best[rest].tree, best[part].tree}}
        end
      end
      part = (part - 1) & set
    end
    best[set] = found
  end
  return best[all].tree
end

-- The same for many operands: repeatedly contracts the pair with the fewest multiplications.
local function greedy_order(masks, result, size)
  local items = {}
  for i, mask in ipairs(masks) do items[i] = {mask = mask, tree = i} end
  while #items > 1 do
    local least, p, q = math.huge, 1, 2
    for i = 1, #items do
      for j = i + 1, #items do
        local c = size(items[i].mask | items[j].mask)
        if c < least then least, p, q = c, i, j end
      end
    end
    local b, a, outside = table.remove(items, q), table.remove(items, p), result
    for _, item in ipairs(items) do outside = outside | item.mask end
    items[#items + 1] = {mask = (a.mask | b.mask) & outside, tree = {a.tree, b.tree}}
  end
  return items[1].tree
end

-- Returns the tree of contractions of the operands; left to right when there are more labels than
-- bits.
local function order_of(operands, result, sizes)
  local bits, list = {}, {}
  for label in pairs(sizes) do list[#list + 1] = label end
  if #operands == 2 or #list > 62 then
    local tree = 1
    for i = 2, #operands do tree = {tree, i} end
    return tree
  end
  table.sort(list)
  for i, label in ipairs(list) do bits[label] = 1 << (i - 1) end
  local function mask_of(labels)
    local mask = 0
    for _, label in ipairs(labels) do mask = mask | bits[label] end
    return mask
  end
  local masks = {}
  for i, o in ipairs(operands) do masks[i] = mask_of(o.labels) end
  local known = {}
  local function size(mask)
    if not known[mask] then
      local n = 1.0
      for i, label in ipairs(list) do
        if mask >> (i - 1) & 1 == 1 then n = n * math.max(sizes[label], 1) end
      end
      known[mask] = n
    end
    return known[mask]
  end
  local search = #operands <= SEARCHED and best_order or greedy_order
  return search(masks, mask_of(result), size)
end

-- Contracts the operands in the order of `tree`. `uses` counts the operands that have each label,
-- and the result.
local function run(tree, operands, uses, sizes)
  if type(tree) == "number" then return operands[tree] end
  local a = run(tree[1], operands, uses, sizes)
  local b = run(tree[2], operands, uses, sizes)
  local kept = {}
  for _, o in ipairs{a, b} do
    for _, label in ipairs(o.labels) do uses[label] = uses[label] - 1 end
  end
  for label, n in pairs(uses) do kept[label] = n > 0 or nil end
  local product = contract(a, b, kept, sizes)
  for _, label in ipairs(product.labels) do uses[label] = uses[label] + 1 end
  return product
end

-- ---- one matrix product, or one sum

-- Returns the dims of the values of a list, by value; nil if one occurs twice or is an ellipsis.
local function places_of(labels)
  local at = {}
  for d, label in ipairs(labels) do
    if at[label] or label == "..." then return nil end
    at[label] = d
  end
  return at
end

-- Returns the labels of the result's dims, of equations whose operands have no ellipsis.
local function stated_labels(lists, stated)
  local labels = {}
  for _, label in ipairs(stated or implicit_result(lists)) do
    if stated or label ~= "..." then labels[#labels + 1] = label end
  end
  return labels
end

-- Returns how one operand is summed: the dims of the sum, and those of the result in the order of
-- the remaining ones. Returns false for an equation that needs more than that.
local function sum_plan(list, stated)
  local at_x, labels = places_of(list), stated_labels({list}, stated)
  local at = places_of(labels)
  if not at_x or not at then return false end
  local plan, kept = {ndim = #list, dims = {}, result = {}}, {}
  for d, label in ipairs(list) do
    if at[label] then kept[#kept + 1] = label else plan.dims[#plan.dims + 1] = d end
  end
  if #kept ~= #labels then return false end
  local place = places_of(kept)
  for i, label in ipairs(labels) do plan.result[i] = place[label] end
  return plan
end

-- Returns how two operands are contracted by one matrix product, or by an outer product: `a` and
-- `b` are their dims in the order batch, rows, summed, and batch, summed, columns, with these
-- numbers of each; `result` are the dims of the product in the order of the result. Returns false
-- for an equation that needs more or less than that.
local function product_plan(lists, stated)
  local at_a, at_b = places_of(lists[1]), places_of(lists[2])
  local labels = stated_labels(lists, stated)
  local at = places_of(labels)
  if not at_a or not at_b or not at then return false end
  local batch, rows, summed, columns = {}, {}, {}, {}
  for _, label in ipairs(lists[1]) do
    local list = at_b[label] and (at[label] and batch or summed) or at[label] and rows
    if not list then return false end -- summed in one operand
    list[#list + 1] = label
  end
  for _, label in ipairs(lists[2]) do
    if not at_a[label] then
      if not at[label] then return false end
      columns[#columns + 1] = label
    end
  end
  local product = joined(batch, rows, columns)
  if (#summed == 0 and #batch > 0) or #product ~= #labels then return false end
  local plan = {a = {}, b = {}, result = {}, batch = #batch, rows = #rows, summed = #summed,
    columns = #columns}
  for i, label in ipairs(joined(batch, rows, summed)) do plan.a[i] = at_a[label] end
  for i, label in ipairs(joined(batch, summed, columns)) do plan.b[i] = at_b[label] end
  local place = places_of(product)
  for i, label in ipairs(labels) do plan.result[i] = place[label] end
  -- Sums of products of elements that do not lie side by side: a matrix product would copy them.
  plan.scattered = #batch > 0 and #rows == 0 and #columns == 0
    and (plan.a[#plan.a] ~= #plan.a or plan.b[#plan.b] ~= #plan.b)
  return plan
end

-- Returns x with its dims in this order.
local function ordered(x, dims)
  for i = 1, #dims do
    if dims[i] ~= i then return x:permute(dims) end
  end
  return x
end

-- Returns the product of `count` sizes from `first` on, in the order of `dims`, which are appended
-- to `shape`.
local function sizes_at(sizes, dims, first, count, shape)
  local n = 1
  for i = first, first + count - 1 do
    local size = sizes[dims[i]]
    n, shape[#shape + 1] = n * size, size
  end
  return n
end

-- Returns whether sums of elementwise products have the dtype and the rounding of a matrix product.
local function sums_as_product(a, b)
  return a == b and a ~= "bool" and not is_half(a) and not core._autocast_any()
end

-- Returns the contraction of two tensors by a plan; nil where dims are broadcast or do not match.
local function run_product(plan, a, b)
  local of_a, of_b, shape, inner = a.shape, b.shape, {}, {}
  local in_a, in_b, batch = plan.a, plan.b, plan.batch
  if #of_a ~= #in_a or #of_b ~= #in_b then return nil end
  for i = 1, batch do
    if of_a[in_a[i]] ~= of_b[in_b[i]] then return nil end
  end
  for i = 1, plan.summed do
    if of_a[in_a[batch + plan.rows + i]] ~= of_b[in_b[batch + i]] then return nil end
  end
  local count = sizes_at(of_a, in_a, 1, batch, shape)
  local n = sizes_at(of_a, in_a, batch + 1, plan.rows, shape)
  local k = sizes_at(of_a, in_a, batch + plan.rows + 1, plan.summed, inner)
  local m = sizes_at(of_b, in_b, batch + plan.summed + 1, plan.columns, shape)
  local product
  if plan.summed == 0 then
    product = ordered(a, in_a):reshape(n, 1) * ordered(b, in_b):reshape(1, m)
  elseif batch == 0 then
    product = ordered(a, in_a):reshape(n, k):mm(ordered(b, in_b):reshape(k, m))
  elseif plan.scattered and sums_as_product(a.dtype, b.dtype) then
    local dims = {}
    for i = 1, plan.summed do dims[i] = batch + i end
    product = (ordered(a, in_a) * ordered(b, in_b)):sum(dims, false, a.dtype)
  else
    product = ordered(a, in_a):reshape(count, n, k):bmm(ordered(b, in_b):reshape(count, k, m))
  end
  return ordered(product:reshape(shape), plan.result)
end

local function einsum(...)
  local tensors, lists, stated, equation = read(...)
  if #tensors ~= #lists or #tensors == 0 then
    fail("expected %d operand%s by the equation, got %d", #lists, #lists == 1 and "" or "s",
      #tensors)
  end
  if equation and #tensors == 1 and lt.is_tensor(tensors[1]) then
    if equation.plan == nil then equation.plan = sum_plan(lists[1], stated) end
    local plan, x = equation.plan, tensors[1]
    if plan and x.ndim == plan.ndim then
      return ordered(#plan.dims > 0 and x:sum(plan.dims) or x, plan.result)
    end
  end
  if equation and #tensors == 2 and lt.is_tensor(tensors[1]) and lt.is_tensor(tensors[2]) then
    if equation.plan == nil then equation.plan = product_plan(lists, stated) end
    local product = equation.plan and run_product(equation.plan, tensors[1], tensors[2])
    if product then return product end
  end
  local operands = {}
  for i, x in ipairs(tensors) do
    if not lt.is_tensor(x) then
      fail("expected a tensor for operand %d, got %s", i, args.show(x))
    end
    local y, labels = take_diagonals(x, expand_labels(x, lists[i], i), i)
    operands[i] = {x = y, labels = labels}
  end
  local sizes = sizes_of(operands)
  local result = result_labels(stated or implicit_result(lists), sizes)
  local uses = {}
  for _, o in ipairs(operands) do
    drop_broadcast(o, sizes)
    for _, label in ipairs(o.labels) do uses[label] = (uses[label] or 0) + 1 end
  end
  for _, label in ipairs(result) do uses[label] = uses[label] + 1 end
  local o = operands[1]
  if #operands > 1 then o = run(order_of(operands, result, sizes), operands, uses, sizes) end
  return arranged(sum_out(o, set_of(result), nil), result)
end

lt._define{
  signature = "lt.einsum(any equation, any operands, any? a3 = nil, any? a4 = nil, any? a5 = nil, "
    .. "any? a6 = nil, any? a7 = nil, any? a8 = nil, any? a9 = nil, any? a10 = nil, "
    .. "any? a11 = nil, any? a12 = nil, any? a13 = nil)",
  doc = "Sums of products over labelled dims: einsum(\"ij,jk->ik\", a, b) is a matrix product. "
    .. "Labels are letters; `...` stands for any dims, which are broadcast; a label that is "
    .. "repeated in an operand takes its diagonal; labels that are not in the result are summed. "
    .. "Without `->`, the result has the labels that occur once, sorted. Operands may be one list, "
    .. "or alternate with lists of labels from 1 to 52: einsum(a, {1, 2}, b, {2, 3}, {1, 3}). "
    .. "Three and more operands are contracted in the order with the fewest multiplications.",
  example = 'lt.einsum("ij,jk->ik", lt.ones(2, 3), lt.ones(3, 4))',
  fn = einsum,
}
