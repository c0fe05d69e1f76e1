--- nn.parallel.scatter: a batch in pieces, one for each device.
--
-- Idea: a tensor is cut along one dimension and each piece goes to its device; a plain table is
-- taken apart value by value; anything else (numbers, strings, functions, objects) goes to every
-- device as it is.
--
-- Invariant: the pieces of all tensors of one call are as many, so that no row of any of them is
-- left out. There are fewer pieces than devices when the batch has fewer rows; an empty batch is
-- one empty piece.

local lt = require "lutra"
local args = require "lutra.internal.args"

local scatter = {}

--- The full names of a list of devices, for the function `title`.
function scatter.devices(title, list)
  args.check(#list > 0, "%s: the list of devices is empty", title)
  local names = {}
  for i, device in ipairs(list) do names[i] = lt.device(device) end
  return names
end

-- The pieces of a tensor, at most `count`.
local function cut(title, x, count, dim)
  if count == 1 then return {x} end
  if x.ndim == 0 then
    args.fail("%s: a tensor without dimensions cannot be cut into pieces for %d devices: "
      .. "give a number, x:item(), or a row for each sample, x:expand(n)", title, count)
  end
  if dim == 0 or dim > x.ndim or dim < -x.ndim then
    args.fail("%s: a tensor of shape %s has no dimension %d to cut along: its dimensions are 1 to "
      .. "%d (-1 is the last)", title, tostring(x.shape), dim, x.ndim)
  end
  if x:size(dim) == 0 then return {x} end
  return x:chunk(count, dim)
end

-- How many pieces the tensors in `value` make; nil when there are none. `seen` holds the tables
-- that were looked at, and the first tensor.
local function count_pieces(title, value, count, dim, seen)
  if lt.is_tensor(value) then
    local pieces = #cut(title, value, count, dim)
    local first = seen.first or {pieces, value}
    seen.first = first
    if pieces ~= first[1] then
      local texts = require "lutra.internal.text"
      args.fail("%s: the tensors do not go together: cut for %d devices along dimension %d, one of "
        .. "size %d makes %s, another of size %d makes %s. Expand the smaller one, or make it a "
        .. "buffer of the module", title, count, dim, first[2]:size(dim),
        texts.plural(first[1], "piece"), value:size(dim), texts.plural(pieces, "piece"))
    end
  elseif args.is_plain(value) and not seen[value] then
    seen[value] = true
    for _, inner in pairs(value) do count_pieces(title, inner, count, dim, seen) end
  end
  return seen.first and seen.first[1]
end

-- Pieces 1 to `count` of any value. `made` finds the copies of a table that occurs again.
local function take_apart(title, value, devices, count, dim, made)
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
      local parts = take_apart(title, inner, devices, count, dim, made)
      for i = 1, count do pieces[i][key] = parts[i] end
    end
  else
    for i = 1, count do pieces[i] = value end
  end
  return pieces
end

--- A list with the part of `value` for each device: see the top of this file. `count` pieces are
-- made when it holds no tensor.
function scatter.pieces(title, value, devices, dim, count)
  count = count_pieces(title, value, #devices, dim, {}) or count
  return take_apart(title, value, devices, count, dim, {})
end

local parse = args.signature("scatter", "any inputs, list target_devices, int dim = 1")

--- nn.parallel.scatter(inputs, target_devices, dim = 1): a list with the part of `inputs`, a tensor
-- or a table that holds some, for each device. Gradients flow back to `inputs`.
function scatter.scatter(...)
  local inputs, list, dim = parse(...)
  return scatter.pieces("scatter", inputs, scatter.devices("scatter", list), dim, #list)
end

return scatter
