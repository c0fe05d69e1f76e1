"""Expected values of lt.vision: torchvision's functions on small images.

A case is a Lua expression on the image x, and the same thing said to torchvision. Every case is computed for a float32
and a uint8 image, unless torchvision raises an error for it."""

import torch
import torchvision
import torchvision.transforms.v2 as T
import torchvision.transforms.v2.functional as V

import ops

CASES = []


def case(code, fn, channels=3):
    CASES.append((code, fn, channels))


case("F.horizontal_flip(x)", V.horizontal_flip)
case("F.vertical_flip(x)", V.vertical_flip)
for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
    case('F.resize(x, {3, 4}, "%s")' % mode, lambda x, m=mode: V.resize(x, [3, 4], V.InterpolationMode(m)))
    case('F.resize(x, {9, 11}, "%s", nil, false)' % mode,
         lambda x, m=mode: V.resize(x, [9, 11], V.InterpolationMode(m), antialias=False))
case("F.resize(x, 4)", lambda x: V.resize(x, 4))
case("F.resize(x, 9, {max_size = 10})", lambda x: V.resize(x, 9, max_size=10))
case("F.resize(x, nil, {max_size = 5})", lambda x: V.resize(x, None, max_size=5))
for mode in ("constant", "edge", "reflect", "symmetric"):
    case('F.pad(x, {1, 2}, 0, "%s")' % mode, lambda x, m=mode: V.pad(x, [1, 2], 0, m))
    case('F.pad(x, {1, 2, 3, 0}, 0.5, "%s")' % mode, lambda x, m=mode: V.pad(x, [1, 2, 3, 0], 0.5, m))
case("F.pad(x, 2, {1, 0.5, 0})", lambda x: V.pad(x, 2, [1.0, 0.5, 0.0]))
case("F.crop(x, 1, 2, 3, 4)", lambda x: V.crop(x, 1, 2, 3, 4))
case("F.crop(x, -1, -2, 5, 4)", lambda x: V.crop(x, -1, -2, 5, 4))
case("F.crop(x, 3, 4, 6, 7)", lambda x: V.crop(x, 3, 4, 6, 7))
case("F.crop(x, 10, 10, 2, 2)", lambda x: V.crop(x, 10, 10, 2, 2))
for size in ([3, 4], [4, 4], [2, 3], [9, 3], [8, 10]):
    case("F.center_crop(x, {%d, %d})" % tuple(size), lambda x, s=size: V.center_crop(x, s))
case("F.resized_crop(x, 1, 1, 3, 4, {5, 6})", lambda x: V.resized_crop(x, 1, 1, 3, 4, [5, 6]))
case("lt.stack(F.five_crop(x, 3))", lambda x: torch.stack(V.five_crop(x, 3)))
case("lt.stack(F.ten_crop(x, {2, 3}, true))", lambda x: torch.stack(V.ten_crop(x, [2, 3], True)))
for angle in (0, 90, 180, 270, 30, -45.5):
    for expand in (False, True):
        case("F.rotate(x, %s, {expand = %s})" % (angle, str(expand).lower()),
             lambda x, a=angle, e=expand: V.rotate(x, a, expand=e))
case('F.rotate(x, 20, "bilinear", false, {1, 2}, {0.5, 0.25, 1})',
     lambda x: V.rotate(x, 20, V.InterpolationMode.BILINEAR, False, [1, 2], [0.5, 0.25, 1.0]))
case('F.rotate(x, 20, "nearest", true, nil, 0.5)', lambda x: V.rotate(x, 20, expand=True, fill=0.5))
case("F.affine(x, 15, {1, -1}, 1.2, {5, 3})", lambda x: V.affine(x, 15, [1, -1], 1.2, [5.0, 3.0]))
case('F.affine(x, -30, {0, 2}, 0.8, 10, "bilinear", 0.5, {2, 3})',
     lambda x: V.affine(x, -30, [0, 2], 0.8, 10, V.InterpolationMode.BILINEAR, 0.5, [2.0, 3.0]))
case("F.perspective(x, {{0, 0}, {6, 0}, {6, 4}, {0, 4}}, {{1, 0}, {5, 1}, {6, 4}, {0, 3}})",
     lambda x: V.perspective(x, [[0, 0], [6, 0], [6, 4], [0, 4]], [[1, 0], [5, 1], [6, 4], [0, 3]]))
case("F.rgb_to_grayscale(x)", V.rgb_to_grayscale)
case("F.rgb_to_grayscale(x, 3)", lambda x: V.rgb_to_grayscale(x, 3))
case("F.rgb_to_grayscale(x, 3)", lambda x: V.rgb_to_grayscale(x, 3), channels=1)
for name in ("brightness", "contrast", "saturation"):
    for factor in (0.0, 0.6, 1.7):
        case("F.adjust_%s(x, %s)" % (name, factor),
             lambda x, n=name, f=factor: getattr(V, "adjust_" + n)(x, f))
    case("F.adjust_%s(x, 1.3)" % name, lambda x, n=name: getattr(V, "adjust_" + n)(x, 1.3), channels=1)
