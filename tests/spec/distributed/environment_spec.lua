-- lutra.distributed.environment: rank and size of a job from the variables of its launcher.

local environment = require "lutra.distributed.environment"
local program = require "program_support"

-- Reads a table of variables.
local function from(variables) return function(name) return variables[name] end end

local function read(variables) return environment.read(from(variables)) end

-- Asserts that f raises exactly this message, without its place.
local function raises(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.equal(message, (err:gsub("^[^\n]-:%d+: ", "")))
end

describe("the variables of a launcher", function()
  it("are those of Open MPI", function()
    assert.same({source = "Open MPI", rank = 5, size = 8, local_rank = 1, local_size = 4},
      read{OMPI_COMM_WORLD_RANK = "5", OMPI_COMM_WORLD_SIZE = "8",
        OMPI_COMM_WORLD_LOCAL_RANK = "1", OMPI_COMM_WORLD_LOCAL_SIZE = "4"})
  end)

  it("are those of MPICH", function()
    assert.same({source = "MPICH", rank = 3, size = 4, local_rank = 1, local_size = 2},
      read{PMI_RANK = "3", PMI_SIZE = "4", MPI_LOCALRANKID = "1", MPI_LOCALNRANKS = "2"})
    assert.same({source = "MPICH", rank = 3, size = 4}, read{PMI_RANK = "3", PMI_SIZE = "4"})
  end)

  it("are those of torchrun", function()
    assert.same({source = "torchrun", rank = 0, size = 2, local_rank = 0, local_size = 2},
      read{RANK = "0", WORLD_SIZE = "2", LOCAL_RANK = "0", LOCAL_WORLD_SIZE = "2"})
  end)

  it("are those of Slurm", function()
    local slurm = {SLURM_PROCID = "2", SLURM_NTASKS = "4", SLURM_LOCALID = "0"}
    assert.same({source = "Slurm", rank = 2, size = 4, local_rank = 0}, read(slurm))
    slurm.SLURM_NTASKS_PER_NODE = "2"
    assert.equal(2, read(slurm).local_size)
    slurm.SLURM_NTASKS_PER_NODE = "16" -- requested for each machine, more than there are
    assert.equal(4, read(slurm).local_size)
  end)

  it("are Slurm's list of ranks for each machine", function()
    local slurm = {SLURM_PROCID = "8", SLURM_NTASKS = "11", SLURM_STEP_TASKS_PER_NODE = "4(x2),3",
      SLURM_NTASKS_PER_NODE = "4"}
    for node, count in pairs{["0"] = 4, ["1"] = 4, ["2"] = 3} do
      slurm.SLURM_NODEID = node
      assert.equal(count, read(slurm).local_size)
    end
    slurm.SLURM_NODEID = "3" -- not in the list
    assert.equal(4, read(slurm).local_size)
  end)

  it("are those of mpirun within a job of Slurm", function()
    local found = read{OMPI_COMM_WORLD_RANK = "1", OMPI_COMM_WORLD_SIZE = "2", SLURM_PROCID = "0",
      SLURM_NTASKS = "8", RANK = "7", WORLD_SIZE = "9"}
    assert.equal("Open MPI", found.source)
    assert.equal(2, found.size)
  end)

  it("are ignored when only one of rank and size is set", function()
    assert.is_nil(read{})
    assert.is_nil(read{RANK = "1"})
    assert.is_nil(read{WORLD_SIZE = "4", RANK = ""})
    assert.is_nil(read{SLURM_NTASKS = "4"}) -- salloc's shell
  end)

  it("are read from the process", function()
    local found = environment.read()
    assert.is_true(found == nil or found.rank < found.size)
  end)

  it("must be numbers", function()
    raises("init_process_group: expected an integer of at least 0 in the variable RANK, got 'two'",
      read, {RANK = "two", WORLD_SIZE = "4"})
    raises("init_process_group: expected an integer of at least 0 in the variable RANK, got '-1'",
      read, {RANK = "-1", WORLD_SIZE = "4"})
    raises("init_process_group: expected an integer of at least 1 in the variable PMI_SIZE, "
      .. "got '0'", read, {PMI_RANK = "0", PMI_SIZE = "0"})
    raises("init_process_group: expected an integer of at least 0 in the variable LOCAL_RANK, "
      .. "got '1.5'", read, {RANK = "1", WORLD_SIZE = "4", LOCAL_RANK = "1.5"})
    raises("init_process_group: expected an integer of at least 1 in the variable WORLD_SIZE, got "
      .. "'99999999999999999999'", read, {RANK = "1", WORLD_SIZE = "99999999999999999999"})
  end)

  it("must be consistent", function()
    raises("init_process_group: expected RANK to be less than WORLD_SIZE, got 4 and 4", read,
      {RANK = "4", WORLD_SIZE = "4"})
    raises("init_process_group: expected MPI_LOCALRANKID to be less than MPI_LOCALNRANKS, got 2 "
      .. "and 2", read, {PMI_RANK = "3", PMI_SIZE = "4", MPI_LOCALRANKID = "2",
        MPI_LOCALNRANKS = "2"})
  end)
end)

describe("the variable LUTRA_MPI", function()
  it("is named in the error about a library that is not found", function()
    for _, name in ipairs{"libnone.so.1", "0"} do
      local result = program.shell(("LUTRA_MPI=%s %s -e 'lt.distributed.init_process_group()'")
        :format(name, program.quote(program.program)))
      assert.equal(1, result.status)
      program.has(result.err, ("init_process_group: the MPI library of the variable LUTRA_MPI, "
        .. "'%s', was not found\nhint: unset it"):format(name))
    end
  end)
end)

describe("MPI with one rank", function()
  local check = environment.check

  it("is an error in a job of several processes, with the way to start it", function()
    raises("init_process_group: expected 4 ranks, as torchrun started 4 processes, but MPI has one "
      .. "rank\nhint: torchrun does not start MPI; mpirun -np 4 lutra train.lua, or on one machine "
      .. "lutra --nproc 4 train.lua", check, 1, from{RANK = "3", WORLD_SIZE = "4"})
    raises("init_process_group: expected 2 ranks, as Slurm started 2 processes, but MPI has one "
      .. "rank\nhint: srun --mpi=pmix -n 2 lutra train.lua, or mpirun -np 2 lutra train.lua in the "
      .. "job", check, 1, from{SLURM_PROCID = "0", SLURM_NTASKS = "2"})
    raises("init_process_group: expected 8 ranks, as MPICH started 8 processes, but MPI has one "
      .. "rank\nhint: this mpirun is MPICH's, but another MPI library was loaded; start the job "
      .. "with the mpirun of that library, or set LUTRA_MPI=libmpich.so.12", check, 1,
      from{PMI_RANK = "0", PMI_SIZE = "8"})
  end)

  it("is right for one process", function()
    check(1, from{})
    check(1, from{RANK = "0", WORLD_SIZE = "1"})
  end)

  it("is not looked for when MPI has several", function()
    check(2, from{RANK = "0", WORLD_SIZE = "4"})
    check(2, from{OMPI_COMM_WORLD_RANK = "1", OMPI_COMM_WORLD_SIZE = "2"})
  end)
end)
