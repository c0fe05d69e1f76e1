--- Reads what writer.lua wrote, in another Lua state.

local lt = require "lutra"
local core = require "lutra.core"
local named = require "lutra.internal.transfer.named"

local unpack = string.unpack

local Reader = {}
Reader.__index = Reader

function Reader:one(format)
  local a, position = unpack(format, self.bytes, self.position)
  self.position = position
  return a
end

function Reader:letter()
  local position = self.position
  self.position = position + 1
  return self.bytes:sub(position, position)
end

-- Reserves the next number for a value that is read now, as the writer did.
function Reader:reserve()
  self.count = self.count + 1
  return self.count
end

local kinds = {}

function kinds.N() return nil end
function kinds.T() return true end
function kinds.F() return false end
function kinds.i(self) return self:one "<i8" end
function kinds.d(self) return self:one "<d" end
function kinds.s(self) return self:one "<s4" end
function kinds.r(self) return self.values[self:one "<I4"] end
function kinds.G() return _G end
function kinds.S() return getmetatable(lt.empty{0, device = "cpu"}.shape) end

function kinds.P(self)
  local id, steps = self:reserve(), {}
  for i = 1, self:one "<B" do steps[i] = {self:one "<s4", self:value()} end
  self.values[id] = named.resolve(steps)
  return self.values[id]
end

function kinds.x(self)
  local id = self:reserve()
  local x = self.tensors[self:one "<I4"]
  local flags = self:one "<B"
  if flags & 2 ~= 0 then
    x = core._parameter(x, flags & 1 ~= 0)
  elseif flags & 1 ~= 0 then
    x:requires_grad_()
  end
  self.values[id] = x
  return x
end

function kinds.c(self)
  local id = self:reserve()
  local re, im = self:one "<d", self:one "<d"
  self.values[id] = lt.complex(re, im)
  return self.values[id]
end

function kinds.g(self)
  local id, g = self:reserve(), lt.Generator(0)
  local seed, position = self:one "<i8", self:one "<i8"
  g:set_state(lt.tensor({seed, position}, {dtype = "int64", device = "cpu"}))
  self.values[id] = g
  return g
end

function kinds.t(self)
  local id, t = self:reserve(), {}
  self.values[id] = t
  while true do
    local letter = self:letter()
    if letter == "e" then break end
    local key = kinds[letter](self)
    rawset(t, key, self:value())
  end
  local meta = self:value()
  if meta ~= nil then debug.setmetatable(t, meta) end
  return t
end

function kinds.f(self)
  local id = self:reserve()
  local number, dump = self:one "<I4", self:one "<s4"
  local count = self:one "<B"
  if dump ~= "" then self.codes[number] = dump end
  local f = assert(load(self.codes[number], "=worker", "b"))
  self.values[id] = f
  for i = 1, count do
    local letter = self:letter()
    if letter == "E" then
      debug.setupvalue(f, i, _G)
    elseif letter == "R" then
      local owner = self.upvalues[self:one "<I4"]
      debug.upvaluejoin(f, i, owner[1], owner[2])
    else
      self.upvalues[#self.upvalues + 1] = {f, i}
      debug.setupvalue(f, i, self:value())
    end
  end
  return f
end

--- Returns the next value.
function Reader:value() return kinds[self:letter()](self) end

-- Makes reading a global that could not travel an error.
local function guard(lost)
  local meta = getmetatable(_G) or {}
  local before = meta.__index
  meta.__index = function(t, name)
    if lost[name] then error(lost[name], 2) end
    if type(before) == "function" then return before(t, name) end
    return before and before[name]
  end
  setmetatable(_G, meta)
end

-- Sets the globals of the program in this state.
local function read_globals(self)
  local lost = {}
  while true do
    local letter = self:letter()
    if letter == "." then break end
    local container, name = self:one "<s4", self:one "<s4"
    if letter == "L" then
      lost[name] = self:one "<s4"
    else
      rawset(container == "" and _G or _G[container], name, self:value())
    end
  end
  if next(lost) then guard(lost) end
end

local reader = {}

--- Returns the value of a string of bytes and a list of tensors, and sets the globals that they
-- contain.
function reader.unpack(bytes, tensors)
  local self = setmetatable({bytes = bytes, tensors = tensors, position = 1, count = 0,
    values = {}, upvalues = {}, codes = {}}, Reader)
  local value = self:value()
  read_globals(self)
  return value
end

return reader
