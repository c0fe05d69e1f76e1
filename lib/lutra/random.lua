--- lt.random: the default random generator, which serves all devices.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local strict_table = require "lutra.internal.strict_table"

local random = {}

--- Seeds the default generator: the same seed gives the same numbers.
function random.manual_seed(...) return core.manual_seed(...) end

--- Seeds the default generator with a new random seed, and returns the seed.
function random.seed() return core.seed() end

--- Returns the seed of the default generator.
function random.initial_seed() return core.initial_seed() end

--- Returns the state of the default generator, a tensor.
function random.get_rng_state() return core.get_rng_state() end

--- Restores a state of the default generator that get_rng_state returned.
function random.set_rng_state(...) return core.set_rng_state(...) end

-- Returns a to-be-closed value that restores a state.
local function restore(state)
  return setmetatable({}, {__close = function() core.set_rng_state(state) end})
end

--- fork_rng(f, ...) calls f(...) and restores the state of the default generator afterwards;
-- returns what f returns. fork_rng({enabled = false}, f, ...) only calls f. `devices` is accepted
-- without an effect: one generator serves all devices.
function random.fork_rng(options, ...)
  local enabled, f = true, options
  if args.is_plain(options) then
    enabled, f = options.enabled ~= false, (...)
    for name in pairs(options) do
      args.check(name == "enabled" or name == "devices",
        "fork_rng: expected the options enabled and devices, got '%s'", tostring(name))
    end
  end
  args.expect(args.is_callable(f), "fork_rng", "a function", "f", f)
  local _ <close> = enabled and restore(core.get_rng_state()) or nil
  if f == options then return f(...) end
  return f(select(2, ...))
end

return strict_table.strict(random, "random")
