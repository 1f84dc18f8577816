#!/usr/bin/env python3
"""Computes the polynomials of codegen/decompose_math.h and writes codegen/math_coefficients.h.

    python3 scripts/fit_math.py | clang-format-22 > codegen/math_coefficients.h     (needs mpmath)

Each polynomial is a weighted minimax fit by Lawson's method (C. L. Lawson, 1961): least squares on
Chebyshev nodes, where after every solution the weight of a node is multiplied by its error. The
coefficients are then rounded one at a time to the type that will hold them, the most important one
first, and what remains is fitted again, so that the later ones make up for the rounding of the
earlier ones. The comment beside each table is the largest weighted error that is left.
"""
import sys
import textwrap

import mpmath
from mpmath import mp, mpf

mp.dps = 50
NODES = 120
LAWSON_STEPS = 25
FINAL_STEPS = 4


def round_to(value, bits):
    """The nearest number with `bits` significant bits."""
    if value == 0:
        return mpf(0)
    _, exponent = mpmath.frexp(value)
    scale = mpf(2) ** (bits - exponent)
    return mpmath.nint(value * scale) / scale


def least_squares(columns, target, weights):
    n = len(columns)
    matrix = mpmath.matrix(n, n)
    right = mpmath.matrix(n, 1)
    scaled = [[w * c for w, c in zip(weights, column)] for column in columns]
    for i in range(n):
        for j in range(i, n):
            matrix[i, j] = matrix[j, i] = mpmath.fdot(scaled[i], columns[j])
        right[i] = mpmath.fdot(scaled[i], target)
    return list(mpmath.lu_solve(matrix, right))


class Fit:
    """f(x) ~ sum of c[p] x^p over `powers`, where |error * weight(x)| is to be smallest."""

    def __init__(self, f, weight, low, high, powers):
        low, high = mpf(low), mpf(high)
        middle, half = (low + high) / 2, (high - low) / 2
        angles = [mpmath.pi * (i + mpf(1) / 2) / NODES for i in range(NODES)]
        nodes = [middle + half * mpmath.cos(angle) for angle in angles]
        self.target = [f(x) for x in nodes]
        self.weight = [weight(x) for x in nodes]
        self.columns = {p: [x ** p for x in nodes] for p in powers}
        self.lawson = [mpf(1)] * NODES

    def solve(self, powers, target, steps):
        columns = [self.columns[p] for p in powers]
        for _ in range(steps):
            weights = [l * w * w for l, w in zip(self.lawson, self.weight)]
            found = least_squares(columns, target, weights)
            errors = [abs(e) for e in self.errors(columns, found, target)]
            largest = max(errors)
            # The floor keeps a node that happens to lie on a zero of the error in the game.
            self.lawson = [l * max(e / largest, mpf(10) ** -3)
                           for l, e in zip(self.lawson, errors)]
            total = sum(self.lawson)
            self.lawson = [l / total for l in self.lawson]
        return found

    def errors(self, columns, coefficients, target):
        return [(mpmath.fdot(coefficients, [c[i] for c in columns]) - target[i]) * self.weight[i]
                for i in range(NODES)]

    def rounded(self, bits, one_by_one):
        """Coefficients with `bits` bits; the first `one_by_one` are followed by a new fit."""
        powers = list(self.columns)
        target = list(self.target)
        result = []
        found = self.solve(powers, target, LAWSON_STEPS)
        while powers:
            value = round_to(found[0], bits)
            result.append(value)
            target = [t - value * c for t, c in zip(target, self.columns[powers[0]])]
            powers = powers[1:]
            if powers:
                if len(result) <= one_by_one:
                    found = self.solve(powers, target, FINAL_STEPS)
                else:
                    found = found[1:]
        worst = max(abs(t * w) for t, w in zip(target, self.weight))
        return result, worst


def hexadecimal(value):
    """A C++ literal of a number that a double holds exactly."""
    mantissa, exponent = float(value).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent


def print_table(name, comment, values):
    print(textwrap.fill(comment, 100, initial_indent="/// ", subsequent_indent="/// "))
    text = ", ".join(hexadecimal(v) for v in values)
    line = f"inline constexpr double {name}[] = {{{text}}};"
    if len(line) <= 100:
        print(line)
    else:
        print(f"inline constexpr double {name}[] = {{")
        row = "   "
        for v in values:
            word = f" {hexadecimal(v)},"
            if len(row) + len(word) > 100:
                print(row)
                row = "   "
            row += word
        print(row + "\n};")
    print()


