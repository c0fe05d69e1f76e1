--- Writes values of any kind for another Lua state: a string of bytes and a list of tensors.
--
-- The bytes are a sequence of tokens, each one letter and its operands; reader.lua reads them:
--
--     N T F             nil, true, false
--     i d s             an integer, a float, a string
--     r ID              a table, function, tensor... that was written before
--     G S               the table of globals, the metatable of shapes
--     P STEPS           a value that every state has, by its path (named.lua)
--     x INDEX FLAGS     a tensor of the list: 1 requires grad, 2 a parameter
--     c g               a complex number, a generator with its state
--     t PAIRS e META    a table
--     f DUMP N UPVALUES a function: E the globals, R ID one written before, V a value
--
-- Functions are written with the variables of enclosing functions that they use (their upvalues),
-- which stay shared. A global variable of the program travels when its name occurs in the code of a
-- function that travels; when it cannot, only its use in the worker is an error.

local lt = require "lutra"
local core = require "lutra.core"
local named = require "lutra.internal.transfer.named"

local pack = string.pack

local Writer = {}
Writer.__index = Writer

local function fail(path, what) error(setmetatable({path = path, what = what}, Writer), 0) end

function Writer:put(text)
  local n = self.n + 1
  self.n, self.out[n] = n, text
end

-- Gives x the next number. Everything that is registered can be undone (see protected).
function Writer:register(x)
  local id = #self.order + 1
  self.order[id], self.ids[x] = x, id
end

