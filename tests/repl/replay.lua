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

-- What differs between what a step printed and what it is to print, or nil.
local function difference(step, came)
  came = came:gsub("%s+$", "")
  if replay.matches(came, step.expected) then return nil end
  return ("%s%s\nprinted\n%s\nthe transcript says\n%s"):format(step.prompt, step.input, came,
    step.expected)
end

-- Runs `lutra` with these arguments in `folder`, where no file of the user's is seen.
local function run(folder, arguments, input)
  local line = ("cd %s && env HOME=$PWD XDG_STATE_HOME= XDG_CONFIG_HOME= %s %s 2>&1"):format(folder,
    support.quote(support.program), arguments)
  return support.shell(line, input).out
end

local function check_session(text, folder)
  local transcript = replay.read(text)
  local inputs = {}
  for i, step in ipairs(transcript.steps) do inputs[i] = step.input end
  local out = run(folder, "-i " .. transcript.arguments, table.concat(inputs, "\n") .. "\n")
  local list, problem = outputs(out, transcript.steps)
  for i, step in ipairs(transcript.steps) do
    problem = problem or difference(step, list[i])
  end
  return problem
end

-- The steps of a transcript of a shell.
local function read_shell(text)
  local steps = {}
  for _, line in ipairs(lines_of(text)) do
    local command, last = line:match "^%$ (.*)$", steps[#steps]
    if command then
      steps[#steps + 1] = {prompt = "$ ", input = command, expected = ""}
    else
      last.expected = last.expected .. (last.expected == "" and "" or "\n") .. line
    end
  end
  for _, step in ipairs(steps) do step.expected = step.expected:gsub("%s+$", "") end
  return steps
end

local function check_shell(text, folder)
  for _, step in ipairs(read_shell(text)) do
    local name, arguments = step.input:match "^cat ([%w_]+%.lua)$", step.input:match "^lutra (.*)$"
    local problem
    if name then
      local file <close> = assert(io.open(folder .. "/" .. name, "w"))
      file:write(step.expected, "\n")
    elseif arguments then
      problem = difference(step, run(folder, arguments, ""))
    else
      problem = "neither lutra nor cat: " .. step.input
    end
    if problem then return problem end
  end
end

local function is_session(text)
  return text:match "^%[1%]> " or text:match "^%$ lutra[^\n]*\n%[1%]> "
end

--- Replays a transcript. Returns nil, or what differs.
function replay.check(text)
  local folder = support.folder()
  local problem = (is_session(text) and check_session or check_shell)(text, folder)
  support.remove(folder)
  return problem
end

--- The transcripts in a document: its blocks between ``` that are a session, or start with `$ cat`
-- or `$ lutra`; with `all` every block that says no language.
function replay.blocks(text, all)
  local blocks = {}
  for language, block in text:gmatch "\n```([^\n]*)\n(.-\n)```" do
    local is_shell = block:match "^%$ lutra " or block:match "^%$ cat "
    if is_session(block) or is_shell or all and language == "" then blocks[#blocks + 1] = block end
  end
  return blocks
end

return replay
