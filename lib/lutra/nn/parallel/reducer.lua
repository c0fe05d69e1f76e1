--- The reducer of DistributedDataParallel: averages the gradients of all ranks while backward runs.
--
-- Each gradient is copied to its bucket as soon as backward has computed it, and divided by the
-- number of ranks. A bucket whose gradients are all there is submitted, in the order of the
-- buckets, so that all ranks exchange them in the same order. After the pass the reducer waits for
-- the buckets, and the averages become the parameters' grads.
--
-- Invariant: `active` is true from the first gradient of a pass until all gradients have been
-- exchanged. An active reducer at the start of a forward pass means that backward failed, or that
-- parameters got no gradient.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local buckets = require "lutra.nn.parallel.buckets"
local class = require "lutra.internal.class"
local collectives = require "lutra.nn.parallel.collectives"
local tree = require "lutra.internal.tree"

local TITLE = "DistributedDataParallel"
local MOST_NAMES = 5 -- that a message lists

local Reducer = class("Reducer", "Reducer")

-- Returns the numbers n, ..., 1.
local function reversed(n)
  local order = {}
  for i = 1, n do order[i] = n - i + 1 end
  return order
end

-- Adds the hooks to the parameters. They refer weakly to the reducer, so that a parameter does not
-- keep it alive.
local function attach(self)
  local weak = setmetatable({self}, {__mode = "v"})
  for i, p in ipairs(self.parameters) do
    core._ready_hook(p, function(grad)
      local reducer = weak[1]
      if reducer then reducer:_on_gradient(i, grad) end
    end)
  end
end

-- Makes the buckets, filled in the order of the list `order` of numbers of parameters.
local function make_buckets(self, order)
  self.buckets = buckets.make(self.parameters, order, self.first, self.cap)
  self.place = {}
  for _, bucket in ipairs(self.buckets) do
    for k, i in ipairs(bucket.members) do
      self.place[i] = {bucket = bucket, view = bucket.views[k]}
    end
  end
end

