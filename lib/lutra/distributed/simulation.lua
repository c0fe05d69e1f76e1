--- lt.distributed.simulate: what data-parallel training costs on many GPUs, on a virtual clock.
--
-- A cluster (simulation/cluster.lua) consists of nodes of GPUs. The all_reduce of each bucket of
-- gradients is simulated message by message, as a ring (simulation/ring.lua) or as NCCL's double
-- binary tree (simulation/tree.lua), beside the backward pass (simulation/step.lua).
--
-- Invariant: the times depend on the arguments only, so they are the same on every run.

local args = require "lutra.internal.args"
local core = require "lutra.core"
local cluster = require "lutra.distributed.simulation.cluster"
local step = require "lutra.distributed.simulation.step"
local texts = require "lutra.internal.text"

local TITLE = "distributed.simulate"
local MIB = 1024 * 1024
local most_bytes, most_seconds = 1 << 50, 1e6 -- keep the sums of times in their range

local parse = args.signature(TITLE, "table model, float(>=0)? forward = nil, "
  .. "float(>=0)? backward = nil, function? loss = nil, ints? gpus = nil, "
  .. "float|floats? bucket_cap_mb = nil, list? algorithms = nil, int(>=1) gpus_per_node = 8, "
  .. "string link = 'nvlink', float(>=0) link_latency = 3.4e-6, int(>=1) network_links = 8, "
  .. "float network_bandwidth = 50e9, float(>=0) network_latency = 14e-6")

