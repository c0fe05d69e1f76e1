--- lt.autograd.graph: hooks for saved tensors.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scope_guard = require "lutra.internal.scope_guard"

local graph = {}

--- saved_tensors_hooks(pack_hook, unpack_hook, f, ...): calls f(...), in which each tensor that an
-- op saves for backward is stored as the value that pack_hook(tensor) returns; unpack_hook(value)
-- must return the tensor again, during backward. The innermost pair applies. The stored value must
-- not refer to a result of the op. pack_hook runs without recording, and gets the tensor without
-- its history. Returns what f returns.
function graph.saved_tensors_hooks(pack_hook, unpack_hook, f, ...)
  args.expect(args.is_callable(pack_hook), "saved_tensors_hooks", "a function", "pack_hook",
    pack_hook)
  args.expect(args.is_callable(unpack_hook), "saved_tensors_hooks", "a function", "unpack_hook",
    unpack_hook)
  args.expect(args.is_callable(f), "saved_tensors_hooks", "a function", "f", f)
  local old = core._saved_hooks{pack_hook, unpack_hook}
  local _ <close> = scope_guard(core._saved_hooks, old)
  return f(...)
end

--- save_on_cpu({pin_memory = false}, f, ...): calls f(...), in which saved tensors are moved to the
-- CPU, and back to their device for backward; with pin_memory into page-locked memory. The table of
-- options may be omitted. Returns what f returns.
function graph.save_on_cpu(options, ...)
  if not args.is_plain(options) then return graph.save_on_cpu({}, options, ...) end
  for name in pairs(options) do
    args.check(name == "pin_memory" or name == "device_type",
      "save_on_cpu: expected the option pin_memory, got '%s'", tostring(name))
  end
  local function pack(t)
    if t.device == "cpu" then return {t, t.device} end
    return {t:to{"cpu", non_blocking = options.pin_memory == true}, t.device}
  end
  local function unpack(packed)
    return packed[1].device == packed[2] and packed[1] or packed[1]:to(packed[2])
  end
  return graph.saved_tensors_hooks(pack, unpack, ...)
end

return require("lutra.internal.strict_table").strict(graph, "lt.autograd.graph")
