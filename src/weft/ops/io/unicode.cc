// SPDX-License-Identifier: Apache-2.0
// Strings as code points and back, and in other encodings.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/io/code_points_kernel.h"

namespace weft::ops::io::unicode {
namespace {

// What becomes of malformed characters: attributes errors and replacement_char, and, where an op
// has it, replace_control_characters, which counts those below 32 among them.
struct Repair {
  bool is_strict = false;
  bool ignores = false;
  bool takes_controls = false;
  int32_t replacement = 0xFFFD;

  static StatusOr<Repair> Of(const KernelConstruction& c) {
    const auto errors = c.AttrOr<std::string>("errors", "replace");
    const auto value = c.AttrOr<int64_t>("replacement_char", 0xFFFD);
    if (value < 0 || value > 0x10FFFF || !IsCharacter(static_cast<int32_t>(value))) {
      return InvalidArgument("replacement_char out of unicode codepoint range: ", value);
    }
    return Repair{errors == "strict", errors == "ignore",
                  c.AttrOr<bool>("replace_control_characters", false), static_cast<int32_t>(value)};
  }
};

// Calls visit(value, offset in bytes) for each character. InvalidArgument for a malformed one if
// errors are.
template <typename Visit>
Status ForEachCharacter(Encoding encoding, const Repair& repair, const std::string& text,
                        const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = FirstCodePoint(encoding, absl::string_view(text).substr(at));
    if (!next.is_good && repair.is_strict) {
      return InvalidArgument("Invalid formatting on input string at byte ", at);
    }
    if (next.is_good && !(repair.takes_controls && next.value <= 0x1F)) {
      visit(next.value, at);
    } else if (!repair.ignores) {
      visit(repair.replacement, at);
    }
    at += next.length;
  }
  return absl::OkStatus();
}

class InputKernel : public OpKernel {
 public:
  InputKernel(Encoding encoding, const Repair& repair) : encoding_(encoding), repair_(repair) {}

 protected:
  const Encoding encoding_;
  const Repair repair_;
};

class DecodeKernel final : public InputKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Encoding encoding,
                          EncodingByName(c.AttrOr<std::string>("input_encoding", "")));
    WEFT_ASSIGN_OR_RETURN(const Repair repair, Repair::Of(c));
    return std::make_unique<DecodeKernel>(encoding, repair);
  }
  using InputKernel::InputKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    std::vector<int32_t> values;
    std::vector<int64_t> splits = {0}, starts;
    for (const std::string& text : input.span<std::string>()) {
      WEFT_RETURN_IF_ERROR(
          ForEachCharacter(encoding_, repair_, text, [&](int32_t value, size_t at) {
            values.push_back(value);
            starts.push_back(static_cast<int64_t>(at));
          }));
      splits.push_back(static_cast<int64_t>(values.size()));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * rows,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(splits.size())}));
    WEFT_RETURN_IF_ERROR(StoreIndices(splits, rows));
    const Shape shape{static_cast<int64_t>(values.size())};
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(1, shape));
    std::copy(values.begin(), values.end(), out->data<int32_t>());
    if (c.num_outputs() == 2) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(Tensor * offsets, c.AllocateOutput(2, shape));
    return StoreIndices(starts, offsets);
  }
};

class TranscodeKernel final : public InputKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Encoding from,
                          EncodingByName(c.AttrOr<std::string>("input_encoding", "")));
    WEFT_ASSIGN_OR_RETURN(const Encoding to,
                          EncodingByName(c.AttrOr<std::string>("output_encoding", "")));
    WEFT_ASSIGN_OR_RETURN(const Repair repair, Repair::Of(c));
    return std::make_unique<TranscodeKernel>(from, to, repair);
  }
  TranscodeKernel(Encoding from, Encoding to, const Repair& repair)
      : InputKernel(from, repair), to_(to) {}
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      std::string& text = out->data<std::string>()[i];
      text.clear();
      WEFT_RETURN_IF_ERROR(
          ForEachCharacter(encoding_, repair_, input.data<std::string>()[i],
                           [&](int32_t value, size_t) { AppendCodePoint(to_, value, &text); }));
    }
    return absl::OkStatus();
  }

 private:
  const Encoding to_;
};

