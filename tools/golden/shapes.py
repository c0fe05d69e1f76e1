"""Cases of ops that create, reshape, join and index tensors, beside those of ops.py."""

import torch

import ops
from ops import case, family, i, positions


def f(*shape):
    return ops.f(*shape) if shape else torch.randn([])


# ---- creation

family("creators")
X = f(3, 4)
INT64 = torch.int64
case("scalar_tensor", "lt.scalar_tensor(3)", lambda: torch.scalar_tensor(3))
case("scalar_tensor", "lt.scalar_tensor(2.5, {dtype = \"float64\"})", lambda: torch.scalar_tensor(2.5, dtype=torch.float64))
case("scalar_tensor", "lt.scalar_tensor(-5, {dtype = \"uint8\"})", lambda: torch.scalar_tensor(-5, dtype=torch.uint8))
case("fill", "lt.fill(x, 3)", lambda x: torch.fill(x, 3), x=X)
case("fill", "lt.fill(x, y)", lambda x, y: torch.fill(x, y), x=X, y=f())
case("empty_strided", "lt.empty_strided({2, 3}, {1, 2}):fill_(1)", lambda: torch.empty_strided((2, 3), (1, 2)).fill_(1))
case("empty_strided", "lt.empty_strided({2, 0}, {1, 2})", lambda: torch.empty_strided((2, 0), (1, 2)))
case("new_empty_strided", "x:new_empty_strided({2, 2}, {3, 4}, {dtype = \"int64\"}):fill_(1)",
     lambda x: x.new_empty_strided((2, 2), (3, 4), dtype=INT64).fill_(1), x=X)
case("empty_permuted", "lt.empty_permuted({2, 3, 4}, {3, 1, 2}):fill_(1)",
     lambda: torch.empty_permuted((2, 3, 4), (2, 0, 1)).fill_(1))
for name in ("tril", "triu"):
    for row, col, offset in ((3, 3, 0), (3, 5, 1), (5, 3, -2), (0, 4, 0), (4, 0, 0), (3, 4, 9), (3, 4, -9)):
        case(name + "_indices", "lt.%s_indices(%d, %d, %d)" % (name, row, col, offset),
             lambda: getattr(torch, name + "_indices")(row, col, offset) + 1)
A, B, C = i(2), f(3).long(), torch.tensor(7)
for order in ("ij", "xy"):
    case("meshgrid", "lt.unpack(lt.meshgrid(a, b, c, {indexing = \"%s\"}))" % order,
         lambda a, b, c: torch.meshgrid(a, b, c, indexing=order), a=A, b=B, c=C)
    case("meshgrid", "lt.unpack(lt.meshgrid({a}, {indexing = \"%s\"}))" % order,
         lambda a: torch.meshgrid([a], indexing=order), a=A)
case("cartesian_prod", "lt.cartesian_prod(a, b)", lambda a, b: torch.cartesian_prod(a, b), a=A, b=i(3))
case("cartesian_prod", "lt.cartesian_prod(a)", lambda a: torch.cartesian_prod(a), a=A)
for r in (0, 1, 2, 3):
    case("combinations", "lt.combinations(x, %d)" % r, lambda x: torch.combinations(x, r), x=f(4))
    case("combinations", "lt.combinations(x, %d, true)" % r, lambda x: torch.combinations(x, r, True), x=f(3))
case("asarray", "lt.asarray({{1, 2}, {3, 4}}, {dtype = \"int32\"})", lambda: torch.asarray([[1, 2], [3, 4]], dtype=torch.int32))
case("resize_", "x:clone():resize_(2, 6)", lambda x: x.clone().resize_(2, 6), x=X)
case("resize_", "x:clone():resize_({5})", lambda x: x.clone().resize_(5), x=X)
case("resize_as_", "x:clone():resize_as_(y)", lambda x, y: x.clone().resize_as_(y), x=X, y=f(4, 3))
case("linspace", "lt.linspace(4.3, -3, 5, {dtype = \"int64\"})", lambda: torch.linspace(4.3, -3, 5, dtype=INT64))
case("logspace", "lt.logspace(4.3, 1, 3, 5, {dtype = \"int64\"})", lambda: torch.logspace(4.3, 1, 3, 5, dtype=INT64))
case("arange", "lt.arange(-1, 1, 2, {dtype = \"uint8\"})", lambda: torch.arange(-1, 2, 2, dtype=torch.uint8))

