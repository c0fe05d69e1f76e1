--- Archives of NumPy arrays (.npz): zip archives whose entries are .npy files.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local atomic_file = require "lutra.internal.atomic_file"
local ordered_map = require "lutra.internal.ordered_map"
local zip = require "lutra.internal.zip"

local npz = {}

--- Returns the tensors of the archive at `path` in its order, each changed by `move`.
function npz.load(path, move)
  local function fail(why) args.fail('load_npz: cannot read "%s": %s', path, args.reason(why)) end
  local source <close> = core._source("load_npz", path, false)
  local _, entries = zip.open(source, fail)
  local tensors = ordered_map.new()
  for _, entry in ipairs(entries) do
    local name = entry.name:match "^(.+)%.npy$"
    if not name then fail(("its entry %q is no .npy file"):format(entry.name)) end
    local ok, t = pcall(core._npy_parse, zip.read(source, entry, fail, true), path)
    if not ok then
      local why = tostring(t):match 'cannot read ".-": (.*)$'
      if not why then error(t, 0) end
      fail(("array %q: %s"):format(name, why))
    end
    tensors[name] = move(t)
  end
  return tensors
end

-- Returns the names and tensors to write: those of a list are arr_0, arr_1...
local function entries_of(tensors)
  local list = {}
  for _, key in ipairs(ordered_map.keys(tensors)) do
    local t, name = tensors[key], key
    if math.type(key) == "integer" and key >= 1 and key <= #tensors then
      name = ("arr_%d"):format(key - 1)
    end
    if type(name) ~= "string" or name == "" or name:find "%z" or not utf8.len(name) then
      args.fail("save_npz: expected strings as names in argument 'tensors', got %s",
        args.show(key))
    end
    args.check(core.is_tensor(t), "save_npz: expected a tensor for %q, got %s", name, args.show(t))
    list[#list + 1] = {name, t, core._npy_header(t)}
  end
  return list
end

--- Writes an archive, atomically.
function npz.save(path, tensors, compressed)
  local list = entries_of(tensors)
  local ok, why = atomic_file.write(path, function(put)
    local writer = zip.writer(put)
    for _, entry in ipairs(list) do
      writer:add(entry[1] .. ".npy", entry[3] .. core._tensor_bytes(entry[2]), compressed)
    end
    writer.finish()
  end)
  args.check(ok, "save_npz: cannot write %s", why)
end

return npz
