--- A safe reader of Python's pickles, protocols 2 to 5 (PEP 307, 3154, 574; pickletools.py).
--
-- A pickle is a program for a stack machine that can call any Python function. This machine calls
-- only the functions in a table that its caller passes; every other one is refused by its name.
-- Nothing of the text is compiled or looked up by name in Lua's globals.
--
-- Invariant: reading costs time and memory proportional to the text, whatever it contains.

local ordered_map = require "lutra.internal.ordered_map"

local pickle = {}

--- None, on the machine's stack and in arguments. In results it is false in a list, and a dict has
-- no such key.
pickle.None = setmetatable({}, {__name = "None"})
local None = pickle.None

-- Values that exist only on the stack: a class or function of Python, {kind = "global", name}, and
-- a storage of PyTorch, {kind = "storage"}.
local Internal = {__name = "value of the machine"}

--- Makes a table a value that results may not contain.
function pickle.internal(t) return setmetatable(t, Internal) end

--- Returns the kind of an internal value; nil for any other value.
function pickle.kind(value)
  return type(value) == "table" and getmetatable(value) == Internal and value.kind or nil
end

--- Raised for data that ends early, so that the caller can pass more of it.
pickle.truncated = setmetatable({}, {__name = "truncated pickle",
  __tostring = function() return "its pickled data is truncated" end})

local Machine = {}
Machine.__index = Machine

local MARK = {}
local DEPTH = 1000

local function fail(_, message, ...) error({pickle = message:format(...)}, 0) end

-- Returns a name from a file for a message.
local function show(name) return ("%q"):format(name:sub(1, 80)):gsub("\n", "n") end

-- ---- the text

function Machine:take(n)
  local at = self.at
  if n < 0 or n > #self.text - at + 1 then error(pickle.truncated, 0) end
  self.at = at + n
  return self.text:sub(at, at + n - 1)
end

function Machine:unpack(format, n)
  local at = self.at
  if n > #self.text - at + 1 then error(pickle.truncated, 0) end
  self.at = at + n
  return (format:unpack(self.text, at))
end

function Machine:line()
  local last = self.text:find("\n", self.at, true)
  if not last then error(pickle.truncated, 0) end
  local text = self.text:sub(self.at, last - 1)
  self.at = last + 1
  return text
end

-- ---- the stack

function Machine:push(value)
  local n = self.n + 1
  self.stack[n], self.n = value, n
end

function Machine:pop()
  local n = self.n
  local value = self.stack[n]
  if n == 0 or value == MARK then fail(self, "its pickled data is damaged") end
  self.stack[n], self.n = nil, n - 1
  return value
end

-- Removes and returns the values above the last mark, and their number.
function Machine:pop_mark()
  local first = self.n
  while first > 0 and self.stack[first] ~= MARK do first = first - 1 end
  if first == 0 then fail(self, "its pickled data is damaged") end
  local count = self.n - first
  local list = table.move(self.stack, first + 1, self.n, 1, {})
  for i = first, self.n do self.stack[i] = nil end
  self.n = first - 1
  return list, count
end

function Machine:memoize(index)
  local value = self.stack[self.n]
  if value == nil or value == MARK then fail(self, "its pickled data is damaged") end
  self.memo[index] = value
end

function Machine:recall(index)
  local value = self.memo[index]
  if value == nil then fail(self, "its pickled data is damaged") end
  self:push(value)
end

-- ---- containers

-- Returns a value of the stack as it is in results. A tuple is copied once, because a call may get
-- the same tuple with None in it.
function Machine:plain(value, depth)
  if value == None then return false end
  if type(value) ~= "table" then return value end
  if pickle.kind(value) then return self.host.plain(self, value) end
  local count = self.tuples[value]
  if not count then return value end
  local list = self.results[value]
  if list then return list end
  depth = (depth or 0) + 1
  if depth > DEPTH then fail(self, "it has more than %d nested tuples", DEPTH) end
  list = {}
  for i = 1, count do list[i] = self:plain(value[i], depth) end
  self.results[value] = list
  return list
end

function Machine:append(list, values, count)
  if not list or not self.lists[list] then
    fail(self, "its pickled data is damaged: it appends to what is no list")
  end
  local n = #list
  for i = 1, count do list[n + i] = self:plain(values[i]) end
end

-- Returns a key of a dict or an element of a set; others than strings, numbers and booleans are
-- refused.
local function key_of(self, value)
  local kind = type(value)
  if kind == "string" or kind == "boolean" or kind == "number" and value == value then
    return value
  end
  fail(self, "it has a dict or set with a key that is no string, number or boolean")
