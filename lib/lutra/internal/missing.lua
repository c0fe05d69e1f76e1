--- Names that PyTorch has and Lutra lacks: errors name them instead of suggesting another
-- operation.

local missing = {}

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

--- Returns "PyTorch has lt.foo; Lutra does not have it yet" for a name in a namespace ("lt", "nn",
-- "lt.linalg"; "x" for methods of tensors, "m" for those of modules); nil for another name. Is
-- called for names that do not exist.
function missing.hint(space, name)
  if not names_of(space)[name] then return nil end
  local is_method = space == "x" or space == "m"
  local code = space .. (is_method and ":" or ".") .. name .. (is_method and "()" or "")
  return ("PyTorch has %s; Lutra does not have it yet"):format(code)
end

return missing
