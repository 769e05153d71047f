# SPDX-License-Identifier: Apache-2.0
"""The models that keras_layers_test.py compares: name -> a function that makes a Keras model, and how its inputs look."""
import numpy as np
import tensorflow as tf

keras = tf.keras
L = keras.layers
KERAS3 = not keras.__version__.startswith('2') if hasattr(keras, '__version__') else False


def sequential(shape, *layers):
    return keras.Sequential([keras.Input(shape), *layers])


def chain(shape, *layers, dtype='float32', **of_input):
    x = first = keras.Input(shape, dtype=dtype, **of_input) if shape else keras.Input(dtype=dtype, **of_input)
    for layer in layers:
        x = layer(x)
    return keras.Model(first, x)


EXAMPLES = 7


def stateful(shape, *layers):
    return chain(None, *layers, batch_shape=(EXAMPLES,) + shape)


def two(make, shape=(4,), other=None):
    a, b = keras.Input(shape), keras.Input(other or shape)
    return keras.Model([a, b], make(L.Dense(shape[-1])(a), b))


def crossing(first, second, shape, output_mode='int'):
    a, b = keras.Input(shape, dtype=first), keras.Input(shape, dtype=second)
    crossed = L.HashedCrossing(7, output_mode=output_mode)([a, b])
    if output_mode == 'int':
        crossed = L.Flatten()(L.Embedding(7, 3)(crossed))
    return keras.Model([a, b], L.Dense(2)(crossed))


def shared():
    a, b = keras.Input((5,)), keras.Input((5,))
    dense = L.Dense(4, activation='tanh')
    return keras.Model([a, b], L.Subtract()([dense(a), dense(b)]))


def spectral_shared():
    a, b = keras.Input((5,)), keras.Input((5,))
    dense = L.SpectralNormalization(L.Dense(4))
    return keras.Model([a, b], L.Subtract()([dense(a), dense(b)]))


def nested():
    inner = keras.Sequential([keras.Input((6,)), L.Dense(5, activation='relu'), L.Dense(4)])
    x = keras.Input((6,))
    return keras.Model(x, L.Dense(3)(L.Add()([inner(x), L.Dense(4)(x)])))


def several_outputs():
    x = keras.Input((6,))
    hidden = L.Dense(5, activation='relu')(x)
    return keras.Model(x, [L.Dense(3)(hidden), L.Dense(2, activation='sigmoid')(hidden)])


def states():
    x = keras.Input((5, 3))
    outputs, h, c = L.LSTM(4, return_sequences=True, return_state=True)(x)
    decoded = L.LSTM(4, return_sequences=True)(outputs, initial_state=[h, c])
    return keras.Model(x, L.Dense(2)(decoded))


def heads(**arguments):
    q, v = keras.Input((4, 6)), keras.Input((5, 6))
    call = {'use_causal_mask': True} if arguments.pop('causal', False) else {}
    return keras.Model([q, v], L.MultiHeadAttention(2, 3, **arguments)(q, v, **call))


def transformer():
    ids = keras.Input((6,), dtype='int32')
    x = L.Embedding(11, 8)(ids)
    x = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)]))
    x = L.LayerNormalization()(L.Add()([x, L.Dense(8)(L.Dense(16, activation='gelu')(x))]))
    return keras.Model(ids, L.Dense(3)(L.GlobalAveragePooling1D()(x)))


def small_resnet():
    x = first = keras.Input((8, 8, 3))
    x = L.Conv2D(4, 3, padding='same', use_bias=False)(x)
    x = L.ReLU()(L.BatchNormalization()(x))
    y = L.Conv2D(4, 3, padding='same', use_bias=False)(x)
    x = L.ReLU()(L.Add()([x, L.BatchNormalization()(y)]))
    x = L.DepthwiseConv2D(3, strides=2, padding='same')(x)
    return keras.Model(first, L.Dense(3, activation='softmax')(L.GlobalAveragePooling2D()(x)))


def text_model():
    return chain((7,), L.Embedding(11, 5, mask_zero=True), L.Bidirectional(L.LSTM(4, return_sequences=True)),
                 L.GRU(4), L.Dense(2), dtype='int32')


