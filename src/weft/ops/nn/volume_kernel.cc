// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/volume_kernel.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

namespace weft::ops::nn {
namespace {

constexpr int64_t kPatchElements = int64_t{1} << 18;  // of the patches that one product takes

int64_t PatchSize(const VolumeShape& s) {
  return s.window[0] * s.window[1] * s.window[2] * s.in_channels;
}
int64_t RowsAtOnce(const VolumeShape& s) {
  return std::max<int64_t>(1, kPatchElements / std::max<int64_t>(1, PatchSize(s)));
}

template <typename T>
std::unique_ptr<T[]> Scratch(int64_t n) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[static_cast<size_t>(n)]);
}

// Calls visit(place in the patch, place in the input, or -1 outside of it) for each position of the
// window of output pixel `pixel`, counted over the batch; both places count pixels, not channels.
template <typename Visit>
void ForEachTap(const VolumeShape& s, int64_t pixel, const Visit& visit) {
  const int64_t n = pixel / s.out_pixels();
  int64_t rest = pixel % s.out_pixels();
  Three start;
  for (int i = 2; i >= 0; --i) {
    start[i] = rest % s.out[i] * s.strides[i] - s.pad[i];
    rest /= s.out[i];
  }
  int64_t tap = 0;
  for (int64_t a = 0; a < s.window[0]; ++a) {
    const int64_t z = start[0] + a * s.dilations[0];
    for (int64_t b = 0; b < s.window[1]; ++b) {
      const int64_t y = start[1] + b * s.dilations[1];
      for (int64_t c = 0; c < s.window[2]; ++c, ++tap) {
        const int64_t x = start[2] + c * s.dilations[2];
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
        visit(tap, inside ? ((n * s.in[0] + z) * s.in[1] + y) * s.in[2] + x : -1);
      }
    }
  }
}

// The patches of output pixels [begin, end), one a row.
template <typename T>
void GatherPatches(const VolumeShape& s, const T* input, int64_t begin, int64_t end, T* patches) {
  for (int64_t pixel = begin; pixel < end; ++pixel, patches += PatchSize(s)) {
    ForEachTap(s, pixel, [&](int64_t tap, int64_t place) {
      T* to = patches + tap * s.in_channels;
      if (place < 0) {
        std::fill_n(to, s.in_channels, T(0));
      } else {
        std::copy_n(input + place * s.in_channels, s.in_channels, to);
      }
    });
  }
}

}  // namespace

StatusOr<VolumeShape> VolumeShapeOf(const Window& w, const Shape& input, const Three& window) {
  if (input.rank() != 5) {
    return InvalidArgument("tensor_in must be 5-dimensional, got ", input.ToString());
  }
  VolumeShape s{.batch = input.dim(0), .in_channels = input.dim(4), .out_channels = input.dim(4)};
  s.window = window;
  for (int i = 0; i < 3; ++i) {
    const int axis = 1 + i;
    s.in[i] = input.dim(axis);
    s.strides[i] = w.strides[static_cast<size_t>(axis)];
    s.dilations[i] = w.dilations[static_cast<size_t>(axis)];
    WEFT_ASSIGN_OR_RETURN(const WindowSpan span, SpanOf(w, axis, s.in[i], window[i]));
    s.out[i] = span.out;
    s.pad[i] = span.pad_before;
  }
  return s;
}

StatusOr<VolumeShape> VolumeConvShapeOf(const Window& w, const Shape& input, const Shape& filter) {
  if (input.rank() != 5) return InvalidArgument("input must be 5-dimensional: ", input.ToString());
  if (filter.rank() != 5) {
    return InvalidArgument("filter must be 5-dimensional: ", filter.ToString());
  }
  if (filter.dim(3) != input.dim(4)) {
    return InvalidArgument("Number of channels in filter (", filter.dim(3),
                           ") must match last dimension of input (", input.dim(4), ")");
  }
  if (filter.num_elements() == 0) {
    return InvalidArgument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero), got ",
        filter.ToString());
  }
  WEFT_ASSIGN_OR_RETURN(VolumeShape s,
                        VolumeShapeOf(w, input, {filter.dim(0), filter.dim(1), filter.dim(2)}));
  s.out_channels = filter.dim(4);
  return s;
}

StatusOr<Shape> VolumeOutputShape(const VolumeShape& s) {
  return Shape::Make({s.batch, s.out[0], s.out[1], s.out[2], s.out_channels});
}

