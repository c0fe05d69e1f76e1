--- Distances of vectors as layers: nn.CosineSimilarity and nn.PairwiseDistance.

local layers = require "lutra.nn.layers"
local F = require "lutra.nn.functional"

local distances = {}

--- nn.CosineSimilarity{dim = 2, eps = 1e-8}: the cosine of the angle between x1 and x2 along
-- dimension `dim`; forward(x1, x2) broadcasts the two tensors.
distances.CosineSimilarity = layers.define("CosineSimilarity", "dim dim = 2, float eps = 1e-8",
  function(self, a, b)
    return F.cosine_similarity(a, self:check_tensor(b), self.dim, self.eps)
  end, {printed = {}})

--- nn.PairwiseDistance{p = 2, eps = 1e-6, keepdim = false}: the p-norm of x1 - x2 + eps over the
-- last dimension; forward(x1, x2) of {N, D} or {D} gives {N} or {}.
distances.PairwiseDistance = layers.define("PairwiseDistance",
  "float p = 2, float eps = 1e-6, bool keepdim = false", function(self, a, b)
    return F.pairwise_distance(a, self:check_tensor(b), self.p, self.eps, self.keepdim)
  end, {printed = {}})

return distances
