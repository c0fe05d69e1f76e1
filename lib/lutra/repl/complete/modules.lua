--- Completion of module names: loaded modules and those that package.path finds.

local files = require "lutra.repl.files"

local modules = {}

-- Visits the modules and folders of modules under `folder` (names with dots, "" or "a.b.").
local function each_file(folder, visit)
  for template in package.path:gmatch "[^;]+" do
    local before, after = template:match "^([^%?]*)%?([^%?]*)$"
    local path = before and before .. folder:gsub("%.", "/")
    for _, name in ipairs(path and files.list(path == "" and "." or path) or {}) do
      local inner = name:match "^([%w_%-]+)/$"
      if inner then
        visit(folder .. inner, true)
      elseif after ~= "" and name:sub(-#after) == after and #name > #after then
        visit(folder .. name:sub(1, -#after - 1), false)
      end
    end
  end
end

--- Adds the modules whose names begin with `typed`.
function modules.add(typed, add)
  local folder = typed:match "^(.*%.)" or ""
  local function offer(name, is_folder)
    add(is_folder and name .. "." or name, is_folder and "folder" or "module")
  end
  for _, list in ipairs {package.loaded, package.preload} do
    for name in next, list do
      if type(name) == "string" and name:sub(1, #folder) == folder then
        local inner = name:match("^[^%.]+%f[%.]", #folder + 1)
        offer(inner and folder .. inner or name, inner ~= nil)
      end
    end
  end
  each_file(folder, offer)
end

--- Adds the modules that :reload can load again.
function modules.add_loaded(add)
  for _, name in ipairs(require("lutra.repl.reload").names()) do add(name, "module") end
end

return modules
