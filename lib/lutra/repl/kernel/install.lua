--- `lutra --kernel install`, `uninstall` and `list`: the kernel in the folders that Jupyter
-- searches.
--
-- Invariant: a folder is changed or removed only if it has no kernel.json or one that runs
-- `lutra --kernel`; another program's kernel of the same name is an error.

local host = require "lutra.repl.host"
local native = require "lutra.files"
local files = require "lutra.repl.files"
local folders = require "lutra.repl.kernel.folders"
local json = require "lutra.internal.json"

local install = {}

-- Whether front ends show their debugger for this kernel.
install.debugger = true

local usage = [[
usage: lutra --kernel install [--user | --prefix DIR] [--name NAME] [--emulate DEVICES]
       lutra --kernel uninstall [--user | --prefix DIR] [--name NAME]...
       lutra --kernel list [--prefix DIR]

  --user            the folder of the user, the default
  --prefix DIR      the folder share/jupyter/kernels in DIR, such as a virtual environment
  --name NAME       the name of the kernel (default lutra)
  --emulate DEVICES devices that the kernel emulates, such as cuda:2 (default name lutra-cuda)
]]

-- The files of a kernel, besides kernel.json.
local pictures = {"logo-svg.svg", "logo-32x32.png", "logo-64x64.png"}

-- Raises an error of wrong arguments, which prints the usage.
local function wrong(message, ...) error({usage = message:format(...)}, 0) end

local function fail(message, ...) error({message = message:format(...)}, 0) end

-- ---- arguments

local with_value = {["--prefix"] = "prefix", ["--name"] = "name", ["--emulate"] = "emulate"}

-- Returns whether Jupyter accepts the name of a kernel, which is also the name of a folder.
local function is_name(name)
  return name:find "^[%w._%-]+$" ~= nil and not name:find "^%.%.?$"
end

-- Parses the words after the action: {names, prefix, emulate}. `known` lists the options it has.
local function parse(words, known)
  local options, i = {names = {}}, 2
  while i <= #words do
    local word, value = words[i], nil
    if word:find "^%-%-%a+=" then word, value = word:match "^(%-%-%a+)=(.*)$" end
    local field = with_value[word]
    if not known:find(word .. " ", 1, true) then wrong("unknown argument %s", words[i]) end
    if field and not value then i, value = i + 1, words[i + 1] end
    if field and (not value or value == "") then wrong("expected a value after %s", word) end
    if field == "name" then
      if not is_name(value) then
        wrong("expected a name of letters, digits, '.', '_' and '-', got \"%s\"", value)
      end
      table.insert(options.names, value)
    elseif field then
      options[field] = value
    elseif value then
      wrong("unknown argument %s", words[i])
    else
      options.user = true
    end
    i = i + 1
  end
  if options.user and options.prefix then wrong "expected --user or --prefix, got both" end
  return options
end

-- Returns the folder that contains the kernels' folders.
local function base_of(options)
  if options.prefix then return folders.prefix(options.prefix) end
  local folder, why = folders.user()
  if not folder then
    fail("cannot find the user's folder: %s\nhint: lutra --kernel install --prefix DIR", why)
  end
  return folder
end

-- ---- kernel.json

-- Returns the decoded kernel.json of a folder, nil without a valid one.
local function read_spec(folder)
  local text = files.read(folder .. "/kernel.json")
  local spec = text and json.decode(text)
  return type(spec) == "table" and type(spec.argv) == "table" and spec or nil
end

-- Returns the program of a spec that runs Lutra's kernel; nil for another.
local function program_of(spec)
  local argv = spec and spec.argv
  if not argv or type(argv[1]) ~= "string" then return nil end
  return argv[2] == "--kernel" and argv[3] and argv[1] or nil
end

-- Checks that a folder is absent or holds a kernel of Lutra.
local function check_own(folder)
  if files.exists(folder .. "/kernel.json") and not program_of(read_spec(folder)) then
    fail("cannot replace %s: its kernel.json is not Lutra's", folder)
  end
end

-- Returns the path of this program.
local function running_program()
  local words, first = rawget(_G, "arg") or {}, 0
  while words[first - 1] do first = first - 1 end
  return host.program(words[first]) or fail "cannot find the path of this program"
end

local function quoted(list)
  local parts = {}
  for i, word in ipairs(list) do parts[i] = json.quote(json.valid_utf8(word)) end
  return table.concat(parts, ", ")
end

