// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "weft/c_api/handles.h"

namespace weft::c_api {

weft_error* ErrorOf(const Status& status) {
  if (status.ok()) return nullptr;
  return new weft_error{static_cast<int>(status.code()), std::string(status.message())};
}

Status NotNull(const void* argument, const char* name) {
  if (argument != nullptr) return absl::OkStatus();
  return InvalidArgument("NULL where ", name, " were expected");
}

Status GiveTensor(const Tensor& tensor, weft_tensor** out) {
  WEFT_ASSIGN_OR_RETURN(Tensor on_host, tensor.ToHost());
  *out = new weft_tensor{std::move(on_host)};
  return absl::OkStatus();
}

namespace {

StatusOr<Shape> ShapeOf(const int64_t* dims, int rank) {
  if (rank < 0) return InvalidArgument("A rank of ", rank);
  if (rank > 0) WEFT_RETURN_IF_ERROR(NotNull(dims, "sizes"));
  return Shape::Make(absl::MakeConstSpan(dims, static_cast<size_t>(rank)));
}

StatusOr<Tensor> MakeTensor(int number, const int64_t* dims, int rank, const void* data,
                            size_t bytes) {
  if (number <= 0 || number >= kNumDTypes || !IsPlain(static_cast<DType>(number)))
    return InvalidArgument("No dtype of plain elements has the number ", number);
  WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(dims, rank));
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(static_cast<DType>(number), shape));
  if (bytes != tensor.size_bytes())
    return InvalidArgument("A tensor ", shape.ToString(), " of ", DTypeName(tensor.dtype()),
                           " has ", tensor.size_bytes(), " bytes, got ", bytes);
  if (bytes == 0) return tensor;
  WEFT_RETURN_IF_ERROR(NotNull(data, "elements"));
  std::memcpy(tensor.bytes(), data, bytes);
  return tensor;
}

StatusOr<Tensor> MakeStrings(const int64_t* dims, int rank, const char* const* strings,
                             const size_t* sizes) {
  WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(dims, rank));
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Zeros(DType::kString, shape));
  if (tensor.num_elements() > 0) WEFT_RETURN_IF_ERROR(NotNull(strings, "strings"));
  auto* const elements = tensor.data<std::string>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    WEFT_RETURN_IF_ERROR(NotNull(strings[i], "strings"));
    elements[i] = sizes == nullptr ? std::string(strings[i]) : std::string(strings[i], sizes[i]);
  }
  return tensor;
}

}  // namespace
}  // namespace weft::c_api

using weft::DType;
using weft::c_api::Answer;

const char* weft_version(void) { return WEFT_VERSION; }

int weft_error_code(const weft_error* error) { return error == nullptr ? 0 : error->code; }
const char* weft_error_message(const weft_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
void weft_error_free(weft_error* error) { delete error; }

weft_error* weft_tensor_new(int dtype, const int64_t* dims, int rank, const void* data,
                            size_t bytes, weft_tensor** out) {
  return Answer([&]() -> weft::Status {
    WEFT_RETURN_IF_ERROR(weft::c_api::NotNull(out, "results"));
    WEFT_ASSIGN_OR_RETURN(weft::Tensor tensor,
                          weft::c_api::MakeTensor(dtype, dims, rank, data, bytes));
    *out = new weft_tensor{std::move(tensor)};
    return absl::OkStatus();
  });
}

weft_error* weft_tensor_strings(const int64_t* dims, int rank, const char* const* strings,
                                const size_t* sizes, weft_tensor** out) {
  return Answer([&]() -> weft::Status {
    WEFT_RETURN_IF_ERROR(weft::c_api::NotNull(out, "results"));
    WEFT_ASSIGN_OR_RETURN(weft::Tensor tensor,
                          weft::c_api::MakeStrings(dims, rank, strings, sizes));
    *out = new weft_tensor{std::move(tensor)};
    return absl::OkStatus();
  });
}

void weft_tensor_free(weft_tensor* tensor) { delete tensor; }

int weft_tensor_dtype(const weft_tensor* tensor) {
  return tensor == nullptr ? 0 : static_cast<int>(tensor->tensor.dtype());
}
int weft_tensor_rank(const weft_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->tensor.rank();
}
int64_t weft_tensor_dim(const weft_tensor* tensor, int axis) {
  if (tensor == nullptr || axis < 0 || axis >= tensor->tensor.rank()) return -1;
  return tensor->tensor.dim(axis);
}
int64_t weft_tensor_elements(const weft_tensor* tensor) {
  return tensor == nullptr ? 0 : tensor->tensor.num_elements();
}
const void* weft_tensor_data(const weft_tensor* tensor) {
  if (tensor == nullptr || !weft::IsPlain(tensor->tensor.dtype())) return nullptr;
  return tensor->tensor.bytes();
}
size_t weft_tensor_bytes(const weft_tensor* tensor) {
  return weft_tensor_data(tensor) == nullptr ? 0 : tensor->tensor.size_bytes();
}
const char* weft_tensor_string(const weft_tensor* tensor, int64_t index, size_t* size) {
  if (tensor == nullptr || tensor->tensor.dtype() != DType::kString || index < 0 ||
      index >= tensor->tensor.num_elements()) {
    return nullptr;
  }
  const std::string& text = tensor->tensor.data<std::string>()[index];
  if (size != nullptr) *size = text.size();
  return text.c_str();
}
