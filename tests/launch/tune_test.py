# SPDX-License-Identifier: Apache-2.0
"""`weft tune` with real programs: tables, refusals, SIGINT and SIGKILL in the middle of a search."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEFT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'python'))
from weft import search  # noqa: E402

# Prints a metric that is best at lr=0.01 and two layers, in the order of a training's log.
TRAIN = '''
import math, sys, time
flags = dict(word[2:].split('=') for word in sys.argv[1:])
time.sleep(float(flags.pop('pause', 0)))
score = 1 - abs(math.log10(float(flags['lr'])) + 2) / 4 - abs(int(flags['num-layers']) - 2) / 10
print('epoch 1: Validation-accuracy=%.6f accuracy=0.1' % (score - 0.2))
print('epoch 2: Validation-accuracy=%.6f accuracy=0.2 (optimizer %s)' % (score, flags['optimizer']))
'''
SEED = '''apiVersion: "kubeflow.org/v1alpha3"
kind: Experiment
metadata:
  name: example
spec:
  objective:
    type: maximize
    goal: 0.99
    objectiveMetricName: Validation-accuracy
    additionalMetricNames:
    - accuracy
  algorithm:
    algorithmName: bayesianoptimization
  parallelTrialCount: 3
  maxTrialCount: 12
  maxFailedTrialCount: 3
  parameters:
  - name: --lr
    parameterType: double
    feasibleSpace: {min: "0.02", max: "0.1"}
  - name: --num-layers
    parameterType: int
    feasibleSpace:
      min: "2"
      max: "5"
  - name: --optimizer
    parameterType: categorical
    feasibleSpace:
      list:
      - sgd
      - adam
      - ftrl
  trialTemplate:
    goTemplate:
      rawTemplate: |-
        apiVersion: batch/v1
        kind: Job
        metadata: {name: {{.Trial}}, namespace: {{.NameSpace}}}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
              - name: {{.Trial}}
                image: mnist:1
                command:
                - %(python)s
                - %(program)s
                {{- with .HyperParameters}}
                {{- range .}}
                - "{{.Name}}={{.Value}}"
                {{- end}}
                {{- end}}
'''
# As the slide has it.
PRINTED = '''apiVersion: "kubeflow.org/v1alpha3"
kind: Experiment
metadata:
 name: example
spec:
 objective:
    type: maximize
    goal: 0.99
    objectiveMetricName: accuracy
    additionalMetricNames:
      accuracy
  algorithm:
   algorithmName: bayesianoptimization
  parallelTrialCount: 3
 maxTrialCount: 12
 maxFailedTrialCount: 3
 parameters:
    - name: --num-layers
      parameterType: int
      feasibleSpace:
       min: "2"
       max: "5"
    - name: --optimizer
      parameterType: categorical
      feasibleSpace:
        list:
        - sgd
        adam
        - ftrl
  trialTemplate:
'''
SIMPLE = '''apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: simple}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 4
  parallelTrialCount: 2
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}, {name: me, reference: "${trialSpec.Name}"}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i,
        command: [%(python)s, %(program)s, "${trialParameters.x}"],
        env: [{name: ME, value: "%(folder)s/${trialParameters.me}.json"}]}]}}}
'''
WITH_FILE = SIMPLE + '''  metricsCollectorSpec:
    collector: {kind: File}
    source: {fileSystemPath: {path: "%(folder)s/metrics.json", kind: File, format: JSON}}
'''
WITH_FILE = WITH_FILE.replace('parallelTrialCount: 2', 'parallelTrialCount: 1')
FILES = '''
import json, os, sys
with open(os.path.join(os.path.dirname(sys.argv[0]), 'metrics.json'), 'w') as out:
    for step in (3, 2, 1, 0):
        out.write(json.dumps({'loss': str(float(sys.argv[1]) + step), 'timestamp': step}) + chr(10))
print('loss=-1 is not meant')
'''
STOPPED = SIMPLE.replace('maxTrialCount: 4', 'maxTrialCount: 8') + '''  earlyStopping:
    algorithmName: medianstop
    algorithmSettings: [{name: min_trials_required, value: "2"}, {name: start_step, value: "3"}]
'''
CURVES = '''
import sys, time
for step in range(20):
    print('loss=%f' % float(sys.argv[1]), flush=True)
    time.sleep(0.05)
'''
# Goes on from what its parent left.
POPULATION = '''
import os, sys
lr, folder = float(sys.argv[1][5:]), os.environ['WEFT_CHECKPOINT']
path = os.path.join(folder, 'state')
os.makedirs(folder, exist_ok=True)
gains = open(path).read().split() if os.path.exists(path) else []
gains.append(str(1 - abs(lr - 0.6)))
open(path, 'w').write(' '.join(gains))
print('score=%f' % sum(map(float, gains)))
'''
SPACE = 'lr=log(1e-4,1e-1) num-layers=2..5 optimizer={sgd,adam,ftrl}'


class TuneTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = os.path.join(self.folder, 'train.py')
        with open(self.program, 'w') as out:
            out.write(TRAIN)

    def command(self, *flags, program=()):
        return [WEFT, 'tune', '--space', SPACE, '--maximize', 'Validation-accuracy', '--metric', 'accuracy', *flags,
                '--', sys.executable, self.program, *(program or ())]

    def run_tune(self, *flags, **kwargs):
        return subprocess.run(self.command(*flags), capture_output=True, text=True, cwd=self.folder, timeout=240, **kwargs)

    def test_the_table_of_the_seed(self):
        done = self.run_tune('--trials', '12', '--parallel', '3', '--output', 'csv')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(list(rows[0]), ['trialName', 'Validation-accuracy', 'accuracy', 'lr', 'num-layers', 'optimizer', 'status'])
        self.assertEqual(len(rows), 12)
        scores = [float(row['Validation-accuracy']) for row in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for row in rows:
            self.assertEqual(row['accuracy'], '0.2')
            with open(os.path.join(self.folder, 'weft-tune', row['trialName'] + '.log')) as log:
                self.assertIn('optimizer ' + row['optimizer'], log.read())
        # The same words again: all is known, nothing runs.
        again = self.run_tune('--trials', '12', '--parallel', '3', '--output', 'json')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([row['trialName'] for row in json.loads(again.stdout)], [row['trialName'] for row in rows])
        self.assertNotIn('trial-0 ', again.stderr)

    def test_a_search_goes_on_after_ctrl_c_and_after_a_kill(self):
        flags = ('--trials', '10', '--out', os.path.join(self.folder, 'out'))
        # Like the shell's, a group of its own whose trials must not survive.
        for number in signal.SIGINT, signal.SIGKILL:
            running = subprocess.Popen(self.command(*flags, program=['--pause=0.4']), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=self.folder)
            for line in running.stderr:
                if line.startswith('trial-'):
                    break
            running.send_signal(number)
            output, errors = running.communicate(timeout=60)
            self.assertNotEqual(running.returncode, 0)
            if number == signal.SIGINT:
                self.assertIn('goes on where', errors)
                self.assertIn('trial-0', output)
        deadline = time.monotonic() + 30
        while subprocess.run(['pgrep', '-f', self.program], capture_output=True).returncode == 0:
            self.assertLess(time.monotonic(), deadline, 'a trial has survived')
            time.sleep(0.1)
        done = subprocess.run(self.command(*flags, '--output', 'csv', program=['--pause=0.4']), capture_output=True, text=True,
                              cwd=self.folder, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('goes on after', done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(sorted(row['trialName'] for row in rows), sorted('trial-%d' % i for i in range(10)))
        self.assertEqual({row['status'] for row in rows}, {'Succeeded'})

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w') as out:
            out.write(text)
        return path

    def experiment(self, text, *flags, **kwargs):
        path = self.write('experiment.yaml', text % {'python': sys.executable, 'program': self.program, 'folder': self.folder})
        return subprocess.run([WEFT, 'tune', path, *flags], capture_output=True, text=True, cwd=self.folder, timeout=240, **kwargs)

    def test_the_experiment_of_the_seed_repaired(self):
        done = self.experiment(SEED, '--output', 'csv')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(list(rows[0]), ['trialName', 'Validation-accuracy', 'accuracy', 'lr', 'num-layers', 'optimizer', 'status'])
        self.assertEqual(len(rows), 12)
        # A larger count goes on with the same trials.
        more = self.experiment(SEED.replace('maxTrialCount: 12', 'maxTrialCount: 14'), '--output', 'csv')
        self.assertEqual(more.returncode, 0, more.stderr)
        again = list(csv.DictReader(io.StringIO(more.stdout)))
        self.assertEqual(len(again), 14)
        self.assertLessEqual({row['trialName'] + row['lr'] for row in rows}, {row['trialName'] + row['lr'] for row in again})

    def test_the_goal_ends_an_experiment(self):
        done = self.experiment(SEED.replace('goal: 0.99', 'goal: 0.1'), '--output', 'csv')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(len(list(csv.DictReader(io.StringIO(done.stdout)))), 12)

    def test_faults_of_an_experiment_are_answered_with_how_to_write_it(self):
        for text, words in (
                (PRINTED, 'experiment.yaml:'),
                (SEED.replace('    additionalMetricNames:\n    - accuracy', '    additionalMetricNames:\n      accuracy'),
                 'a list is allowed: write\n    additionalMetricNames:\n    - accuracy'),
                (SEED.replace('      - sgd\n      - adam', '      - sgd adam'), 'a dash is missing'),
                (SEED[:SEED.index('    goTemplate')], 'spec.trialTemplate: holds no template: write what a trial runs'),
                (SEED.replace('range .}}', 'rnge .}}'), '{{rnge .}}, which is not understood'),
                (SEED.replace('algorithmName: bayesianoptimization', 'algorithmName: magic'), "no search algorithm 'magic'"),
                (SEED.replace('parallelTrialCount', 'paralelTrialCount'), "Did you mean 'parallelTrialCount'?")):
            done = self.experiment(text)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(words, done.stderr)

    def test_files_are_read_and_what_looks_bad_is_stopped(self):
        self.write('train.py', FILES)
        done = self.experiment(WITH_FILE, '--output', 'json')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertAlmostEqual(float(row['loss']), float(row['x']), places=4)
        self.write('train.py', CURVES)
        done = self.experiment(STOPPED, '--output', 'json', '--out', 'stopped')
        self.assertEqual(done.returncode, 0, done.stderr)
        lengths = []
        for row in json.loads(done.stdout):
            with open(os.path.join(self.folder, 'stopped', row['trialName'] + '.log')) as log:
                lengths.append(len(log.readlines()))
        self.assertLess(min(lengths), 20, lengths)
        self.assertEqual(max(lengths), 20, lengths)

    def test_checkpoints_are_handed_on(self):
        self.write('train.py', POPULATION)
        done = subprocess.run([WEFT, 'tune', '--space', 'lr=0.0..1.0', '--maximize', 'score', '--algorithm', 'pbt', '--setting',
                               'n_population=3', '--trials', '12', '--output', 'json', '--', sys.executable, self.program],
                              capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        best = json.loads(done.stdout)[0]
        with open(os.path.join(self.folder, 'weft-tune', best['trialName'], 'state')) as state:
            self.assertEqual(len(state.read().split()), 4)  # one of each generation

    def test_several_objectives_and_constraints(self):
        self.write('train.py', "import sys\nx = float(sys.argv[1][4:])\nprint('a=%f b=%f' % (x * x, (x - 2) ** 2))\n")
        words = [WEFT, 'tune', '--space', 'x=-4.0..4.0', '--minimize', 'a', '--minimize', 'b', '--constraint', 'b<=3', '--trials', '8',
                 '--output', 'json', '--', sys.executable, self.program]
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('no other trial beats trial-', done.stderr)
        kept = [float(row['b']) <= 3 for row in json.loads(done.stdout)]
        self.assertEqual(kept, sorted(kept, reverse=True))
        # Another search begins with the best of that one.
        words[words.index('--trials') + 1] = '1'
        more = subprocess.run(words[:2] + ['--out', 'more', '--transfer', 'weft-tune'] + words[2:], capture_output=True, text=True,
                              cwd=self.folder, timeout=120)
        self.assertEqual(more.returncode, 0, more.stderr)
        best = min(json.loads(done.stdout), key=lambda row: float(row['a']))
        self.assertEqual(json.loads(more.stdout)[0]['x'], best['x'])

    def test_a_study_of_python(self):
        with search.Study('x=-5.0..10.0 n=1..3 o={a,b}', minimize='loss', algorithm='bayesian', folder=os.path.join(self.folder, 'study'),
                          weft=WEFT) as study:
            best = study.optimize(lambda x, n, o: (x - 2) ** 2 + n + (o == 'b'), 60)
            self.assertLess(best.value, 2.5)  # of 1
            trials = study.ask(3)
            self.assertEqual([trial.number for trial in trials], [60, 61, 62])
            study.fail(trials[0])
            with self.assertRaisesRegex(ValueError, 'has ended already'):
                study.tell(60, 1)
            with self.assertRaisesRegex(ValueError, '2 results for 1 objectives'):
                study.tell(61, [1, 2])
        with search.Study('x=-5.0..10.0 n=1..3 o={a,b}', minimize='loss', algorithm='bayesian', folder=os.path.join(self.folder, 'study'),
                          weft=WEFT) as study:
            states = [trial.state for trial in study.trials()]
            self.assertEqual((len(states), states[59:]), (63, ['succeeded', 'failed', 'running', 'running']))
            self.assertEqual(study.best(), best)
        with search.Study('x=1..2', minimize='loss', algorithm='grid', weft=WEFT) as study:
            self.assertEqual(len(study.ask(5)), 2)
            self.assertRaises(search.NothingLeft, study.ask)
        with self.assertRaisesRegex(ValueError, 'is no range'):
            search.Study('x=7', minimize='loss', weft=WEFT).ask()

    def test_the_page_says_what_is_so(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'search.md')
        with open(page) as text:
            text = text.read()
        done = self.experiment(re.search(r'^```yaml\n(.*?)^```$', text, re.M | re.S)[1].replace('%', '%%'), '--output', 'csv')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 13)
        script = self.write('page.py', re.search(r'^```python\n(.*?)^```$', text, re.M | re.S)[1])
        environment = dict(os.environ, WEFT_BINARY=WEFT, PYTHONPATH=sys.path[0])
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^Trial\(number=\d+, values={'x': [12]\.\d+, 'layers': [12]}")
        words = re.search(r"^```sh\nweft (tune --serve .*?)^```$", text, re.M | re.S)[1]
        done = subprocess.run(['sh', '-c', WEFT + ' ' + words], capture_output=True, text=True, cwd=tempfile.mkdtemp(dir=self.folder),
                              timeout=60)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([len(answers[0]['trials']), answers[1], answers[2]['value']], [2, {}, 0.5])

    def test_two_at_once_in_one_folder(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        words = [WEFT, 'tune', '--space', 'lr=1..7', '--maximize', 'score', '--trials', '1', '--out', folder, '--', 'sh', '-c']
        with subprocess.Popen([*words, 'echo score={lr}; exec sleep 60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            while not os.path.exists(folder + '/trial-0.log'):
                self.assertIsNone(first.poll())
                time.sleep(0.02)
            second = subprocess.run([*words, 'echo score={lr}; exec sleep 60'], capture_output=True, text=True, timeout=60)
            first.kill()
        self.assertEqual(second.returncode, 1)
        self.assertIn('Another weft tune works in ' + folder, second.stderr)
        # A killed one keeps nobody out. Nothing of it has succeeded, so that other words begin anew.
        third = subprocess.run([*words, 'echo score={lr}'], capture_output=True, text=True, timeout=60)
        self.assertEqual(third.returncode, 0, third.stderr)
        self.assertNotIn('goes on', third.stderr)
        fourth = subprocess.run([*words, 'echo other={lr} score={lr}'], capture_output=True, text=True, timeout=60)
        self.assertIn('holds another study', fourth.stderr)

    def test_refusals_name_what_is_wrong(self):
        for flags, words in (
                (['--space', 'lr=7', '--minimize', 'loss', '--', 'true'], "parameter 'lr': '7' is no range"),
                (['--space', 'lr=1..7', '--', 'true'], 'one of --maximize METRIC and --minimize METRIC'),
                (['--space', 'lr=1..7', '--minimize', 'loss'], 'no program'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--algorithm', 'magic', '--', 'true'], 'tpe'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--output', 'xml', '--', 'true'], 'text, csv or json'),
                (['--space', 'lr=7..1', '--minimize', 'loss', '--', 'true'], "parameter 'lr': 7 is larger than 1"),
                (['--space', 'lr=log(0,1)', '--minimize', 'loss', '--', 'true'], 'a logarithmic range begins above 0'),
                (['--space', 'lr=1..7 lr=2..3', '--minimize', 'loss', '--', 'true'], "'lr' stands twice"),
                (['--space', 'momentum=1..7', '--minimize', 'loss', '--', 'true', '{momentun}'], 'Did you mean {momentum}?'),
                (['--space', 'lr=1..7 layers=1..3', '--minimize', 'loss', '--', 'true', '{lr}'], 'no word of the program has {layers}'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--', 'no-such-program-anywhere'],
                 "trial-0 cannot begin: There is no program 'no-such-program-anywhere'"),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--setting', 'gama=0.2', '--', 'true'],
                 "--setting 'gama=0.2': tpe has gamma, n_ei_candidates, n_startup_trials"),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--max_failed', '0', '--', 'sh', '-c', 'kill -9 $$'], 'killed by SIGKILL'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--max_failed', '0', '--', 'sh', '-c', 'echo loss=nan'],
                 'printed only inf or nan as loss=number'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--max_failed', '0', '--trial_seconds', '0.2', '--', 'sh', '-c', 'sleep 60'],
                 'ran longer than 200ms'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--max_failed', '1', '--', 'false'], '2 trials failed')):
            done = subprocess.run([WEFT, 'tune', '--out', tempfile.mkdtemp(dir=self.folder), *flags], capture_output=True, text=True,
                                  timeout=60)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(words, done.stderr, flags)
            # Nothing that was tried is told as running still.
            self.assertNotIn('Running', done.stdout, flags)


if __name__ == '__main__':
    unittest.main()
