# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a screen, driven over its DevTools pipe: no driver and no package is needed."""
import base64
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

# Contrast as WCAG 2 counts it, of each text with what is behind it.
CONTRAST = '''(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll('body *')) {
    const has = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!has || !element.checkVisibility() || element.closest('.hidden, canvas, [disabled], datalist, option')) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.push(element.textContent.trim().slice(0, 30) + ' ' + contrast.toFixed(2));
  }
  return bad.join('; ');
})()'''

# What screen readers need of everything that can be used.
NAMELESS = '''[...document.querySelectorAll('button, a[href], input, select, textarea, canvas, [role=tab]')].filter(e => e.checkVisibility() && !(
  e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title)).map(e => e.outerHTML.slice(0, 120)).join('; ')'''


def find():
    """The program, or None."""
    for name in ('chromium-headless-shell', 'chromium', 'google-chrome'):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One browser with one page. `problems` holds uncaught errors, refused contents and console errors."""

    def __init__(self, width=1280, height=860):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        words = [find(), '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--mute-audio', '--no-first-run', '--disable-dev-shm-usage',
                 '--disable-extensions', '--disable-background-networking', '--remote-debugging-pipe', '--user-data-dir=' + self.profile.name, 'about:blank']
        shell = 'exec "$@" 3<&%d 4>&%d' % (to_browser, from_browser)
        self.process = subprocess.Popen(['bash', '-c', shell, 'bash', *words], pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.ours = os.fdopen(ours, 'wb', buffering=0)
        self.theirs = os.fdopen(theirs, 'rb')
        self.numbers = itertools.count(1)
        self.answers, self.problems = {}, []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        target = self.call('Target.createTarget', url='about:blank', session=False)['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True, session=False)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.call(domain + '.enable')
        self.call('Performance.enable', timeDomain='threadTicks')
        self.resize(width, height)

    def read(self):
        buffer = b''
        while piece := self.theirs.read1(1 << 16):
            *messages, buffer = (buffer + piece).split(b'\0')
            for message in messages:
                self.hear(json.loads(message))

    def hear(self, message):
        with self.changed:
            params = message.get('params', {})
            if 'id' in message:
                self.answers[message['id']] = message
            elif message['method'] == 'Runtime.exceptionThrown':
                details = params['exceptionDetails']
                self.problems.append(details.get('exception', {}).get('description', details['text']))
            elif message['method'] == 'Log.entryAdded' and params['entry']['level'] == 'error':
                self.problems.append(params['entry']['text'] + ' ' + params['entry'].get('url', ''))
            elif message['method'] == 'Page.javascriptDialogOpening':
                self.problems.append('a dialog opens: ' + params['message'])
            self.changed.notify_all()

    def call(self, method, session=True, **params):
        number = next(self.numbers)
        message = {'id': number, 'method': method, 'params': params}
        if session:
            message['sessionId'] = self.session
        self.ours.write(json.dumps(message).encode() + b'\0')
        with self.changed:
            if not self.changed.wait_for(lambda: number in self.answers, timeout=60):
                raise AssertionError('the browser does not answer ' + method)
            answer = self.answers.pop(number)
        if 'error' in answer:
            raise AssertionError('%s: %s' % (method, answer['error']))
        return answer['result']

    def work(self):
        """Seconds of processor time that the page's thread has used so far, whatever else the machine does."""
        return next(metric['value'] for metric in self.call('Performance.getMetrics')['metrics'] if metric['name'] == 'TaskDuration')

    def resize(self, width, height, mobile=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, is_dark):
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if is_dark else 'light'}])

    def open(self, url):
        self.call('Page.navigate', url=url)

    def js(self, expression):
        """The value of an expression; promises are waited for."""
        result = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if 'exceptionDetails' in result:
            raise AssertionError('%s\n%s' % (expression, result['exceptionDetails'].get('exception', {}).get('description')))
        return result['result'].get('value')

    def wait(self, expression, what=None, seconds=30):
        """Until it is true; its value."""
        deadline = time.monotonic() + seconds
        while not (value := self.js(expression)):
            if time.monotonic() > deadline:
                raise AssertionError('%s does not come; problems %s; the page shows:\n%s' % (what or expression, self.problems, self.js('document.body.innerText')[:3000]))
            time.sleep(0.05)
        return value

    def wait_text(self, text, seconds=30):
        self.wait('document.getElementById("main").innerText.includes(%s)' % json.dumps(text), text, seconds)

    def text(self):
        return self.js('document.getElementById("main").innerText')

    def click(self, selector, text=None):
        """The first element of the selector, with this text, that can be seen."""
        found = 'Array.from(document.querySelectorAll(%s)).find(e => e.checkVisibility() && (%s === null || e.textContent.trim() === %s))' % (
            json.dumps(selector), json.dumps(text), json.dumps(text))
        self.wait('!!(%s)' % found, '%s %s' % (selector, text or ''))
        self.js('(%s).click()' % found)

    def key(self, name, text=None, modifiers=0):
        codes = {'Tab': 9, 'Enter': 13, 'Escape': 27, 'ArrowDown': 40, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowLeft': 37}
        common = dict(key=name, code=name, windowsVirtualKeyCode=codes.get(name, 0), modifiers=modifiers)
        if name == 'Enter':
            text = '\r'
        self.call('Input.dispatchKeyEvent', type='keyDown', **common, **({'text': text} if text else {}))
        self.call('Input.dispatchKeyEvent', type='keyUp', **common)

    def type(self, text):
        self.call('Input.insertText', text=text)

    def screenshot(self, path):
        data = base64.b64decode(self.call('Page.captureScreenshot', format='png')['data'])
        pathlib.Path(path).write_bytes(data)

    def close(self):
        with contextlib.suppress(Exception):
            self.call('Browser.close', session=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.ours.close()
        self.reader.join(10)
        self.theirs.close()
        self.profile.cleanup()
