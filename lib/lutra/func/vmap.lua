--- lt.func.vmap: a function of one example as a function of a batch.
--
-- The function is called once for the batch, with proxies of which lutra.func.batching runs the ops
-- by rules. Where that is not possible (values are read, tensors change in place, random numbers)
-- it is called once for each example, with views of the batch, and its results are stacked; one
-- warning says so. Gradients pass through both.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local batching = require "lutra.func.batching"
local tree = require "lutra.internal.tree"

local vmap = {}

local warned = false

local function warn_once()
  if warned then return end
  warned = true
  io.stderr:write("warning: vmap: the function is called once for each example of the batch; ",
    "ops on the whole batch are faster\n")
end

-- Returns the dims of each tensor of a value: `dims` is one dim, false for none, or a tree of them
-- as the value.
local function dims_of(title, name, value, dims, list)
  if core.is_tensor(value) then
    args.expect(dims == false or math.tointeger(dims), title,
      "an int (from 1), false for no dim, or a table of them", name, dims)
    list[#list + 1] = dims
    return list
  end
  if not tree.is_node(value) then return list end
  for _, key in ipairs(require("lutra.internal.ordered_map").keys(value)) do
    local own = dims
    if type(dims) == "table" then own = dims[key] end
    if own == nil then own = false end
    dims_of(title, name, value[key], own, list)
  end
  return list
end

-- Returns the size of the batch.
local function batch_size(tensors, dims)
  local size
  for i, t in ipairs(tensors) do
    if dims[i] then
      args.check(t.ndim > 0, "vmap: expected a tensor with a dim %d for argument 'in_dims', got %s",
        dims[i], args.show(t))
      local n = t:size(dims[i])
      args.check(not size or size == n,
        "vmap: expected the same size in the mapped dim of every tensor, got %d and %d", size or 0,
        n)
      size = n
    end
  end
  args.check(size, "vmap: expected at least one mapped tensor for argument 'in_dims', got none")
  return size
end

-- Returns a function that is called before each example, and one that is called after it, which
-- give random numbers their meaning.
local function random_rules(randomness)
  if randomness == "different" then return function() end, function() end end
  local start = core.get_rng_state()
  if randomness == "same" then
    return function() core.set_rng_state(start) end, function() end
  end
  return function() end, function()
    if not core._ops.equal(core.get_rng_state(), start) then
      core.set_rng_state(start)
      args.fail("vmap: cannot use random numbers in the function\n"
        .. 'hint: lt.func.vmap(f, {randomness = "different"}) or "same"')
    end
  end
end

-- Returns the results of one call for each example: list[k], packed.
local function run(func, arguments, tensors, dims, size, randomness)
  local before, after = random_rules(randomness)
  local list = {}
  for k = 1, size do
    before()
    local views = {}
    for i, t in ipairs(tensors) do views[i] = dims[i] and t:select(dims[i], k) or t end
    local own = tree.fill(arguments, views)
    list[k] = table.pack(func(table.unpack(own, 1, arguments.n)))
    after()
  end
  return list
end

-- Returns the results of all examples of the loop, stacked along the first dim.
local function stacked(list)
  local results = {n = list[1].n}
  for i = 1, results.n do
    local trees = {}
    for k, packed in ipairs(list) do trees[k] = tree.leaves(packed[i]) end
    args.check(#trees[1] > 0, "vmap: expected the function to return tensors, got %s",
      args.show(list[1][i]))
    results[i] = tree.map(list[1][i], function(_, j)
      local column = {}
      for k = 1, #list do column[k] = trees[k][j] end
      return core._ops.stack(column, {dim = 1})
    end)
  end
  return results
end

-- Returns the results of the whole batch by rules, with the batch as first dim; nil where that is
-- not possible.
local function batched(func, arguments, tensors, dims, size)
  local start = core.get_rng_state()
  local ok, results = batching.run(size, function(at)
    local proxies = {}
    for i, t in ipairs(tensors) do
      proxies[i] = dims[i] and batching.wrap(t:movedim(dims[i], 1), at) or t
    end
    local own = tree.fill(arguments, proxies)
    local values = table.pack(batching.current(func)(table.unpack(own, 1, arguments.n)))
    return batching.unwrapped(values, at)
  end)
  if not core._ops.equal(core.get_rng_state(), start) then
    core.set_rng_state(start)
    return nil
  end
  return ok and results or nil
end

-- Returns the results with the batch in the dim out_dims; false means the first example.
local function placed(results, out_dims)
  for i = 1, results.n do
    local own = out_dims
    if args.is_plain(out_dims) then own = out_dims[i] end
    if own == nil then own = 1 end
    local dims = dims_of("vmap", "out_dims", results[i], own, {})
    results[i] = tree.map(results[i], function(t, j)
      if dims[j] == false then return t:select(1, 1) end
      return dims[j] == 1 and t or t:movedim(1, dims[j])
    end)
  end
  return table.unpack(results, 1, results.n)
end

-- Returns the results of the parts of a batch as those of the batch.
local function joined(parts)
  local results = parts[1]
  if #parts == 1 then return results end
  for i = 1, results.n do
    local trees = {}
    for k, part in ipairs(parts) do trees[k] = tree.leaves(part[i]) end
    results[i] = tree.map(results[i], function(_, j)
      local column = {}
      for k = 1, #parts do column[k] = trees[k][j] end
      return core._ops.cat(column, 1)
    end)
  end
  return results
end

-- Returns the results for each part of at most `chunk` examples.
local function run_parts(func, arguments, tensors, dims, size, randomness, chunk)
  local parts = {}
  for first = 1, size, chunk do
    local count = math.min(chunk, size - first + 1)
    local own = {}
    for i, t in ipairs(tensors) do
      own[i] = dims[i] and count < size and t:narrow(dims[i], first, count) or t
    end
    local part = batched(func, arguments, own, dims, count)
    if not part then
      warn_once()
      part = stacked(run(func, arguments, own, dims, count, randomness))
    end
    parts[#parts + 1] = part
  end
  return joined(parts)
end

local parse = args.signature("vmap", "function func, any? in_dims = nil, any? out_dims = nil, "
  .. "'error'|'different'|'same' randomness = 'error', int(>=1)? chunk_size = nil")

--- vmap(func, {in_dims = 1, out_dims = 1, randomness = "error", chunk_size}): returns a function
-- that applies func to each example of a batch and stacks the results. in_dims is the batch's dim
-- in every argument, or a list with a dim for each (for a table of tensors, a table); false for an
-- argument that all examples share. out_dims is the batch's dim in the results, or a list with one
-- for each. With randomness = "different" random ops give each example its own numbers, with "same"
-- the same; "error" refuses them. func is called once for at most chunk_size examples (default:
-- all), and its ops run on all of them; an op without a rule runs in a loop, with a warning. Where
-- func reads values, changes tensors in place or uses random numbers, it is called again for each
-- example, which one warning reports: it should have no other effects than its results. Raises an
-- error for different sizes, and for results without tensors.
function vmap.vmap(...)
  local func, in_dims, out_dims, randomness, chunk_size = parse(...)
  if in_dims == nil then in_dims = 1 end
  if out_dims == nil then out_dims = 1 end
  return function(...)
    local arguments = table.pack(...)
    local tensors, dims = {}, {}
    for i = 1, arguments.n do
      local own = in_dims
      if args.is_plain(in_dims) then own = in_dims[i] end
      if own == nil then own = false end
      table.move(tree.leaves(arguments[i]), 1, #tree.leaves(arguments[i]), #tensors + 1, tensors)
      dims_of("vmap", "in_dims", arguments[i], own, dims)
    end
    local size = batch_size(tensors, dims)
    args.check(size > 0, "vmap: expected a batch with examples, got an empty one")
    return placed(run_parts(func, arguments, tensors, dims, size, randomness, chunk_size or size),
      out_dims)
  end
end

return vmap
