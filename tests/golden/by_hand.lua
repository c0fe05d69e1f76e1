-- Expected values that come from mathematics: of ops that PyTorch does not have, or that it gives
-- other values for, and of functions in place. A case is the op's name, a Lua expression, and its
-- result as nested tables, with numbers to float32's precision.
local inf = math.huge
return {
kind = "by_hand",
{"gelu", "lt.gelu(lt.tensor{inf, -3e38, 0})", {inf, 0, 0}}, -- x P(X <= x); PyTorch's may be NaN
{"norm", "lt.norm(lt.zeros(0), {p = 0 / 0})", 0.0}, -- of no elements, whatever p
{"broadcast_shapes", "lt.broadcast_shapes({2, 1, 3}, {4, 1}, 3)", {2, 4, 3}},
{"broadcast_shapes", "lt.broadcast_shapes({0, 1}, {1, 5})", {0, 5}},
{"signbit", "lt.signbit(lt.tensor{lt.nan, -lt.nan})", {false, true}}, -- on every CPU
{"clamp", "lt.clamp(lt.tensor({5, 50, 200}, {dtype = 'uint8'}), 10, 100)", {10, 50, 100}},
{"clamp", "lt.clamp(lt.tensor({-100, 0, 100}, {dtype = 'int8'}), -300, 50)", {-100, 0, 50}},
{"eq", "lt.eq(lt.tensor({0, 1}, {dtype = 'int8'}), (1 << 32) + 1)", {false, false}},
{"lt", "lt.lt(lt.tensor({0, 1}, {dtype = 'int32'}), 1 << 40)", {true, true}},
{"ge", "lt.ge(lt.tensor({0, 1}, {dtype = 'int32'}), lt.tensor(1 << 40))", {false, false}},
{"amax", "lt.amax(lt.tensor({{-5, -128}, {127, 3}}, {dtype = 'int8'}), 2)", {-5, 127}},
{"grid_sample", [[(function(grid)
  local y = F.grid_sample(lt.ones(1, 1, 2, 2), grid, "nearest")
  return lt.autograd.grad(y:sum(), grid)
end)(lt.tensor{{{{0.25, inf}}}}:requires_grad_())]], {{{{0, 0}}}}},
{"relu_", "F.relu_(lt.tensor{-2., 3})", {0, 3}},
{"leaky_relu_", "F.leaky_relu_(lt.tensor{-2., 3}, 0.5)", {-1, 3}},
{"elu_", "F.elu_(lt.tensor{-inf, 3}, 2)", {-2, 3}},
{"selu_", "F.selu_(lt.tensor{-inf, 0})", {-1.7580993408473766, 0}},
{"celu_", "F.celu_(lt.tensor{-inf, 3}, 2)", {-2, 3}},
{"hardtanh_", "F.hardtanh_(lt.tensor{-2, 0.5})", {-1, 0.5}},
{"threshold", "F.threshold(lt.tensor({-5, 0, 9}, {dtype = 'int32'}), -(1 << 40), 1)", {-5, 0, 9}},
{"threshold", "F.threshold(lt.tensor({-5, 0, 9}, {dtype = 'int32'}), (1 << 32) + 2, 1)", {1, 1, 1}},
{"threshold_", "F.threshold_(lt.tensor{-2., 3}, 0.5, 9)", {9, 3}},
{"rrelu_", "F.rrelu_(lt.tensor{-2., 3}, 0.25, 0.75)", {-1, 3}},
}
