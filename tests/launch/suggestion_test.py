# SPDX-License-Identifier: Apache-2.0
"""`weft suggestion` and the database of `weft up`, asked by gRPC's Python client as Katib's controller and programs do.

    suggestion_test.py WEFT PROTO_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

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


if __name__ == '__main__':
    unittest.main()
