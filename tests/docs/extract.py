# SPDX-License-Identifier: Apache-2.0
"""Writes the program that a page is: extract.py PAGE SOURCE joins its ```cpp blocks."""
import pathlib
import re
import sys


def blocks(text, language):
    return re.findall(r'^```%s\n(.*?)^```$' % language, text, re.M | re.S)


if __name__ == '__main__':
    page = pathlib.Path(sys.argv[1])
    source = '// Generated from %s.\n' % page.name + '\n'.join(blocks(page.read_text(), 'cpp'))
    pathlib.Path(sys.argv[2]).write_text(source)
