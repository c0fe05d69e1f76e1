--- `lutra --export FILE [TO]`: a notebook as a Lua script, a script as a notebook, or a copy of a
-- notebook with parameters.

local files = require "lutra.repl.files"
local notebook_file = require "lutra.repl.notebook_file"
local notebook_parameters = require "lutra.repl.notebook_parameters"
local notebook_script = require "lutra.repl.notebook_script"
local texts = require "lutra.internal.text"

local export = {}

local usage = [[
usage: lutra --export FILE [TO] [--force] [--parameter NAME=VALUE]...

  FILE.ipynb becomes the script FILE.lua, FILE.lua the notebook FILE.ipynb; TO names another file
  --force                 overwrite the file
  --parameter NAME=VALUE  set a parameter of the notebook, in a cell after the one with the tag
                          "parameters"
]]

-- Raises an error of wrong arguments, which prints the usage.
local function wrong(message, ...) error({usage = message:format(...)}, 0) end

local function fail(message, ...) error({message = message:format(...)}, 0) end

-- Parses the words: {from, to, force, assignments}.
local function parse(words)
  local options, paths, i = {assignments = {}}, {}, 1
  while i <= #words do
    local word = words[i]
    local value = word:match "^%-%-parameter=(.*)$"
    if word == "--parameter" or word == "-p" then
      i = i + 1
      value = words[i] or wrong("expected NAME=VALUE after %s", word)
    end
    if value then
      local assignment, expected = notebook_parameters.assignment(value)
      if not assignment then wrong("expected %s, got \"%s\"", expected, value) end
      table.insert(options.assignments, assignment)
    elseif word == "--force" then
      options.force = true
    elseif word:find "^%-" then
      wrong("unknown argument %s", word)
    else
      paths[#paths + 1] = word
    end
    i = i + 1
  end
  if #paths < 1 or #paths > 2 then wrong("expected a file and its result, got %d files", #paths) end
  options.from, options.to = paths[1], paths[2]
  return options
end

-- Returns "ipynb" or "lua", by the end of a file's name.
local function kind_of(path)
  local kind = path:lower():match "%.(%w+)$"
  if kind ~= "ipynb" and kind ~= "lua" then
    wrong("expected a file .ipynb or .lua, got \"%s\"", path)
  end
  return kind
end

-- Reads a notebook or a script as a notebook.
local function read(path, kind)
  local text, unreadable = files.read(path)
  if not text then fail("cannot read %s", unreadable) end
  local notebook, why
  if kind == "ipynb" then
    notebook, why = notebook_file.decode(text)
  else
    notebook, why = notebook_script.to_notebook(text)
  end
  return notebook or fail("cannot read %s: %s", path, why)
end

-- Returns the text of a notebook as a file of that kind.
local function text_of(notebook, kind)
  if kind == "ipynb" then return notebook_file.encode(notebook) end
  local text, why = notebook_script.from_notebook(notebook)
  return text or fail("cannot make one script of the cells: %s", why)
end

local function convert(words)
  local options = parse(words)
  local from = kind_of(options.from)
  local to_path = options.to or options.from:gsub("%.%w+$", from == "lua" and ".ipynb" or ".lua")
  local to = kind_of(to_path)
  if from == "lua" and to == "lua" then wrong "expected a notebook as one of the files" end
  local notebook = read(options.from, from)
  local has_cell = #options.assignments == 0
    or notebook_parameters.inject(notebook, options.assignments)
  if not has_cell then
    io.stderr:write("lutra: export: warning: no cell has the tag \"parameters\": the values are ",
      "set in the first cell\n")
  end
  local text = text_of(notebook, to)
  if not options.force and files.exists(to_path) then
    fail("cannot overwrite %s: it exists\nhint: --force", to_path)
  end
  local ok, why = files.write(to_path, text)
  if not ok then fail("cannot write %s", why) end
  io.stdout:write(("wrote %s to %s\n"):format(texts.plural(#notebook.cells, "cell"), to_path))
end

--- Runs the words options.files. Returns the exit status: 0, 1 after an error, 2 for wrong
-- arguments.
function export.run(options)
  local ok, problem = pcall(convert, options.files)
  if ok then return 0 end
  if type(problem) ~= "table" then error(problem, 0) end
  io.stderr:write("lutra: export: ", problem.usage or problem.message, "\n",
    problem.usage and usage or "")
  return problem.usage and 2 or 1
end

return export
