// SPDX-License-Identifier: Apache-2.0
// An op for the libraries of these tests.
#pragma once

#include "weft/kernel/op_library.h"

class TwiceKernel final : public weft::OpKernel {
 public:
  weft::Status Compute(weft::KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(weft::Tensor * y, c.AllocateOutput(0, c.input(0).shape()));
    for (int64_t i = 0; i < y->num_elements(); ++i) {
      y->data<float>()[i] = 2 * c.input(0).data<float>()[i];
    }
    return absl::OkStatus();
  }
};

inline weft::OpSpec Twice(const char* name) {
  weft::OpSpec spec(name);
  spec.Doc("Doubles x.").Input("x: float").Output("y: float").Shape(weft::shapes::SameAsInput);
  spec.NoGradient();
  return spec;
}