template <typename T>
bool VolumeForward(const VolumeShape& s, const T* input, const T* filter, T* output,
                   WorkSharer share) {
  const int64_t pixels = s.batch * s.out_pixels(), patch = PatchSize(s), most = RowsAtOnce(s);
  std::atomic<bool> ok = true;
  share(pixels, std::max<int64_t>(1, 16384 / (patch * s.out_channels)),
        [&](int64_t begin, int64_t end) {
          const auto patches = Scratch<T>(std::min(most, end - begin) * patch);
          if (patches == nullptr) {
            ok = false;
            return;
          }
          for (int64_t at = begin; at < end; at += most) {
            const int64_t rows = std::min(most, end - at);
            GatherPatches(s, input, at, at + rows, patches.get());
            Multiply<T>({.m = rows,
                         .n = s.out_channels,
                         .k = patch,
                         .a = patches.get(),
                         .a_stride = patch,
                         .b = filter,
                         .b_stride = s.out_channels,
                         .c = output + at * s.out_channels,
                         .c_stride = s.out_channels});
          }
        });
  return ok;
}

template <typename T>
bool VolumeBackwardInput(const VolumeShape& s, const T* filter, const T* gradient,
                         T* input_gradient, WorkSharer share) {
  const int64_t patch = PatchSize(s), most = RowsAtOnce(s);
  std::atomic<bool> ok = true;
  share(s.batch, 1, [&](int64_t first, int64_t last) {
    const auto patches = Scratch<T>(std::min(most, s.out_pixels()) * patch);
    if (patches == nullptr) {
      ok = false;
      return;
    }
    std::fill_n(input_gradient + first * s.in_pixels() * s.in_channels,
                (last - first) * s.in_pixels() * s.in_channels, T(0));
    const int64_t end = last * s.out_pixels();
    for (int64_t at = first * s.out_pixels(); at < end; at += most) {
      const int64_t rows = std::min({most, end - at, s.out_pixels()});
      for (int64_t from = at; from < std::min(at + most, end); from += rows) {
        const int64_t now = std::min(rows, std::min(at + most, end) - from);
        Multiply<T>({.transpose_b = true,
                     .m = now,
                     .n = patch,
                     .k = s.out_channels,
                     .a = gradient + from * s.out_channels,
                     .a_stride = s.out_channels,
                     .b = filter,
                     .b_stride = s.out_channels,
                     .c = patches.get(),
                     .c_stride = patch});
        for (int64_t row = 0; row < now; ++row) {
          ForEachTap(s, from + row, [&](int64_t tap, int64_t place) {
            if (place < 0) return;
            const T* add = patches.get() + row * patch + tap * s.in_channels;
            T* to = input_gradient + place * s.in_channels;
            for (int64_t ch = 0; ch < s.in_channels; ++ch) to[ch] += add[ch];
          });
        }
      }
    }
  });
  return ok;
}

template <typename T>
bool VolumeBackwardFilter(const VolumeShape& s, const T* input, const T* gradient,
                          T* filter_gradient, WorkSharer share) {
  const int64_t pixels = s.batch * s.out_pixels(), patch = PatchSize(s), most = RowsAtOnce(s);
  const int64_t total = patch * s.out_channels;
  const auto patches = Scratch<T>(std::min(most, pixels) * patch);
  const auto part = Scratch<T>(total);
  if (patches == nullptr || part == nullptr) return false;
  std::fill_n(filter_gradient, total, T(0));
  for (int64_t at = 0; at < pixels; at += most) {
    const int64_t rows = std::min(most, pixels - at);
    share(rows, std::max<int64_t>(1, 16384 / patch), [&](int64_t begin, int64_t end) {
      GatherPatches(s, input, at + begin, at + end, patches.get() + begin * patch);
    });
    Multiply<T>({.transpose_a = true,
                 .m = patch,
                 .n = s.out_channels,
                 .k = rows,
                 .a = patches.get(),
                 .a_stride = patch,
                 .b = gradient + at * s.out_channels,
                 .b_stride = s.out_channels,
                 .c = part.get(),
                 .c_stride = s.out_channels},
                {}, share);
    for (int64_t i = 0; i < total; ++i) filter_gradient[i] += part[i];
  }
  return true;
}

#define WEFT_VOLUMES(T)                                                                         \
  template bool VolumeForward<T>(const VolumeShape&, const T*, const T*, T*, WorkSharer);       \
  template bool VolumeBackwardInput<T>(const VolumeShape&, const T*, const T*, T*, WorkSharer); \
  template bool VolumeBackwardFilter<T>(const VolumeShape&, const T*, const T*, T*, WorkSharer);
WEFT_VOLUMES(float)
WEFT_VOLUMES(double)
#undef WEFT_VOLUMES

StatusOr<PartialShape> VolumeOutput(ShapeContext& c, const Window& w, const Three& window,
                                    std::optional<int64_t> channels) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 5));
  for (int i = 0; i < 3; ++i) {
    const int axis = w.spatial_axis(i);
    WEFT_ASSIGN_OR_RETURN(const int64_t size, OutputSize(w, axis, out.dim(axis), window[i]));
    out.SetDim(axis, size);
  }
  if (channels.has_value()) out.SetDim(w.channel_axis(), *channels);
  return out;
}

}  // namespace weft::ops::nn
