--- Names that PyTorch has and Lutra lacks: errors name them instead of suggesting another
-- operation.

local missing = {}

-- What to write instead of names of PyTorch, and of names that nobody has, by namespace and name.
local replacements = {
  lt = {
    Tensor = "lt.tensor(data), or lt.empty(sizes)", Size = "x.shape, or a table of sizes",
    range = "lt.arange(first, last, step), whose last value is included", typename = "x.dtype",
    use_deterministic_algorithms = "lt.manual_seed(seed)",
    set_default_tensor_type = "lt.set_default_dtype and lt.set_default_device",
    jit = "the module itself; nothing has to be compiled",
  },
  x = {
    to_dense = "x itself: all tensors are dense", ndimension = "x.ndim, or x:dim()",
    is_nonzero = "x:item() ~= 0", new = "x:new_empty(sizes), or x:new_tensor(data)",
    is_same_size = "x.shape == y.shape", astype = "x:to(dtype)",
  },
  F = {
    bce = "F.binary_cross_entropy(input, target)",
    bce_loss = "F.binary_cross_entropy(input, target)",
    bce_with_logits = "F.binary_cross_entropy_with_logits(input, target)",
    bce_with_logits_loss = "F.binary_cross_entropy_with_logits(input, target)",
    cross_entropy_loss = "F.cross_entropy(input, target)", mae_loss = "F.l1_loss(input, target)",
  },
  ["lt.autograd"] = {Variable = "the tensor itself"},
}
for prefix, dtype in pairs {Float = "float32", Double = "float64", Half = "float16", Long = "int64",
  Int = "int32", Short = "int16", Char = "int8", Byte = "uint8", Bool = "bool"} do
  replacements.lt[prefix .. "Tensor"] = ('lt.tensor(data, {dtype = "%s"})'):format(dtype)
  replacements.x[dtype] = ('x:to "%s"'):format(dtype)
end

local sets = {} -- namespace -> set of names

local function names_of(space)
  if not sets[space] then
    local set = {}
    for name in (require("lutra.internal.pytorch_names")[space] or ""):gmatch "%S+" do
      set[name] = true
    end
    sets[space] = set
  end
  return sets[space]
end

-- Returns whether lt has a public function of this name.
local function is_function(name)
  if type(name) ~= "string" or name:find "^_" then return false end
  local found, value = pcall(function() return package.loaded.lutra[name] end)
  return found and type(value) == "function"
end

--- Returns "PyTorch has lt.foo; Lutra does not have it yet", or what to write instead, for a name
-- in a namespace ("lt", "nn", "lt.linalg"; "x" for methods of tensors, "m" for those of modules);
-- nil for another name. A function of lt that is no method is named for a tensor. Is called for
-- names that do not exist.
function missing.hint(space, name)
  local instead = replacements[space] and replacements[space][name]
  if instead then return "write " .. instead end
  if space == "x" and is_function(name) then return ("write lt.%s(x, ...)"):format(name) end
  if not names_of(space)[name] then return nil end
  local is_method = space == "x" or space == "m"
  local code = space .. (is_method and ":" or ".") .. name .. (is_method and "()" or "")
  return ("PyTorch has %s; Lutra does not have it yet"):format(code)
end

return missing
