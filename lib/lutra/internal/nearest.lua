--- The word that somebody meant: of a list of names the one nearest to what was written.
--
-- Idea: letters in the wrong case, and underscores left out, are no misspelling, so that `relu`
-- finds `ReLU`; after that the letters to insert, remove, replace or swap are counted, of which
-- there may be one for three letters of a word that has at least four. The core counts them, since
-- it names the fields of tensors and the arguments of functions by the same rule.

local nearest = {}

--- The nearest to `word` of `names` (a list of strings), the first in the alphabet of those that
-- are equally near; nil when none is near.
function nearest.find(word, names)
  local ok, core = pcall(require, "lutra.core")
  local found = ok and core._nearest(word, names)
  return found and found ~= word and found or nil
end

--- The names of a table's fields that a user may mean: strings that start with no underscore.
-- Calls no metamethod.
function nearest.names(t)
  local names = {}
  for key in next, t do
    if type(key) == "string" and key:match "^[^_]" then names[#names + 1] = key end
  end
  return names
end

return nearest
