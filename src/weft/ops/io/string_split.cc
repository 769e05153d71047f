// SPDX-License-Identifier: Apache-2.0
// Splitting strings: the pieces come as a sparse matrix with one row a string.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::string_split {
namespace {

using Pieces = std::vector<absl::string_view>;

// At any byte of `delimiters`; between all bytes if there are none. No text has no pieces.
Pieces SplitAtAny(absl::string_view text, absl::string_view delimiters, bool skip_empty) {
  Pieces pieces;
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) pieces.push_back(text.substr(i, 1));
    return pieces;
  }
  size_t start = 0;
  while (!text.empty() && start <= text.size()) {
    const size_t end = std::min(text.find_first_of(delimiters, start), text.size());
    if (end > start || !skip_empty) pieces.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return pieces;
}

// At runs of white space, none of which ends up in a piece; after `most` of them the rest follows,
// even if there is none.
Pieces SplitAtSpace(absl::string_view text, int64_t most) {
  Pieces pieces;
  text = absl::StripLeadingAsciiWhitespace(text);
  while (!text.empty()) {
    const auto space = std::find_if(text.begin(), text.end(), absl::ascii_isspace);
    pieces.push_back(text.substr(0, static_cast<size_t>(space - text.begin())));
    text =
        absl::StripLeadingAsciiWhitespace(text.substr(static_cast<size_t>(space - text.begin())));
    if (static_cast<int64_t>(pieces.size()) == most) {
      pieces.push_back(text);
      break;
    }
  }
  return pieces;
}

// At each `separator`, at most `most` times.
Pieces SplitAt(absl::string_view text, absl::string_view separator, int64_t most) {
  if (most == 0) return {text};
  if (separator.empty()) return SplitAtSpace(text, most);
  Pieces pieces;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t end = text.find(separator);
    if (end == absl::string_view::npos) break;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  pieces.push_back(text);
  return pieces;
}

// indices [n,2], values [n], shape [2].
Status Give(KernelContext& c, const std::vector<Pieces>& rows) {
  int64_t count = 0, widest = 0;
  for (const Pieces& row : rows) {
    count += static_cast<int64_t>(row.size());
    widest = std::max(widest, static_cast<int64_t>(row.size()));
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{count, 2}));
  WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{count}));
  WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape{2}));
  int64_t at = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < rows[row].size(); ++column, ++at) {
      indices->data<int64_t>()[2 * at] = static_cast<int64_t>(row);
      indices->data<int64_t>()[2 * at + 1] = static_cast<int64_t>(column);
      values->data<std::string>()[at] = std::string(rows[row][column]);
    }
  }
  shape->data<int64_t>()[0] = static_cast<int64_t>(rows.size());
  shape->data<int64_t>()[1] = widest;
  return absl::OkStatus();
}

Status CheckInput(const Tensor& input) {
  if (input.shape().IsVector()) return absl::OkStatus();
  return InvalidArgument("input must be a vector, got shape: ", input.shape().ToString());
}

class SplitKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<SplitKernel>(c.AttrOr("skip_empty", true));
  }
  explicit SplitKernel(bool skip_empty) : skip_empty_(skip_empty) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckInput(c.input(0)));
    if (!c.input(1).shape().IsScalar()) {
      return InvalidArgument("delimiter must be a scalar, got shape: ",
                             c.input(1).shape().ToString());
    }
    std::vector<Pieces> rows;
    for (const std::string& text : c.input(0).span<std::string>()) {
      rows.push_back(SplitAtAny(text, c.input(1).scalar<std::string>(), skip_empty_));
    }
    return Give(c, rows);
  }

 private:
  const bool skip_empty_;
};

class SplitV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<SplitV2Kernel>(c.AttrOr<int64_t>("maxsplit", -1));
  }
  explicit SplitV2Kernel(int64_t most) : most_(most) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckInput(c.input(0)));
    if (!c.input(1).shape().IsScalar()) {
      return InvalidArgument("sep must be a scalar, got shape: ", c.input(1).shape().ToString());
    }
    std::vector<Pieces> rows;
    for (const std::string& text : c.input(0).span<std::string>()) {
      rows.push_back(SplitAt(text, c.input(1).scalar<std::string>(), most_));
    }
    return Give(c, rows);
  }

 private:
  const int64_t most_;
};

Status SparseShapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape input, c.WithRank(0, 1));
  c.set_output(0, PartialShape{-1, 2});
  c.set_output(1, PartialShape{-1});
  c.set_output(2, PartialShape{2});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("StringSplit")
          .Doc("Splits each string at any character of delimiter.\ninput: a vector; output: "
               "a sparse matrix with one row a string.")
          .Input("input: string")
          .Input("delimiter: string")
          .Output("indices: int64")
          .Output("values: string")
          .Output("shape: int64")
          .Attr("skip_empty: bool = true")
          .Shape(SparseShapes)
          .NoGradient()
          .Kernel(MakeKernel<SplitKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("StringSplitV2")
          .Doc("Splits each string at each sep, at most maxsplit times, or at white space if "
               "sep is empty.\ninput: a vector; output: a sparse matrix with one row a string.")
          .Input("input: string")
          .Input("sep: string")
          .Output("indices: int64")
          .Output("values: string")
          .Output("shape: int64")
          .Attr("maxsplit: int = -1")
          .Shape(SparseShapes)
          .NoGradient()
          .Kernel(MakeKernel<SplitV2Kernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::string_split
