--- Reads the kernels of a source in the Metal Shading Language, and their parameters.
--
-- As parameters.lua does for CUDA, this searches `kernel void name(...)` and reads each parameter
-- as words: an address space, a type, a star or an ampersand, a name, an attribute [[...]]. The
-- parameters in device and constant memory are the arguments of a call, in the order of their
-- [[buffer(n)]].

local parameters = require "lutra.internal.kernel.parameters"

local metal = {}

-- The dtypes of element types.
local SCALARS = {
  float = "float32", half = "float16", bfloat = "bfloat16", bool = "bool", void = "any",
  char = "int8", uchar = "uint8", short = "int16", ushort = "uint16", int = "int32",
  uint = "uint32", long = "int64", ulong = "uint64", size_t = "uint64", ptrdiff_t = "int64",
  int8_t = "int8", int16_t = "int16", int32_t = "int32", int64_t = "int64",
  uint8_t = "uint8", uint16_t = "uint16", uint32_t = "uint32", uint64_t = "uint64",
  atomic_int = "int32", atomic_uint = "uint32", atomic_float = "float32",
}
local UNSIGNED = {char = "uchar", short = "ushort", int = "uint", long = "ulong"}

-- Returns the dtype of elements, the number of lanes in memory and the number of lanes of a type:
-- "float32", 4, 3 for "float3", which takes the space of 4; "any" for a struct.
local function element_of(words)
  local word = words[1]
  if word == "unsigned" then word = UNSIGNED[words[2] or "int"] end
  if word == "signed" then word = words[2] or "int" end
  local scalar = word and (SCALARS[word] or SCALARS[word:match "^atomic<(.+)>$"])
  if scalar then return scalar, 1, 1 end
  local packed, base, lanes = (word or ""):match "^(p?a?c?k?e?d?_?)(%l+)([234])$"
  if base and SCALARS[base] and (packed == "" or packed == "packed_") then
    local count = tonumber(lanes)
    return SCALARS[base], packed == "" and count == 3 and 4 or count, count
  end
  return "any", 1, 1
end

local QUALIFIERS = {volatile = true, restrict = true, __restrict = true, struct = true,
  ["metal::"] = true}

-- Reads one parameter. Returns {name, type, element, lanes, numbers, pointer, written, list, at}
-- for a value or memory, false for a built-in or threadgroup memory; nil and its text for others.
local function parse_one(text, number)
  text = text:gsub("%s+", " "):match "^ ?(.-) ?$"
  local attribute = text:match "%[%[(.-)%]%]"
  local plain = text:gsub("%[%[.-%]%]", ""):gsub("metal::", ""):gsub("%s*([<>])%s*", "%1")
  local space = plain:match "%f[%w]device%f[%W]" or plain:match "%f[%w]constant%f[%W]"
  if plain:match "%f[%w]threadgroup%f[%W]" then return false end
  local buffer = attribute and attribute:match "buffer%s*%((.-)%)"
  if not space then
    -- texture(0) and sampler(0) have a number, built-ins have none
    local built_in = attribute and not buffer and not attribute:find "^%s*[ts]%a+%s*%("
    if built_in then return false end
    return nil, text
  end
  local stars = select(2, plain:gsub("[*]", ""))
  local reference = plain:find("&", 1, true)
  if stars + (reference and 1 or 0) ~= 1 then return nil, text end
  local behind, words = false, {} -- behind: after the star
  local const = space == "constant"
  for token in plain:gsub("[*&]", " %0 "):gmatch "%S+" do
    if token == "*" or token == "&" then
      behind = true
    elseif token == "const" then
      const = const or not behind
    elseif token ~= space and not QUALIFIERS[token] then
      words[#words + 1] = token
    end
  end
  local name = #words > 1 and table.remove(words) or "argument " .. number
  local element, lanes, numbers = element_of(words)
  local at = buffer and tonumber(buffer)
  if buffer and not at then return nil, text end
  local pointer = stars == 1 or space == "device"
  return {
    name = name, element = element, lanes = lanes, numbers = numbers, pointer = pointer,
    written = not const,
    list = space == "constant" and (pointer or lanes > 1 or element == "any"), at = at,
    type = (space == "constant" and "constant " or const and "device const " or "device ")
      .. table.concat(words, " ") .. (reference and " &" or " *"),
  }
end

-- Returns the source with comments, strings and preprocessor lines replaced by blanks.
local function strip(source)
  local inside = false -- a directive whose last line ended with a backslash
  return (parameters.strip(source):gsub("[^\n]+", function(line)
    local directive = inside or line:find "^%s*#"
    inside = directive and line:sub(-1) == "\\"
    return directive and (" "):rep(#line) or line
  end))
end

--- Returns the kernels of a source: a list of {name, list = the text between the brackets}.
function metal.kernels(source)
  local text, found = strip(source), {}
  local function add(name, list)
    if not found[name] then
      found[#found + 1] = {name = name, list = list:sub(2, -2)}
      found[name] = true
    end
  end
  for at, rest in text:gmatch "()%f[%w_]kernel%f[^%w_]()" do
    local head = text:sub(rest):gsub("^%s*%]%]", "")
    local name, list = head:match "^%s*void%s+([%a_][%w_]*)%s*(%b())"
    local before = text:sub(1, at - 1):match "[^;{}]*$"
    if name and not before:find "%f[%w_]template%f[^%w_]" then add(name, list) end
    -- template [[host_name("f_float")]] kernel void f<float>(...): the strings are in the source
    local arguments = head:match "^%s*void%s+[%a_][%w_]*%s*%b<>%s*(%b())"
    local from = at - #before
    local host = arguments and source:sub(from, at):match 'host_name%s*%(%s*"([^"]+)"%s*%)'
    if host then add(host, arguments) end
  end
  return found
end

--- Returns the arguments that a kernel takes: a list of {name, type, element, lanes, pointer,
-- written, list}; nil and the text of a parameter that is not supported.
function metal.read(kernel)
  local list, used = {}, {}
  for i, text in ipairs(parameters.split(kernel.list)) do
    local parameter, bad = parse_one(text, i)
    if parameter == nil then return nil, bad end
    if parameter then
      local at = parameter.at or 0
      while not parameter.at and used[at] do at = at + 1 end
      if used[at] then return nil, text end
      used[at], list[#list + 1], parameter.at = true, parameter, at
    end
  end
  table.sort(list, function(a, b) return a.at < b.at end)
  for i, parameter in ipairs(list) do
    if parameter.at ~= i - 1 then return nil, ("[[buffer(%d)]]"):format(parameter.at) end
  end
  return list
end

return metal
