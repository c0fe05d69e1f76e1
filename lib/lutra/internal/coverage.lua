--- Which ops accept which dtypes on which devices (lt.coverage), derived from the table of ops.
--
-- The dtypes are those that the op accepts on meta, which runs its checks and its inference of
-- shape and dtype without data: each public op is called there with arguments that its signature
-- describes. The devices are those whose backend has a kernel for the op and dtype.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local scopes = require "lutra.internal.scopes"

local coverage = {}

local GROUPS <const> = { -- letter in the printed table -> dtypes
  {"b", "bool"}, {"i", "uint8", "int8", "int16", "int32", "int64"}, {"h", "float16", "bfloat16"},
  {"f", "float32"}, {"d", "float64"}, {"c", "complex64", "complex128"},
}
local SHAPES <const> = {
  {2, 2}, {2, 2, 2}, {2}, {2, 2, 4, 4}, {2, 2, 4, 4, 4}, {1}, {}, {2, 2, 4},
}

local function has(kind, name)
  return ("|" .. kind .. "|"):find("|" .. name .. "|", 1, true) ~= nil
end

-- The value for a parameter that must be given; `tensor(i)` is a tensor for parameter i, `list` a
-- value for sizes.
local function value_of(param, i, tensor, list)
  local kind = param.type
  if has(kind, "Tensor") or has(kind, "Operand") then return tensor(i) end
  if has(kind, "Index") then
    return core._ops.zeros({2}, {dtype = "int64", device = "meta"})
  elseif has(kind, "Tensor[]") then
    return {tensor(i), tensor(i)}
  elseif has(kind, "sizes") or has(kind, "ints") then
    return list
  elseif has(kind, "dim") or has(kind, "int") or has(kind, "position") or has(kind, "Scalar") then
    return 1
  elseif has(kind, "dims") then
    return {1}
  elseif has(kind, "float") then
    return 0.5
  elseif has(kind, "bool") then
    return false
  elseif param.choices then
    return param.choices[1]
  elseif has(kind, "dtype") then
    return "float32"
  end
end

-- Returns whether the call succeeds on meta with tensors of a dtype and sample.shape; the tensor
-- of parameter sample.mask is bool.
local function accepts(call, row, dtype, sample)
  local list, n, shape = {}, 0, sample.shape
  local function tensor(i)
    return core._ops.zeros(shape, {dtype = i == sample.mask and "bool" or dtype, device = "meta"})
  end
  for i, param in ipairs(row.params) do
    if not param.optional then
      list[i] = value_of(param, i, tensor, sample.list)
      n = i
    end
  end
  local ok, message = pcall(call, table.unpack(list, 1, n))
  if not ok then args.pass_on_interrupt(message) end
  return ok
end

-- A function that calls the op: of lt, of a namespace, a method, or in place.
local function callable(row)
  if row.call then return row.call end
  local variants = row.variants
  if variants["function"] then return core[row.name] end
  if variants.method then return core._methods[row.name] end
  if variants.in_place then return core._methods[row.name .. "_"] end
  local space, name = next(row.namespaces)
  return space and require("lutra.internal.namespaces").ops(space)[name]
end

local function takes_tensors(row)
  for _, param in ipairs(row.params) do
    if not param.optional and (param.type:find "Tensor" or param.type:find "Operand") then
      return true
    end
  end
  return false
end

-- Calls try(sample) with arguments of other shapes until it returns a true value; returns it.
local function search(row, try)
  for _, shape in ipairs(SHAPES) do
    for mask = 0, math.min(#row.params, 3) do
      for _, list in ipairs{shape, {1}} do
        local found = try{shape = shape, mask = mask, list = list}
        if found then return found end
      end
    end
  end
end

-- Returns the set of dtypes that the op accepts on meta; nil when no call with arguments that the
-- signature describes succeeds.
local function dtypes_of(row)
  local call = callable(row)
  if not call or not takes_tensors(row) then return nil end
  local sample = search(row, function(sample)
    for _, dtype in ipairs{"float32", "int64", "bool", "complex64"} do
      if accepts(call, row, dtype, sample) then return sample end
    end
  end)
  if not sample then return nil end
  local set = {}
  for _, group in ipairs(GROUPS) do
    for i = 2, #group do set[group[i]] = accepts(call, row, group[i], sample) or nil end
  end
  return set
end

-- The op's name, with its namespace where lt does not have it.
local function full_name(row)
  if row.variants["function"] or row.variants.method or row.variants.in_place then
    return row.name
  end
  local space, name = next(row.namespaces)
  return space and space .. "." .. name or row.name
end

-- "biHfd-": a letter for each group, upper case when the op accepts a part of it.
local function letters(set)
  local text = {}
  for i, group in ipairs(GROUPS) do
    local count = 0
    for k = 2, #group do count = count + (set[group[k]] and 1 or 0) end
    text[i] = count == #group - 1 and group[1] or count > 0 and group[1]:upper() or "-"
  end
  return table.concat(text)
end

-- The dtypes of an op on a device, of those that it accepts.
local function on_device(row, device, set)
  local own = {}
  for dtype in pairs(set) do
    own[dtype] = core._supported(row.call and "" or row.name, device, dtype) or nil
  end
  return own
end

--- Returns a list of {name, kind, host, devices}, one entry for each public op whose name contains
-- the string `pattern`: devices[type] is a set of dtypes, or true for an op without tensors or
-- whose dtypes are unknown; host is true when other devices run it on the CPU, with copies.
function coverage.table(pattern)
  local list = {}
  for _, row in ipairs(require("lutra.internal.composites").ops()) do
    if not row.name:find "^_" and row.kind ~= "map"
      and (not pattern or full_name(row):find(pattern, 1, true)) then
      local set = scopes.no_grad(dtypes_of, row)
      local entry = {name = full_name(row), kind = row.kind, host = row.traits.host, devices = {}}
      for device, supported in pairs(row.support) do
        entry.devices[device] = supported and (set and on_device(row, device, set) or true) or nil
      end
      list[#list + 1] = entry
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- Prints the list that coverage.table returns, line by line by the function `write` (print by
-- default), and returns it.
function coverage.print(pattern, write)
  write = write or print
  local list = coverage.table(pattern)
  local devices = {}
  for device in pairs(core.ops()[1].support) do devices[#devices + 1] = device end
  table.sort(devices)
  local width = 4
  for _, entry in ipairs(list) do width = math.max(width, #entry.name) end
  local head = {("%-" .. width .. "s  %-11s"):format("op", "kind")}
  for _, device in ipairs(devices) do head[#head + 1] = ("%-6s"):format(device) end
  write(table.concat(head, "  "))
  for _, entry in ipairs(list) do
    local line = {("%-" .. width .. "s  %-11s"):format(entry.name, entry.kind)}
    for _, device in ipairs(devices) do
      local set = entry.devices[device]
      line[#line + 1] = set == true and "any   " or set and letters(set) or "      "
    end
    write((table.concat(line, "  ") .. (entry.host and "  on the host" or "")):match "^(.-)%s*$")
  end
  write "b bool  i integers  h half  f float32  d float64  c complex; upper case: some of them"
  return list
end

--- Calls coverage.print with the arguments of lt.coverage.
coverage.call = (function()
  local parse = args.signature("coverage", "string? pattern = nil")
  return function(...) return coverage.print(parse(...)) end
end)()

return coverage
