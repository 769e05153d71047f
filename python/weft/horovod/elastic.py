# SPDX-License-Identifier: Apache-2.0
"""Programs that go on when ranks are lost and when ranks come; the state is that of the rank that has committed most.

Where WEFT_ELASTIC says how many ranks are enough, the others go on without a lost one, and newcomers get the state from a peer;
rank() and size() then change. Without it the number of ranks stays: a lost one is started again by whoever runs the job.
"""
import functools

import numpy as np
import tensorflow as tf

from weft.horovod import collectives, job, members
from weft.horovod.members import HostsUpdatedInterrupt

tf1 = tf.compat.v1
_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


class State:
    """Named values; commit() keeps them, restore() goes back to what was kept, sync() takes those of the rank that is ahead."""

    def __init__(self, **values):
        self._names = list(values)
        self._callbacks = []
        self._commits = 0
        for name, value in values.items():
            setattr(self, name, value)
        self.save()

    def register_reset_callbacks(self, callbacks):
        self._callbacks.extend(callbacks)

    def on_reset(self):
        for callback in self._callbacks:
            callback()

    def commit(self):
        """Keeps the values; all ranks come to it together. HostsUpdatedInterrupt as of check_host_updates."""
        self._commits += 1
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """HostsUpdatedInterrupt at all ranks, which come to it together, if others wait to come in."""
        if job.is_elastic() and members.has_changed():
            raise HostsUpdatedInterrupt()

    def save(self):
        self._saved = {name: getattr(self, name) for name in self._names}

    def restore(self):
        for name, value in self._saved.items():
            setattr(self, name, value)

    def _ahead(self):
        """The rank that has committed most, and how often."""
        commits = collectives.allgather_object(self._commits, name='commits')
        return int(np.argmax(commits)), max(commits)

    def sync(self):
        root, self._commits = self._ahead()
        values = collectives.allgather_object({name: getattr(self, name) for name in self._names}, name='state')[root]
        for name, value in values.items():
            setattr(self, name, value)
        self.save()


ObjectState = State


class TensorFlowState(State):
    """The same with the variables of a session of this rank."""

    def __init__(self, variables=None, session=None, **values):
        self._variables = list(variables if variables is not None else tf1.global_variables())
        self._session = session
        self._kept = None
        with self._graph().as_default():
            self._feeds = [tf1.placeholder(variable.dtype.base_dtype, variable.shape) for variable in self._variables]
            self._assign = tf.group(*[tf1.assign(variable, feed) for variable, feed in zip(self._variables, self._feeds)])
        super().__init__(**values)

    def _graph(self):
        return self._session.graph if self._session is not None else tf1.get_default_graph()

    def _in(self):
        return self._session if self._session is not None else tf1.get_default_session()

    def save(self):
        super().save()
        self._kept = self._in().run(self._variables)

    def restore(self):
        super().restore()
        self._in().run(self._assign, dict(zip(self._feeds, self._kept)))

    def sync(self):
        root, _ = self._ahead()
        own = zip(self._feeds, self._in().run(self._variables))
        got = {feed: collectives.broadcast_value(value, root, feed.name) for feed, value in own}
        self._in().run(self._assign, got)
        super().sync()


def run(function):
    """Decorates function(state, ...): runs it again from the last commit where a rank was lost or came on the way."""
    @functools.wraps(function)
    def again(state, *args, **kwargs):
        begins = True
        while True:
            try:
                if not begins:
                    if job.is_elastic():
                        members.form()
                        print('rank %d of %d' % (job.rank(), job.size()), flush=True)
                    state.on_reset()
                begins = False
                state.sync()
                return function(state, *args, **kwargs)
            except _LOST as error:
                print('rank %d: %s; from the last commit' % (job.rank(), error.message.splitlines()[-1]), flush=True)
                state.restore()
            except HostsUpdatedInterrupt:
                print('rank %d: others wait to come in' % job.rank(), flush=True)
    return again
