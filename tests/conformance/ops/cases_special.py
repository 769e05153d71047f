# SPDX-License-Identifier: Apache-2.0
"""Special functions: Bessel's, incomplete gamma and beta, integrals; products of vectors."""
import numpy as np

from cases import Case, cases, numpy_type, values


def _finite(name, low=-20, most=1e4):
    """Ordinary and large values. TensorFlow loses digits of the angle of waves that are far out."""
    picked = [0.0, 1e-3, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.5, 7.9, 8.1, 12.0, 29.0, 31.0, 50.0, 80.0, 300.0, most]
    picked = [v for v in picked if not v > most]
    return np.array(sorted([v for v in picked if v >= low] + [-v for v in picked if low < -v < 0]) + [np.nan], numpy_type(name))


def _spread(name, low, high, key=0):
    return values(name, [211], low, high, key)


@cases('BesselI0', 'BesselI0e', 'BesselI1', 'BesselI1e', 'BesselJ0', 'BesselJ1')
def first_kind(op, types):
    name = types['T']
    yield Case([_finite(name, -90, 200 if 'J' in op else 1e4)])
    yield Case([_spread(name, -40, 40)])
    yield Case([values(name, [2, 0])])


@cases('BesselK0', 'BesselK0e', 'BesselK1', 'BesselK1e', 'BesselY0', 'BesselY1')
def second_kind(op, types):
    name = types['T']
    x = _finite(name, -3, 200 if 'Y' in op else 1e4)
    yield Case([x[x != 0]])
    yield Case([_spread(name, 0.01, 3)])
    yield Case([_spread(name, 3, 40)])


@cases('Dawsn', 'FresnelCos', 'FresnelSin')
def odd_integrals(op, types):
    name = types['T']
    yield Case([_finite(name, -60, 60 if 'Fresnel' in op else 1e4)])
    yield Case([_spread(name, -12, 12)])
    yield Case([_spread(name, -1, 1, 2)])


@cases('Expint', 'Spence')
def half_line(op, types):
    name = types['T']
    yield Case([_finite(name, -3)])
    yield Case([_spread(name, 0.01, 4)])
    yield Case([_spread(name, 4, 60)])


@cases('Igamma', 'Igammac', 'IgammaGradA')
def incomplete_gamma(op, types):
    name = types['T']
    dtype = numpy_type(name)
    yield Case([np.array([0, 0, -1, 1, 1, 1, np.inf, np.nan, 1], dtype), np.array([1, 2, 1, -1, 0, np.inf, 1, 1, np.nan], dtype)])
    yield Case([_spread(name, 0.1, 4), _spread(name, 0.1, 8, 1)])
    yield Case([_spread(name, 4, 40), _spread(name, 1, 60, 1)])
    yield Case([values(name, [3, 1], 0.5, 3), values(name, [4], 0.5, 3)])
    yield Case([values(name, [], 0.5, 3), values(name, [0], 0.5, 3)])
    yield Case([values(name, [2], 0.5, 3), values(name, [3], 0.5, 3)], error=True)


@cases('RandomGammaGrad')
def gamma_sample(op, types):
    name = types['T']
    yield Case([_spread(name, 0.1, 4), _spread(name, 0.1, 8, 1)])
    yield Case([_spread(name, 4, 40), _spread(name, 1, 60, 1)])
    yield Case([values(name, [3, 1], 0.5, 3), values(name, [4], 0.5, 3)])


@cases('Betainc')
def incomplete_beta(op, types):
    name = types['T']
    dtype = numpy_type(name)
    yield Case([_spread(name, 0.1, 9), _spread(name, 0.1, 9, 1), _spread(name, 0, 1, 2)])
    yield Case([values(name, [], 0.5, 3), values(name, [2, 3], 0.5, 3), values(name, [], 0.1, 0.9)])
    yield Case([np.array([0, 1, 1, 1, 1, 1, -1, 1, 2], dtype), np.array([1, 0, 1, 1, 1, 1, 1, np.nan, 500], dtype),
                np.array([.5, .5, -1, 2, 0, 1, .5, .5, .01], dtype)])
    yield Case([values(name, [2], 0.5, 3), values(name, [3], 0.5, 3), values(name, [], 0.1, 0.9)], error=True)
    yield Case([values(name, [2], 0.5, 3), values(name, [], 0.5, 3), values(name, [2, 2], 0.1, 0.9)], error=True)


@cases('Cross')
def cross(op, types):
    name = types['T']
    for shape in [3], [4, 3], [2, 5, 3], [0, 3]:
        yield Case([values(name, shape), values(name, shape, key=1)])
    yield Case([values(name, [2]), values(name, [2])], error=True)
    yield Case([values(name, []), values(name, [])], error=True)
    yield Case([values(name, [2, 3]), values(name, [3])], error=True)
