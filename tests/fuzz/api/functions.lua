-- What there is to call: every function that is reachable from the library's tables, found by
-- walking them, with the parameters that the op table and the texts of signatures state. No
-- function is listed here but those that are left out, each with its reason.

local lt = require "lutra"
local core = require "lutra.core"
local signatures = require "lutra.repl.complete.signatures"

local functions = {}

-- Pattern of a name (the last part of its path) or of a path -> why it is not called.
local left_out = {
  {"^lt%.vision%.models%.", "draws up to 10^8 random numbers"},
  {"^breakpoint$", "waits for input from the keyboard"},
  {"^set_num_threads$", "changes the threads of the whole process; differential.lua compares them"},
  {"^seed$", "takes a seed from the system, so that no run could be repeated"},
  {"^coverage$", "calls each op many times: a minute with a collection at each step"},
  {"^timeit$", "calls a function up to 10^9 times"},
  {"_autorange$", "calls a function for up to 10 s"},
  {"^init_process_group$", "starts MPI, which does not free all its memory"},
  {"_communication%.job$", "starts MPI, which does not free all its memory"},
  {"^_library$", "says where the library's files are; errors are attributed by it"},
  {"^_explain$", "replaces a part of the library"},
  {"^_error_path$", "replaces a part of the library"},
  {"^_summarise$", "replaces a part of the library"},
}

-- Pattern of a path -> one call in so many is made.
local rare = {
  {"kernel", 200, "runs a compiler"},
  {"elementwise", 50, "runs a compiler on a device"},
  {"nvtx", 10, "does nothing here"},
  {"^lt%.progress$", 20, "prints"},
  {"^lt%.info$", 20, "prints"},
}

--- Why a function with that path is not called, or nil.
function functions.reason(path)
  local name = path:match "([%w_]+)$" or path
  for _, row in ipairs(left_out) do
    if name:match(row[1]) or path:match(row[1]) then return row[2] end
  end
end

--- One call in how many is made.
function functions.rarity(path)
  for _, row in ipairs(rare) do
    if path:match(row[1]) then return row[2] end
  end
  return 1
end

-- "lt", "add" -> "lt.add"
local function join(path, key)
  return key:match "^[%a_][%w_]*$" and path .. "." .. key or ("%s[%q]"):format(path, key)
end

local keywords = {["repeat"] = true, ["end"] = true, ["and"] = true, ["or"] = true, ["not"] = true}

local function sorted_keys(t)
  local keys = {}
  for key in next, t do
    if type(key) == "string" and not keywords[key] then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

local function is_class(value)
  local meta = type(value) == "table" and debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__call") ~= nil
end

local function add(list, path, f)
  local name = path:match "([%w_]+)$" or path
  local ok, signature = pcall(signatures.of, f, name)
  list[#list + 1] = {path = path, f = f, rarity = functions.rarity(path),
    private = path:match "^core" ~= nil or path:match "%._%a" ~= nil or path:match "^O%." ~= nil,
    params = ok and signature and signature.params or nil,
    method = path:match "^X%." ~= nil}
end

-- Adds the functions and classes below `value`. Metatables are walked as getmetatable gives them.
local function walk(list, seen, path, value)
  if seen[value] or functions.reason(path) then return end
  if type(value) == "function" then
    seen[value] = true
    return add(list, path, value)
  end
  if type(value) ~= "table" or value == _G or value == package.loaded then return end
  seen[value] = true
  if is_class(value) then add(list, path, value) end
  for _, key in ipairs(sorted_keys(value)) do
    walk(list, seen, join(path, key), rawget(value, key))
  end
  local meta = getmetatable(value)
  if type(meta) == "table" then walk(list, seen, "getmetatable(" .. path .. ")", meta) end
end

--- All of them, each {path (an expression), f, params or nil, method (its first parameter is self),
-- private (no public name), rarity}, in the same order in every run.
function functions.list()
  require("lutra.internal.strict_table").load_all(lt)
  local list, seen = {}, {}
  walk(list, seen, "X", core._methods)
  walk(list, seen, "lt", lt)
  walk(list, seen, "O", core._ops)
  walk(list, seen, "M", debug.getmetatable(core.ones(1)))
  walk(list, seen, "core", core)
  return list
end

local known = setmetatable({}, {__mode = "k"}) -- metatable -> names of the methods below it

local function inherited(meta)
  local names, seen, at = {}, {}, rawget(meta, "__index")
  while type(at) == "table" and not seen[at] do
    seen[at] = true
    for _, key in ipairs(sorted_keys(at)) do
      if type(rawget(at, key)) == "function" and not functions.reason(key) then
        names[#names + 1] = key
      end
    end
    meta = debug.getmetatable(at)
    at = type(meta) == "table" and rawget(meta, "__index") or nil
  end
  return names
end

--- The methods that a value has from its metatable, by name, in order: strings.
function functions.methods(value)
  local meta = debug.getmetatable(value)
  if type(meta) ~= "table" then return {} end
  known[meta] = known[meta] or inherited(meta)
  return known[meta]
end

return functions