-- Returns the text of kernel.json.
local function spec_text(program, emulate)
  if not utf8.len(program) then
    fail("cannot write the path %q to kernel.json: it is not UTF-8", program)
  end
  local title = emulate and ("Lua 5.4 (Lutra, emulated %s)"):format(emulate) or "Lua 5.4 (Lutra)"
  local env = emulate and ('{"LUTRA_EMULATE": %s}'):format(quoted{emulate}) or "{}"
  return ([[
{
  "argv": [%s],
  "display_name": %s,
  "language": "lua",
  "interrupt_mode": "message",
  "metadata": {"debugger": %s},
  "env": %s
}
]]):format(quoted{program, "--kernel", "{connection_file}"}, quoted{title},
    tostring(install.debugger), env)
end

-- ---- actions

local function write(path, text)
  local ok, why = files.write(path, text)
  if not ok then fail("cannot write %s", why) end
end

-- Writes the kernel's files.
local function add(words)
  local options = parse(words, "--user --prefix --name --emulate ")
  if #options.names > 1 then wrong "expected one --name" end
  local name = options.names[1] or options.emulate and "lutra-" .. options.emulate:match "^%w*"
    or "lutra"
  local folder = base_of(options) .. "/" .. name
  check_own(folder)
  local text = spec_text(running_program(), options.emulate)
  local made, why = native.make(folder)
  if not made then
    fail("cannot create the folder %s\nhint: --prefix DIR names another one", why)
  end
  local logo = require "lutra.repl.kernel.logo"
  write(folder .. "/logo-svg.svg", logo.svg())
  for _, size in ipairs {32, 64} do
    write(("%s/logo-%dx%d.png"):format(folder, size, size), logo.png(size))
  end
  write(folder .. "/kernel.json", text) -- last: a folder without it is no kernel
  io.stdout:write(("installed the kernel %s in %s\nRun `jupyter lab` and choose \"%s\".\n"):format(
    name, folder, json.decode(text).display_name))
end

-- Removes one kernel.
local function remove(folder, name)
  if not files.exists(folder .. "/kernel.json") then
    fail("cannot find a kernel %s in %s\nhint: lutra --kernel list", name, folder)
  end
  check_own(folder)
  for _, file in ipairs {"kernel.json", table.unpack(pictures)} do
    local path = folder .. "/" .. file
    local ok, why = os.remove(path)
    if not ok and files.exists(path) then fail("cannot remove %s", why) end
  end
  local ok, why = os.remove(folder)
  if not ok then fail("removed the kernel, but not its folder: %s", why) end
  io.stdout:write(("removed the kernel %s from %s\n"):format(name, folder))
end

local function uninstall(words)
  local options = parse(words, "--user --prefix --name ")
  local base = base_of(options)
  if #options.names == 0 then options.names = {"lutra"} end
  for _, name in ipairs(options.names) do remove(base .. "/" .. name, name) end
end

-- Prints the kernels of a folder that run Lutra; returns how many.
local function list_folder(base)
  local names, found = files.list(base) or {}, 0
  table.sort(names)
  for _, entry in ipairs(names) do
    local name = entry:match "^(.*)/$"
    local folder = name and base .. "/" .. name
    local program = folder and program_of(read_spec(folder))
    if program then
      found = found + 1
      local missing = not files.is_file(program)
        and "  (this program does not exist; install the kernel again)" or ""
      io.stdout:write(("%s\n  folder   %s\n  program  %s%s\n"):format(name, folder, program,
        missing))
    end
  end
  return found
end

local function list(words)
  local options = parse(words, "--prefix ")
  local found = 0
  if options.prefix then found = list_folder(folders.prefix(options.prefix)) end
  for _, base in ipairs(options.prefix and {} or folders.all()) do
    found = found + list_folder(base)
  end
  if found == 0 then
    io.stdout:write "no kernel of Lutra is installed; install it: lutra --kernel install\n"
  end
end

local actions = {install = add, uninstall = uninstall, list = list}

--- Runs the words after --kernel: `install`, `uninstall` or `list` and its options. Returns the
-- exit status: 0, 1 after an error, 2 for wrong arguments.
function install.run(words)
  local ok, problem = pcall(function()
    local action = actions[words[1]]
    if not action then
      wrong("expected install, uninstall or list, got %s", words[1] or "nothing")
    end
    action(words)
  end)
  if ok then return 0 end
  if type(problem) ~= "table" then error(problem, 0) end
  io.stdout:flush()
  io.stderr:write("lutra: kernel: ", problem.usage or problem.message, "\n", problem.usage and usage
    or "")
  return problem.usage and 2 or 1
end

return install
