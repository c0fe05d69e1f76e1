--- Completion: the candidates for the text at the cursor.
--
-- The tokens before the cursor determine what is completed: a command, a name, a field, a string.
-- One source (complete/*.lua) then produces every candidate, and this module filters, describes
-- and sorts them.
--
-- Invariant: no user code runs: no metamethod, no function, no __pairs. Nothing is changed and no
-- error is raised.

local complete = {}

local most_notes = 300 -- more candidates are listed without notes

local function load_part(name) return require("lutra.repl.complete." .. name) end

-- Returns whether `text` begins with `prefix`.
local function begins(text, prefix) return text:sub(1, #prefix) == prefix end
local function begins_in_any_case(text, prefix)
  return text:sub(1, #prefix):lower() == prefix:lower()
end

-- Kinds whose names with a leading underscore are always offered; others only after an underscore.
local shows_all = {key = true, file = true, folder = true}
local function is_hidden(kind, prefix) return not shows_all[kind] and prefix:byte(1) ~= 95 end

-- Returns the candidates of a source that match the prefix: arguments and others, as lists of
-- strings, and tables by string. There may be ten thousand, so allocations per candidate are
-- avoided.
local function gather(source, context, same)
  local found = {arguments = {}, texts = {}, kinds = {}, notes = {}, shown = {}, values = {}}
  local kinds, prefix = found.kinds, context.match
  source(context, function(text, kind, note, value, shown, match)
    prefix = context.match
    if kinds[text] or prefix ~= "" and not same(match or text, prefix) then return end
    if text:byte(1) == 95 and is_hidden(kind, prefix) then return end
    kinds[text] = kind
    local list = kind == "argument" and found.arguments or found.texts
    local count = #list + 1
    list[count] = text
    if note or shown then found.notes[text], found.shown[text] = note, shown end
    if count <= most_notes then found.values[text] = value end
  end)
  return found
end

local function list_items(found)
  local kinds, notes, shown, items = found.kinds, found.notes, found.shown, {}
  local noted = #found.arguments + #found.texts <= most_notes
  for _, list in ipairs {found.arguments, found.texts} do
    table.sort(list)
    for _, text in ipairs(list) do
      local note, value = notes[text], found.values[text]
      if noted and not note and value ~= nil then note = load_part("notes").of(value, text) end
      items[#items + 1] = {text = text, kind = kinds[text], note = note, shown = shown[text],
        type = value ~= nil and load_part("notes").type_of(value) or nil}
    end
  end
  return items
end

local function offer(source, context)
  local items = list_items(gather(source, context, begins))
  if #items == 0 and context.match ~= "" then
    items = list_items(gather(source, context, begins_in_any_case))
  end
  if #items == 0 then return nil end
  return {first = context.first, last = context.last, items = items}
end

-- Returns the source for Lua code that starts behind context.offset.
local function code_source(context)
  local read = load_part("tokens").read(context.text:sub(context.offset + 1))
  context.read = read
  context.first, context.match = context.offset + read.first, read.prefix
  if read.inside == "comment" or read.inside == "number" then return nil end
  local list = read.list
  local at = list[#list] and list[#list][1] == "op" and list[#list][2]
  context.variables, context.assigned = load_part("scope").variables(read)
  if read.inside == "string" then return load_part("strings").source end
  if at == "." or at == ":" then return load_part("members").source end
  local ended = read.inside ~= "word" and load_part("tokens").ends_expression(list, #list)
  return not ended and load_part("names").source or nil
end

local function source_of(context)
  local commands = load_part "commands"
  local text = context.text
  local row, at = commands.parse(text)
  if at then
    context.offset, context.first = at - 1, at
    context.match = text:sub(at)
    if row == "command" then return commands.words end
    if not row then return nil end
    local source = commands.argument(context, row)
    if source then return source end
  else
    context.offset = #(text:match "^%s*%?+" or "") -- ?x
  end
  return code_source(context)
end

--- Returns the completions of `text` at `point`, the number of bytes before the cursor; `session`
-- may be nil. The result is nil, or {first, last, items}: the range of bytes to be replaced (last
-- is point; first is last + 1 when it is empty) and the sorted candidates {text, kind, shown, note,
-- type}; shown, note and type (complete/notes.lua) may be nil.
function complete.at(text, point, session)
  local collects = collectgarbage "isrunning"
  collectgarbage "stop" -- a step of it might run finalizers of the user's
  local ok, result = pcall(function()
    local context = {text = text:sub(1, point), after = text:sub(point + 1), last = point,
      depth = 0, session = session}
    local source = source_of(context)
    return source and offer(source, context)
  end)
  if collects then collectgarbage "restart" end
  return ok and result or nil
end

return complete
