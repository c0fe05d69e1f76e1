--- The source of Lua functions: lines, the comment above a function, its parameters.
--
-- Nothing here runs the function. Functions return nil for what cannot be found.

local args = require "lutra.internal.args"
local texts = require "lutra.repl.source_lines"

local source = {}

--- Returns the lines of the chunk `name` (`source` of debug.getinfo) as a list, or nil.
function source.lines(name)
  local text = texts.text(name)
  if not text then return nil end
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

-- Returns the text of a line comment: "--- Adds." -> "Adds."; nil for any other line.
local function comment_text(line)
  local text = line:match "^%s*%-%-%-?%s?(.*)$"
  if not text or line:match "^%s*%-%-%[=*%[" or text:match "^%-%-" then return nil end
  return text
end

-- Returns whether a comment is a rule of dashes, or a heading in front of one ("Streams ------").
local function is_heading(text) return text:match "^%-%-%-" or text:match "%-%-%-%-+%s*$" end

--- Returns the comment directly above line `number` as a list of lines; nil without one.
function source.comment_above(lines, number)
  local found = {}
  for i = number - 1, 1, -1 do
    local text = lines[i] and comment_text(lines[i])
    if not text or is_heading(text) then break end
    table.insert(found, 1, text)
  end
  while found[1] == "" do table.remove(found, 1) end
  return #found > 0 and found or nil
end

--- Returns the location of a function: the chunk as in debug.getinfo, first and last line; nil for
-- a function in C.
function source.location(f)
  local info = debug.getinfo(f, "S")
  if info.what == "C" then return nil end
  return info.source, info.linedefined, info.lastlinedefined
end

--- Returns the comment above the function `f` as a list of lines, or nil.
function source.doc(f)
  local name, first = source.location(f)
  local lines = name and source.lines(name)
  return lines and first > 0 and source.comment_above(lines, first) or nil
end

--- Returns the lines of the function `f`, and the number of the first, or nil.
function source.text(f)
  local name, first, last = source.location(f)
  local lines = name and source.lines(name)
  if not lines then return nil end
  if first == 0 then return lines, 1 end
  if not lines[last] then return nil end
  return table.move(lines, first, last, 1, {}), first
end

--- Returns the comment that opens a file as a list of lines, or nil.
function source.header(name)
  local lines = source.lines(name)
  if not lines then return nil end
  local first = lines[1]:match "^#" and 2 or 1
  local last = first
  while lines[last] and comment_text(lines[last]) do last = last + 1 end
  return source.comment_above(lines, last)
end

--- Formats parameters: required ones, then the others as a table of options: "in_features,
-- out_features, {bias = true, device = nil}". `parameters` is a list of {name, optional, default},
-- with the default as a string.
function source.parameters_text(parameters)
  local needed, named = {}, {}
  for _, p in ipairs(parameters) do
    if p.optional then
      named[#named + 1] = p.name .. " = " .. (p.default or "nil")
    else
      needed[#needed + 1] = p.name
    end
  end
  if #named > 0 then needed[#needed + 1] = "{" .. table.concat(named, ", ") .. "}" end
  return table.concat(needed, ", ")
end

--- Returns the parameters by which a library function parses its `...` (args.signature): a list,
-- empty for a function without arguments; nil when they are unknown.
function source.parsed(f)
  local core = package.loaded["lutra.core"]
  local text = core and core._signatures[f]
  if text then return (select(2, core._signature("", text))) end
  for i = 1, 60 do
    local name, value = debug.getupvalue(f, i)
    if not name then return nil end
    local parameters = type(value) == "function" and args.describe(value)
    if parameters then return parameters end
    if name == "parse" and value == nil then return {} end
  end
end

--- Returns the parameters of `f` as text, without self.
function source.signature(f)
  local info = debug.getinfo(f, "u")
  local names = {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) or "?" end
  if names[1] == "self" then table.remove(names, 1) end
  local parameters = info.isvararg and #names == 0 and source.parsed(f)
  if parameters then return source.parameters_text(parameters) end
  if info.isvararg then names[#names + 1] = "..." end
  return table.concat(names, ", ")
end

--- Returns the code of a call with these parameters.
function source.call(name, parameters)
  if parameters:sub(1, 1) == "{" and parameters:sub(-1) == "}" then return name .. parameters end
  return name .. "(" .. parameters .. ")"
end

--- Returns a line of a chunk as text: "lutra/nn/linear.lua:16", "cell[3]:1".
function source.location_text(chunk, line)
  local path = chunk:match "^[@=](.*)$" or "a string"
  path = path:match "/(lutra/.*)$" or path:match "/(lutra%.lua)$" or path
  return line and ("%s:%d"):format(path, line) or path
end

--- Returns the location of a function as text; nil for a function in C.
function source.where(f)
  local chunk, line = source.location(f)
  return chunk and source.location_text(chunk, line)
end

--- Returns the first sentence of a comment, without the call that it may begin with.
function source.summary(lines)
  if not lines then return nil end
  local text = table.concat(lines, " "):gsub("%s+", " ")
  local after = text:match "^[%w_%.:]+%s*%b(): (.*)$" or text:match "^[%w_%.:]+%b{}: (.*)$"
  text = (after or text):gsub("^%l%l+ ", function(word) return word:gsub("^%l", string.upper) end)
  return text:match "^(.-[%.%?!]) %u" or text:match "^(.-[%.%?!])$" or text
end

return source
