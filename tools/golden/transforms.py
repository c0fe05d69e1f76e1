"""Expected values of Fourier transforms and windows. Complex numbers are compared as pairs."""

import torch

from ops import case, f, family, i


def REAL(z):
    return torch.view_as_real(z.resolve_conj())


family("fft")
for d in (torch.float32, torch.float64):
    for n in (1, 2, 5, 8, 9, 14, 37) if d == torch.float32 else (12, 30):
        z = f(2, n, 2, dtype=d)
        zs = {"x": z}
        for name in ("fft", "ifft"):
            case(name, "lt.view_as_real(lt.fft.%s(lt.view_as_complex(x)))" % name,
                 lambda x, name=name: REAL(getattr(torch.fft, name)(torch.view_as_complex(x))), **zs)
        for name in ("irfft", "hfft"):
            case(name, "lt.fft.%s(lt.view_as_complex(x), %d)" % (name, n),
                 lambda x, name=name, n=n: getattr(torch.fft, name)(torch.view_as_complex(x), n), **zs)
        for name in ("rfft", "ihfft"):
            case(name, "lt.view_as_real(lt.fft.%s(x, {dim = 1}))" % name,
                 lambda x, name=name: REAL(getattr(torch.fft, name)(x, dim=0)), x=f(n, 2, dtype=d))
    for name in ("fft", "ifft", "rfft", "ihfft"):
        case(name, 'lt.view_as_real(lt.fft.%s(x, 7, -2, "ortho"))' % name,
             lambda x, name=name: REAL(getattr(torch.fft, name)(x, 7, -2, "ortho")), x=f(3, 5, 2, dtype=d))
        case(name, 'lt.view_as_real(lt.fft.%s(x, {n = 3, norm = "forward"}))' % name,
             lambda x, name=name: REAL(getattr(torch.fft, name)(x, 3, norm="forward")), x=f(2, 5, dtype=d))
        case(name, "lt.view_as_real(lt.fft.%s(x))" % name,
             lambda x, name=name: REAL(getattr(torch.fft, name)(x)), x=f(0, 3, dtype=d))
        case(name + "2", "lt.view_as_real(lt.fft.%s2(x))" % name,
             lambda x, name=name: REAL(getattr(torch.fft, name + "2")(x)), x=f(2, 4, 5, dtype=d))
        case(name + "2", 'lt.view_as_real(lt.fft.%s2(x, {3, 6}, {1, 3}, "ortho"))' % name,
             lambda x, name=name: REAL(getattr(torch.fft, name + "2")(x, (3, 6), (0, 2), "ortho")), x=f(2, 4, 5, dtype=d))
        case(name + "n", "lt.view_as_real(lt.fft.%sn(x))" % name,
             lambda x, name=name: REAL(getattr(torch.fft, name + "n")(x)), x=f(2, 3, 4, dtype=d))
        case(name + "n", 'lt.view_as_real(lt.fft.%sn(x, {-1, 5}, nil, "forward"))' % name,
             lambda x, name=name: REAL(getattr(torch.fft, name + "n")(x, (-1, 5), None, "forward")), x=f(2, 3, 4, dtype=d))
    for name in ("irfft", "hfft"):
        case(name, "lt.fft.%s(x)" % name, lambda x, name=name: getattr(torch.fft, name)(x), x=f(2, 5, dtype=d))
        case(name + "2", 'lt.fft.%s2(x, {3, 6}, {1, 3}, "ortho")' % name,
             lambda x, name=name: getattr(torch.fft, name + "2")(x, (3, 6), (0, 2), "ortho"), x=f(2, 4, 5, dtype=d))
        case(name + "2", "lt.fft.%s2(lt.view_as_complex(x))" % name,
             lambda x, name=name: getattr(torch.fft, name + "2")(torch.view_as_complex(x)), x=f(3, 4, 5, 2, dtype=d))
        case(name + "n", "lt.fft.%sn(lt.view_as_complex(x), {3, 5})" % name,
             lambda x, name=name: getattr(torch.fft, name + "n")(torch.view_as_complex(x), (3, 5)), x=f(2, 3, 4, 2, dtype=d))
