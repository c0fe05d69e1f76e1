--- nn.summary: the layers of a model with their shapes, parameters and multiplications.
--
-- A copy of the model runs on "meta", so that no memory is allocated and nothing is computed: hooks
-- on its modules record the calls. Invariant: the model itself is not called and does not change.

local lt = require "lutra"
local args = require "lutra.internal.args"
local copies = require "lutra.nn.module.copies"
local summary_table = require "lutra.nn.summary_table"

local Summary = {__name = "Summary", __tostring = summary_table.text}
Summary.__index = Summary

-- In a notebook a summary is shown as a table.
function Summary:__mimebundle()
  return {["text/html"] = require("lutra.repl.rich.layers").html(self)}
end

local bytes_of = {float64 = 8, float32 = 4, float16 = 2, bfloat16 = 2, int64 = 8, int32 = 4,
  int16 = 2, int8 = 1, uint8 = 1, bool = 1, complex64 = 8, complex128 = 16}

-- Calls visit(tensor) for the tensors among the values, and in tables.
local function each_tensor(visit, ...)
  for i = 1, select("#", ...) do
    local x = (select(i, ...))
    if lt.is_tensor(x) then
      visit(x)
    elseif args.is_plain(x) then
      for _, value in pairs(x) do each_tensor(visit, value) end
    end
  end
end

local function bytes(...)
  local total = 0
  each_tensor(function(x) total = total + x:numel() * bytes_of[x.dtype] end, ...)
  return total
end