def fitted(name, what, f, weight, low, high, powers, bits, scale=1, one_by_one=None):
    if one_by_one is None:
        one_by_one = len(powers) if bits == 24 else 3
    values, worst = Fit(f, weight, low, high, powers).rounded(bits, one_by_one)
    log = float(mpmath.log(worst, 2))
    print(f"{name}: 2^{log:.2f}", file=sys.stderr)
    print_table(name, f"{what}; error 2^{log:.1f}.", [v * scale for v in values])


def split(value, *bits):
    """`value` as a sum of numbers with so many bits each."""
    parts = []
    for b in bits:
        parts.append(round_to(value, b))
        value -= parts[-1]
    return parts


LN2 = mpmath.log(2)
SQRT_HALF = mpmath.sqrt(mpf(1) / 2)
# Rounding the multiple of the period in the working type moves the end of the interval a little.
SLACK = mpf("1.0001")


def log2_erfc(x):
    return mpmath.log(mpmath.erfc(x), 2)


def write_type(suffix, bits, exponent_bits, degrees):
    d = degrees
    relative_exp = lambda r: mpmath.exp(-r)
    fitted(f"kExp{suffix}", "e^r - 1 from power 1, |r| <= log 2, relative to e^r", mpmath.expm1,
           relative_exp, -LN2 * SLACK, LN2 * SLACK, range(1, d["exp"] + 1), bits)
    fitted(f"kExp2{suffix}", "2^r - 1 from power 1, |r| <= 1, relative to 2^r",
           lambda r: mpmath.expm1(r * LN2), lambda r: mpmath.exp(-r * LN2), -1, 1,
           range(1, d["exp"] + 1), bits)
    fitted(f"kExp2Narrow{suffix}", "2^r - 1 from power 1, |r| <= 1/2, relative to 2^r",
           lambda r: mpmath.expm1(r * LN2), lambda r: mpmath.exp(-r * LN2), -SLACK / 2, SLACK / 2,
           range(1, d["narrow"] + 1), bits)
    end = LN2 / 4 * SLACK
    if bits == 24:
        fitted(f"kTanh{suffix}", "tanh(x)/x - 1 from power 2 in steps of 2, "
               f"x <= {d['tanh_border']}, relative to tanh(x)/x", lambda x: mpmath.tanh(x) / x - 1,
               lambda x: x / mpmath.tanh(x), mpf(1) / 2 ** 10, mpf(d["tanh_border"]),
               range(2, d["tanh"] + 1, 2), bits)
        fitted(f"kExpTwice{suffix}", "e^2r - 1 from power 1, |r| <= log 2 / 4, relative to e^2r",
               lambda r: mpmath.expm1(2 * r), lambda r: mpmath.exp(-2 * r), -end, end,
               range(1, d["narrow"] + 1), bits)
    else:
        fitted(f"kHalfExpm1{suffix}", "(e^2r - 1)/2 - r from power 2, |r| <= log 2 / 4, "
               "relative to (e^2r - 1)/2", lambda r: mpmath.expm1(2 * r) / 2 - r,
               lambda r: 2 / mpmath.expm1(2 * r), -end, end, range(2, d["tanh"] + 1), bits)
    fitted(f"kSin{suffix}", "sin r - r from power 3 in steps of 2, |r| <= pi/2, relative to sin r",
           lambda r: mpmath.sin(r) - r, lambda r: 1 / mpmath.sin(r), mpf(1) / 2 ** 10,
           mpmath.pi / 2 * mpf("1.03" if bits == 24 else "1.0001"), range(3, d["sin"] + 1, 2), bits)
    low, high = SQRT_HALF - 1, 1 / SQRT_HALF - 1
    if bits == 24:
        fitted(f"kLog{suffix}", "log(1 + f) - f from power 2, 1 + f between the roots of "
               "1/2 and 2, relative to log(1 + f)", lambda f: mpmath.log1p(f) - f,
               lambda f: 1 / mpmath.log1p(f), low, high, range(2, d["log"] + 1), bits)
        high_part = sum(split(1 / LN2, bits, bits))
        fitted(f"kLog2{suffix}", "log2(1 + f) - f/log 2 from power 2, the same interval, relative",
               lambda f: mpmath.log1p(f) / LN2 - f * high_part, lambda f: LN2 / mpmath.log1p(f),
               low, high, range(2, d["log2"] + 1), bits)
    else:
        end = high / (2 + high) * SLACK
        fitted(f"kLog{suffix}", "log((1 + s)/(1 - s))/s - 2 from power 2 in steps of 2, "
               "|s| <= 0.1716, relative to 2", lambda s: 2 * mpmath.atanh(s) / s - 2,
               lambda s: mpf(1) / 2, mpf(1) / 2 ** 10, end, range(2, d["log"] + 1, 2), bits)
    border, top, centre = mpf(d["border"]), mpf(d["top"]), mpf(d["centre"])
    fitted(f"kErf{suffix}", f"erf(x)/x - 1 from power 0 in steps of 2, x <= {d['border']}, "
           "relative to erf(x)/x", lambda x: mpmath.erf(x) / x - 1, lambda x: x / mpmath.erf(x),
           mpf(1) / 2 ** 10, border, range(0, d["erf"] + 1, 2), bits)
    fitted(f"kLog2Erfc{suffix}", f"log2(1 - erf(u + {d['centre']})) from power 0, "
           f"u + {d['centre']} from {d['border']} to {d['top']}, as an error of erf",
           lambda u: log2_erfc(u + centre),
           lambda u: LN2 * mpmath.erfc(u + centre) / mpmath.erf(u + centre), border - centre,
           top - centre, range(0, d["erfc"] + 1), bits)
    print_table(f"kLn2{suffix}",
                f"log 2 in two parts; the first times {exponent_bits} bits is exact.",
                split(LN2, bits - exponent_bits, bits))
    if bits == 53:
        print_table(f"kHalfLn2{suffix}", "The half of it.",
                    [p / 2 for p in split(LN2, bits - exponent_bits, bits)])


