--- The folders in which Jupyter searches for kernels: jupyter_core's rules, see
-- https://docs.jupyter.org/en/latest/use/jupyter-directories.html

local host = require "lutra.repl.host"

local folders = {}

-- Returns an environment variable that is an absolute path, or nil.
local function absolute(name)
  local value = os.getenv(name)
  return value and value:sub(1, 1) == "/" and value or nil
end

--- Returns the user's folder for kernels; nil and the reason without a home folder.
function folders.user()
  local data = os.getenv "JUPYTER_DATA_DIR"
  if data and data ~= "" then return data .. "/kernels" end
  local home = absolute "HOME"
  if host.is_macos() and home then return home .. "/Library/Jupyter/kernels" end
  local xdg = absolute "XDG_DATA_HOME" or home and home .. "/.local/share"
  if xdg and not host.is_macos() then return xdg .. "/jupyter/kernels" end
  return nil, "HOME is not set to an absolute path"
end

--- Returns the folder for kernels of the installation in `prefix`, such as a virtual environment.
function folders.prefix(prefix)
  if prefix:sub(1, 1) ~= "/" then prefix = assert(host.getcwd()) .. "/" .. prefix end
  return (prefix:gsub("(.)/+$", "%1")) .. "/share/jupyter/kernels"
end

--- Returns the list of folders that are searched, in order, without duplicates.
function folders.all()
  local list, seen = {}, {}
  local function add(path)
    if path and not seen[path] then list[#list + 1], seen[path] = path, true end
  end
  for path in (os.getenv "JUPYTER_PATH" or ""):gmatch "[^:]+" do add(path .. "/kernels") end
  add(folders.user())
  for _, name in ipairs {"VIRTUAL_ENV", "CONDA_PREFIX"} do
    if absolute(name) then add(folders.prefix(absolute(name))) end
  end
  add(folders.prefix "/usr/local")
  add(folders.prefix "/usr")
  return list
end

return folders