SEQUENCE, IMAGE, VOLUME = (6, 4), (7, 6, 3), (5, 6, 4, 2)
REGULAR = dict(kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02), bias_regularizer=keras.regularizers.L2(0.01))
CASES = {
    'dense': lambda: sequential((5,), L.Dense(4)),
    'dense_rank3': lambda: sequential((3, 5), L.Dense(4, use_bias=False)),
    'dense_regularized': lambda: sequential((5,), L.Dense(4, activity_regularizer=keras.regularizers.L2(0.1), **REGULAR)),
    'max_norm': lambda: sequential((5,), L.Dense(4, kernel_constraint=keras.constraints.MaxNorm(0.5))),
    'min_max_norm': lambda: sequential((5,), L.Dense(4, kernel_constraint=keras.constraints.MinMaxNorm(0.4, 0.6, 0.5))),
    'unit_norm': lambda: sequential((5,), L.Dense(4, kernel_constraint='unit_norm', bias_constraint='non_neg')),
    'conv1d': lambda: sequential(SEQUENCE, L.Conv1D(5, 3, strides=2, padding='same')),
    'conv1d_causal': lambda: sequential(SEQUENCE, L.Conv1D(5, 2, padding='causal', dilation_rate=2)),
    'conv2d': lambda: sequential(IMAGE, L.Conv2D(4, (3, 2), strides=(2, 1), activation='relu')),
    'conv2d_same': lambda: sequential(IMAGE, L.Conv2D(4, 3, strides=2, padding='same')),
    'conv2d_dilated': lambda: sequential(IMAGE, L.Conv2D(4, 2, dilation_rate=2)),
    'conv3d': lambda: sequential(VOLUME, L.Conv3D(3, 2, padding='same')),
    'conv1d_transpose': lambda: sequential(SEQUENCE, L.Conv1DTranspose(3, 3, strides=2)),
    'conv2d_transpose': lambda: sequential(IMAGE, L.Conv2DTranspose(4, 3, strides=2, padding='same')),
    'conv2d_transpose_valid': lambda: sequential(IMAGE, L.Conv2DTranspose(4, 3, strides=(1, 2))),
    'conv3d_transpose': lambda: sequential(VOLUME, L.Conv3DTranspose(2, 2, strides=2)),
    'depthwise': lambda: sequential(IMAGE, L.DepthwiseConv2D(3, depth_multiplier=2, padding='same')),
    'depthwise1d': lambda: sequential(SEQUENCE, L.DepthwiseConv1D(3)),
    'separable': lambda: sequential(IMAGE, L.SeparableConv2D(5, 3, strides=2, depth_multiplier=2)),
    'separable1d': lambda: sequential(SEQUENCE, L.SeparableConv1D(5, 3)),
    'pools1d': lambda: sequential(SEQUENCE, L.Dense(4), L.MaxPooling1D(2, strides=1), L.AveragePooling1D(2)),
    'pools2d': lambda: sequential(IMAGE, L.Dense(3), L.MaxPooling2D(), L.AveragePooling2D(2, strides=1, padding='same')),
    'pools3d': lambda: sequential(VOLUME, L.Dense(3), L.MaxPooling3D(2, strides=1), L.AveragePooling3D(2)),
    'global_max': lambda: sequential(IMAGE, L.Dense(3), L.GlobalMaxPooling2D()),
    'global_average': lambda: sequential(VOLUME, L.Dense(3), L.GlobalAveragePooling3D(keepdims=True)),
    'batch_normalization': lambda: sequential((5,), L.Dense(4), L.BatchNormalization()),
    'batch_normalization_3': lambda: sequential(SEQUENCE, L.Dense(4), L.BatchNormalization(scale=False, momentum=0.9)),
    'layer_normalization': lambda: sequential(SEQUENCE, L.Dense(4), L.LayerNormalization()),
    'layer_normalization_2': lambda: sequential(SEQUENCE, L.Dense(4), L.LayerNormalization(axis=[1, 2], center=False)),
    'group_normalization': lambda: sequential(IMAGE, L.Dense(4), L.GroupNormalization(2)),
    'unit_normalization': lambda: sequential((5,), L.Dense(4), L.UnitNormalization()),
    'embedding': lambda: chain((4,), L.Embedding(9, 3), L.Flatten(), dtype='int32'),
    'lstm': lambda: sequential(SEQUENCE, L.LSTM(3)),
    'lstm_relu': lambda: sequential(SEQUENCE, L.LSTM(3, activation='relu', return_sequences=True, use_bias=False)),
    'lstm_masked': lambda: chain((6,), L.Embedding(9, 4, mask_zero=True), L.LSTM(3, return_sequences=True), L.LSTM(2), dtype='int32'),
    'lstm_backwards': lambda: sequential(SEQUENCE, L.LSTM(3, go_backwards=True, return_sequences=True)),
    'lstm_states': states,
    'gru': lambda: sequential(SEQUENCE, L.GRU(3)),
    'gru_before': lambda: sequential(SEQUENCE, L.GRU(3, reset_after=False, return_sequences=True)),
    'gru_masked': lambda: sequential(SEQUENCE, L.Masking(0.5), L.GRU(3, return_sequences=True)),
    'simple_rnn': lambda: sequential(SEQUENCE, L.SimpleRNN(3, return_sequences=True)),
    'bidirectional': lambda: sequential(SEQUENCE, L.Bidirectional(L.LSTM(3, return_sequences=True))),
    'bidirectional_sum': lambda: sequential(SEQUENCE, L.Bidirectional(L.GRU(3), merge_mode='sum')),
    'bidirectional_masked': text_model,
    'time_distributed': lambda: sequential(SEQUENCE, L.TimeDistributed(L.Dense(3, activation='tanh')), L.LSTM(2)),
    'time_distributed_images': lambda: sequential((3,) + IMAGE, L.TimeDistributed(L.Conv2D(4, 3, strides=2)),
                                                  L.TimeDistributed(L.Flatten()), L.TimeDistributed(L.Dense(2))),
    'spectral_dense': lambda: sequential((5,), L.SpectralNormalization(L.Dense(4, activation='tanh', kernel_regularizer='l2')), L.Dense(2)),
    'spectral_conv': lambda: sequential(IMAGE, L.SpectralNormalization(L.Conv2D(4, (3, 2), strides=2), power_iterations=3),
                                        L.SpectralNormalization(L.Conv2DTranspose(2, 2)), L.Flatten(), L.Dense(2)),
    'spectral_shared': spectral_shared,
    'conv_lstm1d': lambda: sequential((3,) + SEQUENCE, L.ConvLSTM1D(2, 3, recurrent_activation='sigmoid')),
    'conv_lstm2d': lambda: sequential((3,) + IMAGE, L.ConvLSTM2D(3, (3, 2), strides=2, padding='same', return_sequences=True,
                                                                recurrent_activation='sigmoid'), L.Flatten(), L.Dense(2)),
    'conv_lstm_backwards': lambda: sequential((3,) + IMAGE, L.ConvLSTM2D(2, 2, dilation_rate=2, go_backwards=True, use_bias=False,
                                                                        recurrent_activation='sigmoid', activation='relu')),
    'conv_lstm3d': lambda: sequential((3,) + VOLUME, L.ConvLSTM3D(2, 2, strides=(1, 2, 1), recurrent_activation='sigmoid',
                                                                 return_sequences=True), L.Flatten(), L.Dense(2)),
    'rnn': lambda: sequential(SEQUENCE, L.RNN(L.GRUCell(3), return_sequences=True)),
    'rnn_stacked': lambda: sequential(SEQUENCE, L.RNN([L.LSTMCell(3), L.GRUCell(4), L.LSTMCell(2)], go_backwards=True)),
    'rnn_masked': lambda: chain((6,), L.Embedding(9, 4, mask_zero=True), L.RNN([L.SimpleRNNCell(3), L.LSTMCell(2)], return_sequences=True),
                                dtype='int32'),
    'stateful_lstm': lambda: stateful(SEQUENCE, L.LSTM(3, stateful=True, return_sequences=True), L.LSTM(2, stateful=True)),
    'stateful_gru': lambda: stateful(SEQUENCE, L.GRU(3, stateful=True, go_backwards=True), L.Dense(2)),
    'stateful_simple': lambda: stateful(SEQUENCE, L.Masking(0.5), L.SimpleRNN(3, stateful=True)),
    'stateful_rnn': lambda: stateful(SEQUENCE, L.RNN(L.LSTMCell(3), stateful=True)),
    'stateful_conv_lstm': lambda: stateful((3,) + IMAGE, L.ConvLSTM2D(2, 2, stateful=True, recurrent_activation='sigmoid'),
                                           L.Flatten(), L.Dense(2)),
    'attention': lambda: two(lambda a, b: L.Attention(use_scale=True)([a, b]), (4, 6), (5, 6)),
    'additive_attention': lambda: two(lambda a, b: L.AdditiveAttention()([a, b]), (4, 6), (5, 6)),
    'multi_head': heads,
    'multi_head_sizes': lambda: heads(value_dim=2, output_shape=5, use_bias=False),
    'multi_head_causal': lambda: heads(causal=True),
    'reshaping': lambda: sequential((4, 6), L.Dense(6), L.Reshape((3, 8)), L.Permute((2, 1)), L.Flatten(), L.RepeatVector(2)),
    'padding': lambda: sequential(IMAGE, L.Dense(2), L.ZeroPadding2D(((1, 0), (2, 1))), L.Cropping2D(((0, 1), (1, 1))), L.UpSampling2D(2)),
    'padding1d': lambda: sequential(SEQUENCE, L.Dense(2), L.ZeroPadding1D(2), L.Cropping1D((1, 0)), L.UpSampling1D(2)),
    'bilinear': lambda: sequential(IMAGE, L.Dense(2), L.UpSampling2D((2, 3), interpolation='bilinear')),
    'merging': lambda: two(lambda a, b: L.Concatenate()([L.Add()([a, b]), L.Multiply()([a, b]), L.Average()([a, b]),
                                                         L.Maximum()([a, b]), L.Minimum()([a, b])])),
    'dot': lambda: two(lambda a, b: L.Dot(axes=(2, 2), normalize=True)([a, b]), (3, 4), (5, 4)),
    'dot_flat': lambda: two(lambda a, b: L.Dot(axes=1)([a, b])),
    'rectified': lambda: sequential((5,), L.Dense(4), L.ReLU(max_value=1.0, negative_slope=0.1, threshold=0.2)),
    'leaky': lambda: sequential((5,), L.Dense(4), L.LeakyReLU(), L.ELU(0.5), L.PReLU()),
    'softmax': lambda: sequential((3, 5), L.Dense(4), L.Softmax(axis=1), L.Activation('softplus')),
    'rescaling': lambda: sequential((5,), L.Rescaling(0.5, offset=1.0), L.Dense(3)),
    'normalization': lambda: sequential((3,), L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 2.0]), L.Dense(3)),
    'discretization': lambda: sequential((3,), L.Discretization(bin_boundaries=[-0.5, 0.0, 0.7]), L.Embedding(4, 2), L.Flatten(), L.Dense(2)),
    'discretization_counts': lambda: sequential((3,), L.Discretization(bin_boundaries=[-0.5, 0.0, 0.7], output_mode='count'), L.Dense(2)),
    'category_encoding': lambda: chain((4,), L.CategoryEncoding(9, output_mode='multi_hot'), L.Dense(2), dtype='int32'),
    'category_counts': lambda: chain((4,), L.CategoryEncoding(9, output_mode='count'), L.Dense(2), dtype='int32'),
    'hashing': lambda: chain((4,), L.Hashing(6), L.Embedding(6, 2), L.Flatten(), dtype='int32'),
    'integer_lookup': lambda: chain((4,), L.IntegerLookup(vocabulary=[3, 1, 4], num_oov_indices=2), L.Embedding(5, 2), L.Flatten(),
                                    dtype='int64'),
    'integer_lookup_multi_hot': lambda: chain((4,), L.IntegerLookup(vocabulary=[3, 1, 4], output_mode='multi_hot'), L.Dense(2),
                                              dtype='int64'),
    'integer_lookup_inverted': lambda: chain((4,), L.IntegerLookup(vocabulary=[3, 1, 4], mask_token=0, invert=True),
                                             L.IntegerLookup(vocabulary=[4, 3]), L.Embedding(3, 2), L.Flatten(), dtype='int64'),
    'string_lookup_inverted': lambda: chain((4,), L.StringLookup(vocabulary=['sun', 'rain'], invert=True),
                                            L.StringLookup(vocabulary=['rain']), L.Embedding(2, 2), L.Flatten(), dtype='int64'),
    'string_lookup': lambda: chain((4,), L.StringLookup(vocabulary=['sun', 'rain'], mask_token=''), L.Embedding(4, 2), L.Flatten(),
                                   dtype='string'),
    'string_lookup_hashed': lambda: chain((4,), L.StringLookup(vocabulary=['sun', 'rain'], num_oov_indices=3, output_mode='count'),
                                          L.Dense(2), dtype='string'),
    'string_hashing': lambda: chain((4,), L.Hashing(6), L.Embedding(6, 2), L.Flatten(), dtype='string'),
    'text_vectorization': lambda: chain((1,), L.TextVectorization(vocabulary=['sun', 'rain', 'the'], output_sequence_length=5),
                                        L.Embedding(5, 3, mask_zero=True), L.LSTM(2), dtype='string'),
    'text_counts': lambda: chain((1,), L.TextVectorization(vocabulary=['sun', 'rain', 'the'], output_mode='count'), L.Dense(2),
                                 dtype='string'),
    'einsum_dense': lambda: sequential((3, 5), L.EinsumDense('abc,cd->abd', output_shape=(None, 4), bias_axes='d', activation='tanh')),
    'einsum_dense_heads': lambda: sequential((3, 5), L.EinsumDense('abc,cde->abde', output_shape=(None, 2, 3), bias_axes='de')),
    'einsum_dense_open': lambda: sequential((3, 2, 5), L.EinsumDense('...x,xy->...y', output_shape=4, bias_axes='y')),
    'einsum_dense_behind': lambda: sequential((5, 3), L.EinsumDense('ab...,bc->ac...', output_shape=4, bias_axes='c')),
    'identity': lambda: sequential((5,), L.Dense(4), L.Identity(), L.ActivityRegularization(0.01, 0.02), L.AlphaDropout(0.0)),
    'resizing': lambda: sequential(IMAGE, L.Resizing(5, 9), L.CenterCrop(4, 4), L.Conv2D(2, 2)),
    'resizing_nearest': lambda: sequential(IMAGE, L.Resizing(10, 4, interpolation='nearest'), L.Dense(2)),
    'resizing_bicubic': lambda: sequential(IMAGE, L.Resizing(10, 4, interpolation='bicubic'), L.Dense(2)),
    # What is drawn is one number here, so that both draw the same.
    'random_brightness': lambda: sequential(IMAGE, L.RandomBrightness((0.3, 0.3), value_range=(-2.0, 1.0)), L.Dense(2)),
    'random_rotation': lambda: sequential(IMAGE, L.RandomRotation((0.1, 0.1)), L.Dense(2)),
    'random_rotation_constant': lambda: sequential(IMAGE, L.RandomRotation((-0.2, -0.2), fill_mode='constant', fill_value=0.5), L.Dense(2)),
    'random_translation': lambda: sequential(IMAGE, L.RandomTranslation((0.2, 0.2), (-0.3, -0.3)), L.Dense(2)),
    'random_zoom': lambda: sequential(IMAGE, L.RandomZoom((-0.2, -0.2), fill_mode='wrap'), L.Dense(2)),
    'random_zoom_two': lambda: sequential(IMAGE, L.RandomZoom((0.2, 0.2), (0.1, 0.1), interpolation='nearest'), L.Dense(2)),
    'hashed_crossing': lambda: crossing('int64', 'string', (1,)),
    'hashed_crossing_hot': lambda: crossing('string', 'string', (1,), output_mode='one_hot'),
    'hashed_crossing_numbers': lambda: crossing('int64', 'int32', (1,), output_mode='one_hot'),
    'dropout': lambda: sequential((5,), L.Dense(4), L.Dropout(0.0), L.SpatialDropout1D(0.0) if False else L.GaussianNoise(0.0)),
    # Next to nothing is left while training, whatever is drawn.
    'dropout_of_all': lambda: chain((5,), L.Dense(4), L.Dropout(1 - 1e-7), L.Dense(2)),
    'shared': shared,
    'nested': nested,
    'several_outputs': several_outputs,
    'transformer': transformer,
    'small_resnet': small_resnet,
}
for name in ('relu', 'elu', 'selu', 'gelu', 'sigmoid', 'tanh', 'softplus', 'softsign', 'swish', 'exponential', 'softmax',
             'mish', 'relu6', 'leaky_relu', 'log_softmax', 'hard_sigmoid', 'celu', 'glu', 'hard_shrink', 'hard_silu', 'hard_tanh',
             'log_sigmoid', 'soft_shrink', 'sparse_plus', 'sparse_sigmoid', 'squareplus', 'tanh_shrink'):
    known = getattr(keras.activations, name, None)
    # Keras 2's hard_sigmoid and leaky_relu are others.
    if known is not None and (KERAS3 or name not in ('hard_sigmoid', 'leaky_relu')):
        CASES['activation_' + name] = lambda name=name: sequential((5,), L.Dense(4, activation=name))

