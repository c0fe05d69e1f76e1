--- Process groups: which ranks communicate, and how they are started and ended.
--
-- A group has a communicator of MPI, made with the group, and one of NCCL, made by the first
-- collective on a CUDA device, or by device_id. This is then the device of the rank in the group.
--
-- Invariant: all ranks of the job create the same groups in the same order.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local environment = require "lutra.distributed.environment"

local c = core._communication
local groups = {}

local DEFAULT_TIMEOUT = 1800 -- seconds, as PyTorch's

local ProcessGroup = {__name = "ProcessGroup"}
ProcessGroup.__index = ProcessGroup

function ProcessGroup:__tostring()
  if #self.ranks == 0 then return "GroupMember.NON_GROUP_MEMBER" end
  return ("ProcessGroup(rank %d of %d, %s)"):format(self._rank, #self.ranks,
    self.backend_name or "mpi and nccl")
end

--- Returns the rank of this process in the group.
function ProcessGroup:rank() return self._rank end
--- Returns the number of ranks of the group.
function ProcessGroup:size() return #self.ranks end

--- What new_group returns on a rank outside of the group. Its collectives do nothing.
groups.GroupMember = {NON_GROUP_MEMBER = setmetatable({ranks = {}, _rank = -1}, ProcessGroup)}
local OUTSIDE = groups.GroupMember.NON_GROUP_MEMBER

local world              -- the group of all ranks, or nil
local job_rank, job_size -- of this process in the job
local number = 0         -- of groups created so far
local started = false    -- MPI, by this Lua state: workers have states of their own
local others = {}        -- the other groups of this process, in the order of their creation

local levels = {off = true, info = true, detail = true}

-- Returns the level of LUTRA_DISTRIBUTED_DEBUG, in lower case.
local function debug_level()
  local value = (os.getenv "LUTRA_DISTRIBUTED_DEBUG" or ""):lower()
  if value == "" then value = "info" end
  args.check(levels[value], "LUTRA_DISTRIBUTED_DEBUG: expected off, info or detail, got %q", value)
  return value
end

--- group.WORLD is the group of all ranks, nil before init_process_group.
groups.group = setmetatable({}, {__name = "group", __index = function(_, name)
  return name == "WORLD" and world or nil
end})

--- Returns the group of the argument `group`, by default the world. Raises an error of the function
-- `title` when there is none.
function groups._of(group, title)
  -- {group = nil} is an empty table, which the last argument may be.
  if group == nil or args.is_plain(group) and next(group) == nil then
    return world or args.fail(
      "%s: there is no process group\nhint: call lt.distributed.init_process_group() first", title)
  end
  args.expect(getmetatable(group) == ProcessGroup, title, "a process group", "group", group)
  args.check(not group.destroyed, "%s: the process group was destroyed", title)
  return group
end
local of = groups._of

--- Returns the rank of this process in the job.
function groups._job_rank() return job_rank end

--- Returns the rank of this process in the group of the argument process_group of `title`, and the
-- number of ranks. Raises an error outside of the group.
function groups._place(group, title)
  local found = of(group, title)
  args.expect(found ~= OUTSIDE, title, "a group that this rank is in", "process_group", group)
  return found._rank, #found.ranks
end

--- Returns whether this process is no rank of the group.
function groups._is_outside(group) return group == OUTSIDE end

-- Returns the timeout of a group in seconds: `other` when the argument is nil.
local function seconds(title, timeout, other)
  if timeout == nil then return other end
  args.expect(timeout > 0 and timeout < 1e9, title, "a positive number of seconds below 1e9",
    "timeout", timeout)
  return timeout + 0.0
end

local function check_backend(title, name)
  if name == nil or name == "mpi" or name == "nccl" then return name end
  local hint = name == "gloo" and '\nhint: "mpi" is for CPU tensors' or ""
  return args.fail('%s: expected "mpi" or "nccl" for argument \'backend\', got %s%s', title,
    args.show(name), hint)
end

