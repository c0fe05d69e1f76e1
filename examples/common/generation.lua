-- Text generation, shared by gpt2.lua and llama.lua.
--
-- A model is called as model(ids, caches) with token ids {1, time} from 1 on. It returns the scores
-- of the next token, {1, vocabulary}. `caches` is nil, or a table in which it keeps the keys and
-- values of all tokens so far, so that only new tokens are passed.

local lt = require "lutra"
local cli = require "lutra.cli"
local F = lt.F

local generation = {}

-- Returns the id of a token drawn from scores {vocabulary}: among the options.top_k most likely
-- tokens, of which those count that have together the probability options.top_p.
local function choose(scores, options)
  if options.temperature == 0 then return scores:argmax():item() end
  local p, ids = F.softmax(scores / options.temperature, 1):topk(
    math.min(options.top_k or #scores, #scores))
  if options.top_p then
    p[{{2, -1}}] = p:masked_fill((p:cumsum(1) - p):ge(options.top_p), 0)[{{2, -1}}]
  end
  return ids[lt.multinomial(p, 1)]:item()
end

-- Returns the prompt's ids and up to `count` new ones; step(ids) is called after each. Generation
-- ends early at an id of the set options.stop, and where the model has no positions left
-- (options.context). Without a cache each token computes all before it again.
local function generate(model, ids, count, cached, options, step)
  ids = {table.unpack(ids)}
  local caches = cached and {} or nil
  local input = ids
  for _ = 1, math.min(count, (options.context or math.huge) - #ids) do
    local scores = lt.no_grad(model, lt.tensor({input}, {device = options.device}), caches)
    local id = choose(scores[1], options)
    if options.stop and options.stop[id] then break end
    ids[#ids + 1] = id
    input = cached and {id} or ids
    if step then step(ids) end
  end
  return ids
end

-- Returns the part of a string before a character whose last bytes are missing.
local function complete(text)
  local valid, bad = utf8.len(text)
  return not valid and #text - bad < 3 and text:sub(1, bad - 1) or text
end

--- Prints the prompt and its continuation by `count` tokens, each as soon as it is known, and the
-- speed. options: device, temperature, top_k, top_p, stop, context.
function generation.write(model, tokenizer, prompt, count, options)
  local ids = tokenizer:encode(prompt)
  if #ids == 0 then cli.fail "--prompt: expected some text" end
  if options.context and #ids >= options.context then
    cli.fail(("--prompt: expected fewer than %d tokens, got %d"):format(options.context, #ids))
  end
  -- A token alone does not tell whether a space is before it, so all tokens are decoded.
  local shown = #tokenizer:decode(ids)
  io.write(prompt)
  local start, before = lt.clock(), #ids
  ids = generate(model, ids, count, true, options, function(all)
    local text = complete(tokenizer:decode(all))
    io.write(text:sub(shown + 1))
    io.flush()
    shown = math.max(shown, #text)
  end)
  local seconds = lt.clock() - start
  print(("\n%d tokens, %.1f tokens per second"):format(#ids - before, (#ids - before) / seconds))
end

--- Checks a model with at least 42 tokens: with a cache it generates the tokens that it generates
-- without one.
function generation.check_cache(model, options, seed)
  local prompt, lists = {5, 17, 42}, {}
  for i, cached in ipairs{true, false} do
    lt.manual_seed(seed)
    lists[i] = generate(model, prompt, 20, cached, options)
  end
  print("tokens: " .. table.concat(lists[1], " "))
  for i, id in ipairs(lists[2]) do
    if lists[1][i] ~= id then
      cli.fail(("token %d: expected %d, as without the cache, got %d"):format(i, id, lists[1][i]))
    end
  end
end

return generation
