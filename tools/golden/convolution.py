"""Cases for convolutions and batch norm."""

import torch
import torch.nn.functional as F

from ops import case, f, family, i

HALF = [torch.float16, torch.bfloat16]


def small(*shape, dtype):
    """Returns numbers whose products and short sums are exact in 16 bits."""
    return i(*shape, low=-2, high=3).to(dtype)


family("convolution")

# op, sizes of input, weight and bias, arguments in Lua, PyTorch's arguments
for op, x, w, b, code, options in (
    ("conv1d", (2, 3, 9), (4, 3, 3), 4, "", {}),
    ("conv1d", (3, 9), (4, 3, 3), None, "", {}),
    ("conv1d", (2, 4, 8), (2, 2, 3), 2, "stride = 3, padding = 1, groups = 2, dilation = 2",
     dict(stride=3, padding=1, groups=2, dilation=2)),
    ("conv1d", (2, 2, 4), (2, 1, 4), 2, "padding = 'same', groups = 2, dilation = 2",
     dict(padding="same", groups=2, dilation=2)),
    ("conv1d", (1, 4, 5), (1, 4, 3), None, "stride = {2}, padding = 'valid'", dict(stride=(2,), padding="valid")),
    ("conv1d", (0, 2, 5), (3, 2, 3), 3, "", {}),
    ("conv2d", (2, 3, 6, 5), (4, 3, 3, 2), 4, "", {}),
    ("conv2d", (3, 6, 5), (4, 3, 3, 2), 4, "padding = {2, 1}", dict(padding=(2, 1))),
    ("conv2d", (2, 4, 8, 8), (2, 2, 3, 3), 2, "stride = {3, 2}, padding = {2, 1}, groups = 2, dilation = 4",
     dict(stride=(3, 2), padding=(2, 1), groups=2, dilation=4)),
    ("conv2d", (1, 4, 5, 5), (1, 4, 2, 3), 1, "padding = 'same', dilation = 3", dict(padding="same", dilation=3)),
    ("conv2d", (2, 4, 6, 6), (8, 1, 3, 3), 8, "groups = 4, stride = {3, 2}", dict(groups=4, stride=(3, 2))),
    ("conv2d", (2, 3, 7, 6), (3, 1, 3, 3), 3, "groups = 3, padding = 1", dict(groups=3, padding=1)),
    ("conv2d", (2, 3, 7, 6), (3, 1, 3, 2), None, "groups = 3, padding = 1, stride = 2, dilation = {1, 2}",
     dict(groups=3, padding=1, stride=2, dilation=(1, 2))),
    ("conv2d", (2, 5, 4, 4), (3, 5, 1, 1), 3, "", {}),
    ("conv2d", (2, 5, 4, 4), (3, 5, 1, 1), 3, "stride = 2", dict(stride=2)),
    ("conv2d", (3, 2, 9, 9), (4, 2, 3, 3), 4, "padding = 1, stride = 2", dict(padding=1, stride=2)),
    ("conv3d", (2, 2, 4, 5, 4), (3, 2, 2, 3, 2), 3, "", {}),
    ("conv3d", (2, 4, 5, 4), (3, 2, 2, 3, 2), 3, "padding = {1, 0, 2}, stride = {1, 2, 1}",
     dict(padding=(1, 0, 2), stride=(1, 2, 1))),
    ("conv3d", (1, 4, 3, 1, 9), (2, 2, 3, 1, 9), 2, "groups = 2, padding = 'same'", dict(groups=2, padding="same")),
    ("conv_transpose1d", (2, 3, 4), (3, 4, 3), 4, "stride = 2, padding = 1, output_padding = 1",
     dict(stride=2, padding=1, output_padding=1)),
    ("conv_transpose1d", (1, 4), (1, 1, 4), 1, "stride = 2, output_padding = 1, dilation = 3",
     dict(stride=2, output_padding=1, dilation=3)),
    ("conv_transpose2d", (2, 3, 4, 4), (3, 2, 3, 2), 2, "", {}),
    ("conv_transpose2d", (2, 4, 4), (2, 2, 4, 5), 4,
     "stride = {3, 2}, padding = {1, 2}, output_padding = {2, 3}, groups = 2, dilation = 4",
     dict(stride=(3, 2), padding=(1, 2), output_padding=(2, 3), groups=2, dilation=4)),
    ("conv_transpose2d", (2, 4, 4, 4), (4, 1, 3, 3), None, "groups = 4", dict(groups=4)),
    ("conv_transpose2d", (2, 4, 4, 4), (4, 3, 1, 1), 3, "", {}),
    ("conv_transpose3d", (1, 2, 3, 2, 3), (2, 2, 2, 3, 2), 2, "stride = {2, 1, 2}", dict(stride=(2, 1, 2))),
):
    arguments = "x, w, %s{%s}" % ("b, " if b else "nil, ", code)
    inputs = dict(x=x, w=w, **({"b": (b,)} if b else {}))
    fn = getattr(F, op)
    for dtype in (torch.float32, torch.float64)[: 2 if len(x) == 3 else 1]:
        values = {k: f(*s).to(dtype) for k, s in inputs.items()}
        case(op, "lt.%s(%s)" % (op, arguments),
             lambda x, w, b=None, fn=fn, o=options: fn(x, w, b, **o), **values)
    for dtype in HALF + [torch.int64]:
        if len(x) > 3 and 0 not in x:
            continue
        values = {k: small(*s, dtype=dtype) for k, s in inputs.items()}
        case(op, "lt.%s(%s)" % (op, arguments),
             lambda x, w, b=None, fn=fn, o=options: fn(x, w, b, **o), **values)
