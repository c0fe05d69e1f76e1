--- Functions for a lesson's checker, which calls the user's function and tests its effects.
--
-- Each function may raise an error, whose message :check prints.

local numbers = require "lutra.internal.numbers"
local texts = require "lutra.internal.text"

local see = {}

--- Returns the user's function of that name.
function see.func(env, name)
  local f = env[name]
  if type(f) ~= "function" then
    error(('expected a function "%s", got %s; :lesson with its number restores the first one')
      :format(name, f == nil and "nil" or "a " .. type(f)), 0)
  end
  return f
end

--- Returns a description of a value: "nothing", "a tensor", "a table".
function see.kind(value)
  if value == nil then return "nothing" end
  return "a " .. (require("lutra").is_tensor(value) and "tensor" or type(value))
end

--- Returns `value`, the result of a function, which must be a tensor; `what` names it in the
-- message.
function see.tensor(value, what)
  if not require("lutra").is_tensor(value) then
    error(("expected a tensor from %s, got %s%s"):format(what, see.kind(value),
      value == nil and "; is a return missing?" or ""), 0)
  end
  return value
end

--- Returns `value`, the result of a function, which must be a number of Lua.
function see.number(value, what)
  if type(value) ~= "number" then
    error(("expected a number from %s, got %s%s"):format(what, see.kind(value),
      value == nil and "; is a return missing?" or ""), 0)
  end
  return value
end

--- Returns whether a number is within `tolerance` of the expected one; or whether a tensor, on any
-- device, has the expected shape and all its elements are. NaN is near nothing.
function see.near(value, expected, tolerance)
  if type(expected) == "number" then return math.abs(value - expected) <= tolerance end
  if tostring(value.shape) ~= tostring(expected.shape) then return false end
  return value:cpu():to(expected.dtype):allclose(expected:cpu(), {rtol = 0, atol = tolerance})
end

--- Returns the number of events of a trace that pass `test`, and their lines: 3, "cell[2]:4 (3
-- times)". Raises an error when the trace dropped events.
function see.count(trace, test)
  if trace.dropped > 0 then
    error(("the code ran too long: %s could not be traced"):format(
      texts.plural(trace.dropped, "event")), 0)
  end
  local count, by_line, order = 0, {}, {}
  for _, e in ipairs(trace.events) do
    if test(e) then
      local where = e.where or "a return of your code"
      count = count + 1
      if not by_line[where] then order[#order + 1] = where end
      by_line[where] = (by_line[where] or 0) + 1
    end
  end
  for i, where in ipairs(order) do
    local n = by_line[where]
    order[i] = n == 1 and where or ("%s (%d times)"):format(where, n)
  end
  return count, table.concat(order, ", ")
end

--- Tests for see.count: a copy; one to the host; one to a device; a wait of the host.
function see.copy(e) return e.kind == "copy" end
function see.home(e) return e.kind == "copy" and e.to == "cpu" end
function see.out(e) return e.kind == "copy" and e.from == "cpu" end
function see.waited(e) return e.kind == "sync" or e.kind == "copy" and e.blocking end

--- Tests for see.count: an allocation of a tensor on `device`; a matrix product there, as in
-- layers; any computation there, which excludes creating and copying tensors.
function see.made(device)
  return function(e) return e.kind == "alloc" and e.to == device end
end

function see.product(device)
  return function(e)
    return e.kind == "op" and e.to == device and (e.name == "linear" or e.name:find "mm") and true
  end
end

function see.computed(device)
  return function(e)
    return e.kind == "op" and e.computes and e.to == device
  end
end

--- Returns, for each event that passes `test`, in order, how many bytes copied from the host are
-- guaranteed to have arrived: those copied by the event's stream, or by a stream that it has
-- synchronized with.
function see.arrived(trace, test)
  local copies_of, marks, list = {}, {}, {} -- sets of copies by stream and by mark
  local function add(set, more)
    for copy in pairs(more or {}) do set[copy] = true end
    return set
  end
  for _, e in ipairs(trace.events) do
    local stream = e.stream or e.to
    local own = copies_of[stream] or {}
    copies_of[stream] = own
    if see.out(e) then
      own[e] = true
    elseif e.kind == "mark" then
      marks[e.mark] = add({}, own)
    elseif e.kind == "after" then
      add(own, marks[e.mark])
    end
    if test(e) then
      local bytes = 0
      for copy in pairs(own) do bytes = bytes + copy.bytes end
      list[#list + 1] = bytes
    end
  end
  return list
end

--- Returns the peak of a device's memory allocated to tensors while f(...) ran, beyond the memory
-- allocated before; then f's results.
function see.peak(device, f, ...)
  local accelerator = require "lutra.accelerator"
  collectgarbage()
  collectgarbage()
  accelerator.reset_peak_memory_stats(device)
  local before = accelerator.memory_allocated(device)
  local results = table.pack(f(...))
  return accelerator.max_memory_allocated(device) - before,
    table.unpack(results, 1, results.n)
end

--- Format 268435456 as "256.0 MiB"; 3, "copy" as "3 copies".
see.bytes = texts.bytes

--- Formats a number.
see.text = numbers.text

--- Returns the first number of a tensor as text.
function see.first(x)
  if x:numel() == 0 then return "nothing" end
  local value = x:flatten()[1]:item()
  return numbers.text(value, "%.4f")
end

--- Returns a count as text: "once", "twice", "3 times".
function see.times(n) return n == 1 and "once" or n == 2 and "twice" or n .. " times" end

--- Returns a number of copies as text: "1 copy", "2 copies".
function see.copies(n) return n == 1 and "1 copy" or n .. " copies" end

return see
