--- The variables with which a launcher tells a process its rank in a job.
--
-- mpirun, srun and torchrun each use names of their own. MPI itself decides rank and size of a job;
-- the variables add the rank on this machine, and show that MPI was not started by the launcher.

local args = require "lutra.internal.args"

local environment = {}

-- The launchers, in the order of preference: mpirun within a job of Slurm counts, not srun.
local sources = {
  {name = "Open MPI", rank = "OMPI_COMM_WORLD_RANK", size = "OMPI_COMM_WORLD_SIZE",
    local_rank = "OMPI_COMM_WORLD_LOCAL_RANK", local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
  {name = "MPICH", rank = "PMI_RANK", size = "PMI_SIZE",
    local_rank = "MPI_LOCALRANKID", local_size = "MPI_LOCALNRANKS"},
  {name = "Slurm", rank = "SLURM_PROCID", size = "SLURM_NTASKS", local_rank = "SLURM_LOCALID"},
  {name = "torchrun", rank = "RANK", size = "WORLD_SIZE",
    local_rank = "LOCAL_RANK", local_size = "LOCAL_WORLD_SIZE"},
}

-- Returns the text of a variable; nil when it is unset or empty.
local function text_of(getenv, name)
  local text = name and getenv(name)
  return text ~= "" and text or nil
end

-- Returns the integer of a variable, or nil when it is unset; raises an error for any other text
-- and for a number below `least`.
local function integer(getenv, name, least)
  local text = text_of(getenv, name)
  if not text then return nil end
  local value = text:find "^%d+$" and math.tointeger(tonumber(text))
  args.check(value and value >= least,
    "init_process_group: expected an integer of at least %d in the variable %s, got '%s'", least,
    name, text)
  return value
end

-- Raises an error unless the rank is one of `size` ranks.
local function check_rank(rank, size, names)
  args.check(rank < size, "init_process_group: expected %s to be less than %s, got %d and %d",
    names[1], names[2], rank, size)
end

-- Returns entry `index`, from 0, of Slurm's list of ranks for each machine: "4(x2),3" is 4, 4, 3.
local function tasks_of_node(list, index)
  for count, times in list:gmatch "(%d+)%(?x?(%d*)%)?" do
    index = index - (math.tointeger(tonumber(times)) or 1)
    if index < 0 then return math.tointeger(tonumber(count)) end
  end
end

-- Returns the number of ranks on this machine in a job of Slurm, or nil. Slurm has the number that
-- was requested for each machine, and a list of the real ones, one for each machine.
local function slurm_local_size(getenv, size)
  local list = text_of(getenv, "SLURM_STEP_TASKS_PER_NODE")
  local node = integer(getenv, "SLURM_NODEID", 0)
  local count = list and node and tasks_of_node(list, node)
  if count then return count end
  local requested = integer(getenv, "SLURM_NTASKS_PER_NODE", 1)
  return requested and math.min(requested, size)
end

-- Returns what the variables of one launcher say, nil when its rank or its size is unset.
local function read_source(source, getenv)
  if not (text_of(getenv, source.rank) and text_of(getenv, source.size)) then return nil end
  local found = {source = source.name, rank = integer(getenv, source.rank, 0),
    size = integer(getenv, source.size, 1), local_rank = integer(getenv, source.local_rank, 0),
    local_size = integer(getenv, source.local_size, 1)}
  check_rank(found.rank, found.size, {source.rank, source.size})
  if source.name == "Slurm" then
    found.local_size = slurm_local_size(getenv, found.size)
  elseif found.local_rank and found.local_size then
    check_rank(found.local_rank, found.local_size, {source.local_rank, source.local_size})
  end
  return found
end

--- Returns {rank, size, local_rank, local_size, source} as the launcher's variables say it, or nil
-- when no launcher started this process. local_rank and local_size are nil where they are unknown;
-- source is "Open MPI", "MPICH", "Slurm" or "torchrun". Raises an error for a variable that is not
-- a number, and for a rank that is not less than the size. `getenv` replaces os.getenv in tests.
function environment.read(getenv)
  for _, source in ipairs(sources) do
    local found = read_source(source, getenv or os.getenv)
    if found then return found end
  end
end

-- What to do when MPI has one rank, by the launcher whose variables were found.
local hints = {
  ["Open MPI"] = "this mpirun is Open MPI's, but another MPI library was loaded; start the job "
    .. "with the mpirun of that library, or set LUTRA_MPI=libmpi.so.40",
  MPICH = "this mpirun is MPICH's, but another MPI library was loaded; start the job with the "
    .. "mpirun of that library, or set LUTRA_MPI=libmpich.so.12",
  Slurm = "srun --mpi=pmix -n %d lutra train.lua, or mpirun -np %d lutra train.lua in the job",
  torchrun = "torchrun does not start MPI; mpirun -np %d lutra train.lua, or on one machine lutra "
    .. "--nproc %d train.lua",
}

--- Raises an error when MPI has one rank while the launcher's variables say that there are several:
-- the launcher did not start MPI, and each process would train on its own. `size` is the number of
-- ranks that MPI has; several ranks are not checked against the variables.
function environment.check(size, getenv)
  if size > 1 then return end
  local found = environment.read(getenv)
  if not found or found.size == 1 then return end
  args.fail("init_process_group: expected %d ranks, as %s started %d processes, but MPI has one "
    .. "rank\nhint: " .. hints[found.source]:gsub("%%d", found.size), found.size, found.source,
    found.size)
end

return environment