-- Returns the bytes of the gradients of a module, or of a list of sizes, in their order.
local function gradient_sizes(model)
  local sizes = {}
  if args.is_plain(model) then
    for i, bytes in ipairs(model) do
      sizes[i] = math.tointeger(bytes) -- of 2 ^ 20, too
      args.check(sizes[i] and sizes[i] > 0, "%s: expected positive integers (bytes) in the list of "
        .. "argument 'model', got %s", TITLE, args.show(bytes))
    end
  else
    args.check(require("lutra").isinstance(model, require("lutra").nn.Module),
      "%s: expected a module or a list of sizes for argument 'model', got %s", TITLE,
      args.show(model))
    for p in model:parameters() do
      if p.requires_grad and p:numel() > 0 then
        sizes[#sizes + 1] = p:numel() * p:element_size()
      end
    end
  end
  args.check(#sizes > 0, "%s: expected at least one gradient for argument 'model', got none", TITLE)
  local total = 0.0
  for _, bytes in ipairs(sizes) do total = total + bytes end
  args.check(total <= most_bytes, "%s: expected at most 2^50 bytes of gradients for argument "
    .. "'model', got %g", TITLE, total)
  return sizes
end

-- Calls f and returns the seconds until it and the work that it queued are done, and its result.
local function measure(f, ...)
  local lt = require "lutra"
  local device = lt.accelerator.is_available()
  if device then lt.accelerator.synchronize() end
  local start = lt.clock()
  local result = f(...)
  if device then lt.accelerator.synchronize() end
  return lt.clock() - start, result
end

-- Returns the seconds of forward and backward: those given, or the least of several measurements.
local function compute_times(forward, backward, loss)
  if not loss then
    args.check(forward and backward, "%s: expected the arguments 'forward' and 'backward', or "
      .. "'loss', got %s\nhint: distributed.simulate(model, {forward = 0.01, backward = 0.02}), in "
      .. "seconds", TITLE, (forward or backward) and "one of them" or "none of them")
    return forward, backward
  end
  local best = {math.huge, math.huge}
  for _ = 1, 5 do
    local there, value = measure(loss)
    args.check(core.is_tensor(value) and value.requires_grad,
      "%s: expected a function that returns a loss that requires grad for argument 'loss', got %s "
      .. "from it", TITLE, args.show(value))
    local back = measure(value.backward, value)
    best = {math.min(best[1], there), math.min(best[2], back)}
  end
  return forward or best[1], backward or best[2]
end

-- Returns the row of links.def that argument 'link' names.
local function link_of(name)
  local links, names = core._trace.links(), {}
  for other in pairs(links) do names[#names + 1] = other end
  table.sort(names)
  return args.check(links[name], "%s: expected one of %s for argument 'link', got %q", TITLE,
    table.concat(names, ", "), name)
end

local function check_gpus(gpus, per_node)
  for _, count in ipairs(gpus) do
    args.check(count > 0 and (count <= per_node or count % per_node == 0),
      "%s: expected counts up to %d or multiples of it (gpus_per_node) for argument 'gpus', got %d",
      TITLE, per_node, count)
  end
end

local function check_positive(list, name)
  for _, value in ipairs(list) do
    args.check(value > 0 and value < math.huge,
      "%s: expected positive numbers for argument '%s', got %s", TITLE, name, args.show(value))
  end
end

local function check_seconds(value, name)
  args.check(value <= most_seconds, "%s: expected at most %g seconds for argument '%s', got %s",
    TITLE, most_seconds, name, args.show(value))
end

local function check_algorithms(algorithms)
  for _, name in ipairs(algorithms) do
    args.check(name == "ring" or name == "tree",
      "%s: expected \"ring\" and \"tree\" in the list of argument 'algorithms', got %s", TITLE,
      args.show(name))
  end
end

-- Returns one row of the report.
local function row(c, algorithm, cap, sizes, forward, backward, launch)
  local buckets = step.buckets(sizes, cap * MIB)
  local overlapped, sequential = step.run(c, algorithm, buckets, forward, backward, launch)
  local compute = forward + backward
  return {
    gpus = c.count, algorithm = algorithm, bucket_cap_mb = cap, buckets = #buckets,
    step = overlapped, communication = sequential - compute,
    efficiency = compute / overlapped, step_without_overlap = sequential,
    efficiency_without_overlap = compute / sequential,
  }
end

-- Returns the text above the table of a report.
local function title_of(sizes, forward, backward, options, name, links)
  local total = 0
  for _, bytes in ipairs(sizes) do total = total + bytes end
  local text = "%s of gradients, forward %s, backward %s\nnodes of %d GPUs: %s inside, %.0f GB/s "
    .. "and %s; %s of %.0f GB/s and %s between nodes"
  return text:format(texts.bytes(total), texts.seconds(forward),
      texts.seconds(backward), options.gpus_per_node, name, options.link_bandwidth / 1e9,
      texts.seconds(options.link_latency), texts.plural(links, "link"),
      options.network_bandwidth / 1e9, texts.seconds(options.network_latency))
end

--- distributed.simulate(model, {forward, backward}): simulates steps of data-parallel training on a
-- virtual clock and returns a list of rows {gpus, algorithm, bucket_cap_mb, buckets, step,
-- communication, efficiency, step_without_overlap, efficiency_without_overlap}. Print it for a
-- table. Times are in seconds; the efficiency is the time of computation divided by the step's.
-- model: a module, or the list of the bytes of its gradients in the order of its parameters.
-- forward, backward: the times of one GPU; or loss, a function that returns a loss, which is
-- measured on this machine. gpus: counts (8, 16, 32... 1024). bucket_cap_mb: sizes of buckets (25).
-- algorithms: {"ring", "tree"}. A node has gpus_per_node GPUs (8), connected by `link`, whose rate
-- and launch time are those of --emulate cuda:8,link=nvlink; between nodes there are network_links
-- links per node (8) of network_bandwidth bytes per second (50e9, which is 400 Gb/s). A message
-- arrives link_latency or network_latency seconds after it was sent (3.4e-6 and 14e-6).
local function simulate(...)
  local model, forward, backward, loss, gpus, caps, algorithms, per_node, link_name, link_latency,
    network_links, network_bandwidth, network_latency = parse(...)
  gpus = gpus or {8, 16, 32, 64, 128, 256, 512, 1024}
  caps = type(caps) == "number" and {caps} or caps or {25}
  algorithms = algorithms or {"ring", "tree"}
  local link = link_of(link_name)
  check_gpus(gpus, per_node)
  check_positive(caps, "bucket_cap_mb")
  check_positive({network_bandwidth}, "network_bandwidth")
  check_seconds(link_latency, "link_latency")
  check_seconds(network_latency, "network_latency")
  check_algorithms(algorithms)
  local sizes = gradient_sizes(model)
  forward, backward = compute_times(forward, backward, loss)
  check_positive({forward + backward}, "forward + backward")
  check_seconds(forward + backward, "forward + backward")
  local options = {gpus_per_node = per_node, channels = network_links,
    link_bandwidth = link.peer * 1e6, link_latency = link_latency,
    network_bandwidth = network_bandwidth, network_latency = network_latency}
  local rows = {}
  for _, count in ipairs(gpus) do
    for _, cap in ipairs(caps) do
      for _, algorithm in ipairs(algorithms) do
        rows[#rows + 1] = row(cluster.new(count, options), algorithm, cap, sizes, forward, backward,
          link.launch * 1e-6)
      end
    end
  end
  return require("lutra.distributed.simulation.report").new(rows,
    title_of(sizes, forward, backward, options, link_name, network_links))
end

return simulate
