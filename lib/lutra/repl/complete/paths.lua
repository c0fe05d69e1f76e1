--- Files and folders.

local files = require "lutra.repl.files"
local command_line = require "lutra.repl.command_line"

local paths = {}

--- Adds what is in the folder that `typed` (a path, plain) begins with: add(text, kind, note,
-- value, shown, match). `escape` writes a path as the place wants it; `only` may be "folder". Names
-- with a dot in front only where one is typed. Returns the part of `typed` that has to be matched.
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

--- The part of a path that names are compared with.
function paths.base(typed) return typed:match "[^/]*$" end

return paths