-- Returns the full name of the CUDA device in the argument `device_id`, nil for the CPU. Raises an
-- error for any other device, and for one that the backend does not serve.
local function check_device(device, backend)
  if device == nil or device == "cpu" then return nil end
  local name = args.device("init_process_group", device)
  args.check(name:find "^cuda",
    "init_process_group: expected a CUDA device for argument 'device_id', got %q", name)
  args.check(backend ~= "mpi", "init_process_group: expected no CUDA device for argument "
    .. "'device_id', as the backend is mpi, got %q", name)
  return name
end

-- Creates the group of `ranks` (nil: all), with its communicator of MPI.
local function create(ranks, backend, timeout)
  local list, own = ranks or {}, -1
  if not ranks then
    for r = 0, job_size - 1 do list[r + 1] = r end
  end
  for i, r in ipairs(list) do
    if r == job_rank then own = i - 1 end
  end
  local group = setmetatable({
    ranks = list, _rank = own, backend_name = backend, number = number, timeout = timeout,
    level = debug_level(),
  }, ProcessGroup)
  number = number + 1
  if own < 0 then return OUTSIDE end
  group.mpi = c.create{device = "cpu", rank = own, size = #list, members = ranks,
    number = group.number, timeout = timeout, check = group.level ~= "off"}
  if ranks then others[#others + 1] = group end
  return group
end

local parse_init = args.signature("init_process_group", "string? backend = nil, "
  .. "string? init_method = nil, float? timeout = nil, int? world_size = nil, int? rank = nil, "
  .. "device? device_id = nil")

-- Raises an error unless the numbers that the program expects are those of the job.
local function check_job(size, rank)
  args.check(size == nil or size == job_size,
    "init_process_group: expected the number of ranks for argument 'world_size', %d, got %s\n"
    .. "hint: leave it out; lutra --nproc N or mpirun -np N decides it", job_size, tostring(size))
  args.check(rank == nil or rank == job_rank,
    "init_process_group: expected this process's rank for argument 'rank', %d, got %s\n"
    .. "hint: leave it out; MPI decides it", job_rank, tostring(rank))
end

--- Starts communication, and creates the group of all ranks. backend: "mpi" for CPU tensors, "nccl"
-- for CUDA tensors; without it both. `timeout` is the time in seconds that a call may wait for the
-- other ranks, 1800 by default. Rank and number of ranks come from MPI: world_size and rank may
-- repeat them. device_id: the CUDA device of this rank, whose communicator is made at once; without
-- it the first collective of each device makes it. Called by all ranks.
--
-- LUTRA_DISTRIBUTED_DEBUG=detail: messages about calls that differ between the ranks name lines of
-- the program. LUTRA_DISTRIBUTED_DEBUG=off: calls are not compared. The comparison blocks the host
-- until all ranks have made the call, also for CUDA tensors.
function groups.init_process_group(...)
  local backend, method, timeout, size, rank, device = parse_init(...)
  args.check(not world, "init_process_group: there is a process group already\n"
    .. "hint: lt.distributed.destroy_process_group() ends it")
  check_backend("init_process_group", backend)
  args.check(method == nil or method == "env://", "init_process_group: expected \"env://\" for "
    .. "argument 'init_method', got %q\nhint: leave it out; MPI connects the ranks", method)
  timeout = seconds("init_process_group", timeout, DEFAULT_TIMEOUT)
  debug_level()
  device = check_device(device, backend)
  if device or backend == "nccl" then
    local library, why = c.find_library "cuda"
    args.check(library, "init_process_group: %s", why)
  end
  job_rank, job_size = c.job()
  started = true
  environment.check(job_size)
  check_job(size, rank)
  number = 0
  world = create(nil, backend, timeout)
  if not device then return end
  local ok, why = pcall(groups._communicator, world, device, "init_process_group")
  if ok then return end
  groups.destroy_process_group()
  error(why, 0)
end

-- Creates the communicator for a CUDA device. All ranks of the group call it; rank 0 makes the id,
-- which MPI carries to the others.
local function create_nccl(group, device, title)
  local kind = device:match "^%a+"
  local library, why = c.find_library(kind)
  args.check(library, "%s: %s", title, why)
  local id = lt.zeros{128, dtype = "uint8", device = "cpu"}
  if group._rank == 0 then id = lt.frombuffer(c.unique_id(kind), {dtype = "uint8"}) end
  group.mpi:submit(true, {{kind = "broadcast", output = id, count = 128, shape = id}}):wait()
  local ok, made = pcall(c.create, {device = device, rank = group._rank, size = #group.ranks,
    number = group.number, timeout = group.timeout, check = false, id = core._tensor_bytes(id)})
  if ok then return made end
  args.pass_on_interrupt(made)
  local text = tostring(made):gsub("^[^\n]-:%d+: ", ""):gsub("^init_process_group: ", "")
  local shared = text:find "use the same device" or text:find "Duplicate GPU" -- NCCL's words
  return args.fail("%s: %s%s", title, text, shared and "\nhint: each rank has a device of its own: "
    .. "lt.cuda.set_device(lt.distributed.get_node_local_rank(0))" or "")
end

--- Returns the communicator of a group for tensors of the CPU or of this rank's device; `title` is
-- the function. Raises an error for a message (`is_message`) when the device has none yet, as the
-- other ranks would not make it.
function groups._communicator(group, device, title, is_message)
  if device == "cpu" then return group.mpi end
  if group.device == device then return group.nccl end
  args.check(not is_message, "%s: the group has no communicator for %s yet\nhint: "
    .. "init_process_group{device_id = %q}, or make a collective before the first message", title,
    device, device)
  group.nccl = create_nccl(group, device, title)
  group.device = device
  return group.nccl
end

local parse_new = args.signature("new_group",
  "list? ranks = nil, float? timeout = nil, string? backend = nil, bool sort_ranks = true")

--- Creates the group of the ranks in a list, in increasing order, or in that of the list with
-- sort_ranks = false; of all ranks without a list. Called by all ranks of the job, also those
-- outside of the group, which get GroupMember.NON_GROUP_MEMBER.
function groups.new_group(...)
  local ranks, timeout, backend, sort_ranks = parse_new(...)
  of(nil, "new_group")
  local seen = {}
  for i, r in ipairs(ranks or {}) do
    args.check(math.type(r) == "integer" and r >= 0 and r < job_size,
      "new_group: expected ranks from 0 to %d for argument 'ranks', got %s at %d", job_size - 1,
      args.show(r), i)
    args.check(not seen[r],
      "new_group: expected different ranks for argument 'ranks', got %d twice", r)
    seen[r] = true
  end
  args.check(not ranks or #ranks > 0, "new_group: expected at least one rank for argument 'ranks'")
  backend = check_backend("new_group", backend) or world.backend_name
  timeout = seconds("new_group", timeout, world.timeout)
  world.mpi:submit(true, {{kind = "barrier"}}):wait()
  ranks = ranks or world.ranks
  ranks = table.move(ranks, 1, #ranks, 1, {})
  if sort_ranks then table.sort(ranks) end
  return create(ranks, backend, timeout)
end

local parse_group = function(title) return args.signature(title, "any? group = nil") end
local parse_destroy = parse_group "destroy_process_group"

local function destroy(group)
  group.destroyed = true
  if group.nccl then group.nccl:destroy() end
  group.mpi:destroy()
end

--- Ends a group, by default all of them. Called by all its ranks, after their last call.
function groups.destroy_process_group(...)
  local group = of(parse_destroy(...), "destroy_process_group")
  if group == OUTSIDE then return end
  if group ~= world then
    destroy(group)
    for i, other in ipairs(others) do
      if other == group then table.remove(others, i) end
    end
    return
  end
  -- To end a communicator of NCCL may block on its other ranks: so all do it in the same order.
  for _, other in ipairs(others) do destroy(other) end
  others = {}
  destroy(world)
  world = nil
end

--- Returns whether lt.distributed can be used: MPI's library was found.
function groups.is_available() return (c.find_library "cpu") ~= nil end

--- Returns whether MPI's library was found.
function groups.is_mpi_available() return (c.find_library "cpu") ~= nil end

--- Returns whether there is a CUDA device and NCCL's library was found.
function groups.is_nccl_available()
  return lt.cuda.is_available() and (c.find_library "cuda") ~= nil
end

--- Returns whether init_process_group was called.
function groups.is_initialized() return world ~= nil end

local parse_rank = parse_group "get_rank"
--- Returns the rank of this process in a group; -1 outside of it.
function groups.get_rank(...) return of(parse_rank(...), "get_rank")._rank end

local parse_size = parse_group "get_world_size"
--- Returns the number of ranks of a group; -1 outside of it.
function groups.get_world_size(...)
  local group = of(parse_size(...), "get_world_size")
  return group == OUTSIDE and -1 or #group.ranks
end

local parse_backend = parse_group "get_backend"
--- Returns the backend of a group, "mpi" or "nccl"; "mpi,nccl" when it has both.
function groups.get_backend(...)
  return of(parse_backend(...), "get_backend").backend_name or "mpi,nccl"
end

local parse_ranks = parse_group "get_process_group_ranks"
--- Returns the list of the ranks of a group in the job.
function groups.get_process_group_ranks(...)
  local ranks = of(parse_ranks(...), "get_process_group_ranks").ranks
  return table.move(ranks, 1, #ranks, 1, {})
end

local parse_global = args.signature("get_global_rank", "any? group = nil, int group_rank = 0")
--- Returns the rank in the job of the rank `group_rank` of a group.
function groups.get_global_rank(...)
  local group, rank = parse_global(...)
  group = of(group, "get_global_rank")
  return group.ranks[rank + 1] or args.fail(
    "get_global_rank: expected a rank from 0 to %d for argument 'group_rank', got %d",
    #group.ranks - 1, rank)
end

local parse_group_rank = args.signature("get_group_rank", "any? group = nil, int global_rank = 0")
--- Returns the rank in a group of a rank of the job.
function groups.get_group_rank(...)
  local group, rank = parse_group_rank(...)
  return groups._group_rank(of(group, "get_group_rank"), rank, "get_group_rank", "global_rank")
end

-- Returns which ranks a group has, as a hint.
local function ranks_hint(group)
  if group == world then return ("its ranks are 0 to %d"):format(job_size - 1) end
  local few = table.concat(group.ranks, ", ", 1, math.min(#group.ranks, 16))
  return ("its ranks are %s%s, as numbered in the job"):format(few,
    #group.ranks > 16 and ", ..." or "")
end

--- Returns the rank in a group of the rank `rank` of the job, the argument `name` of `title`.
function groups._group_rank(group, rank, title, name)
  for i, r in ipairs(group.ranks) do
    if r == rank then return i - 1 end
  end
  return args.fail("%s: expected a rank of the process group for argument '%s', got %d\nhint: %s",
    title, name, rank, ranks_hint(group))
end

local parse_local = args.signature("get_node_local_rank", "int? fallback_rank = nil")
--- Returns the rank of this process among those of its machine, as its launcher says; without a
-- launcher fallback_rank. Raises an error without either.
function groups.get_node_local_rank(...)
  local fallback = parse_local(...)
  local found = environment.read()
  local rank = found and found.local_rank or fallback
  return rank or args.fail("get_node_local_rank: no launcher has set the rank on this machine\n"
    .. "hint: get_node_local_rank(0) is 0 then")
end

--- Ends communication at the end of a program that succeeded, as destroy_process_group does.
function groups._finalize()
  if world then groups.destroy_process_group() end
  if c.is_started() then c.finalize() end
end

-- Ends MPI when the Lua state that has started it is closed, if the program has destroyed its
-- groups. Else it may have failed, and to wait for the other ranks could take forever.
groups._at_close = setmetatable({}, {__gc = function()
  if started and not world and c.is_started() then c.finalize() end
end})

return groups