case("fft", "lt.view_as_real(lt.fft.fft(x))", lambda x: REAL(torch.fft.fft(x)), x=i(2, 5))
case("rfft", "lt.view_as_real(lt.fft.rfft(x))", lambda x: REAL(torch.fft.rfft(x)), x=torch.tensor([True, False, True]))
for n in (1, 4, 5):
    case("fftfreq", "lt.fft.fftfreq(%d, 0.5)" % n, lambda n=n: torch.fft.fftfreq(n, 0.5))
    case("rfftfreq", "lt.fft.rfftfreq(%d)" % n, lambda n=n: torch.fft.rfftfreq(n))
for shape in ((5,), (2, 5)):
    case("fftshift", "lt.fft.fftshift(x)", lambda x: torch.fft.fftshift(x), x=f(*shape))
    case("ifftshift", "lt.fft.ifftshift(x)", lambda x: torch.fft.ifftshift(x), x=f(*shape))
case("fftshift", "lt.fft.fftshift(x, 2)", lambda x: torch.fft.fftshift(x, 1), x=i(2, 5))
case("ifftshift", "lt.fft.ifftshift(x, {1, -1})", lambda x: torch.fft.ifftshift(x, (0, -1)), x=i(3, 5))

W = torch.hann_window(8)
for code, options in (("center = false", dict(center=False)), ('pad_mode = "constant", normalized = true',
                                                              dict(pad_mode="constant", normalized=True)),
                      ("onesided = false, hop_length = 3", dict(onesided=False, hop_length=3)),
                      ('pad_mode = "replicate"', dict(pad_mode="replicate")),
                      ('pad_mode = "circular"', dict(pad_mode="circular"))):
    case("stft", "lt.view_as_real(lt.stft(x, 8, {window = w, return_complex = true, %s}))" % code,
         lambda x, w, o=options: REAL(torch.stft(x, 8, window=w, return_complex=True, **o)), x=f(2, 20), w=W)
case("stft", "lt.stft(x, 7, 2, 4, {return_complex = false})",
     lambda x: torch.stft(x, 7, 2, 4, window=torch.ones(4), return_complex=False), x=f(15))
S = torch.stft(f(2, 20), 8, window=W, return_complex=True)
for code, options in (("", {}), (", length = 23", dict(length=23)), (", length = 9, normalized = true",
                                                                   dict(length=9, normalized=True))):
    case("istft", "lt.istft(lt.view_as_complex(x), 8, {window = w%s})" % code,
         lambda x, w, o=options: torch.istft(torch.view_as_complex(x), 8, window=w, **o), x=REAL(S.contiguous()), w=W)

family("window_functions")
for n in (0, 1, 2, 5, 8):
    for sym in (True, False):
        options = "{sym = %s}" % str(sym).lower()
        for name in "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser nuttall".split():
            op = "signal.windows.exponential" if name == "exponential" else name  # exponential_ is an op, too
            case(op, "lt.signal.windows.%s(%d, %s)" % (name, n, options),
                 lambda name=name, n=n, sym=sym: getattr(torch.signal.windows, name)(n, sym=sym))
        case("general_cosine", "lt.signal.windows.general_cosine(%d, {0.5, 0.3, 0.2}, %s)" % (n, options),
             lambda n=n, sym=sym: torch.signal.windows.general_cosine(n, a=[0.5, 0.3, 0.2], sym=sym))
        for name in "bartlett blackman hamming hann kaiser".split():
            case(name + "_window", "lt.%s_window(%d, %s)" % (name, n, str(not sym).lower()),
                 lambda name=name, n=n, sym=sym: getattr(torch, name + "_window")(n, not sym))
case("kaiser", 'lt.signal.windows.kaiser(6, 5.5, {dtype = "float64"})',
     lambda: torch.signal.windows.kaiser(6, beta=5.5, dtype=torch.float64))
case("gaussian", "lt.signal.windows.gaussian(6, 2.5)", lambda: torch.signal.windows.gaussian(6, std=2.5))
case("signal.windows.exponential", "lt.signal.windows.exponential(6, 1, 2, false)",
     lambda: torch.signal.windows.exponential(6, center=1, tau=2, sym=False))
case("hamming_window", 'lt.hamming_window(6, true, 0.6, 0.4, "float64")',
     lambda: torch.hamming_window(6, True, 0.6, 0.4, dtype=torch.float64))
