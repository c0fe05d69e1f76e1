--- A value that a collective computes: what communication hooks return.
--
-- A future waits at most once. The function of `next` is called by wait() or value(), on the thread
-- that calls them.

local args = require "lutra.internal.args"
local class = require "lutra.internal.class"

local Future = class("Future", "lt.distributed.Future")
Future.extend = nil -- a future has no subclasses

--- Future(work, value): the future of `value`, a tensor that is ready when `work` (nil: it is ready
-- now) is done. Raises an error for a work without a method `wait`.
function Future:init(work, value)
  args.expect(work == nil or type(work) == "table" and args.is_callable(work.wait), "Future",
    "a work or nil", "work", work)
  self._work, self._value, self._done = work, value, work == nil
end

--- Waits, and returns the value. Raises the error of a collective that failed.
function Future:wait(timeout)
  if not self._done then
    local result = self._work:wait(timeout)
    if self._then then self._value = self._then(self._work) end
    if self._value == nil then self._value = result end
    self._done = true
    self._work, self._then = nil, nil
  end
  return self._value
end

--- Waits, and returns the value, as PyTorch's future.value().
function Future:value() return self:wait() end

--- Returns whether the value is ready.
function Future:is_completed()
  return self._done or not self._then and self._work:is_completed()
end

--- future:next(f): returns a future of what f(future) returns; its wait() calls f. (PyTorch's
-- `then` is a keyword of Lua.) Raises an error unless f is a function.
function Future:next(f)
  args.expect(args.is_callable(f), "next", "a function", "f", f)
  local after = Future(self)
  after._then = f
  return after
end

return Future
