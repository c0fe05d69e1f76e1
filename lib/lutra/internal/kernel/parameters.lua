--- Reads the parameters of a kernel from its source.
--
-- This does not parse C++: comments and strings are blanked, `__global__ ... name(...)` is
-- searched, and each parameter is read as words: qualifiers, a type, stars, a name. Any other
-- parameter is rejected, as a kernel whose arguments cannot be checked is not called. The compiler
-- verifies the types (parameters.expression).

local parameters = {}

--- Returns a source with comments and strings replaced by blanks; line numbers do not change.
function parameters.strip(source)
  local function blank(text) return (text:gsub("[^\n]", " ")) end
  local out, at = {}, 1
  while true do
    local from = source:find("[/\"']", at)
    if not from then break end
    local to = select(2, source:find("^//[^\n]*", from))
      or select(2, source:find("^/%*.-%*/", from))
    if not to and source:sub(from, from) ~= "/" then
      local quote = source:sub(from, from)
      local i = from + 1
      while i <= #source and source:sub(i, i) ~= quote and source:sub(i, i) ~= "\n" do
        i = i + (source:sub(i, i) == "\\" and 2 or 1)
      end
      to = math.min(i, #source)
    end
    to = to or from
    local piece = source:sub(from, to)
    out[#out + 1] = source:sub(at, from - 1)
    out[#out + 1] = piece == "/" and piece or blank(piece)
    at = to + 1
  end
  out[#out + 1] = source:sub(at)
  return table.concat(out)
end

-- The elements of types of one word; types of several words are composed.
local NAMED = {
  float = "float32", double = "float64", bool = "bool", void = "any", size_t = "uint64",
  half = "float16", __half = "float16", nv_bfloat16 = "bfloat16", __nv_bfloat16 = "bfloat16",
  int8_t = "int8", int16_t = "int16", int32_t = "int32", int64_t = "int64",
  uint8_t = "uint8", uint16_t = "uint16", uint32_t = "uint32", uint64_t = "uint64",
}
local INTEGER_WORDS = {int = true, char = true, short = true, long = true, unsigned = true,
  signed = true}
local QUALIFIERS = {const = true, volatile = true, restrict = true, __restrict__ = true,
  __restrict = true, __grid_constant__ = true}

-- Returns the element of a type: "uint64" for "unsigned long long"; nil for words that are no
-- type.
local function element_of(words)
  if #words == 1 and NAMED[words[1]] then return NAMED[words[1]] end
  local count = {}
  for _, word in ipairs(words) do
    if not INTEGER_WORDS[word] then return nil end
    count[word] = (count[word] or 0) + 1
  end
  local bits = count.char and 8 or count.short and 16 or count.long and 64 or 32
  return #words > 0 and (count.unsigned and "uint" or "int") .. bits or nil
end

-- CUDA's vector types: their names without the number of lanes.
local VECTORS = {
  char = "int8", uchar = "uint8", short = "int16", ushort = "uint16", int = "int32",
  uint = "uint32", long = "int64", ulong = "uint64", longlong = "int64", ulonglong = "uint64",
  float = "float32", double = "float64",
}
local PAIRS = {half2 = "float16", __half2 = "float16", nv_bfloat162 = "bfloat16",
  __nv_bfloat162 = "bfloat16"}

-- Returns element and lanes of a vector type: "float32", 4 for "float4"; nil for any other word.
local function vector_of(word)
  if PAIRS[word] then return PAIRS[word], 2 end
  local base, lanes = word:match "^(%l+)([1-4])$"
  return VECTORS[base], tonumber(lanes)
end

local function is_type_word(word)
  return INTEGER_WORDS[word] or NAMED[word] or vector_of(word)
end

-- Reads one parameter: {name, type, element, lanes, pointer, written}; nil and its text for an
-- unsupported kind: a reference, a struct, a pointer to a pointer.
local function parse_one(text, number)
  text = text:gsub("[%s\\]+", " "):match "^ ?(.-) ?$"
  local plain, stars = text:gsub(" ?=.*$", ""):gsub("std::", ""):gsub("%[[^%]]*%]", "*"):gsub(
    "%*", " * ")
  if plain:find "[<>&:(]" then return nil, text end
  local words, const, behind = {}, "", false -- const: of what a pointer points to
  for token in plain:gmatch "%S+" do
    if token == "*" then
      behind = true
    elseif (token == "const" or token == "volatile") and not behind then
      if not const:find(token, 1, true) then const = const .. token .. " " end
    elseif not QUALIFIERS[token] then
      words[#words + 1] = token
    end
  end
  local name = "argument " .. number
  if #words > 1 and not is_type_word(words[#words]) then name = table.remove(words) end
  local element, lanes, pointer = element_of(words), 1, stars == 1
  if not element and pointer and #words == 1 then element, lanes = vector_of(words[1]) end
  if not element or stars > 1 or (element == "any" and not pointer) then return nil, text end
  return {
    name = name, element = element, lanes = lanes, pointer = pointer,
    written = pointer and not const:find("const", 1, true),
    type = (pointer and const or "") .. table.concat(words, " ") .. (pointer and " *" or ""),
  }
end

--- Splits a list of parameters at the commas outside brackets.
function parameters.split(list)
  local pieces, depth, from = {}, 0, 1
  for at, c in list:gmatch "()([,()<>])" do
    if c == "," then
      if depth == 0 then
        pieces[#pieces + 1] = list:sub(from, at - 1)
        from = at + 1
      end
    else
      depth = depth + ((c == "(" or c == "<") and 1 or -1)
    end
  end
  local last = list:sub(from)
  if last:find "%S" or #pieces > 0 then pieces[#pieces + 1] = last end
  if #pieces == 1 and pieces[1]:match "^%s*void%s*$" then return {} end
  return pieces
end

--- Returns the kernels of a source: a list of {name, list = the text between the brackets,
-- template}; and the line of the first `__global__` that is not followed by a function, or nil.
function parameters.kernels(source)
  local text, found, bad = parameters.strip(source), {}, nil
  for at, rest in text:gmatch "()__global__()" do
    local head = text:sub(rest):gsub("__launch_bounds__%s*%b()", " "):gsub(
      "__attribute__%s*%b()", " ")
    local name, list = head:match "^[^(){};]-([%a_][%w_]*)%s*(%b())"
    if not name then
      bad = bad or select(2, text:sub(1, at):gsub("\n", "")) + 1
    elseif not found[name .. list] then -- it may be declared and defined
      local before = text:sub(1, at - 1):match "[^;{}]*$"
      found[#found + 1] = {name = name, list = list:sub(2, -2),
        template = before:find "%f[%w_]template%f[^%w_]" ~= nil}
      found[name .. list] = true
    end
  end
  return found, bad
end

--- Returns the parameters of a kernel from parameters.kernels: a list of {name, type, element,
-- lanes, pointer, written}, where lanes is 4 for "float4 *", else 1; or nil and the text of an
-- unsupported parameter.
function parameters.read(kernel)
  local list = {}
  for i, text in ipairs(parameters.split(kernel.list)) do
    local parameter, bad = parse_one(text, i)
    if not parameter then return nil, bad end
    list[i] = parameter
  end
  return list
end

--- Returns a C++ expression of the kernel `name` cast to the parameters that were read. It compiles
-- only for a function of this type, whatever conditions, macros and other declarations there are.
function parameters.expression(name, list)
  local types = {}
  for i, p in ipairs(list) do types[i] = p.type end
  return ("static_cast<void (*)(%s)>(&%s)"):format(table.concat(types, ", "), name)
end

--- Returns the parameters as in a declaration, without qualifiers that do not matter.
function parameters.text(list)
  local words = {}
  for i, p in ipairs(list) do words[i] = p.type .. (p.pointer and "" or " ") .. p.name end
  return table.concat(words, ", ")
end

return parameters
