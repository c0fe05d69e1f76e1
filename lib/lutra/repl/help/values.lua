--- Help pages of values: tensors, tables, strings that name dtypes and devices, everything else.
--
-- Invariant: calls no metamethod of the user's, and copies nothing from a device: the contents of
-- its tensors are shown only when they are printed.

local catalogue = require "lutra.repl.help.catalogue"
local core = require "lutra.core"
local numbers = require "lutra.internal.numbers"
local static_values = require "lutra.repl.complete.static_values"
local wrap = require "lutra.repl.help.wrap"

local values = {}

local most_read = 1 << 20 -- the maximum size of a tensor whose range is computed

--- Returns a short description of a value.
function values.describe(value)
  if core._is_freed(value) then return "a tensor that was freed" end
  if static_values.is_tensor(value) then
    return ("tensor %s, %s on %s"):format(tostring(value.shape), value.dtype, value.device)
  end
  local name = static_values.metafield(value, "__name")
  if type(value) == "table" and type(name) == "string" then return name end
  return type(value)
end

local function range_text(x)
  if x.device ~= "cpu" or x:numel() == 0 or x:numel() > most_read then return nil end
  local low, high
  require("lutra").no_grad(function()
    if x.dtype == "bool" then x = x:to "uint8" end
    low, high = x:min():item(), x:max():item()
  end)
  return ("from %s to %s"):format(numbers.text(low, "%.5g"), numbers.text(high, "%.5g"))
end

local function tensor_page(name, x, width, paint)
  local rows = {
    {"shape", tostring(x.shape)}, {"dtype", x.dtype}, {"device", x.device},
    {"memory", ("%d bytes%s"):format(x.nbytes, x:is_contiguous() and "" or ", not contiguous")},
    {"gradient", x.requires_grad and (x.grad_fn and "required; result of " .. x.grad_fn
      or "required; leaf tensor") or "not required"},
  }
  local range = range_text(x)
  if range then table.insert(rows, 4, {"values", range}) end
  return paint("heading", name) .. ": a tensor\n\n" .. wrap.rows(rows, width, 2) .. "\n\n"
    .. wrap.text(("?%s:sum shows help about a method; :apropos searches for others; :where %s "
      .. "shows its memory."):format(name, name), width)
end

-- Returns names as lines with as many as fit.
local function names_text(names, width)
  return "  " .. wrap.text(table.concat(names, ", "), width - 2, 0):gsub("\n", "\n  ")
end

local function library_page(name, doc, t, width, paint)
  local out = {paint("heading", name), ""}
  if doc then out[#out + 1] = wrap.comment(doc, width) .. "\n" end
  local names = {}
  for key in next, t do
    if type(key) == "string" and key:match "^[^_]" then names[#names + 1] = key end
  end
  for key in next, static_values.metafield(t, "__libraries") or {} do
    if rawget(t, key) == nil then names[#names + 1] = key end
  end
  table.sort(names)
  out[#out + 1] = names_text(names, width)
  out[#out + 1] = ""
  out[#out + 1] = wrap.text("?" .. name .. ".NAME shows help about one.", width)
  return table.concat(out, "\n")
end

local function table_page(name, t, width, paint)
  local count = 0
  for _ in next, t do count = count + 1 end
  local kind = static_values.metafield(t, "__name")
  local text = ("%s with %d field%s"):format(type(kind) == "string" and "a " .. kind or "a table",
    count, count == 1 and "" or "s")
  local rows = {}
  for key, value in next, t do
    local shown = type(key) == "number" and ("[%s]"):format(key) or "[" .. type(key) .. "]"
    local said = type(value) == "function" and catalogue.summary(value) or values.describe(value)
    rows[#rows + 1] = {type(key) == "string" and key or shown, said}
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  local more = #rows - 40
  for i = #rows, 41, -1 do rows[i] = nil end
  if more > 0 then rows[41] = {("... %d more"):format(more), ""} end
  return paint("heading", name) .. ": " .. text .. (count > 0 and "\n\n" or "")
    .. wrap.rows(rows, width, 2)
end

local function string_page(name, text, width, paint)
  local ok, dtype = pcall(core._dtype, text)
  if ok then
    local category = dtype.category
    local holds = category == "floating" and "floats" or category == "integer" and "integers"
      or category == "complex" and "complex numbers" or "booleans"
    return paint("heading", text) .. "\n\n" .. wrap.text(("A dtype: %s, %d byte%s an element. "
      .. "x:to \"%s\" converts; lt.%s is this string."):format(
        holds, dtype.size, dtype.size == 1 and "" or "s", text,
        text), width)
  end
  local is_device, device = pcall(core.device, text)
  if is_device then
    return paint("heading", text) .. "\n\n" .. wrap.text(("A device%s. x:to \"%s\" copies there; "
      .. ":devices shows the tensors on each."):format(device ~= text and ", in full " .. device
        or "", text), width)
  end
  return paint("heading", name) .. ": " .. wrap.text(("a string of %d bytes; its methods are those "
    .. "of string: ?string.format"):format(#text), width)
end

--- Returns the page of a value that is neither a function nor a class.
function values.page(name, value, width, paint)
  if core._is_freed(value) then
    return paint("heading", name) .. ": " .. values.describe(value)
  end
  if static_values.is_tensor(value) then return tensor_page(name, value, width, paint) end
  local library, doc = catalogue.namespace(value)
  if library then return library_page(name, doc, value, width, paint) end
  if type(value) == "table" then return table_page(name, value, width, paint) end
  if type(value) == "string" then return string_page(name, value, width, paint) end
  if value == nil or type(value) == "number" or type(value) == "boolean" then
    return paint("heading", name) .. ": " .. type(value) .. " " .. numbers.text(value)
  end
  return paint("heading", name) .. ": a " .. values.describe(value)
end

return values