end

function Machine:set_items(dict, values, count)
  if not dict or not self.dicts[dict] or count % 2 ~= 0 then
    fail(self, "its pickled data is damaged: it sets items of what is no dict")
  end
  for i = 1, count, 2 do
    local key, value = key_of(self, values[i]), values[i + 1]
    if value == None then dict[key] = nil else dict[key] = self:plain(value) end
  end
end

--- Returns a new list.
function Machine:list()
  local list = {}
  self.lists[list] = true
  return list
end

--- Returns a new dict: an ordered table.
function Machine:dict()
  local dict = ordered_map.new()
  self.dicts[dict] = true
  return dict
end

function Machine:add(set, values, count)
  if not set or not self.sets[set] then fail(self, "its pickled data is damaged") end
  for i = 1, count do set[key_of(self, values[i])] = true end
end

--- Returns a new set: a table whose keys are the elements.
function Machine:set(values, count)
  local set = {}
  self.sets[set] = true
  self:add(set, values, count)
  return set
end

--- Makes a list of `count` values of the stack a tuple; returns it. Arguments must be tuples.
function Machine:tuple(values, count)
  self.tuples[values] = count
  return values
end

-- ---- calls

-- Returns a name as Python 3 writes it.
local renamed = {__builtin__ = "builtins", copy_reg = "copyreg"}
local function push_global(self, module, name)
  local full = (renamed[module] or module) .. "." .. name
  self:push(pickle.internal{kind = "global", name = full})
end

-- Calls a function of Python with a tuple of arguments.
function Machine:call(f, arguments)
  local count = self.tuples[arguments]
  if pickle.kind(f) ~= "global" or not count then
    fail(self, "its pickled data is damaged: it calls what is no function")
  end
  local known = self.host.functions[f.name]
  if not known then self:refuse(f.name) end
  return known(self, table.unpack(arguments, 1, count))
end

--- Raises the error that the file contains this class or function.
function Machine:refuse(name)
  fail(self, "it contains %s, which is code, not data, or not supported", (show(name)))
end

--- Raises an error about the file.
Machine.fail = fail

-- Returns the integer of little-endian bytes in two's complement; a float when it has more than 64
-- bits.
local function long(bytes)
  local n = #bytes
  if n == 0 then return 0 end
  if n <= 8 then return (("<i" .. n):unpack(bytes)) end
  local negative, value = bytes:byte(n) >= 128, 0.0
  for i = n, 1, -1 do value = value * 256 + (negative and 255 - bytes:byte(i) or bytes:byte(i)) end
  value = negative and -value - 1 or value
  local tail = bytes:sub(9)
  local fill = ((bytes:byte(8) >= 128) and "\255" or "\0"):rep(n - 8)
  return tail == fill and (("<i8"):unpack(bytes)) or value
end

-- ---- the opcodes

local ops = {}

ops["\x80"] = function(m)
  local version = m:unpack("B", 1)
  if version > 5 then fail(m, "it is a pickle of protocol %d", version) end
end
ops["\x95"] = function(m) m:take(8) end -- FRAME
ops["("] = function(m) m:push(MARK) end
ops["0"] = function(m)
  if m.n > 0 and m.stack[m.n] == MARK then m.stack[m.n], m.n = nil, m.n - 1 else m:pop() end
end
ops["1"] = function(m) m:pop_mark() end
ops["2"] = function(m)
  local top = m:pop()
  m:push(top)
  m:push(top)
end

ops["N"] = function(m) m:push(None) end
ops["\x88"] = function(m) m:push(true) end
ops["\x89"] = function(m) m:push(false) end
ops["J"] = function(m) m:push(m:unpack("<i4", 4)) end
ops["K"] = function(m) m:push(m:unpack("B", 1)) end
ops["M"] = function(m) m:push(m:unpack("<I2", 2)) end
ops["\x8a"] = function(m) m:push(long(m:take(m:unpack("B", 1)))) end
ops["\x8b"] = function(m) m:push(long(m:take(m:unpack("<i4", 4)))) end
ops["G"] = function(m) m:push(m:unpack(">d", 8)) end

for code, format in pairs{X = "<I4", ["\x8c"] = "B", ["\x8d"] = "<i8", -- str
  B = "<I4", C = "B", ["\x8e"] = "<i8", ["\x96"] = "<i8",              -- bytes, bytearray
  T = "<i4", U = "B"} do                                               -- str of Python 2
  local size = ("").packsize(format)
  ops[code] = function(m) m:push(m:take(m:unpack(format, size))) end
end

