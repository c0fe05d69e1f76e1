-- Made by tools/golden/generate.py with PyTorch 2.15.0. Do not edit.
return {
kind = "ops", version = "2.15.0",
function() return {op = 'linear', code = "F.linear(x, w)", inputs = {x = {dtype = "float32", shape = {3}, data = {1.62195718, -0.541787565, -0.497985929}}, w = {dtype = "float32", shape = {3}, data = {2.26330066, -0.765574813, 1.77916121}}},
  outputs = {{dtype = "float32", shape = {}, data = {3.19975853}}}} end,
}
