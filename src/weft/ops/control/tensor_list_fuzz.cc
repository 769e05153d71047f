// SPDX-License-Identifier: Apache-2.0
// Any bytes as a list of tensors that came from elsewhere: refused, or read and written again.
#include <cstdint>
#include <string>

#include "weft/ops/control/tensor_list_kernel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // How many elements come with them, one of them a list in the list.
  std::vector<weft::Tensor> elements(data[0] % 4, weft::Tensor::Scalar<float>(1));
  if (data[0] % 8 == 7) elements[0] = weft::Tensor::Scalar(weft::Variant{});
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto list = weft::ops::TensorListFromBytes(bytes, elements);
  if (!list.ok()) return 0;
  const auto written = (*list)->Encode();
  if (!written.ok()) __builtin_trap();
  const auto again = weft::ops::TensorListFromBytes(*written, (*list)->EncodeTensors());
  if (!again.ok() || (*again)->length() != (*list)->length()) __builtin_trap();
  return 0;
}
