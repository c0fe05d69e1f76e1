--- Transcripts of the prompt, replayed: the inputs are given to the program, and what it prints
-- must be what the transcript says.
--
-- A transcript is what stands on a terminal. Its first line may be the command that started it,
-- `$ lutra --emulate cuda:2`. An input starts with its prompt, `[3]> `, and goes on in lines that
-- are indented under it until it is complete. `...` in the expected text stands for anything within
-- a line, as a line of its own for any lines. Empty lines before a prompt are for the reader.

local session = require "lutra.repl.session"
local support = require "program_support"

local replay = {}

-- A prompt at the start of a line: "[3]> ", "debug[3]> ", "debug> ".
local function prompt_of(line)
  local name, rest = line:match "^(%a*%[%d+%])> ?(.*)$"
  if not name then name, rest = line:match "^(debug)> ?(.*)$" end
  return name and name .. "> ", rest
end

local function lines_of(text)
  local lines = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

local probe = session.new()

--- Reads a transcript: {arguments, steps = {{input, expected}}}.
function replay.read(text)
  local lines, steps = lines_of(text), {}
  local arguments = lines[1]:match "^%$ lutra%s*(.*)$"
  local i = arguments and 2 or 1
  while lines[i] do
    local prompt, input = prompt_of(lines[i])
    assert(prompt, "not a prompt: " .. lines[i])
    i = i + 1
    local indent = "^" .. (" "):rep(#prompt)
    while lines[i] and lines[i]:find(indent) and probe:status(input) == "incomplete" do
      input = input .. "\n" .. lines[i]:sub(#prompt + 1)
      i = i + 1
    end
    local expected = {}
    while lines[i] and not prompt_of(lines[i]) do
      expected[#expected + 1] = lines[i]
      i = i + 1
    end
    steps[#steps + 1] = {prompt = prompt, input = input,
      expected = (table.concat(expected, "\n"):gsub("%s+$", ""))}
  end
  return {arguments = arguments or "", steps = steps}
end

--- Does `text` match `expected` with its `...`?
function replay.matches(text, expected)
  if not expected:find("...", 1, true) then return text == expected end
  local pattern = ("\n" .. expected):gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0")
  pattern = pattern:gsub("\n%%%.%%%.%%%.%f[\n\0]", "\n*.-"):gsub("%%%.%%%.%%%.", "[^\n]-")
  return ("\n" .. text):find("^" .. pattern .. "$") ~= nil
end

-- The outputs of the inputs, in order: each prompt is known, so its place is found.
local function outputs(out, steps)
  local list, at = {}, 1
  for i, step in ipairs(steps) do
    local first, last = out:find(step.prompt, at, true)
    if not first then return list, ("the prompt %q did not come:\n%s"):format(step.prompt, out) end
    if i > 1 then list[i - 1] = out:sub(at, first - 1) end
    at = last + 1
  end
  list[#steps] = out:sub(at):gsub("\n?%a*%[%d+%]> \n?$", "")
  return list
end

--- Replays a transcript. Returns nil, or what differs.
function replay.check(text)
  local transcript = replay.read(text)
  local inputs = {}
  for i, step in ipairs(transcript.steps) do inputs[i] = step.input end
  local home = support.folder()
  local places = "HOME=$PWD XDG_STATE_HOME= XDG_CONFIG_HOME="
  local line = ("cd %s && env %s %s -i %s 2>&1"):format(home, places,
    support.quote(support.program), transcript.arguments)
  local result = support.shell(line, table.concat(inputs, "\n") .. "\n")
  support.remove(home)
  local list, problem = outputs(result.out, transcript.steps)
  if problem then return problem end
  for i, step in ipairs(transcript.steps) do
    local came = list[i]:gsub("%s+$", "")
    if not replay.matches(came, step.expected) then
      return ("%s%s\nprinted\n%s\nthe transcript says\n%s"):format(step.prompt, step.input, came,
        step.expected)
    end
  end
  return nil
end

--- The transcripts in a document: its blocks between ``` that start with a prompt or with `$ lutra`
-- and a prompt.
function replay.blocks(text)
  local blocks = {}
  for block in text:gmatch "\n```%w*\n(.-\n)```" do
    if block:match "^%[1%]> " or block:match "^%$ lutra[^\n]*\n%[1%]> " then
      blocks[#blocks + 1] = block
    end
  end
  return blocks
end

return replay
