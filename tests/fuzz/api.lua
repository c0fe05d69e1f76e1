-- The fuzzer of the whole API: random programs of calls with fitting and with hostile arguments, of
-- every function that can be reached from the library's tables. It runs in build/lutra-fuzz or,
-- with ASan, UBSan and a Lua that checks itself, in build-debug/lutra-fuzz.
--
--     lutra-fuzz tests/fuzz/api.lua --seed N [--seconds S] [--calls M]   random programs
--     lutra-fuzz tests/fuzz/api.lua --seed N --program K                  one of them, printed
--     lutra-fuzz tests/fuzz/api.lua --run FILE                            a program from a file
--
-- --skip "PATTERN PATTERN" leaves out the lines that match a pattern: what is known and still to be
-- fixed.
--
-- Everything depends on the seed: the emulated devices, the faults, the collector's mode, and each
-- program. A finding is a crash (the process prints the program that ran), or what a check has
-- found (see world.lua): then it is reported with its program. The first line of a program holds
-- what must be set before Lutra is loaded. The exit status is 0 without findings.
--
-- tests/fuzz/campaign runs many of these processes.

local fuzz = require "fuzz"
local root = arg[0]:match "^(.*)/tests/fuzz/[^/]*$" or "."
package.path = root .. "/lib/?.lua;" .. root .. "/lib/?/init.lua;" .. root
  .. "/tests/fuzz/api/?.lua;" .. package.path

local options = {seed = 1, seconds = nil, calls = nil}
for i = 1, #arg, 2 do
  local name = assert(arg[i]:match "^%-%-(%w+)$", "lutra-fuzz: unknown option " .. arg[i])
  options[name] = tonumber(arg[i + 1]) or arg[i + 1]
end

-- ---- what belongs to a seed ---------------------------------------------------------------------

