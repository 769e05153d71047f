#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`deploy/page` on a real control plane, in a real Chromium: whoever looks has the rights of the token that was typed.

    page_cluster_test.py WEFT DIGITS DIGITS.CSV
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import browser
import page_test

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'kubernetes'))
import cluster  # noqa: E402
import real_control_plane  # noqa: E402

WEFT, DIGITS, DATA = sys.argv[1:4]
CONTROLLERS = real_control_plane.CONTROLLERS + ',deployment-controller,replicaset-controller,clusterrole-aggregation-controller'
# Everything that the page shows but what pods print.
NO_LOGS = '''apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: no-logs, namespace: default}
rules:
- {apiGroups: [kubeflow.org], resources: [tfjobs, experiments, trials], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods, events], verbs: [get, list, watch]}
'''


class DeploymentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        cls.browser = cls.forwarding = None
        try:
            cls.start()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def start(cls):
        flags, authority = cls.cluster.node_trust()
        cls.cluster.start(*flags, controllers=CONTROLLERS)
        cls.k('apply', '-k', str(cluster.DEPLOY / 'users'))
        cls.cluster.spawn_operator(WEFT)
        # The pods of a node are processes of this machine: `weft` is found beside the others.
        os.environ['PATH'] = os.pathsep.join([str(pathlib.Path(WEFT).parent), os.environ['PATH']])
        cls.cluster.spawn_node(WEFT, authority)
        port = str(real_control_plane.free_port())
        # In a container the page finds the API server by what every pod gets; a process of this machine needs to be told. It
        # gets no credentials, and runs as the user that the Deployment names.
        cls.cluster.folder.chmod(0o755)
        server = cls.cluster.folder / 'server'
        server.write_text(cls.cluster.plane.kubeconfig.read_text().replace('user: {token: %s}' % cls.cluster.plane.token, 'user: {}'))
        assert cls.cluster.plane.token not in server.read_text()
        manifests = cls.k('kustomize', str(cluster.DEPLOY / 'page'))
        for before, after in (('8087', port), ('      - command:', '      - env: [{name: KUBECONFIG, value: %s}]\n        command:' % server)):
            assert before in manifests, manifests
            manifests = manifests.replace(before, after)
        cls.k('apply', '-f', '-', stdin=manifests)
        cls.k('apply', '-f', '-', stdin=page_test.TRACED % (DIGITS, DATA, cls.temporary.name + '/model'))
        cls.k('apply', '-f', '-', stdin=NO_LOGS)
        cls.k('-n', 'weft-system', 'rollout', 'status', 'deployment/weft-page', '--timeout=60s')
        cls.forwarding = subprocess.Popen([cls.cluster.kubectl, '--kubeconfig', str(cls.cluster.plane.kubeconfig), '-n', 'weft-system', 'port-forward',
                                           'deployment/weft-page', ':' + port], stdout=subprocess.PIPE, text=True)
        cls.url = 'http://127.0.0.1:' + re.search(r'127.0.0.1:(\d+)', cls.forwarding.stdout.readline())[1]
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.close()
        if cls.forwarding:
            cls.forwarding.kill()
            cls.forwarding.communicate()
        cls.cluster.stop()
        cls.temporary.cleanup()

    @classmethod
    def k(cls, *words, stdin=None):
        return cls.cluster.k(*words, stdin=stdin)

    def user(self, name, *role):
        """The token of somebody with a role in one namespace."""
        self.k('create', 'serviceaccount', name)
        self.k('create', 'rolebinding', name, '--serviceaccount=default:' + name, *role)
        return self.k('create', 'token', name).strip()

    def enter(self, token, address):
        b = self.browser
        b.open(self.url + '/')
        b.wait('!!document.getElementById("main")')
        b.js('sessionStorage.clear()')
        b.open('about:blank')
        b.open(self.url + '/' + address)
        b.wait('document.activeElement?.id === "key"', 'the field for the key')
        b.type(token)
        b.key('Enter')
        return b

    def test_the_step_of_a_job(self):
        b = self.enter(self.user('viewer', '--clusterrole=view'), '#/')
        # Rights that end at a namespace: it is the one that is shown.
        b.wait('[...document.querySelectorAll("main a")].some(a => a.textContent === "traced")', 'the job')
        self.assertEqual(b.js('document.getElementById("namespace").value'), 'default')
        b.wait_text('not yours to see')
        b.click('main a', 'traced')
        b.click('[role=tab]', 'Step')
        page_test.wait_for_step(b)
        page_test.check_step(self, b)
        # Who only looks is offered nothing else.
        self.assertEqual(b.js('document.querySelectorAll(".head .actions button").length'), 0)

    def test_who_may_not_read_what_pods_print(self):
        b = self.enter(self.user('blind', '--role=no-logs'), '#/jobs/TFJob/default/traced?tab=step')
        b.wait_text('cannot get resource "pods/log"')
        b.click('[role=tab]', 'Curves')
        b.wait_text('cannot get resource "pods/log"')


if __name__ == '__main__':
    if not browser.find():
        print('no Chromium is installed: apt-get install chromium-headless-shell')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
