#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One task of TensorFlow's own cluster: tensorflow_server.py CLUSTER_JSON JOB INDEX"""
import json
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import tensorflow as tf  # noqa: E402

tf.compat.v1.train.Server(json.loads(sys.argv[1]), job_name=sys.argv[2], task_index=int(sys.argv[3])).join()
