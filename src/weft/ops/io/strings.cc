// SPDX-License-Identifier: Apache-2.0
// Strings, element by element: case, length, parts, hashes.
#include <cctype>
#include <clocale>
#include <cstdint>
#include <cwctype>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/code_points_kernel.h"
#include "weft/ops/io/utf8.h"

namespace weft::ops::io::strings {
namespace {

// Base of kernels whose output has the shape of input 0: `Derived` has Apply(const std::string&,
// Out*).
template <typename Derived, typename Out>
class MapKernel : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      static_cast<const Derived*>(this)->Apply(input.data<std::string>()[i],
                                               output->data<Out>() + i);
    }
    return absl::OkStatus();
  }
};

class StripKernel final : public MapKernel<StripKernel, std::string> {
 public:
  void Apply(const std::string& text, std::string* out) const {
    *out = std::string(absl::StripAsciiWhitespace(text));
  }
};

// ASCII letters, or with encoding utf-8 all that have another case, by the C library's tables.
template <bool upper>
class CaseKernel final : public MapKernel<CaseKernel<upper>, std::string> {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const std::string encoding = c.AttrOr<std::string>("encoding", "");
    if (encoding.empty()) return std::make_unique<CaseKernel>(locale_t{});
    if (encoding != "utf-8") {
      return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
    }
    // One for the life of the process.
    static const locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (letters == locale_t{}) return Unimplemented("This machine has no locale C.UTF-8");
    return std::make_unique<CaseKernel>(letters);
  }
  explicit CaseKernel(locale_t letters) : letters_(letters) {}

  void Apply(const std::string& text, std::string* out) const {
    if (letters_ == locale_t{}) {
      *out = upper ? absl::AsciiStrToUpper(text) : absl::AsciiStrToLower(text);
      return;
    }
    out->clear();
    absl::string_view rest = text;
    while (!rest.empty()) {
      constexpr wint_t kReplacement = 0xfffd;
      const CodePoint found = FirstCodePoint(Encoding::kUtf8, rest);
      rest.remove_prefix(found.length);
      const wint_t letter = found.is_good ? static_cast<wint_t>(found.value) : kReplacement;
      AppendCodePoint(
          Encoding::kUtf8,
          static_cast<int32_t>(upper ? towupper_l(letter, letters_) : towlower_l(letter, letters_)),
          out);
    }
  }

 private:
  const locale_t letters_;
};

class LengthKernel final : public MapKernel<LengthKernel, int32_t> {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<LengthKernel>(c.AttrOr<std::string>("unit", "BYTE") == "UTF8_CHAR");
  }
  explicit LengthKernel(bool characters) : characters_(characters) {}
  void Apply(const std::string& text, int32_t* out) const {
    *out = static_cast<int32_t>(characters_ ? CountUtf8(text) : static_cast<int64_t>(text.size()));
  }

 private:
  const bool characters_;
};

class SubstrKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<SubstrKernel>(c.AttrOr<std::string>("unit", "BYTE") == "UTF8_CHAR");
  }
  explicit SubstrKernel(bool characters) : characters_(characters) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (c.input(1).shape() != c.input(2).shape()) {
      return InvalidArgument("pos and len should have the same shape, got: ",
                             c.input(1).shape().ToString(), " vs. ", c.input(2).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(input.shape(), c.input(1).shape()));
    const bool broadcasts = !c.input(1).shape().IsScalar() && input.shape() != c.input(1).shape();
    if (broadcasts && shape.rank() > 2) {
      return Unimplemented("Substr broadcast not implemented for ", shape.rank(), " dimensions");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const std::string& text = input.data<std::string>()[Source(shape, i, input.shape())];
      const int64_t k = Source(shape, i, c.input(1).shape());
      const int64_t position = Integer(c.input(1), k);
      const auto part = characters_ ? Utf8Part(text, position, Integer(c.input(2), k))
                                    : BytePart(text, position, Integer(c.input(2), k));
      if (!part.ok()) {
        return InvalidArgument("pos ", position, " out of range for string at index ", i);
      }
      output->data<std::string>()[i] = std::string(*part);
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Integer(const Tensor& tensor, int64_t i) {
    return tensor.dtype() == DType::kInt32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i];
  }

  // Where element `i` of the broadcast shape stands in a tensor of shape `own`.
  static int64_t Source(const Shape& shape, int64_t i, const Shape& own) {
    int64_t at = 0, stride = 1;
    for (int d = own.rank() - 1, s = shape.rank() - 1; d >= 0; --d, --s) {
      if (own.dim(d) != 1) at += (i % shape.dim(s)) * stride;
      i /= shape.dim(s);
      stride *= own.dim(d);
    }
    return at;
  }

  const bool characters_;
};

void RegisterParts(Catalogue& catalogue) {
  catalogue.Add(OpSpec("StringLength")
                    .Doc("Length of each string in bytes, or in UTF-8 characters.")
                    .Input("input: string")
                    .Output("output: int32")
                    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<LengthKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("Substr")
          .Doc("`len` bytes or characters of each string from `pos` on, which counts from the "
               "end below 0.\nShapes broadcast. InvalidArgument if pos lies outside.")
          .Input("input: string")
          .Input("pos: T")
          .Input("len: T")
          .Output("output: string")
          .Attr("T: {int32, int64}")
          .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
          .Shape(shapes::Broadcast)
          .NoGradient()
          .Kernel(MakeKernel<SubstrKernel>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("StringStrip")
                    .Doc("Each string without white space at its ends.")
                    .Input("input: string")
                    .Output("output: string")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<StripKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("StringLower")
          .Doc("Each string in lower case: its ASCII letters, or with encoding utf-8 all.")
          .Input("input: string")
          .Output("output: string")
          .Attr("encoding: string = ''")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<CaseKernel<false>>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("StringUpper")
          .Doc("Each string in upper case: its ASCII letters, or with encoding utf-8 all.")
          .Input("input: string")
          .Output("output: string")
          .Attr("encoding: string = ''")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<CaseKernel<true>>(), KernelCost::kInline));
  RegisterParts(catalogue);
}

}  // namespace weft::ops::io::strings