if KERAS3:
    if hasattr(L, 'AdaptiveMaxPooling2D'):
        CASES['adaptive_pools'] = lambda: sequential(IMAGE, L.Dense(2), L.AdaptiveMaxPooling2D((4, 5)), L.AdaptiveAveragePooling2D(3))
        CASES['adaptive_pools_1d'] = lambda: sequential(SEQUENCE, L.Dense(2), L.AdaptiveAveragePooling1D(4), L.AdaptiveMaxPooling1D(3))
        CASES['adaptive_pools_3d'] = lambda: sequential(VOLUME, L.Dense(2), L.AdaptiveAveragePooling3D((2, 4, 3)), L.AdaptiveMaxPooling3D(2))
    CASES['group_query'] = lambda: two(lambda a, b: L.GroupQueryAttention(3, 4, 2)(a, b), (4, 6), (5, 6))
    CASES['group_query_causal'] = lambda: two(lambda a, b: L.GroupQueryAttention(2, 4, 1, use_bias=False)(a, b, use_causal_mask=True),
                                              (4, 6), (4, 6))
    CASES['spectral_depthwise'] = lambda: sequential(IMAGE, L.SpectralNormalization(L.DepthwiseConv2D(3)), L.Flatten(), L.Dense(2))
    CASES['rms_normalization'] = lambda: sequential(SEQUENCE, L.Dense(4), L.RMSNormalization())
    CASES['random_nothing'] = lambda: sequential(IMAGE, L.RandomContrast(0.0), L.Dense(2))
    CASES['rms_normalization_2'] = lambda: sequential(SEQUENCE, L.Dense(4), L.RMSNormalization(axis=[1, 2], epsilon=1e-3))
