--- cli: a parser of command-line options for scripts.
--
--     local options = cli.parse(arg, {
--       {"data", nil, "folder with the files"},
--       {"epochs", 10, "passes over the data"},
--     })
--
-- reads `--epochs 3` and `--epochs=3`. An option has the type of its default: integer, number,
-- string, or a flag when the default is false. An error prints one line on stderr and exits with
-- status 1; `--help` prints the options and exits with status 0.

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

local function help(rows)
  print(("usage: lutra %s [options]"):format(script_name()))
  for _, row in ipairs(rows) do
    local name, default, text = row[1], row[2], row[3]
    local shown = ""
    if default ~= nil and default ~= false then shown = (" (%s)"):format(tostring(default)) end
    print(("  --%-14s %s%s"):format(name, text, shown))
  end
  os.exit(0, true)
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
-- text}. An unknown option or an invalid value exits the program with status 1.
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
    end
    i = i + 1
  end
  return options
end

return cli