# ---- shapes

family("shapes")
X = f(2, 3, 4)
case("ravel", "x:ravel()", lambda x: x.ravel(), x=X)
case("ravel", "x:ravel()", lambda x: x.ravel(), x=f(4, 3).t())
case("adjoint", "x:adjoint()", lambda x: x.adjoint(), x=X)
case("t_", "x:clone():t_()", lambda x: x.clone().t_(), x=f(2, 3))
case("transpose_", "x:clone():transpose_(1, -1)", lambda x: x.clone().transpose_(0, -1), x=X)
case("swapdims_", "x:clone():swapdims_(1, 2)", lambda x: x.clone().swapdims_(0, 1), x=X)
case("swapaxes_", "x:clone():swapaxes_(1, 2)", lambda x: x.clone().swapaxes_(0, 1), x=X)
case("squeeze_", "x:clone():squeeze_()", lambda x: x.clone().squeeze_(), x=f(1, 3, 1))
case("squeeze_", "x:clone():squeeze_(3)", lambda x: x.clone().squeeze_(2), x=f(1, 3, 1))
case("squeeze", "x:squeeze({})", lambda x: x.squeeze(()), x=f(1, 3, 1))
case("squeeze", "x:squeeze{1, 2}", lambda x: x.squeeze((0, 1)), x=f(1, 3, 1))
case("unsqueeze_", "x:clone():unsqueeze_(-1)", lambda x: x.clone().unsqueeze_(-1), x=X)
case("as_strided_", "x:clone():as_strided_({2, 2}, {1, 3}, 2)", lambda x: x.clone().as_strided_((2, 2), (1, 3), 2), x=X)
case("fliplr", "x:fliplr()", lambda x: x.fliplr(), x=X)
case("flipud", "x:flipud()", lambda x: x.flipud(), x=X)
for k in (-3, -1, 0, 1, 2, 7):
    case("rot90", "x:rot90(%d)" % k, lambda x: x.rot90(k), x=X)
    case("rot90", "x:rot90(%d, {3, 2})" % k, lambda x: x.rot90(k, (2, 1)), x=X)
case("broadcast_tensors", "lt.unpack(lt.broadcast_tensors(x, y, z))", lambda x, y, z: torch.broadcast_tensors(x, y, z),
     x=f(3, 1), y=f(4), z=f())
case("repeat", "x[\"repeat\"](x, 2, 1, 3)", lambda x: x.repeat(2, 1, 3), x=f(2, 3))
case("repeat", "x[\"repeat\"](x, {})", lambda x: x.repeat(()), x=f())
case("repeat_interleave", "x:repeat_interleave(p, 2)", lambda x, p: x.repeat_interleave(p, 1), x=X, p=torch.tensor([2, 0, 3]))
case("repeat_interleave", "x:repeat_interleave(p, {dim = 1, output_size = 4})",
     lambda x, p: x.repeat_interleave(p, 0, output_size=4), x=X, p=torch.tensor([3, 1]))
case("repeat_interleave", "x:repeat_interleave(p)", lambda x, p: x.repeat_interleave(p), x=X, p=torch.tensor(2))
case("repeat_interleave", "lt.repeat_interleave(p)", lambda p: torch.repeat_interleave(p) + 1, p=torch.tensor([2, 0, 3]))
for size in ((2, 3, 4), (1, 3, 4), (2, 1, 1), (3, 1), (4,), ()):
    case("sum_to_size", "x:sum_to_size({%s})" % ", ".join(map(str, size)), lambda x: x.sum_to_size(size), x=X)
