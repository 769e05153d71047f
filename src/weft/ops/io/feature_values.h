// SPDX-License-Identifier: Apache-2.0
// The values of a Feature, of one of three types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "proto/tensorflow/example.pb.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::io {

// int64 of one that has no values of any type.
inline DType TypeOf(const tensorflow::Feature& feature) {
  if (feature.has_bytes_list()) return DType::kString;
  return feature.has_float_list() ? DType::kFloat : DType::kInt64;
}

inline int64_t CountOf(const tensorflow::Feature& feature) {
  if (feature.has_bytes_list()) return feature.bytes_list().value_size();
  return feature.has_float_list() ? feature.float_list().value_size()
                                  : feature.int64_list().value_size();
}

// `to` has the type, and room for the values from element `at` on.
inline void CopyValues(const tensorflow::Feature& feature, Tensor* to, int64_t at) {
  const auto copy = [&]<typename T>(const auto& list) {
    std::copy(list.value().begin(), list.value().end(), to->data<T>() + at);
  };
  if (feature.has_bytes_list()) copy.template operator()<std::string>(feature.bytes_list());
  if (feature.has_float_list()) copy.template operator()<float>(feature.float_list());
  if (feature.has_int64_list()) copy.template operator()<int64_t>(feature.int64_list());
}

}  // namespace weft::ops::io
