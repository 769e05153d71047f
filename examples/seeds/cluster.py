# SPDX-License-Identifier: Apache-2.0
"""The cluster of "the first steps": two workers and a parameter server on one machine.

The listing names localhost:2222 to 2224. SEEDS_CLUSTER may name other ports, as JSON, so that tests can run beside each other.
"""
import json
import os

import tensorflow as tf

cluster = tf.train.ClusterSpec(json.loads(os.environ.get('SEEDS_CLUSTER', '''{
  "worker": [
      "localhost:2222",
      "localhost:2223"
  ],
  "ps": [
      "localhost:2224"
  ]}''')))
