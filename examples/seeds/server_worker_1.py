# SPDX-License-Identifier: Apache-2.0
"""Listing: the server of /job:worker/task:1, started by hand."""
import tensorflow as tf

from cluster import cluster

server = tf.train.Server(cluster, job_name='worker', task_index=1)
server.join()
