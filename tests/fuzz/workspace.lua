-- A fuzz target for :load, the reader of workspaces: altered files are loaded or refused with one
-- message, no code from a file runs, and a file that is refused changes nothing in the session.
--
--   build/lutra tests/fuzz/workspace.lua SECONDS [SEED] >/dev/null
--
-- Says on stderr what it did; the exit status is 1, and the file is kept, when something was wrong.

local lt = require "lutra"
local session_of = require "lutra.repl.session"
local workspace = require "lutra.repl.commands.workspace"

local seconds, seed = tonumber(arg[1]) or 60, math.tointeger(tonumber(arg[2])) or os.time()
math.randomseed(seed)
local random = math.random

local path = os.tmpname()
os.remove(path)
local ran -- what code of a file called

-- ---- canaries: what code of a file would call

local canary = "canary"
_G[canary] = function() ran = canary end
local real = {remove = os.remove, open = io.open, exit = os.exit}
for _, place in ipairs {{os, "execute"}, {os, "remove"}, {os, "exit"}, {io, "popen"}, {_G, "load"},
  {_G, "require"}, {_G, "dofile"}} do
  local name = place[2]
  place[1][name] = function() ran = name end
end

-- ---- a session, and a file that :keep wrote of one

local nn, optim = lt.nn, lt.optim

local function new_session()
  local self = session_of.new()
  self:mark_builtin()
  return self
end

local function fill(self)
  local net = nn.Linear(2, 3)
  local opt = optim.Adam(net:parameters(), {lr = 0.5})
  net(lt.ones{1, 2}):sum():backward()
  opt:step()
  local x = lt.arange(6):reshape{2, 3}
  local t = {x, {a = {b = x}}, [2.5] = "f", [true] = 1, net = nn.ReLU()}
  t.self = t
  local values = {x = x, view = x:t(), t = t, n = 3, f = 0.1, s = 'a "b"\n\0\255', no = false,
    p = nn.Parameter(lt.ones{2}), g = lt.ones({2}, {requires_grad = true}), net = net, opt = opt}
  for name, value in pairs(values) do self.locals:set(name, value) end
  self.locals:set("c", 5, true)
  fuzz_global = {1, 2, x} -- luacheck: ignore
end

local function read()
  local file <close> = assert(real.open(path, "rb"))
  return file:read "a"
end

local function write(bytes)
  local file <close> = assert(real.open(path, "wb"))
  file:write(bytes)
end

-- A string of JSON; what is no ASCII as \u.
local function json(text)
  return '"' .. text:gsub('[%c"\\\127-\255]', function(c) return ("\\u%04x"):format(c:byte()) end)
    .. '"'
end

local kept = new_session()
fill(kept)
workspace.keep(kept, path)
local whole = read()
local header_size = string.unpack("<I8", whole)
local tensors = whole:sub(9, 8 + header_size):match '^{"__metadata__":{.-[^\\]"},(.*)}%s*$'
local data = whole:sub(9 + header_size)
local _, metadata = lt.load_safetensors(path)
local description = metadata["lutra.workspace"]
assert(tensors and description, "the file is not as this target expects it")

local function write_description(text)
  local header = ('{"__metadata__":{"lutra.workspace":%s},%s}'):format(json(text), tensors)
  write(string.pack("<s8", header) .. data)
end

-- ---- alterations

local dictionary = {
  '""', '"const"', '"close"', '"const> = 1 canary() local z <const"', '"x = canary() --"',
  '"local"', '"global"', '"end"', '"_"', '"_1"', '"lutra_keep"', '"print"', '"os"', '"a b"',
  '"_G"',
  '"x\\010canary()"', '"\\999"', '"\\027[2J"', '"meta"', '"cuda:7"', '"cpu:99999999999999999999"',
  '"parameter"', '"frozen"', '"grad"', '"plain"', '"ordered"', '"opt"', '"net"', '"t"', '"2,3"',
  '"-1"', '"9223372036854775807"', '"2,3,4,5,6,7,8,9,1,1,1,1,1"', '"99999999999999999999"',
  '"1,,2"',
  "i0", "i1", "i2", "i-1", "i9223372036854775807", "i-9223372036854775808", "i0x10", "nnan", "ninf",
  "n0x1p-1", "b0", "b1", "t1", "t2", "t0", "t99", "x1", "x2", "x99", "x-1", "o1", "o2", "o3", "o99",
  "tensor", "view", "table", "item", "object", "variable",
  'variable "local" "hit" "const> = 1 canary() local z <const" i1', 'variable "local" "opt" "" o1',
  'object "C" t1 "net"', 'object "C" t2 "opt"', 'object "C" i1 "net"', 'object "C" t1',
  'table "ordered"', 'table "plain"', 'item t1 t1', 'item nnan i1', 'view i1 "2" "1" i0',
  'view i1 "2" "-1" i-9223372036854775808', 'tensor "x" "cpu" "grad"', 'tensor "x" "meta" "plain"',
}

