--- Warnings of `lutra --check`: code that compiles and does not do what it seems to do with
-- tensors.
--
-- The check reads tokens and knows no types: a name holds a tensor when every assignment to it in
-- the file is a call of a function of lt or F that makes tensors, or of methods of tensors.
-- Invariant: nothing runs.

local lexer = require "lutra.repl.lexer"
local other_languages = require "lutra.repl.other_languages"

local check_code = {}

-- Functions of lt that return a tensor.
local makers = {}
for name in ([[tensor zeros ones rand randn randint randperm arange linspace logspace full eye empty
  zeros_like ones_like rand_like randn_like full_like empty_like cat stack where matmul]])
  :gmatch "%S+" do
  makers[name] = true
end

-- Methods whose result is a bool tensor.
local masks = {}
for name in ([[eq ne lt le gt ge isnan isinf isfinite isin logical_and logical_or logical_xor
  logical_not]]):gmatch "%S+" do
  masks[name] = true
end

-- Methods whose result is a tensor, also where it has one element.
local results = {}
for name in ([[sum mean prod std var norm any all argmax argmin cumsum exp log abs sqrt square pow
  sigmoid tanh relu softmax clone detach contiguous float double half long int bool cuda cpu to view
  reshape flatten squeeze unsqueeze permute transpose t matmul mm add sub mul div max min clamp]])
  :gmatch "%S+" do
  results[name] = true
end

-- Those of them that objects which are no tensors are unlikely to have.
local reductions = {}
for name in ([[sum mean prod std var norm any all argmax argmin]]):gmatch "%S+" do
  reductions[name] = true
end

local comparisons = {["=="] = "eq", ["~="] = "ne", ["<"] = "lt", ["<="] = "le", [">"] = "gt",
  [">="] = "ge"}

