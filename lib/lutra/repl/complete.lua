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

local function needs(name) return require("lutra.repl.complete." .. name) end

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
local function gather(source, place, same)
  local found = {arguments = {}, texts = {}, kinds = {}, notes = {}, shown = {}, values = {}}
  local kinds, prefix = found.kinds, place.match
  source(place, function(text, kind, note, value, shown, match)
    prefix = place.match
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
      if noted and not note and value ~= nil then note = needs("notes").of(value, text) end
      items[#items + 1] = {text = text, kind = kinds[text], note = note, shown = shown[text]}
    end
  end
  return items
end

local function offer(source, place)
  local items = list_items(gather(source, place, begins))
  if #items == 0 and place.match ~= "" then
    items = list_items(gather(source, place, begins_in_any_case))
  end
  if #items == 0 then return nil end
  return {first = place.first, last = place.last, items = items}
end

-- Returns the source for Lua code that starts behind place.offset.
local function code_source(place)
  local read = needs("tokens").read(place.text:sub(place.offset + 1))
  place.read = read
  place.first, place.match = place.offset + read.first, read.prefix
  if read.inside == "comment" or read.inside == "number" then return nil end
  local list = read.list
  local at = list[#list] and list[#list][1] == "op" and list[#list][2]
  place.variables, place.assigned = needs("scope").variables(read)
  if read.inside == "string" then return needs("strings").source end
  if at == "." or at == ":" then return needs("members").source end
  local ended = read.inside ~= "word" and needs("tokens").ends_expression(list, #list)
  return not ended and needs("names").source or nil
end

local function source_of(place)
  local commands = needs "commands"
  local text = place.text
  local row, at = commands.parse(text)
  if at then
    place.offset, place.first = at - 1, at
    place.match = text:sub(at)
    if row == "command" then return commands.words end
    if not row then return nil end
    local source = commands.argument(place, row)
    if source then return source end
  else
    place.offset = #(text:match "^%s*%?+" or "") -- ?x
  end
  return code_source(place)
end

--- Returns the completions of `text` at `point`, the number of bytes before the cursor; `session`
-- may be nil. The result is nil, or {first, last, items}: the range of bytes to be replaced (last
-- is point; first is last + 1 when it is empty) and the sorted candidates {text, kind, shown,
-- note}; shown and note may be nil.
function complete.at(text, point, session)
  local collects = collectgarbage "isrunning"
  collectgarbage "stop" -- a step of it might run finalizers of the user's
  local ok, result = pcall(function()
    local place = {text = text:sub(1, point), after = text:sub(point + 1), last = point, depth = 0,
      session = session}
    local source = source_of(place)
    return source and offer(source, place)
  end)
  if collects then collectgarbage "restart" end
  return ok and result or nil
end

return complete
