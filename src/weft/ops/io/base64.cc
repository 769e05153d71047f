// SPDX-License-Identifier: Apache-2.0
// Strings in the web-safe form of base64.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::base64 {
namespace {

class EncodeKernel final : public OpKernel {
 public:
  explicit EncodeKernel(KernelConstruction& c) : pads_(c.AttrOr<bool>("pad", false)) {}
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      std::string text = absl::WebSafeBase64Escape(input.data<std::string>()[i]);
      while (pads_ && text.size() % 4 != 0) text.push_back('=');
      out->data<std::string>()[i] = std::move(text);
    }
    return absl::OkStatus();
  }

 private:
  const bool pads_;
};

// True for letters of the alphabet, then at most as many '=' as fill up the last group of four.
bool IsWellFormed(absl::string_view text) {
  const size_t whole = text.size();
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  const size_t padding = whole - text.size();
  if (text.size() % 4 == 1 || padding > 2 || (padding > 0 && whole % 4 != 0)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

class DecodeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      const std::string& text = input.data<std::string>()[i];
      const bool good =
          IsWellFormed(text) && absl::WebSafeBase64Unescape(text, &out->data<std::string>()[i]);
      if (good) continue;
      return InvalidArgument("Invalid character or length found in base64 of element ", i);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("EncodeBase64")
                    .Doc("Each string in web-safe base64, filled up with '=' if `pad`.")
                    .Input("input: string")
                    .Output("output: string")
                    .Attr("pad: bool = false")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<EncodeKernel>()));
  catalogue.Add(OpSpec("DecodeBase64")
                    .Doc("The strings that web-safe base64 tells, with or without '=' at their "
                         "ends.\nInvalidArgument for anything else.")
                    .Input("input: string")
                    .Output("output: string")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeKernel>()));
}

}  // namespace weft::ops::io::base64
