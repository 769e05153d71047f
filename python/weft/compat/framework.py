# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework: argument scopes, model variables, the global step."""
import contextlib
import functools
import threading

import tensorflow.compat.v1 as tf

_scopes = threading.local()


def _current():
    if not hasattr(_scopes, 'stack'):
        _scopes.stack = [{}]
    return _scopes.stack


def _key(function):
    return getattr(function, '_arg_scope_key', None)


def add_arg_scope(function):
    """Lets arg_scope give defaults for the arguments of `function`."""
    key = '%s.%s' % (function.__module__, function.__name__)

    @functools.wraps(function)
    def with_defaults(*args, **keywords):
        return function(*args, **dict(_current()[-1].get(key, {}), **keywords))
    with_defaults._arg_scope_key = key
    return with_defaults


def has_arg_scope(function):
    return _key(function) is not None


@contextlib.contextmanager
def arg_scope(functions_or_scope, **defaults):
    """In the block the functions of the list have these defaults. A scope that was yielded before can be entered again."""
    if isinstance(functions_or_scope, dict):
        if defaults:
            raise ValueError('a scope that is entered again takes no further arguments')
        scope = dict(functions_or_scope)
    else:
        scope = dict(_current()[-1])
        for function in functions_or_scope:
            if not has_arg_scope(function):
                raise ValueError('%s is not decorated with @add_arg_scope' % function)
            scope[_key(function)] = dict(scope.get(_key(function), {}), **defaults)
    _current().append(scope)
    try:
        yield scope
    finally:
        _current().pop()


def current_arg_scope():
    return _current()[-1]


@add_arg_scope
def variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=True, collections=None,
             caching_device=None, device=None, partitioner=None, custom_getter=None, use_resource=None):
    """tf.get_variable on a device of its own, in collections beside GLOBAL_VARIABLES."""
    collections = list(collections if collections is not None else [tf.GraphKeys.GLOBAL_VARIABLES])
    if tf.GraphKeys.GLOBAL_VARIABLES not in collections:
        collections.append(tf.GraphKeys.GLOBAL_VARIABLES)
    with tf.device(device or ''):
        return tf.get_variable(name, shape, dtype, initializer, regularizer, trainable, collections, caching_device,
                               partitioner, custom_getter=custom_getter, use_resource=use_resource)


@add_arg_scope
def model_variable(name, shape=None, dtype=tf.float32, initializer=None, regularizer=None, trainable=True,
                   collections=None, **options):
    """A variable that is a part of the model: in MODEL_VARIABLES too."""
    collections = list(collections or []) + [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable, collections, **options)


def get_variables(scope=None, suffix=None, collection=tf.GraphKeys.GLOBAL_VARIABLES):
    found = tf.get_collection(collection, getattr(scope, 'name', scope))
    return [v for v in found if suffix is None or v.op.name.endswith(suffix)]


def get_model_variables(scope=None, suffix=None):
    return get_variables(scope, suffix, tf.GraphKeys.MODEL_VARIABLES)


def get_variables_to_restore(include=None, exclude=None):
    """The variables of the scopes in `include` without those of the scopes in `exclude`."""
    wanted = tf.global_variables() if include is None else [v for s in include for v in get_variables(s)]
    unwanted = {v.name for s in exclude or [] for v in get_variables(s)}
    return [v for v in wanted if v.name not in unwanted]


def get_unique_variable(name):
    found = [v for v in get_variables(name) if v.op.name == name]
    if len(found) != 1:
        raise ValueError('Variable %s %s' % (name, 'does not uniquely identify a variable' if found else 'is unknown'))
    return found[0]


def assign_from_checkpoint_fn(model_path, var_list, ignore_missing_vars=False, reshape_variables=False):
    """A function of a session that restores `var_list` from `model_path`."""
    if not isinstance(var_list, dict):
        var_list = {v.op.name: v for v in var_list}
    if ignore_missing_vars:
        stored = tf.train.load_checkpoint(model_path).get_variable_to_shape_map()
        var_list = {name: v for name, v in var_list.items() if name in stored}
    saver = tf.train.Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def with_shape(expected_shape, tensor):
    tensor.set_shape(expected_shape)
    return tensor


NAMES = dict(
    add_arg_scope=add_arg_scope, arg_scope=arg_scope, current_arg_scope=current_arg_scope, has_arg_scope=has_arg_scope,
    variable=variable, model_variable=model_variable, get_variables=get_variables,
    get_model_variables=get_model_variables, get_variables_to_restore=get_variables_to_restore,
    get_unique_variable=get_unique_variable, get_trainable_variables=functools.partial(
        get_variables, collection=tf.GraphKeys.TRAINABLE_VARIABLES),
    get_local_variables=functools.partial(get_variables, collection=tf.GraphKeys.LOCAL_VARIABLES),
    get_variables_by_name=lambda name, scope=None: [
        v for v in get_variables(scope) if v.op.name.split('/')[-1] == name],
    get_variables_by_suffix=lambda suffix, scope=None: get_variables(scope, suffix),
    get_global_step=tf.train.get_global_step, get_or_create_global_step=tf.train.get_or_create_global_step,
    create_global_step=tf.train.create_global_step, assert_global_step=tf.train.assert_global_step,
    assign_from_checkpoint_fn=assign_from_checkpoint_fn, init_from_checkpoint=tf.train.init_from_checkpoint,
    load_checkpoint=tf.train.load_checkpoint, load_variable=tf.train.load_variable,
    list_variables=tf.train.list_variables, is_tensor=tf.is_tensor, with_shape=with_shape, nest=tf.nest)
