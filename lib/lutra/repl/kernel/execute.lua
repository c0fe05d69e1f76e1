--- execute_request: runs a cell in the prompt's session.
--
-- Invariant: a cell that fails sends exactly one message `error`; what else goes wrong in it is
-- written to stderr.

local history = require "lutra.repl.kernel.history"
local host = require "lutra.repl.host"
local json = require "lutra.internal.json"
local texts = require "lutra.internal.text"

local execute = {}

-- Removes colours.
local function plain(text) return (text:gsub("\27%[[%d;]*m", "")) end

--- Returns the fields that describe an error to the protocol: ename, evalue, traceback.
function execute.error_fields(text)
  local first = plain(text):match "^[^\n]*"
  local name = first:find "interrupted$" and "Interrupted" or "Error"
  return {ename = name, evalue = first, traceback = json.array(texts.lines(text))}
end

-- ---- the session's output

-- Reports an error of the session. Of an input at a breakpoint it is no error of the cell.
local function show_error(kernel, text)
  local debugger = kernel.session.debugger
  if not kernel.executing or kernel.failure or debugger and debugger.live then
    io.stdout:flush()
    io.stderr:write(text, "\n")
    return
  end
  kernel.failure = execute.error_fields(text)
  kernel:publish("error", kernel.failure)
end

local function show_results(kernel, results, note)
  local data = require("lutra.repl.rich").results(table.unpack(results, 1, results.n))
  kernel:publish("execute_result", {execution_count = kernel.count, data = data, metadata = {}})
  history.record_output(kernel, kernel.count, data["text/plain"])
  if note then io.stdout:write(note, "\n") end
end

--- Connects the session's output to the front end.
function execute.prepare(kernel)
  function kernel.session.print_error(_, text) show_error(kernel, text) end
  function kernel.session.show(_, results, note) show_results(kernel, results, note) end
end

-- ---- running

-- Runs the pieces of a cell until one fails; returns whether the user asked to leave.
local function run_pieces(kernel, text)
  for _, piece in ipairs(require("lutra.repl.kernel.pieces").split(text)) do
    kernel.session.number = kernel.count
    if kernel.session:execute(piece.text, text) then return true end
    if kernel.failure then return false end
  end
  return false
end

-- Answers the requests that were sent before the failure without running them.
local function abort_waiting(kernel) kernel.aborts_until = kernel.channels.last() end

local function count_cell(kernel, content)
  if content.silent or content.store_history == false then return end
  kernel.count = kernel.count + 1
  history.record(kernel, kernel.count, content.code)
end

-- Keeps the text of the cell for the debugger.
local function keep_text(kernel, text)
  local chunk = ("=cell[%d]"):format(kernel.count)
  kernel.texts[chunk] = text
  local debugger = package.loaded["lutra.repl.kernel.debug"]
  if debugger then debugger.cell_started(kernel, text, chunk) end
end

-- Runs the cell, with its output connected to the request.
local function run(kernel, content, request)
  kernel.silent = content.silent == true
  kernel.failure, kernel.payload, kernel.executing = nil, json.array{}, true
  kernel.channels.execute(request.raw, kernel.silent, content.allow_stdin == true)
  keep_text(kernel, content.code)
  kernel:publish("execute_input", {code = content.code, execution_count = kernel.count})
  local leaves = run_pieces(kernel, content.code)
  if leaves then kernel.payload[#kernel.payload + 1] = {source = "ask_exit", keepkernel = false} end
  io.stdout:flush()
end

local function evaluate_expressions(kernel, content)
  if kernel.failure or type(content.user_expressions) ~= "table" then return {} end
  return require("lutra.repl.kernel.expressions").evaluate(kernel, content.user_expressions)
end

--- Runs content.code and returns the content of the reply.
function execute.execute_request(kernel, content, request)
  if type(content.code) ~= "string" then
    error(("expected a string as 'code', got %s"):format(type(content.code)), 0)
  end
  if request.sequence <= (kernel.aborts_until or 0) then
    return {status = "aborted", execution_count = kernel.count, payload = json.array{}}
  end
  count_cell(kernel, content)
  run(kernel, content, request)
  local reply = {status = "ok", execution_count = kernel.count, payload = kernel.payload,
    user_expressions = evaluate_expressions(kernel, content)}
  if kernel.failure then
    reply.status = "error"
    for name, value in pairs(kernel.failure) do reply[name] = value end
    if content.stop_on_error ~= false and not kernel.silent then abort_waiting(kernel) end
  end
  kernel.executing, kernel.failure = false, nil
  host.clear_interrupts()
  return reply
end

return execute