local function one_of(list) return list[random(#list)] end

local function split(text, pattern)
  local list = {}
  for piece in text:gmatch(pattern) do list[#list + 1] = piece end
  return list
end

local function change_line(line)
  local tokens = split(line, "%S+")
  local at = random(math.max(#tokens, 1))
  local how = random(3)
  if how == 1 then tokens[at] = one_of(dictionary)
  elseif how == 2 then table.insert(tokens, at, one_of(dictionary))
  elseif #tokens > 0 then table.remove(tokens, at) end
  return table.concat(tokens, " ")
end

local function change_byte(text)
  local at = random(#text)
  return text:sub(1, at - 1) .. string.char(random(0, 255)) .. text:sub(at + random(0, 2))
end

-- The description with some of its lines changed, repeated, moved, or from the dictionary.
local function changed_description()
  local lines = split(description, "[^\n]+")
  for _ = 1, one_of{1, 1, 2, 4} do
    local at, other = random(2, #lines), random(2, #lines)
    local how = random(8)
    if how <= 4 then lines[at] = change_line(lines[at])
    elseif how == 5 then table.insert(lines, at, one_of(dictionary))
    elseif how == 6 then lines[at], lines[other] = lines[other], lines[at]
    elseif how == 7 and #lines > 3 then table.remove(lines, at)
    else lines[at] = change_byte(lines[at] .. " ") end
  end
  return table.concat(lines, "\n")
end

local function write_altered()
  if random(5) > 1 then return write_description(changed_description()) end
  local bytes = whole
  for _ = 1, random(3) do bytes = change_byte(bytes) end
  write(bytes)
end

-- ---- what must hold

local function fail(what, ...)
  io.stderr:write(("seed %d: %s; the file is %s\n"):format(seed, what:format(...), path))
  real.exit(1)
end

-- The text of a value: of tensors the elements, of tables what is in them.
local function dump(value)
  if lt.is_tensor(value) then
    return table.concat(value:detach():to "float64":reshape{-1}:totable(), " ")
  end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for key, inner in pairs(value) do parts[#parts + 1] = tostring(key) .. "=" .. dump(inner) end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- The variables of a session, and all globals.
local function snapshot(self)
  local seen = {}
  for name, value in self.locals:pairs() do seen["local " .. name] = value end
  for name, value in next, _G do seen["global " .. tostring(name)] = value end
  return seen
end

local function state_text(self)
  local _, net = self.locals:get "net"
  local _, opt = self.locals:get "opt"
  return dump(net:state_dict()) .. dump(opt:state_dict())
end

local function same(a, b)
  for key, value in next, a do
    local nan = value ~= value and b[key] ~= b[key]
    if not rawequal(b[key], value) and not nan then return false, key end
  end
  for key in next, b do
    if a[key] == nil then return false, key end
  end
  return true
end

local function check_message(message)
  if type(message) ~= "string" then fail("the error is a %s", type(message)) end
  local clean = message:find "^load: " and not message:find "%.lua:%d" and
    not message:find "attempt to" and not message:find "bad argument" and
    not message:find "[^\n\32-\126\128-\255]"
  local placed = message:find(path, 1, true) or message:find "nothing was loaded"
  if not clean or not placed then fail("the message is %q", message) end
end

-- Uses every variable as a cell does, which compiles code with its name.
local function use_variables(self)
  for name in self.locals:pairs() do
    local f = self:compile("return " .. name, "cell")
    if not f then fail("the variable %q cannot be used", name) end
    pcall(f)
  end
  self:compile("local fresh = 1", "cell")
end

-- ---- the loop

local files, loaded = 0, 0
local finish = os.clock() + seconds
local self
while os.clock() < finish do
  if not self or files % 50 == 0 then
    self = new_session()
    fill(self)
  end
  write_altered()
  local before, state = snapshot(self), state_text(self)
  local ok, message = pcall(workspace.load, self, path)
  if not ok then
    check_message(message)
    local unchanged, name = same(before, snapshot(self))
    if not unchanged then fail("refused, but %s has changed", name) end
    if state ~= state_text(self) then fail "refused, but a module or an optimizer has changed" end
  else
    loaded = loaded + 1
    use_variables(self)
    self = nil
  end
  if ran then fail("the file ran %s", ran) end
  files = files + 1
end
real.remove(path)
io.stderr:write(("%d files, %d of them loaded, seed %d\n"):format(files, loaded, seed))
