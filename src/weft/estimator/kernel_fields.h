// SPDX-License-Identifier: Apache-2.0
// Settings that many layers share under Keras's names, whichever struct of options holds them.
#pragma once

#include "weft/estimator/config_fields.h"
#include "weft/estimator/layer_call.h"

namespace weft::estimator {

// How kernels and biases begin, what they cost and what they may be.
template <typename Options>
void KernelFields(ConfigFields& f, Options& o) {
  f.Field("kernel_initializer", o.kernel_initializer);
  f.Field("bias_initializer", o.bias_initializer);
  f.Field("kernel_regularizer", o.kernel_regularizer);
  f.Field("bias_regularizer", o.bias_regularizer);
  f.Field("kernel_constraint", o.kernel_constraint);
  f.Field("bias_constraint", o.bias_constraint);
}

// Those of a layer that is activated: dense ones and convolutions.
template <typename Options>
void ActivatedKernelFields(ConfigFields& f, Options& o) {
  f.Activation("activation", o.activation);
  f.Field("activity_regularizer", o.activity_regularizer);
  KernelFields(f, o);
}

// Those of a recurrent layer's cell.
template <typename Options>
void CellFields(ConfigFields& f, Options& o) {
  f.Activation("activation", o.activation);
  f.Field("use_bias", o.use_bias);
  KernelFields(f, o);
  f.Field("recurrent_initializer", o.recurrent_initializer);
  f.Field("recurrent_regularizer", o.recurrent_regularizer);
  f.Field("recurrent_constraint", o.recurrent_constraint);
}

// How a recurrent layer goes through its sequences.
template <typename Options>
void SequenceFields(ConfigFields& f, Options& o) {
  f.Field("return_sequences", o.return_sequences);
  f.Field("return_state", o.return_state);
  f.Field("go_backwards", o.go_backwards);
  f.Field("stateful", o.stateful);
}

template <typename Options>
WeightOptions KernelOf(const Options& o) {
  return {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint};
}
template <typename Options>
WeightOptions BiasOf(const Options& o) {
  return {o.bias_initializer, o.bias_regularizer, o.bias_constraint};
}
template <typename Options>
WeightOptions RecurrentOf(const Options& o) {
  return {o.recurrent_initializer, o.recurrent_regularizer, o.recurrent_constraint};
}

}  // namespace weft::estimator
