// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/window_kernel.h"

#include <algorithm>

namespace weft::ops::nn {
namespace {

Status CheckExplicit(const Window& w) {
  if (w.padding != Padding::kExplicit) {
    if (w.explicit_paddings.empty()) return absl::OkStatus();
    return InvalidArgument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  const size_t expected = 2 * w.strides.size();
  if (w.explicit_paddings.size() != expected) {
    return InvalidArgument("explicit_paddings attribute must contain ", expected,
                           " values, but got: ", w.explicit_paddings.size());
  }
  for (const int64_t pad : w.explicit_paddings) {
    if (pad < 0)
      return InvalidArgument("All elements of explicit_paddings must be nonnegative, got ", pad);
  }
  const auto channel = static_cast<size_t>(w.channel_axis());
  if (w.explicit_paddings[0] != 0 || w.explicit_paddings[1] != 0 ||
      w.explicit_paddings[2 * channel] != 0 || w.explicit_paddings[2 * channel + 1] != 0) {
    return InvalidArgument(
        "Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  return absl::OkStatus();
}

Status CheckCount(const std::vector<int64_t>& values, int rank, absl::string_view what) {
  if (values.size() != static_cast<size_t>(rank)) {
    return InvalidArgument("Sliding window ", what, " field must specify ", rank,
                           " dimensions, got ", values.size());
  }
  for (const int64_t value : values) {
    if (value <= 0) return InvalidArgument("Sliding window ", what, " must be > 0, got ", value);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Window> Window::FromAttrs(const AttrMap& attrs, int rank) {
  Window w;
  WEFT_ASSIGN_OR_RETURN(w.strides, FindAttr<AttrValue::IntList>(attrs, "strides"));
  WEFT_ASSIGN_OR_RETURN(const std::string padding, FindAttr<std::string>(attrs, "padding"));
  w.padding = padding == "SAME"    ? Padding::kSame
              : padding == "VALID" ? Padding::kValid
                                   : Padding::kExplicit;
  const std::string last = rank == 5 ? "NDHWC" : "NHWC", first = rank == 5 ? "NCDHW" : "NCHW";
  const auto format = FindAttrOr<std::string>(attrs, "data_format", last);
  if (format != last && format != first) return Unimplemented("Images in data_format ", format);
  w.channels_first = format == first;
  w.size = FindAttrOr<AttrValue::IntList>(attrs, "ksize", {});
  w.dilations = FindAttrOr<AttrValue::IntList>(attrs, "dilations", {});
  if (w.dilations.empty()) w.dilations.assign(static_cast<size_t>(rank), 1);
  w.explicit_paddings = FindAttrOr<AttrValue::IntList>(attrs, "explicit_paddings", {});
  WEFT_RETURN_IF_ERROR(CheckCount(w.strides, rank, "strides"));
  WEFT_RETURN_IF_ERROR(CheckCount(w.dilations, rank, "dilations"));
  if (attrs.contains("ksize")) WEFT_RETURN_IF_ERROR(CheckCount(w.size, rank, "ksize"));
  const auto channel = static_cast<size_t>(w.channel_axis());
  for (const auto* values : {&w.strides, &w.dilations, &w.size}) {
    if (values->empty() || ((*values)[0] == 1 && (*values)[channel] == 1)) continue;
    const char* what = values == &w.strides     ? "strides"
                       : values == &w.dilations ? "dilations"
                                                : "pooling";
    return Unimplemented("Current implementation does not yet support ", what,
                         " in the batch and depth dimensions.");
  }
  WEFT_RETURN_IF_ERROR(CheckExplicit(w));
  return w;
}

StatusOr<WindowSpan> SpanOf(const Window& window, int axis, int64_t in, int64_t size) {
  const auto at = static_cast<size_t>(axis);
  const int64_t stride = window.strides[at];
  int64_t reach = 0;
  if (size < 1 || __builtin_mul_overflow(size - 1, window.dilations[at], &reach) ||
      __builtin_add_overflow(reach, 1, &reach)) {
    return InvalidArgument("Window size is out of range: ", size, " with dilation ",
                           window.dilations[at]);
  }
  WindowSpan span;
  if (window.padding == Padding::kSame) {
    span.out = in / stride + (in % stride != 0 ? 1 : 0);
    span.pad_before = std::max<int64_t>(0, (span.out - 1) * stride + reach - in) / 2;
    return span;
  }
  int64_t padded = in;
  if (window.padding == Padding::kExplicit) {
    span.pad_before = window.explicit_paddings[2 * at];
    if (__builtin_add_overflow(padded, span.pad_before, &padded) ||
        __builtin_add_overflow(padded, window.explicit_paddings[2 * at + 1], &padded)) {
      return InvalidArgument("Padding overflows: ", span.pad_before);
    }
  }
  int64_t numerator = 0;
  if (__builtin_add_overflow(padded - reach, stride, &numerator) || numerator < 0) {
    return InvalidArgument(
        "Computed output size would be negative: ", (padded - reach) / stride + 1,
        " [input_size: ", padded, ", effective_filter_size: ", reach, ", stride: ", stride, "]");
  }
  span.out = numerator / stride;
  return span;
}

StatusOr<int64_t> OutputSize(const Window& window, int axis, int64_t in, int64_t size) {
  if (in < 0 || (size < 0 && window.padding != Padding::kSame)) return int64_t{-1};
  WEFT_ASSIGN_OR_RETURN(const WindowSpan span,
                        SpanOf(window, axis, in, std::max<int64_t>(size, 1)));
  return span.out;
}

AttrMap CopyAttrs(const AttrMap& attrs, std::initializer_list<const char*> names) {
  AttrMap copy;
  for (const char* name : names) {
    if (const auto found = attrs.find(name); found != attrs.end())
      copy.emplace(name, found->second);
  }
  return copy;
}

}  // namespace weft::ops::nn
