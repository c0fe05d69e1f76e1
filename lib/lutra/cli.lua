--- cli: a parser of command-line options for scripts.
--
--     local options = cli.parse(arg, {
--       {"data", nil, "folder with the files", required = true},
--       {"epochs", 10, "passes over the data", least = 1},
--       {"model", "mlp", "kind of the model", choices = {"mlp", "lstm"}},
--     })
--
-- reads `--epochs 3` and `--epochs=3`. An option has the type of its default: integer, number,
-- string, or a flag when the default is false. A number is at least `least`, a string one of
-- `choices`. An error prints one line on stderr and exits with status 1; `--help` prints the
-- options and exits with status 0.

local cli = {}

local function script_name()
  local arguments = rawget(_G, "arg") -- the program's: Lutra's modules have their own globals
  return (arguments and arguments[0] or "script"):match("([^/]*)$")
end

--- Prints `script: message` on stderr, without the source position that a Lua error begins with,
-- and exits with status 1.
function cli.fail(message)
  local text = tostring(message):gsub("^[^\n:]*:%d+: ", "")
  io.stderr:write(("%s: %s\n"):format(script_name(), text))
  os.exit(1, true)
end

--- Calls fn(...) and returns its results; an error prints one line and exits with status 1. For
-- arguments that name files or devices.
function cli.try(fn, ...)
  local results = table.pack(pcall(fn, ...))
  if not results[1] then cli.fail(results[2]) end
  return table.unpack(results, 2, results.n)
end

--- Returns the full name of a device that computes; any other name exits with status 1.
function cli.device(name)
  local device = cli.try(require("lutra").device, name)
  if device == "meta" then
    cli.fail '--device: expected "cpu", "cuda" or "mps", got "meta", which computes nothing'
  end
  return device
end

--- Returns the content of the file that an option names; a file that cannot be read exits with
-- status 1.
function cli.read_file(option, path)
  local file, why = io.open(path, "rb")
  if not file then cli.fail(("--%s: cannot open %s"):format(option, why)) end
  local text, reason = file:read "a"
  file:close()
  if not text then cli.fail(("--%s: cannot read %s: %s"):format(option, path, reason)) end
  return text
end

local function help(rows)
  print(("usage: lutra %s [options]"):format(script_name()))
  for _, row in ipairs(rows) do
    local name, default, text = row[1], row[2], row[3]
    local shown = ""
    if default and default ~= "" then shown = (" (%s)"):format(tostring(default)) end
    if row.required then shown = " (required)" end
    print(("  --%-14s %s%s"):format(name, text, shown))
  end
  os.exit(0, true)
end

-- Returns words as a list for a sentence: '"a", "b" or "c"'.
local function listed(words)
  local quoted = {}
  for i, word in ipairs(words) do quoted[i] = ('"%s"'):format(word) end
  local last = table.remove(quoted)
  return #quoted > 0 and table.concat(quoted, ", ") .. " or " .. last or last
end

-- Checks the value of an option that was given.
local function check(row, value)
  if row.least and value < row.least then
    cli.fail(("--%s: expected at least %s, got %s"):format(row[1], row.least, value))
  end
  for _, choice in ipairs(row.choices or {}) do
    if value == choice then return end
  end
  if row.choices then
    cli.fail(('--%s: expected %s, got "%s"'):format(row[1], listed(row.choices), value))
  end
end

local function convert(name, default, text)
  if type(default) ~= "number" then return text end
  local value = tonumber(text)
  if value == nil then
    cli.fail(("expected a number for option --%s, got %q"):format(name, text))
  end
  if math.type(default) == "integer" then
    value = math.tointeger(value)
    if value == nil then
      cli.fail(("expected an integer for option --%s, got %q"):format(name, text))
    end
  end
  return value
end

local function find(rows, name)
  for _, row in ipairs(rows) do
    if row[1] == name then return row end
  end
  cli.fail(("unknown option --%s (--help lists the options)"):format(name))
end

--- Returns the options in `words` as a table by name; `rows` is a list of {name, default, help
-- text, required = false, least = nil, choices = nil}. An unknown option, an invalid value and a
-- missing required option exit the program with status 1.
function cli.parse(words, rows)
  local options, i = {}, 1
  for _, row in ipairs(rows) do options[row[1]] = row[2] end
  while words[i] do
    local name, value = words[i]:match("^%-%-([%w-]+)=?(.*)$")
    if name == nil then
      cli.fail(("unexpected argument %q (--help lists the options)"):format(words[i]))
    end
    if name == "help" then help(rows) end
    local row = find(rows, name)
    if row[2] == false then
      options[name] = true
    else
      if not words[i]:find("=", 1, true) then
        i = i + 1
        value = words[i]
      end
      if value == nil then cli.fail(("expected a value for option --%s"):format(name)) end
      options[name] = convert(name, row[2], value)
      check(row, options[name])
    end
    i = i + 1
  end
  for _, row in ipairs(rows) do
    if row.required and options[row[1]] == nil then
      cli.fail(("--%s: expected the %s (--help lists the options)"):format(row[1], row[3]))
    end
  end
  return options
end

return cli