-- Settings of the process, as text: "emulate=cuda:2 LUTRA_EMULATE_POISON=1".
local function settings_of(seed)
  math.randomseed(seed, 4711)
  local function one_in(n) return math.random(n) == 1 end
  local list = {}
  if not one_in(3) then
    list[1] = "emulate=" .. (one_in(4) and "cuda:1" or "cuda:2")
      .. (one_in(3) and ",memory=2MiB" or ",memory=64MiB") .. (one_in(6) and ",peer=off" or "")
    if one_in(3) then
      local kinds, faults = {"oom", "launch", "copy", "sync", "event", "stream", "host", "blas"}, {}
      for i = 1, math.random(4) do
        faults[i] = kinds[math.random(#kinds)] .. "@" .. math.random(one_in(2) and 20 or 400)
      end
      list[#list + 1] = "LUTRA_EMULATE_FAULT=" .. table.concat(faults, ",")
    end
    if one_in(4) then list[#list + 1] = "LUTRA_EMULATE_POISON=1" end
    if one_in(4) then list[#list + 1] = "LUTRA_EMULATE_STRICT=1" end
    if one_in(8) then list[#list + 1] = "CUDA_LAUNCH_BLOCKING=1" end
  end
  if one_in(2) then list[#list + 1] = "faults=1" end
  if one_in(2) then list[#list + 1] = "collect=1" end
  if one_in(4) then list[#list + 1] = "move=1" end
  list[#list + 1] = "gc=" .. ({"normal", "normal", "often", "generational"})[math.random(4)]
  return table.concat(list, " ")
end

local function parse_settings(text)
  local mode = {text = text, devices = {"cpu"}, elsewhere = 0}
  for name, value in text:gmatch "(%S+)=(%S*)" do
    if name == "emulate" then
      fuzz.emulate(value)
      mode.devices = value:match "cuda:2" and {"cpu", "cuda:1", "cuda:0"} or {"cpu", "cuda:0"}
      mode.elsewhere = 50
    elseif name:match "^%u" then
      fuzz.setenv(name, value)
    else
      mode[name] = value
    end
  end
  return mode
end

local program
if options.run then
  local file = assert(io.open(options.run))
  program = {}
  for line in file:lines() do program[#program + 1] = line end
  file:close()
end
local settings = program and program[1]:match "^%-%- settings: (.*)$" or settings_of(options.seed)
local mode = parse_settings(settings)

local world = require "world"
local collectors = {
  often = function() collectgarbage("incremental", 10, 400, 6) end,
  generational = function() collectgarbage("generational", 5, 20) end,
  normal = function() end,
}

-- ---- findings -----------------------------------------------------------------------------------

local found, reported = 0, {}

world.found = function(kind, key, text, program_text)
  local id = kind .. " " .. key
  if reported[id] then return end
  reported[id] = true
  found = found + 1
  fuzz.report(("== finding %s: %s\n%s\n== program\n%s== end of program\n"):format(kind, key, text,
    program_text or fuzz.text()))
end

-- What LeakSanitizer has reported. It reports it again each time: one report is enough.
local function report_lost(where)
  if fuzz.starved() > 0 then return end
  world.found("leak", "LeakSanitizer", where, ("-- settings: %s\n-- seed %d, %s\n")
    :format(settings, options.seed, where))
end

-- ---- running ------------------------------------------------------------------------------------

-- What makes calls slow is done in every third program.
local function begin(title, k)
  fuzz.case("-- settings: " .. settings .. "\n-- " .. title)
  world.reset()
  world.prepare()
  if k % 3 == 0 and mode.move then fuzz.move(true) end
  collectors[k % 3 == 0 and mode.gc or "normal"]()
end

local lines_of_program = 40

local function run_lines(lines)
  for _, line in ipairs(lines) do
    if not line:match "^%-%-" and line ~= "" then world.run(line) end
  end
end

-- Allocations of the core that are left when a program has ended. The release build keeps some in
-- pools, so that nothing can be said of it.
local function left()
  world.reset()
  if not fuzz.sanitized then return 0 end
  collectgarbage()
  return fuzz.live()
end

local function skipped(line)
  for pattern in (options.skip or ""):gmatch "%S+" do
    if line:find(pattern) then return true end
  end
end

-- Random program k of this seed; returns its lines.
local function run_random(generator, k)
  local lines = {}
  begin(("seed %d, program %d"):format(options.seed, k), k)
  generator.begin(options.seed, k, mode)
  for _ = 1, lines_of_program do
    for _, line in ipairs{generator.lines(mode)} do
      if not skipped(line) then
        lines[#lines + 1] = line
        world.run(line)
      end
    end
  end
  return lines
end

-- The same when finalizers have run whose objects were held by objects with finalizers.
local function settled()
  local now = left()
  for _ = 1, 8 do
    local before = now
    now = left()
    if now == before then break end
  end
  return now
end

-- What is left may be a cache; what grows by each further run is lost. Nothing can be said where
-- Lua had no memory to run finalizers.
local function look_for_leaks(lines, before)
  local text, starved = fuzz.text(), fuzz.starved()
  local grown = left() - before
  if grown <= 0 then return end
  for _ = 1, 3 do
    local start = settled()
    world.prepare()
    run_lines(lines)
    if settled() <= start or fuzz.starved() > starved then return end
  end
  world.found("leak", "allocations of the core",
    ("%d allocations of the core stay, more after each further run"):format(grown), text)
end

-- Calls f. A program may fill Lua's heap, so that also what runs between its calls fails: that ends
-- the program, and is no finding.
local function within_heap(f, ...)
  local function handler(message)
    message = tostring(message)
    return message:find "not enough memory" and message or debug.traceback(message, 2)
  end
  local ok, message = xpcall(f, handler, ...)
  if ok then return end
  world.reset()
  if not tostring(message):find "not enough memory" then error(message, 0) end
end

local function one_program(generator, k, before)
  local lines = run_random(generator, k)
  if options.program then fuzz.report(fuzz.text()) end
  look_for_leaks(lines, before)
end

local function program_of_file(before)
  world.prepare()
  run_lines(program)
  look_for_leaks(program, before)
end

local function fuzz_on(generator)
  local first = fuzz.clock()
  local k = options.program or 1
  local before = left()
  while true do
    within_heap(one_program, generator, k, before)
    if options.program then return end
    before = fuzz.live()
    if fuzz.sanitized and k % 200 == 0 and fuzz.leaks() then
      report_lost(("in programs %d to %d"):format(k - 199, k))
    end
    if options.calls and fuzz.calls() >= options.calls then return end
    if options.seconds and fuzz.clock() - first >= options.seconds then return end
    if not options.calls and not options.seconds and k >= 250 then return end
    k = k + 1
  end
end

local generator = not program and require "generator"
world.guard()
if program then
  begin("from a file", tonumber(program[2]:match "program (%d+)") or 0)
  within_heap(program_of_file, left())
else
  fuzz_on(generator)
end
world.reset()
collectgarbage()
if fuzz.sanitized and fuzz.leaks() then
  report_lost "at the end"
end
fuzz.report(("== %d calls, %d findings (seed %d; %s)\n"):format(fuzz.calls(), found, options.seed,
  settings))
os.exit(found == 0, true)
