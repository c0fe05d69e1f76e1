--- The command :emulate: emulated devices in a session that has started, such as a notebook's.

local host = require "lutra.repl.host"

local emulate = {}

-- The devices that this session has emulated.
local emulated

--- `:emulate cuda:2` emulates two GPUs, as `lutra --emulate cuda:2` does, `:emulate mps` one of
-- Apple, `:emulate cuda:2,mps` both; with memory=1GiB each. A type of device is emulated before it
-- is first used. Without DEVICES it shows what is emulated.
function emulate.emulate(_, text)
  emulated = emulated or os.getenv "LUTRA_EMULATE"
  if text == "" then
    io.stdout:write(emulated and "emulated: " .. emulated or "no devices are emulated", "\n")
    return
  end
  if text == emulated then return end
  local ok, why = host.emulate(text)
  if not ok then
    -- The library's hint is about a call of its function.
    local reason = why:match "^(.*)\nhint: call it first"
    error(reason and ("%s\nhint: :emulate %s must be the first cell of a session, or lutra "
      .. "--emulate %s"):format(reason, text, text) or why, 0)
  end
  emulated = text
end

return emulate
