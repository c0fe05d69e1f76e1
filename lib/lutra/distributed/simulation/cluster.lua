--- A simulated cluster: nodes of GPUs, the links inside a node and those between nodes.
--
-- Every GPU has a link to the other GPUs of its node, and every node has one network link for each
-- of its channels. A collective divides its data over the channels, which work at the same time:
-- each channel has a share of the links inside the node and one network link. All channels are
-- alike, so one of them is simulated.
--
-- Times are integers of picoseconds: sums are exact, and a simulation gives the same times on every
-- machine. GPUs are numbered from 0, as ranks are.

local cluster = {}

local picoseconds = 1e12

-- Returns a link of a channel: `period`, the picoseconds that it is occupied by one byte, and
-- `latency`, the picoseconds from the end of sending to the arrival.
local function channel_link(bandwidth, latency)
  return {period = picoseconds / bandwidth, latency = math.floor(latency * picoseconds + 0.5)}
end

--- Returns a cluster of `count` GPUs. options: gpus_per_node, channels, link_bandwidth and
-- network_bandwidth (bytes per second in one direction, of a GPU's link and of one network link),
-- link_latency and network_latency (seconds).
function cluster.new(count, options)
  local per_node = math.min(count, options.gpus_per_node)
  local channels = count > per_node and options.channels or 1
  return {
    count = count, per_node = per_node, nodes = count // per_node, channels = channels,
    inside = channel_link(options.link_bandwidth / channels, options.link_latency),
    network = channel_link(options.network_bandwidth, options.network_latency),
  }
end

--- Returns the time that a link is occupied by a number of bytes.
function cluster.occupied(link, bytes) return math.floor(bytes * link.period + 0.5) end

--- Converts seconds to the integer time of a simulation.
function cluster.time(seconds) return math.floor(seconds * picoseconds + 0.5) end

--- Converts a time of a simulation to seconds.
function cluster.seconds(time) return time / picoseconds end

return cluster
