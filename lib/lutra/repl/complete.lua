--- What Tab offers: the completions of a text at the cursor.
--
-- The tokens before the cursor say what is being typed: a command, a name, a field, a string. One
-- source (complete/*.lua) then offers every candidate by its own knowledge, and here they are
-- filtered by what is typed already, described and sorted.
--
-- Invariant: nothing of the user's is run: no metamethod, no function, no __pairs. Nothing is
-- changed and nothing is raised.

local complete = {}

local most_notes = 300 -- beyond that many candidates nobody reads what they are

local function needs(name) return require("lutra.repl.complete." .. name) end

-- Does `text` begin with `prefix`?
local function begins(text, prefix) return text:sub(1, #prefix) == prefix end
local function begins_in_any_case(text, prefix)
  return text:sub(1, #prefix):lower() == prefix:lower()
end

-- Names with an underscore in front are for those who ask for them.
local shows_all = {key = true, file = true, folder = true}
local function is_hidden(kind, prefix) return not shows_all[kind] and prefix:byte(1) ~= 95 end

-- The candidates of a source that begin with what is typed: arguments and the others, as lists of
-- texts, and tables by text. There may be ten thousand, so nothing is made for each but what is
-- needed.
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

-- The source for Lua code that starts behind place.offset.
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

--- The completions of `text` at `point`, the number of bytes before the cursor. `session` may be
-- nil. Returns nil, or {first, last, items}: the range of bytes that is to be replaced (last is
-- point; first is last + 1 where nothing is typed yet) and the sorted candidates {text, kind,
-- shown, note}; shown and note may be nil.
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
