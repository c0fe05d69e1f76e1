--- The variables that a lesson's code sets. They are removed when the lesson is closed, and the
-- user's variables of the same names are restored.

local variables = {}

local function snapshot(session)
  local globals, locals = {}, {}
  for name, value in next, _G do globals[name] = value end
  for name, value in session.locals:pairs() do locals[name] = value end
  return globals, locals
end

-- Returns the names whose values differ.
local function changed(before, after)
  local names = {}
  for name, value in next, after do
    if before[name] ~= value then names[#names + 1] = name end
  end
  return names
end

--- Runs f, which enters a lesson's code. Returns a function that restores the variables that f set.
function variables.enter(session, f)
  local globals, locals = snapshot(session)
  f()
  local new_globals, new_locals = snapshot(session)
  local names = changed(globals, new_globals)
  for _, name in ipairs(changed(locals, new_locals)) do names[#names + 1] = name end
  return function()
    for _, name in ipairs(names) do
      if not session.builtin[name] then rawset(_G, name, globals[name]) end
      if locals[name] == nil then
        session.locals:forget(name)
      elseif not session.locals:assign(name, locals[name]) then
        session.locals:set(name, locals[name])
      end
    end
  end
end

return variables
