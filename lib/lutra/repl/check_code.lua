--- Warnings of `lutra --check`: code that compiles and does not do what it seems to do with
-- tensors.
--
-- The check reads tokens and knows no types: a name holds a tensor when every assignment to it in
-- the file is a call of a function of lt that makes tensors. Invariant: nothing runs.

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
      local name = list[i].text
      local makes = is(list, i + 2, "lt") and is(list, i + 3, ".") and is_name(list, i + 4)
        and makers[list[i + 4].text] and ends_expression(list, (list[i + 5] or {}).partner or 0)
      local last = makes and list[i + 5].partner
      -- A method or an operator after the call may return something else.
      local alone = last and not (list[last + 1] and list[last + 1].kind == "op"
        and list[last + 1].text:find "^[:%.%[<>=~]")
      if found[name] == nil then found[name] = alone or false end
      found[name] = found[name] and alone or false
    elseif is_name(list, i) and not is_member(list, i) and (is(list, i - 1, ",")
        or is(list, i + 1, ",") or is(list, i + 1, "in")) then
      found[list[i].text] = found[list[i].text] or false -- one of several names
    end
  end
  return found
end

local rules = {}

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
  local method = after == ":" and is_name(list, i + 3) and list[i + 3].text
  local last = method and masks[method] and list[i + 4] and list[i + 4].partner
  if not last or list[last + 1] and list[last + 1].text:find "^[%.:%[]" then return end
  warn(list[i].line, ("not is false for a tensor; invert each element: %s:%s(...):logical_not()")
    :format(list[i + 1].text, method))
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
