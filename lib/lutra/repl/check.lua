--- `lutra --check FILE...`: a syntax check, which runs nothing.

local host = require "lutra.repl.host"
local traceback = require "lutra.repl.traceback"

local check = {}

-- Compiles a file; "-" is stdin. Returns nil, or the error message.
local function read(path)
  if path ~= "-" then return select(2, loadfile(path)) end
  local text = io.read "a" or ""
  host.sources.stdin = text
  return select(2, load(text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", ""), "=stdin"))
end

--- Checks the files options.files and prints errors on stderr. Returns the exit status: 1 when
-- there is an error.
function check.run(options)
  local status = 0
  for _, path in ipairs(options.files) do
    local message = read(path)
    if message then
      status = 1
      io.stderr:write("lutra: ", traceback.format(message), "\n")
    end
  end
  return status
end

return check
