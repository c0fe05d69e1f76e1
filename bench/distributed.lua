-- Measures lt.distributed on this machine: collectives of CPU tensors beside plain MPI calls in C,
-- the steps of two models over one and two ranks, and the simulation of many GPUs.
--
--   lutra bench/distributed.lua [--only all|collectives|steps|simulation] [--kind all_reduce]
--     [--rounds 3] [--ranks 2] [--c build/bench/collectives]
--
-- The two programs of a comparison run in turns, and the least time of each is printed, so that
-- other load on the machine counts as little as possible. Bandwidths are those of the bus, as
-- nccl-tests define them: the bytes that the slowest link transfers per second. `make
-- bench-distributed` builds the C program, where there is an mpicc, and runs this one.

local lt = require "lutra"
local cli = require "lutra.cli"
local texts = require "lutra.internal.text"

local options = cli.parse(arg, {
  {"only", "all", "what to measure", choices = {"all", "collectives", "steps", "simulation"}},
  {"kind", "all", "one kind of collective", choices = {"all", "all_reduce", "broadcast",
    "all_gather", "reduce_scatter"}},
  {"rounds", 3, "runs of each program", least = 1},
  {"ranks", 2, "ranks of the collectives", least = 1},
  {"c", "build/bench/collectives", "the program of collectives.c"},
})
local folder = arg[0]:match "^(.*)distributed%.lua$"
local lutra = os.getenv "LUTRA" or "build/lutra"

-- Returns the lines that a program prints on `ranks` ranks, or nil and its output when it fails.
local function run(ranks, environment, mca, command)
  local line = ("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 %s timeout 300 mpirun "
    .. "--oversubscribe --bind-to none -np %d %s %s 2>&1"):format(environment, ranks, mca, command)
  local pipe = assert(io.popen(line))
  local text = pipe:read "a"
  if not pipe:close() then return nil, text end
  return texts.lines((text:gsub("\n$", "")))
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- Collectives -------------------------------------------------------------------------------------

local kinds = {"all_reduce", "broadcast", "all_gather", "reduce_scatter"}
local transports = {{"shared memory", ""}, {"TCP", "--mca btl tcp,self"}}

-- Returns the bytes on the bus for a tensor of `bytes` bytes.
local function on_bus(kind, bytes)
  local p = options.ranks
  if kind == "all_reduce" then return 2 * (p - 1) / p * bytes end
  return kind == "broadcast" and bytes or (p - 1) / p * bytes
end