-- Reads the tokens of a file: {kind, text, line, partner}, where partner is the index of the
-- matching bracket.
local function read(text)
  local list, line, at, open = {}, 1, 1, {}
  for _, token in ipairs(lexer.significant(text)) do
    local _, newlines = text:sub(at, token[3] - 1):gsub("\n", "")
    line, at = line + newlines, token[3]
    list[#list + 1] = {kind = token[1], text = token[2], line = line}
    if token[1] == "op" and token[2]:find "^[%(%[{]$" then open[#open + 1] = #list end
    if token[1] == "op" and token[2]:find "^[%)%]}]$" and #open > 0 then
      local first = table.remove(open)
      list[first].partner, list[#list].partner = #list, first
    end
  end
  return list
end

local function is(list, i, text) return list[i] ~= nil and list[i].text == text end
local function is_name(list, i) return list[i] ~= nil and list[i].kind == "name" end
local function is_member(list, i) return is(list, i - 1, ".") or is(list, i - 1, ":") end

-- Returns whether token i ends an expression, so that a bracket after it calls or indexes it.
local function ends_expression(list, i)
  local token = list[i]
  return token ~= nil and (token.kind == "name" or token.kind == "string" or token.text == ")"
    or token.text == "]" or token.text == "}")
end

-- Returns the last token of the calls and indices that follow token i, as those of x:eq(1):any(),
-- and the name of the method that is called last, or nil.
local function chain(list, i)
  local method
  while true do
    local token = list[i + 1]
    if not token then return i, method end
    if (token.text == "." or token.text == ":") and is_name(list, i + 2) then
      method, i = token.text == ":" and list[i + 2].text or nil, i + 2
      if method and list[i + 1] and list[i + 1].kind == "string" then i = i + 1 end
    elseif token.partner and token.partner > i + 1 and token.line == list[i].line then
      if token.text == "[" then method = nil end
      i = token.partner
    else
      return i, method
    end
  end
end

-- Returns the index of the last token of the expression at token i if it makes a tensor: a call of
-- lt or F, or a name in `found`, and calls of methods; nil for another one.
local function tensor_at(list, i, found)
  local last
  local space = is(list, i + 1, ".") and is_name(list, i + 2) and list[i].text
  if space == "F" or space == "lt" and makers[list[i + 2].text] then
    if not ends_expression(list, (list[i + 3] or {}).partner or 0) then return nil end
    last = list[i + 3].partner
  elseif is_name(list, i) and found[list[i].text] and is(list, i + 1, ":") then
    last = i
  end
  while last and is(list, last + 1, ":") do
    local called = is_name(list, last + 2) and list[last + 3] and list[last + 3].partner
    if not called or not results[list[last + 2].text] and not masks[list[last + 2].text] then
      return nil
    end
    last = called
  end
  return last
end

-- Returns whether an operator or a field after token i may make something else of a tensor.
local function goes_on(list, i)
  local after = list[i + 1]
  return after and (after.kind == "op" and after.text:find "^[:%.%[<>=~]" or after.text == "and"
    or after.text == "or")
end

-- Reads an assignment to several names whose first one is token i: notes which of them hold
-- tensors. Other lists of names, as those of a loop, hold unknown values.
local function read_several(list, i, found)
  local names = {list[i].text}
  local k = i + 1
  while is(list, k, ",") and is_name(list, k + 1) do
    names[#names + 1], k = list[k + 1].text, k + 2
  end
  local is_assignment = is(list, k, "=")
  k = k + 1
  for place, name in ipairs(names) do
    local last = is_assignment and k and tensor_at(list, k, found)
    local makes = last and not goes_on(list, last) and (place == 1 or found[name] ~= false)
    k = last and is(list, last + 1, ",") and last + 2 or nil
    found[name] = found[name] ~= false and makes or false
  end
end

-- Marks the parameters of the function at token i as names of unknown values.
local function mark_parameters(list, i, found)
  local k = i + 1
  while is_name(list, k) or is(list, k, ".") or is(list, k, ":") do k = k + 1 end
  for p = k, is(list, k, "(") and list[k].partner or 0 do
    if is_name(list, p) then found[list[p].text] = false end
  end
end

-- Returns the names that hold tensors wherever they are assigned.
local function tensors_of(list)
  local found = {}
  for i = 1, #list do
    if is(list, i, "function") then mark_parameters(list, i, found) end
    if is_name(list, i) and not is_member(list, i) and is(list, i + 1, "=")
        and not is(list, i - 1, ",") and not is(list, i + 2, "=") then
      local last = tensor_at(list, i + 2, found)
      local name = list[i].text
      found[name] = found[name] ~= false and last and not goes_on(list, last) or false
    elseif is_name(list, i) and is(list, i + 1, ",") and not is_member(list, i)
        and not (list[i - 1] and list[i - 1].text:find "^[,{(%[]$") then
      read_several(list, i, found)
    elseif is_name(list, i) and not is_member(list, i) and (is(list, i - 1, ",")
        or is(list, i + 1, ",") or is(list, i + 1, "in")) then
      found[list[i].text] = found[list[i].text] or false -- one of several names
    end
  end
  return found
end

local rules = {}

-- Returns what the call that ends with token i is, "x:sum(...)", if it gives a tensor; else nil.
local function call_of_tensor(list, i, tensors)
  local open = list[i] and list[i].text == ")" and list[i].partner
  if not open or not is_name(list, open - 1) then return nil end
  local name = list[open - 1].text
  if is(list, open - 2, ".") then
    local makes = is(list, open - 3, "lt") and makers[name] or is(list, open - 3, "F")
    return makes and not is_member(list, open - 3) and list[open - 3].text .. "." .. name .. "(...)"
  end
  if not is(list, open - 2, ":") then return nil end
  local known = is_name(list, open - 3) and not is_member(list, open - 3)
    and tensors[list[open - 3].text]
  if not reductions[name] and not (known and (results[name] or masks[name])) then return nil end
  return (is_name(list, open - 3) and list[open - 3].text or "...") .. ":" .. name .. "(...)"
end

-- x[x == 0]: the key is one boolean.
function rules.index(list, i, tensors, warn)
  local last = list[i].text == "[" and ends_expression(list, i - 1) and list[i].partner
  if not last then return end
  local base = is_name(list, i - 1) and list[i - 1].text
  local in_tensor = base and not is_member(list, i - 1) and tensors[base]
  for k = i + 1, last do
    if is(list, k, "and") or is(list, k, "or") then return end
  end
  local k = i + 1
  while k < last do
    if list[k].partner and list[k].partner > k then
      k = list[k].partner
    elseif comparisons[list[k].text] and list[k].kind == "op" then
      local method = comparisons[list[k].text]
      local left = k == i + 2 and is_name(list, i + 1) and list[i + 1].text or "x"
      local right = k == last - 2 and list[k + 1].text or "y"
      -- Tables may have boolean keys, such as t[kind == "a"].
      local likely = in_tensor or base == left or list[k + 1].kind == "number"
      list[k].known = likely
      return likely and warn(list[k].line, ("%s gives one boolean in Lua, which is no index of a "
        .. "tensor; compare each element: %s:%s(%s)"):format(list[k].text, left, method, right))
    end
    k = k + 1
  end
end

-- x == 0 for a tensor x.
function rules.comparison(list, i, tensors, warn)
  local op = list[i].text
  if op ~= "==" and op ~= "~=" or list[i].kind ~= "op" or list[i].known then return end
  local left = is_name(list, i - 1) and not is_member(list, i - 1) and tensors[list[i - 1].text]
  local call = call_of_tensor(list, i - 1, tensors)
  if call and list[i + 1] and list[i + 1].kind == "number" then
    local value = list[i + 1].text
    return warn(list[i].line, ("%s gives a tensor, which never equals a number in Lua; compare "
      .. "each element: :%s(%s), or one: :item() %s %s"):format(call, comparisons[op], value, op,
      value))
  end
  local right = is_name(list, i + 1) and tensors[list[i + 1].text]
    and not (list[i + 2] and list[i + 2].text:find "^[%.:%[%({]")
  local number = left and list[i + 1] and list[i + 1].kind == "number" and i - 1
    or right and list[i - 1] and list[i - 1].kind == "number" and i + 1
  if not number then return end
  local name, value = list[number].text, list[2 * i - number].text
  warn(list[i].line, ("%s is a tensor, which never equals a number in Lua; compare each element: "
    .. "%s:%s(%s), or one: %s:item() %s %s"):format(name, name, comparisons[op], value, name, op,
    value))
end

-- not x for a tensor x.
function rules.negation(list, i, tensors, warn)
  if list[i].text ~= "not" or list[i].kind ~= "keyword" or not is_name(list, i + 1) then return end
  local after = list[i + 2] and list[i + 2].text or ""
  if tensors[list[i + 1].text] and not after:find "^[%.:%[%({]" and not comparisons[after] then
    return warn(list[i].line, ("%s is a tensor, so that not %s is false; invert each element: "
      .. "%s:logical_not()"):format(list[i + 1].text, list[i + 1].text, list[i + 1].text))
  end
  local last, method = chain(list, i + 1)
  if not method or comparisons[(list[last + 1] or {}).text] then return end
  if method == "any" or method == "all" then
    warn(list[i].line, ("not is false for a tensor; read its element: not ...:%s():item()")
      :format(method))
  elseif masks[method] then
    warn(list[i].line, ("not is false for a tensor; invert each element: %s:%s(...):logical_not()")
      :format(list[i + 1].text, method))
  end
end

-- A bracket at the start of a line that calls the value before it.
function rules.call(list, i, _, warn)
  local before = list[i - 1]
  if list[i].text == "(" and before and before.line < list[i].line
      and ends_expression(list, i - 1) then
    warn(list[i].line, other_languages.continues)
  end
end

-- Returns the index of the token after the name self.a at token i, and the name; nil for others.
local function field_of_self(list, i)
  if is(list, i, "self") and is(list, i + 1, ".") and is_name(list, i + 2) then
    return i + 3, list[i + 2].text
  end
end

-- self.a, self.b = nn.A(), nn.B()
function rules.registration(list, i, _, warn)
  local at, first = field_of_self(list, i)
  if not at or is(list, i - 1, ",") or not is(list, at, ",") then return end
  local last
  while at and is(list, at, ",") do at, last = field_of_self(list, at + 1) end
  local modules = at and is(list, at, "=") and is(list, at + 1, "nn") and is(list, at + 2, ".")
  if not modules then return end
  warn(list[i].line, ("Lua assigns from the right, so that self.%s is registered before self.%s; "
    .. "use one statement for each"):format(last, first))
end

local names = {}
for name in pairs(rules) do names[#names + 1] = name end
table.sort(names)

--- Returns the warnings about the code of a file: a list of {line, text} in the order of the lines.
function check_code.warnings(text)
  local list, found = read(text), {}
  local tensors = tensors_of(list)
  local function warn(line, message) found[#found + 1] = {line = line, text = message} end
  for i = 1, #list do
    for _, name in ipairs(names) do rules[name](list, i, tensors, warn) end
  end
  table.sort(found, function(a, b)
    if a.line ~= b.line then return a.line < b.line end
    return a.text < b.text
  end)
  return found
end

return check_code
