--- Lists the modules in a module's folder: `lutra.optim.adam` and its neighbours for `lutra.optim`.
-- A table that is built from this list gets a new entry from each new file.

require "lutra.core" -- opens lutra.files
local files = require "lutra.files"

local folder = {}

--- Returns the sorted names of the modules directly in the folder of module `name`, which was
-- loaded from the file `path`, and of those in package.preload. Raises an error when there are
-- none.
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
