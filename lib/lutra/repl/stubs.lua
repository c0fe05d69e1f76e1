--- Annotations of the library for LuaLS (lua-language-server) and editors that use it:
-- `lutra --stubs DIR` writes DIR/library/lutra.lua.
--
-- Idea: every function is declared from the record by which its arguments are read, so that the
-- annotations cannot differ from the library. Add DIR to `workspace.library` in .luarc.json.

local builtin = require "lutra.repl.help.builtin"
local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local functions = require "lutra.repl.help.functions"
local ops = require "lutra.repl.help.ops"
local public = require "lutra.repl.help.public"
local signatures = require "lutra.repl.complete.signatures"

local stubs = {}

-- Types of signatures (src/tensor/ops.def) as LuaLS has them; any other is `any`.
local types = {
  Tensor = "lt.Tensor", Index = "lt.Tensor", Operand = "lt.Tensor|number|lt.Complex",
  Scalar = "number|lt.Complex", int = "integer", float = "number", bool = "boolean",
  string = "string", dtype = "lt.Dtype", device = "lt.Device", Generator = "lt.Generator",
  dim = "integer", position = "integer", sizes = "integer|integer[]", ints = "integer|integer[]",
  dims = "integer|integer[]", floats = "number|number[]", ["function"] = "function",
  table = "table", ["Tensor[]"] = "lt.Tensor[]", ["Index[]"] = "lt.Tensor[]",
}
-- Types of arguments that may be spread: zeros(2, 3).
local spread = {sizes = true, ints = true, dims = true, floats = true}

local keywords = {}
for word in ("and break do else elseif end false for function goto if in local nil not or repeat "
  .. "return then true until while"):gmatch "%a+" do keywords[word] = true end

