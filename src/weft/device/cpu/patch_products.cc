// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/patch_products.h"

#include <algorithm>
#include <atomic>

#include "weft/device/cpu/patches.h"
#include "weft/device/cpu/scratch.h"

namespace weft {
namespace {

// Patches that all threads make and multiply together, and those that one makes for itself.
constexpr int64_t kSharedBytes = 8 << 20;
constexpr int64_t kOwnBytes = 192 << 10;
// Multiply-adds and copied elements that one thread should at least get.
constexpr int64_t kConvShareWork = 1 << 18;
constexpr int64_t kCopyShareWork = 1 << 15;

// Shares nothing.
void Alone(int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total > 0) body(0, total);
}

// Pixels whose patches are made at a time: about as many each time.
template <typename T>
int64_t PixelsAtOnce(const ConvShape& s, int64_t bytes) {
  const int64_t of_one = std::max<int64_t>(1, s.patch() * static_cast<int64_t>(sizeof(T)));
  const int64_t most = std::max<int64_t>(16, bytes / of_one);
  const int64_t times = std::max<int64_t>(1, (s.out_pixels() + most - 1) / most);
  return std::max<int64_t>(1, (s.out_pixels() + times - 1) / times);
}

int64_t LeastShare(int64_t work_of_unit, int64_t work) {
  return std::max<int64_t>(1, work / std::max<int64_t>(1, work_of_unit));
}

// What is done of one group, for some pixels at a time.
template <typename T>
class Part {
 public:
  Part(const ConvShape& s, int64_t group)
      : s_(s),
        walk_(s, group),
        patch_(s.patch()),
        outputs_(s.out_channels / s.groups),
        first_output_(group * outputs_),
        are_pixels_(s.groups == 1 && Patches<T>::AreThePixels(s)) {}

  void Forward(const T* input, const T* filter, int64_t first, int64_t count, T* patches, T* output,
               const PartFinisher* finish, WorkSharer share) const {
    const T* a = Take(input, first, count, patches, share);
    MatrixProduct<T> p{.m = count, .n = outputs_, .k = patch_, .a = a, .a_stride = patch_};
    p.b = filter + first_output_;
    p.b_stride = s_.out_channels;
    p.c = output + first * s_.out_channels + first_output_;
    p.c_stride = s_.out_channels;
    Multiply(p, {.finish = finish}, share);
  }

  void BackwardInput(const T* filter, const T* output_gradient, int64_t first, int64_t count,
                     T* patches, T* input_gradient, WorkSharer share) const {
    MatrixProduct<T> p{.transpose_b = true, .m = count, .n = patch_, .k = outputs_};
    p.a = output_gradient + first * s_.out_channels + first_output_;
    p.a_stride = s_.out_channels;
    p.b = filter + first_output_;
    p.b_stride = s_.out_channels;
    p.c = are_pixels_ ? input_gradient + first * patch_ : patches;
    p.c_stride = patch_;
    Multiply(p, ProductEpilogue(), share);
    if (are_pixels_) return;
    // Patches overlap: each thread takes rows of the input.
    const int64_t work = count * patch_ / std::max<int64_t>(1, s_.in_height);
    share(s_.in_height, LeastShare(work, kCopyShareWork), [&](int64_t begin, int64_t end) {
      walk_.PutBack(patches, first, count, begin, end, input_gradient);
    });
  }

  // False when memory is short.
  bool BackwardFilter(const T* input, const T* output_gradient, int64_t first, int64_t count,
                      T* patches, T* filter_gradient, WorkSharer share) const {
    const T* a = Take(input, first, count, patches, share);
    T* const gradient = filter_gradient + first_output_;
    const Scratch<T> sums(first == 0 ? 1 : patch_ * outputs_);
    if (sums.data() == nullptr) return false;
    MatrixProduct<T> p{.transpose_a = true, .m = patch_, .n = outputs_, .k = count};
    p.a = a;
    p.a_stride = patch_;
    p.b = output_gradient + first * s_.out_channels + first_output_;
    p.b_stride = s_.out_channels;
    p.c = first == 0 ? gradient : sums.data();
    p.c_stride = first == 0 ? s_.out_channels : outputs_;
    Multiply(p, ProductEpilogue(), share);
    if (first == 0) return true;
    share(patch_, LeastShare(outputs_, kCopyShareWork), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        AddRun(sums.data() + r * outputs_, outputs_, gradient + r * s_.out_channels);
    });
    return true;
  }