ops["]"] = function(m) m:push(m:list()) end
ops["}"] = function(m) m:push(m:dict()) end
ops[")"] = function(m) m:push(m:tuple({}, 0)) end
ops["\x8f"] = function(m) m:push(m:set({}, 0)) end
ops["l"] = function(m)
  local values, count = m:pop_mark()
  local list = m:list()
  m:append(list, values, count)
  m:push(list)
end
ops["d"] = function(m)
  local values, count = m:pop_mark()
  local dict = m:dict()
  m:set_items(dict, values, count)
  m:push(dict)
end
ops["t"] = function(m) m:push(m:tuple(m:pop_mark())) end
for code, count in pairs{["\x85"] = 1, ["\x86"] = 2, ["\x87"] = 3} do
  ops[code] = function(m)
    local values = {}
    for i = count, 1, -1 do values[i] = m:pop() end
    m:push(m:tuple(values, count))
  end
end
ops["\x91"] = function(m) m:push(m:set(m:pop_mark())) end -- FROZENSET

ops["a"] = function(m)
  local value = m:pop()
  m:append(m.stack[m.n], {value}, 1)
end
ops["e"] = function(m)
  local values, count = m:pop_mark()
  m:append(m.stack[m.n], values, count)
end
ops["s"] = function(m)
  local value = m:pop()
  local key = m:pop()
  m:set_items(m.stack[m.n], {key, value}, 2)
end
ops["u"] = function(m)
  local values, count = m:pop_mark()
  m:set_items(m.stack[m.n], values, count)
end
ops["\x90"] = function(m)
  local values, count = m:pop_mark()
  m:add(m.stack[m.n], values, count)
end

ops["q"] = function(m) m:memoize(m:unpack("B", 1)) end
ops["r"] = function(m) m:memoize(m:unpack("<I4", 4)) end
ops["\x94"] = function(m)
  m:memoize(m.memoized)
  m.memoized = m.memoized + 1
end
ops["h"] = function(m) m:recall(m:unpack("B", 1)) end
ops["j"] = function(m) m:recall(m:unpack("<I4", 4)) end

ops["c"] = function(m)
  local module = m:line()
  push_global(m, module, m:line())
end
ops["\x93"] = function(m)
  local name = m:pop()
  local module = m:pop()
  if type(name) ~= "string" or type(module) ~= "string" then
    fail(m, "its pickled data is damaged")
  end
  push_global(m, module, name)
end
ops["R"] = function(m)
  local arguments = m:pop()
  m:push(m:call(m:pop(), arguments))
end
ops["\x81"] = ops["R"] -- NEWOBJ: a class is called with its arguments
ops["b"] = function(m)
  local state = m:pop()
  local object = m.stack[m.n]
  if object == nil or object == MARK then fail(m, "its pickled data is damaged") end
  m.stack[m.n] = m.host.build(m, object, state)
end
ops["Q"] = function(m)
  local id = m:pop()
  if not m.host.persistent then fail(m, "it refers to objects outside of the file") end
  m:push(m.host.persistent(m, id))
end

-- Opcodes whose names are known, for messages.
local refused = {["\x92"] = "NEWOBJ_EX", i = "INST", o = "OBJ", P = "PERSID", ["\x82"] = "EXT1",
  ["\x83"] = "EXT2", ["\x84"] = "EXT4", ["\x97"] = "NEXT_BUFFER", ["\x98"] = "READONLY_BUFFER",
  I = "INT", L = "LONG", F = "FLOAT", S = "STRING", V = "UNICODE", g = "GET", p = "PUT"}

--- Reads one pickle of `text` from position `at` on. Returns its value and the position after it.
-- `host` has
--   functions[name](machine, ...)     the functions that may be called, by "module.name"
--   build(machine, object, state)     sets the state of an object; returns the object
--   persistent(machine, id)           the object of a persistent id (nil: there are none)
--   plain(machine, value)             an internal value (pickle.kind) as it is in results
-- Raises pickle.truncated, or {pickle = reason} for a pickle that is refused.
function pickle.read(text, at, host)
  local machine = setmetatable({text = text, at = at, host = host, stack = {}, n = 0, memo = {},
    memoized = 0, dicts = {}, lists = {}, sets = {}, tuples = {}, results = {}}, Machine)
  while true do
    local code = machine:take(1)
    if code == "." then
      local value = machine:pop()
      if value == None then return nil, machine.at end
      return machine:plain(value), machine.at
    end
    local op = ops[code]
    if not op then
      fail(machine, "its pickled data has the opcode %s, which is not supported",
        refused[code] or ("0x%02x"):format(code:byte()))
    end
    op(machine)
  end
end

return pickle