-- Returns the path of a field for messages: dataset.transform, dataset[3].
local function field(path, key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then return path .. "." .. key end
  if type(key) == "string" then return ("%s[%q]"):format(path, key) end
  return ("%s[%s]"):format(path, math.type(key) and tostring(key) or type(key))
end

-- ---- kinds of values

function Writer:named(node)
  local steps = {}
  while node do
    table.insert(steps, 1, node)
    node = node.parent
  end
  self:put(pack("<c1B", "P", #steps))
  for _, step in ipairs(steps) do
    self:put(pack("<s4", step.kind))
    self:scalar(step.key)
  end
end

-- Writes nil, a boolean, a number or a string; returns false for any other value.
function Writer:scalar(x)
  local kind = math.type(x) or type(x)
  if kind == "nil" then self:put "N"
  elseif kind == "boolean" then self:put(x and "T" or "F")
  elseif kind == "integer" then self:put(pack("<c1i8", "i", x))
  elseif kind == "float" then self:put(pack("<c1d", "d", x))
  elseif kind == "string" then self:put(pack("<c1s4", "s", x))
  else return false end
  return true
end

function Writer:tensor(x, path)
  if core._is_freed(x) then fail(path, "a tensor that was freed (x:free())") end
  if x.requires_grad and not x.is_leaf then
    fail(path, "a tensor with an autograd graph, which belongs to this thread\nhint: x:detach()")
  end
  self.tensors[#self.tensors + 1] = x
  local flags = (x.requires_grad and 1 or 0) + (core.is_parameter(x) and 2 or 0)
  self:put(pack("<c1I4B", "x", #self.tensors, flags))
end

function Writer:table(t, path)
  self:put "t"
  for key, value in next, t do
    local at = field(path, key)
    self:value(key, at .. " (key)")
    self:value(value, at)
  end
  self:put "e"
  self:value(debug.getmetatable(t), path .. " (metatable)")
end

local function is_function_of_c(f) return debug.getinfo(f, "S").what == "C" end

function Writer:closure(f, path)
  if is_function_of_c(f) then fail(path, "a function in C that no module has") end
  local dump = string.dump(f)
  local count = debug.getinfo(f, "u").nups
  local known = self.dumps[dump]
  if not known then
    known = #self.codes + 1
    self.codes[known], self.dumps[dump] = dump, known
    self:put(pack("<c1I4s4I1", "f", known, dump, count))
  else
    self:put(pack("<c1I4s4I1", "f", known, "", count))
  end
  for i = 1, count do
    local name, value = debug.getupvalue(f, i)
    local id = debug.upvalueid(f, i)
    if named.is_globals(value) or (name == "_ENV" and type(value) == "table") then
      self.environments[value] = true
      self:put "E"
    elseif self.upvalues[id] then
      self:put(pack("<c1I4", "R", self.upvalues[id]))
    else
      self.upvalue_order[#self.upvalue_order + 1] = id
      self.upvalues[id] = #self.upvalue_order
      self:put "V"
      self:value(value, field(path, name ~= "(no name)" and name or i))
    end
  end
end

function Writer:userdata(x, path)
  local meta = debug.getmetatable(x)
  if io.type(x) then fail(path, io.type(x) == "file" and "an open file" or "a closed file") end
  if meta == self.generator_meta then
    self:put "g"
    local state = x:get_state():totable()
    return self:put(pack("<i8i8", state[1], state[2]))
  end
  if lt.is_complex(x) then return self:put(pack("<c1dd", "c", x.re, x.im)) end
  local name = type(meta) == "table" and rawget(meta, "__name")
  fail(path, type(name) == "string" and name or "userdata")
end

-- Returns whether x may be a value that every state has. Results of a worker are written often, so
-- their plain tables are not looked up.
function Writer:may_be_named(x, kind)
  if kind == "function" then return true end
  return kind == "table" and not (self.is_result and debug.getmetatable(x) == nil)
end

--- Writes a value. `path` names it in messages.
function Writer:value(x, path)
  if self:scalar(x) then return end
  local id = self.ids[x]
  if id then return self:put(pack("<c1I4", "r", id)) end
  if named.is_globals(x) then return self:put "G" end
  if x == self.shape_meta then return self:put "S" end
  self:register(x)
  local kind = type(x)
  local node = self:may_be_named(x, kind) and self.named_values()[x]
  if node then return self:named(node) end
  if kind == "table" then return self:table(x, path) end
  if kind == "function" then return self:closure(x, path) end
  if kind == "thread" then fail(path, "a coroutine") end
  if core.is_tensor(x) or core._is_freed(x) then return self:tensor(x, path) end
  return self:userdata(x, path)
end

-- ---- globals

-- Removes the entries of a list after the n-th, and their entries in `map`.
local function shorten(list, n, map)
  for i = #list, n + 1, -1 do
    if map then map[list[i]] = nil end
    list[i] = nil
  end
end

-- Calls write(); when that fails, undoes what it wrote and returns the message.
function Writer:protected(write)
  local n, order, tensors = self.n, #self.order, #self.tensors
  local codes, upvalues = #self.codes, #self.upvalue_order
  local ok, message = pcall(write)
  if ok then return nil end
  self.n = n
  shorten(self.out, n)
  shorten(self.order, order, self.ids)
  shorten(self.tensors, tensors)
  shorten(self.codes, codes, self.dumps)
  shorten(self.upvalue_order, upvalues, self.upvalues)
  if getmetatable(message) ~= Writer then error(message, 0) end
  return ("cannot use the global '%s' in a worker: it is %s"):format(message.path, message.what)
end

-- Returns the value of a global in a table of globals that may have a metatable.
local function read_global(environment, name)
  local value = rawget(environment, name)
  if value ~= nil or rawequal(environment, _G) then return value end
  local ok, inherited = pcall(function() return environment[name] end)
  return ok and inherited or nil
end

-- Returns whether every state has the value of a global, or field of a standard library, under the
-- same name.
function Writer:is_standard(name, value)
  local node = self.named_values()[value]
  return named.is_globals(value) or (node ~= nil and node.key == name)
end

-- Writes a variable of the program; when it cannot travel, the reason.
function Writer:variable(container, name, value)
  local head = pack("<s4s4", container, name)
  local lost = self:protected(function()
    self:put("V" .. head)
    self:value(value, container == "" and name or container .. "." .. name)
  end)
  if lost then self:put("L" .. head .. pack("<s4", lost)) end
end

-- Writes the variables with this name: a global, and functions that the program added to the
-- standard libraries.
function Writer:variables(name)
  for environment in next, self.environments do
    local value = read_global(environment, name)
    if value ~= nil and not self:is_standard(name, value) then
      self:variable("", name, value)
      break
    end
  end
  for _, library in ipairs(named.STANDARD) do
    local f = type(_G[library]) == "table" and rawget(_G[library], name)
    if type(f) == "function" and not self:is_standard(name, f) then
      self:variable(library, name, f)
    end
  end
end

-- Writes the variables whose names occur in the code that was written, and in the code of these. In
-- code that string.dump returns, names are strings.
function Writer:globals()
  local seen, checked = {}, 0
  while checked < #self.codes do
    checked = checked + 1
    for name in self.codes[checked]:gmatch "[%a_][%w_]*" do
      if not seen[name] then self:variables(name) end
      seen[name] = true
    end
  end
  self:put "."
end

local writer = {}

local metas      -- the metatables of generators and shapes
local of_results -- the values that every state has, for results

local function find_metas()
  metas = {
    generator = getmetatable(lt.Generator(0)),
    shape = getmetatable(lt.empty{0, device = "cpu"}.shape),
  }
end

--- Returns the bytes and the list of tensors of a value; nil on failure, and then the path of the
-- part that cannot travel and what it is. `root` names the value in paths. A result of a worker
-- (`is_result`) brings no globals.
function writer.pack(value, root, is_result)
  if not metas then find_metas() end
  local nodes = is_result and of_results
  local self = setmetatable({
    out = {}, n = 0, ids = {}, order = {}, tensors = {}, dumps = {}, codes = {}, upvalues = {},
    upvalue_order = {}, shape_meta = metas.shape, generator_meta = metas.generator,
    is_result = is_result, environments = {[_G] = true},
    named_values = function()
      nodes = nodes or named.values()
      if is_result then of_results = nodes end
      return nodes
    end,
  }, Writer)
  local ok, message = pcall(function()
    self:value(value, root)
    if is_result then self:put "." else self:globals() end
  end)
  if ok then return table.concat(self.out), self.tensors end
  if getmetatable(message) ~= Writer then error(message, 0) end
  return nil, message.path, message.what
end

return writer
