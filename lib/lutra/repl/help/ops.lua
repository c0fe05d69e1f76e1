--- Help pages of ops. A page is generated from the op's row (lt.ops()) and by running its example
-- (examples.lua) on the CPU: shapes from its arguments and results, dtypes from those that it
-- accepts, the gradient from a backward pass.
--
-- Invariant: the user's state does not change: random numbers, print options and gradients are
-- unaffected.

local core = require "lutra.core"
local lt = require "lutra"
local examples = require "lutra.repl.help.examples"
local namespaces = require "lutra.internal.namespaces"
local scope_guard = require "lutra.internal.scope_guard"
local format_value = require "lutra.repl.format_value"
local source = require "lutra.repl.help.source"
local wrap = require "lutra.repl.help.wrap"

local ops = {}

local dtypes = {
  "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
  "complex128", "complex64",
}
-- Returns the dtypes from first to last, then the complex ones.
local function with_complex(first, last)
  local list = {table.unpack(dtypes, first, last)}
  return table.move(dtypes, 11, 12, #list + 1, list)
end
local sets = {
  {"all", dtypes},
  {"all but bool", with_complex(1, 9)},
  {"all but complex", {table.unpack(dtypes, 1, 10)}},
  {"integers and floats", {table.unpack(dtypes, 1, 9)}},
  {"floats", {table.unpack(dtypes, 1, 4)}},
  {"floats and complex", with_complex(1, 4)},
  {"complex128, complex64", {table.unpack(dtypes, 11)}},
  {"float64, float32", {table.unpack(dtypes, 1, 2)}},
  {"integers and bool", {table.unpack(dtypes, 5, 10)}},
  {"integers", {table.unpack(dtypes, 5, 9)}},
}

-- Descriptions of the types of arguments.
local kinds = {
  Tensor = "tensor", ["Tensor[]"] = "list of tensors", Operand = "tensor or number",
  Index = "int64 tensor: indices, from 1", ["Index[]"] = "list of int64 tensors",
  Scalar = "number", int = "integer", float = "number", bool = "boolean",
  string = "string", dtype = 'dtype, as "float32"', device = 'device, as "cpu" or "cuda:0"',
  Generator = "lt.Generator", sizes = "sizes: 2, 3 or {2, 3}", ints = "integers",
  dim = "dimension: from 1, -1 is the last",
  dims = "one or several dimensions: from 1, -1 is the last",
  position = "index: from 1, -1 is the last",
  ["ints[]"] = "lists of integers", ["dims[]"] = "lists of dimensions: from 1",
  ["floats[]"] = "lists of numbers", ["Tensor[][]"] = "lists of tensors",
  data = "value or table", any = "any value", ["function"] = "function", list = "list",
}

-- ---- which functions are ops

local by_function -- function -> {op = row, name = the user's name for it}

local function index_alias(op, alias)
  local found = {rawget(lt, alias) or false, rawget(lt._methods, alias) or false}
  for space in pairs(op.namespaces) do
    found[#found + 1] = rawget(namespaces.ops(space), alias) or false
  end
  for _, f in ipairs(found) do
    if f and not by_function[f] then by_function[f] = {op = op, name = alias} end
  end
  local in_place = op.variants.in_place and rawget(lt._methods, alias .. "_")
  if in_place then by_function[in_place] = {op = op, name = alias .. "_"} end
end

local function index_functions()
  by_function = {}
  for _, op in ipairs(lt.ops()) do
    if op.name:sub(1, 1) ~= "_" then
      local in_place = op.variants.in_place and lt._methods[op.name .. "_"]
      if in_place then by_function[in_place] = {op = op, name = op.name .. "_"} end
      local method = op.variants.method and lt._methods[op.name]
      if method then by_function[method] = {op = op, name = op.name} end
      local f = op.variants["function"] and rawget(lt, op.name)
      if f then by_function[f] = {op = op, name = op.name} end
      for space, name in pairs(op.namespaces) do
        local called = namespaces.ops(space)[name]
        if not by_function[called] then by_function[called] = {op = op, name = name} end
      end
      if op.call then by_function[op.call] = {op = op, name = op.name} end
      for _, alias in ipairs(op.aliases) do index_alias(op, alias) end
    end
  end
end

--- Returns the row of the op that a function is (a function, a method or an in-place method), or
-- nil.
function ops.find(f)
  if not by_function then index_functions() end
  local found = by_function[f]
  return found and found.op
end

--- Returns the rows of all ops of the core that a user can call.
function ops.public()
  local list = {}
  for _, op in ipairs(lt.ops()) do
    local v = op.variants
    local called = v["function"] or v.method or v.in_place or next(op.namespaces)
    if op.name:sub(1, 1) ~= "_" and called and not op.call then
      list[#list + 1] = op
    end
  end
  return list
end

-- ---- how it is called

local function parameters(op, first)
  local list = {}
  for i = first, #op.params do
    local p = op.params[i]
    list[#list + 1] = {name = p.name, optional = p.optional, default = p.default}
  end
  return list
end

local inplace = {name = "inplace", type = "bool", optional = true, default = "false"}

-- Returns the parameters of an op's function in a namespace.
local function in_space(op, space)
  local list = parameters(op, 1)
  if op.inplace and space == "F" then list[#list + 1] = inplace end
  return list
end

local function call_text(name, list)
  local text = source.parameters_text(list)
  return text:sub(1, 1) == "{" and name .. text or name .. "(" .. text .. ")"
end

-- Iterates over an op's namespaces and its names there.
local function ordered_spaces(op)
  local list, i = {}, 0
  for space in pairs(op.namespaces) do list[#list + 1] = space end
  table.sort(list)
  return function()
    i = i + 1
    local space = list[i]
    if space then return space == "F" and space or "lt." .. space, op.namespaces[space] end
  end
end

--- Returns the ways to call an op: a list of strings.
function ops.signatures(op)
  local list = {}
  local name, v = op.name, op.variants
  if v["function"] then list[1] = call_text("lt." .. name, parameters(op, 1)) end
  for space, own in ordered_spaces(op) do
    list[#list + 1] = call_text(space .. "." .. own, in_space(op, space))
  end
  if v.method then list[#list + 1] = call_text("x:" .. name, parameters(op, 2)) end
  if v.in_place then list[#list + 1] = call_text("x:" .. name .. "_", parameters(op, 2)) end
  return list
end

-- ---- trying an op

-- Returns the arguments of a call: "1, 2" of "(1, 2)", a table as it is.
local function unwrap(text) return text:match "^%((.*)%)$" or text end

-- Parses an example: {f = the function it calls, arguments = the text of its arguments}.
local function read_example(text)
  local path, inside = text:match "^([%w_%.]+%.[%w_]+)(%b())$"
  if not path then path, inside = text:match "^([%w_%.]+%.[%w_]+)(%b{})$" end
  if path then
    local f = load("return " .. path, "=example", "t", {lt = lt, F = lt.F})
    return f and {f = f(), arguments = unwrap(inside)}
  end
  local receiver, method
  receiver, method, inside = text:match "^(.*):([%w_]+)(%b())$"
  if not method then receiver, method, inside = text:match "^(.*):([%w_]+)(%b{})$" end
  if not method then -- a keyword: x["repeat"](x, 2)
    method, inside = text:match '%["(%a+)"%](%b())$'
    return method and {f = lt._methods[method], arguments = unwrap(inside)}
  end
  inside = unwrap(inside)
  return {f = lt._methods[method], arguments = receiver .. (inside ~= "" and ", " .. inside or "")}
end

local function evaluate(text)
  return table.pack(assert(load("return " .. text, "=example", "t", {lt = lt, F = lt.F}))())
end

-- Returns the arguments that are the op's main tensors, not indices, masks or targets of another
-- dtype: a list of {position, tensor}.
local function subjects(op, values)
  local list, dtype = {}, nil
  for i = 1, values.n do
    local p, value = op.params[i], values[i]
    local kind = p and p.type
    local numeric = kind == "Tensor" or kind == "Operand" or kind == "Index" and i == 1
    if numeric and p.name ~= "mask" and p.name ~= "condition" and lt.is_tensor(value)
        and (not dtype or value.dtype == dtype) then
      dtype = value.dtype
      list[#list + 1] = {i, value}
    elseif p and p.type == "Tensor[]" then
      list[#list + 1] = {i, value}
    end
  end
  return list
end

-- Calls the op as its example does, with its tensors replaced by convert(tensor).
local function try(op, example, convert)
  local values = evaluate(example.arguments)
  for _, subject in ipairs(subjects(op, values)) do
    local place, value = subject[1], subject[2]
    if lt.is_tensor(value) then
      values[place] = convert(value)
    else
      local list = {}
      for i, x in ipairs(value) do list[i] = convert(x) end
      values[place] = list
    end
  end
  return table.pack(pcall(example.f, table.unpack(values, 1, values.n)))
end

local function takes(op, example, dtype)
  local values = evaluate(example.arguments)
  if #subjects(op, values) > 0 then
    local complex = dtype:find "^complex"
    return try(op, example, function(x) return (complex and x or lt.real(x)):to(dtype) end)[1]
  end
  values[values.n + 1] = {dtype = dtype}
  return (pcall(example.f, table.unpack(values, 1, values.n + 1)))
end

local function same_list(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

--- Returns the list of dtypes that an op accepts.
function ops.dtypes(op)
  local example, list = read_example(examples.of(op)), {}
  for _, dtype in ipairs(dtypes) do
    if takes(op, example, dtype) then list[#list + 1] = dtype end
  end
  return list
end

local function dtypes_text(op)
  local list = ops.dtypes(op)
  for _, set in ipairs(sets) do
    if same_list(set[2], list) then return set[1] end
  end
  return #list > 0 and table.concat(list, ", ") or "see the description"
end

-- Returns the sum of the results that can have a gradient, with weights that do not cancel.
local function weighted_sum(results)
  local total
  local function add(x)
    if type(x) == "table" then
      for _, y in ipairs(x) do add(y) end
    elseif lt.is_tensor(x) and x.requires_grad and x:numel() > 0 then
      local sum = (x:reshape(-1) * lt.arange(1, x:numel()):to(x.dtype)):sum()
      if x.dtype:find "^complex" then sum = lt.real(sum) + lt.imag(sum) end
      total = total and total + sum or sum
    end
  end
  for i = 2, results.n do add(results[i]) end
  return total
end

-- Returns "yes", "zero everywhere" or "no" for the gradient of an op with respect to the main
-- tensor with the number `only`, or to all with nil; nil when one of these gradients has no
-- formula. Also returns the number of main tensors.
local function gradient_of(op, example, only)
  local leaves, count = {}, 0
  local results = try(op, example, function(x)
    count = count + 1
    local leaf = lt.real(x):to("float32"):detach():clone()
    if only and only ~= count then return leaf end
    leaves[#leaves + 1] = leaf:requires_grad_(true)
    return leaf:clone() -- so that it may be changed in place
  end)
  local total = results[1] and weighted_sum(results)
  if not total then return "no", count end
  if not pcall(total.backward, total) then return nil, count end
  for _, leaf in ipairs(leaves) do
    if leaf.grad and leaf.grad:count_nonzero():item() > 0 then return "yes", count end
  end
  return "zero everywhere", count
end

--- Returns whether an op has a gradient: "yes", "yes, except for some arguments", "zero everywhere"
-- or "no".
function ops.gradient(op)
  local example = read_example(examples.of(op))
  return lt.enable_grad(function()
    local answer, count = gradient_of(op, example)
    if answer then return answer end
    for i = 1, count do
      if gradient_of(op, example, i) == "yes" then return "yes, except for some arguments" end
    end
    return "no"
  end)
end

local function shape_of(value)
  if lt.is_tensor(value) then return tostring(value.shape) end
  if type(value) ~= "table" then return nil end
  local list = {}
  for i, x in ipairs(value) do
    if not lt.is_tensor(x) then return nil end
    list[i] = tostring(x.shape)
  end
  return #list > 0 and "[" .. table.concat(list, ", ") .. "]" or nil
end

local function shapes_of(values, first)
  local list = {}
  for i = first, values.n do list[#list + 1] = shape_of(values[i]) end
  return table.concat(list, ", ")
end

--- Returns the shapes of an op's example, as "{2, 3}, {3, 4} -> {2, 4}".
function ops.shapes(op)
  local example = read_example(examples.of(op))
  local before = shapes_of(evaluate(example.arguments), 1)
  local results = try(op, example, function(x) return x end)
  local after = shapes_of(results, 2)
  return (before ~= "" and before .. " " or "") .. "-> " .. (after ~= "" and after or "no tensor")
end

-- Runs f with the settings of a new session; the user's random numbers, print options and defaults
-- are restored.
local function aside(width, f)
  local options = lt.get_printoptions()
  local _ <close> = scope_guard(lt.set_printoptions, options)
  local _ <close> = scope_guard(lt.set_rng_state, lt.get_rng_state())
  local _ <close> = scope_guard(lt.set_default_dtype, lt.get_default_dtype())
  lt.set_default_dtype "float32"
  lt.set_printoptions{linewidth = math.max(20, width)}
  return lt.with_device("cpu", f)
end

-- Returns the text of results, one after the other if they are too wide beside each other.
local function text_of(results, width)
  local text = format_value.values(table.unpack(results, 1, results.n))
  if results.n == 1 or utf8.len(text:match "[^\n]*") <= width then return text end
  local texts = {}
  for i = 1, results.n do texts[i] = format_value.values(results[i]) end
  return table.concat(texts, "\n")
end

--- Returns an op's example and the text of its result, at most `width` columns wide if possible.
function ops.example(op, width)
  local text = examples.of(op)
  return aside(width, function() return text, text_of(evaluate(text), width) end)
end

-- ---- the page

local function devices_text(op)
  local yes, no, away = {}, {}, {}
  for device, supported in pairs(op.support) do
    local here = device == "meta" or core._device_count(device) > 0
    local list = not here and away or supported and yes or no
    list[#list + 1] = device
  end
  for _, list in ipairs {yes, no, away} do table.sort(list) end
  local text = table.concat(yes, ", ")
  if #no > 0 then text = text .. "; not " .. table.concat(no, ", ") end
  if #away > 0 then text = text .. " (not on this machine: " .. table.concat(away, ", ") .. ")" end
  return text
end

-- Describes results: "Tensor values, Index indices" -> "values (tensor), indices (int64 tensor:
-- ...)".
local function results_text(op)
  local texts = {}
  for result in (op.signature:match "%->%s*(.*)$" or "Tensor"):gmatch "[^,]+" do
    local kind, name = result:match "^%s*(%S+)%s*([%w_]*)$"
    if kind then
      kind = kinds[kind] or kind
      texts[#texts + 1] = name ~= "" and ("%s (%s)"):format(name, kind) or kind
    else -- "Tensor or Index[]"
      texts[#texts + 1] = result:gsub("[%w_]+[%[%]]*", kinds)
    end
  end
  return table.concat(texts, ", ")
end

-- Describes an argument of one of several types or strings.
local function argument_text(p)
  local texts = {}
  for word in p.type:gmatch "[^|]+" do
    if word == "string" and p.choices then
      for _, choice in ipairs(p.choices) do texts[#texts + 1] = ("%q"):format(choice) end
    else
      texts[#texts + 1] = kinds[word] or word
    end
  end
  return table.concat(texts, " or ")
end

local function arguments_rows(op)
  local rows = {}
  local params = op.inplace and table.move(op.params, 1, #op.params, 1, {}) or op.params
  if op.inplace then params[#params + 1] = inplace end
  for _, p in ipairs(params) do
    local text = argument_text(p)
    if p.default == "nil" then
      text = text .. ", or nil"
    elseif p.default then
      text = text .. "; " .. "default " .. p.default
    elseif p.optional then
      text = text .. ", or nil"
    end
    rows[#rows + 1] = {p.name, text}
  end
  return rows
end

--- Returns the page of an op for `width` columns; paint(kind, text) colours.
function ops.page(op, width, paint)
  return aside(width - 2, function()
    local out = {}
    for _, text in ipairs(ops.signatures(op)) do
      out[#out + 1] = paint("heading", wrap.code(text, width, 4))
    end
    out[#out + 1] = ""
    out[#out + 1] = wrap.text(op.doc, width)
    out[#out + 1] = ""
    out[#out + 1] = wrap.rows(arguments_rows(op), width, 2)
    if #op.aliases > 0 then
      out[#out + 1] = wrap.rows({{"aliases", table.concat(op.aliases, ", ")}}, width, 0)
    end
    if op.source and not op.example then return table.concat(out, "\n") end
    local facts = {
      {"returns", results_text(op)}, {"shapes", ops.shapes(op)}, {"dtypes", dtypes_text(op)},
      {"gradient", ops.gradient(op)}, {"devices", devices_text(op)},
    }
    if op.source then facts = {facts[1]} end
    out[#out + 1] = ""
    out[#out + 1] = wrap.rows(facts, width, 0)
    out[#out + 1] = ""
    local code, result = ops.example(op, width - 2)
    out[#out + 1] = paint("faint", "> ") .. wrap.code(code, width - 2, 4)
    out[#out + 1] = result
    return table.concat(out, "\n")
  end)
end

--- Returns the text shown as an op's source: its row.
function ops.source_text(op)
  return ("%s%s\n  %s op, written in C: a row of src/tensor/ops.def"):format(op.name, op.signature,
    op.kind)
end

-- ---- for the reference (tools/docs/reference.lua)

ops.dtypes_text, ops.devices_text, ops.results = dtypes_text, devices_text, results_text

--- Returns the arguments of an op: a list of {name, text}.
function ops.arguments(op)
  local list = {}
  for i, row in ipairs(arguments_rows(op)) do list[i] = {name = row[1], text = row[2]} end
  return list
end

--- Returns the call with one table: positional arguments, then names.
function ops.named_call(op)
  local parts = {}
  for _, p in ipairs(op.params) do
    parts[#parts + 1] = p.optional and ("%s = %s"):format(p.name, p.default or "nil") or p.name
  end
  local name, space = op.name, next(op.namespaces)
  if op.variants["function"] then
    name = "lt." .. name
  elseif space then
    name = (space == "F" and "F." or "lt." .. space .. ".") .. op.namespaces[space]
  else
    table.remove(parts, 1)
    name = "x:" .. name .. (op.variants.method and "" or "_")
  end
  return name .. "{" .. table.concat(parts, ", ") .. "}"
end

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  return not ok and type(message) == "string" and message:gsub("^[^\n:]+:%d+: ", "") or nil
end

-- Returns the message for the first dtype that an op does not accept.
local function dtype_error(op, example)
  if #subjects(op, evaluate(example.arguments)) == 0 then return nil end
  for i = #dtypes, 1, -1 do
    if dtypes[i] ~= "complex128" and not takes(op, example, dtypes[i]) then
      local convert = function(x) return lt.real(x):to(dtypes[i]) end
      local result = try(op, example, convert)
      return dtypes[i], message_of(error, result[2], 0)
    end
  end
end

-- Returns the message for a last tensor of another shape.
local function shape_error(example)
  local values, last = evaluate(example.arguments), nil
  for i = 2, values.n do
    if lt.is_tensor(values[i]) then last = i end
  end
  if not last then return nil end
  values[last] = lt.ones{3, 7, 11, dtype = values[last].dtype}
  return message_of(example.f, table.unpack(values, 1, values.n))
end

--- Returns the messages of common mistakes, by making them: a list of {mistake, message}.
function ops.errors(op)
  return aside(80, function()
    local example, list = read_example(examples.of(op)), {}
    local function add(mistake, message)
      if message then list[#list + 1] = {mistake, message} end
    end
    local values = evaluate(example.arguments)
    if lt.is_tensor(values[1]) then
      values[1] = "x"
      local message = message_of(example.f, table.unpack(values, 1, values.n))
      add("a string as the first argument", message)
    end
    local dtype, message = dtype_error(op, example)
    add(dtype and "dtype " .. dtype, message)
    add("a tensor of shape {3, 7, 11} as the last one", shape_error(example))
    return list
  end)
end

return ops
