# SPDX-License-Identifier: Apache-2.0
"""Ranges of data for workers that come and go: each record counts once in each epoch, whoever dies.

    from weft import leases
    for part in leases.Queue('train', records=60000, per_lease=500, epochs=2):
        for row in range(part.begin, part.end): ...

A range that its worker did not finish is leased to another. The first parameter server keeps the queue, or the first task where
there is none; with WEFT_LEASE_FOLDER it goes on after its own death.
"""
import collections
import json
import time

import grpc

_WAIT_SECONDS = 0.2
_CALL_SECONDS = 70

Part = collections.namedtuple('Part', ['epoch', 'index', 'begin', 'end', 'number'])


class Queue(object):
    """One data set. All workers give the same numbers: ValueError if one does not, or if they make no sense.

    Iterating gives a Part, the records [begin, end) of `epoch`, and counts it when the next is asked for. One that the loop leaves by
    an error is not counted, and another worker gets it. `target` is the worker's own server's, by default that of the tf.train.Server
    of this program or of hvd.init.
    """

    def __init__(self, name, records, per_lease, epochs=1, seed=0, lease_seconds=600, target=None):
        self.name = name
        self._channel = grpc.insecure_channel((target or _own_target())[len('grpc://'):], options=[('grpc.enable_http_proxy', 0)])
        self._ask('define', queue={'name': name, 'records': records, 'per_lease': per_lease, 'epochs': epochs, 'seed': seed,
                                   'lease_seconds': lease_seconds})

    def _ask(self, what, **words):
        words.setdefault('queue', self.name)
        method = self._channel.unary_unary('/weft.Leases/Call')
        try:
            return json.loads(method(json.dumps(dict(words, do=what)).encode(), timeout=_CALL_SECONDS, wait_for_ready=True))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
                raise ValueError(error.details())
            raise

    def take(self):
        """A Part, waiting while all are held by others; None when every record of every epoch is done."""
        while True:
            answer = self._ask('take')
            if answer['take'] == 'over':
                return None
            if answer['take'] == 'lease':
                return Part(*(answer[name] for name in Part._fields))
            time.sleep(_WAIT_SECONDS)

    def finish(self, part):
        """Counts the part. False if it did not: it was counted already, or this worker was late or taken for lost."""
        try:
            return self._ask('finish', **part._asdict())['counted']
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return False
            raise

    def give_back(self, part):
        """Another worker may have it at once."""
        self._ask('give_back', **part._asdict())

    def counts(self):
        """A dict: `records_done`, `to_do`, `held`, `leased_again`, `epoch`, `is_over`."""
        return self._ask('counts')

    def __iter__(self):
        while True:
            part = self.take()
            if part is None:
                return
            finished = False
            try:
                yield part
                finished = True
            finally:
                if not finished:
                    self.give_back(part)
            self.finish(part)


def _own_target():
    from weft import tensorflow_server
    servers = tensorflow_server.running()
    if not servers:
        raise ValueError('leases.Queue: this program has started no server: give its target, or make a tf.train.Server first')
    return servers[-1].target
