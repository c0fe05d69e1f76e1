"""Cases of pools, unfold and fold, padding, interpolation and sampling (see ops.py)."""

import torch
import torch.nn.functional as F

from ops import case, f, family, i, ix, wave

family("windows")

NAN = f(1, 2, 6)
NAN[0, 0, 2] = float("nan")
IMAGES = {1: (f(1, 2, 9), f(2, 8).double()), 2: (f(1, 2, 7, 8), f(2, 6, 6).double().transpose(1, 2)),
          3: (f(1, 1, 5, 6, 4), f(1, 4, 4, 5).bfloat16())}
for k in (1, 2, 3):
    name = "max_pool%dd" % k
    fn = getattr(F, name)
    for x in IMAGES[k]:
        case(name, "F.%s(x, 2)" % name, lambda x, fn=fn: fn(x, 2), x=x)
        case(name, "F.%s(x, 3, 2, 1, 1, true, true)" % name,
             lambda x, fn=fn: ix(fn(x, 3, 2, 1, 1, True, True)), x=x)
        case(name, "F.%s{x, 2, stride = 1, dilation = 2, return_indices = true}" % name,
             lambda x, fn=fn: ix(fn(x, 2, 1, dilation=2, return_indices=True)), x=x)
        case(name + "_with_indices", "F.%s_with_indices(x, 2)" % name,
             lambda x, fn=fn: ix(fn(x, 2, return_indices=True)), x=x)
        name2 = "avg_pool%dd" % k
        fn2 = getattr(F, name2)
        case(name2, "F.%s(x, 2)" % name2, lambda x, fn=fn2: fn(x, 2), x=x)
        case(name2, "F.%s(x, 3, 2, 1, true)" % name2, lambda x, fn=fn2: fn(x, 3, 2, 1, True), x=x)
        case(name2, "F.%s(x, 3, 2, 1, true, false)" % name2,
             lambda x, fn=fn2: fn(x, 3, 2, 1, True, False), x=x)
        if k > 1:
            case(name2, "F.%s{x, 2, divisor_override = 3}" % name2,
                 lambda x, fn=fn2: fn(x, 2, divisor_override=3), x=x)
        name3, name4 = "adaptive_avg_pool%dd" % k, "adaptive_max_pool%dd" % k
        fn3, fn4 = getattr(F, name3), getattr(F, name4)
        for size in (1, 3):
            if x.dtype != torch.bfloat16:  # PyTorch sums bfloat16 less exactly
                case(name3, "F.%s(x, %d)" % (name3, size), lambda x, fn=fn3, n=size: fn(x, n), x=x)
            case(name4, "F.%s(x, %d, true)" % (name4, size),
                 lambda x, fn=fn4, n=size: ix(fn(x, n, True)), x=x)
        case(name4 + "_with_indices", "F.%s_with_indices(x, 2)" % name4,
             lambda x, fn=fn4: ix(fn(x, 2, True)), x=x)
        if x.dtype != torch.bfloat16:
            name5 = "lp_pool%dd" % k
            case(name5, "F.%s(x, 2, 3, 1)" % name5,
                 lambda x, fn=getattr(F, name5): fn(x, 2, 3, 1), x=x)
        top, at = fn(x, 2, return_indices=True)
        case("max_unpool%dd" % k, "F.max_unpool%dd(x, y + 1, 2)" % k,
             lambda x, y, k=k: getattr(F, "max_unpool%dd" % k)(x, y, 2), x=top, y=at)
case("max_pool1d", "F.max_pool1d(x, 3, 1, 1)", lambda x: F.max_pool1d(x, 3, 1, 1), x=NAN)
case("max_pool2d", "F.max_pool2d(x, {3, 2}, {2, 1})", lambda x: F.max_pool2d(x, (3, 2), (2, 1)),
     x=wave(1, 2, 17, 33))
