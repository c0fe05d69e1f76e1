--- Annotations of the library for LuaLS (lua-language-server) and editors that use it:
-- `lutra --stubs DIR` writes DIR/library/lutra.lua.
--
-- Idea: every function is declared from the record by which its arguments are read, so that the
-- annotations cannot differ from it. The server reads DIR when .luarc.json lists it among the
-- libraries of the workspace.

local builtin = require "lutra.repl.help.builtin"
local catalogue = require "lutra.repl.help.catalogue"
local classes = require "lutra.repl.help.classes"
local command_line = require "lutra.repl.command_line"
local files = require "lutra.repl.files"
local functions = require "lutra.repl.help.functions"
local public = require "lutra.repl.help.public"
local signatures = require "lutra.repl.complete.signatures"

local stubs = {}

-- Types of signatures (src/tensor/ops.def) in LuaLS; any other is `any`.
local types = {
  Tensor = "lt.Tensor", Index = "lt.Tensor", Operand = "lt.Tensor|number|lt.Complex",
  Scalar = "number|lt.Complex", int = "integer", float = "number", bool = "boolean",
  string = "string", dtype = "lt.Dtype", device = "lt.Device", Generator = "lt.Generator",
  dim = "integer", position = "integer", sizes = "integer|integer[]", ints = "integer|integer[]",
  dims = "integer|integer[]", floats = "number|number[]", ["function"] = "function",
  table = "table", ["Tensor[]"] = "lt.Tensor[]", ["Index[]"] = "lt.Tensor[]",
}
-- Types of arguments that may be given as several arguments: zeros(2, 3).
local spread = {sizes = true, ints = true, dims = true}

local keywords = {}
for word in ("and break do else elseif end false for function goto if in local nil not or repeat "
  .. "return then true until while"):gmatch "%a+" do keywords[word] = true end

local function type_of(param)
  if param.name == "params" then return "lt.Tensor[]|table|function" end -- of optimizers
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

