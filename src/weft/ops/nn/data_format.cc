// SPDX-License-Identifier: Apache-2.0
// Translating dimension numbers and sizes from one image layout to another.
#include <algorithm>
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::nn::data_format {
namespace {

struct Formats {
  std::string source;
  std::string target;

  static StatusOr<Formats> FromAttrs(const AttrMap& attrs) {
    Formats f;
    WEFT_ASSIGN_OR_RETURN(f.source, FindAttr<std::string>(attrs, "src_format"));
    WEFT_ASSIGN_OR_RETURN(f.target, FindAttr<std::string>(attrs, "dst_format"));
    if ((f.source.size() != 4 && f.source.size() != 5) || f.source.size() != f.target.size()) {
      return InvalidArgument(
          "Source and destination formats must be of length 4 or 5, received src_format = ",
          f.source, ", dst_format = ", f.target);
    }
    for (const std::string* text : {&f.source, &f.target}) {
      std::string sorted = *text;
      std::sort(sorted.begin(), sorted.end());
      std::string expected = f.source;
      std::sort(expected.begin(), expected.end());
      if (sorted != expected || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        return InvalidArgument("Destination and source format must determine a permutation, got ",
                               f.source, " and ", f.target);
      }
    }
    return f;
  }
};

// Dimension x of the source is dimension y of the target.
class DimMapKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(Formats formats, Formats::FromAttrs(c.call().attrs()));
    return std::make_unique<DimMapKernel>(std::move(formats));
  }
  explicit DimMapKernel(Formats formats) : formats_(std::move(formats)) {}
  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const auto rank = static_cast<int64_t>(formats_.source.size());
    IndexVector mapped;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t dim = IndexAt(x, i);
      if (dim < -rank || dim >= rank) {
        return InvalidArgument("Dimension must be in [", -rank, ", ", rank, "), got ", dim);
      }
      mapped.push_back(
          static_cast<int64_t>(formats_.target.find(formats_.source[dim < 0 ? dim + rank : dim])));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
    return StoreIndices(mapped, y);
  }

 private:
  const Formats formats_;
};

// Sizes (or pairs) in the source's order, reordered to the target's; without batch and channels if
// there are two less.
class VecPermuteKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(Formats formats, Formats::FromAttrs(c.call().attrs()));
    return std::make_unique<VecPermuteKernel>(std::move(formats));
  }
  explicit VecPermuteKernel(Formats formats) : formats_(std::move(formats)) {}
  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    if (x.rank() != 1 && x.rank() != 2) {
      return InvalidArgument("input must be a vector or 2D tensor, but got shape ",
                             x.shape().ToString());
    }
    const auto full = static_cast<int64_t>(formats_.source.size());
    if (x.dim(0) != full && x.dim(0) != full - 2) {
      return InvalidArgument("1D or 2D input must have size ", full, " or ", full - 2,
                             " in its first dimension, got ", x.shape().ToString());
    }
    if (x.rank() == 2 && x.dim(1) != 2) {
      return InvalidArgument("Second dimension of 2D input must be of size 2, but got shape ",
                             x.shape().ToString());
    }
    std::string source = formats_.source;
    std::string target = formats_.target;
    if (x.dim(0) == full - 2) {
      for (std::string* text : {&source, &target}) {
        text->erase(std::remove_if(text->begin(), text->end(),
                                   [](char ch) { return ch == 'N' || ch == 'C'; }),
                    text->end());
      }
      if (static_cast<int64_t>(source.size()) != full - 2) {
        return InvalidArgument("Formats without N and C do not fit the input: ", formats_.source);
      }
    }
    const int64_t width = x.rank() == 2 ? 2 : 1;
    IndexVector permuted;
    for (const char ch : target) {
      for (int64_t i = 0; i < width; ++i) {
        permuted.push_back(IndexAt(x, static_cast<int64_t>(source.find(ch)) * width + i));
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
    return StoreIndices(permuted, y);
  }

 private:
  const Formats formats_;
};

void Add(Catalogue& catalogue, const char* name, const char* doc, KernelFactory factory) {
  catalogue.Add(OpSpec(name)
                    .Doc(doc)
                    .Input("x: T")
                    .HostInput("x")
                    .Output("y: T")
                    .HostOutput("y")
                    .Attr("T: {int32, int64} = DT_INT32")
                    .Attr("src_format: string = 'NHWC'")
                    .Attr("dst_format: string = 'NCHW'")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(std::move(factory), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add(catalogue, "DataFormatDimMap",
      "Returns the numbers that dimensions `x` of the source layout have in the other.",
      MakeKernel<DimMapKernel>());
  Add(catalogue, "DataFormatVecPermute",
      "Reorders sizes of the source layout to those of the other.", MakeKernel<VecPermuteKernel>());
}

}  // namespace weft::ops::nn::data_format
