-- Expected values that come from mathematics: of ops that PyTorch does not have, or that it gives
-- other values for. A case is the op's name, a Lua expression, and its result as nested tables,
-- with numbers to float32's precision.
local inf = math.huge
return {
kind = "by_hand",
{"gelu", "lt.gelu(lt.tensor{inf, -3e38, 0})", {inf, 0, 0}}, -- x P(X <= x); PyTorch's may be NaN
{"norm", "lt.norm(lt.zeros(0), {p = 0 / 0})", 0.0}, -- of no elements, whatever p
{"broadcast_shapes", "lt.broadcast_shapes({2, 1, 3}, {4, 1}, 3)", {2, 4, 3}},
{"broadcast_shapes", "lt.broadcast_shapes({0, 1}, {1, 5})", {0, 5}},
{"signbit", "lt.signbit(lt.tensor{lt.nan, -lt.nan})", {false, true}}, -- on every CPU
}
