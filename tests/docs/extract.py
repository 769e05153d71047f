# SPDX-License-Identifier: Apache-2.0
"""Writes the program that a page is: extract.py PAGE SOURCE [LANGUAGE] joins its ```cpp blocks, or another language's."""
import pathlib
import re
import sys


def blocks(text, language):
    return re.findall(r'^```%s\n(.*?)^```$' % language, text, re.M | re.S)


if __name__ == '__main__':
    page = pathlib.Path(sys.argv[1])
    language = sys.argv[3] if len(sys.argv) > 3 else 'cpp'
    source = '// Generated from %s.\n' % page.name + '\n'.join(blocks(page.read_text(), language))
    pathlib.Path(sys.argv[2]).write_text(source)
