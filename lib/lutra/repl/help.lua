--- Help pages for everything that can be named at the prompt.
--
--     help.text("lt.matmul", session)      ?lt.matmul, and what a notebook shows
--     help.source("net.forward", session)  net.forward??
--
-- Both return text and have no side effects: they print nothing and run no user code. A subject is
-- looked up as a variable, as Lua would find it; then among names that usually have a prefix:
-- `matmul` is lt.matmul, `format` string.format, `time` :time.

local builtin = require "lutra.repl.help.builtin"
local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local command_pages = require "lutra.repl.help.commands"
local commands = require "lutra.repl.commands"
local functions = require "lutra.repl.help.functions"
local lua = require "lutra.repl.help.lua"
local nearest = require "lutra.internal.nearest"
local style = require "lutra.repl.style"
local subject = require "lutra.repl.help.subject"
local static_values = require "lutra.repl.complete.static_values"
local values = require "lutra.repl.help.values"
local wrap = require "lutra.repl.help.wrap"

local help = {}

local function plain(_, text) return text end

-- ---- pages of names that are not values

local function keyword_page(row, width, paint)
  return paint("heading", row[1]) .. "\n\n" .. wrap.text(row[2], width)
end

local function field_page(name, text, width, paint)
  return paint("heading", "x." .. name) .. "\n\nA field of tensors.\n" .. wrap.text(text, width)
end

-- ---- pages of values

-- Returns the user's name for a class: nn.Linear, or the name given to extend.
local function class_name(class)
  for name, t in catalogue.libraries() do
    for key, value in next, t do
      if rawequal(value, class) then return name .. "." .. key end
    end
  end
  return classes.name(class)
end

local function value_page(name, value, width, paint)
  if type(value) == "function" then return functions.page(name, value, width, paint) end
  if classes.is_class(value) then return classes.page(name, value, width, paint) end
  local class = classes.of(value)
  if class then return classes.object_page(name, value, class_name(class), width, paint) end
  local library = lua.libraries[name]
  local page = values.page(name, value, width, paint)
  return library and wrap.text(library, width) .. "\n\n" .. page or page
end

-- Returns the tables in which a name without a prefix is looked up: {prefix, table}, in order.
local function prefix_tables()
  local list = {}
  for name, t in catalogue.libraries() do list[#list + 1] = {name .. ".", t} end
  list[#list + 1] = {"x:", require("lutra.core")._methods}
  list[#list + 1] = {"nn.Module:", require "lutra.nn.module"}
  for name in pairs(lua.libraries) do list[#list + 1] = {name .. ".", package.loaded[name]} end
  return list
end

-- Returns the full name and the value of a name without a prefix that is no variable, or nil.
local function find_prefixed(name)
  for _, place in ipairs(prefix_tables()) do
    local field = static_values.field({value = place[2]}, name)
    if field and field.value ~= nil and name:match "^[^_]" then
      return place[1] .. name, field.value
    end
  end
end

-- Returns the names near an unknown one: of the table in which it was looked up, else of all.
local function near_names(found)
  local names, prefix = {}, ""
  local word = found.field or found.text:match "^[%a_][%w_]*$"
  if not word then return nil end
  if found.owner then
    static_values.members(found.owner, function(name)
      if type(name) == "string" then names[#names + 1] = name end
    end)
    prefix = found.text:sub(1, -#word - 1)
  elseif found.field then
    return nil
  else
    for name in pairs(lua.keywords) do names[#names + 1] = name end
    for _, row in ipairs(commands.rows) do names[#names + 1] = row.name end
    for _, place in ipairs(prefix_tables()) do
      for _, name in ipairs(nearest.names(place[2])) do names[#names + 1] = name end
    end
    for name in next, _G do names[#names + 1] = tostring(name) end
  end
  local name = nearest.find(word, names)
  return name and prefix .. name
end

local function unknown(found)
  local name = near_names(found)
  if name then return ("cannot find %s\nhint: did you mean '%s'?"):format(found.text, name) end
  local word = found.text:match "^[%w_%.:]*%f[%w_]([%w_]+)$"
  local advice = word and ":apropos " .. word .. " searches for the word" or "?lt.matmul"
  return ("cannot find %s\nhint: %s"):format(found.text, advice)
end

-- Calls with_value(name, value) for a subject's value; returns nil without one.
local function find_value(found, with_value)
  if found.thing and found.thing.value ~= nil then
    return with_value(found.text, found.thing.value)
  end
  if found.field then return nil end
  local name, value = find_prefixed(found.text)
  if name then return with_value(name, value) end
end

--- Returns the help page of `name`, as it was typed. options: width (columns), paint (a function of
-- a kind of style.lua and a string), before (code in front of the name, which declares variables).
-- Returns nil and the reason when there is no such name.
function help.text(name, session, options)
  local width = options and options.width or style.width()
  local paint = options and options.paint or plain
  local found = subject.read(name, session, options and options.before)
  if found.command then return command_pages.page(found.command, width, paint) end
  local keyword = lua.keywords[found.text]
  if keyword then return keyword_page(keyword, width, paint) end
  local owner = found.owner
  if owner and (owner.like == "tensor" or static_values.is_tensor(owner.value))
      and builtin.fields[found.field] then
    return field_page(found.field, builtin.fields[found.field], width, paint)
  end
  local full = found.text:match "^lt%.(%a+)$"
  if full and builtin.values[full] then
    return paint("heading", found.text) .. "\n\n" .. wrap.text(builtin.values[full], width)
  end
  local row = lua.names[found.text]
  if row and row[1] == "" then
    return paint("heading", found.text) .. "\n\n" .. wrap.text(row[2], width)
  end
  if found.thing and found.thing.like then
    return wrap.text(("%s is a %s: its value is not known before the code runs."):format(found.text,
      found.thing.like), width)
  end
  local page = find_value(found, function(called, value)
    return value_page(called, value, width, paint)
  end)
  if page then return page end
  local command = commands.find(found.text)
  if command then return command_pages.page(command, width, paint) end
  if builtin.fields[found.text] then
    return field_page(found.text, builtin.fields[found.text], width, paint)
  end
  return nil, unknown(found)
end

local function value_source(name, value, paint)
  if type(value) == "function" then return functions.source(name, value, paint) end
  local class = classes.is_class(value) and value or classes.of(value)
  if class then return classes.source(class, paint) end
  return nil, ("cannot show the source of %s: it is a %s"):format(name,
    values.describe(value))
end

--- Returns the source of `name`; the arguments are those of help.text. Returns nil and the reason
-- when there is none.
function help.source(name, session, options)
  local paint = options and options.paint or plain
  local found = subject.read(name, session, options and options.before)
  if found.command then
    return functions.source(":" .. found.command.name, commands.load(found.command), paint)
  end
  local text, why = find_value(found, function(called, value)
    return value_source(called, value, paint)
  end)
  if text or why then return text, why end
  if found.thing and found.thing.like then
    return nil, ("cannot show the source of %s: it is a %s"):format(found.text, found.thing.like)
  end
  return nil, unknown(found)
end

--- Returns lines about every name that contains `word`, or whose description does; nil and the
-- reason when there is none.
function help.apropos(word, session, options)
  local width = options and options.width or style.width()
  local rows = catalogue.search(word, session, values.describe)
  if #rows == 0 then return nil, ("cannot find the word \"%s\""):format(word) end
  return wrap.rows(rows, width, 0)
end

return help
