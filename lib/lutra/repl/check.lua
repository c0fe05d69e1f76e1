--- `lutra --check FILE...`: a check of the syntax, and warnings about code that compiles and may
-- not do what it seems to do (lutra.repl.check_code). It runs nothing.

local host = require "lutra.repl.host"
local traceback = require "lutra.repl.traceback"

local check = {}

-- Returns the text of a Lua program without a byte order mark and a first line that begins with #.
local function source(text) return (text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")) end

-- Compiles a file; "-" is stdin. Returns the error message, or nil and the text of the file.
local function read(path)
  if path ~= "-" then
    local message = select(2, loadfile(path))
    if message then return message end
    local file <close> = io.open(path, "rb")
    return nil, file and source(file:read "a" or "") or ""
  end
  local text = io.read "a" or ""
  host.sources.stdin = text
  return select(2, load(source(text), "=stdin")), source(text)
end

-- Prints warnings about the text of a file.
local function warn(path, text)
  if text:find "^\27" then return end -- compiled code
  for _, warning in ipairs(require("lutra.repl.check_code").warnings(text)) do
    io.stderr:write(("lutra: warning: %s:%d: %s\n"):format(path == "-" and "stdin" or path,
      warning.line, warning.text))
  end
end

--- Checks the files options.files and prints errors and warnings on stderr. Returns the exit
-- status: 1 when there is an error.
function check.run(options)
  local status = 0
  for _, path in ipairs(options.files) do
    local message, text = read(path)
    if not message then warn(path, text) end
    if message then
      status = 1
      io.stderr:write("lutra: ", traceback.format(message), "\n")
    end
  end
  return status
end

return check
