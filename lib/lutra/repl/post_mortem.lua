--- The post-mortem of a failed cell, for :debug: the error value and a copy of its frames.
--
-- The copy is made before the cell's coroutine is closed, which ends its <close> variables. It is
-- dropped when the next cell starts (session.execute), so that it does not keep values alive.

local call_frames = require "lutra.repl.call_frames"

local post_mortem = {}

--- Returns the post-mortem of coroutine `co` with the error `value`; nil when no user code was
-- running. mains: the set of functions with the label "cell". Fields: value, frames, number (of
-- the cell, or nil).
function post_mortem.take(value, co, mains)
  local list = call_frames.take(co, mains)
  local number, any
  for _, frame in ipairs(list) do
    any = any or not frame.is_library
    number = tonumber(frame.chunk:match "^=cell%[(%d+)%]$") or number
  end
  return any and {value = value, frames = list, number = number} or nil
end

return post_mortem
