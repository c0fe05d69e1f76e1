--- Completion of argument values: dtypes, devices, and the strings that a signature lists.

local core = require "lutra.core"
local files = require "lutra.repl.files"
local arguments = require "lutra.repl.complete.arguments"
local tokens = require "lutra.repl.complete.tokens"

local values = {}

-- Functions whose only argument is a dtype, which their signature does not declare.
local of_dtypes = {finfo = true, iinfo = true, promote_types = true,
  can_cast = true}

-- Returns the kind of value that a name of an argument, a field or a function implies: "dtype",
-- "device" or nil.
local function by_name(name)
  return name and (name:match "dtype$" or name:match "device$" or of_dtypes[name] and "dtype")
end

--- Returns the kind of the value at the cursor: "dtype", "device", "both", a list of strings, or
-- nil. `call` is arguments.call(context).
function values.kind(context, call)
  local list = context.read.list
  local last = #list
  if tokens.is(list, last, "==") or tokens.is(list, last, "~=") then
    return by_name(tokens.name(list, last - 1))
  end
  if tokens.is(list, last, "=") then
    local name = by_name(tokens.name(list, last - 1))
    if name then return name end
  end
  if not call then return nil end
  if call.name == "to" and not call.key then return "both" end
  local param = arguments.parameter(call)
  if param and param.choices then return param.choices end
  if param then
    local kind = param.type:match "dtype" or param.type:match "device"
    return kind or by_name(param.name)
  end
  return not call.options and by_name(call.name) or nil
end

-- Returns the dtypes: the core has a field of its own name for each.
local function dtypes()
  local list = {}
  for name, value in next, core do
    if name == value then list[#list + 1] = name end
  end
  return list
end

-- Returns the NVIDIA GPUs that the system lists, while their driver has not been initialized.
local function undetected_gpus()
  if not core._accelerator.is_built "cuda" then return 0 end
  local visible = os.getenv "CUDA_VISIBLE_DEVICES"
  local count = #(files.list "/proc/driver/nvidia/gpus" or {})
  if visible then count = math.min(count, select(2, visible:gsub("[^,]+", ""))) end
  return count
end

-- Returns the available devices: those in use or emulated, and those that would be found.
local function devices()
  local list, seen = core._devices_here(), {}
  for _, name in ipairs(list) do seen[name] = true end
  for i = 0, seen["cuda:0"] and -1 or undetected_gpus() - 1 do list[#list + 1] = "cuda:" .. i end
  if not seen.mps and core._accelerator.is_built "mps" then list[#list + 1] = "mps" end
  return list
end

local function add_one(name, kind, add, quoted)
  add(quoted and '"' .. name .. '"' or name, kind)
end

--- Adds the words of a kind (values.kind), in quotes with `quoted`.
function values.add(kind, add, quoted)
  if type(kind) == "table" then
    for _, word in ipairs(kind) do add_one(word, "string", add, quoted) end
    return
  end
  if kind ~= "device" then
    for _, name in ipairs(dtypes()) do add_one(name, "dtype", add, quoted) end
  end
  if kind ~= "dtype" then
    for _, name in ipairs(devices()) do add_one(name, "device", add, quoted) end
  end
end

return values
