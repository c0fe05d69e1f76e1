-- Examples of F: ops written in Lua.
local lt = require "lutra"
local F = lt.F

-- Vectors of length 1
print(F.normalize(lt.tensor{{3., 4.}}))  --> tensor{{0.6000, 0.8000}, shape = {1, 2}}

-- The cosine of the angle between vectors
print(F.cosine_similarity(lt.tensor{{1., 0.}}, lt.tensor{{1., 1.}}))  --> tensor{0.7071}

-- A loss that is quadratic near 0 and linear far from it
print(F.huber_loss(lt.tensor{0., 3.}, lt.tensor{0.5, 0.}))  --> tensor(1.3125)

-- Vectors by number
print(F.embedding(lt.tensor{2, 1}, lt.tensor{{1., 2.}, {3., 4.}}))
--> tensor{{3., 4.},
-->        {1., 2.}, shape = {2, 2}}
