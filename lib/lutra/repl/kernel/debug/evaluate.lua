--- Evaluation of code for the debugger, and values of many kinds for its replies.

local frame_code = require "lutra.repl.frame_code"
local host = require "lutra.repl.host"
local traceback = require "lutra.repl.traceback"

local evaluate = {}

--- Returns a frame without variables: code then sees those of the session.
function evaluate.session_frame()
  return {list = function() return {} end, globals = _G}
end

--- Calls f() so that an interrupt stops it. Returns true and its results packed, or false and the
-- message.
function evaluate.call(f)
  local co = coroutine.create(f)
  local results = table.pack(host.resume(co))
  if results[1] then return true, table.pack(table.unpack(results, 2, results.n)) end
  host.reset(co)
  return false, traceback.message(results[2])
end

--- Evaluates an expression or statements with the variables of a frame. Returns true and the
-- results packed, or false and the message.
function evaluate.run(session, frame, text)
  local f, message = frame_code.compile(session, frame or evaluate.session_frame(), text, "debug")
  if f then return evaluate.call(f) end
  if message then return false, message end
  return true, {n = 0}
end

--- Returns the MIME bundle of a value: data and metadata.
function evaluate.bundle(value)
  local found, rich = pcall(require, "lutra.repl.rich")
  if found and type(rich) == "table" and rich.bundle then
    local ok, results = evaluate.call(function() return rich.bundle(value) end)
    if ok and type(results[1]) == "table" then return results[1], results[2] or {} end
  end
  local text = require("lutra.repl.format_value").value
  local ok, results = evaluate.call(function() return text(value) end)
  return {["text/plain"] = ok and results[1] or "(a value that cannot be shown)"}, {}
end

return evaluate
