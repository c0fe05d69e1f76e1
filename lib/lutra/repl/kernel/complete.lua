--- complete_request: the completions at the cursor, from lutra.repl.complete.

local fields = require "lutra.repl.kernel.fields"
local json = require "lutra.internal.json"
local pieces = require "lutra.repl.kernel.pieces"
local position = require "lutra.repl.kernel.position"
local prompt = require "lutra.repl.complete"

local complete = {}

-- The kinds of candidates (lutra.repl.complete) -> the types that front ends show with an icon.
local types = {
  ["function"] = "function", method = "function", class = "class", keyword = "keyword",
  argument = "param", command = "command", file = "path", folder = "path", flag = "param",
  option = "param", value = "param", module = "module",
}

-- Returns an item of the metadata; first and last count code points.
local function typed(item, first, last)
  local signature = item.note and item.note:match "^%(.*%)$"
  return {
    start = first,
    ["end"] = last,
    text = item.text,
    type = types[item.kind] or item.type or "instance",
    signature = signature or (item.kind == "argument" and item.note) or "",
  }
end

--- Replies to complete_request. Each match replaces the range from cursor_start to cursor_end. The
-- metadata has the types and the parameters of the matches.
function complete.complete_request(kernel, content)
  local code = fields.string(content, "code")
  local point = position.bytes(code, fields.integer(content, "cursor_pos"))
  local last = position.points(code, point)
  local reply = {status = "ok", matches = json.array {}, cursor_start = last, cursor_end = last,
    metadata = {}}
  local _, text, offset = pieces.at(code, point)
  local found = prompt.at(text, point - offset, kernel.session)
  if not found then return reply end
  reply.cursor_start = position.points(code, offset + found.first - 1)
  local items = json.array {}
  for i, item in ipairs(found.items) do
    reply.matches[i] = item.text
    items[i] = typed(item, reply.cursor_start, last)
  end
  reply.metadata._jupyter_types_experimental = items
  return reply
end

return complete
