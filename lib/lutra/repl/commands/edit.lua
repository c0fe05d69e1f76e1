--- The command :edit: code in an external editor.

local front = require "lutra.repl.front"
local files = require "lutra.repl.files"
local history = require "lutra.repl.history"
local run = require "lutra.repl.commands.run"
local shell = require "lutra.repl.commands.shell"
local style = require "lutra.repl.style"
local command_line = require "lutra.repl.command_line"

local edit = {}

local usual = {"vi", "nano"}

local function is_program(name)
  return os.execute(("command -v %s >/dev/null 2>&1"):format(command_line.quote(name))) == true
end

-- Returns the command line of the editor, which may include arguments.
local function editor()
  for _, variable in ipairs {"VISUAL", "EDITOR"} do
    local value = os.getenv(variable)
    if value and value:match "%S" then return value end
  end
  for _, name in ipairs(usual) do
    if is_program(name) then return name end
  end
  error("edit: cannot find an editor: EDITOR is not set, vi and nano are not installed\n"
    .. "hint: export EDITOR=nano", 0)
end

-- Opens a file in the editor; raises an error when that fails, so that nothing is run.
local function open_editor(path)
  local line = editor()
  local ok, why = shell.run(line .. " " .. command_line.quote(path))
  if not ok then error(("edit: cannot run %s: %s"):format(line, why), 0) end
end

-- Returns the initial text: that of cell `number`, or of the last cell; "" when there is none.
local function initial_text(session, number)
  if not number then
    local last = session.cells[session.number - 1]
    return last and last.text or ""
  end
  local entry = session.cells[number]
  if entry then return entry.text end
  error(("edit: cannot find cell %d: %s"):format(number, session.number == 1 and "no cell was run"
    or ("the cells are 1 to %d"):format(session.number - 1)), 0)
end

-- Returns `text` as edited by the user.
local function edited(text)
  local path = os.tmpname()
  local _ <close> = setmetatable({}, {__close = function()
    os.remove(path)
    os.remove(path .. ".lua")
  end})
  local script = path .. ".lua" -- so that the editor knows the language
  local ok, why = files.write(script, text == "" and "" or text .. "\n")
  if not ok then error("edit: cannot write " .. why, 0) end
  open_editor(script)
  local result, reason = files.read(script)
  if not result then error("edit: cannot read " .. reason, 0) end
  return (result:gsub("%s+$", ""))
end

-- Prints the code that is run, as the editor has cleared the screen.
local function echo(session, text)
  local mark = ("[%d]> "):format(session.number)
  io.stdout:write(style.paint("faint", mark .. text:gsub("\n", "\n" .. (" "):rep(#mark))), "\n")
end

--- `:edit` opens the text of the last cell in $VISUAL or $EDITOR, `:edit 3` that of cell 3; the
-- saved text runs as a new cell. `:edit train.lua` edits that file, then runs it like :run.
-- Nothing is run when the editor fails or the text is empty.
function edit.edit(session, text)
  if front.notebook then
    error("edit: cannot open an editor: it is not available in a notebook\n"
      .. "hint: change the cell and run it again", 0)
  end
  local list = command_line.arguments("edit", text, 1, "FILE or the number of a cell")
  local number = math.tointeger(tonumber(list[1]))
  if list[1] and not number then
    open_editor(list[1])
    if files.exists(list[1]) then run.file(session, list) end
    return
  end
  local result = edited(initial_text(session, number))
  if result == "" then
    io.stdout:write(style.paint("faint", "empty, nothing to run"), "\n")
    return
  end
  if session.typed then
    echo(session, result)
    history.add(result)
  end
  return session:execute(result) and "quit" or nil
end

return edit
