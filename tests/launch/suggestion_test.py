# SPDX-License-Identifier: Apache-2.0
"""`weft suggestion` and the database of `weft up`, asked by gRPC's Python client as Katib's controller and programs do.

    suggestion_test.py WEFT PROTO_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from concurrent import futures

import grpc

WEFT, PROTOS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.argv[1:3] = []
GENERATED = tempfile.TemporaryDirectory()
subprocess.run(['protoc', '--proto_path=' + PROTOS, '--python_out=' + GENERATED.name, PROTOS + '/katib/api.proto'], check=True)
sys.path.insert(0, GENERATED.name)
from katib import api_pb2 as api  # noqa: E402


class Service:
    def __init__(self, port, name):
        self.channel = grpc.insecure_channel('127.0.0.1:%d' % port)
        self.name = name

    def __getattr__(self, method):
        reply = getattr(api, method + 'Reply')
        call = self.channel.unary_unary('/api.v1.beta1.%s/%s' % (self.name, method), request_serializer=lambda m: m.SerializeToString(),
                                        response_deserializer=reply.FromString)
        return lambda request: call(request, timeout=60)


def experiment(algorithm, **settings):
    result = api.Experiment(name='e')
    spec = result.spec
    spec.objective.type = api.MAXIMIZE
    spec.objective.objective_metric_name = 'accuracy'
    spec.algorithm.algorithm_name = algorithm
    for name, value in settings.items():
        spec.algorithm.algorithm_settings.add(name=name, value=value)
    p = spec.parameter_specs.parameters.add(name='lr', parameter_type=api.DOUBLE)
    p.feasible_space.min, p.feasible_space.max = '0', '1'
    p = spec.parameter_specs.parameters.add(name='epochs', parameter_type=api.INT)
    p.feasible_space.min, p.feasible_space.max = '1', '9'
    p = spec.parameter_specs.parameters.add(name='o', parameter_type=api.CATEGORICAL)
    p.feasible_space.list.extend(['sgd', 'adam'])
    return result


def ended(name, given, value):
    trial = api.Trial(name=name)
    trial.spec.parameter_assignments.assignments.extend(given.assignments)
    for key, label in given.labels.items():
        trial.spec.labels[key] = label
    trial.status.condition = api.TrialStatus.SUCCEEDED
    trial.status.start_time = trial.status.completion_time = '2026-01-01T00:00:%02dZ' % (int(name) % 60)
    trial.status.observation.metrics.add(name='accuracy', value=str(value))
    return trial


class SuggestionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([WEFT, 'suggestion', '--address', '127.0.0.1:0'], stdout=subprocess.PIPE, text=True)
        cls.port = int(cls.server.stdout.readline().split()[-1])
        cls.service = Service(cls.port, 'Suggestion')

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(30)
        cls.server.stdout.close()

    def search(self, wanted, count, batch=4):
        trials = []
        while len(trials) < count:
            request = api.GetSuggestionsRequest(experiment=wanted, trials=trials, current_request_number=batch,
                                                total_request_number=len(trials) + batch)
            reply = self.service.GetSuggestions(request)
            self.assertEqual(self.service.GetSuggestions(request), reply)  # whoever answers
            for given in reply.parameter_assignments:
                values = {a.name: a.value for a in given.assignments}
                trials.append(ended(str(len(trials)), given, 1 - abs(float(values['lr']) - 0.3) - 0.1 / int(values['epochs'])))
        return trials

    def best(self, trials):
        return max(float(trial.status.observation.metrics[0].value) for trial in trials)

    def test_algorithms_of_katib_search(self):
        for algorithm in 'random', 'tpe', 'multivariate-tpe', 'bayesianoptimization', 'cmaes', 'sobol':
            trials = self.search(experiment(algorithm, random_state='1'), 40)
            self.assertEqual(len({str(trial.spec.parameter_assignments) for trial in trials}), 40, algorithm)
            self.assertGreater(self.best(trials), 0.85, algorithm)

    def test_hyperband_promotes(self):
        trials = self.search(experiment('hyperband', resource_name='epochs', r_l='9', eta='3'), 24)
        parents = [trial.spec.labels['pbt.suggestion.katib.kubeflow.org/parent'] for trial in trials
                   if 'pbt.suggestion.katib.kubeflow.org/parent' in trial.spec.labels]
        self.assertGreater(len(parents), 3)
        self.assertLessEqual(set(parents), {trial.name for trial in trials})

    def test_settings_are_checked(self):
        self.service.ValidateAlgorithmSettings(api.ValidateAlgorithmSettingsRequest(experiment=experiment('tpe')))
        for wanted, words in ((experiment('hyperband'), 'resource_name'), (experiment('magic'), 'no search algorithm'),
                              (experiment('tpe', gamma='7'), 'gamma')):
            with self.assertRaises(grpc.RpcError) as raised:
                self.service.ValidateAlgorithmSettings(api.ValidateAlgorithmSettingsRequest(experiment=wanted))
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(words, raised.exception.details())

    def test_what_is_not_served(self):
        with self.assertRaises(grpc.RpcError) as raised:
            Service(self.port, 'DBManager').ReportObservationLog(api.ReportObservationLogRequest(trial_name='t'))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


PUSH = '''apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: push}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy}
  algorithm: {algorithmName: random}
  maxTrialCount: 1
  parallelTrialCount: 1
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}]
  metricsCollectorSpec: {collector: {kind: Push}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: v1
      kind: Pod
      spec: {restartPolicy: Never, containers: [{name: main, image: i, command: [sh, -c,
        "echo $KATIB_TRIAL_NAME ${trialParameters.x} > FOLDER/name; while [ ! -e FOLDER/told ]; do sleep 0.1; done"]}]}
'''


class DatabaseTest(unittest.TestCase):
    def test_programs_push(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'kubernetes'))
        import cluster
        import control_plane
        with tempfile.TemporaryDirectory() as folder:
            plane = control_plane.ControlPlane(WEFT, folder, WEFT)
            plane.start('--katib_address', '127.0.0.1:0')
            self.addCleanup(plane.stop)
            told = "Katib's calls at port "
            cluster.wait_for(lambda: told in plane.log.read_text(), 'port')
            port = int(plane.log.read_text().split(told)[1].split()[0])
            service = Service(port, 'DBManager')
            plane.run(WEFT, 'apply', '-f', '-', stdin=PUSH.replace('FOLDER', folder))
            name = pathlib.Path(folder) / 'name'
            cluster.wait_for(lambda: name.exists() and name.read_text(), 'trial')
            trial = name.read_text().split()[0]
            for value in '0.25', '0.75':
                report = api.ReportObservationLogRequest(trial_name=trial)
                report.observation_log.metric_logs.add(time_stamp='2026-01-01T00:00:00Z').metric.CopyFrom(
                    api.Metric(name='accuracy', value=value))
                service.ReportObservationLog(report)
            logs = service.GetObservationLog(api.GetObservationLogRequest(trial_name=trial)).observation_log.metric_logs
            self.assertEqual([log.metric.value for log in logs], ['0.25', '0.75'])
            with self.assertRaises(grpc.RpcError) as raised:
                service.GetObservationLog(api.GetObservationLogRequest(trial_name='nobody'))
            self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
            (pathlib.Path(folder) / 'told').touch()
            plane.run(WEFT, 'wait', '--for=condition=Succeeded', 'experiment', 'push', '--timeout=60s')
            self.assertIn('0.75', plane.run(WEFT, 'get', 'experiment', 'push', '-o', 'json'))


def early_stopping(name, **settings):
    spec = api.EarlyStoppingSpec(algorithm_name=name)
    for key, value in settings.items():
        spec.algorithm_settings.add(name=key, value=value)
    return spec


class EarlyStoppingTest(unittest.TestCase):
    """`weft suggestion` asked for rules, which looks up what trials have reported in a database of Katib's."""

    def serve(self, paths):
        """A server of typed calls: {path: (request type, function)}; its port."""
        server = grpc.server(futures.ThreadPoolExecutor(4))

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method not in paths:
                    return None
                request, answer = paths[details.method]
                return grpc.unary_unary_rpc_method_handler(lambda message, context: answer(message), request_deserializer=request.FromString,
                                                           response_serializer=lambda reply: reply.SerializeToString())
        server.add_generic_rpc_handlers((Handler(),))
        port = server.add_insecure_port('127.0.0.1:0')
        server.start()
        self.addCleanup(server.stop, None)
        return port

    def test_rules_follow_from_the_database(self):
        process = subprocess.Popen([WEFT, 'suggestion', '--address', '127.0.0.1:0'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        service = Service(int(process.stdout.readline().split()[-1]), 'EarlyStopping')
        curves = {'0': [0.1, 0.3, 0.5], '1': [0.2, 0.4, 0.6], '2': [0.3, 0.5, 0.9], 'runs': [0.9]}

        def log(request):
            reply = api.GetObservationLogReply()
            for value in curves[request.trial_name]:
                reply.observation_log.metric_logs.add().metric.CopyFrom(api.Metric(name=request.metric_name, value=str(value)))
            return reply
        database = self.serve({'/api.v1.beta1.DBManager/GetObservationLog': (api.GetObservationLogRequest, log)})
        wanted = api.GetEarlyStoppingRulesRequest(experiment=experiment('random'), db_manager_address='127.0.0.1:%d' % database)
        wanted.experiment.spec.early_stopping.CopyFrom(early_stopping('medianstop', min_trials_required='3', start_step='2'))
        for name in curves:
            trial = wanted.trials.add(name=name)
            trial.status.condition = api.TrialStatus.RUNNING if name == 'runs' else api.TrialStatus.SUCCEEDED
        rule, = service.GetEarlyStoppingRules(wanted).early_stopping_rules
        # The means of the first two reports are 0.2, 0.3 and 0.4.
        self.assertEqual((rule.name, round(float(rule.value), 9), rule.comparison, rule.start_step), ('accuracy', 0.3, api.LESS, 2))
        service.ValidateEarlyStoppingSettings(api.ValidateEarlyStoppingSettingsRequest(early_stopping=early_stopping('medianstop')))
        with self.assertRaises(grpc.RpcError) as raised:
            service.ValidateEarlyStoppingSettings(api.ValidateEarlyStoppingSettingsRequest(early_stopping=early_stopping('medianstop', start_step='0')))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        wanted.db_manager_address = '127.0.0.1:1'
        with self.assertRaises(grpc.RpcError) as raised:
            service.GetEarlyStoppingRules(wanted)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_an_experiment_asks_a_service_of_others(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'kubernetes'))
        import cluster
        import control_plane
        requests = []

        def suggest(request):
            requests.append(request)
            reply = api.GetSuggestionsReply()
            first = request.total_request_number - request.current_request_number
            for i in range(first, request.total_request_number):
                given = reply.parameter_assignments.add()
                given.assignments.add(name='x', value='0.%d' % (i + 1))
                given.labels['example.com/generation'] = str(i)
            return reply
        port = self.serve({'/api.v1.beta1.Suggestion/GetSuggestions': (api.GetSuggestionsRequest, suggest)})
        with tempfile.TemporaryDirectory() as folder:
            plane = control_plane.ControlPlane(WEFT, folder, WEFT)
            # The other one is nowhere.
            plane.start('--suggestion_service', 'mine=127.0.0.1:%d' % port, '--suggestion_service', 'gone=127.0.0.1:1')
            self.addCleanup(plane.stop)
            text = PUSH.replace('metricsCollectorSpec: {collector: {kind: Push}}', '').replace('maxTrialCount: 1', 'maxTrialCount: 4').replace(
                'parallelTrialCount: 1', 'parallelTrialCount: 2').replace('"echo $KATIB_TRIAL_NAME ${trialParameters.x} > FOLDER/name; while [ ! -e FOLDER/told ]; do sleep 0.1; done"',
                                                                          '"echo accuracy=${trialParameters.x}"')
            plane.run(WEFT, 'apply', '-f', '-', stdin=text.replace('random', 'mine'))
            plane.run(WEFT, 'apply', '-f', '-', stdin=text.replace('random', 'gone').replace('name: push', 'name: waits'))
            plane.run(WEFT, 'wait', '--for=condition=Succeeded', 'experiment', 'push', '--timeout=60s')
            trials = json.loads(plane.run(WEFT, 'get', 'trials', '-o', 'json'))['items']
            self.assertEqual(sorted(trial['spec']['parameterAssignments'][0]['value'] for trial in trials), ['0.1', '0.2', '0.3', '0.4'])
            self.assertEqual({trial['metadata']['labels']['example.com/generation'] for trial in trials}, set('0123'))
            # What came of the first ones is in the last question.
            asked = requests[-1]
            self.assertEqual((asked.experiment.name, asked.experiment.spec.algorithm.algorithm_name, asked.total_request_number), ('push', 'mine', 4))
            told = {trial.spec.labels['example.com/generation']: trial for trial in asked.trials}
            done = [trial for trial in told.values() if trial.status.condition == api.TrialStatus.SUCCEEDED]
            self.assertTrue(done)
            for trial in done:
                self.assertEqual(trial.status.observation.metrics[0].value, trial.spec.parameter_assignments.assignments[0].value)
            cluster.wait_for(lambda: 'SuggestionServiceUnavailable' in plane.run(WEFT, 'describe', 'experiment', 'waits'), 'the event')


if __name__ == '__main__':
    unittest.main()