class EncodeKernel final : public InputKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Encoding to,
                          EncodingByName(c.AttrOr<std::string>("output_encoding", "")));
    WEFT_ASSIGN_OR_RETURN(const Repair repair, Repair::Of(c));
    return std::make_unique<EncodeKernel>(to, repair);
  }
  using InputKernel::InputKernel;
  Status Compute(KernelContext& c) override {
    const Tensor values = c.input(0), splits = c.input(1);
    if (!splits.shape().IsVector() || splits.dim(0) < 1 || IndexAt(splits, 0) != 0) {
      return InvalidArgument("First value in input_splits must be zero, got ", splits.ToString());
    }
    const int64_t rows = splits.dim(0) - 1;
    if (IndexAt(splits, rows) != values.num_elements()) {
      return InvalidArgument("Last value in input_splits must be equal to the number of values ",
                             values.num_elements(), ", got ", IndexAt(splits, rows));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{rows}));
    for (int64_t row = 0; row < rows; ++row) {
      std::string& text = out->data<std::string>()[row];
      text.clear();
      if (IndexAt(splits, row + 1) < IndexAt(splits, row) ||
          IndexAt(splits, row + 1) > values.num_elements()) {
        return InvalidArgument("Values in input_splits must be equal or in ascending order, got ",
                               splits.ToString());
      }
      for (int64_t i = IndexAt(splits, row); i < IndexAt(splits, row + 1); ++i) {
        const int32_t value = values.data<int32_t>()[i];
        if (IsCharacter(value)) {
          AppendCodePoint(encoding_, value, &text);
        } else if (repair_.is_strict) {
          return InvalidArgument("Code point is out of range for Unicode, or a noncharacter: ",
                                 value);
        } else if (!repair_.ignores) {
          AppendCodePoint(encoding_, repair_.replacement, &text);
        }
      }
    }
    return absl::OkStatus();
  }
};

constexpr char kErrors[] = "errors: {'strict', 'replace', 'ignore'} = 'replace'";

void AddDecode(Catalogue& catalogue, bool offsets) {
  OpSpec spec(offsets ? "UnicodeDecodeWithOffsets" : "UnicodeDecode");
  spec.Doc(absl::StrCat("The code points of strings, and where each string's begin",
                        offsets ? ", and at which byte each character begins.\n" : ".\n",
                        "Malformed characters become replacement_char, are left out or, if "
                        "'strict', InvalidArgument."))
      .Input("input: string")
      .Output("row_splits: Tsplits")
      .Output("char_values: int32");
  if (offsets) spec.Output("char_to_byte_starts: int64");
  spec.Attr("input_encoding: string")
      .Attr(kErrors)
      .Attr("replacement_char: int = 65533")
      .Attr("replace_control_characters: bool = false")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape([](ShapeContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape({-1}));
        return absl::OkStatus();
      })
      .NoGradient()
      .Kernel(MakeKernel<DecodeKernel>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDecode(catalogue, false);
  AddDecode(catalogue, true);
  catalogue.Add(OpSpec("UnicodeTranscode")
                    .Doc("Strings in another encoding.\nMalformed characters become "
                         "replacement_char, are left out or, if 'strict', InvalidArgument.")
                    .Input("input: string")
                    .Output("output: string")
                    .Attr("input_encoding: string")
                    .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
                    .Attr(kErrors)
                    .Attr("replacement_char: int = 65533")
                    .Attr("replace_control_characters: bool = false")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<TranscodeKernel>()));
  catalogue.Add(OpSpec("UnicodeEncode")
                    .Doc("Strings of code points; input_splits say where each begins.\n"
                         "What is no character becomes replacement_char, is left out or, if "
                         "'strict', InvalidArgument.")
                    .Input("input_values: int32")
                    .Input("input_splits: Tsplits")
                    .Output("output: string")
                    .Attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
                    .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
                    .Attr("replacement_char: int = 65533")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(const PartialShape splits, c.WithRank(1, 1));
                      const int64_t size = splits.dim(0);
                      c.set_output(0, PartialShape({size > 0 ? size - 1 : -1}));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<EncodeKernel>()));
}

}  // namespace weft::ops::io::unicode
