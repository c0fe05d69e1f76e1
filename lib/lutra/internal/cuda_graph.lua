--- lt.cuda.CUDAGraph and lt.cuda.graph: work that is captured once and replayed as a whole.
--
-- The work of a capture is queued on a stream, but does not run. Tensors that are created meanwhile
-- have memory of the graph's private pool, so that each replay writes its results to the same
-- addresses; tensors from outside that the work uses are kept until the graph is reset.
--
-- Invariant: a CUDAGraph has a handle of the core from the beginning of its capture until it is
-- reset; after a capture that failed it has none.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scope_guard = require "lutra.internal.scope_guard"
local accelerator = require "lutra.accelerator"

local c = core._accelerator
local graphs = {}

-- Returns the full name of the current CUDA device; `name` is the function's name in errors.
local function here(name) return accelerator._device("cuda", nil, "cuda." .. name) end

local function check_pool(pool, title)
  args.expect(pool == nil or (math.type(pool) == "integer" and pool > 0 and pool < 1 << 32), title,
    "a pool of g:pool() or lt.cuda.graph_pool_handle()", "pool", pool)
end

-- Graphs ----------------------------------------------------------------------

local CUDAGraph = {__name = "CUDAGraph"}
CUDAGraph.__index = CUDAGraph

local function self_at(self, title)
  args.expect(getmetatable(self) == CUDAGraph, title, "a CUDAGraph", "self", self)
  return self
end

-- Returns the handle of a graph that was captured.
local function captured(self, title)
  local handle = self_at(self, title).handle
  args.check(handle and not self.underway, "%s: expected a graph that was captured, got %s\n"
    .. "hint: lt.cuda.graph(g, f)", title, handle and "one whose capture has not ended" or
    "one without a capture")
  return handle
end

--- Begins to capture the work queued on the current stream, which must not be the default stream;
-- lt.cuda.graph does this for a function. `pool` is a pool of private memory to share.
function CUDAGraph:capture_begin(...)
  local title = "CUDAGraph.capture_begin"
  self_at(self, title)
  local pool = args.signature(title, "any? pool = nil")(...)
  check_pool(pool, title)
  args.check(not self.handle, "%s: cannot capture: the graph has been captured already\n"
    .. "hint: g:reset(), or a new lt.cuda.CUDAGraph()", title)
  self.handle = c.graph_begin(here "graph", pool)
  self.underway = true
end

-- Frees the handle; ends a capture that is underway.
local function drop(self)
  local handle = self.handle
  self.handle, self.underway = nil, nil
  if handle then c.graph_free(handle) end
end

--- Ends the capture. Raises an error when the capture has failed; then the graph is as new.
function CUDAGraph:capture_end()
  local title = "CUDAGraph.capture_end"
  args.check(self_at(self, title).underway, "%s: expected a graph whose capture is underway, got "
    .. "one without\nhint: g:capture_begin()", title)
  self.underway = nil
  local ok, message = pcall(c.graph_end, self.handle)
  if ok then return end
  drop(self)
  error(message, 0)
end

--- Queues the captured work on the current stream of the graph's device. Each replay runs the same
-- kernels with the same addresses and numbers.
function CUDAGraph:replay() c.graph_replay(captured(self, "CUDAGraph.replay")) end

--- Frees the captured work and what it refers to, after its replays, so that another capture is
-- possible. Memory of its pool returns to the driver unless tensors or other graphs use it. A
-- garbage-collected graph is reset, too.
function CUDAGraph:reset() drop(self_at(self, "CUDAGraph.reset")) end

--- Returns the graph's pool of private memory, for the captures of other graphs that are never
-- replayed at the same time: lt.cuda.graph(g2, {pool = g:pool()}, f).
function CUDAGraph:pool()
  local handle = self_at(self, "CUDAGraph.pool").handle
  args.check(handle, "CUDAGraph.pool: expected a graph that was captured, got one without a "
    .. "capture\nhint: lt.cuda.graph_pool_handle()")
  return c.graph_pool(handle)
end

function CUDAGraph.__close(self) drop(self) end

function CUDAGraph.__tostring(self)
  return ("CUDAGraph(%s)"):format(not self.handle and "not captured"
    or self.underway and "capturing" or "captured")
end

--- Returns a new graph, without a capture.
function graphs.new() return setmetatable({}, CUDAGraph) end

-- Captures --------------------------------------------------------------------

-- device -> the stream of captures that are given none. Graphs that share a pool share the memory
-- of one stream.
local streams = {}

local function stream_of(device)
  local stream = streams[device]
  if not stream then
    stream = c.stream(device, 0)
    streams[device] = stream
  end
  return stream
end

-- Ends the capture at the end of its scope; after an error the graph is as new.
local scope_meta = {}
function scope_meta.__close(scope, err)
  local g = scope.graph
  if not g.underway then return end
  if err ~= nil then drop(g) else g:capture_end() end
end

local parse_options = args.signature("cuda.graph", "any? pool = nil, any? stream = nil")

--- Captures the work that f(...) queues; see lt.cuda.graph.
function graphs.graph(g, options, f, ...)
  if args.is_callable(options) and not args.is_plain(options) then
    return graphs.graph(g, {}, options, f, ...)
  end
  args.expect(getmetatable(g) == CUDAGraph, "cuda.graph", "a CUDAGraph", "cuda_graph", g)
  args.expect(args.is_plain(options), "cuda.graph", "a table of options or a function", "options",
    options)
  args.expect(args.is_callable(f), "cuda.graph", "a function", "f", f)
  local pool, stream = parse_options(options)
  check_pool(pool, "cuda.graph")
  stream = stream or stream_of(here "graph")
  local old_stream, old_device = c.set_stream(stream, "cuda.graph")
  local _ <close> = scope_guard(c.restore_stream, old_stream, old_device)
  local _ <close> = setmetatable({graph = g}, scope_meta)
  g:capture_begin(pool)
  return f(...)
end

--- Returns whether work on the current stream of the current device is captured.
function graphs.is_current_stream_capturing()
  return core._device_count "cuda" > 0 and c.is_capturing(here "is_current_stream_capturing")
end

--- Returns a pool of private memory that captures can share.
function graphs.graph_pool_handle() return c.new_pool(here "graph_pool_handle") end

return graphs
