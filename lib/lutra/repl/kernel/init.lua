--- The Jupyter kernel: answers the requests of front ends such as JupyterLab.
--
-- The C module lutra.repl.channels receives and sends messages; a thread of its own answers
-- heartbeats, interrupts and requests for a shutdown. This loop runs the other requests, one after
-- the other. A kind of request is a row of `handlers`, whose function gets the kernel, the content
-- and the request, and returns the content of the reply, or nil when there is none.
--
-- Messages: jupyter-client.readthedocs.io, "Messaging in Jupyter", version 5.5.
--
-- Invariant: `busy` and `idle` are sent around each request; an error in a handler is reported and
-- does not end the kernel.

local front = require "lutra.repl.front"
local globals = require "lutra.repl.globals"
local host = require "lutra.repl.host"
local json = require "lutra.internal.json"
local session = require "lutra.repl.session"
local string_methods = require "lutra.repl.string_methods"
local traceback = require "lutra.repl.traceback"

local kernel = {}
kernel.__index = kernel

-- The kinds of requests -> the module with the function of that name.
local handlers = {
  execute_request = "execute",
  complete_request = "complete",
  inspect_request = "inspect",
  is_complete_request = "is_complete",
  history_request = "history",
  comm_info_request = "comm",
  comm_open = "comm",
  comm_msg = "comm",
  comm_close = "comm",
  kernel_info_request = "info",
  shutdown_request = "shutdown",
  debug_request = "debug",
}

-- Requests that cannot be sent on the channel `shell`, and kinds without a status in their reply.
local control_only = {debug_request = true}

--- Sends a message to all front ends, as part of the answer to the current request. `metadata` may
-- be nil.
function kernel:publish(kind, content, metadata)
  if self.silent then return end
  self.channels.send("iopub", self.request and self.request.raw, kind, json.encode(content),
    metadata and json.encode(metadata))
end

--- Answers a request.
function kernel:reply(request, kind, content, metadata)
  self.channels.send(request.channel, request.raw, kind, json.encode(content),
    metadata and json.encode(metadata))
end

-- Returns the request of a packet: {raw, channel, sequence, kind, header, content, metadata,
-- buffers}; nil and the reason when its parts are invalid.
local function read_request(channels, raw)
  local request = {raw = raw}
  local header, metadata, content
  request.channel, request.sequence, header, metadata, content, request.buffers =
    channels.parts(raw)
  for name, text in pairs{header = header, metadata = metadata, content = content} do
    local value, why = json.decode(text)
    if type(value) ~= "table" then return nil, name .. ": " .. (why or "expected an object") end
    request[name] = value
  end
  request.kind = request.header.msg_type
  if type(request.kind) ~= "string" then return nil, "header: expected a string as msg_type" end
  return request
end

--- Returns the next request of the channel `control`, or nil when none comes in time.
function kernel:next_control(seconds)
  local raw = self.channels.receive(seconds, true)
  return raw and read_request(self.channels, raw)
end

-- Returns the kind of the reply: execute_request -> execute_reply.
local function reply_kind(kind) return (string.gsub(kind, "_request$", "_reply")) end

-- Reports an error of the kernel itself on the standard error of the notebook.
local function report(self, text)
  if not self.request then return end
  self:publish("stream", {name = "stderr", text = "lutra: " .. text .. "\n"})
end

-- Calls the function of a request in the module lutra.repl.kernel.<name>, which is loaded first.
local function call_handler(self, request, name)
  return require("lutra.repl.kernel." .. name)[request.kind](self, request.content, request)
end