else:
    CASES['locally_connected1d'] = lambda: sequential(SEQUENCE, L.LocallyConnected1D(3, 2, strides=2, activation='tanh'))
    CASES['locally_connected2d'] = lambda: sequential(IMAGE, L.LocallyConnected2D(3, (3, 2), strides=(2, 1), kernel_regularizer='l2'))
    CASES['locally_connected_plain'] = lambda: sequential(IMAGE, L.LocallyConnected2D(2, 2, use_bias=False))
    CASES['random_height'] = lambda: sequential(IMAGE, L.RandomHeight((0.2, 0.2)), L.GlobalAveragePooling2D(), L.Dense(2))
    CASES['random_width'] = lambda: sequential(IMAGE, L.RandomWidth((-0.4, -0.4), interpolation='nearest'), L.GlobalMaxPooling2D(),
                                               L.Dense(2))
    CASES['random_crop_small'] = lambda: sequential(IMAGE, L.RandomCrop(9, 5), L.Conv2D(2, 2))  # which Keras 3 crops while training only
    # In Keras 3 what is embedded becomes whole numbers, as the ids are.
    CASES['spectral_embedding'] = lambda: chain((4,), L.SpectralNormalization(L.Embedding(9, 3)), L.Flatten(), dtype='int32')
    CASES['thresholded'] = lambda: sequential((5,), L.Dense(4), L.ThresholdedReLU(0.2))