case("max_pool2d", "F.max_pool2d(x, 2)", lambda x: F.max_pool2d(x, 2), x=i(1, 2, 4, 4))
case("max_pool2d", "F.max_pool2d(x, 2)", lambda x: F.max_pool2d(x, 2), x=torch.empty(0, 2, 4, 4))
case("avg_pool2d", "F.avg_pool2d(x, 3, 2, 1)", lambda x: F.avg_pool2d(x, 3, 2, 1), x=wave(1, 2, 17, 33))
case("avg_pool2d", "F.avg_pool2d(x, 2)", lambda x: F.avg_pool2d(x, 2), x=i(1, 2, 4, 4))
case("adaptive_avg_pool2d", "F.adaptive_avg_pool2d(x, {3, false})",
     lambda x: F.adaptive_avg_pool2d(x, (3, None)), x=wave(1, 2, 17, 33))
SAMPLES = torch.tensor([[[0.1, 0.8, 0.5], [0.4, 0.3, 0.9]]])
for title in ("fractional_max_pool2d", "fractional_max_pool2d_with_indices"):
    case(title, "F.%s(x, 2, {3, 4}, nil, true, s)" % title,
         lambda x, s: ix(F.fractional_max_pool2d(x, 2, (3, 4), None, True, s)), x=f(1, 2, 7, 8),
         s=SAMPLES[:, :, :2].contiguous())
for title in ("fractional_max_pool3d", "fractional_max_pool3d_with_indices"):
    case(title, "F.%s(x, 2, nil, 0.5, true, s)" % title,
         lambda x, s: ix(F.fractional_max_pool3d(x, 2, None, (0.5, 0.5, 0.5), True, s)),
         x=f(1, 2, 7, 6, 8), s=SAMPLES)

for x in (f(2, 2, 4, 5), f(1, 4, 5).double(), f(1, 1, 4, 4).half()):
    case("unfold", "F.unfold(x, {2, 3})", lambda x: F.unfold(x, (2, 3)), x=x)
    case("unfold", "F.unfold(x, 2, 2, 1, 2)", lambda x: F.unfold(x, 2, 2, 1, 2), x=x)
    case("fold", "F.fold(F.unfold(x, 2, 1, 1, 2), {x:size(-2), x:size(-1)}, 2, 1, 1, 2)",
         lambda x: F.fold(F.unfold(x, 2, 1, 1, 2), x.shape[-2:], 2, 1, 1, 2), x=x)

for x in (f(1, 2, 4, 4), i(1, 1, 4, 5), f(1, 1, 4, 4).half(), f(2, 4, 5).double().transpose(1, 2)):
    case("constant_pad_nd", "lt.constant_pad_nd(x, {1, 2, 0, 1, 2, 1}, 3)",
         lambda x: torch.constant_pad_nd(x, (1, 2, 0, 1, 2, 1), 3), x=x)
    case("pad", "F.pad(x, {-1, 2, 3, -2})", lambda x: F.pad(x, (-1, 2, 3, -2)), x=x)
    for mode in ("reflect", "replicate", "circular"):
        case("pad", 'F.pad(x, {1, 2, 3, 0}, "%s")' % mode,
             lambda x, m=mode: F.pad(x, (1, 2, 3, 0), m), x=x)
    case("pad", 'F.pad(x, {-1, 2, 0, -2}, "replicate")',
         lambda x: F.pad(x, (-1, 2, 0, -2), "replicate"), x=x)

