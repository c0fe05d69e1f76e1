-- A fuzz target for the readers of files that are written in Lua: altered files are read or refused
-- with one message that names the file, and no code from a file runs.
--
--   build/lutra tests/fuzz/files.lua SECONDS [SEED] >/dev/null
--
-- Says on stderr what it did; the exit status is 1, and the file is kept, when something was wrong.

local lt = require "lutra"

local seconds, seed = tonumber(arg[1]) or 60, math.tointeger(tonumber(arg[2])) or os.time()
math.randomseed(seed)
local random = math.random

local path = os.tmpname()
local golden = (arg[0]:match "^(.*)fuzz/files%.lua$" or "tests/") .. "golden/files/"
local real = {exit = os.exit, open = io.open, remove = os.remove}

local function read(name)
  local file <close> = assert(real.open(name, "rb"))
  return file:read "a"
end

local function write(bytes)
  local file <close> = assert(real.open(path, "wb"))
  file:write(bytes)
end

local function fail(text, ...)
  io.stderr:write((text .. "\n"):format(...), ("seed %d; the file is %s\n"):format(seed, path))
  real.exit(1)
end

-- ---- the readers, and files for each

local seeds = {}

local function add(f, ...)
  for _, bytes in ipairs{...} do seeds[#seeds + 1] = {f, bytes} end
end

for _, name in ipairs{"values.pt", "values_old.pt", "values_protocol5.pt", "tensor.pt",
  "module.pt"} do
  add(lt.load, read(golden .. name))
end
for _, name in ipairs{"arrays.npz", "compressed.npz", "objects.npz"} do
  add(lt.load_npz, read(golden .. name))
end
do
  local x = lt.arange(6):reshape(2, 3)
  lt.save({x = x, t = x:t(), p = lt.nn.Parameter(lt.ones(2)), list = {1, "a", {true, 0 / 0}}}, path)
  add(lt.load, read(path))
  lt.save_safetensors(path, {x = x, h = lt.ones(3):half()}, {note = "x"})
  add(lt.load_safetensors, read(path))
  add(function(name)
    local f = lt.safe_open(name)
    for _, key in ipairs(f:keys()) do f:get_tensor(key) end
  end, read(path))
  for _, options in ipairs{{bits_per_sample = 16}, {bits_per_sample = 24}, {encoding = "PCM_F"}} do
    lt.audio.save(path, lt.rand(2, 5), 8000, options)
    add(function(name) return lt.audio.load(name), lt.audio.info(name) end, read(path))
  end
  local tokenizer = lt.tokenizers.train_bpe("a b ab abc", {vocab_size = 260,
    special_tokens = {"<s>"}})
  tokenizer:save(path)
  add(function(name)
    local t = lt.tokenizers.from_file(name)
    t:decode(t:encode "ab <s> c")
  end, read(path))
end

-- ---- alterations

local alterations = {
  function(s) return s:sub(1, random(0, #s)) end,
  function(s)
    local at = random(#s)
    return s:sub(1, at - 1) .. string.char(random(0, 255)) .. s:sub(at + 1)
  end,
  function(s)
    local at = random(#s)
    return s:sub(1, at - 1) .. string.char(s:byte(at) ~ 1 << random(0, 7)) .. s:sub(at + 1)
  end,
  function(s) -- a number of 1 to 8 bytes
    local n = 1 << random(0, 3)
    local at = random(math.max(#s - n, 1))
    local number = ({0, 1, -1, 1 << 8 * n - 1, random(0, 300), math.maxinteger})[random(6)]
    return s:sub(1, at - 1) .. ("<i8"):pack(number):sub(1, n) .. s:sub(at + n)
  end,
  function(s) -- a part, removed or repeated
    local at, n = random(#s), random(20)
    if random(2) == 1 then return s:sub(1, at - 1) .. s:sub(at + n) end
    return s:sub(1, at + n) .. s:sub(at)
  end,
  function(s) -- digits
    return (s:gsub("%d+", function(digits)
      return random(8) == 1 and tostring(random(-1, 1 << random(0, 40))) or digits
    end))
  end,
  function(s) -- a part of another file
    local other = seeds[random(#seeds)][2]
    local at, from = random(#s), random(#other)
    return s:sub(1, at) .. other:sub(from, from + random(40)) .. s:sub(at + random(40))
  end,
}

local function altered(s)
  for _ = 1, random(4) do
    if #s > 0 then s = alterations[random(#alterations)](s) end
  end
  return s
end

-- ---- the loop

local ran -- what code of a file called
for _, place in ipairs{{os, "execute"}, {os, "remove"}, {os, "exit"}, {io, "popen"}, {_G, "load"},
  {_G, "dofile"}} do
  place[1][place[2]] = function() ran = place[2] end
end

local function is_clean(message)
  if type(message) ~= "string" then return false end
  for _, piece in ipairs{"attempt to", "stack overflow", "bad argument", "invalid order",
    "no value", "not enough memory"} do
    if message:find(piece, 1, true) then return false end
  end
  return message:find(path, 1, true) and not message:gsub("\nhint: .*$", ""):find "\n"
end

local files, loaded = 0, 0
local finish = os.clock() + seconds
while os.clock() < finish do
  local case = seeds[random(#seeds)]
  write(altered(case[2]))
  local live = select(2, pcall(collectgarbage, "count"))
  local ok, message = pcall(case[1], path)
  if ok then loaded = loaded + 1 elseif not is_clean(message) then
    fail("the message is %s", tostring(message))
  end
  if ran then fail("the file ran %s", ran) end
  if collectgarbage "count" > live + 200000 then fail "reading needed more than 200 MB" end
  files = files + 1
end
real.remove(path)
io.stderr:write(("%d files, %d of them read, seed %d\n"):format(files, loaded, seed))
