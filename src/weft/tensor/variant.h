// SPDX-License-Identifier: Apache-2.0
// The element of a `variant` tensor: any value that knows its name and how it travels.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/ref.h"
#include "base/status.h"

namespace weft {

class Tensor;

// A value inside a variant tensor (tensor list, optional, dataset). Immutable once shared.
class VariantValue : public RefCounted {
 public:
  virtual absl::string_view type_name() const = 0;
  // Bytes for VariantTensorDataProto.metadata; Unimplemented where it cannot leave a process.
  virtual StatusOr<std::string> Encode() const {
    return Unimplemented("Variant of type ", type_name(), " cannot be serialized");
  }
  // What of the value travels as tensors beside those bytes (the elements of a tensor list).
  virtual std::vector<Tensor> EncodeTensors() const;
};

struct Variant {
  Ref<VariantValue> value;
};

}  // namespace weft