case("sum_to_size", "x:sum_to_size(2, 1)", lambda x: x.sum_to_size(2, 1), x=i(2, 2) > 0)
for where, lua in ((3, "3"), ((1, 3), "{2, 4}"), ((-2, 9), "{-2, 10}"), ((3, 1), "{4, 2}"), (7, "7")):
    case("tensor_split", "lt.unpack(x:tensor_split(%s, 3))" % lua, lambda x: x.tensor_split(where, 2), x=X)
case("tensor_split", "lt.unpack(x:tensor_split(p + 1))", lambda x, p: x.tensor_split(p), x=X, p=torch.tensor([1]))
case("hsplit", "lt.unpack(x:hsplit(3))", lambda x: x.hsplit(3), x=X)
case("hsplit", "lt.unpack(x:hsplit{2, 3})", lambda x: x.hsplit((1, 2)), x=f(5))
case("vsplit", "lt.unpack(x:vsplit(2))", lambda x: x.vsplit(2), x=X)
case("dsplit", "lt.unpack(x:dsplit{2, 4})", lambda x: x.dsplit((1, 3)), x=X)
case("split_with_sizes", "lt.unpack(x:split_with_sizes({1, 3}, 3))", lambda x: x.split_with_sizes((1, 3), 2), x=X)
case("split_with_sizes", "lt.unpack(x:split_with_sizes({4}, 3))", lambda x: x.split_with_sizes((4,), 2), x=X)
case("slice", "x:slice(3, 2, -2, 2)", lambda x: x[:, :, 1:-1:2], x=X)
case("slice", "x:slice()", lambda x: x[:], x=X)
case("narrow", "x:narrow(3, p, 2)", lambda x, p: x.narrow(2, p - 1, 2), x=X, p=torch.tensor(2))
case("slice_scatter", "x:slice_scatter(y, 3, 2, 4, 2)", lambda x, y: x.slice_scatter(y, 2, 1, 4, 2), x=X, y=f(2, 3, 2))
case("slice_scatter", "x:slice_scatter(y)", lambda x, y: x.slice_scatter(y), x=X, y=f(2, 3, 4))
case("select_scatter", "x:select_scatter(y, -1, 2)", lambda x, y: x.select_scatter(y, -1, 1), x=X, y=f(2, 3))
case("diagonal_scatter", "x:diagonal_scatter(y, 1, 2, 3)", lambda x, y: x.diagonal_scatter(y, 1, 1, 2), x=X, y=f(2, 3))
case("as_strided_scatter", "x:as_strided_scatter(y, {2, 2}, {4, 1}, 3)",
     lambda x, y: x.as_strided_scatter(y, (2, 2), (4, 1), 3), x=X, y=f(2, 2))
for offset in (0, 1, -2):
    case("diag_embed", "x:diag_embed(%d)" % offset, lambda x: x.diag_embed(offset), x=f(2, 3))
    case("diag_embed", "x:diag_embed(%d, 1, -2)" % offset, lambda x: x.diag_embed(offset, 0, -2), x=i(2, 3))
    case("diagflat", "x:diagflat(%d)" % offset, lambda x: x.diagflat(offset), x=i(2, 2))
case("view", "x:view(\"int32\")", lambda x: x.view(torch.int32), x=X)
case("view", "x:view(\"int16\")", lambda x: x.view(torch.int16), x=X)
case("view", "x:view(\"float64\")", lambda x: x.view(torch.float64), x=i(3, 4).int())
case("unflatten", "x:unflatten(-1, {2, -1})", lambda x: x.unflatten(-1, (2, -1)), x=X)

# ---- joining

family("joining")
for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    function = getattr(torch, name)
    for shape in ((), (3,), (2, 3), (2, 1, 2)):
        case(name, "lt.%s(x)" % name, lambda x: function(x), x=f(*shape))
    case(name, "lt.unpack(lt.%s(x, y))" % name, lambda x, y: function(x, y), x=f(), y=f(2))
