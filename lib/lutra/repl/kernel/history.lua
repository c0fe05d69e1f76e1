--- history_request: the cells of this session, and those of earlier ones from the prompt's file.
--
-- The file has no numbers of sessions: all earlier sessions together are session -1, numbered from
-- its first entry. This session is session 0, numbered by the execution counts of its cells.

local fields = require "lutra.repl.kernel.fields"
local json = require "lutra.internal.json"
local prompt = require "lutra.repl.history"

local history = {}

--- Records a cell that is run with store_history, and adds it to the file.
function history.record(kernel, number, source)
  kernel.inputs = kernel.inputs or {}
  kernel.inputs[number] = {text = source}
  prompt.add(source)
end

--- Records the text of the result of a cell, if the cell is recorded.
function history.record_output(kernel, number, output)
  local entry = kernel.inputs and kernel.inputs[number]
  if entry then entry.output = output end
end

-- Returns the entries of this session in order: a list of {session, line, source, output}.
local function current(kernel)
  local cells, numbers, list = kernel.inputs or kernel.session.cells, {}, {}
  for number in pairs(cells) do numbers[#numbers + 1] = number end
  table.sort(numbers)
  for i, number in ipairs(numbers) do
    list[i] = {0, number, cells[number].text, cells[number].output or json.null}
  end
  return list
end

local function earlier()
  local list = {}
  for i, text in ipairs(prompt.earlier()) do list[i] = {-1, i, text, json.null} end
  return list
end

-- Returns all entries, oldest first.
local function all(kernel)
  local list, now = earlier(), current(kernel)
  return table.move(now, 1, #now, #list + 1, list)
end

-- Returns the last n entries; all without n.
local function last(list, n)
  n = n or #list
  return table.move(list, math.max(1, #list - math.max(0, n) + 1), #list, 1, {})
end

-- Returns the entries of a session from line `start` to the one before `stop`.
local function range(kernel, session, start, stop)
  local list = {}
  if session ~= 0 and session ~= -1 then return list end
  for _, entry in ipairs(session == 0 and current(kernel) or earlier()) do
    if entry[2] >= (start or 0) and (not stop or entry[2] < stop) then list[#list + 1] = entry end
  end
  return list
end

-- Returns the index behind the character at `at`.
local function after_character(text, at)
  return text:match("^[\0-\x7F\xC0-\xFF][\x80-\xBF]*()", at)
end

--- Returns whether a glob pattern matches all of `text`: * stands for any characters, ? for one.
function history.matches(pattern, text)
  local p, t, star, mark = 1, 1, nil, nil
  while t <= #text do
    local c = pattern:sub(p, p)
    if c == "*" then
      star, mark, p = p, t, p + 1
    elseif c == "?" then
      p, t = p + 1, after_character(text, t) or t + 1
    elseif c ~= "" and c == text:sub(t, t) then
      p, t = p + 1, t + 1
    elseif star then
      mark = mark + 1
      p, t = star + 1, mark
    else
      return false
    end
  end
  return pattern:find("^%**$", p) ~= nil
end

-- Returns the entries that match the pattern; with `unique` only the last of equal ones.
local function search(kernel, pattern, unique)
  local found, seen, list = {}, {}, all(kernel)
  for i = #list, 1, -1 do
    local source = list[i][3]
    if history.matches(pattern, source) and not (unique and seen[source]) then
      seen[source] = true
      table.insert(found, 1, list[i])
    end
  end
  return found
end

local function entries(kernel, content)
  local kind, n = fields.string(content, "hist_access_type"), fields.integer(content, "n")
  if kind == "tail" then return last(all(kernel), n or 10) end
  if kind == "range" then
    return range(kernel, fields.integer(content, "session") or 0, fields.integer(content, "start"),
      fields.integer(content, "stop"))
  end
  if kind == "search" then
    local pattern = content.pattern and fields.string(content, "pattern") or "*"
    return last(search(kernel, pattern, fields.flag(content, "unique")), n)
  end
  error(("expected tail, range or search as 'hist_access_type', got %q"):format(kind), 0)
end

--- Replies to history_request: the list of {session, line, source}, or {session, line, {source,
-- output}} with `output`, oldest first. hist_access_type: "tail", the last n; "range", lines of one
-- session; "search", the last n that match a pattern.
function history.history_request(kernel, content)
  local list = json.array {}
  for i, entry in ipairs(entries(kernel, content)) do
    local source = entry[3]
    if fields.flag(content, "output") then source = json.array {source, entry[4]} end
    list[i] = json.array {entry[1], entry[2], source}
  end
  return {status = "ok", history = list}
end

return history
