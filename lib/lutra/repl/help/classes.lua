--- Help pages of classes (made by extend), their instances, and the tables that are libraries.

local core = require "lutra.core"
local functions = require "lutra.repl.help.functions"
local source = require "lutra.repl.help.source"
local static_values = require "lutra.repl.complete.static_values"
local wrap = require "lutra.repl.help.wrap"

local classes = {}

--- Returns whether a value is a class: made by extend, or with a method extend.
function classes.is_class(value)
  if type(value) ~= "table" then return false end
  return static_values.is_class(value)
    or type(rawget(value, "__name")) == "string" and type(rawget(value, "extend")) == "function"
end

--- Returns the class of an object of the library, or nil.
function classes.of(value)
  local state = static_values.module_state(value)
  if state then return state.class end
  local meta = debug.getmetatable(value)
  return type(value) == "table" and classes.is_class(meta) and meta or nil
end

--- Returns a class's name, as given to extend.
function classes.name(class) return rawget(class, "__name") or "?" end

-- Returns the parent of a class, or nil.
local function parent(class)
  local meta = debug.getmetatable(class)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

-- Returns the functions defined for the class itself: a list of {name, f, line}, sorted by line.
local function own_functions(class)
  local list, above = {}, parent(class)
  for name, value in next, class do
    local _, line = nil, nil
    if type(name) == "string" and type(value) == "function" then
      _, line = source.location(value)
    end
    if line and not (above and rawequal(rawget(above, name), value)) then
      list[#list + 1] = {name, value, line}
    end
  end
  table.sort(list, function(a, b)
    if a[3] ~= b[3] then return a[3] < b[3] end
    return a[1] < b[1] -- functions of different files, in the same order each time
  end)
  return list
end

-- Returns the chunk of a class: that of its field __chunk, which classes have whose functions are
-- made in another file, that of its functions, or the file of the module that it is.
local function chunk_of(class)
  local chunk = rawget(class, "__chunk")
  if chunk then return chunk end
  local first
  for _, entry in ipairs(own_functions(class)) do
    -- extend and metamethods may be functions of the file that defines extend
    local shared = first and (first[1]:match "^__" or first[1] == "extend")
    if not first or shared and not entry[1]:match "^__" then first = entry end
  end
  if first then return (source.location(first[2])) end
  for name, value in next, package.loaded do
    local path = rawequal(value, class) and package.searchpath(name, package.path)
    if path then return "@" .. path end
  end
end

-- Returns the chunk that defines a class, the line with its name, and the chunk's lines; the line
-- is nil when it is not found, all are nil without a chunk.
local function definition(class)
  local chunk = chunk_of(class)
  local lines = chunk and source.lines(chunk)
  if not lines then return nil end
  local quoted = '"' .. classes.name(class) .. '"'
  for i, line in ipairs(lines) do
    local at = line:find(quoted, 1, true)
    local before = at and line:sub(1, at - 1)
    if before and (before:match "extend%s*%(?%s*$" or before:match "%f[%w_]define[%w_]*%s*%(?$"
        or before:match "=%s*{%s*__name%s*=%s*$") then
      return chunk, i, lines
    end
  end
  return chunk, nil, lines
end

-- Returns a field of a class or of its parents.
local function inherited(class, name)
  while class do
    local value = rawget(class, name)
    if value ~= nil then return value end
    class = parent(class)
  end
end

local function option_parameters(options)
  local list = {{name = "params"}}
  for _, option in ipairs(options) do
    list[#list + 1] = {name = option.name, optional = true, default = option.default}
  end
  return source.parameters_text(list)
end

--- Returns the arguments of a class's constructor as text.
function classes.signature(class)
  local options = inherited(class, "options")
  if type(options) == "table" then return option_parameters(options) end
  local init = inherited(class, "init")
  if type(init) ~= "function" then return "..." end
  if parent(class) and not rawget(class, "init") and not parent(parent(class)) then return "" end
  return source.signature(init)
end

-- Returns the first paragraph of the comment that opens a file; the others are for maintainers.
local function opening(chunk)
  local lines = {}
  for _, line in ipairs(chunk:match "^@" and source.header(chunk) or {}) do
    if line == "" then break end
    lines[#lines + 1] = line
  end
  return #lines > 0 and lines or nil
end

-- Returns whether the class is the value of a module.
local function is_module(class)
  for _, value in next, package.loaded do
    if rawequal(value, class) then return true end
  end
  return false
end

--- Returns the documentation of a class: the opening of its file when the class is a module, and
-- the comments above its definition and its init, as lists of lines; nil without any.
function classes.doc(class)
  local chunk, line, lines = definition(class)
  local found = {}
  local function add(comment) found[#found + 1] = comment end
  if chunk and is_module(class) then add(opening(chunk)) end
  if line then add(source.comment_above(lines, line)) end
  local init = rawget(class, "init")
  if type(init) == "function" and not rawget(class, "extend") then add(source.doc(init)) end
  return #found > 0 and found or nil
end

--- Returns a one-line description of a class, or nil.
function classes.summary(class)
  local doc = classes.doc(class)
  return doc and source.summary(doc[1])
end

-- Returns rows of {name(...), summary} of methods; those without a comment have only a name.
local function method_rows(class)
  local rows = {}
  for _, entry in ipairs(own_functions(class)) do
    if entry[1]:match "^[^_]" and entry[1] ~= "init" then
      rows[#rows + 1] = {source.call(entry[1], source.signature(entry[2])),
        functions.summary(entry[2]) or ""}
    end
  end
  return rows
end

--- Returns the page of a class that the user calls `name`.
function classes.page(name, class, width, paint)
  local out = {paint("heading", wrap.code(source.call(name, classes.signature(class)), width, 4))}
  local above = parent(class)
  local chunk, line = definition(class)
  local text = "class"
  if above then text = text .. ", based on " .. classes.name(above) end
  if chunk then text = text .. ", in " .. source.location_text(chunk, line) end
  out[#out + 1] = paint("faint", wrap.text(text, width))
  for _, lines in ipairs(classes.doc(class) or {}) do
    out[#out + 1] = ""
    out[#out + 1] = wrap.comment(lines, width)
  end
  local rows = method_rows(class)
  if #rows > 0 then
    out[#out + 1] = ""
    out[#out + 1] = paint("heading", "Methods")
    out[#out + 1] = wrap.rows(rows, width, 2)
  end
  return table.concat(out, "\n")
end

--- Returns the source of a class, from its definition to the end of its last function; or nil and
-- the reason.
function classes.source(class, paint)
  local list = own_functions(class)
  local chunk, line, lines = definition(class)
  if not chunk then
    return nil, "cannot show the source of " .. classes.name(class) .. ": the file is missing"
  end
  local last = line or 1
  for _, entry in ipairs(list) do
    local place, _, stop = source.location(entry[2])
    if place == chunk then last = math.max(last, stop) end
  end
  if #list == 0 then last = #lines end
  line = line or list[1] and list[1][3] or 1
  return functions.listing(source.location_text(chunk, line),
    table.move(lines, line, last, 1, {}), paint)
end

-- Returns the registered values of a module: rows of {name, text}.
local function entry_rows(state)
  local rows = {}
  for _, name in ipairs(state.entries) do
    local value, kind = rawget(state.fields, name), state.kinds[name]
    local class = kind == "module" and classes.of(value)
    local text = class and classes.name(class) or kind
    if core._is_freed(value) then
      text = kind .. " that was freed"
    elseif static_values.is_tensor(value) then
      text = ("%s %s, %s on %s"):format(kind, tostring(value.shape), value.dtype, value.device)
    end
    rows[#rows + 1] = {name, text}
  end
  return rows
end

--- Returns the page of an object: its contents, then its class. `class_name` is the user's name for
-- the class.
function classes.object_page(name, value, class_name, width, paint)
  local class = classes.of(value)
  local out = {paint("heading", name) .. ": an instance of " .. class_name}
  local state = static_values.module_state(value)
  if state and #state.entries > 0 then
    out[#out + 1] = ""
    out[#out + 1] = wrap.rows(entry_rows(state), width, 2)
  end
  out[#out + 1] = ""
  out[#out + 1] = classes.page(class_name, class, width, paint)
  return table.concat(out, "\n")
end

return classes