PIXELS = (5, 4, 2)


def drawn(shape, layer):
    first = keras.Input(shape)
    return keras.Model(first, layer(first, training=True))


# Layers that draw while training, and how many examples share what is drawn.
DRAWN = {
    'drawn_dropout': (1, lambda: drawn((20,), L.Dropout(0.3))),
    'drawn_alpha_dropout': (1, lambda: drawn((20,), L.AlphaDropout(0.3))),
    'drawn_gaussian_noise': (1, lambda: drawn((20,), L.GaussianNoise(0.5))),
    'drawn_gaussian_dropout': (1, lambda: drawn((20,), L.GaussianDropout(0.3))),
    'drawn_spatial_dropout': (1, lambda: drawn((5, 4), L.SpatialDropout1D(0.4))),
    'drawn_flip': (1, lambda: drawn(PIXELS, L.RandomFlip('horizontal'))),
    'drawn_flip_vertical': (1, lambda: drawn(PIXELS, L.RandomFlip('vertical'))),
    'drawn_brightness': (1, lambda: drawn(PIXELS, L.RandomBrightness(0.3))),
    'drawn_rotation': (1, lambda: drawn(PIXELS, L.RandomRotation(0.2))),
    'drawn_translation': (1, lambda: drawn(PIXELS, L.RandomTranslation(0.3, 0.2, fill_mode='constant'))),
    'drawn_zoom': (1, lambda: drawn(PIXELS, L.RandomZoom(0.4))),
    'drawn_crop': (10, lambda: drawn(PIXELS, L.RandomCrop(3, 2))),
}

