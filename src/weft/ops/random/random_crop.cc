// SPDX-License-Identifier: Apache-2.0
// Parts of pictures at random places; and random integers that no seed repeats.
#include <random>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/random/philox_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::random_crop {
namespace {

class CropKernel final : public OpKernel {
 public:
  explicit CropKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    const Tensor image = c.input(0), size = c.input(1);
    if (image.rank() != 3) {
      return InvalidArgument("input must be 3-dimensional, got shape ", image.shape().ToString());
    }
    if (size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("size must be a vector of two elements, got shape ",
                             size.shape().ToString());
    }
    const int64_t height = size.data<int64_t>()[0], width = size.data<int64_t>()[1];
    if (height < 0 || width < 0) {
      return InvalidArgument("size must not be negative: ", height, ", ", width);
    }
    if (image.dim(1) < width || image.dim(0) < height) {
      return FailedPrecondition("The picture of shape ", image.shape().ToString(),
                                " must be at least as large as the part, [", height, ",", width,
                                "]");
    }
    const int64_t channels = image.dim(2);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{height, width, channels}));
    PhiloxWords words(generator_.Reserve(1));
    const int64_t spare_width = image.dim(1) - width, spare_height = image.dim(0) - height;
    const int64_t left = spare_width > 0 ? words.Next() % (spare_width + 1) : 0;
    const int64_t top = spare_height > 0 ? words.Next() % (spare_height + 1) : 0;
    for (int64_t y = 0; y < height; ++y) {
      CopyElements(image, ((y + top) * image.dim(1) + left) * channels, width * channels, out,
                   y * width * channels);
    }
    return absl::OkStatus();
  }

 private:
  GuardedPhilox generator_;
};

class NonDeterministicKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(0), "shape"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    std::random_device entropy;
    const auto number = [&entropy] { return uint64_t{entropy()} << 32 | entropy(); };
    const uint64_t seed = number(), seed2 = number();
    return FillWords(c, Philox(seed, seed2), *out);
  }
};

Status CropShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape image, c.WithRank(0, 3));
  WEFT_ASSIGN_OR_RETURN(const PartialShape size, c.ShapeFromInput(1));
  if (size.known_rank() && size.rank() != 2) {
    return InvalidArgument("size must have 2 elements, but has ", size.rank());
  }
  c.set_output(0, PartialShape({size.dim(0), size.dim(1), image.dim(2)}));
  return absl::OkStatus();
}

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RandomCrop")
                    .Doc("A part of a picture, [height, width, channels], of this height and "
                         "width at a random place.\nFailedPrecondition if the picture is smaller.")
                    .Input("image: T")
                    .Input("size: int64")
                    .HostInput("size")
                    .Output("output: T")
                    .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Stateful()
                    .Deprecated(8, "Random crop is now pure Python")
                    .Shape(CropShape)
                    .NoGradient()
                    .Kernel(MakeKernel<CropKernel>()));
  catalogue.Add(OpSpec("NonDeterministicInts")
                    .Doc("Integers that the machine's own source of randomness gives.")
                    .Input("shape: shape_dtype")
                    .HostInput("shape")
                    .Output("output: dtype")
                    .Attr("dtype: type = DT_INT64")
                    .Attr("shape_dtype: type = DT_INT64")
                    .Stateful()
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel({.types = {{"dtype", DTypesOf<int32_t, int64_t, uint32_t, uint64_t>()},
                                       {"shape_dtype", DTypesOf<int32_t, int64_t>()}},
                             .factory = MakeKernel<NonDeterministicKernel>()}));
}

}  // namespace weft::ops::random::random_crop