-- Returns sizes in bytes, which the ranks can divide where a collective does.
local function sizes_of(kind)
  local list, divided = {}, kind == "all_gather" or kind == "reduce_scatter"
  local unit = divided and 4 * options.ranks or 4
  for power = kind == "all_reduce" and 2 or 4, 26, 2 do
    local bytes = (1 << power) // unit * unit
    if bytes > 0 then list[#list + 1] = bytes end
  end
  return list
end

-- Adds the times that a program printed to the least ones: least[bytes] = seconds.
local function keep_least(least, lines)
  for _, line in ipairs(lines) do
    local bytes, seconds = line:match "^%a[%w_]*\t(%d+)\t(%S+)$"
    bytes, seconds = math.tointeger(tonumber(bytes)), tonumber(seconds)
    if bytes then least[bytes] = math.min(least[bytes] or math.huge, seconds) end
  end
end

local function compare(kind, transport)
  local sizes = sizes_of(kind)
  local words = kind .. " " .. table.concat(sizes, " ")
  local script = folder .. "distributed/collectives.lua"
  local programs = {{name = "Lutra", command = ("%s %s %s"):format(lutra, script, words)}}
  if exists(options.c) then programs[2] = {name = "C", command = options.c .. " " .. words} end
  for _, program in ipairs(programs) do program.least = {} end
  for _ = 1, options.rounds do
    for _, program in ipairs(programs) do
      local lines, why = run(options.ranks, "OMP_NUM_THREADS=1", transport[2], program.command)
      if not lines then return print(("  %s failed: %s"):format(program.name, why)) end
      keep_least(program.least, lines)
    end
  end
  print(("\n%s, %d ranks, %s"):format(kind, options.ranks, transport[1]))
  print(("%10s  %10s  %10s  %7s  %13s"):format("bytes", "Lutra", "C", "ratio", "bandwidth"))
  for _, bytes in ipairs(sizes) do
    local ours, theirs = programs[1].least[bytes], programs[2] and programs[2].least[bytes]
    print(("%10d  %s  %s  %7s  %8.3f GB/s"):format(bytes,
      texts.pad(texts.seconds(ours), 10, true),
      texts.pad(theirs and texts.seconds(theirs) or "", 10, true),
      theirs and ("%.2f"):format(ours / theirs) or "", on_bus(kind, bytes) / ours / 1e9))
  end
end

local function collectives()
  print "Collectives of float32: the time of one call; ratio: Lutra's time to that of C"
  if not exists(options.c) then
    print(options.c .. " does not exist (it needs mpicc): times of C are left out")
  end
  for _, transport in ipairs(transports) do
    for _, kind in ipairs(kinds) do
      if options.kind == "all" or options.kind == kind then compare(kind, transport) end
    end
  end
end

-- Steps -------------------------------------------------------------------------------------------

-- Returns the least seconds of a step, or nil and the reason.
local function step_time(model, ranks, threads, samples)
  local least = math.huge
  for _ = 1, options.rounds do
    local lines, why = run(ranks, ("OMP_NUM_THREADS=%d OPENBLAS_NUM_THREADS=%d"):format(threads,
      threads), "", ("%s %sdistributed/steps.lua %s %d"):format(lutra, folder, model, samples))
    if not lines then return nil, why end
    for _, line in ipairs(lines) do
      least = math.min(least, tonumber(line:match "^%a+\t%d+\t%d+\t(%S+)$") or math.huge)
    end
  end
  return least
end

local function steps()
  print "\nTraining steps with DistributedDataParallel; samples per second, and times the first row"
  for _, model in ipairs {{"mnist", 64}, {"mnist", 512}, {"chargpt", 12}} do
    local name, batch = table.unpack(model)
    print(("\n%s, a batch of %d"):format(name, batch))
    local first
    for _, row in ipairs {{1, 1, batch}, {1, 2, batch}, {2, 1, batch // 2}, {2, 1, batch}} do
      local ranks, threads, samples = table.unpack(row)
      local seconds, why = step_time(name, ranks, threads, samples)
      if not seconds then return print("  failed: " .. why) end
      local rate = ranks * samples / seconds
      first = first or rate
      print(("  %-7s of %-10s %4d samples each  %s  %8.0f samples/s  %5.2f"):format(
        texts.plural(ranks, "rank"), texts.plural(threads, "thread") .. ",", samples,
        texts.pad(texts.seconds(seconds), 10, true), rate, rate / first))
    end
  end
end

-- Simulation --------------------------------------------------------------------------------------

local function simulation()
  local nn = lt.nn
  -- GPT-2 small: 12 layers of width 768, 124 million parameters; the output layer is the embedding.
  local model = lt.with_device("meta", function()
    local layers = {nn.Embedding(50257, 768), nn.Embedding(1024, 768)}
    for _ = 1, 12 do
      for _, layer in ipairs {nn.LayerNorm(768), nn.Linear(768, 2304), nn.Linear(768, 768),
        nn.LayerNorm(768), nn.Linear(768, 3072), nn.Linear(3072, 768)} do
        layers[#layers + 1] = layer
      end
    end
    layers[#layers + 1] = nn.LayerNorm(768)
    return nn.ModuleList(layers)
  end)
  print "\nSimulation of GPT-2 small; forward and backward are examples, not measurements"
  print(lt.distributed.simulate(model, {forward = 0.02, backward = 0.04}))
  print "\nThe size of buckets on 64 GPUs"
  print(lt.distributed.simulate(model, {forward = 0.02, backward = 0.04, gpus = 64,
    bucket_cap_mb = {1, 5, 25, 100, 500}}))
end

local parts = {collectives = collectives, steps = steps, simulation = simulation}
print(("Lutra %s; %s by default; %s"):format(lt._VERSION, texts.plural(lt.get_num_threads(),
  "thread"), os.date "%Y-%m-%d"))
for _, name in ipairs {"collectives", "steps", "simulation"} do
  if options.only == "all" or options.only == name then parts[name]() end
end