if KERAS3:  # in Keras 2 an image is turned along each axis by itself, and a batch shares its contrast
    DRAWN['drawn_flip_both'] = 1, lambda: drawn(PIXELS, L.RandomFlip())
    DRAWN['drawn_contrast'] = 1, lambda: drawn(PIXELS, L.RandomContrast(0.4))

S = keras.optimizers.schedules
O = keras.optimizers
OPTIMIZERS = {
    'sgd': lambda: O.SGD(0.1),
    'momentum': lambda: O.SGD(0.1, momentum=0.9),
    'nesterov': lambda: O.SGD(0.1, momentum=0.9, nesterov=True),
    'rmsprop': lambda: O.RMSprop(0.01),
    'rmsprop_momentum': lambda: O.RMSprop(0.01, momentum=0.5),
    'rmsprop_centered': lambda: O.RMSprop(0.01, momentum=0.5, centered=True),
    'adam': lambda: O.Adam(0.01),
    'amsgrad': lambda: O.Adam(0.01, amsgrad=True),
    'adamw': lambda: O.AdamW(0.01),
    'adamax': lambda: O.Adamax(0.01),
    'nadam': lambda: O.Nadam(0.01),
    'adagrad': lambda: O.Adagrad(0.1),
    'adadelta': lambda: O.Adadelta(1.0),
    'lion': lambda: O.Lion(0.01),
    'ftrl': lambda: O.Ftrl(0.1),
    'ftrl_l1_l2': lambda: O.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01,
                                 l2_shrinkage_regularization_strength=0.01, beta=0.1),
    'clipnorm': lambda: O.SGD(0.1, clipnorm=0.1),
    'global_clipnorm': lambda: O.SGD(0.1, global_clipnorm=0.1),
    'clipvalue': lambda: O.SGD(0.1, clipvalue=0.02),
    'weight_decay': lambda: O.SGD(0.1, weight_decay=0.1),
    'exponential': lambda: O.SGD(S.ExponentialDecay(0.1, 4, 0.5)),
    'staircase': lambda: O.SGD(S.ExponentialDecay(0.1, 4, 0.5, staircase=True)),
    'inverse': lambda: O.SGD(S.InverseTimeDecay(0.1, 4, 0.5)),
    'polynomial': lambda: O.SGD(S.PolynomialDecay(0.1, 6, 0.01, power=2)),
    'cycle': lambda: O.SGD(S.PolynomialDecay(0.1, 4, 0.01, cycle=True)),
    'piecewise': lambda: O.SGD(S.PiecewiseConstantDecay([2, 5], [0.1, 0.05, 0.01])),
    'cosine': lambda: O.SGD(S.CosineDecay(0.1, 8, alpha=0.1)),
    'warmup': lambda: O.SGD(S.CosineDecay(0.01, 8, warmup_target=0.1, warmup_steps=4)),
    'restarts': lambda: O.SGD(S.CosineDecayRestarts(0.1, 3)),
}
if KERAS3:
    OPTIMIZERS['lamb'] = lambda: O.Lamb(0.01)
    # Averages begin otherwise in Keras 2.
    OPTIMIZERS['ema'] = lambda: O.SGD(0.1, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=5)

