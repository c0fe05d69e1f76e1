--- user_expressions of execute_request: expressions that are evaluated after the cell.

local expressions = {}

-- Calls f(); an error that the session would print is returned in its place, and what it keeps
-- about an error stays. Returns whether f succeeded, and its packed results or the text of the
-- error.
local function quietly(session, f)
  local failure, printer, text = session.failure, rawget(session, "print_error"), nil
  session.print_error = function(_, message) text = message end
  local ok, results = session:guard(f)
  session.print_error, session.failure = printer, failure
  return ok, ok and results or text
end

-- Returns the reply for an error.
local function failure_of(text)
  local reply = require("lutra.repl.kernel.execute").error_fields(text)
  reply.status = "error"
  return reply
end

-- Returns the reply for one expression.
local function evaluate(session, text)
  local f, why = session:compile(text, "expression")
  if not f then return failure_of(why) end
  local ok, shown = quietly(session, function()
    local results = table.pack(f())
    if results.n == 0 then return {["text/plain"] = ""} end
    return require("lutra.repl.rich").results(table.unpack(results, 1, results.n))
  end)
  if not ok then return failure_of(shown) end
  return {status = "ok", data = shown[1], metadata = {}}
end

--- Evaluates expressions, a table of strings by name. Returns a table by name of {status = "ok",
-- data, metadata} or {status = "error", ename, evalue, traceback}. Prints nothing, and changes
-- neither _ nor what :debug inspects.
function expressions.evaluate(kernel, user_expressions)
  local replies = {}
  if type(user_expressions) ~= "table" then return replies end
  for name, text in pairs(user_expressions) do
    if type(text) == "string" then
      replies[name] = evaluate(kernel.session, text)
    else
      replies[name] = failure_of(("user_expressions: expected a string for '%s', got a %s"):format(
        name, type(text)))
    end
  end
  return replies
end

return expressions
