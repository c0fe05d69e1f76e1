"""PNG and JPEG files of every kind, and what torchvision, or Pillow, decodes them to. The files are written by Pillow, and by
`interlaced` for the kind that Pillow does not write."""

import io
import struct
import zlib

import torch
import torchvision.io as tv
from PIL import Image

import ops

MODES = ("UNCHANGED", "GRAY", "GRAY_ALPHA", "RGB", "RGB_ALPHA")
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced(pixels):
    """Returns a PNG file of uint8 {H, W, 3} in the seven passes of Adam7."""
    height, width, _ = pixels.shape
    raw = b""
    for x, y, dx, dy in PASSES:
        part = pixels[y::dy, x::dx]
        if part.numel():
            for row in part:
                raw += b"\0" + bytes(row.flatten().tolist())
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def files():
    """Yields the name, the format and the bytes of each file."""
    g = torch.Generator().manual_seed(3)
    noise = torch.randint(0, 256, (7, 9, 4), generator=g, dtype=torch.uint8)
    rgba = Image.frombytes("RGBA", (9, 7), bytes(noise.flatten().tolist()))
    rgb = rgba.convert("RGB")
    gray = rgb.convert("L")
    yield "gray", "png", saved(gray, "PNG")
    yield "gray of 1 bit", "png", saved(gray.convert("1"), "PNG")
    yield "gray and alpha", "png", saved(rgba.convert("LA"), "PNG")
    yield "rgb", "png", saved(rgb, "PNG")
    yield "rgba", "png", saved(rgba, "PNG")
    yield "palette", "png", saved(rgb.quantize(16), "PNG")
    yield "palette with a transparent color", "png", saved(rgb.quantize(7), "PNG", transparency=2)
    yield "rgb with a transparent color", "png", saved(rgb, "PNG", transparency=rgb.getpixel((1, 1)))
    yield "interlaced", "png", interlaced(noise[..., :3])
    smooth = Image.linear_gradient("L").resize((17, 11), Image.BILINEAR)
    color = Image.merge("RGB", (smooth, smooth.rotate(90, expand=False), smooth.transpose(Image.FLIP_TOP_BOTTOM)))
    yield "gray", "jpeg", saved(smooth, "JPEG", quality=90)
    yield "rgb", "jpeg", saved(color, "JPEG", quality=90)
    yield "rgb without subsampling", "jpeg", saved(color, "JPEG", quality=95, subsampling=0)
    yield "progressive", "jpeg", saved(color, "JPEG", quality=90, progressive=True)
    yield "cmyk", "jpeg", saved(color.convert("CMYK"), "JPEG", quality=90)


def by_pillow(data, mode):
    """Returns what Pillow decodes a file to."""
    image = Image.open(io.BytesIO(data))
    own = "RGBA" if "transparency" in image.info else "RGB" if image.mode == "P" else image.mode.replace("1", "L")
    image = image.convert({"UNCHANGED": own, "GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}[mode])
    flat = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return flat.view(image.height, image.width, -1).permute(2, 0, 1)


def cases_of(_):
    lines = []
    for name, kind, data in files():
        lines.append('  {name = "%s", format = "%s", bytes = "%s", modes = {' % (name, kind, data.hex()))
        for mode in MODES:
            if mode == "GRAY_ALPHA" and name == "rgb with a transparent color":
                continue  # Pillow has another alpha there
            try:
                # torchvision has no colors of palettes, no transparent colors, and wrong alpha of 1 bit
                if "palette" in name or "1 bit" in name or "transparent" in name:
                    out = by_pillow(data, mode)
                else:
                    decode = tv.decode_png if kind == "png" else tv.decode_jpeg
                    out = decode(torch.frombuffer(bytearray(data), dtype=torch.uint8), tv.ImageReadMode[mode])
            except RuntimeError:
                continue
            if name != "cmyk":
                lines.append("    %s = %s," % (mode, ops.tensor(out.contiguous())))
        lines.append("  }},")
    return "\n".join(lines)
