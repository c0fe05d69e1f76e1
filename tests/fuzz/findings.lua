-- Findings of the fuzzers' processes: tells equal ones by a key, keeps the first of each, cuts its
-- program down. Run by any Lua 5.4:
--
--     findings.lua collect LOG FOLDER KEYS COMMAND STATUS
--         keeps the findings of LOG in FOLDER, and prints those whose key is not in the file KEYS,
--         to which it is added
--     findings.lua minimize FILE PROGRAM
--         leaves lines of FILE out while PROGRAM (lutra-fuzz) still finds the same; writes FILE
--
-- LOG is what the process printed that COMMAND started, and STATUS its exit status. A finding that
-- is kept is two files: its program, KEY.lua, and its text, KEY.log.

local root = arg[0]:match "^(.*)/tests/fuzz/[^/]*$" or "."

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- The first function of ours in a stack of a sanitizer: "lt_call src/tensor/dispatch.c".
local function place(text)
  for frame in text:gmatch "#%d+ 0x%x+ in ([^\n]+)" do
    local name, file = frame:match "^(.-) (src/%S-):%d"
    if file and name ~= "lt_pool_take" then return name end
  end
  return "unknown"
end

-- What a process died of, or nil.
local function death(text)
  local kind = text:match "ERROR: AddressSanitizer: ([%w%-]+)"
    or text:match "runtime error: ([^\n]+)"
  local assertion = text:match "Assertion `([^\n]-)' failed"
  if text:find "== hang:" then kind = "hang" end
  if assertion then kind = "assertion " .. assertion end
  if not kind then
    local signal = text:match "== died of signal (%d+)"
    if not signal then return nil end
    for name in text:gmatch "lutra%-fuzz%(([%w_]+)%+" do
      if name:match "^lt_" and not name:match "^lt_fault" then
        return ("signal %s in %s"):format(signal, name)
      end
    end
    return "signal " .. signal
  end
  local from = text:find "ERROR: AddressSanitizer" or text:find "runtime error" or 1
  return kind:gsub("0x%x+", "N"):gsub("%-?%d+", "N") .. " in " .. place(text:sub(from))
end

-- The findings of a log: a list of {key, text, program}.
local function findings(text)
  local list = {}
  for body in text:gmatch "== finding (.-)== end of program" do
    local key = body:match "^[^\n]*"
    if key:find "LeakSanitizer" then
      local leak = text:match "Direct leak.*" or text:match "Indirect leak.*" or ""
      key, body = "leak of " .. place(leak), body .. text
    end
    list[#list + 1] = {key = key, text = "== finding " .. body,
      program = body:match "== program\n(.-)$"}
  end
  local key = death(text)
  if key then
    local program = text:match ".*== program\n(.-)== end of program" or ""
    list[#list + 1] = {key = key, text = text, program = program}
  end
  return list
end

local function slug(key) return (key:gsub("[^%w]+", "_"):sub(1, 90)) end

local commands = {}

function commands.collect(log, folder, keys, command, status)
  local text = read(log)
  local list, seen = findings(text), {}
  if #list == 0 then
    list[1] = {key = "status " .. status .. " without a finding", text = text, program = ""}
  end
  for key in read(keys):gmatch "[^\n]+" do seen[key] = true end
  local file = assert(io.open(keys, "a"))
  for _, finding in ipairs(list) do
    local path = folder .. "/" .. slug(finding.key)
    local known = io.open(path .. ".lua")
    if known then
      known:close()
    else
      write(path .. ".lua", finding.program)
      write(path .. ".log", "-- " .. command .. "\n" .. finding.text)
    end
    if not seen[finding.key] then
      seen[finding.key] = true
      file:write(finding.key, "\n")
      print(("finding %s\n  %s\n  %s.lua"):format(finding.key, command, path))
    end
  end
  file:close()
end

local function keys_of(program, path)
  local scratch = os.tmpname()
  os.execute(("cd '%s' && timeout 60 '%s' '%s/tests/fuzz/api.lua' --run '%s' >'%s' 2>&1 </dev/null")
    :format(scratch:match "^(.*)/", program, root, path, scratch))
  local keys, last = {}, nil
  for _, finding in ipairs(findings(read(scratch))) do
    keys[finding.key], last = true, finding.key
  end
  os.remove(scratch)
  return keys, last
end

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local pipe = io.popen "pwd"
  local here = pipe:read "l"
  pipe:close()
  return here .. "/" .. path
end

function commands.minimize(file, program)
  root, file, program = absolute(root), absolute(file), absolute(program)
  local head, lines = {}, {}
  for line in read(file):gmatch "[^\n]+" do
    local list = line:match "^%-%-" and head or lines
    list[#list + 1] = line
  end
  local trial = os.tmpname()
  local function keys(some)
    write(trial, table.concat(head, "\n") .. "\n" .. table.concat(some, "\n") .. "\n")
    return keys_of(program, trial)
  end
  local _, key = keys(lines) -- a death comes last
  if not key then
    print "minimize: the program finds nothing"
    os.exit(1)
  end
  local step = math.max(1, #lines // 2)
  while true do
    local i, shorter = 1, false
    while i <= #lines do
      local some = table.move(lines, 1, i - 1, 1, {})
      table.move(lines, i + step, #lines, i, some)
      if #some < #lines and keys(some)[key] then
        lines, shorter = some, true
      else
        i = i + step
      end
    end
    if step == 1 and not shorter then break end
    if not shorter or step > #lines then step = math.max(1, step // 2) end
  end
  os.remove(trial)
  write(file, table.concat(head, "\n") .. "\n" .. table.concat(lines, "\n") .. "\n")
  print(("%s: %s\n%s"):format(file, key, table.concat(lines, "\n")))
end

local command = commands[arg[1]]
if not command then
  io.stderr:write "usage: findings.lua collect LOG FOLDER KEYS COMMAND STATUS\n"
  io.stderr:write "       findings.lua minimize FILE PROGRAM\n"
  os.exit(2)
end
command(table.unpack(arg, 2))