-- Returns the parameters of a signature (complete/signatures.lua) as a list of {name, optional,
-- type, default}. Options may be given as one table behind the required arguments. Anything may
-- follow an argument that is given as several.
local function declared(params)
  local list = {}
  for _, param in ipairs(params) do
    local reserved = keywords[param.name] or param.name == "self"
    local name = reserved and param.name .. "_" or param.name
    local kind, open = type_of(param), false
    for word in param.type:gmatch "[^|]+" do open = open or spread[word] end
    list[#list + 1] = {name = name, optional = not param.required or open,
      type = (param.required and not open) and kind or kind .. "|table",
      default = param.default ~= "nil" and param.default or nil}
    if open then
      list[#list + 1] = {name = "...", type = "any"}
      break
    end
  end
  return list
end

-- Adds the lines of the parameters; returns their names.
local function add_parameters(out, params)
  local names = {}
  for _, p in ipairs(declared(params)) do
    out[#out + 1] = ("---@param %s%s %s%s"):format(p.name, p.optional and "?" or "", p.type,
      p.default and " default " .. p.default or "")
    names[#names + 1] = p.name
  end
  return names
end

-- Returns the type of a function that makes objects of a class.
local function maker_type(class, result)
  local signature = signatures.of(class, classes.name(class))
  local parts = {}
  for i, p in ipairs(signature and declared(signature.params) or {{name = "...", type = "any"}}) do
    parts[i] = ("%s%s: %s"):format(p.name, p.optional and "?" or "", p.type)
  end
  return ("fun(%s): %s"):format(table.concat(parts, ", "), result)
end

local function add_results(out, results)
  for _, result in ipairs(results) do out[#out + 1] = "---@return " .. type_of{type = result} end
end

-- Returns the parameters of a function written in Lua without a signature, as LuaLS would infer
-- them.
local function lua_names(f)
  local info, names = debug.getinfo(f, "Su"), {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if names[1] == "self" then table.remove(names, 1) end
  if info.isvararg then names[#names + 1] = "..." end
  return names
end

-- Adds the declaration of a function. `call` is its full name: "lt.matmul" or "Tensor:matmul".
-- `extra`: further lines; `returns`: the type of the result when the signature has none.
local function declare(out, call, f, doc, extra, returns)
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
    if not returns then out[#out + 1] = "---@return any ..." end
  end
  if returns then out[#out + 1] = ("---@return %s"):format(returns) end
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
      local kind = field_types[entry.key] or "lt.Tensor"
      out[#out + 1] = ("---@field %s %s %s"):format(entry.key, kind, entry.text)
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

-- Returns the local variable of the file for a class: "nn_Linear" for "nn.Linear".
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

local function add_methods(out, entry)
  for _, method in ipairs(entry.methods) do
    local extra = method.key == "extend" and {"---@return " .. entry.name} or nil
    declare(out, variable(entry.name) .. ":" .. method.key, method.value,
      functions.summary(method.value), extra)
  end
end

-- Adds an object of a class without a public name.
local function add_object(out, entry)
  out[#out + 1] = ("---What %s returns."):format(entry.made_by)
  out[#out + 1] = "---@class lt." .. entry.name
  out[#out + 1] = "---@field [any] any"
  out[#out + 1] = ("local %s = {}"):format(entry.name)
  out[#out + 1] = ""
  add_methods(out, entry)
end

-- A block of its own: Lua limits the number of local variables of one.
local function add_class(out, entry)
  local class, above = entry.value, nil
  out[#out + 1] = "do"
  for _, ancestor in ipairs(public.ancestors(class)) do above = above or class_type(ancestor) end
  comment(out, classes.summary(class))
  out[#out + 1] = ("---@class %s%s"):format(entry.name, above and ": " .. above or "")
  out[#out + 1] = "---@field [any] any"
  local makers = {maker_type(class, entry.name), "fun(named: table): " .. entry.name}
  for i, maker in ipairs(makers) do
    if i == 1 or maker ~= makers[1] then out[#out + 1] = "---@overload " .. maker end
  end
  out[#out + 1] = ("local %s = {}"):format(variable(entry.name))
  out[#out + 1] = ""
  add_methods(out, entry)
  out[#out + 1] = "end"
end

-- The result types of functions that make objects: name -> type.
local made = {["lt.Generator"] = "lt.Generator"}

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
      local text = builtin.values[entry.key]
      out[#out + 1] = ("---@field %s %s%s"):format(entry.key, type(entry.value),
        text and " " .. text or "")
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
        entry.op and entry.op.doc or functions.summary(entry.value), nil, made[entry.name])
    end
  end
end

local aliases = [[
---@meta lutra

---A dtype's name.
---@alias lt.Dtype %s|string
---A device's name: "cpu", "cuda:0", "mps", "meta".
---@alias lt.Device string
---A complex number.
---@class lt.Complex
---@field re number
---@field im number
local Complex = {}

---A generator of random numbers.
---@class lt.Generator
---@field [any] any
local Generator = {}
]]

-- Returns the tables directly inside a table: a list of {key, name}.
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

--- Returns the annotations as text.
function stubs.text()
  local tables, dtypes = public.tables(), {}
  for _, entry in ipairs(tables[1].entries) do -- lt.float32 == "float32"
    if entry.value == entry.key and entry.key ~= "newaxis" then
      dtypes[#dtypes + 1] = ("%q"):format(entry.key)
    end
  end
  local out = {aliases:format(table.concat(dtypes, "|"))}
  add_tensor(out)
  for _, object in ipairs(public.objects()) do
    made[object.made_by] = made[object.made_by] or "lt." .. object.name
    add_object(out, object)
  end
  for i = #tables, 1, -1 do add_table(out, tables[i], children_of(tables[i], tables)) end
  out[#out + 1] = "return lt"
  return table.concat(out, "\n") .. "\n"
end

--- Writes the file below options.stubs, for --stubs. Returns the exit status.
function stubs.run(options)
  local folder = options.stubs .. "/library"
  os.execute("mkdir -p " .. command_line.quote(folder))
  local ok, why = files.write(folder .. "/lutra.lua", stubs.text())
  if not ok then error("--stubs: cannot write " .. why, 0) end
  return 0
end

return stubs
