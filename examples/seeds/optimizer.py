# SPDX-License-Identifier: Apache-2.0
"""Listings: how an op is made (zeros_like, apply_op, create_op), a gradient function (SquareGrad), and an Optimizer in a
few lines (compute_gradients, apply_gradients). optimizer.py TARGET"""
import sys

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops

tf.disable_v2_behavior()


# An op's constructor calls the generated one, which asks the graph for the op.
def zeros_like(tensor, name=None):
    return _zeros_like(tensor, name=name)


def _zeros_like(x, name=None):
    return apply_op('ZerosLike', x=x, name=name)


def apply_op(op_name, name=None, **keywords):
    graph = tf.get_default_graph()
    inputs = list(keywords.values())
    with graph.as_default(), tf.name_scope(name, op_name, inputs) as scope:
        attrs = {'T': tf.AttrValue(type=inputs[0].dtype.base_dtype.as_datatype_enum)}
        return graph.create_op(op_name, inputs, [inputs[0].dtype.base_dtype], name=scope, attrs=attrs).outputs[0]


# One gradient function for each op: as many gradients as the op has inputs.
GRADIENTS = {}


def RegisterGradient(op_type):
    def register(function):
        GRADIENTS[op_type] = function
        return function
    return register


@RegisterGradient('Square')
def SquareGrad(op, grad):
    x = op.inputs[0]
    with ops.control_dependencies([grad.op]):
        return [grad * (2.0 * x)]


@RegisterGradient('Sub')
def SubGrad(op, grad):
    return [grad, -grad]


@RegisterGradient('Identity')
def IdentityGrad(op, grad):
    return [grad]


class Optimizer:
    def __init__(self, learning_rate):
        self.learning_rate = learning_rate

    def minimize(self, loss, var_list=None, global_step=None):
        grads_and_vars = self.compute_gradients(loss, var_list=var_list or tf.trainable_variables())
        return self.apply_gradients(grads_and_vars, global_step=global_step)

    def compute_gradients(self, loss, var_list):
        grads = self.gradients(loss, var_list)
        return list(zip(grads, var_list))

    def gradients(self, loss, var_list):
        grads = {loss.op: tf.ones_like(loss)}
        # Ops in reverse topological order: each makes its inputs' gradients of its output's.
        for op in reversed(topological_sort(loss)):
            if op not in grads or op.type not in GRADIENTS:
                continue
            for tensor, grad in zip(op.inputs, GRADIENTS[op.type](op, grads[op])):
                grads[tensor.op] = grads[tensor.op] + grad if tensor.op in grads else grad
        return [grads.get(var.op) for var in var_list]

    def apply_gradients(self, grads_and_vars, global_step=None):
        updates = [tf.assign_sub(var, self.learning_rate * grad) for grad, var in grads_and_vars if grad is not None]
        with tf.control_dependencies(updates):
            return tf.assign_add(global_step, 1).op if global_step is not None else tf.group(*updates)


def topological_sort(tensor):
    order, seen = [], set()

    def visit(op):
        if op in seen:
            return
        seen.add(op)
        for each in op.inputs:
            visit(each.op)
        order.append(op)
    visit(tensor.op)
    return order


tensor = tf.constant([1, 2], name='n1')
zeros = zeros_like(tensor, name='n2')
step = tf.train.get_or_create_global_step()
w = tf.Variable(5.0)
loss = tf.square(w - 2.0)
train_op = Optimizer(0.25).minimize(loss, [w], step)
theirs = tf.gradients(loss, w)[0]
ours = Optimizer(0.25).compute_gradients(loss, [w])[0][0]
with tf.Session(sys.argv[1]) as sess:
    sess.run(tf.global_variables_initializer())
    print(zeros.op.node_def.op, sess.run(zeros).tolist(), 'gradients:', *sess.run([ours, theirs]))
    for _ in range(10):
        sess.run(train_op)
    print('w: %.4f after %d steps' % tuple(sess.run([w, step])))
