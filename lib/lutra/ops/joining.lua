--- Joining tensors: stacks along a dim, blocks, and the views with more dims that they need.

local lt = require "lutra"
local args = require "lutra.internal.args"
local ops = require("lutra.core")._ops
local are_batched = require("lutra.internal.tensors").are_batched

-- Defines atleast_1d, atleast_2d or atleast_3d, which apply `f` to a tensor or to each of several.
local function define_at_least(name, words, f)
  lt._define{
    signature = "lt." .. name .. "(Tensor|Tensor[]... tensors)",
    doc = "Views with at least " .. words .. ". Of one tensor, or a list of those of several.",
    example = ("lt.%s(lt.tensor(3))"):format(name),
    fn = function(tensors)
      if lt.is_tensor(tensors) then return f(tensors) end
      local out = {}
      for i, t in ipairs(tensors) do out[i] = f(t) end
      return out
    end,
  }
end

local function one(t) return t.ndim == 0 and t:reshape(1) or t end

local function two(t)
  local ndim = t.ndim
  if ndim >= 2 then return t end
  return ndim == 0 and t:reshape(1, 1) or t:unsqueeze(1)
end

local function three(t)
  local ndim = t.ndim
  if ndim >= 3 then return t end
  if ndim == 0 then return t:reshape(1, 1, 1) end
  return ndim == 1 and t:unsqueeze(1):unsqueeze(3) or t:unsqueeze(3)
end

define_at_least("atleast_1d", "1 dim", one)
define_at_least("atleast_2d", "2 dims: a vector becomes {1, n}", two)
define_at_least("atleast_3d", "3 dims: {n} becomes {1, n, 1}, {n, m} becomes {n, m, 1}", three)

-- Returns f of each tensor, the list itself where none changes; raises an error for an empty list.
local function each(name, tensors, f)
  local n, out = rawlen(tensors), tensors
  if n == 0 then
    args.fail("%s: expected at least one tensor for argument 'tensors', got an empty list", name)
  end
  for i = 1, n do
    local t = tensors[i]
    local own = f(t)
    if not rawequal(own, t) then
      if out == tensors then out = table.move(tensors, 1, n, 1, {}) end
      out[i] = own
    end
  end
  return out
end

lt._define{
  signature = "lt.hstack(Tensor[] tensors)",
  doc = "Joins along dim 2 (vectors: along dim 1).",
  example = "lt.hstack{lt.tensor{1, 2}, lt.tensor{3}}",
  fn = function(tensors)
    local list = each("hstack", tensors, one)
    return lt.cat(list, list[1].ndim == 1 and 1 or 2)
  end,
}

lt._define{
  signature = "lt.vstack(Tensor[] tensors)",
  doc = "Joins rows along dim 1; a vector is a row.",
  aliases = {"row_stack"},
  example = "lt.vstack{lt.tensor{1, 2}, lt.tensor{3, 4}}",
  fn = function(tensors) return lt.cat(each("vstack", tensors, two), 1) end,
}

lt._define{
  signature = "lt.dstack(Tensor[] tensors)",
  doc = "Joins along dim 3, after atleast_3d.",
  example = "lt.dstack{lt.tensor{1, 2}, lt.tensor{3, 4}}",
  fn = function(tensors) return lt.cat(each("dstack", tensors, three), 3) end,
}

lt._define{
  signature = "lt.column_stack(Tensor[] tensors)",
  doc = "Joins columns along dim 2; a vector is a column.",
  example = "lt.column_stack{lt.tensor{1, 2}, lt.tensor{3, 4}}",
  fn = function(tensors)
    local list = each("column_stack", tensors,
      function(t) return t.ndim <= 1 and t:reshape(-1, 1) or t end)
    return lt.cat(list, 2)
  end,
}

lt._define{
  signature = "lt.block_diag(Tensor[]... tensors)",
  doc = "A matrix with the given matrices as blocks on its diagonal; 0 elsewhere. A vector is a "
    .. "row.",
  example = "lt.block_diag(lt.tensor{{1, 2}}, lt.tensor{{3}, {4}})",
  fn = function(tensors)
    local blocks = each("block_diag", tensors, two)
    local first = blocks[1]
    local alike = not are_batched() and not first.is_meta
    for i, t in ipairs(blocks) do
      args.check(t.ndim == 2,
        "block_diag: expected at most 2 dims for argument 'tensors[%d]', got %d", i, t.ndim)
      alike = alike and not t.requires_grad
        and (i == 1 or t.dtype == first.dtype and t.device == first.device)
    end
    if alike then return ops._block_diag(blocks) end
    local left, width, rows = 0, 0, {}
    for _, t in ipairs(blocks) do width = width + t:size(2) end
    for i, t in ipairs(blocks) do
      local h, w = t:size(1), t:size(2)
      rows[i] = lt.cat({t:new_zeros(h, left), t, t:new_zeros(h, width - left - w)}, 2)
      left = left + w
    end
    return lt.cat(rows, 1)
  end,
}
