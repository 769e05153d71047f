// SPDX-License-Identifier: Apache-2.0
// Numbers as strings, and back.
#include <memory>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::string_numbers {
namespace {

// How AsString writes: what printf calls flag, width, precision and conversion.
struct Format {
  std::string fill;
  int width = -1;
  int precision = -1;
  char real = 'f';

  template <typename T>
  std::string Real(T value) const {
    return Written(Text(real, precision), static_cast<double>(value));
  }
  template <typename T>
  std::string Whole(T value) const {
    return Written(Text('d', -1), value);
  }
  std::string Word(const std::string& value) const { return Written(Text('s', -1), value); }

 private:
  template <typename T>
  static std::string Written(const std::string& format, const T& value) {
    std::string text;
    absl::FormatUntyped(&text, absl::UntypedFormatSpec(format), {absl::FormatArg(value)});
    return text;
  }

  std::string Text(char conversion, int digits) const {
    std::string text = absl::StrCat("%", conversion == 's' && fill != "-" ? "" : fill);
    if (width >= 0) absl::StrAppend(&text, width);
    if (digits >= 0) absl::StrAppend(&text, ".", digits);
    text.push_back(conversion);
    return text;
  }
};

class AsStringKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("T"));
    Format format;
    format.fill = c.AttrOr<std::string>("fill", "");
    format.width = static_cast<int>(c.AttrOr<int64_t>("width", -1));
    format.precision = static_cast<int>(c.AttrOr<int64_t>("precision", -1));
    const bool scientific = c.AttrOr("scientific", false);
    const bool shortest = c.AttrOr("shortest", false);
    format.real = scientific ? 'e' : (shortest ? 'g' : 'f');
    if (scientific && shortest) {
      return InvalidArgument("Cannot select both scientific and shortest notation");
    }
    if (!IsFloating(dtype) && !IsComplex(dtype) && (scientific || shortest)) {
      return InvalidArgument("scientific and shortest format not supported for datatype ",
                             DTypeName(dtype));
    }
    if (!IsFloating(dtype) && !IsComplex(dtype) && format.precision >= 0) {
      return InvalidArgument("precision not supported for datatype ", DTypeName(dtype));
    }
    if (format.fill.size() > 1) {
      return InvalidArgument("Fill string must be one or fewer characters");
    }
    if (!format.fill.empty() &&
        absl::string_view(" +-0#").find(format.fill) == absl::string_view::npos) {
      return InvalidArgument("Fill argument not supported: ", format.fill);
    }
    constexpr int kMost = 10'000;  // wider ones could fill the memory
    if (format.width > kMost || format.precision > kMost) {
      return InvalidArgument("width and precision must be at most ", kMost, ", got ", format.width,
                             " and ", format.precision);
    }
    return std::make_unique<AsStringKernel>(std::move(format));
  }
  explicit AsStringKernel(Format format) : format_(std::move(format)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    std::string* const out = output->data<std::string>();
    const int64_t n = input.num_elements();
    const bool known = VisitDType(
        input.dtype(),
        TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
                 uint16_t, uint32_t, uint64_t, Complex64, Complex128, bool, std::string>{},
        [&]<typename T>() {
          for (int64_t i = 0; i < n; ++i) out[i] = Write(input.data<T>()[i]);
        });
    if (known) return absl::OkStatus();
    return Unimplemented("AsString of ", DTypeName(input.dtype()));
  }

 private:
  template <typename T>
  std::string Write(const T& value) const {
    if constexpr (std::is_same_v<T, std::string>) {
      return format_.Word(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";  // of whatever width
    } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
      return absl::StrCat("(", format_.Real(value.real()), ",", format_.Real(value.imag()), ")");
    } else if constexpr (std::is_integral_v<T>) {
      return format_.Whole(value);
    } else {
      return format_.Real(
          static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
    }
  }

  const Format format_;
};

bool Parse(absl::string_view text, float* value) { return absl::SimpleAtof(text, value); }
bool Parse(absl::string_view text, double* value) { return absl::SimpleAtod(text, value); }
template <typename T>
bool Parse(absl::string_view text, T* value) {
  return absl::SimpleAtoi(text, value);
}

class ToNumberKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    Status status;
    VisitDType(output->dtype(), TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t>{},
               [&]<typename T>() {
                 for (int64_t i = 0; i < input.num_elements(); ++i) {
                   const std::string& text = input.data<std::string>()[i];
                   if (Parse(text, output->data<T>() + i)) continue;
                   status = InvalidArgument("StringToNumberOp could not correctly convert string: ",
                                            text);
                   return;
                 }
               });
    return status;
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("AsString")
          .Doc("Writes each element as printf would: %f, or %e (scientific), or %g (shortest); "
               "integers %d.\nInvalidArgument for formats that the type does not have.")
          .Input("input: T")
          .Output("output: string")
          .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                "uint32, "
                "uint64, complex64, complex128, bool, variant, string}")
          .Attr("precision: int = -1")
          .Attr("scientific: bool = false")
          .Attr("shortest: bool = false")
          .Attr("width: int = -1")
          .Attr("fill: string = ''")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<AsStringKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("StringToNumber")
          .Doc("Reads each string as a number.\nInvalidArgument names the string that is none.")
          .Input("string_tensor: string")
          .Output("output: out_type")
          .Attr("out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<ToNumberKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::string_numbers