 private:
  const T* Take(const T* input, int64_t first, int64_t count, T* patches, WorkSharer share) const {
    if (are_pixels_) return input + first * patch_;
    share(count, LeastShare(patch_, kCopyShareWork), [&](int64_t begin, int64_t end) {
      walk_.Take(input, first + begin, end - begin, patches + begin * patch_);
    });
    return patches;
  }

  const ConvShape& s_;
  const Patches<T> walk_;
  const int64_t patch_;
  const int64_t outputs_;  // channels of the group
  const int64_t first_output_;
  const bool are_pixels_;  // patches need not be made
};

// Calls run(part, first pixel, pixels, patches, share) for all groups and pixels, in their order,
// until it says false. Of one group's pixels as many come together as memory allows, for all
// threads; several groups are shared out, piece by piece of pixels.
template <typename T, typename Run>
bool ForPixels(const ConvShape& s, WorkSharer share, const Run& run) {
  if (s.groups == 1) {
    const bool are_pixels = Patches<T>::AreThePixels(s);
    const int64_t step =
        are_pixels ? std::max<int64_t>(1, s.out_pixels()) : PixelsAtOnce<T>(s, kSharedBytes);
    const Scratch<T> patches(are_pixels ? 1 : step * s.patch());
    if (patches.data() == nullptr) return false;
    const Part<T> part(s, 0);
    for (int64_t first = 0; first < s.out_pixels(); first += step) {
      const int64_t count = std::min(step, s.out_pixels() - first);
      if (!run(part, first, count, patches.data(), share)) return false;
    }
    return true;
  }
  const int64_t step = PixelsAtOnce<T>(s, kOwnBytes);
  const int64_t work = s.out_pixels() * s.patch() * (s.out_channels / s.groups);
  std::atomic<bool> ok{true};
  share(s.groups, LeastShare(work, kConvShareWork), [&](int64_t begin, int64_t end) {
    const Scratch<T> patches(step * s.patch());
    if (patches.data() == nullptr) {
      ok = false;
      return;
    }
    for (int64_t first = 0; first < s.out_pixels(); first += step) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t count = std::min(step, s.out_pixels() - first);
        if (!run(Part<T>(s, group), first, count, patches.data(), Alone)) ok = false;
      }
    }
  });
  return ok;
}

template <typename T>
void Clear(int64_t n, T* to, WorkSharer share) {
  share(n, kCopyShareWork, [&](int64_t begin, int64_t end) { ZeroRun(end - begin, to + begin); });
}

}  // namespace

template <typename T>
bool PatchesForward(const ConvShape& s, const T* input, const T* filter, T* output,
                    WorkSharer share, const PartFinisher* finish) {
  return ForPixels<T>(
      s, share,
      [&](const Part<T>& part, int64_t first, int64_t count, T* patches, WorkSharer with) {
        part.Forward(input, filter, first, count, patches, output, finish, with);
        return true;
      });
}

template <typename T>
bool PatchesBackwardInput(const ConvShape& s, const T* filter, const T* output_gradient,
                          T* input_gradient, WorkSharer share) {
  if (s.groups > 1 || !Patches<T>::AreThePixels(s)) {
    Clear(s.batch * s.in_height * s.in_width * s.in_channels, input_gradient, share);
  }
  return ForPixels<T>(
      s, share,
      [&](const Part<T>& part, int64_t first, int64_t count, T* patches, WorkSharer with) {
        part.BackwardInput(filter, output_gradient, first, count, patches, input_gradient, with);
        return true;
      });
}

template <typename T>
bool PatchesBackwardFilter(const ConvShape& s, const T* input, const T* output_gradient,
                           T* filter_gradient, WorkSharer share) {
  if (s.out_pixels() == 0) Clear(s.patch() * s.out_channels, filter_gradient, share);
  return ForPixels<T>(
      s, share,
      [&](const Part<T>& part, int64_t first, int64_t count, T* patches, WorkSharer with) {
        return part.BackwardFilter(input, output_gradient, first, count, patches, filter_gradient,
                                   with);
      });
}

#define WEFT_PATCH_PRODUCTS(T)                                                                 \
  template bool PatchesForward<T>(const ConvShape&, const T*, const T*, T*, WorkSharer,        \
                                  const PartFinisher*);                                        \
  template bool PatchesBackwardInput<T>(const ConvShape&, const T*, const T*, T*, WorkSharer); \
  template bool PatchesBackwardFilter<T>(const ConvShape&, const T*, const T*, T*, WorkSharer);
WEFT_PATCH_PRODUCTS(float)
WEFT_PATCH_PRODUCTS(double)
WEFT_PATCH_PRODUCTS(int32_t)
#undef WEFT_PATCH_PRODUCTS

}  // namespace weft
