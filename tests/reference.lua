-- The documentation is complete and says what is there: every public name has an entry in the
-- reference and an example, the annotations for editors declare every name and are well formed, the
-- manual page has every option, and every path in the documents exists.
-- `build/lutra [--emulate cuda:2] tests/reference.lua`, from the repository's root.

local lt = require "lutra"
local checks = dofile "tests/checks.lua"
local documents = dofile "tests/documents.lua"
local classes = require "lutra.repl.help.classes"
local core = require "lutra.core"
local examples = dofile "tools/docs/examples.lua"
local public = require "lutra.repl.help.public"
local reference = dofile "tools/docs/reference.lua"
local stubs = require "lutra.repl.stubs"
local check = checks.check

local function output(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

-- ---- every name has an entry and an example ----------------------------------------------------

local pages = {}
for _, page in ipairs(reference.pages()) do pages[page.file .. ".md"] = page.text end

local function has_entry(name)
  local address = reference.address(name)
  local file, anchor = (address or ""):match "^([^#]+)#?(.*)$"
  local text = file and pages[file]
  return text and (anchor == "" or text:find("{ #" .. anchor .. " }", 1, true)) and true or false
end

local by_name = {}
for _, entry in ipairs(public.entries()) do by_name[entry.name] = entry end

local count = 0
local function check_name(name)
  count = count + 1
  check(has_entry(name), name .. " has no entry in the reference")
  local entry = by_name[name]
  check(entry and (entry.kind == "table" or examples.find(entry)), name .. " has no example: write "
    .. "one in docs/reference/, or for an op in lib/lutra/repl/help/examples.lua")
end

-- Names that are looked for here without lutra.repl.help.public, so that it is tested, too.
local short = {["lt.nn"] = "nn", ["lt.F"] = "F", ["lt.optim"] = "optim", ["lt.data"] = "data"}
local seen = {}
local function walk(path, t)
  if seen[t] then return end
  seen[t] = true
  for key, value in next, t do
    if type(key) == "string" and key:find "^%a[%w_]*$" then
      local name = path .. "." .. key
      local entry = by_name[name]
      if type(value) == "table" and not classes.is_class(value)
          and not (entry and entry.kind == "table") then
        walk(short[name] or name, value)
      else
        check_name(name)
      end
    end
  end
end
require("lutra.internal.strict_table").load_all(lt)
walk("lt", lt)
for name in next, core._methods do
  if name:find "^%a" then check_name("x:" .. name) end
end
for name in next, core._fields do
  if name:find "^%a" then check_name("x." .. name) end
end
for _, entry in ipairs(public.entries()) do
  if entry.class then check_name(entry.name) end
end
check(count > 700, ("only %d public names found"):format(count))

-- ---- annotations for editors -------------------------------------------------------------------

local text = stubs.text()
check(load(text, "=stubs", "t") ~= nil, "the annotations are no Lua")

-- A type: names, lists, functions and literals, joined by |. Returns the place behind it, or nil.
local parse_type
local function parse_parameters(s, at)
  while s:sub(at, at) ~= ")" do
    local after = s:match("^%.%.%.:? ?()", at) or s:match("^[%a_][%w_]*%??:? ?()", at)
    at = after and parse_type(s, after)
    if not at then return nil end
    at = s:match("^, ()", at) or at
  end
  return at + 1
end
local function parse_one(s, at)
  if s:find("^fun%(", at) then
    local behind = parse_parameters(s, at + 4)
    local result = behind and s:match("^: ()", behind)
    return result and parse_type(s, result) or behind
  end
  local after = s:match('^"[^"]*"()', at) or s:match("^[%a_][%w_.]*()", at)
  return after and (s:match("^%[%]()", after) or s:match("^%?()", after) or after)
end
function parse_type(s, at)
  repeat
    local behind = parse_one(s, at)
    if not behind then return nil end
    at = s:match("^|()", behind)
    if not at then return behind end
  until false
end

local forms = { -- what is in front of the type, by tag
  class = "^[%a_][%w_.]*:? ?()", field = "^[%[%]%a_][%w_.%]]* ()", param = "^[%w_.]+%?? ()",
  ["return"] = "^()", overload = "^()", alias = "^[%w_.]+ ()",
}
local tags = 0
for line in text:gmatch "[^\n]+" do
  local tag, rest = line:match "^%-%-%-@(%a+) ?(.*)$"
  if tag == "operator" then
    check(rest:find "^%l+%([%w_.|]+%): [%w.]+$" or rest:find "^%l+: [%w.]+$", line)
  elseif tag and tag ~= "meta" then
    tags = tags + 1
    local at = forms[tag] and rest:match(forms[tag])
    local behind = at and (at > #rest and tag == "class" and at or parse_type(rest, at))
    check(behind and (behind > #rest or rest:sub(behind, behind) == " "), "annotation: " .. line)
  end
end
check(tags > 2500, ("only %d annotations found"):format(tags))

-- Every name of the library is declared.
local declared = {}
for name in text:gmatch "\nfunction ([%w_.:]+)" do declared[name] = true end
for name, key in text:gmatch '\n([%w_]+)%["(%w+)"%] = function' do
  declared[name .. ":" .. key] = true
end
for class, fields in text:gmatch "%-%-%-@class ([%w_.]+)(.-)\nlocal" do
  fields = "\n" .. fields
  for key in fields:gmatch "%-%-%-@field ([%w_]+) " do declared[class .. "/" .. key] = true end
end
for _, entry in ipairs(public.entries()) do
  local owner = entry.owner
  local name
  if entry.kind == "field" then
    name = "lt.Tensor/" .. entry.key
  elseif not owner then
    name = (entry.class and entry.class:gsub("%.", "_") or "Tensor") .. ":" .. entry.key
  elseif entry.kind == "function" or entry.kind == "op" then
    name = owner:gsub("%.", "_") .. "." .. entry.key
  else
    name = (owner == "lt" and "lutra" or owner) .. "/" .. entry.key
  end
  check(declared[name], entry.name .. " is not in the annotations")
end

-- Every lt.x, nn.x ... and every method of the examples is declared, or is the program's own.
local methods = {}
for name in pairs(declared) do methods[name:match "[:./]([%w_]+)$"] = true end
for name in pairs(string) do methods[name] = true end
for name in pairs(getmetatable(io.stdout).__index) do methods[name] = true end
-- Streams and events are objects without a declared class; the reference describes their methods
-- where it describes the functions that return them.
local of_objects = {}
for _, page in pairs(pages) do
  for key in page:gmatch "%f[%w_]([%a_][%w_\\]*)%(" do of_objects[key:gsub("\\", "")] = true end
end
for path in output("find examples docs/reference -name '*.lua'"):gmatch "[^\n]+" do
  local source = documents.read(path):gsub("%-%-[^\n]*", ""):gsub("%[%[.-%]%]", "")
  for owner, key in source:gmatch "%f[%w_.]([ln][tn])%.([%a_][%w_]*)" do
    local known = declared[owner .. "." .. key] or declared[owner .. "/" .. key]
      or declared["lutra/" .. key]
    check(known, ("%s: %s.%s is not in the annotations"):format(path, owner, key))
  end
  for key in source:gmatch "[%w_%)%]]:([%a_][%w_]*)%s*[%(\"{']" do
    local own = source:find("function [%w_.]*[.:]" .. key .. "%f[^%w_]")
    check(methods[key] or own or of_objects[key],
      ("%s: the method %s is not in the annotations"):format(path, key))
  end
end

-- `lutra --stubs` writes them.
local program = arg[-1] and arg[-1]:find "lutra$" and arg[-1] or "build/lutra"
local target = os.tmpname()
os.remove(target)
check(os.execute(("%s --stubs %s"):format(program, target)), "lutra --stubs failed")
check(documents.read(target .. "/library/lutra.lua") == text, "lutra --stubs writes another text")
os.execute("rm -r " .. target)

-- The language server's own checker, where it is installed.
if os.execute "command -v lua-language-server >/dev/null 2>&1" then
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p %s/library && cp -r examples %s"):format(folder, folder))
  local file <close> = assert(io.open(folder .. "/library/lutra.lua", "w"))
  file:write(text)
  file:close()
  local settings <close> = assert(io.open(folder .. "/.luarc.json", "w"))
  settings:write '{"runtime.version": "Lua 5.4"}' -- the annotations are in the same workspace
  settings:close()
  local report = output("cd " .. folder
    .. " && lua-language-server --check=. --checklevel=Error 2>&1")
  check(report:find "no problems found", report)
  os.execute("rm -r " .. folder)
end

-- ---- the manual page ---------------------------------------------------------------------------

local help, man = output(program .. " --help"), documents.read "docs/lutra.1"
local plain = man:gsub("\\%-", "-"):gsub("\\f.", "")
for line in help:gmatch "\n  (%-[^\n]*)" do
  local option = line:match "^%S+"
  check(plain:find("\n" .. option, 1, true), "docs/lutra.1 lacks the option " .. option)
end
for name in help:gmatch "\n  ([%u_]+) " do
  check(plain:find(name, 1, true), "docs/lutra.1 lacks the variable " .. name)
end
check(output("lua5.4 tools/docs/man.lua " .. program) == man,
  "docs/lutra.1 differs from lutra --help: run make man")

-- ---- paths in documents ------------------------------------------------------------------------

local function exists(path)
  return output(("ls -d %s 2>/dev/null"):format(path)) ~= ""
end
for _, path in ipairs {"docs/architecture.md", "docs/guide/extending.md", "CONTRIBUTING.md"} do
  local number = 0
  for name in documents.read(path):gmatch "`([%w_%-]+/[%w_%-./*]+)`" do
    local top = name:match "^[^/]+"
    local known = ("src lib tests docs tools examples bench "):find(top .. " ", 1, true)
    if known and name ~= "docs/site" and not name:find "%u%u%u" then
      number = number + 1
      check(exists(name), ("%s names %s, which does not exist"):format(path, name))
    end
  end
  check(number > 0, path .. ": no paths found")
end

checks.finish()
