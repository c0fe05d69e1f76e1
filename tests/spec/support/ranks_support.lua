--- What specs of several processes share: running a program on some ranks through mpirun.
--
-- mpirun is Open MPI's or MPICH's; without one that works `ranks.available()` returns false, and
-- such tests report "pending".

local devices = require "device_support"
local lt = require "lutra"
local program = require "program_support"

local ranks = {}
local quote = program.quote

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "a"
  local ok, _, code = pipe:close()
  return text, ok == true, code
end

local mpirun_text
local function mpirun()
  mpirun_text = mpirun_text or output_of "mpirun --version"
  return mpirun_text
end

local AS_ROOT = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"

--- Returns the arguments of env(1) that run a program on `count` ranks of this machine, more than
-- it has cores if need be, for at most that many seconds.
function ranks.launch(count, seconds)
  local options = mpirun():find "Open MPI" and "--oversubscribe --bind-to none -np"
    or "-bind-to none -n"
  return ("%s timeout -k 5 %d mpirun %s %d"):format(AS_ROOT, seconds, options, count)
end

local available
--- Returns whether there is an mpirun that can start programs on this machine.
function ranks.available()
  if available == nil then
    local known = mpirun():find "Open MPI" or mpirun():find "HYDRA"
    available = known ~= nil
      and select(2, output_of("env " .. ranks.launch(2, 60) .. " true"))
  end
  return available
end

--- Returns the arguments of a program whose ranks 0 to count - 1 use a CUDA device each, with NCCL:
-- emulated ones, or, where LUTRA_TEST_GPU is set, the machine's; nil and what is missing.
-- emulated: the options of --emulate for a test that only emulated devices pass.
function ranks.device_arguments(count, emulated)
  if not ranks.available() then return nil, "needs mpirun" end
  if not os.getenv "LUTRA_TEST_GPU" then
    if not devices.can_emulate() then return nil, "needs the emulated devices" end
    return {"--emulate", emulated or ("cuda:%d"):format(count)}
  end
  if emulated then return nil, "needs the emulated devices, as it sets their options" end
  if lt.cuda.device_count() < count then return nil, ("needs %d GPUs"):format(count) end
  if not lt.distributed.is_nccl_available() then return nil, "needs NCCL" end
  return {}
end

--- Runs the Lua text `body` on `count` ranks, and returns the output of all of them, whether they
-- ended without an error, and the exit status. The text begins with `lt`, `dist`, `rank`, `size`
-- and `full` (lt.full of floats), after init_process_group. options: `setup` (text before it that
-- replaces the call of init_process_group), `env` (a table of environment variables), `args` (of
-- the program, as {"--emulate", "cuda:2"}), `seconds` (after which the ranks are ended, by default
-- 120).
function ranks.run(count, body, options)
  options = options or {}
  local file = program.file(([[
local lt = require "lutra"
local dist = lt.distributed
%s
local rank, size
if dist.is_initialized() then rank, size = dist.get_rank(), dist.get_world_size() end
local nn, optim = lt.nn, lt.optim
local function full(shape, value) return lt.full(shape, value, {dtype = "float32"}) end
%s
if dist.is_initialized() then dist.destroy_process_group() end
]]):format(options.setup or "dist.init_process_group()", body))
  local words = {"env", "OMP_NUM_THREADS=1"}
  for name, value in pairs(options.env or {}) do
    words[#words + 1] = quote(name .. "=" .. value)
  end
  words[#words + 1] = ranks.launch(count, options.seconds or 120)
  words[#words + 1] = quote(program.program)
  for _, word in ipairs(options.args or {}) do words[#words + 1] = quote(word) end
  words[#words + 1] = quote(file)
  local text, ok, code = output_of(table.concat(words, " "))
  os.remove(file)
  return text, ok, code
end

--- Runs `body` as ranks.run does, and asserts that all ranks ended without an error; returns their
-- output.
function ranks.check(count, body, options)
  local text, ok = ranks.run(count, body, options)
  assert(ok, text)
  return text
end

return ranks
