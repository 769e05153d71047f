#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page that `weft plan --page` writes, in a real Chromium: light and dark, on a desk and in a phone's width.

    plan_page_test.py WEFT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser
from browser import CONTRAST, NAMELESS

WEFT = sys.argv[1]
WIDER = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'


class PlanPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.page = pathlib.Path(folder.name) / 'plan.html'
        subprocess.run([WEFT, 'plan', '--model', 'deepfm', '--shape', 'p3.8xlarge*2,c5.18xlarge', '--page', cls.page, '--train', '1e9',
                        '--deadline', '7200', '--budget', '400'], check=True, capture_output=True)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def show(self, is_dark, width, height):
        self.browser.dark(is_dark)
        self.browser.resize(width, height, mobile=width < 500)
        self.browser.open(self.page.as_uri())
        self.browser.wait('document.readyState === "complete" && document.querySelectorAll("svg").length === 3', 'three pictures')

    def test_it_reads_well_everywhere(self):
        for is_dark in False, True:
            for width, height in (1280, 860), (390, 844):
                with self.subTest(dark=is_dark, width=width):
                    self.show(is_dark, width, height)
                    self.assertEqual(self.browser.js(WIDER), 0, 'the page itself is not scrolled sideways')
                    self.assertEqual(self.browser.js(CONTRAST.replace("'body *'", "'body :not(svg, svg *, .legend *)'")), '')
                    self.assertEqual(self.browser.js(NAMELESS), '')
                    # Letters of pictures are at least eight pixels tall.
                    tallest = self.browser.js('Math.min(...[...document.querySelectorAll("svg text")].map(e => e.getBoundingClientRect().height))')
                    self.assertGreater(tallest, 8)
                    paper = self.browser.js('getComputedStyle(document.body).backgroundColor')
                    self.assertEqual(paper, 'rgb(22, 22, 22)' if is_dark else 'rgb(255, 255, 255)')
        self.assertEqual(self.browser.problems, [])

    def test_it_tells_the_goal(self):
        self.show(False, 1280, 860)
        self.assertRegex(self.browser.js('document.body.innerText'), r'goal +\d+ workers? .* to the end')


if __name__ == '__main__':
    if browser.find() is None:
        print('there is no Chromium')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
