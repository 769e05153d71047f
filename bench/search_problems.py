# SPDX-License-Identifier: Apache-2.0
"""Problems for searches, by their sets:

    bbob         the 24 functions of Hansen, Finck, Ros and Auger, "Real-parameter black-box optimization benchmarking 2009"
    mixint       bbob-mixint: the same with four fifths whole numbers of few values; Tusar, Brockhoff and Hansen, 2019
    conditional  a choice between three of bbob's functions, each of which has its own parameters

All are those of their authors' own program (the package coco-experiment). A problem is smaller by `least` than it says, so that
what is compared is how far above the least value a search ends.
"""
import math
import os
import pathlib
import tempfile

import cocoex


class Parameter:
    """A number in [low, high], a whole one where `is_int`, or one of `choices`; with `condition`, a choice and its value, only
    where that holds."""

    def __init__(self, name, low=None, high=None, is_int=False, choices=None, condition=None):
        self.name, self.low, self.high, self.is_int, self.choices, self.condition = name, low, high, is_int, choices, condition

    def word(self):
        """As `weft tune --space` reads it."""
        if self.choices:
            text = '%s={%s}' % (self.name, ','.join(self.choices))
        else:
            text = '%s=%s..%s' % ((self.name, int(self.low), int(self.high)) if self.is_int else (self.name, float(self.low), float(self.high)))
        return text + ('?%s=%s' % self.condition if self.condition else '')


class Problem:
    """`function` takes values by the parameters' names."""

    def __init__(self, parameters, function, least):
        self.parameters, self.function, self.least = parameters, function, least
        self.is_plain = all(p.choices is None and not p.is_int for p in parameters)

    def __call__(self, values):
        return self.function(values) - self.least


def _coco(suite, number, dimension, instance):
    problem = cocoex.BareProblem(suite, number, dimension, instance)
    return problem, problem.best_value()


def bbob(number, dimension, seed):
    problem, least = _coco('bbob', number, dimension, seed + 1)
    names = ['x%d' % i for i in range(dimension)]
    return Problem([Parameter(name, -5, 5) for name in names], lambda values: problem([values[name] for name in names]), least)


def _best_place(problem):
    """coco tells it in a file of the working directory alone."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            problem._best_parameter('print')
            return [float(word) for word in pathlib.Path('._bbob_problem_best_parameter.txt').read_text().split()]
        finally:
            os.chdir(before)


def mixint(number, dimension, seed):
    """The first four fifths are whole numbers, of 2, 4, 8 and 16 values; the others lie in [-5, 5]."""
    suite = cocoex.Suite('bbob-mixint', '', 'dimensions: %d function_indices: %d' % (dimension, number))
    problem = suite.get_problem_by_function_dimension_instance(number, dimension, seed % 15 + 1)
    whole = problem.number_of_integer_variables
    names = ['x%d' % i for i in range(dimension)]
    parameters = [Parameter(name, low, high, is_int=i < whole)
                  for i, (name, low, high) in enumerate(zip(names, problem.lower_bounds, problem.upper_bounds))]
    least = problem(_best_place(problem))
    made = Problem(parameters, lambda values: problem([values[name] for name in names]), least)
    made.suite = suite  # which the problem belongs to
    return made


def conditional(number, dimension, seed):
    """`number` chooses three functions; which branch holds the least value changes with the seed."""
    branches = []
    for i in range(3):
        problem, least = _coco('bbob', (number + 7 * i - 1) % 24 + 1, dimension, seed + 1)
        branches.append((problem, least, ['%s%d' % ('abc'[i], j) for j in range(dimension)], 0.5 * ((i + seed) % 3)))
    parameters = [Parameter('branch', choices=['a', 'b', 'c'])]
    for i, (_, _, names, _) in enumerate(branches):
        parameters += [Parameter(name, -5, 5, condition=('branch', 'abc'[i])) for name in names]

    def function(values):
        problem, least, names, above = branches['abc'.index(values['branch'])]
        # By its logarithm, or the scale of one function would hide the others.
        return math.log1p(max(0.0, problem([values[name] for name in names]) - least)) + above
    return Problem(parameters, function, 0.0)


SETS = {'bbob': bbob, 'mixint': mixint, 'conditional': conditional}
