# SPDX-License-Identifier: Apache-2.0
"""Ranks that come and go: WEFT_ELASTIC=2:4 says that 2 of the tasks of TF_CONFIG are enough and that 4 are the most.

The group of the ranks is then open: who is there forms it, and forms it again where one is lost or another waits to come in.
"""
import json

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_collective_ops as ops

from weft.horovod import collectives, job

tf1 = tf.compat.v1
_FORM = 1  # the instance in which ranks say who they are
_agreement = []  # [session, op, placeholder], made at the first commit


class HostsUpdatedInterrupt(RuntimeError):
    """Ranks are there that are not in the group."""


def init(comm=None, process_sets=None):
    """Starts this rank's server; sessions without a target are on it from here on."""
    job.init(comm, process_sets)
    if job.is_elastic():
        form()


def form():
    """Leaves the group and forms it again, of all ranks that live; returns when the last of them has come.

    tf.errors.DeadlineExceededError after ten minutes, with who is there.
    """
    own = np.array([job.number()], np.int32)
    with tf.Graph().as_default():
        placeholder = tf1.placeholder(tf.int32, [1])
        members = ops.collective_gather_v2(placeholder, tf.constant(-job.fewest()), tf.constant(collectives.GROUP), tf.constant(_FORM), [])
        with tf1.Session() as session:
            job.set_members([int(member) for member in session.run(members, {placeholder: own})])


def view():
    """What this rank's server knows: `members` of the cluster, `devices` of the group by rank, whether it has `changed`."""
    import grpc
    address = job.target()[len('grpc://'):]
    with grpc.insecure_channel(address, options=[('grpc.enable_http_proxy', 0)]) as channel:
        return json.loads(channel.unary_unary('/weft.Membership/View')(b'%d' % collectives.GROUP, timeout=10))


def has_changed():
    """Whether somebody waits to come in; all ranks, which must ask together, get the same answer."""
    if not _agreement:
        with tf.Graph().as_default():
            placeholder = tf1.placeholder(tf.int32, [1])
            result = collectives.allreduce(placeholder, op=collectives.Max, name='somebody waits')
            _agreement.extend([tf1.Session(), result, placeholder])
    session, result, placeholder = _agreement
    return bool(session.run(result, {placeholder: np.array([view()['changed']], np.int32)})[0])
