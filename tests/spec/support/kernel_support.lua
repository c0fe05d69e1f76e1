--- What the specs of the kernel's request handlers share: a kernel with a session, without sockets.

local json = require "lutra.internal.json"
local session = require "lutra.repl.session"

local support = {}

--- Returns a kernel: its session, `errors` (the errors that the session printed) and `sent` (the
-- messages published: {type, content}).
function support.kernel()
  local kernel = {session = session.new(), errors = {}, sent = {}}
  kernel.session:mark_builtin()
  kernel.session.typed = false
  function kernel.session:print_error(text) -- luacheck: ignore self
    table.insert(kernel.errors, text)
  end
  function kernel:publish(kind, content) -- luacheck: ignore self
    table.insert(kernel.sent, {kind, content})
  end
  return kernel
end

--- Returns the code without the mark | of the cursor, and the number of code points before it; both
-- unchanged without a mark, with the cursor at the end.
function support.cursor(code)
  local before, after = code:match "^(.-)|(.*)$"
  if not before then return code, utf8.len(code) end
  return before .. after, utf8.len(before)
end

--- Returns a reply as the front end gets it: through JSON.
function support.sent(reply) return assert(json.decode(json.encode(reply))) end

return support
