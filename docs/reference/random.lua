-- Examples of lt.random.
local lt = require "lutra"

-- lt.random.manual_seed, lt.random.seed, lt.random.initial_seed
lt.random.manual_seed(7)
print(lt.random.initial_seed())  --> 7
local a = lt.rand(2)
lt.random.manual_seed(7)
print(lt.equal(a, lt.rand(2)))  --> true
print(lt.random.seed() == lt.random.initial_seed())  --> true

-- lt.random.get_rng_state, lt.random.set_rng_state
local state = lt.random.get_rng_state()
local b = lt.randn(3)
lt.random.set_rng_state(state)
print(lt.equal(b, lt.randn(3)))  --> true

-- lt.random.fork_rng
lt.manual_seed(1)
lt.random.fork_rng(function() return lt.randn(100) end)
local c = lt.randn(3)
lt.manual_seed(1)
print(lt.equal(c, lt.randn(3)))  --> true
