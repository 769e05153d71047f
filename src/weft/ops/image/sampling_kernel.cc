// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/image/sampling_kernel.h"

#include <array>
#include <limits>

namespace weft::ops::image {

StatusOr<Sampling> Sampling::Of(const KernelConstruction& c) {
  const Sampling sampling{c.AttrOr<bool>("align_corners", false),
                          c.AttrOr<bool>("half_pixel_centers", false)};
  if (!sampling.align_corners || !sampling.half_pixel_centers) return sampling;
  return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
}

int64_t Sampling::Nearest(int64_t x, float scale, int64_t in) const {
  const float place =
      half_pixel_centers ? (static_cast<float>(x) + 0.5f) * scale : static_cast<float>(x) * scale;
  const float whole = align_corners ? std::round(place) : std::floor(place);
  return std::clamp<int64_t>(static_cast<int64_t>(whole), 0, in - 1);
}

StatusOr<PictureSizes> PictureSizes::Of(const Tensor& images) {
  if (images.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional, got shape ", images.shape().ToString());
  }
  const PictureSizes sizes{images.dim(0), images.dim(1), images.dim(2), images.dim(3)};
  if (sizes.height > 0 && sizes.width > 0 && sizes.channels > 0) return sizes;
  return InvalidArgument("input image must be of non-zero size, got shape ",
                         images.shape().ToString());
}

StatusOr<std::pair<int64_t, int64_t>> SizeOf(const Tensor& size) {
  if (size.rank() != 1 || size.dim(0) != 2) {
    return InvalidArgument("shape_t must be 1-dimensional with two elements, got shape ",
                           size.shape().ToString());
  }
  const int64_t height = size.data<int32_t>()[0], width = size.data<int32_t>()[1];
  if (height > 0 && width > 0) return std::pair(height, width);
  return InvalidArgument("output dimensions must be positive, got ", height, " and ", width);
}

std::vector<Mix> LinearMixes(const Sampling& sampling, int64_t in, int64_t out) {
  std::vector<Mix> mixes(static_cast<size_t>(out));
  const float scale = sampling.Scale(in, out);
  for (int64_t x = 0; x < out; ++x) {
    const float place = sampling.Place(x, scale);
    const float below = std::floor(place);
    Mix& mix = mixes[x];
    mix.count = 2;
    mix.at[0] = std::max<int64_t>(static_cast<int64_t>(below), 0);
    mix.at[1] = std::min<int64_t>(static_cast<int64_t>(std::ceil(place)), in - 1);
    mix.weight[1] = place - below;
    mix.weight[0] = 1.0f - mix.weight[1];
  }
  return mixes;
}

namespace {

constexpr int kTableSize = 1024;

// Weights of the cubic kernel in steps of 1 / kTableSize: of the nearer and the farther neighbour.
std::vector<std::array<float, 2>> CubicTable(bool is_keys) {
  const double a = is_keys ? -0.5 : -0.75;
  std::vector<std::array<float, 2>> table(kTableSize + 1);
  for (int i = 0; i <= kTableSize; ++i) {
    float x = static_cast<float>(i * 1.0 / kTableSize);
    table[i][0] = static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
    x += 1.0f;
    table[i][1] = static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
  }
  return table;
}

}  // namespace

std::vector<Mix> CubicMixes(const Sampling& sampling, int64_t in, int64_t out) {
  const bool is_keys = sampling.half_pixel_centers;
  const auto table = CubicTable(is_keys);
  const float scale = sampling.Scale(in, out);
  std::vector<Mix> mixes(static_cast<size_t>(out));
  for (int64_t x = 0; x < out; ++x) {
    const float place = sampling.Place(x, scale);
    const auto below = static_cast<int64_t>(std::floor(place));
    const auto offset = std::lrint((place - static_cast<float>(below)) * kTableSize);
    Mix& mix = mixes[x];
    mix.count = 4;
    const float weights[] = {table[offset][1], table[offset][0], table[kTableSize - offset][0],
                             table[kTableSize - offset][1]};
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const int64_t wanted = below - 1 + k;
      mix.at[k] = std::clamp<int64_t>(wanted, 0, in - 1);
      // Beyond the border nothing counts; the older form repeats the border's pixel instead.
      mix.weight[k] = is_keys && mix.at[k] != wanted ? 0.0f : weights[k];
      sum += mix.weight[k];
    }
    if (is_keys && std::abs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
      for (float& weight : mix.weight) weight *= 1.0f / sum;
    }
  }
  return mixes;
}

Status ResizedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape images, c.WithRank(0, 4));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  for (int d = 0; d < 2; ++d) {
    const Tensor* size = c.constant(1);
    const bool known = size != nullptr && size->num_elements() == 2;
    images.SetDim(1 + d, known ? std::max<int64_t>(-1, size->data<int32_t>()[d]) : -1);
  }
  c.set_output(0, std::move(images));
  return absl::OkStatus();
}

}  // namespace weft::ops::image
