# SPDX-License-Identifier: Apache-2.0
"""The files of a machine with GPUs and an RDMA adapter, below a folder, and the driver's library that stands in."""
import os
import pathlib
import stat


class StandInMachine:
    """GPUs by index; `library` is that of src/platform/devices/stand_in."""

    def __init__(self, folder, library, gpus=3, mib=4096):
        self.root = pathlib.Path(folder)
        self.library = library
        self.list = self.root / 'gpus'
        self.gpus = ['T4/%d/0000:%d0:00.0' % (mib, i + 1) for i in range(gpus)]
        (self.root / 'dev' / 'infiniband').mkdir(parents=True)
        self.add_device('nvidiactl')
        for i in range(gpus):
            self.add_device('nvidia%d' % i)
        self.add_device('infiniband/uverbs0')
        self.write('sys/devices/system/cpu/online', '0-1')
        self.write('sys/class/infiniband/mlx5_0/device/numa_node', '0')
        self.write('sys/class/infiniband/mlx5_0/device/infiniband_verbs/uverbs0/dev', '231:192')
        self.write('sys/class/infiniband/mlx5_0/ports/1/state', '4: ACTIVE')
        self.write('sys/class/infiniband/mlx5_0/ports/1/link_layer', 'InfiniBand')
        self.show()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + '\n')

    def add_device(self, name):
        """One that a container may have: another name for /dev/null, where we may make some."""
        path = self.root / 'dev' / name
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            path.touch()

    def show(self):
        fresh = self.list.with_suffix('.new')
        fresh.write_text(';'.join(self.gpus) + '\n')
        fresh.rename(self.list)

    def lose(self, index):
        """It falls off the bus: the driver does not count it any more."""
        del self.gpus[index]
        self.show()

    def uuid(self, index):
        return 'GPU-0000:%d0:00.0' % (index + 1)

    def flags(self):
        return ['--root', str(self.root), '--host_root', str(self.root), '--driver_library', str(self.library)]

    def environment(self):
        return {'STAND_IN_GPUS': '@%s' % self.list}
