--- The modules in a module's folder: `lutra.optim.adam` and its neighbours for `lutra.optim`.
-- A table that is made of them needs no list: a new file is one more entry.

require "lutra.core" -- opens lutra.files
local files = require "lutra.files"

local folder = {}

--- The names of the modules directly in the folder of the module `name`, which was loaded from the
-- file `path`, sorted. A program that packs its modules into package.preload has them there.
function folder.modules(name, path)
  local found, names = {}, {}
  local list, why = files.list((path:gsub("%.lua$", "")))
  for _, file in ipairs(list or {}) do
    local module = file:match "^([%w_]+)%.lua$"
    if module then found[name .. "." .. module] = true end
  end
  for module in next, package.preload do
    if module:match "^(.*)%.[%w_]+$" == name then found[module] = true end
  end
  for module in pairs(found) do names[#names + 1] = module end
  if #names == 0 then error(("%s: cannot find its modules: %s"):format(name, why), 0) end
  table.sort(names)
  return names
end

return folder
