--- shutdown_request on the channel `shell`, as older front ends send it; on `control` the thread of
-- the channels answers.

local shutdown = {}

--- Ends the kernel after this request.
function shutdown.shutdown_request(kernel, content)
  kernel.channels.finish()
  return {status = "ok", restart = content.restart == true}
end

return shutdown
