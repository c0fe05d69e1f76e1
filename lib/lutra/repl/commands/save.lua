--- The commands :save (cells as a script) and :history (cells as text).

local files = require "lutra.repl.files"
local script = require "lutra.repl.script"
local style = require "lutra.repl.style"
local command_line = require "lutra.repl.command_line"

local save = {}

local usage = ":save file.lua 1-3 5"

-- Returns the text of a notebook of the cells.
local function notebook_of(cells)
  local notebook_file = require "lutra.repl.notebook_file"
  local notebook = notebook_file.new()
  for i, entry in ipairs(cells) do
    notebook.cells[i] = notebook_file.cell("code", entry.text)
  end
  return notebook_file.encode(notebook)
end

-- Parses "3" or "1-5" to first and last; raises an error for any other word.
local function range(word)
  local first, last = word:match "^(%d+)%-(%d+)$"
  if not first then
    first = word:match "^%d+$"
    last = first
  end
  if not first then
    error(("save: expected numbers or ranges of cells, got \"%s\"\nhint: %s"):format(word, usage),
      0)
  end
  first, last = math.tointeger(tonumber(first)), math.tointeger(tonumber(last))
  if not first or not last or first > last then
    error(("save: expected a range from a lower to a higher cell, got %s"):format(word), 0)
  end
  return first, last
end

-- Returns the cells of the ranges in their order, each once. Cells that failed are included only
-- when they are named individually.
local function chosen(session, ranges)
  local list, seen = {}, {}
  local function add(number, named)
    local entry = session.cells[number]
    if not entry or seen[number] or not (entry.ok or named) then return end
    seen[number] = true
    list[#list + 1] = {number = number, text = entry.text, ok = entry.ok, gave = entry.gave}
  end
  if #ranges == 0 then
    for number = 1, session.number - 1 do add(number, false) end
  end
  for _, word in ipairs(ranges) do
    local first, last = range(word)
    if first < 1 or last >= session.number then
      error(("save: cannot find cell %d: %s"):format(first < 1 and first or last,
        session.number == 1 and "no cell was run"
          or ("the cells are 1 to %d"):format(session.number - 1)), 0)
    end
    for number = first, last do add(number, first == last) end
  end
  return list
end

--- `:save steps.lua` writes the cells that succeeded, in order; `:save steps.lua 1-3 5` writes
-- those. The script requires the modules that they use and prints what they showed: run it with
-- `lutra steps.lua`. A cell that failed is written, as a comment, only when its own number is
-- given. An existing file is overwritten with --force only. A script may have 200 locals.
-- `:save steps.ipynb` writes a notebook for Jupyter.
function save.save(session, text)
  local list, why = command_line.split(text)
  if not list then error("save: " .. why, 0) end
  local force = false
  for i = #list, 1, -1 do
    if list[i] == "--force" then
      force = true
      table.remove(list, i)
    end
  end
  local path = table.remove(list, 1)
  if not path then error("save: expected a file, got none\nhint: " .. usage, 0) end
  local cells = chosen(session, list)
  if #cells == 0 then error("save: cannot save: no cell succeeded", 0) end
  local whole, reason
  if path:lower():find "%.ipynb$" then
    whole = notebook_of(cells)
  else
    whole, reason = script.from(cells)
  end
  if not whole then
    error(("save: cannot make one script of the cells: %s\nhint: choose fewer: :save FILE 1-9")
      :format(reason), 0)
  end
  if not force and files.exists(path) then
    error(("save: cannot overwrite %s: it exists\nhint: :save --force %s"):format(path, path), 0)
  end
  local ok, wrong = files.write(path, whole)
  if not ok then error("save: cannot write " .. wrong, 0) end
  io.stdout:write(("wrote %d cell%s to %s\n"):format(#cells, #cells == 1 and "" or "s", path))
end

--- `:history` lists the cells of the session, `:history N` the last N, `:history TEXT` those that
-- contain the text.
function save.history(session, text)
  local first = 1
  local last_n = math.tointeger(tonumber(text))
  if last_n then first = math.max(1, session.number - math.max(0, last_n)) end
  for number = first, session.number - 1 do
    local entry = session.cells[number]
    if entry and (text == "" or last_n or entry.text:find(text, 1, true)) then
      local mark = ("[%d]> "):format(number)
      io.stdout:write(style.paint("faint", mark),
        (entry.text:gsub("\n", "\n" .. (" "):rep(#mark))),
        entry.ok and "" or style.paint("faint", "  -- failed"), "\n")
    end
  end
end

return save
