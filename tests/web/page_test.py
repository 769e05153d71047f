#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a real Chromium: each view, live, with hostile names, by keyboard, in a phone's width, with thousands of trials.

    page_test.py WEFT DIGITS DIGITS.CSV
"""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import browser
import cluster_stand_in as stand_in
from browser import CONTRAST, NAMELESS

WEFT = sys.argv[1]
EVIL = '<img src=x onerror=alert(1)>"\'&${7*7}'
# A step as a task tells it: the worker waits for a variable of the ps, then multiplies; something else runs meanwhile.
STEP = {'step': 120, 'left': 3, 'devices': ['/job:worker/replica:0/task:0/device:CPU:0', '/job:ps/replica:0/task:1/device:CPU:0'], 'ops': [
    [0, 5, 45, 'w/read/_recv_7', '_Recv', [4]], [0, 60, 30, 'layer/MatMul', 'MatMul', [0]], [0, 0, 20, EVIL, 'Other', [7, -1]],
    [1, 0, 10, 'w/read', 'ReadVariableOp', []], [1, 10, 1, 'w/read/_send_7', '_Send', [3]], [0, None, 1, 'no time', 'Add', []]]}
VIEWS = ['overview', 'trials', 'parallel', 'slices', 'contour', 'curves', 'pareto', 'events', 'yaml']


class Page:
    """`weft ui` on a cluster that a test makes."""

    def __init__(self, kubeconfig, *flags):
        self.process = subprocess.Popen([WEFT, 'ui', '--kubeconfig', str(kubeconfig), '--address', '127.0.0.1:0', *flags], stdout=subprocess.PIPE, text=True)
        self.url = re.search(r'http\S+$', self.process.stdout.readline().strip())[0]
        self.key = self.process.stdout.readline().split()[-1]

    def ask(self, method, path, headers=None, body=None):
        """(code, headers, JSON or text)"""
        connection = http.client.HTTPConnection(self.url.partition('//')[2], timeout=20)
        connection.request(method, path, body and json.dumps(body), {'Authorization': 'Bearer ' + self.key, 'X-Weft-Page': '1', **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, json.loads(text) if answer.headers['Content-Type'] == 'application/json' else text

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class StandInTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cluster = stand_in.StandIn()
        cls.kubeconfig = cls.cluster.kubeconfig(pathlib.Path(cls.folder.name) / 'kubeconfig')
        cls.fill(cls.cluster)
        cls.page = Page(cls.kubeconfig)
        cls.browser = browser.Browser()
        cls.enter(cls.browser, cls.page)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.page.close()
        cls.folder.cleanup()

    @staticmethod
    def fill(cluster):
        cluster.put(stand_in.experiment('search', stand_in.PARAMETERS, trials=60), *stand_in.search('search', 60),
                    stand_in.node('node-a', 4), stand_in.node('node-b'), stand_in.job('digits', 300, 600, loss=0.25),
                    stand_in.pod('digits-worker-0', 'digits', gpus=1), stand_in.pod('big-worker-0', 'big', phase='Pending', gpus=8, why='0/2 nodes are available: it needs 8 GPUs, node-a has 3 free'))
        cluster.logs['digits-worker-0'] = ''.join('step %d/600  loss %.3f\n' % (i, 3 / i) for i in range(10, 310, 10)) + EVIL + '\n' + \
            'I1127 12:00:00.000000 1 cost_recorder.cc:1] weft-step ' + json.dumps(STEP) + '\nweft-step {"step": 1, "ops": [[\n'

    @staticmethod
    def enter(b, page):
        b.open(page.url + '/')
        b.wait('document.activeElement?.id === "key"', 'the field for the key')
        b.type(page.key)
        b.key('Enter')
        b.wait_text('Experiments running')

    def setUp(self):
        self.browser.problems.clear()
        self.browser.resize(1280, 860)

    def go(self, hash_, text):
        self.browser.js('location.hash = ' + json.dumps(hash_))
        self.browser.wait_text(text)

    def check(self, where):
        self.assertEqual(self.browser.problems, [], where)
        self.assertEqual(self.browser.js(CONTRAST), '', where)
        self.assertEqual(self.browser.js(NAMELESS), '', where)
        self.assertLessEqual(self.browser.js('document.documentElement.scrollWidth'), self.browser.js('innerWidth'), where + ' is wider than its window')
        self.assertEqual(self.browser.js('document.querySelectorAll("main h1").length'), 1, where)

    def test_each_view(self):
        views = {'#/': 'What waits, and for what', '#/jobs': 'step 300 of 600', '#/jobs/TFJob/default/digits': 'Curves of digits-worker-0', '#/jobs/TFJob/default/digits?tab=step': 'Critical path', '#/cluster': 'it needs 8 GPUs, node-a has 3 free', '#/experiments': 'tpe', '#/new': 'As YAML',
                 **{'#/experiments/default/search?view=' + view: 'search' for view in VIEWS}}
        painted = {'parallel': 1, 'slices': 4, 'contour': 1, 'curves': 2, 'pareto': 1, 'overview': 1}
        for is_dark in (False, True):
            self.browser.dark(is_dark)
            self.browser.resize(*((1280, 860) if not is_dark else (390, 844)), mobile=is_dark)
            for address, text in views.items():
                self.go(address, text)
                view = address.rpartition('view=')[2]
                if view in painted and 'view=' in address:
                    # Something is on each canvas.
                    self.browser.wait('''[...document.querySelectorAll("main canvas")].filter(c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v)).length >= %d''' % painted[view], address)
                self.check('%s, %s' % (address, 'dark on a phone' if is_dark else 'light'))
        self.browser.dark(False)

    def test_importance_and_curves(self):
        self.go('#/experiments/default/search', 'Importance of parameters')
        self.browser.wait('document.querySelectorAll(".importance dt").length === 4')
        # Of a function that is known: x matters most, y little, z not at all.
        parts = self.browser.js('''import('/statistics.js').then(({importance, axisOf}) => {
          let state = 1;
          const random = () => (state = state * 16807 % 2147483647) / 2147483647;
          const trials = Array.from({length: 300}, (_, order) => ({order, values: {z: random(), x: random(), y: random() < 0.5 ? 'a' : 'b'}}));
          for (const trial of trials) trial.value = 3 * trial.values.x + (trial.values.y === 'a' ? 0.5 : 0);
          return importance(['z', 'x', 'y'].map(name => axisOf(name, trials.map(trial => trial.values[name]))), trials);
        })''')
        self.assertEqual([part['name'] for part in parts], ['x', 'y', 'z'])
        self.assertGreater(parts[0]['part'], 0.75)
        self.assertLess(parts[2]['part'], 0.03)
        self.go('#/jobs/TFJob/default/digits?tab=log', 'digits')
        self.browser.wait('document.querySelector(".log")?.textContent.includes("step 300/600")')
        self.assertIn(EVIL, self.browser.js('document.querySelector(".log").textContent'))
        self.check('the log')

    def test_a_step(self):
        self.go('#/jobs/TFJob/default/digits?tab=step', 'Critical path')
        self.browser.wait('document.querySelectorAll("svg.timeline rect.op").length === 5', 'five ops, without the one that has no time')
        self.assertEqual(self.browser.js('[...document.querySelectorAll("svg.timeline .device")].map(e => e.textContent)'), ['ps 1, CPU:0', 'worker 0, CPU:0'])
        # From the end back: the product, what it received, who sent that, and what was read for it.
        self.assertEqual(self.browser.js('[...document.querySelectorAll("ol.steps li span.wrap")].map(e => e.textContent)'),
                         ['w/read', 'w/read/_send_7', 'w/read/_recv_7', 'layer/MatMul'])
        self.assertEqual(self.browser.js('document.querySelectorAll("svg.timeline rect.path").length'), 4)
        self.assertEqual(self.browser.js('document.querySelector("main tbody th").textContent'), '_Recv')
        self.browser.wait_text('3 short ops are left out')
        # By keyboard: from op to op in the order of time, and nearer.
        self.browser.js('document.querySelector("svg.timeline").focus()')
        for _ in range(5):
            self.browser.key('ArrowRight')
        said = self.browser.js('document.getElementById("said").textContent')
        self.assertIn('layer/MatMul (MatMul) on worker 0, CPU:0: 30 µs, from 60 µs, on the critical path', said)
        wide = 'Number(document.querySelector("svg.timeline rect.op.at").getAttribute("width"))'
        before = self.browser.js(wide)
        self.browser.click('button[aria-label="Zoom in"]', None)
        self.browser.js('document.querySelector("svg.timeline").focus()')
        self.browser.key('ArrowRight')
        self.assertGreater(self.browser.js('Math.max(...[...document.querySelectorAll("svg.timeline rect.op")].map(e => Number(e.getAttribute("width"))))'), before)
        # A file of TensorFlow's timeline, and one that is none.
        found = self.browser.js('''import('/step_trace.js').then(({stepOfFile, criticalPath}) => {
          const meta = {ph: 'M', pid: 1, name: 'process_name', args: {name: '/job:localhost/replica:0/task:0/device:CPU:0 Compute'}};
          const op = (name, ts, dur, args) => ({ph: 'X', pid: 1, tid: 0, name, ts, dur, args: {name, op: 'Add', ...args}});
          const step = stepOfFile(JSON.stringify({traceEvents: [meta, op('a', 100, 5), op('b', 105, 9, {input0: 'a:0'}), op('c', 106, 1)]}), 'file');
          let wrong;
          try { stepOfFile('{}', 'file'); } catch (error) { wrong = error.message; }
          return [step.total, criticalPath(step).map(each => each.name).join(), wrong];
        })''')
        self.assertEqual(found, [14, 'a,b', 'it has no traceEvents'])
        self.browser.resize(390, 844, mobile=True)
        self.browser.wait('document.querySelector("svg.timeline").viewBox.baseVal.width < 390')
        self.check('a step on a phone')

    def test_what_is_not_there(self):
        self.go('#/jobs/TFJob/default/none', 'No pod of this job is there')
        self.go('#/experiments/default/none', 'is not there')
        self.assertFalse(self.browser.js('document.querySelector("main input[type=search]").checkVisibility()'))
        self.go('#/experiments/default/search?view=trials&filter=' + 'lrr%3C0.01', '0 of 60 trials: nothing is called lrr')
        self.cluster.put(stand_in.experiment('empty', stand_in.PARAMETERS))
        self.go('#/experiments/default/empty?view=trials', 'No trial has begun yet.')
        self.cluster.remove('Experiment', 'default', 'empty')
        # Of trials that failed it is told why, though their pods are gone.
        failed = stand_in.trial('bad', 0, {'lr': '0.1'}, {}, 'Failed')
        failed['status']['lastOutput'] = 'Traceback\n' + EVIL
        self.cluster.put(stand_in.experiment('bad', stand_in.PARAMETERS, state='Failed'), failed)
        self.go('#/experiments/default/bad', 'Experiment is failed. A failed trial, opened from the table, tells what it printed last.')
        self.browser.wait_text('No trial has a value yet.')
        self.go('#/experiments/default/bad?view=trials&trial=bad-00000', 'The last that it printed:')
        self.assertEqual(self.browser.js('document.querySelector("aside pre").textContent'), 'Traceback\n' + EVIL)
        self.check('a failed trial')
        self.cluster.remove('Experiment', 'default', 'bad')
        self.assertEqual(self.browser.problems, [])

    def test_on_a_phone(self):
        """What is chosen is in sight, and names stand beside each other, not over each other."""
        self.browser.resize(390, 844, mobile=True)
        for view in VIEWS:
            self.go('#/experiments/default/search?view=' + view, 'search')
            self.browser.wait('(box => box && box.left >= 0 && box.right <= innerWidth)(document.querySelector("[role=tab][aria-selected=true]")?.getBoundingClientRect())', view)
        self.go('#/experiments/default/search?view=parallel', 'better accuracy')
        self.browser.wait('document.querySelector("main canvas").clientWidth >= 6 * 84', 'room for six axes')
        self.check('parallel coordinates')
        self.go('#/cluster', 'it needs 8 GPUs')
        self.assertLess(self.browser.js('document.querySelector("tbody th").getBoundingClientRect().height'), 160)

    def test_marked_on_an_axis(self):
        self.go('#/experiments/default/search?view=parallel', 'better accuracy')
        self.browser.wait('document.querySelector("main canvas").width > 600 && document.querySelector("main [role=status]").textContent === "60 trials"')
        # Along the fourth of six axes, over two of the three optimizers: the words hold for both.
        wide, tall = self.browser.js('(c => [c.clientWidth, c.clientHeight])(document.querySelector("main canvas"))')
        for name, part in (('down', 0), ('up', 0.6)):
            self.browser.js('((c, x, y) => { const box = c.getBoundingClientRect(); c.dispatchEvent(new PointerEvent("pointer%s", {bubbles: true, clientX: box.left + x, clientY: box.top + y})); })'
                            '(document.querySelector("main canvas"), %f, %f)' % (name, 44 + 3 * (wide - 104) / 5, 34 + part * (tall - 60)))
        self.assertEqual(self.browser.js('document.querySelector("main input[type=search]").value'), 'optimizer!=sgd')
        self.assertRegex(self.browser.js('document.querySelector("main [role=status]").textContent'), r'^\d+ of 60 trials$')

    def test_form_and_text(self):
        self.go('#/new', 'As YAML')
        self.browser.wait('document.querySelector("textarea").value.includes("name: search")')
        write = '(e => { e.value = %s; e.dispatchEvent(new Event("input", {bubbles: true})); })(document.querySelector(%s))'
        name = 'fieldset input'
        self.browser.js(write % ('"first"', json.dumps(name)))
        self.assertIn('name: first', self.browser.js('document.querySelector("textarea").value'))
        self.browser.js(write % ('"# by hand"', '"textarea"'))
        self.browser.js(write % ('"second"', json.dumps(name)))
        self.assertEqual(self.browser.js('document.querySelector("textarea").value'), '# by hand')
        self.browser.wait_text('The text was changed by hand')
        self.check('the form')
        self.browser.click('button', 'Write it from the form')
        self.assertIn('name: second', self.browser.js('document.querySelector("textarea").value'))
        self.assertNotIn('changed by hand', self.browser.text())

    def test_the_log_before_a_restart(self):
        pod = stand_in.pod('again-worker-0', 'again', owner_kind='TFJob')
        pod['status']['containerStatuses'][0]['restartCount'] = 2
        self.cluster.put(stand_in.job('again', 0, 0), pod)
        self.cluster.logs.update({'again-worker-0': 'begins anew\n', 'again-worker-0 before': 'out of memory\n'})
        self.go('#/jobs/TFJob/default/again?tab=log', 'begins anew')
        self.browser.js('(s => { s.value = "again-worker-0 before"; s.dispatchEvent(new Event("change")); })(document.querySelector("select[aria-label=Task]"))')
        self.browser.wait_text('out of memory')
        self.assertEqual(self.browser.js('document.querySelector("select[aria-label=Task]").selectedOptions[0].textContent'), 'again-worker-0, before its restart')
        self.check('the log before a restart')
        self.cluster.remove('TFJob', 'default', 'again')
        self.cluster.remove('Pod', 'default', 'again-worker-0')

    def test_live_and_hostile(self):
        name = 'x' + EVIL
        self.go('#/experiments', 'search')
        parameters = [{'name': EVIL, 'parameterType': 'categorical', 'feasibleSpace': {'list': [EVIL, 'b']}}]
        evil = stand_in.experiment(name, parameters)
        evil['spec']['objective']['objectiveMetricName'] = EVIL
        evil['spec']['objective']['additionalMetricNames'] = ['javascript:alert(2)']
        self.cluster.put(evil)
        self.browser.wait_text(name)
        href = self.browser.js('[...document.querySelectorAll("main tbody a")].find(a => a.textContent.includes("onerror")).getAttribute("href")')
        for view in VIEWS:
            self.go(href + '?view=' + view, name)
            if view == 'trials':
                for i in range(12):
                    self.cluster.put(stand_in.trial(name, i, {EVIL: EVIL if i % 2 else 'b'}, {EVIL: [0.1, 0.2 + i / 100], 'javascript:alert(2)': [1, 2]}))
                self.browser.wait('document.querySelectorAll("tbody tr[data-key]").length === 12', '12 trials that came while it was shown')
                self.browser.wait_text('0.31')
                self.browser.click('tbody button', None)
                self.browser.wait('!!document.querySelector("aside h2")')
            self.assertEqual(self.browser.problems, [], view)
        self.assertEqual(self.browser.js('document.querySelectorAll("main img, main script, iframe").length'), 0)
        self.cluster.remove('Experiment', 'default', name)
        self.browser.wait_text('is not there')

    def test_by_keyboard(self):
        self.go('#/experiments/default/search?view=trials', '#')
        self.browser.wait('document.querySelectorAll("tbody tr[data-key]").length > 10')
        self.browser.js('document.querySelector("tbody button").focus()')
        first = self.browser.js('document.activeElement.textContent')
        self.browser.key('ArrowDown')
        second = self.browser.js('document.activeElement.textContent')
        self.assertNotEqual(first, second)
        self.browser.key('Enter')
        self.browser.wait('document.activeElement.closest("aside")?.querySelector("h2") === document.activeElement', 'the focus in the panel of the trial')
        self.assertIn(self.browser.js('document.activeElement.textContent').split()[-1], second)
        self.assertIn('trial=search-', self.browser.js('location.hash'))
        self.browser.key('Escape')
        self.browser.wait('!document.querySelector("aside.side").checkVisibility()')
        # A column is sorted, and the link says so; opened anew it shows the same.
        self.browser.js('document.querySelector("[data-column=lr]").focus()')
        self.browser.key('Enter')
        self.browser.wait('document.querySelector("[data-column=lr]").closest("th").getAttribute("aria-sort") === "ascending"')
        self.browser.js('document.querySelector("input[type=search]").focus()')
        self.browser.type('optimizer=adam lr<0.01')
        shown = self.browser.wait('(document.querySelector("main [role=status]").textContent.match(/^\\d+ of 60/) ?? [""])[0]')
        link = self.browser.js('location.href')
        self.assertNotIn(self.page.key, link)
        self.go('#/', 'Overview')
        self.browser.js('location.href = ' + json.dumps(link))
        self.browser.wait('document.querySelector("main [role=status]")?.textContent.startsWith(%s)' % json.dumps(shown))
        self.assertEqual(self.browser.js('document.querySelector("[data-column=lr]").closest("th").getAttribute("aria-sort")'), 'ascending')
        # Along the tabs, and from point to point of a picture.
        self.browser.js('document.querySelector("[role=tab][aria-selected=true]").focus()')
        self.browser.key('ArrowLeft')
        self.browser.wait('document.activeElement.textContent === "Overview" && !!document.querySelector("canvas")')
        self.browser.js('document.querySelector("canvas").focus()')
        self.browser.key('ArrowRight')
        self.assertRegex(self.browser.js('document.getElementById("said").textContent'), r'#\d+')
        self.assertEqual(self.browser.problems, [])

    def test_ten_thousand_trials(self):
        self.cluster.put(stand_in.experiment('many', stand_in.PARAMETERS, trials=10000, most=10000, state='Succeeded'), *stand_in.search('many', 10000, seed=3, points=4))
        self.go('#/experiments/default/many?view=trials', 'many')
        self.browser.wait_text('10000 trials', 60)
        self.browser.wait('document.querySelector("table.virtual").getAttribute("aria-rowcount") === "10001"')
        self.assertLess(self.browser.js('document.querySelectorAll("tbody tr").length'), 100)
        # What a frame costs while somebody scrolls through all of them.
        before = self.browser.work()
        self.browser.js('''(async () => {
          const scroll = document.querySelector('.scroll');
          for (let i = 0; i < 40; ++i) {
            scroll.scrollTop = i * 9500;
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
          }
        })()''')
        frame = (self.browser.work() - before) / 40
        self.assertLess(frame, 0.05)
        self.browser.wait('[...document.querySelectorAll("tbody tr[aria-rowindex]")].some(row => Number(row.getAttribute("aria-rowindex")) > 9000)')
        self.go('#/experiments/default/many?view=parallel', 'better accuracy')
        self.browser.wait('document.querySelector("main canvas").getContext("2d").getImageData(300, 200, 1, 1).data.length === 4')
        self.assertEqual(self.browser.problems, [])
        print('scrolling through 10,000 trials takes %.1f ms of processor time a frame' % (1000 * frame))

    def test_without_rights(self):
        self.cluster.is_allowed = False
        self.cluster.refused = {'nodes'}
        other = browser.Browser()
        page = Page(self.kubeconfig)
        try:
            self.enter(other, page)
            other.wait_text('not yours to see')
            other.js('location.hash = "#/cluster"')
            other.wait_text('nodes is forbidden')
            other.js('location.hash = "#/experiments/default/search?view=trials"')
            other.wait('document.querySelectorAll("tbody tr[data-key]").length > 10')
            other.click('tbody button', None)
            other.wait('!!document.querySelector("aside h2")')
            self.assertEqual(other.js('[...document.querySelectorAll("main button, main a.button")].filter(b => /Stop|Clone|Delete|New/.test(b.textContent)).length'), 0)
            # Nothing at all, without a namespace of one's own.
            self.cluster.refused = set(stand_in.PLURALS.values())
            other.js('location.hash = "#/"')
            other.wait_text('Write the name of a namespace that you may see')
            other.wait_text('is forbidden')
            self.assertEqual(other.problems, [])
        finally:
            self.cluster.is_allowed = True
            self.cluster.refused = set()
            other.close()
            page.close()

    def test_other_sites_and_keys(self):
        ask = self.page.ask
        self.assertEqual(ask('GET', '/api/who')[0], 200)
        code, headers, text = ask('GET', '/', {'Authorization': ''})
        self.assertEqual(code, 200)
        self.assertIn("default-src 'none'; script-src 'self'; style-src 'self'", headers['Content-Security-Policy'])
        self.assertEqual(ask('GET', '/', {'If-None-Match': headers['ETag']})[0], 304)
        self.assertNotRegex(text, r'<script(?! type="module" src=)|style=|onclick|https?://')
        self.assertEqual(ask('GET', '/api/who', {'Authorization': 'Bearer guess'})[0], 401)
        self.assertEqual(ask('GET', '/api/who?key=' + self.page.key, {'Authorization': ''})[0], 401)
        wanted = {'namespace': 'default', 'name': 'search-00059'}
        writes = len(self.cluster.writes)
        for refused in ({'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'}, {'Origin': 'http://127.0.0.1:1'}, {'Origin': 'null'}, {'X-Weft-Page': ''}):
            self.assertEqual(ask('POST', '/api/stop', refused, wanted)[0], 403, refused)
        self.assertEqual(ask('GET', '/api/who', {'Host': 'evil.example'})[0], 403)
        self.assertEqual(len(self.cluster.writes), writes)
        self.assertEqual(ask('POST', '/api/stop', {'Sec-Fetch-Site': 'same-origin', 'Origin': self.page.url}, wanted)[0], 200)
        method, path, body = self.cluster.writes[-1]
        self.assertEqual((method, path, body), ('PATCH', '/apis/kubeflow.org/v1beta1/namespaces/default/trials/search-00059',
                                                {'metadata': {'annotations': {'weft.dev/stop': 'true'}}}))
        read_only = Page(self.kubeconfig, '--read_only')
        self.assertEqual(read_only.ask('GET', '/api/who')[2]['rights'], {})
        self.assertEqual(read_only.ask('POST', '/api/stop', body=wanted)[0], 403)
        read_only.close()
        # Everybody with a token of one's own.
        users = Page(self.kubeconfig, '--for_users')
        self.assertEqual(users.ask('GET', '/api/who', {'Authorization': 'Bearer guess'})[0], 401)
        self.assertEqual(users.ask('GET', '/api/who', {'Authorization': 'Bearer ' + self.cluster.token})[2]['user'], 'someone')
        users.close()


EXPERIMENT = '''apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: tried, namespace: default}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy}
  algorithm: {algorithmName: %s}
  parallelTrialCount: 2
  maxTrialCount: 4
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: i, command: [sh, -c,
        'for i in 1 2 3; do echo "step $i/3 accuracy=0.$i"; done; exec sleep 1000']}]}}}
'''

# The first example, whose tasks tell what a step does.
TRACED = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: traced, namespace: default}
spec:
  tfReplicaSpecs:
    PS: {template: &task {spec: {containers: [{name: tensorflow, image: i, env: [{name: WEFT_SHOW_STEPS, value: "1"}],
      command: [%s, --data, %s, --model_dir, %s, --steps, "1000000"]}]}}}
    Worker: {template: *task}
'''


def wait_for_step(b):
    """The first one that is told may be a look at the global step; a later one trains."""
    b.wait("""(picker => picker?.options.length > 1 && (picker.value = picker.options.length - 1, picker.dispatchEvent(new Event('change')),
           document.querySelectorAll('svg.timeline rect.op').length > 20))(document.querySelector('select[aria-label=Step]'))""", 'a step that trains', 60)


def check_step(test, b):
    """Of TRACED."""
    test.assertEqual(b.js('[...document.querySelectorAll("svg.timeline .device")].map(e => e.textContent)'), ['ps 0, CPU:0', 'worker 0, CPU:0'])
    test.assertIn('MatMul', b.js('document.querySelector("main").textContent'))
    test.assertGreater(b.js('document.querySelectorAll("svg.timeline rect.path").length'), 1)


class UpTest(unittest.TestCase):
    """The page of `weft up`, which changes things."""

    def test_an_experiment_from_the_form_to_its_end_and_a_step_of_a_job(self):
        with tempfile.TemporaryDirectory() as folder:
            up = subprocess.Popen([WEFT, 'up', '--state', folder], stdout=subprocess.PIPE, text=True)
            b = browser.Browser()
            try:
                while not (match := re.search(r'page is (\S+) and asks for this key: (\S+)', up.stdout.readline())):
                    self.assertIsNone(up.poll())
                self.walk(b, *match.groups())
                self.watch_a_job(b, folder + '/model')
                self.assertEqual(b.problems, [])
            finally:
                b.close()
                up.terminate()
                up.wait(60)
                up.stdout.close()

    def watch_a_job(self, b, folder):
        """A job is made on the page; while it runs, the page draws one of its steps."""
        b.js('location.hash = "#/new"')
        b.wait('document.querySelector("textarea")?.value')
        self.write(b, TRACED % (*sys.argv[2:4], folder), 'Create')
        b.wait('location.hash.startsWith("#/jobs/TFJob/default/traced")')
        b.wait('[...document.querySelectorAll("[role=tab]")].some(tab => tab.textContent === "Step")')
        b.click('[role=tab]', 'Step')
        wait_for_step(b)
        # The browser tells of each time that the log was asked for before the task began.
        b.problems[:] = [problem for problem in b.problems if '/api/log?' not in problem]
        check_step(self, b)

    def write(self, b, text, button):
        b.js('(e => { e.value = %s; e.dispatchEvent(new Event("input")); })(document.querySelector("textarea"))' % json.dumps(text))
        b.click('button', button)

    def state_is(self, b, state):
        b.wait('document.querySelector("aside .chip")?.textContent === %s' % json.dumps(state), 'the trial being ' + state)

    def walk(self, b, url, key):
        b.open(url + '/#/new')
        b.wait('document.activeElement?.id === "key"')
        b.type('not the key')
        b.key('Enter')
        b.wait_text('This is not the key')
        b.problems.clear()  # the browser tells of the refusal
        b.type(key)
        b.key('Enter')
        b.wait('document.querySelector("textarea")?.value.includes("kind: Experiment")')
        b.click('button', 'Check')
        b.wait_text('It would be accepted: Experiment default/search')
        self.write(b, EXPERIMENT % 'guess', 'Create')
        b.wait_text('guess')
        self.assertIn('algorithm', b.js('document.querySelector(".problem").textContent'))
        self.write(b, EXPERIMENT.replace('parameters:', 'paramaters:') % 'random', 'Check')
        b.wait('document.querySelector(".problem")?.textContent.includes("paramaters")')
        b.problems.clear()
        self.write(b, EXPERIMENT % 'random', 'Create')
        b.wait('location.hash === "#/experiments/default/tried"')
        b.wait('document.querySelector("h1 + .chip")?.textContent === "Running"')
        b.click('[role=tab]', 'Trials')
        b.wait('[...document.querySelectorAll("tbody .chip")].filter(c => c.textContent === "Running").length === 2', 'two trials that run')
        for _ in range(2):
            # What runs, seen, stopped; the next one comes.
            b.js('[...document.querySelectorAll("tbody tr")].find(r => r.textContent.includes("Running")).querySelector("button").click()')
            self.state_is(b, 'Running')
            name = b.js('document.querySelector("aside .mono").textContent')
            b.js('document.querySelector("aside details").open = true')
            b.wait('document.querySelector("aside .log")?.textContent.includes("step 3/3 accuracy=0.3")', 'the log of the trial')
            b.click('aside button', 'Stop')
            b.click('dialog button', 'Stop')
            self.state_is(b, 'Killed')
            b.wait('[...document.querySelectorAll("tbody .chip")].filter(c => c.textContent === "Running").length === 2', 'another trial in its place')
        # The copy of a trial runs beside them and does not count.
        b.click('aside a.button', 'Clone')
        b.wait('document.querySelector("textarea")?.value.includes(%s)' % json.dumps(name + '-copy'))
        b.click('button', 'Create')
        b.wait('location.hash.startsWith("#/experiments/default/tried?")')
        b.wait('[...document.querySelectorAll("tbody tr")].some(r => r.textContent.includes("copy  ") && r.textContent.includes("Running"))', 'the copy that runs')
        b.click('.head button', 'Delete')
        b.click('dialog button', 'Delete')
        b.wait('location.hash === "#/experiments"')
        b.wait_text('There are no experiments here')


if __name__ == '__main__':
    if not browser.find():
        print('no Chromium is installed: apt-get install chromium-headless-shell')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
