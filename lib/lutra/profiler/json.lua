--- JSON strings and files.

local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"

local json = {}

local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r"}

-- Returns a string as JSON; bytes that are not UTF-8 are read as Latin-1.
local function quote(s)
  if not utf8.len(s) then
    s = s:gsub("[\x80-\xff]", function(c) return utf8.char(c:byte()) end)
  end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

--- json.quoted[s] is the string s as JSON. Results are cached, as few different strings occur many
-- times.
json.quoted = setmetatable({}, {__index = function(t, s)
  local text = quote(s)
  t[s] = text
  return text
end})

--- Writes a file: calls write(events, put), which calls put(text...). Raises an error that starts
-- with `title` when the file cannot be written.
function json.save(title, path, write, events)
  args.expect(type(path) == "string", title, "a file name", "path", path)
  args.path(title, "path", path)
  local ok, why = atomic_file.write(path, function(put) write(events, put) end)
  args.check(ok, "%s: cannot write %s", title, why)
end

return json
