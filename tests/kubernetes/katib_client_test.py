#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Katib's own Python client, as it is published, searches with `weft up`: a function of Python is tuned, watched and read.

    katib_client_test.py WEFT       by a Python that has kubeflow-katib
"""
import sys
import tempfile
import unittest

import control_plane

WEFT = sys.argv[1]


def objective(parameters):
    # The client writes this text into the command of each trial.
    x = float(parameters['x'])
    for step in range(3):
        print('score=%.4f loss=%.4f' % (1 - (x - 0.3) ** 2 - 0.1 / (step + 1), (x - 0.3) ** 2))


class KatibClientTest(unittest.TestCase):
    def test_a_function_is_tuned(self):
        from kubeflow import katib
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        plane = control_plane.ControlPlane(WEFT, folder.name, WEFT)
        plane.start('--katib_address', '127.0.0.1:0')
        self.addCleanup(plane.stop)
        client = katib.KatibClient(config_file=str(plane.kubeconfig), namespace='default')
        client.tune(name='tuned', objective=objective, parameters={'x': katib.search.double(min=0, max=1), 'y': katib.search.int(min=1, max=4)},
                    objective_metric_name='score', additional_metric_names=['loss'], algorithm_name='tpe', algorithm_settings={'random_state': '3'},
                    max_trial_count=8, parallel_trial_count=2, max_failed_trial_count=2, base_image='python:3', metrics_collector_config={'kind': 'StdOut'})
        client.wait_for_experiment_condition('tuned', timeout=120, polling_interval=1)
        self.assertTrue(client.is_experiment_succeeded('tuned'))
        best = client.get_optimal_hyperparameters('tuned')
        values = {each.name: each.value for each in best.parameter_assignments}
        scores = {metric.name: float(metric.max) for metric in best.observation.metrics}
        self.assertAlmostEqual(scores['score'], 1 - (float(values['x']) - 0.3) ** 2 - 0.1 / 3, places=3)
        trials = client.list_trials('tuned')
        self.assertEqual(len(trials), 8)
        self.assertTrue(all(trial.status.conditions[-1].type == 'Succeeded' for trial in trials))
        self.assertEqual(max(float(each['metrics'][0]['max']) if isinstance(each['metrics'][0], dict) else float(each['metrics'][0].max)
                             for each in client.get_success_trial_details('tuned')), scores['score'])
        self.assertEqual(client.get_suggestion('tuned').status.suggestion_count, 8)
        port = plane.log.read_text().split("Katib's calls at port ")[1].split()[0]
        logs = client.get_trial_metrics(best.best_trial_name, db_manager_address='127.0.0.1:' + port)
        self.assertEqual(max(float(log.metric.value) for log in logs if log.metric.name == 'score'), scores['score'])
        # What Katib refuses too: its policy is Never.
        with self.assertRaises(RuntimeError):
            client.edit_experiment_budget('tuned', max_trial_count=9)
        client.delete_experiment('tuned')
        self.assertEqual(client.list_experiments(), [])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
