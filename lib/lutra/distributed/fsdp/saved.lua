--- Gathered parameters that ops save for backward.
--
-- Ops save their weights, which would keep gathered parameters in memory from forward to backward.
-- During the forward pass of a sharded module, a saved tensor that lies in the memory of gathered
-- parameters is replaced by its geometry; backward gathers the parameters again when it needs it.
--
-- Invariant: `gathered` maps the memory of each flat parameter that is gathered to it, and no other
-- memory. It does not keep a module that is no longer used.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scope_guard = require "lutra.internal.scope_guard"

local saved = {}

local gathered = setmetatable({}, {__mode = "v"})

--- Adds the gathered parameters `flat.full`; backward calls flat:ready(), which returns them.
function saved.add(flat) gathered[(core._memory(flat.full))] = flat end

--- Removes the gathered parameters of `flat`, before their memory is freed.
function saved.remove(flat) gathered[(core._memory(flat.full))] = nil end

local ours = setmetatable({}, {__mode = "k"})

-- Returns a pair of functions for saved tensors, which pass other tensors on to the pair `outer`.
local function pair_for(outer)
  local function pack(t)
    local flat = gathered[(core._memory(t))]
    if flat then
      return {flat = flat, shape = t.shape, stride = t:stride(), offset = t:storage_offset()}
    elseif outer then
      return {packed = outer[1](t)}
    end
    return {tensor = t, version = t:_version()}
  end
  local function unpack(value)
    if value.flat then
      return value.flat:ready():as_strided(value.shape, value.stride, value.offset)
    elseif value.tensor then
      args.check(value.tensor:_version() == value.version, "backward: cannot compute the gradient: "
        .. "a tensor of shape %s that an op saved was changed in place\nhint: change a copy: "
        .. "x:clone()", value.tensor.shape)
      return value.tensor
    end
    return outer[2](value.packed)
  end
  local pair = {pack, unpack}
  ours[pair] = true
  return pair
end

--- Calls f(...), in which ops save no gathered parameters; returns its results.
function saved.without_parameters(f, ...)
  local outer = core._saved_hooks(nil)
  core._saved_hooks(outer)
  if outer and ours[outer] then return f(...) end
  core._saved_hooks(pair_for(outer))
  local _ <close> = scope_guard(core._saved_hooks, outer)
  return f(...)
end

return saved
