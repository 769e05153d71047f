#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two operators at one API server: one leads, the other takes over; what their ports say, and to whom.

    leader_test.py WEFT DIGITS
"""
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import control_plane

WEFT, DIGITS = sys.argv[1:3]
TIMES = ('--leader-elect-lease-duration', '4s', '--leader-elect-renew-deadline', '3s',
         '--leader-elect-retry-period', '500ms')


class Operator:
    def __init__(self, plane, log, *words):
        self.log = log
        with open(log, 'wb') as file:
            self.process = subprocess.Popen([WEFT, 'operator', *words], env=plane.environment, stderr=file)

    def port(self, path):
        """Where it serves `path`, as its log says."""
        found = wait_for(lambda: re.search(r'Serves https?://\S+:(\d+)%s' % path, self.log.read_text()))
        return int(found.group(1))

    def metrics(self):
        with urllib.request.urlopen('http://127.0.0.1:%d/metrics' % self.port('/metrics'), timeout=30) as page:
            return page.read().decode()

    def leads(self):
        return 'leader_election_master_status{name="weft-operator"} 1\n' in self.metrics()

    def is_ready(self):
        """False until the API server has answered it once."""
        try:
            with urllib.request.urlopen('http://127.0.0.1:%d/readyz' % self.port('/healthz'), timeout=30) as page:
                return page.read() == b'ok\n'
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError('it does not happen within %d s' % seconds)
        time.sleep(0.1)
    return found


class LeaderTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, DIGITS)
        self.plane.start()
        self.operators = []

    def tearDown(self):
        for operator in self.operators:
            operator.process.kill()
            operator.process.wait()
        self.plane.stop()
        self.temporary.cleanup()

    def operator(self, *words):
        log = pathlib.Path(self.temporary.name) / ('operator-%d.log' % len(self.operators))
        self.operators.append(Operator(self.plane, log, *words))
        return self.operators[-1]

    def test_one_leads_and_the_other_takes_over(self):
        first = self.operator('--leader-elect', *TIMES)
        wait_for(first.leads)
        second = self.operator('--leader-elect', *TIMES)
        third = self.operator('--leader-elect', *TIMES)
        for other in (second, third):
            wait_for(other.is_ready)
            self.assertFalse(other.leads())
        first.process.kill()
        wait_for(lambda: second.leads() or third.leads())
        self.assertNotEqual(second.leads(), third.leads())
        leader, other = (second, third) if second.leads() else (third, second)
        depth = 'workqueue_depth{controller="tfjob-controller",name="tfjob-controller"} 0\n'
        wait_for(lambda: depth in leader.metrics())
        self.assertRegex(leader.metrics(), r'rest_client_requests_total\{code="200",host="127.0.0.1:\d+",method="PUT"\} ')
        # Who ends in peace leaves nobody waiting.
        leader.stop()
        wait_for(other.leads)
        self.assertRegex(other.log.read_text(), r'leads, default/weft-operator changed hands 2 times')

    def test_a_port_that_others_reach_needs_tls_and_a_token(self):
        token = pathlib.Path(self.temporary.name) / 'token'
        token.write_text('open-sesame\n')
        refused = subprocess.run([WEFT, 'operator', '--metrics-bind-address', ':0'], env=self.plane.environment,
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 1)
        self.assertIn('--metrics-token-file', refused.stderr)
        operator = self.operator('--metrics-bind-address', ':0', '--metrics-token-file', str(token),
                                 '--health-probe-bind-address', '0')
        url = 'https://127.0.0.1:%d/metrics' % operator.port('/metrics')
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        for header in ({}, {'Authorization': 'Bearer open-sesam'}):
            with self.assertRaises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(urllib.request.Request(url, headers=header), timeout=30, context=trusting)
            self.assertEqual(error.exception.code, 401)
        allowed = urllib.request.Request(url, headers={'Authorization': 'Bearer open-sesame'})
        with urllib.request.urlopen(allowed, timeout=30, context=trusting) as page:
            self.assertIn('process_resident_memory_bytes ', page.read().decode())
        self.assertNotIn('/healthz', operator.log.read_text())

    def test_times_that_do_not_fit_are_refused(self):
        refused = subprocess.run([WEFT, 'operator', '--leader-elect', '--leader-elect-renew-deadline', '1h'],
                                 env=self.plane.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 1)
        self.assertIn('The renew deadline is 1h', refused.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
