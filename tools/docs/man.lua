-- Writes the manual page of the program from what `lutra --help` prints, so that both say the same.
--
--   lua5.4 tools/docs/man.lua build/lutra >docs/lutra.1
--
-- `--help` is, in this order: a usage line; rows of ways to call the program; rows of options; the
-- exit status; rows of environment variables. A row is a name, two or more spaces, and a
-- description that may continue in deeper lines.

local program = assert(arg[1], "usage: lua5.4 tools/docs/man.lua PROGRAM")

local function output(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

local help = output(program .. " --help")
local version = output(program .. " --version"):match "^Lutra (%S+)"

-- Text for roff: a backslash and a leading dot or quote have a meaning there, and so has a minus.
local function roff(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1"))
end

-- The paragraphs of the help, each a list of lines.
local paragraphs = {}
for paragraph in (help .. "\n"):gmatch "(.-)\n\n" do
  local lines = {}
  for line in (paragraph .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  paragraphs[#paragraphs + 1] = lines
end

local out = {}
local function add(...) out[#out + 1] = table.concat {...} end

-- Rows "  name  text": the name, and the text with what continues it.
local function add_rows(lines)
  local name, text
  local function flush()
    if not name then return end
    add ".TP"
    add("\\fB", roff(name), "\\fR")
    add(roff(text:gsub("%s+", " ")))
  end
  for _, line in ipairs(lines) do
    -- One space is enough where a long name leaves no room for two.
    local head, rest = line:match "^  (%S.-)  +(%S.*)$"
    if not head then head, rest = line:match "^  (%-%-%a+ %S+) (%S.*)$" end
    if head then
      flush()
      name, text = head, rest
    elseif name and line:find "^   " then
      text = text .. " " .. line
    end
  end
  flush()
end

add('.TH LUTRA 1 "" "Lutra ', version, '" "User Commands"')
add ".SH NAME"
add "lutra \\- tensors and neural networks in Lua, as a prompt and for scripts"
add ".SH SYNOPSIS"
add ".B lutra"
add "[\\fIoptions\\fR] [\\fIscript.lua\\fR [\\fIarguments\\fR]]"
add ".SH DESCRIPTION"
add "Lutra is PyTorch's programming model in Lua 5.4. A script begins with"
add "\\fIlocal lt = require \"lutra\"\\fR; code at the prompt, from \\fB\\-e\\fR and from"
add "standard input finds lt, tensor, nn, F, optim and data."
add_rows(paragraphs[2])
add ".SH OPTIONS"
add_rows(paragraphs[3])
add ".SH EXIT STATUS"
for _, line in ipairs(paragraphs[4]) do add(roff(line)) end
add ".SH ENVIRONMENT"
add_rows(paragraphs[5])
add ".SH SEE ALSO"
add ".BR lua5.4 (1)"
print(table.concat(out, "\n"))