for name in ("hstack", "vstack", "dstack", "column_stack"):
    function = getattr(torch, name)
    case(name, "lt.%s{x, y}" % name, lambda x, y: function((x, y)), x=f(3), y=i(3))
    case(name, "lt.%s{x, y}" % name, lambda x, y: function((x, y)), x=f(2, 3), y=f(2, 3))
    case(name, "lt.%s{x, y}" % name, lambda x, y: function((x, y)), x=f(), y=f())
    case(name, "lt.%s{x}" % name, lambda x: function((x,)), x=f(0, 3))
case("block_diag", "lt.block_diag(x, y, z, w)", lambda x, y, z, w: torch.block_diag(x, y, z, w), x=f(2, 3), y=i(2), z=f(), w=f(0, 2))

# ---- indexing

family("index_ops")
X, D = f(3, 4), torch.float64
case("take", "x:take(p + 1)", lambda x, p: x.take(p), x=X, p=positions(12, 2, 3))
case("take", "x:take(p)", lambda x, p: x.take(p), x=X, p=torch.tensor([-1, -12]))
case("take", "x:take(p + 1)", lambda x, p: x.take(p), x=f(), p=torch.tensor(0))
case("take", "x:take(p)", lambda x, p: x.take(p), x=f(0, 3), p=positions(1, 0))
for add in (False, True):
    word = "true" if add else "false"
    case("put", "x:put(p + 1, s, %s)" % word, lambda x, p, s: x.put(p, s, add), x=f(4, 3).t(), p=torch.tensor([[0, 5], [5 if add else 3, 11]]), s=f(4))
    case("put", "x:clone():put_(p + 1, s, %s)" % word, lambda x, p, s: x.clone().put_(p, s, add), x=i(3, 4), p=torch.tensor([0, 11]), s=i(2))
    case("put", "x:put(p, s, %s)" % word, lambda x, p, s: x.put(p, s, add), x=f(), p=positions(1, 0), s=f(0))
    case("index_put", "x:index_put({p + 1, q + 1}, s, %s)" % word, lambda x, p, q, s: x.index_put((p, q), s, add),
         x=X, p=torch.tensor([0, 2]), q=torch.tensor([[1], [3]]), s=f(2))
    case("index_put", "x:clone():index_put_({false, q + 1}, s, %s)" % word, lambda x, q, s: x.clone().index_put_((None, q), s, add),
         x=X, q=torch.tensor([1, 3]), s=f(2))
    case("index_put", "x:index_put({m}, s, %s)" % word, lambda x, m, s: x.index_put((m,), s, add), x=X, m=X > 0, s=f())
    case("index_put", "x:index_put({m, q + 1}, s, %s)" % word, lambda x, m, q, s: x.index_put((m, q), s, add),
         x=X, m=torch.tensor([True, False, True]), q=torch.tensor([3, 0]), s=f(2))
case("take_along_dim", "x:take_along_dim(p + 1, 2)", lambda x, p: x.take_along_dim(p, 1), x=X, p=positions(4, 1, 2))
case("take_along_dim", "x:take_along_dim(p, 1)", lambda x, p: x.take_along_dim(p, 0), x=X, p=torch.tensor([[-1, -2, -3, -1]]))
case("take_along_dim", "x:take_along_dim(p + 1)", lambda x, p: x.take_along_dim(p), x=X, p=positions(12, 2, 2))
case("argwhere", "x:argwhere()", lambda x: x.argwhere() + 1, x=i(3, 4, low=-1, high=2))
case("argwhere", "x:argwhere()", lambda x: x.argwhere() + 1, x=f())
for size in (0, 2, 20):
    case("nonzero_static", "x:nonzero_static(%d)" % size, lambda x: torch.nonzero_static(x, size=size) + 1, x=i(3, 4, low=-1, high=2))
