-- Writes the lines of programs (see world.lua). A line is text, so that what was run can be read,
-- cut down and run again. It is chosen by random numbers and by what is in the program's slots at
-- the moment.
--
-- Most arguments fit the signature of what is called, and most tensors of a program have shapes
-- that fit one another, so that calls get deep; then one argument in a few is replaced by something
-- hostile.

local functions = require "functions"
local random = require "random"
local signatures = require "lutra.repl.complete.signatures"
local values = require "values"
local world = require "world"

local generator = {}
local fill, pick, percent = values.fill, random.pick, random.percent

local methods, others = {}, {}
for _, entry in ipairs(functions.list()) do
  local list = entry.method and methods or others
  list[#list + 1] = entry
  world.private[entry.f] = entry.private
end

-- ---- arguments ----------------------------------------------------------------------------------

-- In one argument list in a few, one is hostile.
local function spoil(list)
  if #list > 0 and percent(22) then list[random.integer(#list)] = fill "$hostile" end
  return list
end

-- All but the first argument by name, in one table.
local function in_one_table(list, params)
  for i = 2, #list do list[i] = ("%s = %s"):format(params[i].name, list[i]) end
  return {"{" .. table.concat(list, ", ") .. "}"}
end

-- The arguments of a function of known parameters, in one of the three spellings.
local function with_params(params)
  local given, list = #params, {}
  while given > 0 and not params[given].required and percent(55) do given = given - 1 end
  for i = 1, given do list[i] = values.of(params[i]) end
  spoil(list)
  if given < #params and percent(25) then
    local named = params[given + random.integer(#params - given)]
    list[given + 1] = ("{%s = %s}"):format(named.name,
      percent(80) and values.of(named) or fill "$hostile")
  elseif given > 0 and percent(12) then
    return in_one_table(list, params)
  end
  return list
end

local function unknown_params(f, is_method)
  local list = {}
  local info = type(f) == "function" and debug.getinfo(f, "u") or {nparams = 0, isvararg = true}
  for i = is_method and 2 or 1, info.nparams do
    list[#list + 1] = values.named(debug.getlocal(f, i) or "?")
  end
  if info.isvararg or percent(5) then
    for _ = 2, random.integer(4) do
      list[#list + 1] = fill(pick{"$tensor", "$tensor", "$callable", "$hostile"})
    end
  end
  return spoil(list)
end

local function arguments_of(params, f, is_method)
  return params and with_params(params) or unknown_params(f, is_method)
end

-- ---- lines --------------------------------------------------------------------------------------

local caller = {"R", "R", "R", "C"}

-- "R(3, lt.add, P[1], 2)"
local function call(f, list)
  local parts = {fill "$slot", f}
  for _, value in ipairs(list) do parts[#parts + 1] = value end
  return ("%s(%s)"):format(pick(caller), table.concat(parts, ", "))
end

local function wrapped(f)
  if percent(3) then return ("co(%s)"):format(f) end
  if percent(1) then return ("closed(%s)"):format(f) end
  if percent(2) then return fill("hooked(" .. f .. ", $fn, $count)") end
  return f
end

local function function_line(entry)
  local list = arguments_of(entry.params, entry.f, entry.method)
  if entry.method then
    table.insert(list, 1, fill(percent(97) and "$tensor" or "$hostile"))
  end
  return call(wrapped(entry.path), list)
end

local known = setmetatable({}, {__mode = "k"}) -- function -> its parameters, or false

local function params_of(f, name)
  if known[f] == nil then
    local ok, signature = pcall(signatures.of, f, name)
    known[f] = ok and signature and signature.params or false
  end
  return known[f] or nil
end

-- A method of an object that is in a slot, mostly with that object as its self.
local function object_line()
  local text, value = values.slot "other"
  local kind = type(value)
  if kind == "function" then return call(text, unknown_params(print)) end
  if kind == "thread" then return call("coroutine.resume", {text}) end
  local names = (kind == "table" or kind == "userdata") and functions.methods(value) or {}
  if #names == 0 then return end
  local name = pick(names)
  local list = arguments_of(params_of(value[name], name), value[name], true)
  table.insert(list, 1, percent(93) and text or fill(pick{"$hostile", "$kept_other"}))
  return call(("%s.%s"):format(text, name), list)
end

-- The kind of call is R or C.
local statements = {
  "$(index, $tensor, $key)", "$(index, $tensor, $key)", "$(newindex, $tensor, $key, $operand)",
  "$(newindex, $tensor, $key, $hostile)", "$(length, $tensor)", "$(concat, $tensor, $any)",
  "$(less, $tensor, $any)", "$(equal, $tensor, $any)", "$(M.__add, $tensor, $any)",
  "$(M.__index, $tensor, $key)", "$(M.__newindex, $tensor, $key, $any)", "$(M.__tostring, $any)",
  "$(construct, function() return $constructor end)",
  "$(construct, function() return $constructor end)",
  "$(construct, function() return $constructor end)", "$(each, $tensor, 5)", "$(each, $object, 5)",
  "$(X.register_hook, $tensor, $callable)", "$(X.register_hook, $tensor, $callable)",
  "$(X.backward, ($tensor):sum())", "$(X.backward, $tensor)",
  "$(X.backward, $tensor, {retain_graph = true})",
  "$(lt.autograd.grad, ($tensor):sum(), $tensor, {create_graph = $bool, allow_unused = true})",
  "$(lt.no_grad, $callable)", "$(lt.inference_mode, $callable)",
  "$(lt.profiler.profile, $callable)",
  "$(lt.placement.trace, $callable)", "$(lt.placement.lint, $callable)",
  "$(lt.placement.guard, 'disallow', $callable)", "$(tostring, $kept)", "bomb($fn)",
  "P[$slot] = nil", "collectgarbage('step', 100)", "P[$slot] = $tensor",
}

local function statement_line()
  return (fill((pick(statements):gsub("^%$%(", pick(caller) .. "($slot, "))))
end

-- A line that prepares the next one, or nil.
local function preparation(mode)
  if mode.faults and percent(10) then
    return ("arm(%q, %d)"):format(pick{"core", "core", "core+", "lua", "lua+"}, random.integer(12))
  end
  if mode.collect and percent(6) then return ("arm('collect', %d)"):format(random.integer(25)) end
  if percent(3) then return fill "bomb($fn)" end
end

--- The next line, or two.
function generator.lines(mode)
  local before, line = preparation(mode), nil
  while not line do
    local roll = random.integer(100)
    local entry = roll <= 35 and pick(methods) or roll <= 70 and pick(others) or nil
    if entry then
      if random.integer(entry.rarity) == 1 then line = function_line(entry) end
    elseif roll <= 82 then
      line = object_line()
    else
      line = statement_line()
    end
  end
  if before then return before, line end
  return line
end

--- Begins program k of a seed.
function generator.begin(seed, k, mode)
  random.seed(seed, k)
  values.begin(mode)
end

return generator
