#!/usr/bin/env python3
"""Writes src/cpu/kernels/gelu_table.h: polynomials of Phi(-a), the normal distribution function, for a in [0, 3.875),
one for each multiple of 1/4, which the AVX2 and AVX-512 loops of GELU look up. Needs mpmath and numpy.

    python3 tools/gen_gelu_table.py"""

import os

import mpmath as mp
import numpy as np

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "cpu", "kernels", "gelu_table.h")
INTERVALS, STEP, DEGREE, POINTS = 16, 0.25, 6, 60
mp.mp.prec = 120


def phi(a):
    return mp.erfc(a / mp.sqrt(2)) / 2


def center(k):
    """Returns a float32 near k / 4 whose Phi(-a) is almost a float32, so that this coefficient has no rounding error."""
    if k == 0:
        return np.float32(0)
    ulp = np.spacing(np.float32(k * STEP))
    nearby = (np.float32(k * STEP + j * ulp) for j in sorted(range(-3000, 3001), key=abs))
    best = None
    for c in nearby:
        value = phi(mp.mpf(float(c)))
        error = abs(mp.mpf(float(np.float32(float(value)))) / value - 1)
        if best is None or error < best[0]:
            best = (error, c)
        if error < mp.mpf(2) ** -33:
            break
    return best[1]


def polynomial(k):
    """Returns the center c and the coefficients of Phi(-c - t) with the least relative error (Lawson's iteration)."""
    c = center(k)
    at, first = mp.mpf(float(c)), np.float32(float(phi(mp.mpf(float(c)))))
    low, high = max(0, (k - 0.5) * STEP) - at, (k + 0.5) * STEP - at
    ts = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * POINTS)) for i in range(POINTS)]
    values, weights = [phi(at + t) for t in ts], [mp.mpf(1)] * POINTS
    for _ in range(25):
        m, b = mp.matrix(POINTS, DEGREE), mp.matrix(POINTS, 1)
        for i, t in enumerate(ts):
            scale = mp.sqrt(weights[i]) / values[i]
            for j in range(DEGREE):
                m[i, j] = scale * t ** (j + 1)
            b[i] = scale * (values[i] - float(first))
        q = mp.lu_solve(m.T * m, m.T * b)
        errors = [
            abs((float(first) + sum(q[j] * t ** (j + 1) for j in range(DEGREE))) / v - 1) for t, v in zip(ts, values)
        ]
        total = sum(w * e for w, e in zip(weights, errors))
        weights = [w * e / total * POINTS for w, e in zip(weights, errors)]
    return max(errors), [c, first] + [np.float32(float(x)) for x in q]


def number(x):
    text = "%.9g" % x
    return text + ("f" if "." in text or "e" in text else ".0f")


def main():
    found = [polynomial(k) for k in range(INTERVALS)]
    worst = mp.log(max(error for error, _ in found), 2)
    lines = [
        "/* gelu_table.h: written by tools/gen_gelu_table.py. Phi(-a) = the sum of row[1 + j] (a - row[0])^j,",
        " * with the column of the multiple of 1/4 nearest to a: 2^%.1f */" % float(worst),
        "static const float lt_gelu_table[%d][%d] = {" % (DEGREE + 2, INTERVALS),
    ]
    for j in range(DEGREE + 2):
        texts = [number(row[j]) for _, row in found]
        lines.append("    {" + texts[0] + ",")
        for text in texts[1:]:
            if len(lines[-1]) + len(text) + 2 > 98:
                lines.append("    ")
            lines[-1] += ("" if lines[-1].endswith("    ") else " ") + text + ","
        lines[-1] = lines[-1][:-1] + "},"
    with open(PATH, "w") as f:
        f.write("\n".join(lines + ["};", ""]))


main()
