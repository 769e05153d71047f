// SPDX-License-Identifier: Apache-2.0
// All that a program needs for layers and models, which have Keras's names and numbers; weft.h has
// what lies below.
#pragma once

#include "base/status.h"
#include "weft/estimator/activation.h"
#include "weft/estimator/attention.h"
#include "weft/estimator/callback.h"
#include "weft/estimator/conv_lstm.h"
#include "weft/estimator/convolution.h"
#include "weft/estimator/dense.h"
#include "weft/estimator/dropout.h"
#include "weft/estimator/embedding_layer.h"
#include "weft/estimator/image_layers.h"
#include "weft/estimator/keras_files.h"
#include "weft/estimator/merging.h"
#include "weft/estimator/model.h"
#include "weft/estimator/normalization.h"
#include "weft/estimator/pooling.h"
#include "weft/estimator/preprocessing.h"
#include "weft/estimator/recurrent.h"
#include "weft/estimator/reshaping.h"
#include "weft/estimator/text.h"
#include "weft/estimator/wrappers.h"