for factor in (-0.5, -0.1, 0.25):
    case("F.adjust_hue(x, %s)" % factor, lambda x, f=factor: V.adjust_hue(x, f))
case("F.adjust_gamma(x, 0.5, 1.2)", lambda x: V.adjust_gamma(x, 0.5, 1.2))
case("F.adjust_sharpness(x, 0)", lambda x: V.adjust_sharpness(x, 0))
case("F.adjust_sharpness(x, 2.5)", lambda x: V.adjust_sharpness(x, 2.5))
case("F.posterize(x, 3)", lambda x: V.posterize(x, 3))
case("F.solarize(x, 0.5)", lambda x: V.solarize(x, 0.5))
case("F.invert(x)", V.invert)
case("F.autocontrast(x)", V.autocontrast)
case("F.equalize(x)", V.equalize)
case("F.permute_channels(x, {3, 1, 2})", lambda x: V.permute_channels(x, [2, 0, 1]))
case("F.gaussian_blur(x, {3, 5})", lambda x: V.gaussian_blur(x, [3, 5]))
case("F.gaussian_blur(x, 3, 0.7)", lambda x: V.gaussian_blur(x, 3, 0.7))
case("F.normalize(x, {0.5, 0.4, 0.3}, {0.2, 0.25, 0.5})", lambda x: V.normalize(x, [0.5, 0.4, 0.3], [0.2, 0.25, 0.5]))
for dtype in ("float64", "float16", "uint8", "int8", "int16", "int32"):
    case('F.to_dtype(x, "%s", true)' % dtype, lambda x, d=dtype: V.to_dtype(x, getattr(torch, d), True))
case("F.erase(x, 1, 2, 2, 3, 0.25)", lambda x: V.erase(x, 1, 2, 2, 3, torch.tensor(0.25)))
case("vision.utils.make_grid(x:unsqueeze(1):repeat_interleave(5, 1), 3, 1, {pad_value = 0.5})",
     lambda x: torchvision.utils.make_grid(x.unsqueeze(0).repeat_interleave(5, 0), 3, 1, pad_value=0.5))
case("vision.utils.make_grid(x:unsqueeze(2), {normalize = true})",
     lambda x: torchvision.utils.make_grid(x.unsqueeze(1), normalize=True))
case("vision.utils.make_grid(x:unsqueeze(2), {normalize = true, value_range = {0.1, 0.6}, scale_each = true})",
     lambda x: torchvision.utils.make_grid(x.unsqueeze(1), normalize=True, value_range=(0.1, 0.6), scale_each=True))
case("F.resize(x, 7, {max_size = 8})", lambda x: V.resize(x, 7, max_size=8))

AUGMENT = T.RandAugment()
for name, magnitude in (("Identity", 0), ("ShearX", 0.2), ("ShearY", -0.25), ("TranslateX", 2.7), ("TranslateY", -1.9),
                        ("Rotate", -20), ("Brightness", 0.5), ("Color", -0.4), ("Contrast", 0.7), ("Sharpness", 0.9),
                        ("Posterize", 4), ("Solarize", 0.3), ("AutoContrast", 0), ("Equalize", 0), ("Invert", 0)):
    case('vision.transforms.RandAugment():_apply_operation(x, "%s", %s)' % (name, magnitude),
         lambda x, n=name, m=magnitude: AUGMENT._apply_image_or_video_transform(
             x, n, m, V.InterpolationMode.NEAREST, AUGMENT._fill))
for name, bins in (("AutoAugment", 10), ("RandAugment", 31), ("TrivialAugmentWide", 31), ("AugMix", 10)):
    space = {op: f(bins, 5, 7) for op, (f, _) in getattr(T, name)._AUGMENTATION_SPACE.items()}
    at = [(op, b) for op, values in space.items() if values is not None for b in (0, 3, bins - 1)]
    codes = ", ".join('t:_magnitude_at("%s", %d, %d, x)' % (op, b, bins) for op, b in at)
    case('(function(t) return lt.tensor{%s, dtype = "float32"} end)(vision.transforms.%s())' % (codes, name),
         lambda x, s=space, a=at: torch.tensor([float(s[op][b]) for op, b in a]))


def cases_of(_):
    """Returns the fields of the table of tests/golden/vision.lua."""
    g = torch.Generator().manual_seed(5)
    lines = ['torchvision = "%s",' % torchvision.__version__.split("+")[0]]
    for code, fn, channels in CASES:
        image = torch.rand(channels, 5, 7, generator=g)
        for x in (image, (image * 256).to(torch.uint8)):
            try:
                out = fn(x.clone())
            except (RuntimeError, TypeError, ValueError):
                continue
            lines.append("  {code = [[%s]], x = %s,\n    out = %s}," % (code, ops.tensor(x), ops.tensor(out.contiguous())))
    return "\n".join(lines)