case("conv2d", "F.conv2d(x:transpose(2, 4), w:transpose(1, 2), nil, {padding = 1})",
     lambda x, w: F.conv2d(x.transpose(1, 3), w.transpose(0, 1), padding=1), x=f(2, 5, 4, 3), w=f(3, 2, 2, 3))
case("conv2d", "F.conv2d(x:expand(2, 3, 4, 4), w)", lambda x, w: F.conv2d(x.expand(2, 3, 4, 4), w), x=f(1, 1, 4, 4),
     w=f(2, 3, 3, 3))
case("convolution", "lt.convolution(x, w, nil, {2, 1}, {1, 0}, {1, 2}, false, {0, 0}, 1)",
     lambda x, w: torch.convolution(x, w, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 1), x=f(2, 3, 5, 6), w=f(2, 3, 3, 2))
case("convolution", "lt.convolution(x, w, b, {2}, {1}, {1}, true, {1}, 1)",
     lambda x, w, b: torch.convolution(x, w, b, [2], [1], [1], True, [1], 1), x=f(2, 3, 5), w=f(3, 2, 3), b=f(2))
# large enough for a library's code
case("conv2d", "lt.conv2d(lt.arange(3200):remainder(7):view(1, 8, 20, 20):float(), "
     "lt.arange(1152):remainder(5):view(16, 8, 3, 3):float(), b, {padding = 1})[{{}, {}, {1, 2}, {1, 3}}]",
     lambda b: F.conv2d((torch.arange(1, 3201) % 7).view(1, 8, 20, 20).float(),
                        (torch.arange(1, 1153) % 5).view(16, 8, 3, 3).float(), b, padding=1)[:, :, :2, :3], b=f(16))


def normalized(x, mean, var, weight=None, bias=None, **options):
    """Returns the result of batch_norm and the updated running statistics."""
    result = F.batch_norm(x, mean, var, weight, bias, **options)
    return tuple(t for t in (result, mean, var) if t is not None)


for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for shape in ((4, 3), (2, 3, 5), (3, 2, 4, 5), (2, 2, 2, 3, 4)) if dtype.itemsize > 2 else ():
        c = shape[1]
        case("batch_norm", "F.batch_norm(x, nil, nil, w, b, {training = true, eps = 0.5})",
             lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=0.5), x=f(*shape).to(dtype),
             w=f(c).to(dtype), b=f(c).to(dtype))
    case("batch_norm", "F.batch_norm(x, m, v, w, b)", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
         x=f(3, 2, 4).to(dtype), m=f(2).to(dtype), v=f(2).abs().to(dtype), w=f(2).to(dtype), b=f(2).to(dtype))
for shape in ((4, 3), (3, 3, 4, 5), (2, 3, 40)):
    case("batch_norm", "(function() local m, v = m:clone(), v:clone(); return F.batch_norm(x, m, v, w, nil, "
         "{training = true, momentum = 0.3}), m, v end)()",
         lambda x, m, v, w: normalized(x, m.clone(), v.clone(), w, training=True, momentum=0.3), x=f(*shape).double() * 3 + 10,
         m=f(3).double(), v=f(3).double().abs(), w=f(3).double())
case("batch_norm", "F.batch_norm(x, m, v, w, b, {training = true})",
     lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, training=True), x=f(0, 2, 3), m=f(2), v=f(2), w=f(2), b=f(2))
case("batch_norm", "F.batch_norm(x:transpose(1, 2), m, v)", lambda x, m, v: F.batch_norm(x.transpose(0, 1), m, v),
     x=f(3, 4, 2), m=f(3), v=f(3).abs())
