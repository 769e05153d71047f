// SPDX-License-Identifier: Apache-2.0
// Constants whose bytes lie in a file.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::array::immutable_const {
namespace {

class FileConstKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
    WEFT_ASSIGN_OR_RETURN(std::string path, c.Attr<std::string>("memory_region_name"));
    if (!IsPlain(dtype)) {
      return InvalidArgument("Sorry, DT_STRING is not currently supported for ImmutableConst: ",
                             "dtype is ", DTypeName(dtype));
    }
    WEFT_ASSIGN_OR_RETURN(Shape known, shape.ToShape());
    return std::make_unique<FileConstKernel>(dtype, std::move(known), std::move(path));
  }
  FileConstKernel(DType dtype, Shape shape, std::string path)
      : dtype_(dtype), shape_(std::move(shape)), path_(std::move(path)) {}

  Status Compute(KernelContext& c) override {
    absl::MutexLock lock(&mutex_);
    if (!value_.IsInitialized()) {
      WEFT_ASSIGN_OR_RETURN(value_, Load(c));
    }
    c.SetOutput(0, value_);
    return absl::OkStatus();
  }

 private:
  StatusOr<Tensor> Load(const KernelContext& c) const {
    if (c.environment().files == nullptr) {
      return FailedPrecondition("This session has no file system");
    }
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(*c.environment().files, path_));
    WEFT_ASSIGN_OR_RETURN(
        const int64_t size,
        MultiplySizes(shape_.num_elements(), static_cast<int64_t>(DTypeSize(dtype_))));
    if (static_cast<int64_t>(bytes.size()) < size) {
      return OutOfRange("The file ", path_, " has ", bytes.size(), " bytes, but a constant of ",
                        DTypeName(dtype_), " ", shape_.ToString(), " needs ", size);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype_, shape_));
    std::memcpy(value.bytes(), bytes.data(), static_cast<size_t>(size));
    return value;
  }

  const DType dtype_;
  const Shape shape_;
  const std::string path_;
  absl::Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
};

Status AttrShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ImmutableConst")
                    .Doc("A tensor whose bytes are the first of the file memory_region_name, read "
                         "when it is first needed.\nOutOfRange if the file is too short.")
                    .Output("tensor: dtype")
                    .Attr("dtype: type")
                    .Attr("shape: shape")
                    .Attr("memory_region_name: string")
                    .Shape(AttrShape)
                    .NoGradient()
                    .Kernel(MakeKernel<FileConstKernel>(), KernelCost::kBlocking));
}

}  // namespace weft::ops::array::immutable_const
