# SPDX-License-Identifier: Apache-2.0
"""`weft up` and a real control plane side by side, each with a client."""
import base64
import pathlib

import yaml

import api_client
import cluster
import control_plane
import real_control_plane


class TwoPlanes:
    """`controllers` run on the real one beside those that every test needs."""

    def __init__(self, weft, folder, controllers=''):
        folder = pathlib.Path(folder)
        for name in ('real', 'up'):
            (folder / name).mkdir()
        self.real = real_control_plane.RealControlPlane(cluster.build('controlplane'), folder / 'real')
        self.up = control_plane.ControlPlane(weft, folder / 'up', weft)
        try:
            self.real.start()
            self.theirs = api_client.ApiClient(self.real.server, self.real.authority, self.real.token)
            self.real.await_(self.is_ready, 'API')
            self.real.start_controllers('--controllers', ','.join(
                each for each in (real_control_plane.CONTROLLERS, controllers) if each))
            cluster.wait_for(lambda: self.theirs.request('GET', '/api/v1/namespaces/default'), 'namespace')
            self.up.start()
            config = yaml.safe_load(self.up.kubeconfig.read_text())
            here = config['clusters'][0]['cluster']
            authority = folder / 'authority.pem'
            authority.write_bytes(base64.b64decode(here['certificate-authority-data']))
            self.ours = api_client.ApiClient(here['server'], authority, config['users'][0]['user']['token'])
        except BaseException:
            self.stop()
            raise

    def is_ready(self):
        try:
            return self.theirs.request('GET', '/readyz') == 'ok'
        except (OSError, api_client.ApiError):
            return False

    def stop(self):
        self.up.stop()
        self.real.stop()