# Losses, with the kind of their targets and the predictions' activation.
LOSSES = {
    'mean_squared_error': ('real', None), 'mean_absolute_error': ('real', None),
    'mean_absolute_percentage_error': ('real', None), 'mean_squared_logarithmic_error': ('positive', 'softplus'),
    'huber': ('real', None), 'log_cosh': ('real', None), 'hinge': ('binary', 'tanh'), 'squared_hinge': ('binary', 'tanh'),
    'categorical_hinge': ('one_hot', 'softmax'), 'kl_divergence': ('simplex', 'softmax'), 'poisson': ('positive', 'softplus'),
    'binary_crossentropy': ('binary', 'sigmoid'), 'categorical_crossentropy': ('one_hot', 'softmax'),
    'sparse_categorical_crossentropy': ('class', 'softmax'), 'cosine_similarity': ('real', None),
    'binary_focal_crossentropy': ('binary', 'sigmoid'),
    ('Huber', 'delta', 0.3): ('real', None),
    ('BinaryCrossentropy', 'from_logits', True): ('binary', None),
    ('BinaryCrossentropy', 'label_smoothing', 0.2): ('binary', 'sigmoid'),
    ('CategoricalCrossentropy', 'from_logits', True): ('one_hot', None),
    ('CategoricalCrossentropy', 'label_smoothing', 0.1): ('one_hot', 'softmax'),
    ('SparseCategoricalCrossentropy', 'from_logits', True): ('class', None),
    ('CategoricalFocalCrossentropy', 'gamma', 1.5): ('one_hot', 'softmax'),
    ('MeanSquaredError', 'reduction', 'sum'): ('real', None),
}
METRICS = {
    'binary': ['binary_accuracy', 'precision', 'recall', 'auc', 'binary_io_u', 'sensitivity_at_specificity',
               'specificity_at_sensitivity', 'precision_at_recall', 'recall_at_precision'],
    'one_hot': ['accuracy', 'categorical_accuracy', 'top_k_categorical_accuracy', 'one_hot_io_u', 'fbeta_score', 'f1_weighted',
                'f1_micro'],
    'class': ['accuracy', 'sparse_categorical_accuracy', 'sparse_top_k_categorical_accuracy', 'mean_io_u'],
    'real': ['mse', 'mae', 'root_mean_squared_error'],
}
if KERAS3:
    METRICS['real'].append('pearson_correlation')
    LOSSES['dice'] = LOSSES['tversky'] = 'binary', 'sigmoid'
    LOSSES['Dice', 'axis', (1,)] = LOSSES['Tversky', 'axis', (1,)] = LOSSES['Tversky', 'alpha', 0.8] = 'binary', 'sigmoid'
    LOSSES['CategoricalGeneralizedCrossEntropy', 'q', 0.7] = 'class', 'softmax'

