--- Suggestions for misspelled names: the nearest name of a list.
--
-- Differences in case and missing underscores do not count, so that `relu` finds `ReLU`; otherwise
-- the number of inserted, removed, replaced or swapped letters counts, one of which is allowed per
-- three letters of a word of at least four. The core computes it, as it applies the same rule to
-- the fields of tensors and the arguments of functions.

local nearest = {}

--- Returns the name of `names` (a list of strings) that is nearest to `word`, the first in
-- alphabetical order of equally near ones; nil when none is near.
function nearest.find(word, names)
  local ok, core = pcall(require, "lutra.core")
  local found = ok and core._nearest(word, names)
  return found and found ~= word and found or nil
end

--- Returns the string keys of a table that do not start with an underscore. Calls no metamethod.
function nearest.names(t)
  local names = {}
  for key in next, t do
    if type(key) == "string" and key:match "^[^_]" then names[#names + 1] = key end
  end
  return names
end

return nearest
