--- The graph of a module for TensorBoard: its leaf modules as nodes, in scopes of the modules
-- around them, and the tensors that pass between them as edges, found by running it once.

local lt = require "lutra"
local protobuf = require "lutra.internal.protobuf"

local graph = {}

local bytes, int = protobuf.bytes, protobuf.int

-- Returns the tensors in a list of values and in tables in them.
local function tensors_of(values, n, found)
  found = found or {}
  for i = 1, n do
    local x = values[i]
    if lt.is_tensor(x) then
      found[#found + 1] = x
    elseif type(x) == "table" and getmetatable(x) == nil then
      tensors_of(x, #x, found)
    end
  end
  return found
end

-- Returns the attribute "_output_shapes" of shapes.
local function shapes_attribute(shapes)
  local list = {}
  for i, shape in ipairs(shapes) do
    local dims = {}
    for k, n in ipairs(shape) do dims[k] = bytes(2, int(1, n)) end
    list[i] = bytes(7, table.concat(dims))
  end
  return bytes(5, bytes(1, "_output_shapes") .. bytes(2, bytes(1, table.concat(list))))
end

local function node(name, op, inputs, device, shapes)
  local parts = {bytes(1, name), bytes(2, op)}
  for _, input in ipairs(inputs) do parts[#parts + 1] = bytes(3, input) end
  parts[#parts + 1] = bytes(4, device)
  parts[#parts + 1] = shapes_attribute(shapes)
  return bytes(1, table.concat(parts))
end

-- Returns a map from modules to their names as scopes: "Net/layer[1]".
local function scopes_of(model)
  local names = {[model] = tostring(getmetatable(model) and getmetatable(model).__name or "model")}
  local root = names[model]
  for path, module in model:named_modules() do
    if path ~= "" then names[module] = root .. "/" .. path:gsub("%.", "/") end
  end
  return names
end

local function class_name(module)
  local meta = getmetatable(module)
  return type(meta) == "table" and meta.__name or "Module"
end

--- Returns the serialized GraphDef of `model`, called with the list `inputs`.
function graph.of(model, inputs)
  local names, nodes, made, calls, hooks = scopes_of(model), {}, {}, {}, {}
  for i, x in ipairs(tensors_of(inputs, #inputs)) do
    local name = ("input/input_%d"):format(i)
    nodes[#nodes + 1] = node(name, "IO Node", {}, x.device, {x.shape})
    made[x] = name
  end
  local last -- the leaf that ran last: the source of tensors that an op in between made
  for path, module in model:named_modules() do
    if not module:named_children()() then
      hooks[#hooks + 1] = module:register_forward_hook(function(self, given, ...)
        local list = type(given) == "table" and getmetatable(given) == nil and given or {given}
        local results = tensors_of({...}, select("#", ...))
        calls[path] = (calls[path] or 0) + 1
        local name = names[self] .. (calls[path] > 1 and ("_%d"):format(calls[path]) or "")
        local from, shapes, seen = {}, {}, {}
        for _, x in ipairs(tensors_of(list, #list)) do
          local input = made[x] or last
          if input and not seen[input] then
            seen[input] = true
            from[#from + 1] = input
          end
        end
        for i, x in ipairs(results) do shapes[i], made[x] = x.shape, name end
        nodes[#nodes + 1] = node(name, class_name(self), from,
          results[1] and results[1].device or "", shapes)
        last = name
      end)
    end
  end
  local ok, message = pcall(function()
    return lt.no_grad(function()
      local results = table.pack(model(table.unpack(inputs)))
      for i, x in ipairs(tensors_of(results, results.n)) do
        nodes[#nodes + 1] = node(("output/output_%d"):format(i), "IO Node",
          {made[x] or last}, x.device, {x.shape})
      end
    end)
  end)
  for _, hook in ipairs(hooks) do hook:remove() end
  if not ok then error(message, 0) end
  return table.concat(nodes) .. bytes(4, int(1, 22))
end

return graph