M = keras.metrics
NAMED_METRICS = {  # name -> what makes it with that name
    'precision': M.Precision, 'recall': M.Recall, 'auc': M.AUC, 'root_mean_squared_error': M.RootMeanSquaredError,
    'mean_io_u': lambda name: M.MeanIoU(6, sparse_y_pred=False, name=name),
    'one_hot_io_u': lambda name: M.OneHotIoU(6, [1, 4], name=name),
    'binary_io_u': lambda name: M.BinaryIoU(threshold=0.4, name=name),
    'fbeta_score': lambda name: M.FBetaScore('macro', beta=2.0, name=name),
    'f1_weighted': lambda name: M.F1Score('weighted', threshold=0.15, name=name),
    'f1_micro': lambda name: M.F1Score('micro', name=name),
    'pearson_correlation': lambda name: M.PearsonCorrelation(name=name),
    'sensitivity_at_specificity': lambda name: M.SensitivityAtSpecificity(0.6, 20, name=name),
    'specificity_at_sensitivity': lambda name: M.SpecificityAtSensitivity(0.6, 20, name=name),
    'precision_at_recall': lambda name: M.PrecisionAtRecall(0.6, 20, name=name),
    'recall_at_precision': lambda name: M.RecallAtPrecision(0.5, 20, name=name),
}


def targets(kind, shape, random):
    if kind == 'class':
        return random.integers(0, shape[-1], shape[:-1]).astype('int64')
    if kind == 'one_hot':
        return np.eye(shape[-1], dtype='float32')[random.integers(0, shape[-1], shape[:-1])]
    if kind == 'binary':
        return random.integers(0, 2, shape).astype('float32')
    values = random.normal(size=shape).astype('float32')
    if kind == 'positive':
        return np.abs(values)
    if kind == 'simplex':
        return np.exp(values) / np.exp(values).sum(-1, keepdims=True)
    return values
