--- The text that a Lua function was made from: its lines, the comment above it, its parameters.
--
-- Nothing here runs the function. What cannot be found is nil.

local args = require "lutra.internal.args"
local texts = require "lutra.repl.source_lines"

local source = {}

--- The lines of the chunk `name` (as in debug.getinfo(...).source): a list, or nil.
function source.lines(name)
  local text = texts.text(name)
  if not text then return nil end
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = line end
  return lines
end

-- The comment of one line: "--- Adds." -> "Adds."; nil where the line is something else.
local function comment_text(line)
  local text = line:match "^%s*%-%-%-?%s?(.*)$"
  if not text or line:match "^%s*%-%-%[=*%[" or text:match "^%-%-" then return nil end
  return text
end

-- A rule of dashes, or a heading in front of them ("Streams ------").
local function is_heading(text) return text:match "^%-%-%-" or text:match "%-%-%-%-+%s*$" end

--- The comment that stands directly above line `number`, as a list of lines; nil without one.
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

--- Where a function stands: its source as debug.getinfo has it, first and last line; nil for one
-- in C.
function source.place(f)
  local info = debug.getinfo(f, "S")
  if info.what == "C" then return nil end
  return info.source, info.linedefined, info.lastlinedefined
end

--- The comment above the function `f`, as a list of lines, or nil.
function source.doc(f)
  local name, first = source.place(f)
  local lines = name and source.lines(name)
  return lines and first > 0 and source.comment_above(lines, first) or nil
end

--- The lines of the function `f` itself, and the number of the first, or nil.
function source.text(f)
  local name, first, last = source.place(f)
  local lines = name and source.lines(name)
  if not lines then return nil end
  if first == 0 then return lines, 1 end
  if not lines[last] then return nil end
  return table.move(lines, first, last, 1, {}), first
end

--- The comment a file opens with, as a list of lines, or nil.
function source.header(name)
  local lines = source.lines(name)
  if not lines then return nil end
  local first = lines[1]:match "^#" and 2 or 1
  local last = first
  while lines[last] and comment_text(lines[last]) do last = last + 1 end
  return source.comment_above(lines, last)
end

--- Parameters as a text: those that must be given, then the others as the table they may be named
-- in: "in_features, out_features, {bias = true, device = nil}". `parameters` is a list of {name,
-- optional, default}, the default as text.
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

--- The parameters by which a function of the library reads its `...` (see args.signature): a list,
-- empty where it takes none; nil where that is not known.
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

--- The parameters of `f` as text, without self.
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

--- A name with parameters behind it, as a call is written.
function source.call(name, parameters)
  if parameters:sub(1, 1) == "{" and parameters:sub(-1) == "}" then return name .. parameters end
  return name .. "(" .. parameters .. ")"
end

--- A line of a chunk, for people: "lutra/nn/linear.lua:16", "cell[3]:1".
function source.place_text(chunk, line)
  local path = chunk:match "^[@=](.*)$" or "a string"
  path = path:match "/(lutra/.*)$" or path:match "/(lutra%.lua)$" or path
  return line and ("%s:%d"):format(path, line) or path
end

--- Where a function stands, for people; nil for one in C.
function source.where(f)
  local chunk, line = source.place(f)
  return chunk and source.place_text(chunk, line)
end

--- The first sentence of a comment, without the call that it may begin with.
function source.summary(lines)
  if not lines then return nil end
  local text = table.concat(lines, " "):gsub("%s+", " ")
  local after = text:match "^[%w_%.:]+%s*%b(): (.*)$" or text:match "^[%w_%.:]+%b{}: (.*)$"
  text = (after or text):gsub("^%l%l+ ", function(word) return word:gsub("^%l", string.upper) end)
  return text:match "^(.-[%.%?!]) %u" or text:match "^(.-[%.%?!])$" or text
end

return source