--- Reducer{names, parameters, group, size, rank, first, cap, find_unused, as_view, static}: makes
-- the reducer of a list of parameters, which have `names`. `first` and `cap` are the bytes of the
-- first and of the other buckets.
function Reducer:init(options)
  for name, value in pairs(options) do self[name] = value end
  self.numbers = {} -- parameter -> its number
  for i, p in ipairs(self.parameters) do self.numbers[p] = i end
  self.used = {}   -- number -> it got a gradient since the last exchange
  self.sync = true -- whether backward exchanges gradients
  make_buckets(self, reversed(#self.parameters))
  attach(self)
end

-- ---- one pass ------------------------------------------------------------------------

-- Returns the name of parameter i in quotes.
local function quoted(self, i) return ("%q"):format(self.names[i]) end

-- Submits the bucket to the hook or to an all_reduce.
local function submit(self, bucket)
  bucket:set_buffer(bucket.storage)
  if self.hook then
    bucket.work = self.hook(self.hook_state, bucket)
    local ok = pcall(function() return bucket.work.wait ~= nil end)
    args.check(ok and bucket.work.wait, "register_comm_hook: expected the hook to return an object "
      .. "with a method wait, got %s\nhint: return dist.all_reduce(t, {async_op = true})",
      args.show(bucket.work))
  else
    bucket.work = lt.distributed.all_reduce(bucket.storage, {group = self.group, async_op = true})
  end
end

-- Submits the buckets that are complete and whose turn it is.
local function submit_complete(self)
  while self.next <= #self.buckets and self.buckets[self.next].pending == 0 do
    submit(self, self.buckets[self.next])
    self.next = self.next + 1
  end
end

-- Sets the view in the bucket to the sum of the gradient and the present grad (either may be nil),
-- divided by `divisor`.
local function average(view, grad, had, divisor)
  if not grad and not had then
    view:zero_()
  elseif rawequal(had, view) then
    if grad then view:add_(grad) end
  elseif grad and had then
    core._ops.add(had, grad, {out = view})
  else
    core._ops.div(grad or had, divisor, {out = view})
    return
  end
  if divisor ~= 1 then view:div_(divisor) end
end

-- Puts the gradient of parameter i (nil: none), and what its grad has, into the bucket.
local function fill(self, i, grad)
  local p, view = self.parameters[i], self.place[i].view
  local had = p.grad
  if self.as_view and not grad and had then self.kept[i] = had:clone() end
  average(view, grad, had, self.hook and 1 or self.size)
  if self.as_view and had then p.grad = nil end -- backward must not add to the bucket
end

-- Fails because a parameter has a second gradient before all buckets were exchanged.
local function fail_twice(self, i)
  if self.static and self.static_unused then
    args.fail("%s: expected the same graph in each iteration with static_graph = true, got a "
      .. "gradient of %s, which had none in the first one", TITLE, quoted(self, i))
  end
  args.fail("%s: expected one gradient of each parameter before the gradients are exchanged, got a "
    .. "second one of %s\nhint: the loss must use parameters only through the results of forward, "
    .. "and backward must reach all of them", TITLE, quoted(self, i))
end

-- Marks a parameter as ready, with its gradient or, where it is unused, without.
local function mark_ready(self, i, grad)
  if self.ready[i] then fail_twice(self, i) end
  self.ready[i] = true
  self.order[#self.order + 1] = i
  fill(self, i, grad)
  local bucket = self.place[i].bucket
  bucket.pending = bucket.pending - 1
  if bucket.pending == 0 then submit_complete(self) end
end

-- Marks all parameters as ready that are not, except those in the set `except`.
local function mark_unused(self, except)
  for i = #self.parameters, 1, -1 do
    if not self.ready[i] and not (except and except[i]) then mark_ready(self, i) end
  end
end

-- Starts an exchange: all gradients are missing but those known to be unused.
local function activate(self)
  self.active, self.next, self.ready, self.order, self.kept = true, 1, {}, {}, {}
  for _, bucket in ipairs(self.buckets) do bucket.pending, bucket.work = #bucket.members, nil end
  if self.find_unused and self.reachable then
    mark_unused(self, self.reachable)
  elseif self.static_used then
    mark_unused(self, self.static_used)
  end
end

-- Called by the hook of parameter i.
function Reducer:_on_gradient(i, grad)
  local pass = core._backward_pass()
  if not pass then return end -- of autograd.grad
  self.used[i] = true
  if not self.sync then return end
  lt.no_grad(function()
    if self.pass ~= pass then
      self.pass = pass
      core._after_backward(function() self:_after_pass(pass) end)
      if not self.active then activate(self) end
    end
    mark_ready(self, i, grad)
  end)
end

-- ---- after a pass --------------------------------------------------------------------

-- Returns the set of the parameters that got no gradient on any rank, nil where all are known to
-- be used. Called by all ranks.
local function unused_by_all(self)
  if self.static_unused then return self.static_unused end
  if not self.find_unused and not self.static then return nil end
  local used = {}
  for i = 1, #self.parameters do used[i] = self.used[i] and 1 or 0 end
  local t = lt.tensor(used, {dtype = "int32", device = self.parameters[1].device})
  lt.distributed.all_reduce(t, {op = "max", group = self.group})
  local unused = {}
  for i, count in ipairs(t:totable()) do unused[i] = count == 0 or nil end
  if self.static then
    self.static_unused = unused
    self.static_used = {}
    for i in ipairs(self.parameters) do self.static_used[i] = used[i] == 1 or nil end
  end
  return unused
end

-- Sets the grads of a bucket's parameters to the averages.
local function set_grads(self, bucket, unused)
  for k, i in ipairs(bucket.members) do
    local p, view = self.parameters[i], bucket.views[k]
    if unused and unused[i] then
      if self.kept[i] then p.grad = view:copy_(self.kept[i]) end
    elseif self.as_view then
      p.grad = view
    elseif p.grad then
      p.grad:copy_(view)
    else
      p.grad = view:clone()
    end
  end
end

-- Waits for the buckets, and sets the grads.
local function finish(self)
  self.active = false
  local unused = unused_by_all(self)
  for _, bucket in ipairs(self.buckets) do
    local value = bucket.work:wait()
    if not core.is_tensor(value) then value = bucket:buffer() end
    if not rawequal(value, bucket.storage) then bucket.storage:copy_(value) end
    bucket.work = nil
    set_grads(self, bucket, unused)
  end
  if not self.rebuilt and (self.static or not self.find_unused) then self.new_order = self.order end
  self.used, self.reachable, self.kept = {}, nil, nil
end

-- Called after a backward pass that has succeeded.
function Reducer:_after_pass(pass)
  self.ended = pass
  lt.no_grad(function()
    if self.find_unused or self.static and not self.static_used then mark_unused(self) end
    if self.next > #self.buckets then finish(self) end
  end)
end

--- Takes part in one exchange of the other ranks, with gradients of zero. Grads do not change,
-- except those that are views of buckets, which become the averages.
function Reducer:shadow()
  lt.no_grad(function()
    for _, bucket in ipairs(self.buckets) do
      bucket.storage:zero_()
      submit(self, bucket)
    end
    self.used = {}
    unused_by_all(self)
    for _, bucket in ipairs(self.buckets) do
      bucket.work:wait()
      bucket.work = nil
    end
  end)
  if not self.rebuilt and (self.static or not self.find_unused) then
    self.new_order = reversed(#self.parameters)
  end
end

-- ---- before a forward pass -----------------------------------------------------------

-- Gives up an exchange that is not complete. The other ranks may have submitted the same buckets,
-- so it waits for these.
local function abandon(self)
  self.active = false
  for _, bucket in ipairs(self.buckets) do
    if bucket.work then pcall(bucket.work.wait, bucket.work) end
    bucket.work = nil
  end
end

-- Returns the names of the parameters without a gradient, and their number.
local function missing(self)
  local names, count = {}, 0
  for i in ipairs(self.parameters) do
    if not self.ready[i] then
      count = count + 1
      if count <= MOST_NAMES then names[count] = quoted(self, i) end
    end
  end
  if count > MOST_NAMES then names[#names + 1] = "..." end
  return table.concat(names, ", "), count
end

-- Makes the buckets anew in the order in which rank 0 got its gradients.
local function rebuild(self)
  local order = self.new_order
  self.new_order, self.rebuilt = nil, true
  if self.size > 1 then
    local t = lt.tensor(order, {dtype = "int32", device = self.parameters[1].device})
    collectives.broadcast({t}, self.group)
    order = t:totable()
  end
  make_buckets(self, order)
end

--- Prepares for a forward pass whose gradients are exchanged. Raises an error when parameters got
-- no gradient in the pass before.
function Reducer:prepare()
  if self.active then
    local names, count = missing(self)
    local failed = self.ended ~= self.pass
    abandon(self)
    if not failed then
      args.fail("%s: expected to have finished reduction in the prior iteration before starting a "
        .. "new one, got no gradient of %d parameter%s on rank %d: %s\nhint: "
        .. "find_unused_parameters = true, and all results of forward must take part in the loss",
        TITLE, count, count == 1 and "" or "s", self.rank, names)
    end
  end
  if self.new_order then lt.no_grad(rebuild, self) end
end

-- Adds the parameters that a tensor depends on to the set.
local function add_reachable(self, t, set)
  if self.numbers[t] then set[self.numbers[t]] = true end
  for _, node in ipairs((core._graph(t, math.maxinteger))) do
    for _, input in ipairs(node.inputs) do
      local i = input.leaf and self.numbers[input.leaf]
      if i then set[i] = true end
    end
  end
end

--- Notes that backward exchanges gradients, or not, and with find_unused which parameters `results`
-- depend on. Several forward passes before one backward add up.
function Reducer:expect(sync, results)
  self.sync = sync
  if not sync or not self.find_unused then return end
  self.reachable = self.reachable or {}
  for _, t in ipairs(tree.leaves(results)) do
    if t.requires_grad then add_reachable(self, t, self.reachable) end
  end
end

return Reducer