local function type_of(param)
  if param.choices then
    local words = {}
    for i, choice in ipairs(param.choices) do words[i] = ("%q"):format(choice) end
    return table.concat(words, "|")
  end
  local words = {}
  for word in param.type:gmatch "[^|]+" do words[#words + 1] = types[word] or "any" end
  return table.concat(words, "|")
end

local function comment(out, text)
  for line in (text or ""):gmatch "[^\n]+" do out[#out + 1] = "---" .. line end
end

local function text_of(doc)
  if type(doc) == "table" then return table.concat(doc, "\n") end
  return doc
end

-- Adds the parameters of a signature (complete/signatures.lua); returns their names.
local function add_parameters(out, params)
  local names, open = {}, nil
  for _, param in ipairs(params) do
    local name = keywords[param.name] and param.name .. "_" or param.name
    local kind = type_of(param)
    for word in param.type:gmatch "[^|]+" do open = open or spread[word] end
    -- Options may come as one table behind the arguments that must be given.
    if not param.required or open then kind = kind .. "|table" end
    local default = param.default and param.default ~= "nil" and " default " .. param.default or ""
    out[#out + 1] = ("---@param %s%s %s%s"):format(name, param.required and not open and "" or "?",
      kind, default)
    names[#names + 1] = name
  end
  if open then
    out[#out + 1] = "---@param ... any"
    names[#names + 1] = "..."
  end
  return names
end

local function add_results(out, results)
  for _, result in ipairs(results) do out[#out + 1] = "---@return " .. type_of{type = result} end
end

-- The parameters of a function written in Lua without a signature, as LuaLS would infer them.
local function lua_names(f)
  local info, names = debug.getinfo(f, "Su"), {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if names[1] == "self" then table.remove(names, 1) end
  if info.isvararg then names[#names + 1] = "..." end
  return names
end

-- The declaration of a function, or of what makes an object of a class: `call` is how it is written,
-- "lt.matmul" or "Tensor:matmul".
local function declare(out, call, f, doc, extra)
  comment(out, doc)
  local signature = signatures.of(f, call:match "[%w_]+$")
  local names
  if signature then
    names = add_parameters(out, signature.params)
    add_results(out, signature.results)
    local result = signature.results[1]
    out[#out + 1] = ("---@overload fun(named: table)%s"):format(result and ": "
      .. type_of{type = result} or "")
  else
    names = type(f) == "function" and lua_names(f) or {"..."}
    for _, name in ipairs(names) do out[#out + 1] = ("---@param %s any"):format(name) end
    out[#out + 1] = "---@return any ..."
  end
  for _, line in ipairs(extra or {}) do out[#out + 1] = line end
  local owner, mark, key = call:match "^(.*)([.:])([%w_]+)$"
  if keywords[key] then
    if mark == ":" then table.insert(names, 1, "self") end
    out[#out + 1] = ("%s[%q] = function(%s) end"):format(owner, key, table.concat(names, ", "))
  else
    out[#out + 1] = ("function %s(%s) end"):format(call, table.concat(names, ", "))
  end
  out[#out + 1] = ""
end

-- ---- tensors

local operators = {"add", "sub", "mul", "div", "idiv", "mod", "pow", "band", "bor"}

local field_types = {
  shape = "integer[]", dtype = "lt.Dtype", device = "lt.Device", ndim = "integer",
  grad = "lt.Tensor?", requires_grad = "boolean", is_leaf = "boolean", grad_fn = "string?",
  itemsize = "integer", nbytes = "integer", is_cuda = "boolean", is_cpu = "boolean",
  is_mps = "boolean", is_meta = "boolean",
}

local function add_tensor(out)
  out[#out + 1] = "---A tensor."
  out[#out + 1] = "---@class lt.Tensor"
  for _, entry in ipairs(public.tensor()) do
    if entry.kind == "field" then
      out[#out + 1] = ("---@field %s %s %s"):format(entry.key, field_types[entry.key] or "lt.Tensor",
        entry.text)
    end
  end
  for _, name in ipairs(operators) do
    out[#out + 1] = ("---@operator %s(lt.Tensor|number|boolean): lt.Tensor"):format(name)
  end
  for _, name in ipairs {"unm", "bnot"} do
    out[#out + 1] = ("---@operator %s: lt.Tensor"):format(name)
  end
  out[#out + 1] = "---@operator len: integer"
  out[#out + 1] = "---@field [any] lt.Tensor"
  out[#out + 1] = "local Tensor = {}"
  out[#out + 1] = ""
  for _, entry in ipairs(public.tensor()) do
    if entry.kind ~= "field" then
      declare(out, "Tensor:" .. entry.key, entry.value, text_of(functions.summary(entry.value)))
    end
  end
end

-- ---- tables and classes

-- "nn.Linear" -> "nn_Linear", a local variable of the file.
local function variable(name) return (name:gsub("%.", "_")) end

local function type_name(name) return name == "lt" and "lutra" or name end

local function class_type(class)
  for _, record in ipairs(public.tables()) do
    for _, entry in ipairs(record.entries) do
      if entry.kind == "class" and not entry.alias_of and rawequal(entry.value, class) then
        return entry.name
      end
    end
  end
end

local function add_class(out, entry)
  local class, above = entry.value, nil
  for _, ancestor in ipairs(public.ancestors(class)) do above = above or class_type(ancestor) end
  comment(out, classes.summary(class))
  out[#out + 1] = ("---@class %s%s"):format(entry.name, above and ": " .. above or "")
  out[#out + 1] = "---@field [any] any"
  out[#out + 1] = ("---@overload fun(...: any): %s"):format(entry.name)
  out[#out + 1] = ("local %s = {}"):format(variable(entry.name))
  out[#out + 1] = ""
  for _, method in ipairs(entry.methods) do
    local extra = method.key == "extend" and {"---@return " .. entry.name} or nil
    declare(out, variable(entry.name) .. ":" .. method.key, method.value,
      functions.summary(method.value), extra)
  end
end

-- Declares a table: classes first, then the table with its fields, then its functions.
local function add_table(out, record, children)
  for _, entry in ipairs(record.entries) do
    if entry.kind == "class" and not entry.alias_of then add_class(out, entry) end
  end
  comment(out, catalogue.summary(record.value))
  out[#out + 1] = "---@class " .. type_name(record.name)
  for _, entry in ipairs(record.entries) do
    if entry.kind == "class" then
      out[#out + 1] = ("---@field %s %s"):format(entry.key, entry.alias_of or entry.name)
    elseif entry.kind == "table" then
      out[#out + 1] = ("---@field %s %s"):format(entry.key, entry.alias_of)
    elseif entry.kind == "value" then
      out[#out + 1] = ("---@field %s %s %s"):format(entry.key, type(entry.value),
        builtin.values[entry.key] or "")
    end
  end
  for _, child in ipairs(children) do
    out[#out + 1] = ("---@field %s %s"):format(child[1], type_name(child[2]))
  end
  out[#out + 1] = ("local %s = {}"):format(variable(record.name))
  out[#out + 1] = ""
  for _, entry in ipairs(record.entries) do
    if entry.kind == "function" or entry.kind == "op" then
      declare(out, variable(record.name) .. "." .. entry.key, entry.value,
        entry.op and entry.op.doc or functions.summary(entry.value))
    end
  end
end

local aliases = [[
---@meta lutra

---A dtype's name.
---@alias lt.Dtype "float64"|"float32"|"float16"|"bfloat16"|"int64"|"int32"|"int16"|"int8"|"uint8"|"bool"|"complex64"|"complex128"|string
---A device's name: "cpu", "cuda:0", "mps", "meta".
---@alias lt.Device string
---A complex number.
---@class lt.Complex
---@field re number
---@field im number
---A generator of random numbers.
---@class lt.Generator
---@field [any] any
]]

-- The tables directly inside a table: a list of {key, name}.
local function children_of(record, tables)
  local list = {}
  for _, other in ipairs(tables) do
    for key, value in next, record.value do
      if rawequal(value, other.value) and type(key) == "string" and other ~= record
          and not key:find "^_" then
        local alias = other.name:match "[%w_]+$" ~= key
        if not alias then list[#list + 1] = {key, other.name} end
      end
    end
  end
  return list
end

--- The annotations as text.
function stubs.text()
  local out = {aliases}
  add_tensor(out)
  local tables = public.tables()
  for i = #tables, 1, -1 do add_table(out, tables[i], children_of(tables[i], tables)) end
  out[#out + 1] = "return lt"
  return table.concat(out, "\n") .. "\n"
end

--- Writes folder/library/lutra.lua; an error where that fails. Returns the path.
function stubs.write(folder)
  local files = require "lutra.files"
  local path = folder .. "/library/lutra.lua"
  return path, files
end

return stubs
