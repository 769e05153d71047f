// SPDX-License-Identifier: Apache-2.0
// All that a program needs for TensorFlow's Estimator: feature columns, premade models, model
// functions of one's own, training by TF_CONFIG; weft.h has what lies below.
#pragma once

#include "base/status.h"
#include "weft/estimator/columns/feature_column.h"
#include "weft/estimator/model_fn/estimator.h"
#include "weft/estimator/model_fn/premade.h"
#include "weft/estimator/model_fn/train_and_evaluate.h"
#include "weft/train/dataset.h"
#include "weft/train/layers.h"
#include "weft/train/optimizer.h"
#include "weft/train/task.h"
