// SPDX-License-Identifier: Apache-2.0
// What ops take and give when they run at once.
#pragma once

#include <cstdint>
#include <utility>

#include "weft/graph/graph.h"
#include "weft/tensor/tensor.h"

namespace weft::imperative {

// A value and its identity, by which tapes know it: copies are the same array, two arrays of equal
// values are not. While a function is traced, what stands in it has no value yet. A cheap handle;
// may be copied on any thread.
class Array {
 public:
  Array() = default;  // nothing
  explicit Array(Tensor value) : tensor_(std::move(value)), id_(NextId()) {}
  // A tensor of a function that is being traced.
  explicit Array(Endpoint traced) : endpoint_(traced), id_(NextId()) {}
  template <typename T>
  static Array Scalar(T value) {
    return Array(Tensor::Scalar<T>(value));
  }
  template <typename T>
  static Array Vector(std::initializer_list<T> values) {
    return Array(Tensor::Vector<T>(values));
  }

  explicit operator bool() const { return id_ != 0; }
  // The value; not initialized for nothing, and while it is traced.
  const Tensor& tensor() const { return tensor_; }
  bool is_traced() const { return endpoint_.node != nullptr; }
  const Endpoint& endpoint() const { return endpoint_; }
  int64_t id() const { return id_; }
  DType dtype() const {
    return is_traced() ? endpoint_.node->output_type(endpoint_.port).dtype : tensor_.dtype();
  }

 private:
  static int64_t NextId();

  Tensor tensor_;
  Endpoint endpoint_;
  int64_t id_ = 0;
};

}  // namespace weft::imperative
