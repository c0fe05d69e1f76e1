--- nn.utils.rnn: batches of sequences of different lengths, padded or packed.
--
-- Invariant of a PackedSequence: `data` {S, *} has the elements of all sequences, first those at
-- time 1, then those at time 2..., and `batch_sizes`, int64 on the CPU, the number of sequences at
-- each time, which does not increase. Sequence i of the user is number unsorted_indices[i] here,
-- and sequence i here is number sorted_indices[i] of the user; both are nil when the order is the
-- same.

local lt = require "lutra"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"

local rnn = {}

-- ---- PackedSequence

local Packed = {__name = "PackedSequence"}

--- Packed sequences, which recurrent layers accept as input and return.
local PackedSequence = {}
rnn.PackedSequence = PackedSequence

local FIELDS <const> = {"data", "batch_sizes", "sorted_indices", "unsorted_indices"}

function Packed.__index(self, key)
  if key == "is_cuda" then return self.data.is_cuda end
  return PackedSequence[key]
end

function Packed.__tostring(self)
  local lines = {}
  for _, name in ipairs(FIELDS) do
    local value = rawget(self, name)
    if value ~= nil then
      lines[#lines + 1] = ("  %s = %s"):format(name, (tostring(value):gsub("\n", "\n  ")))
    end
  end
  return ("PackedSequence{\n%s}"):format(table.concat(lines, ",\n"))
end

--- Returns whether `x`, any value, is a packed sequence.
function rnn.is_packed(x) return type(x) == "table" and getmetatable(x) == Packed end

local parse_invert = args.signature("invert_permutation", "Tensor? permutation")

--- Returns the inverse of a permutation, a vector of the indices 1 to n in any order; nil for nil.
-- Raises an error for another number of dimensions.
function rnn.invert_permutation(...)
  local permutation = parse_invert(...)
  if permutation == nil then return nil end
  args.check(permutation.ndim == 1, "invert_permutation: expected 1 dimension for argument "
    .. "'permutation', got %d: %s", permutation.ndim, permutation.shape)
  local numbers = lt.arange(permutation:numel(), {dtype = permutation.dtype,
    device = permutation.device})
  return lt.empty_like(permutation):scatter(1, permutation:to "int64", numbers)
end

local parse_packed = args.signature("PackedSequence", "Tensor data, Tensor batch_sizes, "
  .. "Tensor? sorted_indices = nil, Tensor? unsorted_indices = nil")

setmetatable(PackedSequence, {
  __name = "class PackedSequence",
  __tostring = function() return "class nn.utils.rnn.PackedSequence" end,
  __call = function(_, ...)
    local data, sizes, sorted, unsorted = parse_packed(...)
    args.check(sizes.is_cpu, "PackedSequence: expected a tensor on \"cpu\" for argument "
      .. "'batch_sizes', got one on \"%s\"", sizes.device)
    return setmetatable({data = data, batch_sizes = sizes, sorted_indices = sorted,
      unsorted_indices = unsorted or rnn.invert_permutation(sorted)}, Packed)
  end,
})

-- Returns a packed sequence with f applied to its data and indices.
local function map(self, data, f)
  local sorted, unsorted = self.sorted_indices, self.unsorted_indices
  return PackedSequence(data, self.batch_sizes, sorted and f(sorted), unsorted and f(unsorted))
end

--- packed:to(...): converts the data to a device or dtype, with the arguments of x:to; the indices
-- follow its device, batch_sizes stays on the CPU. Returns the packed sequence itself when nothing
-- changes.
function PackedSequence:to(...)
  local data = self.data:to(...)
  if data == self.data then return self end
  return map(self, data, function(t) return t:to(data.device) end)
end

--- Moves the data to a CUDA device, by default the current one.
function PackedSequence:cuda(...)
  local data = self.data:cuda(...)
  if data == self.data then return self end
  return map(self, data, function(t) return t:to(data.device) end)
end

--- Moves the data to the host.
function PackedSequence:cpu() return self:to "cpu" end

--- Copies the data and indices to page-locked memory of the host.
function PackedSequence:pin_memory()
  return map(self, self.data:pin_memory(), function(t) return t:pin_memory() end)
end

--- Returns whether the data is in page-locked memory.
function PackedSequence:is_pinned() return self.data:is_pinned() end

for name, dtype in pairs{double = "float64", float = "float32", half = "float16", long = "int64",
  int = "int32", short = "int16", char = "int8", byte = "uint8"} do
  PackedSequence[name] = function(self) return self:to(dtype) end
end

-- ---- padding

-- Returns the sizes of x after the first `skip` ones.
local function trailing(x, skip) return table.move(x.shape, skip + 1, x.ndim, 1, {}) end

-- Returns `count` more entries of `value` in front of ("left") or behind x along dimension `dim`.
local function pad(x, dim, count, value, side)
  if count == 0 then return x end
  local shape = table.move(x.shape, 1, x.ndim, 1, {})
  shape[dim] = count
  local more = lt.full(shape, value, {dtype = x.dtype, device = x.device})
  return lt.cat(side == "left" and {more, x} or {x, more}, dim)
end

local function check_list(title, sequences)
  args.check(#sequences > 0, "%s: expected at least one tensor for argument 'sequences', got none",
    title)
  for i = 1, #sequences do
    local x = sequences[i]
    args.expect(lt.is_tensor(x), title, "a tensor", ("sequences[%d]"):format(i), x)
    args.check(x.ndim > 0, "%s: expected at least 1 dimension for argument 'sequences[%d]', got 0",
      title, i)
  end
end

-- Returns the value of a padding for a dtype: an integer for integers.
local function padding_of(x, value)
  return not x:is_floating_point() and math.tointeger(value) or value
end

local parse_pad = args.signature("pad_sequence", "Tensor[] sequences, bool batch_first = false, "
  .. "float padding_value = 0, 'right'|'left' padding_side = 'right'")

--- pad_sequence(sequences, {batch_first = false, padding_value = 0, padding_side = "right"}):
-- stacks a list of B tensors {L, *} (or the rows of a tensor), padded to the largest length T, to
-- {T, B, *}, or {B, T, *} with batch_first. Raises an error for an empty list and for tensors whose
-- sizes {*} or dtypes differ.
function rnn.pad_sequence(list_or_tensor, ...)
  if lt.is_tensor(list_or_tensor) then list_or_tensor = list_or_tensor:unbind(1) end
  local sequences, batch_first, value, side = parse_pad(list_or_tensor, ...)
  check_list("pad_sequence", sequences)
  local longest, list = 0, {}
  for _, x in ipairs(sequences) do longest = math.max(longest, x:size(1)) end
  value = padding_of(sequences[1], value)
  local rest = trailing(sequences[1], 1)
  for i, x in ipairs(sequences) do
    args.check(table.concat(trailing(x, 1), ",") == table.concat(rest, ","),
      "pad_sequence: expected the sizes of sequences[1] after the first one, %s, for "
      .. "sequences[%d], got %s", sequences[1].shape, i, x.shape)
    list[i] = pad(x, 1, longest - x:size(1), value, side)
  end
  return lt.stack(list, batch_first and 1 or 2)
end

-- Returns lengths, a list or a tensor on the CPU, as a list of n integers.
local function to_lengths(title, lengths, n)
  if lt.is_tensor(lengths) then
    args.check(lengths.ndim == 1, "%s: expected 1 dimension for argument 'lengths', got %d: %s",
      title, lengths.ndim, lengths.shape)
    lengths = lengths:to "int64":cpu():totable()
  end
  args.expect(type(lengths) == "table", title, "a tensor or a list of integers", "lengths",
    lengths)
  local list = {}
  for i = 1, #lengths do
    list[i] = math.tointeger(lengths[i])
    args.expect(list[i], title, "an integer", ("lengths[%d]"):format(i), lengths[i])
  end
  args.check(#list == n, "%s: expected %d lengths, the batch size, for argument 'lengths', got %d",
    title, n, #list)
  return list
end

local parse_unpad = args.signature("unpad_sequence",
  "Tensor padded_sequences, any lengths, bool batch_first = false")

--- unpad_sequence(padded_sequences, lengths, {batch_first = false}): the inverse of pad_sequence;
-- returns a list of tensors {L, *}, copies of the sequences of a tensor {T, B, *} or {B, T, *}.
-- `lengths` is a tensor or a list of B integers. Raises an error for another number of lengths.
function rnn.unpad_sequence(...)
  local padded, lengths, batch_first = parse_unpad(...)
  args.check(padded.ndim >= 2, "unpad_sequence: expected at least 2 dimensions for argument "
    .. "'padded_sequences', got %d", padded.ndim)
  if not batch_first then padded = padded:transpose(1, 2) end
  local list = {}
  for i, n in ipairs(to_lengths("unpad_sequence", lengths, padded:size(1))) do
    args.check(n >= 0, "unpad_sequence: expected an integer from 0 on for argument 'lengths[%d]', "
      .. "got %d", i, n)
    list[i] = padded[i]:narrow(1, 1, math.min(n, padded:size(2))):clone()
  end
  return list
end

-- ---- packing

-- Iterates over the runs of equal numbers in a list: its first index, length and number.
local function runs(list)
  local i = 1
  return function()
    local first = i
    if first > #list then return nil end
    while list[i] == list[first] do i = i + 1 end
    return first, i - first, list[first]
  end
end

-- Returns the number of sequences at each time, from their lengths in decreasing order.
local function batch_sizes_of(lengths)
  local sizes, count = {}, #lengths
  for t = 1, lengths[1] do
    while lengths[count] < t do count = count - 1 end
    sizes[t] = count
  end
  return sizes
end

-- Packs {T, B, *} with lengths in decreasing order.
local function pack(title, input, lengths, sorted)
  for i, n in ipairs(lengths) do
    args.check(n > 0, "%s: expected an integer above 0 for argument 'lengths[%d]', got %d", title,
      i, n)
    args.check(i == 1 or n <= lengths[i - 1], "%s: expected lengths in decreasing order with "
      .. "enforce_sorted, got %d before %d\nhint: pass enforce_sorted = false", title,
      lengths[i - 1], n)
  end
  args.check(lengths[1] <= input:size(1), "%s: expected lengths up to %d, the size of the input, "
    .. "for argument 'lengths', got %d", title, input:size(1), lengths[1])
  local sizes, parts = batch_sizes_of(lengths), {}
  for first, count, n in runs(sizes) do
    local part = input:narrow(1, first, count):narrow(2, 1, n)
    parts[#parts + 1] = part:reshape(count * n, table.unpack(trailing(input, 2)))
  end
  return PackedSequence(lt.cat(parts, 1), lt.tensor(sizes, {dtype = "int64", device = "cpu"}),
    sorted)
end

local parse_pack_padded = args.signature("pack_padded_sequence", "Tensor input, any lengths, "
  .. "bool batch_first = false, bool enforce_sorted = true")

--- pack_padded_sequence(input, lengths, {batch_first = false, enforce_sorted = true}): packs a
-- padded tensor {T, B, *}, or {B, T, *} with batch_first. `lengths` is a list of B integers from 1
-- to T, or a tensor. With enforce_sorted, they must be in decreasing order; otherwise the sequences
-- are sorted. Raises an error for other lengths, and for an empty batch.
function rnn.pack_padded_sequence(...)
  local title <const> = "pack_padded_sequence"
  local input, lengths, batch_first, enforce_sorted = parse_pack_padded(...)
  args.check(input.ndim >= 2, "%s: expected at least 2 dimensions for argument 'input', got %d",
    title, input.ndim)
  if batch_first then input = input:transpose(1, 2) end
  args.check(input:size(2) > 0, "%s: expected at least one sequence for argument 'input', got %s",
    title, input.shape)
  lengths = to_lengths(title, lengths, input:size(2))
  if enforce_sorted then return pack(title, input, lengths) end
  local sorted, order = lt.sort(lt.tensor(lengths, {dtype = "int64", device = "cpu"}),
    {descending = true, stable = true})
  order = order:to(input.device)
  return pack(title, input:index_select(2, order), sorted:totable(), order)
end

local parse_pack = args.signature("pack_sequence", "Tensor[] sequences, bool enforce_sorted = true")

--- pack_sequence(sequences, {enforce_sorted = true}): packs a list of tensors {L, *}; the same as
-- pack_padded_sequence of pad_sequence.
function rnn.pack_sequence(...)
  local sequences, enforce_sorted = parse_pack(...)
  check_list("pack_sequence", sequences)
  local lengths = {}
  for i, x in ipairs(sequences) do lengths[i] = x:size(1) end
  return rnn.pack_padded_sequence(rnn.pad_sequence(sequences), lengths,
    {enforce_sorted = enforce_sorted})
end

local parse_pad_packed = args.signature("pad_packed_sequence", "any sequence, "
  .. "bool batch_first = false, float padding_value = 0, int? total_length = nil")

local function check_packed(title, name, x)
  args.expect(rnn.is_packed(x), title, "a PackedSequence", name, x)
end

--- pad_packed_sequence(sequence, {batch_first = false, padding_value = 0, total_length}): the
-- inverse of pack_padded_sequence. Returns the padded tensor {T, B, *}, or {B, T, *} with
-- batch_first, and the lengths {B}, int64 on the CPU, in the original order. T is the largest
-- length, or total_length; raises an error when that is smaller.
function rnn.pad_packed_sequence(...)
  local title <const> = "pad_packed_sequence"
  local packed, batch_first, value, total = parse_pad_packed(...)
  check_packed(title, "sequence", packed)
  local data, sizes = packed.data, packed.batch_sizes:totable()
  args.check(not total or total >= #sizes, "%s: expected at least %d, the largest length, for "
    .. "argument 'total_length', got %d", title, #sizes, total)
  value = padding_of(data, value)
  local parts, offset, lengths = {}, 1, {}
  for first, count, n in runs(sizes) do
    local part = data:narrow(1, offset, count * n)
      :reshape(count, n, table.unpack(trailing(data, 1)))
    parts[#parts + 1] = pad(part, 2, sizes[1] - n, value)
    offset = offset + count * n
    for i = 1, n do lengths[i] = first + count - 1 end
  end
  local padded = pad(lt.cat(parts, 1), 1, (total or #sizes) - #sizes, value)
  lengths = lt.tensor(lengths, {dtype = "int64", device = "cpu"})
  local order = packed.unsorted_indices
  if order then
    padded, lengths = padded:index_select(2, order), lengths:index_select(1, order:cpu())
  end
  return batch_first and padded:transpose(1, 2) or padded, lengths
end

local parse_unpack = args.signature("unpack_sequence", "any packed_sequences")

--- unpack_sequence(packed_sequences): the inverse of pack_sequence; returns a list of tensors {L,
-- *}.
function rnn.unpack_sequence(...)
  local packed = parse_unpack(...)
  check_packed("unpack_sequence", "packed_sequences", packed)
  local padded, lengths = rnn.pad_packed_sequence(packed, {batch_first = true})
  return rnn.unpad_sequence(padded, lengths, true)
end

return strict_table.strict(rnn, "nn.utils.rnn")
