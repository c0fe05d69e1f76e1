--- What the specs of the program share: running it, with input, with a terminal.

local support = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end

-- The program that runs this (LUTRA_TEST_PROGRAM: the script that runs it with an emulator), or the
-- one of the build; its whole path, as specs change folders.
local function find_program()
  local program = os.getenv "LUTRA_TEST_PROGRAM" or arg and arg[-1]
  if not (program and program:match "lutra$") then
    program = (os.getenv "LUTRA_BUILD" or root .. "build") .. "/lutra"
  end
  if program:sub(1, 1) == "/" then return program end
  local pipe <close> = assert(io.popen "pwd")
  return pipe:read "l" .. "/" .. program
end
support.program = find_program()

--- `text` as one word of the shell.
function support.quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local quote = support.quote

--- Asserts that `text` contains the plain string `expected`; the failure shows both.
function support.has(text, expected)
  assert(text:find(expected, 1, true), ("no %q in:\n%s"):format(expected, text))
end

function support.has_not(text, unwanted)
  assert(not text:find(unwanted, 1, true), ("%q is in:\n%s"):format(unwanted, text))
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

--- A file with that text; its name.
function support.file(text, suffix)
  local path = os.tmpname()
  os.remove(path)
  path = path .. (suffix or ".lua")
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

--- A folder of its own for a test; it and what is in it go with support.remove.
function support.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir " .. quote(path)))
  return path
end

function support.remove(path) os.execute("rm -rf " .. quote(path)) end

--- Runs the shell command line `line` with `input` on stdin. Returns {out, err, status}.
function support.shell(line, input)
  local dir = support.folder()
  local file = assert(io.open(dir .. "/in", "wb"))
  file:write(input or "")
  file:close()
  local _, _, status = os.execute(("{ %s ; } <%s/in >%s/out 2>%s/err"):format(line, dir, dir, dir))
  local result = {out = read(dir .. "/out"), err = read(dir .. "/err"), status = status}
  support.remove(dir)
  return result
end

--- Runs the program with the arguments given as one shell text.
function support.run(arguments, input)
  return support.shell(quote(support.program) .. " " .. arguments, input)
end

--- Runs a prompt without a terminal and without init.lua on `input`; its prompts and the empty line
-- at the end of input are taken out of the output.
function support.session(input, arguments)
  local result = support.run("-i --no-init " .. (arguments or ""), input)
  result.raw = result.out
  result.out = ("\n" .. result.out):gsub("\n%[%d+%]> ", "\n"):gsub("^\n%[%d+%]> ", "\n")
  while result.out:find "\n%[%d+%]> " do result.out = result.out:gsub("\n%[%d+%]> ", "\n") end
  result.out = result.out:sub(2):gsub("\n$", "")
  return result
end

local python -- python3 with what the helper needs, or false

--- Is there a Python for support.terminal?
function support.has_terminal()
  if python == nil then
    python = false
    for _, name in ipairs {"python3", "/usr/bin/python3"} do
      local test = name .. " -c 'import pty, os; os.waitstatus_to_exitcode' 2>/dev/null"
      if os.execute(test) then
        python = name
        break
      end
    end
  end
  return python ~= false
end

--- Runs the program on a pseudo-terminal (pty_session.py). `steps` is a list of "verb text".
-- `environment` is a shell text of assignments. Returns {out, err, status}.
function support.terminal(steps, environment, arguments)
  local line = ("env TERM=xterm %s %s %s %s %s"):format(environment or "", python,
    quote(root .. "tests/spec/support/pty_session.py"), quote(support.program), arguments or "")
  return support.shell(line, table.concat(steps, "\n") .. "\n")
end

return support
