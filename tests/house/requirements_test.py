#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every requirements file of the repository can be installed: pip finds versions that agree with all of its lines.

    requirements_test.py [FILE...]     all of bench/ and tests/ if none is given; exit code 77 where no package index answers
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_NETWORK = ('Temporary failure in name resolution', 'Network is unreachable', 'Connection refused', 'ConnectTimeoutError',
              'No matching distribution found for absl-py')


def problem_with(path):
    """What pip says against the file, or None. Nothing is installed."""
    done = subprocess.run([sys.executable, '-m', 'pip', 'install', '--dry-run', '--ignore-installed', '--quiet',
                           '--disable-pip-version-check', '-r', str(path)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else done.stdout


def main(arguments):
    files = [pathlib.Path(name) for name in arguments] or sorted(
        path for folder in ('bench', 'tests') for path in (ROOT / folder).glob('requirements*.txt'))
    failed = 0
    for path in files:
        problem = problem_with(path)
        if problem is None:
            print('%s: can be installed' % path.name)
        elif any(text in problem for text in NO_NETWORK):
            print('no package index answers:\n%s' % problem)
            return 77
        else:
            failed += 1
            print('%s cannot be installed:\n%s' % (path, problem))
    return 1 if failed or not files else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
