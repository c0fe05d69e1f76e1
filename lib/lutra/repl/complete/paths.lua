--- Completion of files and folders.

local files = require "lutra.repl.files"
local command_line = require "lutra.repl.command_line"

local paths = {}

--- Adds the entries of the folder that `typed` (a plain path) begins with: add(text, kind, note,
-- value, shown, match). `escape` quotes a path as required at the cursor; `only` may be "folder".
-- Names with a leading dot are offered only after a dot. Returns the part of `typed` to be
-- matched.
function paths.add(typed, escape, add, only)
  local folder, base = typed:match "^(.*/)([^/]*)$"
  base = base or typed
  local home = command_line.home(folder or typed)
  if home ~= (folder or typed) then folder = home:gsub("/?$", "/") end
  for _, name in ipairs(files.list(folder or ".") or {}) do
    local is_folder = name:sub(-1) == "/"
    if (is_folder or only ~= "folder") and (name:sub(1, 1) ~= "." or base:sub(1, 1) == ".") then
      add(escape((folder or "") .. name), is_folder and "folder" or "file", nil, nil, name, name)
    end
  end
end

--- Returns the part of a path that names are compared with.
function paths.base(typed) return typed:match "[^/]*$" end

return paths
