--- The commands :keep and :load: the session's values in a safetensors file.
--
-- Every reader of safetensors can read the file: its tensors have the names of the variables. Their
-- types (lutra.repl.workspace.format) are stored in the metadata.

local files = require "lutra.repl.files"
local format_value = require "lutra.repl.format_value"
local style = require "lutra.repl.style"
local command_line = require "lutra.repl.command_line"

local workspace = {}

local key = "lutra.workspace"

local function path_of(name, text)
  local path = command_line.arguments(name, text, 1, "one FILE")[1]
  return path or error(("%s: expected a file, got none\nhint: :%s session.safetensors"):format(
    name, name), 0)
end

-- Returns whether the file at `path` was written by :keep. Only its header is read (safetensors:
-- its length in 8 bytes, little endian, then JSON).
local function is_workspace(path)
  if not files.is_file(path) then return false end
  local file <close> = io.open(path, "rb")
  local whole = file and file:seek "end"
  if not whole or not file:seek "set" then return false end
  local head = file:read(8)
  if not head or #head < 8 then return false end
  local size = string.unpack("<i8", head)
  if size < 0 or size > whole - 8 then return false end
  local header = file:read(size)
  return header ~= nil and header:find('"' .. key .. '"', 1, true) ~= nil
end

-- Prints a string in lines of the terminal's width, those after the first indented.
local function say(text, kind)
  local width, line = style.width(), ""
  local function flush()
    io.stdout:write(kind and style.paint(kind, line) or line, "\n")
  end
  for word in text:gmatch "%S+" do
    if line == "" then
      line = word
    elseif #line + 1 + #word <= width then
      line = line .. " " .. word
    else
      flush()
      line = "  " .. word
    end
  end
  flush()
end

local NAMES = 40 -- the maximum number of names in a list

-- Returns a list as "a, b, c"; of a long list the first names and the number of others.
local function listed(names)
  if #names <= NAMES then return table.concat(names, ", ") end
  return ("%s and %d more"):format(table.concat(names, ", ", 1, NAMES), #names - NAMES)
end

-- Returns a summary of an image's variables, such as "2 tensors in 3 variables: a, b, c".
local function summary(image)
  local names = {}
  for _, variable in ipairs(image.variables) do names[#names + 1] = variable.name end
  local count = #image.tensors
  return ("%d tensor%s in %d variable%s: %s"):format(count, count == 1 and "" or "s", #names,
    #names == 1 and "" or "s", listed(names))
end

--- `:keep work.safetensors` writes the variables of the session: tensors (also within tables, views
-- as views), numbers, strings, booleans, and the states of modules and optimizers. It lists what
-- it cannot save: functions, objects, tensors on meta. It overwrites only files that it wrote.
-- Other programs find the tensors under the variables' names.
function workspace.keep(session, text)
  local path = path_of("keep", text)
  if files.exists(path) and not is_workspace(path) then
    error(("keep: cannot overwrite %s: it exists and was not written by :keep\n"
      .. "hint: remove it, or use another name")
      :format(path), 0)
  end
  local packed = require("lutra.repl.workspace.pack").session(session)
  if #packed.image.variables == 0 then
    error("keep: cannot save the session: no variable can be saved", 0)
  end
  local description = require("lutra.repl.workspace.format").write(packed.image)
  local ok, why = pcall(require("lutra").save_safetensors, path, packed.values,
    {[key] = description})
  if not ok then error("keep: " .. tostring(why):gsub("^.-save_safetensors: ", ""), 0) end
  say("kept " .. summary(packed.image))
  if packed.left[1] then say("not kept: " .. listed(packed.left), "faint") end
  if packed.apart[1] then
    say("share memory now, but not after loading: " .. listed(packed.apart), "faint")
  end
end

-- Returns an error of unpacking with the file's name in front, unless the message names it. Names
-- from the file are escaped, so that they cannot control the terminal.
local function placed(path, message)
  if type(message) ~= "string" or message == "not enough memory" or message == "interrupted" then
    return message
  end
  message = message:gsub("^[^\n]-:%d+: ", "", 1):gsub('[^"\\\n]+', format_value.escape)
  return message:find "^load: " and message or ("load: cannot load %s: %s"):format(path, message)
end

--- `:load work.safetensors` reads a file of :keep: locals become locals again, and parameters and
-- tensors that require grad become so again; tensors are moved to the device they were on, or to
-- the CPU when it is not available. States are loaded into the modules and optimizers of the same
-- names; without one, the variable becomes the state. After an error nothing has been loaded.
function workspace.load(session, text)
  local path = path_of("load", text)
  local ok, tensors, notes = pcall(require("lutra").load_safetensors, path)
  if not ok then error("load: " .. tostring(tensors):gsub("^.-load_safetensors: ", "", 1), 0) end
  if not notes[key] then
    error(("load: cannot load %s: it was not written by :keep\nhint: lt.load_safetensors(%q)")
      :format(path, path), 0)
  end
  local image, why = require("lutra.repl.workspace.format").read(notes[key])
  if not image then error(("load: cannot load %s: %s"):format(path, why), 0) end
  local unpack = require("lutra.repl.workspace.unpack").session
  local good, said = pcall(unpack, session, image, tensors)
  if not good then error(placed(path, said), 0) end
  say("loaded " .. summary(image))
  for i = 1, math.min(#said, NAMES) do say(said[i], "faint") end
  if #said > NAMES then say(("and %d more notes"):format(#said - NAMES), "faint") end
end

return workspace
