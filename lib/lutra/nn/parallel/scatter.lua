--- nn.parallel.scatter: splits a batch into pieces, one per device.
--
-- A tensor is split along one dimension and each piece is copied to its device; a plain table is
-- split value by value; any other value (numbers, strings, functions, objects) is passed to every
-- device.
--
-- Invariant: all tensors of one call give the same number of pieces, so that no row is left out.
-- There are fewer pieces than devices when the batch has fewer rows; an empty batch is one empty
-- piece.

local lt = require "lutra"
local args = require "lutra.internal.args"

local scatter = {}

--- Returns the full names of a list of devices; `title` is the function's name in errors. Raises an
-- error for an empty list.
function scatter.devices(title, list)
  args.check(#list > 0, "%s: expected at least one device, got none", title)
  local names = {}
  for i, device in ipairs(list) do names[i] = lt.device(device) end
  return names
end

-- Splits a tensor into at most `count` pieces. Raises an error for a tensor without that
-- dimension.
local function cut(title, x, count, dim)
  if count == 1 then return {x} end
  if x.ndim == 0 then
    args.fail("%s: cannot split a tensor without dimensions over %d devices\n"
      .. "hint: pass a number, x:item(), or a row for each sample, x:expand(n)", title, count)
  end
  if dim == 0 or dim > x.ndim or dim < -x.ndim then
    args.fail("%s: expected a dimension from 1 to %d (or -1 for the last) for argument 'dim', got "
      .. "%d for a tensor of shape %s", title, x.ndim, dim, x.shape)
  end
  if x:size(dim) == 0 then return {x} end
  return x:chunk(count, dim)
end

-- Returns the number of pieces of the tensors in `value`, nil without tensors; raises an error
-- when they differ. `seen` holds the visited tables, and in `first` the first tensor and its
-- number.
local function count_pieces(title, value, count, dim, seen)
  if lt.is_tensor(value) then
    local pieces = #cut(title, value, count, dim)
    local first = seen.first or {pieces, value}
    seen.first = first
    if pieces ~= first[1] then
      local texts = require "lutra.internal.text"
      args.fail("%s: cannot split the tensors over %d devices along dimension %d: "
        .. "size %d gives %s, size %d gives %s\nhint: expand the smaller tensor, or register it "
        .. "as a buffer of the module", title, count, dim, first[2]:size(dim),
        texts.plural(first[1], "piece"), value:size(dim), texts.plural(pieces, "piece"))
    end
  elseif args.is_plain(value) and not seen[value] then
    seen[value] = true
    for _, inner in pairs(value) do count_pieces(title, inner, count, dim, seen) end
  end
  return seen.first and seen.first[1]
end

-- Splits any value into pieces 1 to `count`. `made` maps a table to its pieces, for tables that
-- occur more than once.
local function split(title, value, devices, count, dim, made)
  local pieces = {}
  if lt.is_tensor(value) then
    for i, piece in ipairs(cut(title, value, #devices, dim)) do
      pieces[i] = piece:to{device = devices[i], non_blocking = true}
    end
  elseif args.is_plain(value) then
    if made[value] then return made[value] end
    made[value] = pieces
    for i = 1, count do pieces[i] = {} end
    for key, inner in pairs(value) do
      local parts = split(title, inner, devices, count, dim, made)
      for i = 1, count do pieces[i][key] = parts[i] end
    end
  else
    for i = 1, count do pieces[i] = value end
  end
  return pieces
end

--- Returns a list of the parts of `value`, one per device, as described at the top of this file;
-- `count` of them when `value` holds no tensor.
function scatter.pieces(title, value, devices, dim, count)
  count = count_pieces(title, value, #devices, dim, {}) or count
  return split(title, value, devices, count, dim, {})
end

local parse = args.signature("scatter", "any inputs, list target_devices, int dim = 1")

--- Splits `inputs`, a tensor or a table that contains tensors, along `dim` and returns a list of
-- parts, one per device. Gradients flow back to `inputs`. Raises an error for tensors that cannot
-- be split into the same number of parts.
function scatter.scatter(...)
  local inputs, list, dim = parse(...)
  return scatter.pieces("scatter", inputs, scatter.devices("scatter", list), dim, #list)
end

return scatter
