--- lt.display: shows a value in a notebook in the form that fits it, or its text at a terminal.
--
--     lt.display(x, {heat = true})
--     lt.display(picture, {as = "image"})
--     lt.display{["text/html"] = "<b>done</b>", ["text/plain"] = "done"}
--     local view = lt.display(losses, {as = "plot"})
--     view:update(losses, {as = "plot"})
--
-- The notebook is that of lutra.repl.front.

local args = require "lutra.internal.args"
local front = require "lutra.repl.front"

-- Returns the text of a value as the prompt prints it; in another Lua by tostring.
local function value_text(value)
  local ok, format_value = pcall(require, "lutra.repl.format_value")
  return ok and format_value.value(value) or tostring(value)
end

-- ---- bundles of the user

local TYPES = {application = true, audio = true, image = true, model = true, text = true,
  video = true}

-- Returns whether a table has a key that looks like a MIME type; with `only` whether all keys are
-- like those of known types.
local function is_bundle(value, only)
  if not args.is_plain(value) then return false end
  local found = false
  for key in next, value do
    local kind = type(key) == "string" and key:match "^(%a+)/"
    if kind and (TYPES[kind] or not only) then
      found = true
    elseif only then
      return false
    end
  end
  return found
end

local function check_bundle(forms, name)
  for mime, data in next, forms do
    args.check(type(mime) == "string" and mime:find "^%a[%w.+-]*/[%w.+_-]+$",
      "display: expected MIME types such as \"text/html\" as keys of argument '%s', got %s", name,
      args.show(mime))
    args.check(type(data) == "string",
      "display: expected a string for \"%s\" in argument '%s', got %s", mime, name,
      args.show(data))
  end
end

local READABLE = {"text/plain", "text/markdown", "text/latex"}

-- Returns the text of a bundle without a value.
local function text_of(forms)
  for _, mime in ipairs(READABLE) do
    if forms[mime] then return forms[mime] end
  end
  local names = {}
  for mime, data in next, forms do names[#names + 1] = ("<%s, %d bytes>"):format(mime, #data) end
  table.sort(names)
  return table.concat(names, " ")
end

-- ---- forms of a call

local parse = args.signature("display", "'text'|'image'|'plot'|'points'|'hist'|'tree'|'graph'? "
  .. "as = nil, bool heat = false, bool? statistics = nil, int(>=1)? edgeitems = nil")

-- Returns the options of a call, checked.
local function read_options(options, value)
  local as, heat, statistics, edgeitems = parse(options or {})
  local of_tables = heat and "heat" or statistics ~= nil and "statistics"
    or edgeitems and "edgeitems"
  if of_tables then
    args.check(not as, "display: cannot use option '%s' with as = \"%s\"", of_tables, as)
    args.check(require("lutra").is_tensor(value),
      "display: expected a tensor for option '%s', got %s", of_tables, args.show(value))
  end
  return {as = as, heat = heat, statistics = statistics, edgeitems = edgeitems}
end

-- Calls f(...); errors of the prompt's functions, which name no line, are raised at the user's.
local function at_line(f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  local message = results[2]
  args.pass_on_interrupt(message)
  if type(message) ~= "string" or message:find "^[^\n:]+:%d+: " then error(message, 0) end
  return args.fail("%s", "display: " .. message)
end

-- Returns the text of a value, and its forms for a notebook, nil without one.
local function chosen_forms(value, as)
  local ok, ways = pcall(require, "lutra.repl.rich.ways")
  ok = ok and pcall(require, "lutra.repl.host")
  args.check(ok, "display: as = \"%s\" is not available outside the program lutra", as)
  local text, forms = at_line(ways[as], value)
  return text, front.notebook and require("lutra.repl.rich").encode(at_line(forms), text)
end

-- Returns the text of the arguments of a call, and their forms for a notebook, nil without one.
local function read_call(value, options)
  local function encode(forms, text)
    return front.notebook and require("lutra.repl.rich").encode(forms, text)
  end
  if options == nil and is_bundle(value, true) then
    check_bundle(value, "value")
    return text_of(value), encode(value)
  end
  args.check(options == nil or args.is_plain(options),
    "display: expected a table of options, or of strings by MIME type, for argument 'options', "
    .. "got %s", args.show(options))
  if is_bundle(options) then
    check_bundle(options, "options")
    local text = options["text/plain"] or value_text(value)
    return text, encode(options, text)
  end
  local read = read_options(options, value)
  if read.as then return chosen_forms(value, read.as) end
  if not front.notebook then return value_text(value) end
  local bundle = require("lutra.repl.rich").bundle(value, read)
  return bundle["text/plain"], bundle
end

-- ---- handles

-- A display that can be updated. __silent: the prompt does not print it as a result.
local Handle = {__name = "display handle", __silent = true}
Handle.__index = Handle

--- handle:update(value, options): shows another value in place of the one that is shown; at a
-- terminal prints it. The arguments are those of lt.display.
function Handle:update(...)
  local n = select("#", ...)
  args.check(n >= 1, "update: expected a value for argument 'value', got none")
  local text, forms = read_call(...)
  if forms then return front.notebook:update(forms, nil, self.id) end
  io.stdout:write(text, "\n")
end

function Handle:__tostring() return "display handle " .. self.id end

--- lt.display(value, {as, heat = false, statistics, edgeitems}): shows a value in a notebook, a
-- tensor as a table, a module as a tree, a plot as a picture; at a terminal and in scripts prints
-- its text. Returns a handle, whose method update(value, options) shows another value in its place.
--
-- `as` chooses another form: "image" (a tensor), "plot", "points" or "hist" (a tensor or a list of
-- numbers), "graph" (the autograd graph of a tensor), "tree" (a module or a table), "text". For
-- tensors as tables: `heat` colours cells by value; `statistics` = true computes statistics also of
-- large tensors and of those on other devices, false none; `edgeitems` is the number of elements at
-- both ends of a long dimension.
--
-- In place of options, a table of strings by MIME type, {["text/html"] = "<b>x</b>"}, is shown as
-- it is; lt.display{["text/html"] = ...} has no value. Bytes of images are given unencoded. An
-- object has forms of its own when its metatable has a function __mimebundle(value), which returns
-- such a table.
return function(...)
  local n = select("#", ...)
  args.check(n >= 1, "display: expected a value for argument 'value', got none")
  args.check(n <= 2, "display: expected at most 2 arguments, got %d", n)
  local text, forms = read_call(...)
  local handle = setmetatable({id = require "lutra.repl.display_id"()}, Handle)
  io.stdout:flush()
  if forms then
    front.notebook:display(forms, nil, handle.id)
  else
    io.stdout:write(text, "\n")
  end
  return handle
end