SIZES = {3: ("{7}", (7,)), 4: ("{7, 3}", (7, 3)), 5: ("{7, 3, 6}", (7, 3, 6))}
for x in (f(1, 2, 5), f(1, 1, 4, 5).double(), f(1, 1, 3, 4, 3), i(1, 1, 4, 4, low=0, dtype=torch.uint8)):
    said, size = SIZES[x.ndim]
    modes = {3: ("linear",), 4: ("bilinear", "bicubic"), 5: ("trilinear",)}[x.ndim]
    for mode in ("nearest", "nearest-exact") + (("area",) if x.dtype != torch.uint8 else ()):
        case("interpolate", 'F.interpolate(x, %s, nil, "%s")' % (said, mode),
             lambda x, n=size, m=mode: F.interpolate(x, n, None, m), x=x)
        case("interpolate", 'F.interpolate{x, scale_factor = 1.7, mode = "%s"}' % mode,
             lambda x, m=mode: F.interpolate(x, scale_factor=1.7, mode=m), x=x)
    for mode in modes:
        case("interpolate", 'F.interpolate(x, %s, nil, "%s", true)' % (said, mode),
             lambda x, n=size, m=mode: F.interpolate(x, n, None, m, True), x=x)
        for recompute in (False, True):
            case("interpolate", 'F.interpolate{x, scale_factor = 1.7, mode = "%s", '
                 'recompute_scale_factor = %s}' % (mode, str(recompute).lower()),
                 lambda x, m=mode, r=recompute: F.interpolate(
                     x, scale_factor=1.7, mode=m, recompute_scale_factor=r), x=x)
        if x.ndim == 4:
            for said2, size2 in (("{2, 3}", (2, 3)), ("{6, 9}", (6, 9))):
                case("interpolate", 'F.interpolate{x, %s, mode = "%s", antialias = true}' % (said2, mode),
                     lambda x, n=size2, m=mode: F.interpolate(x, n, mode=m, antialias=True), x=x)
    case("upsample", "F.upsample(x, nil, 2)", lambda x: F.upsample(x, None, 2), x=x)
    case("upsample_nearest", "F.upsample_nearest(x, %s)" % said,
         lambda x, n=size: F.upsample_nearest(x, n), x=x)
    if x.ndim == 4:
        case("upsample_bilinear", "F.upsample_bilinear(x, %s)" % said,
             lambda x, n=size: F.upsample_bilinear(x, n), x=x)

GRIDS = {4: (f(2, 2, 5, 4), torch.rand(2, 4, 3, 2) * 3 - 1.5), 5: (f(1, 2, 3, 4, 3), torch.rand(1, 2, 1, 3, 3) * 3 - 1.5)}
for x, grid in GRIDS.values():
    k = x.ndim - 2
    for corners in (False, True):
        for p, padding in enumerate(("zeros", "border", "reflection")):
            for m, mode in enumerate(("bilinear", "nearest", "bicubic")[:5 - k]):
                said = str(corners).lower()
                case("grid_sample", 'F.grid_sample(x, y, "%s", "%s", %s)' % (mode, padding, said),
                     lambda x, y, a=(mode, padding, corners): F.grid_sample(x, y, *a), x=x, y=grid)
                fn = getattr(torch, "grid_sampler_%dd" % k)
                case("grid_sampler_%dd" % k, "lt.grid_sampler_%dd(x, y, %d, %d, %s)" % (k, m, p, said),
                     lambda x, y, fn=fn, a=(m, p, corners): fn(x, y, *a), x=x, y=grid)
    case("grid_sampler", "lt.grid_sampler(x, y, 0, 1, false)",
         lambda x, y: torch.grid_sampler(x, y, 0, 1, False), x=x, y=grid)
for theta, size in ((f(2, 2, 3), (2, 3, 4, 5)), (f(1, 3, 4).double(), (1, 2, 3, 1, 4))):
    for corners in (False, True):
        case("affine_grid", "F.affine_grid(x, {%s}, %s)" % (", ".join(map(str, size)), str(corners).lower()),
             lambda x, n=size, c=corners: F.affine_grid(x, n, c), x=theta)

for x in (f(2, 8, 3, 2), i(8, 2, 3), f(2, 2, 12, 2, 4).half()):
    case("pixel_shuffle", "lt.pixel_shuffle(x, 2)", lambda x: torch.pixel_shuffle(x, 2), x=x)
    case("pixel_unshuffle", "F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2)",
         lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x=x)
case("channel_shuffle", "lt.channel_shuffle(x, 3)", lambda x: torch.channel_shuffle(x, 3), x=f(2, 6, 2, 2))
