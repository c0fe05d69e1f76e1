-- Learns to balance a pole on a cart by policy gradients (REINFORCE, Williams 1992).
--
--   lutra examples/cartpole.lua [--episodes 600] [--device cpu]
--
-- The cart is pushed to the left or to the right at each step. An episode ends when the pole leans
-- by more than 12 degrees, when the cart leaves its track, or after 500 steps. The environment is
-- the cart-pole system of Barto, Sutton and Anderson (1983), as in Gymnasium's CartPole-v1; the
-- network is that of PyTorch's example "reinforcement_learning".
--
-- test: --episodes 300

local lt = require "lutra"
local cli = require "lutra.cli"
local nn, optim = lt.nn, lt.optim

local SOLVED = 475 -- the running length of an episode at which the task is solved

local options = cli.parse(arg, {
  {"episodes", 1500, "largest number of episodes", least = 1},
  {"device", "cpu", "device of the network: cpu, cuda or mps"},
  {"gamma", 0.99, "discount of later rewards"},
  {"lr", 1e-2, "learning rate"},
  {"seed", 1, "seed of the random numbers"},
})
local device = cli.device(options.device)
lt.manual_seed(options.seed)

-- The environment ---------------------------------------------------------------------------

local GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
local LARGEST_ANGLE, LARGEST_POSITION, LONGEST = math.rad(12), 2.4, 500

-- Returns a state near the upright position: position, velocity, angle, angular velocity.
local function reset() return lt.rand(4):mul(0.1):sub(0.05):totable() end

-- Returns the state after a push, and whether the pole has fallen. Action 1 pushes to the left,
-- action 2 to the right (equations of Florian 2007, Euler's method).
local function push(state, action)
  local x, v, angle, turn = table.unpack(state)
  local force = action == 2 and FORCE or -FORCE
  local sin, cos = math.sin(angle), math.cos(angle)
  local total = CART + POLE
  local part = (force + POLE * HALF_LENGTH * turn ^ 2 * sin) / total
  local turning = (GRAVITY * sin - cos * part)
    / (HALF_LENGTH * (4 / 3 - POLE * cos ^ 2 / total))
  local moving = part - POLE * HALF_LENGTH * turning * cos / total
  local new = {x + SECONDS * v, v + SECONDS * moving, angle + SECONDS * turn,
    turn + SECONDS * turning}
  return new, math.abs(new[1]) > LARGEST_POSITION or math.abs(new[3]) > LARGEST_ANGLE
end

-- The policy --------------------------------------------------------------------------------

local policy = nn.Sequential(
  nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2)):to(device)
local optimizer = optim.Adam(policy:parameters(), {lr = options.lr})

-- Plays one episode. Returns the logarithms of the probabilities of the actions taken.
local function play()
  local state, log_probs, fallen = reset(), {}, false
  while not fallen and #log_probs < LONGEST do
    local logits = policy(lt.tensor(state, {device = device}):unsqueeze(1))
    local choice = lt.distributions.Categorical{logits = logits}
    local action = choice:sample()
    log_probs[#log_probs + 1] = choice:log_prob(action)
    state, fallen = push(state, action:item())
  end
  return log_probs
end

-- Makes the actions of an episode likelier in proportion to the rewards that followed them. Each
-- step is rewarded by 1, so early actions of a long episode have the largest returns.
local function learn(log_probs)
  local returns, sum = {}, 0
  for i = #log_probs, 1, -1 do
    sum = 1 + options.gamma * sum
    returns[i] = sum
  end
  local weights = lt.tensor(returns, {device = device})
  weights = (weights - weights:mean()) / (weights:std() + 1e-8)
  local loss = -(lt.cat(log_probs) * weights):sum()
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
end

-- Training: until the running mean of the lengths shows that the task is solved.
local running, lengths, solved = 10, {}, false
local bar = lt.progress{total = options.episodes, desc = "episodes"}
while #lengths < options.episodes and not solved do
  local log_probs = play()
  lengths[#lengths + 1] = #log_probs
  running = 0.95 * running + 0.05 * #log_probs
  learn(log_probs)
  solved = running > SOLVED
  bar:update(1)
  bar:set_postfix {length = running}
end
bar:close()
print(lt.plot.line(lt.tensor(lengths), {label = "length of the episode"}))
print(("%d episodes, running length %.1f%s"):format(#lengths, running,
  solved and ": solved" or ""))

-- Check the result: after 300 episodes the pole stays up longer than with random pushes (22 steps),
-- and with the default number the task is solved.
local goal = options.episodes >= 1500 and SOLVED or options.episodes >= 300 and 40 or 0
if running < goal then
  cli.fail(("expected a running length of at least %d, got %.1f"):format(goal, running))
end
