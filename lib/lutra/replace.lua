--- Files that are written as a whole or not at all.
--
-- Invariant: a file that is written is the old one or the new one, never a part: the text goes to a
-- file beside it, which then takes its name. Only a link, a device or a pipe is written into.

local replace = {}

-- "file", "other", or nil where nothing is. The prompt starts where the core does not load, too:
-- then what is there is taken for a file.
local function kind_of(path)
  local ok, core = pcall(require, "lutra.core")
  return ok and core._file_kind(path) or nil
end

-- Where the text goes first.
local function beside(path)
  local kind = kind_of(path)
  return (kind == nil or kind == "file") and path .. ".new" or path
end

local function reason(path, where, why)
  return why and why:sub(1, #where) == where and path .. why:sub(#where + 1)
    or ("%s: %s"):format(path, why or "cannot be written")
end

--- Can `path` be written? Changes nothing there. Returns true; or nil and "PATH: why".
function replace.try(path)
  local where = beside(path)
  if kind_of(path) == "other" then return true end -- who reads a pipe would see an end
  local file, why = io.open(where, "ab")
  if not file then return nil, reason(path, where, why) end
  file:close()
  if where ~= path then os.remove(where) end
  return true
end

--- Writes a file: write(put) calls put(text...) as often as it likes. Returns true; or nil and
-- "PATH: why". An error of write's goes on, and the file is as it was.
function replace.write(path, write)
  local where = beside(path)
  local file, why = io.open(where, "wb")
  if not file then return nil, reason(path, where, why) end
  local failed = {}
  local ok, message = pcall(write, function(...)
    local written, whyever = file:write(...)
    if not written then
      why = whyever
      error(failed, 0)
    end
  end)
  local closed, at_end = file:close()
  local good = ok and closed
  if good and where ~= path then good, why = os.rename(where, path) end
  if good then return true end
  if where ~= path then os.remove(where) end
  if not ok and message ~= failed then error(message, 0) end
  return nil, reason(path, where, why or at_end)
end

return replace