case("nonzero_static", "x:nonzero_static{size = 3, fill_value = -7}", lambda x: torch.nonzero_static(x, size=3, fill_value=-8) + 1, x=torch.tensor([0, 1]))
case("unravel_index", "lt.unpack(lt.unravel_index(p + 1, {4, 3, 2}))", lambda p: tuple(t + 1 for t in torch.unravel_index(p, (4, 3, 2))), p=positions(24, 2, 5))
case("unravel_index", "lt.unpack(lt.unravel_index(p + 1, 7))", lambda p: tuple(t + 1 for t in torch.unravel_index(p, 7)), p=torch.tensor(6))
SRC = dict(p=torch.tensor([[0, 1, 0], [2, 1, 0], [0, 0, 0], [1, 2, 2]]), s=f(5, 3))
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for keep in (True, False):
        word = "true" if keep else "false"
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8):
            case("scatter_reduce", "x:scatter_reduce(1, p + 1, s, \"%s\", {include_self = %s})" % (reduce, word),
                 lambda x, p, s: x.scatter_reduce(0, p, s, reduce, include_self=keep),
                 x=(f(4, 3) * 3).to(dtype), p=SRC["p"], s=(SRC["s"] * 3).to(dtype))
        case("scatter_reduce", "x:clone():scatter_reduce_(2, p + 1, s, \"%s\", %s)" % (reduce, word),
             lambda x, p, s: x.clone().scatter_reduce_(1, p, s, reduce, include_self=keep), x=f(4, 4), p=SRC["p"], s=f(4, 3))
        if reduce != "sum":
            case("index_reduce", "x:index_reduce(-1, p + 1, s, \"%s\", %s)" % (reduce, word),
                 lambda x, p, s: x.index_reduce(-1, p, s, reduce, include_self=keep), x=X, p=torch.tensor([3, 0, 3]), s=f(3, 3))
            case("index_reduce", "x:clone():index_reduce_(1, p + 1, s, \"%s\", %s)" % (reduce, word),
                 lambda x, p, s: x.clone().index_reduce_(0, p, s, reduce, include_self=keep), x=i(3, 2), p=torch.tensor([2, 2]), s=i(2, 2))
NAN = torch.tensor([1.0, float("nan"), 3.0])
for reduce in ("amax", "amin", "prod"):
    case("scatter_reduce", "x:scatter_reduce(1, p + 1, s, \"%s\")" % reduce, lambda x, p, s: x.scatter_reduce(0, p, s, reduce),
         x=NAN, p=torch.tensor([0, 1, 2, 2]), s=torch.tensor([2.0, 5.0, float("nan"), -7.0]))
case("scatter", "x:scatter(1, p + 1, s, {reduce = \"add\"})", lambda x, p, s: x.scatter(0, p, s, reduce="add"), x=f(4, 3), **SRC)
case("scatter", "x:scatter(1, p + 1, s, {reduce = \"multiply\"})", lambda x, p, s: x.scatter(0, p, s, reduce="multiply"), x=f(4, 3), **SRC)
case("scatter", "x:clone():scatter_(1, p + 1, 2, {reduce = \"multiply\"})", lambda x, p: x.clone().scatter_(0, p, 2, reduce="multiply"), x=f(4, 3), p=SRC["p"])
case("scatter", "x:scatter(1, p + 1, {value = 7})", lambda x, p: x.scatter(0, p, value=7), x=i(4, 3), p=SRC["p"])
case("index_fill", "x:index_fill(2, p + 1, y)", lambda x, p, y: x.index_fill(1, p, y), x=X, p=torch.tensor([1, 1]), y=f())
case("where", "x:where(m, y)", lambda x, m, y: x.where(m, y), x=X, m=X > 0, y=f(4))
case("gather", "x:gather(1, p, {sparse_grad = true})", lambda x, p: x.gather(0, p, sparse_grad=True), x=f(5), p=torch.empty(0, dtype=torch.uint8))

# ---- the order of results in memory: their strides

family("memory_order")