-- Answers one request.
local function answer(self, request)
  local name = handlers[request.kind]
  local usable = name and (request.channel == "control" or not control_only[request.kind])
  if not usable then return end -- the protocol: ignore what is not known
  local ok, content, metadata = pcall(call_handler, self, request, name)
  local restored = string_methods.restore(not ok)
  if restored then report(self, restored) end
  if not ok then
    local why = traceback.message(content)
    report(self, request.kind .. " failed: " .. why)
    content = {status = "error", ename = "Error", evalue = why, traceback = json.array{why}}
  end
  if content and string.find(request.kind, "_request$") then
    self:reply(request, reply_kind(request.kind), content, metadata)
  end
end

--- Handles one request, with the status messages around it.
function kernel:handle(request)
  local outer = self.request
  self.request = request
  self:publish("status", {execution_state = "busy"})
  answer(self, request)
  self.silent = false
  self:publish("status", {execution_state = "idle"})
  self.request = outer
end

-- ---- the front end, for lutra.repl.front

local function bundle(data, metadata, id)
  return {data = data, metadata = metadata or {}, transient = id and {display_id = id} or {}}
end

-- Returns the object of front.notebook.
local function new_notebook(self)
  local notebook = {}
  function notebook.display(_, data, metadata, id)
    self:publish("display_data", bundle(data, metadata, id))
  end
  function notebook.update(_, data, metadata, id)
    self:publish("update_display_data", bundle(data, metadata, id))
  end
  function notebook.clear(_, wait) self:publish("clear_output", {wait = wait == true}) end
  function notebook.page(_, text)
    self.payload[#self.payload + 1] = {source = "page", data = {["text/plain"] = text}, start = 0}
  end
  function notebook.next_input(_, text)
    self.payload[#self.payload + 1] = {source = "set_next_input", text = text, replace = false}
  end
  function notebook.input(_, prompt, password)
    return self.channels.input(prompt, password == true)
  end
  return notebook
end

-- ---- starting

local function read_connection(path)
  local text, why = require("lutra.repl.files").read(path)
  if not text then error("--kernel: cannot read " .. why, 0) end
  local connection
  connection, why = json.decode(text)
  if type(connection) ~= "table" then
    error(("--kernel: expected a connection file, got %q: %s"):format(path, why or "no object"), 0)
  end
  local scheme = connection.signature_scheme
  if scheme and scheme ~= "hmac-sha256" and connection.key ~= "" then
    error(("--kernel: expected the signature scheme hmac-sha256, got %q"):format(tostring(scheme)),
      0)
  end
  return connection
end

-- Makes what user code reads from the terminal come from the front end.
local function replace_stdin(self)
  local file = self.channels.stdin()
  _G.io.stdin = file -- not `io`, which is a copy (src/repl/private_globals.c)
  io.input(file)
end

-- Returns a kernel that is connected.
local function new(path)
  local self = setmetatable({
    session = session.new(),
    channels = require "lutra.repl.channels",
    count = 0,        -- of executed cells
    texts = {},       -- of executed cells, by chunk
    payload = {},     -- of the reply that is being made
    comms = {},
  }, kernel)
  local info = require("lutra.repl.kernel.info").kernel_info_request(self)
  self.channels.open(read_connection(path), json.encode(info))
  replace_stdin(self)
  return self
end

local function loop(self)
  while true do
    local raw = self.channels.receive()
    if not raw then return end
    local request, why = read_request(self.channels, raw)
    if request then
      self:handle(request)
    else
      report(self, "ignored a message: " .. why)
    end
  end
end

--- Runs `lutra --kernel`: options.files are the words behind it. Returns the exit status.
function kernel.run(options)
  local word = options.files[1]
  if word == "install" or word == "uninstall" or word == "list" then
    return require("lutra.repl.kernel.install").run(options.files)
  end
  globals.install()
  local self = new(word)
  local repl = require "lutra.repl"
  repl.session = self.session
  self.session:mark_builtin()
  front.notebook = new_notebook(self)
  require("lutra.repl.kernel.execute").prepare(self)
  host.keep(true)
  require("lutra.repl.startup").run(self.session)
  loop(self)
  self.channels.close()
  return 0
end

return kernel
