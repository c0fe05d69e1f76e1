--- nn.AdaptiveLogSoftmaxWithLoss: softmax over many classes, the rare ones in clusters (Grave et
-- al. 2017).

local lt = require "lutra"
local args = require "lutra.internal.args"
local containers = require "lutra.nn.containers"
local F = require "lutra.nn.functional"
local Linear = require "lutra.nn.linear"
local Module = require "lutra.nn.module"

local AdaptiveLogSoftmaxWithLoss = Module:extend "AdaptiveLogSoftmaxWithLoss"

local parse = args.signature("AdaptiveLogSoftmaxWithLoss", "int(>=1) in_features, "
  .. "int(>=1) n_classes, list cutoffs, float div_value = 4, bool head_bias = false, "
  .. "device? device = nil, dtype? dtype = nil")

-- Raises an error unless `cutoffs` are increasing integers from 1 to n - 1.
local function check_cutoffs(cutoffs, n)
  local before = 0
  for _, cutoff in ipairs(cutoffs) do
    args.check(math.type(cutoff) == "integer" and cutoff > before and cutoff < n,
      "AdaptiveLogSoftmaxWithLoss: expected increasing integers from 1 to n_classes - 1 = %d for "
      .. "argument 'cutoffs', got %s", n - 1, args.show(cutoff))
    before = cutoff
  end
  args.check(before > 0, "AdaptiveLogSoftmaxWithLoss: expected at least one integer for argument "
    .. "'cutoffs', got none")
end

--- nn.AdaptiveLogSoftmaxWithLoss(in_features, n_classes, cutoffs, {div_value = 4, head_bias =
-- false, device, dtype}): the classes 1 to cutoffs[1] are in the head, cutoffs[1] + 1 to cutoffs[2]
-- in the first cluster, and so on; the most frequent classes come first. Cluster i projects its
-- input to in_features / div_value^i features. The children are `head` and `tail`. Raises an error
-- unless the cutoffs increase and are below n_classes.
function AdaptiveLogSoftmaxWithLoss:init(...)
  local features, classes, cutoffs, div_value, bias, device, dtype = parse(...)
  check_cutoffs(cutoffs, classes)
  local options = {device = device, dtype = dtype}
  self.in_features, self.n_classes, self.div_value, self.head_bias =
    features, classes, div_value, bias
  self.cutoffs = table.move(cutoffs, 1, #cutoffs, 1, {})
  self.cutoffs[#cutoffs + 1] = classes
  self.shortlist_size, self.n_clusters = cutoffs[1], #cutoffs
  self.head_size = self.shortlist_size + self.n_clusters
  self.head = Linear(features, self.head_size, bias, options)
  self.tail = containers.ModuleList()
  for i = 1, self.n_clusters do
    local hidden = math.tointeger(features // div_value ^ i)
    self.tail:append(containers.Sequential(Linear(features, hidden, false, options),
      Linear(hidden, self.cutoffs[i + 1] - self.cutoffs[i], false, options)))
  end
end

--- Draws new values for all parameters.
function AdaptiveLogSoftmaxWithLoss:reset_parameters()
  self.head:reset_parameters()
  for _, layers in ipairs(self.tail) do
    for _, layer in ipairs(layers) do layer:reset_parameters() end
  end
end

--- layer(input, target): input {N, in_features} and labels {N} from 1 to n_classes, or
-- {in_features} and {}, give the log-probabilities of the labels, {N} or {}, and the loss, their
-- negative mean. Raises an error for other shapes and other labels.
function AdaptiveLogSoftmaxWithLoss:forward(input, target)
  self:check_tensor(input)
  self:check_tensor(target)
  if target.ndim > 1 or input.ndim ~= target.ndim + 1
      or target.ndim == 1 and input:size(1) ~= target:size(1) then
    self:fail("expected shapes {N, %d} and {N}, or {%d} and {}, got %s and %s", self.in_features,
      self.in_features, tostring(input.shape), tostring(target.shape))
  end
  if target.ndim == 0 then
    local output, loss = self:forward(input:unsqueeze(1), target:unsqueeze(1))
    return output:squeeze(1), loss
  end
  local index, output, used, low = target, nil, 0, 0
  for i, high in ipairs(self.cutoffs) do
    local inside = target:gt(low):logical_and(target:le(high))
    local rows = inside:nonzero():reshape(-1)
    used = used + rows:numel()
    if i > 1 and rows:numel() > 0 then
      local scores = F.log_softmax(self.tail[i - 1](input:index_select(1, rows)), 2)
      local own = (target:index_select(1, rows) - low):to "int64"
      local values = scores:gather(2, own:unsqueeze(2)):squeeze(2)
      output = (output or values:new_zeros(target:size(1))):index_copy(1, rows, values)
      index = index:masked_fill(inside, self.shortlist_size + i - 1)
    end
    low = high
  end
  if used ~= target:size(1) then
    self:fail("expected labels from 1 to %d, got labels from %d to %d", self.n_classes,
      target:min():item(), target:max():item())
  end
  local head = F.log_softmax(self.head(input), 2)
  local values = head:gather(2, index:to("int64"):unsqueeze(2)):squeeze(2)
  output = output and output + values or values
  return output, -output:mean()
end

--- layer:log_prob(input): the log-probabilities of all classes, {N, n_classes}, for input {N,
-- in_features}.
function AdaptiveLogSoftmaxWithLoss:log_prob(input)
  local head = F.log_softmax(self.head(self:check_tensor(input)), 2)
  local parts = {head:narrow(2, 1, self.shortlist_size)}
  for i, layers in ipairs(self.tail) do
    parts[i + 1] = F.log_softmax(layers(input), 2) + head:narrow(2, self.shortlist_size + i, 1)
  end
  return lt.cat(parts, 2)
end

--- layer:predict(input): the most likely class of each row, {N}, for input {N, in_features}.
function AdaptiveLogSoftmaxWithLoss:predict(input) return self:log_prob(input):argmax(2) end

return AdaptiveLogSoftmaxWithLoss