DEGREES_F32 = dict(exp=7, narrow=5, tanh=10, tanh_border="0.6875", sin=9, log=9, log2=10, erf=10,
                   erfc=6, border="0.875", top="3.95", centre="0")
DEGREES_F64 = dict(exp=13, narrow=11, tanh=11, sin=17, log=14, erf=22, erfc=18, border="1.0",
                   top="5.95", centre="3")


def main():
    print("// Written by scripts/fit_math.py; do not edit.\n"
          "#ifndef QUERN_CODEGEN_MATH_COEFFICIENTS_H_\n"
          "#define QUERN_CODEGEN_MATH_COEFFICIENTS_H_\n\n"
          "namespace quern::math_coefficients {\n")
    write_type("F32", 24, 8, DEGREES_F32)
    write_type("F64", 53, 11, DEGREES_F64)
    for name, key, what in (("kErfBorder", "border", "Where the two pieces of erf meet"),
                            ("kErfTop", "top", "From where on erf rounds to 1"),
                            ("kErfCentre", "centre", "What kLog2Erfc is centred on")):
        print_table(name, f"{what}, for f32 and f64.",
                    [round_to(mpf(d[key]), 24) for d in (DEGREES_F32, DEGREES_F64)])
    print_table("kTanhBorder", "Where the two pieces of tanh meet, for f32.",
                [mpf(DEGREES_F32["tanh_border"])])
    print_table("kHalfLn2", "log 2 / 2.", split(LN2 / 2, 53))
    print_table("kOneOverPi", "1 / pi.", split(1 / mpmath.pi, 53))
    print_table("kLog2EF32", "1 / log 2 in two parts.", split(1 / LN2, 24, 24))
    print_table("kLog2EF64", "1 / log 2.", split(1 / LN2, 53))
    print_table("kPiForF32", "pi in two doubles; the first times 22 bits is exact.",
                split(mpmath.pi, 31, 53))
    print_table("kPiForF64", "pi in four doubles; each but the last times 22 bits is exact.",
                split(mpmath.pi, 31, 31, 31, 53))
    print("}  // namespace quern::math_coefficients\n\n"
          "#endif  // QUERN_CODEGEN_MATH_COEFFICIENTS_H_")


if __name__ == "__main__":
    main()
