# SPDX-License-Identifier: Apache-2.0
"""Listing: the server of /job:ps/task:0, started by hand."""
import tensorflow as tf

from cluster import cluster

server = tf.train.Server(cluster, job_name='ps', task_index=0)
server.join()
