// SPDX-License-Identifier: Apache-2.0
// Runs of neighbouring words in rows of words.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::io::string_ngrams {
namespace {

// InvalidArgument unless the splits cut `size` elements into rows.
Status CheckSplits(const Tensor& splits, int64_t size) {
  const int64_t n = splits.num_elements();
  if (n == 0) {
    if (size == 0) return absl::OkStatus();
    return InvalidArgument("If row splits are empty, the data must be, too; it has ", size,
                           " elements");
  }
  if (IndexAt(splits, 0) != 0) {
    return InvalidArgument("First split value must be 0, got ", IndexAt(splits, 0));
  }
  for (int64_t i = 1; i < n; ++i) {
    if (IndexAt(splits, i) >= IndexAt(splits, i - 1) && IndexAt(splits, i) <= size) continue;
    return InvalidArgument("Invalid split value ", IndexAt(splits, i), ", must be in [",
                           IndexAt(splits, i - 1), ", ", size, "]");
  }
  if (IndexAt(splits, n - 1) == size) return absl::OkStatus();
  return InvalidArgument("Last split value must be data size. Expected ", size, ", got ",
                         IndexAt(splits, n - 1));
}

class NGramsKernel final : public OpKernel {
 public:
  explicit NGramsKernel(KernelConstruction& c)
      : separator_(c.AttrOr<std::string>("separator", "")),
        widths_(c.AttrOr<AttrValue::IntList>("ngram_widths", {})),
        left_(c.AttrOr<std::string>("left_pad", "")),
        right_(c.AttrOr<std::string>("right_pad", "")),
        pad_width_(c.AttrOr<int64_t>("pad_width", 0)),
        keeps_short_(c.AttrOr<bool>("preserve_short_sequences", false)) {}

  Status Compute(KernelContext& c) override {
    // Each run has so many words and pads, whatever the data are.
    constexpr int64_t kWidest = 1 << 20;
    for (const int64_t width : widths_) {
      if (width <= 0)
        return InvalidArgument("ngram_widths must contain positive values, got ", width);
      if (width > kWidest) {
        return InvalidArgument("ngram_widths must be at most ", kWidest, ", got ", width);
      }
    }
    if (pad_width_ > kWidest) {
      return InvalidArgument("pad_width must be at most ", kWidest, ", got ", pad_width_);
    }
    const Tensor data = c.input(0), splits = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckSplits(splits, data.num_elements()));
    std::vector<std::string> found;
    IndexVector ends;
    if (splits.num_elements() > 0) ends.push_back(0);
    for (int64_t row = 0; row + 1 < splits.num_elements(); ++row) {
      const int64_t begin = IndexAt(splits, row), end = IndexAt(splits, row + 1);
      const auto words = data.span<std::string>().subspan(begin, end - begin);
      const size_t before = found.size();
      for (const int64_t width : widths_) AddRuns(words, width, &found);
      if (keeps_short_ && found.size() == before && !words.empty()) {
        if (pad_width_ < 0) {
          return InvalidArgument(
              "Pad width should be >= 0 when preserve_short_sequences is True "
              "and ngram_widths are not provided, got ",
              pad_width_);
        }
        AddRun(words, pad_width_, pad_width_, &found);
      }
      ends.push_back(static_cast<int64_t>(found.size()));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(found.size())}));
    std::move(found.begin(), found.end(), out->data<std::string>());
    WEFT_ASSIGN_OR_RETURN(Tensor * rows, c.AllocateOutput(1, splits.shape()));
    return StoreIndices(ends, rows);
  }

 private:
  using Words = absl::Span<const std::string>;

  void AddRun(Words words, int64_t left, int64_t right, std::vector<std::string>* found) const {
    std::vector<absl::string_view> parts(static_cast<size_t>(left), left_);
    parts.insert(parts.end(), words.begin(), words.end());
    parts.insert(parts.end(), static_cast<size_t>(right), right_);
    found->push_back(absl::StrJoin(parts, separator_));
  }

  void AddRuns(Words words, int64_t width, std::vector<std::string>* found) const {
    const int64_t pad = pad_width_ < 0 ? width - 1 : std::min(pad_width_, width - 1);
    const auto size = static_cast<int64_t>(words.size());
    const int64_t count = std::max<int64_t>(0, size + 2 * pad - width + 1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t left = std::max<int64_t>(0, pad - i);
      const int64_t right = std::max<int64_t>(0, pad - (count - (i + 1)));
      const int64_t start = std::max<int64_t>(0, i - pad);
      AddRun(words.subspan(start, std::max<int64_t>(0, width - left - right)), left, right, found);
    }
  }

  const std::string separator_;
  const AttrValue::IntList widths_;
  const std::string left_;
  const std::string right_;
  const int64_t pad_width_;
  const bool keeps_short_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("StringNGrams")
          .Doc("Runs of `ngram_widths` neighbouring words of each row, joined by `separator`.\n"
               "Rows are padded by as many of `left_pad` and `right_pad` as `pad_width` says, at "
               "most width - 1, or so many if it is -1. A row that is too short gives nothing, or "
               "itself if `preserve_short_sequences`.")
          .Input("data: string")
          .Input("data_splits: Tsplits")
          .Output("ngrams: string")
          .Output("ngrams_splits: Tsplits")
          .Attr("separator: string")
          .Attr("ngram_widths: list(int) >= 0")
          .Attr("left_pad: string")
          .Attr("right_pad: string")
          .Attr("pad_width: int")
          .Attr("preserve_short_sequences: bool")
          .Attr("Tsplits: {int32, int64} = DT_INT64")
          .Shape([](ShapeContext& c) -> Status {
            WEFT_RETURN_IF_ERROR(c.WithRank(0, 1).status());
            WEFT_ASSIGN_OR_RETURN(PartialShape splits, c.WithRank(1, 1));
            c.set_output(0, PartialShape({-1}));
            c.set_output(1, std::move(splits));
            return absl::OkStatus();
          })
          .NoGradient()
          .Kernel(MakeKernel<NGramsKernel>()));
}

}  // namespace weft::ops::io::string_ngrams
