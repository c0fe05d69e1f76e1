--- comm_open, comm_msg, comm_close, comm_info_request: messages of widgets.
--
-- kernel.comms holds the targets that Lua code has registered and the comms that are open. A comm
-- is {comm_id, target_name, on_message, on_close}; both functions may be nil.

local fields = require "lutra.repl.kernel.fields"
local json = require "lutra.internal.json"

local comm = {}

-- Returns the kernel's comms: {targets = functions by name, open = comms by id}.
local function comms_of(kernel)
  local comms = kernel.comms or {}
  comms.targets, comms.open = comms.targets or {}, comms.open or {}
  kernel.comms = comms
  return comms
end

--- Registers a target. open(comm, data) is called when the front end opens a comm to it, and may
-- set comm.on_message(data) and comm.on_close(data).
function comm.register(kernel, target_name, open)
  if type(target_name) ~= "string" then
    error(("register: expected a string for argument 'target_name', got %s"):format(
      type(target_name)), 2)
  end
  if type(open) ~= "function" then
    error(("register: expected a function for argument 'open', got %s"):format(type(open)), 2)
  end
  comms_of(kernel).targets[target_name] = open
end

-- Closes a comm that the front end has opened.
local function refuse(kernel, comm_id)
  kernel:publish("comm_close", {comm_id = comm_id, data = {}})
end

--- Opens a comm; closes it again when its target is unknown or fails.
function comm.comm_open(kernel, content)
  local comms = comms_of(kernel)
  local one = {comm_id = fields.string(content, "comm_id"),
    target_name = fields.string(content, "target_name")}
  local open = comms.targets[one.target_name]
  if not open then return refuse(kernel, one.comm_id) end
  comms.open[one.comm_id] = one
  if kernel.session:guard(function() open(one, content.data) end) then return end
  comms.open[one.comm_id] = nil
  refuse(kernel, one.comm_id)
end

--- Passes the data of a message to its comm; a message to an unknown comm is ignored.
function comm.comm_msg(kernel, content)
  local one = comms_of(kernel).open[fields.string(content, "comm_id")]
  if not one or not one.on_message then return end
  kernel.session:guard(function() one.on_message(content.data) end)
end

--- Closes a comm; an unknown one is ignored.
function comm.comm_close(kernel, content)
  local comms = comms_of(kernel)
  local one = comms.open[fields.string(content, "comm_id")]
  if not one then return end
  comms.open[one.comm_id] = nil
  if one.on_close then kernel.session:guard(function() one.on_close(content.data) end) end
end

--- Replies to comm_info_request: the open comms, of one target or of all.
function comm.comm_info_request(kernel, content)
  local wish, list = content.target_name, {}
  if wish == json.null or wish == "" then wish = nil end
  for id, one in next, comms_of(kernel).open do
    if not wish or one.target_name == wish then list[id] = {target_name = one.target_name} end
  end
  return {status = "ok", comms = list}
end

return comm