-- Returns the shapes of the tensors among the values, "{2, 3}, {4}"; "" without one.
local function shapes(...)
  local list = {}
  each_tensor(function(x) list[#list + 1] = tostring(x.shape) end, ...)
  return table.concat(list, ", ")
end

local function first_tensor(...)
  local first
  each_tensor(function(x) first = first or x end, ...)
  return first
end

-- ---- multiplications ----------------------------------------------------------------

-- The layers that multiply weights of 2 or more dimensions: a pattern of the class's name, and the
-- number of times that each weight is used.
local function per(x, dim) return x:numel() // math.max(x:size(dim), 1) end
local function per_output_channel(_, output) return per(output, 2) end
local function per_input_channel(input) return per(input, 2) end
local function per_row(_, output) return per(output, -1) end
local multiplying = {
  {"^ConvTranspose%dd$", per_input_channel}, {"^Conv%dd$", per_output_channel},
  {"^Linear$", per_row}, {"^Bilinear$", per_row}, {"^RNN", per_row}, {"^LSTM", per_row},
  {"^GRU", per_row}, {"^MultiheadAttention$", per_row},
}

-- Returns the function that counts the uses of a weight of `module`, by its class or one above it.
local function uses_of(module)
  local class = getmetatable(module).__state.class
  while type(class) == "table" and rawget(class, "__name") do
    for _, row in ipairs(multiplying) do
      if class.__name:find(row[1]) then return row[2] end
    end
    local meta = getmetatable(class)
    class = meta and rawget(meta, "__index")
  end
end

local function multiplications(module, input, output)
  local uses = uses_of(module)
  if not uses or not input or not output or output.ndim == 0 then return 0 end
  local total = 0
  for p in module:parameters(false) do
    if p.ndim >= 2 then total = total + p:numel() * uses(input, output) end
  end
  return total
end

-- ---- recording ----------------------------------------------------------------------

local function count(module, recurse)
  local total = 0
  for p in module:parameters(recurse) do total = total + p:numel() end
  return total
end

local function new_row(module, name, depth, seen)
  local row = {name = name, type = module:type_name(), depth = depth, own_params = 0, params = 0,
    mult_adds = 0, input = "", output = "", output_bytes = 0, repeated = seen[module] or false,
    leaf = module:children()() == nil}
  if not row.repeated then
    row.own_params, row.params = count(module, false), count(module)
  end
  seen[module] = true
  return row
end

-- Returns the rows of all modules of a model that is not called.
local function listed(model)
  local rows, seen = {}, {}
  local function visit(module, name, depth)
    rows[#rows + 1] = new_row(module, name, depth, seen)
    for child_name, child in module:named_children() do visit(child, child_name, depth + 1) end
  end
  visit(model, nil, 0)
  return rows
end

-- Returns the name of a module below the one that calls it: its path, or nil.
local function name_below(parent, module)
  for path, other in parent:named_modules() do
    if other == module and path ~= "" then return path end
  end
end

-- Records the calls of modules below `model`, a copy of the user's, in a list of rows.
local function record(model)
  local rows, open, seen = {}, {}, {}
  for module in model:modules() do
    module:register_forward_pre_hook(function(self)
      local above = open[#open]
      local name = above and name_below(above.module, self)
      rows[#rows + 1] = new_row(self, name, #open, seen)
      open[#open + 1] = {module = self, row = rows[#rows]}
    end)
    module:register_forward_hook(function(self, inputs, ...)
      local row = table.remove(open).row
      row.input = shapes(table.unpack(inputs, 1, inputs.n))
      row.output, row.output_bytes = shapes(...), bytes(...)
      row.mult_adds = multiplications(self, first_tensor(table.unpack(inputs, 1, inputs.n)),
        first_tensor(...))
    end)
  end
  return rows
end

-- Returns the inputs of shapes {2, 3} or {{2, 3}, {4}}, or from the given tensors, on a device.
local function make_inputs(size, data, dtypes, device)
  if data ~= nil then
    local list = args.is_plain(data) and data or {data}
    return copies.converted(list, function(x) return x:detach():to(device) end)
  end
  local sizes = type(size[1]) == "table" and size or {size}
  local inputs = {}
  for i, shape in ipairs(sizes) do
    local dtype = type(dtypes) == "table" and dtypes[i] or type(dtypes) == "string" and dtypes
      or "float32"
    inputs[i] = lt.ones(shape, {dtype = dtype, device = device})
  end
  return inputs
end

local parse = args.signature("summary", "any model, any? input_size = nil, any? input_data = nil, "
  .. "int(>=0) depth = 3, device? device = nil, any? dtypes = nil, "
  .. "'eval'|'train'|'same' mode = 'eval'")

-- Runs the copy of a model.
local function run(model, inputs, device)
  local ok, message = pcall(lt.with_device, device, lt.no_grad, model, table.unpack(inputs))
  if ok then return end
  message = tostring(message):gsub("^[^\n:]+:%d+: ", "")
  args.fail("summary: cannot call the model on \"%s\": %s%s", device, message,
    message:find("it has no data", 1, true)
      and '\nhint: a forward that reads values runs with {device = "cpu"}' or "")
end

local function totals(model, rows, inputs)
  local result = {layers = rows, total_params = 0, trainable_params = 0, total_mult_adds = 0,
    input_bytes = bytes(inputs), output_bytes = 0, param_bytes = 0}
  for p in model:parameters() do
    local n = p:numel()
    result.total_params = result.total_params + n
    result.param_bytes = result.param_bytes + n * bytes_of[p.dtype]
    if p.requires_grad then result.trainable_params = result.trainable_params + n end
  end
  for _, row in ipairs(rows) do
    result.total_mult_adds = result.total_mult_adds + row.mult_adds
    if row.leaf then result.output_bytes = result.output_bytes + row.output_bytes end
  end
  return result
end

--- nn.summary(model, input_size, {input_data, depth = 3, device = "meta", dtypes, mode = "eval"}):
-- returns a table of the layers that a call of the model runs, which prints with the shapes of
-- their inputs and outputs, the numbers of their parameters and of multiplications by weights (of
-- linear, convolution and recurrent layers and attention's projections), and sums. `input_size` is
-- a shape with the batch, {1, 3, 32, 32}, or a list of shapes, whose dtypes are `dtypes` (float32);
-- `input_data` a tensor, or a list of arguments, in their place; without either, the modules are
-- listed. Modules deeper than `depth` are part of the row above. The model is copied to `device`;
-- on "meta" nothing is computed. The result has the fields layers, total_params, trainable_params,
-- total_mult_adds, input_bytes, output_bytes (of layers without children) and param_bytes. Raises
-- an error for a forward that needs the values of tensors on "meta".
return function(...)
  local model, size, data, depth, device, dtypes, mode = parse(...)
  args.expect(lt.nn.is_module(model), "summary", "a module", "model", model)
  args.expect(size == nil or type(size) == "table", "summary", "a shape or a list of shapes",
    "input_size", size)
  device = device or "meta"
  local inputs, rows = {}
  if size == nil and data == nil then
    rows = listed(model)
  else
    local copy = copies.converted(model, function(x)
      local new = x:detach():to(device)
      return lt.is_parameter(x) and lt._parameter(new, x.requires_grad) or new
    end)
    if mode ~= "same" then copy:train(mode == "train") end
    inputs = make_inputs(size, data, dtypes, device)
    rows = record(copy)
    run(copy, inputs, device)
  end
  local result = totals(model, rows, inputs)
  result.depth = depth
  return setmetatable(result, Summary)
end
