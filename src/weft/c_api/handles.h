// SPDX-License-Identifier: Apache-2.0
// What the handles of weft_c.h hold, and how a function of C answers.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/status.h"
#include "weft/c_api/weft_c.h"
#include "weft/tensor/tensor.h"

struct weft_error {
  int code;
  std::string message;
};

struct weft_tensor {
  weft::Tensor tensor;
};

namespace weft::c_api {

// Null for OK.
weft_error* ErrorOf(const Status& status);

// What `body`, which gives a Status, says. No exception comes out.
template <typename Body>
weft_error* Answer(Body body) {
  try {
    return ErrorOf(body());
  } catch (...) {
    return ErrorOf(StatusOfException());
  }
}

// InvalidArgument names the argument that is null.
Status NotNull(const void* argument, const char* name);
// A list of `count` names or handles, none of them null.
template <typename T>
Status CheckList(T* const* list, int count, const char* name) {
  if (count < 0) return InvalidArgument("The number of ", name, " is ", count);
  if (count == 0) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(NotNull(list, name));
  for (int i = 0; i < count; ++i) WEFT_RETURN_IF_ERROR(NotNull(list[i], name));
  return absl::OkStatus();
}
// A handle on the tensor, which is brought to the host; null after an error.
Status GiveTensor(const Tensor& tensor, weft_tensor** out);

}  // namespace weft::c_api