def order(op, lua, python, **inputs):
    case(op, "lt.tensor((%s):stride())" % lua, lambda **given: torch.tensor(python(**given).stride()), **inputs)


X, Y = f(3, 4).t(), f(4, 3)  # 4 x 3, transposed and not
N = f(2, 5, 6, 3).permute(0, 3, 1, 2)  # images whose channels lie together
Q = f(2, 3, 4, 5).transpose(1, 2)
for x in (X, Y, N, Q, f(), f(2, 3, 4).permute(2, 0, 1)):
    order("mul", "x * 2", lambda x: x * 2, x=x)
    order("exp", "x:exp()", lambda x: x.exp(), x=x)
    order("gt", "x:gt(0)", lambda x: x.gt(0), x=x)
    order("to", "x:to('float64')", lambda x: x.double(), x=x)
    order("clone", "x:clone()", lambda x: x.clone(), x=x)
    order("clone", "x:clone{memory_format = 'contiguous_format'}", lambda x: x.clone(memory_format=torch.contiguous_format), x=x)
    order("contiguous", "x:contiguous()", lambda x: x.contiguous(), x=x)
    for like in ("zeros_like", "ones_like", "empty_like"):
        order(like, "lt.%s(x)" % like, lambda x: getattr(torch, like)(x), x=x)
    order("full_like", "lt.full_like(x, 2)", lambda x: torch.full_like(x, 2), x=x)
    order("zeros_like", "lt.zeros_like(x, {memory_format = 'contiguous_format'})",
          lambda x: torch.zeros_like(x, memory_format=torch.contiguous_format), x=x)
order("mul", "x:t():slice(1, 1, 8, 2) * 2", lambda x: x.t()[::2] * 2, x=f(6, 8))
order("clone", "x:t():slice(1, 1, 8, 2):clone()", lambda x: x.t()[::2].clone(), x=f(6, 8))
order("to", "x:t():slice(1, 1, 8, 2):to('float16')", lambda x: x.t()[::2].half(), x=f(6, 8))
order("mul", "x:t():expand(4, 3) * 2", lambda x: x.t().expand(4, 3) * 2, x=f(3, 1))
order("clone", "x:t():expand(4, 3):clone()", lambda x: x.t().expand(4, 3).clone(), x=f(3, 1))
case("matrix_exp", "x:matrix_exp()", lambda x: torch.matrix_exp(x), x=f(3, 3).t())
order("add", "x + x", lambda x: x + x, x=X)
order("add", "x + y", lambda x, y: x + y, x=X, y=Y)
order("add", "y + x", lambda x, y: y + x, x=X, y=Y)
order("add", "x + y", lambda x, y: x + y, x=X, y=f(3))
order("add", "y + x", lambda x, y: y + x, x=X, y=f(4, 1))
order("add", "x + y", lambda x, y: x + y, x=f(3, 1).t(), y=f(4, 1))
order("add", "x + y", lambda x, y: x + y, x=N, y=f(3, 1, 1))
order("sub", "1 - x", lambda x: 1 - x, x=X)
order("maximum", "x:maximum(y)", lambda x, y: x.maximum(y), x=N, y=f(2, 3, 5, 6))
order("where", "lt.where(m, x, y)", lambda m, x, y: torch.where(m, x, y), m=X > 0, x=X, y=Y)
order("where", "lt.where(m, x, 0)", lambda m, x: torch.where(m, x, 0), m=Y > 0, x=X)
order("lerp", "x:lerp(y, 0.5)", lambda x, y: x.lerp(y, 0.5), x=X, y=Y)
order("addcmul", "x:addcmul(y, y)", lambda x, y: x.addcmul(y, y), x=Q, y=f(2, 4, 3, 5))
order("cumsum", "x:cumsum(1)", lambda x: x.cumsum(0), x=X)
order("add", "(x * 2 + 1):transpose(1, 2)", lambda x: (x * 2 + 1).transpose(0, 1), x=X)
