// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients, by the definition: one sum over all that meet.
#include <algorithm>

#include "tests/devices/asic/asic.h"

namespace asic {
namespace {

// How an image, a filter and a result lie and meet.
struct Geometry {
  bool channels_last = true;
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  std::string padding;
  int64_t explicit_before[2] = {0, 0};
  int64_t explicit_after[2] = {0, 0};
  // By call: sizes.
  int64_t batch = 0;
  int64_t image[2] = {0, 0};
  int64_t channels = 0;
  int64_t filter[2] = {0, 0};
  int64_t filter_depth = 0;
  int64_t results = 0;  // channels of the result
  int64_t out[2] = {0, 0};
  int64_t before[2] = {0, 0};

  int64_t ImageAt(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return channels_last ? ((n * image[0] + y) * image[1] + x) * channels + c
                         : ((n * channels + c) * image[0] + y) * image[1] + x;
  }
  int64_t OutAt(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return channels_last ? ((n * out[0] + y) * out[1] + x) * results + c
                         : ((n * results + c) * out[0] + y) * out[1] + x;
  }
  int64_t FilterAt(int64_t y, int64_t x, int64_t c, int64_t k) const {
    return ((y * filter[1] + x) * filter_depth + c) * results + k;
  }
  Dims OutDims() const {
    return channels_last ? Dims{batch, out[0], out[1], results}
                         : Dims{batch, results, out[0], out[1]};
  }
};

int ReadAttributes(const weft_op& op, Geometry* g, weft_error* error) {
  const char* text = "NHWC";
  op.get_string(op.attributes, "data_format", &text);
  g->channels_last = std::string(text) == "NHWC";
  const int first = g->channels_last ? 1 : 2;
  const int64_t* values = nullptr;
  size_t count = 0;
  if (op.get_ints(op.attributes, "strides", &values, &count) && count == 4) {
    for (int i = 0; i < 2; ++i) g->stride[i] = values[first + i];
    const int64_t others = values[0] * values[g->channels_last ? 3 : 1];
    if (others != 1) {
      return Fail(error, WEFT_UNIMPLEMENTED,
                  "Current implementation does not yet support strides in the batch and depth "
                  "dimensions.");
    }
  } else {
    return Fail(error, WEFT_INVALID_ARGUMENT,
                "Sliding window strides field must specify 4 dimensions");
  }
  if (g->stride[0] <= 0 || g->stride[1] <= 0) {
    return Fail(error, WEFT_INVALID_ARGUMENT, "Stride must be positive");
  }
  if (op.get_ints(op.attributes, "dilations", &values, &count) && count == 4) {
    for (int i = 0; i < 2; ++i) g->dilation[i] = values[first + i];
    if (g->dilation[0] <= 0 || g->dilation[1] <= 0) {
      return Fail(error, WEFT_INVALID_ARGUMENT, "Dilated rates should be larger than 0.");
    }
  }
  if (op.get_string(op.attributes, "padding", &text)) g->padding = text;
  if (op.get_ints(op.attributes, "explicit_paddings", &values, &count) && count == 8) {
    for (int i = 0; i < 2; ++i) {
      g->explicit_before[i] = values[2 * (first + i)];
      g->explicit_after[i] = values[2 * (first + i) + 1];
    }
  }
  return WEFT_OK;
}

// Fills in sizes from those of an image and a filter.
int Meet(const Dims& image, const Dims& filter, Geometry* g, weft_error* error) {
  if (image.size() != 4 || filter.size() != 4) {
    return Fail(error, WEFT_INVALID_ARGUMENT,
                "input must be 4-dimensional: " + Text(image) + " and " + Text(filter));
  }
  const int first = g->channels_last ? 1 : 2;
  g->batch = image[0];
  g->channels = image[g->channels_last ? 3 : 1];
  g->filter_depth = filter[2];
  g->results = filter[3];
  if (g->filter_depth == 0 || g->channels % g->filter_depth != 0 ||
      g->results % std::max<int64_t>(1, g->channels / g->filter_depth) != 0) {
    return Fail(error, WEFT_INVALID_ARGUMENT,
                "input depth must be evenly divisible by filter depth: " +
                    std::to_string(g->channels) + " vs " + std::to_string(g->filter_depth));
  }
  for (int i = 0; i < 2; ++i) {
    g->image[i] = image[first + i];
    g->filter[i] = filter[i];
    const int64_t window = (filter[i] - 1) * g->dilation[i] + 1;
    int64_t after = 0;
    if (g->padding == "SAME") {
      g->out[i] = (g->image[i] + g->stride[i] - 1) / g->stride[i];
      const int64_t pad =
          std::max<int64_t>(0, (g->out[i] - 1) * g->stride[i] + window - g->image[i]);
      g->before[i] = pad / 2;
    } else {
      g->before[i] = g->padding == "EXPLICIT" ? g->explicit_before[i] : 0;
      after = g->padding == "EXPLICIT" ? g->explicit_after[i] : 0;
      const int64_t room = g->image[i] + g->before[i] + after - window;
      if (room + g->stride[i] < 0) {
        return Fail(error, WEFT_INVALID_ARGUMENT, "Computed output size would be negative");
      }
      g->out[i] = room < 0 ? 0 : room / g->stride[i] + 1;
    }
  }
  return WEFT_OK;
}

// Calls `visit(position in the image, in the filter, in the result)` for all that meet.
template <typename Visit>
void ForAll(const Geometry& g, Visit visit) {
  const int64_t groups = std::max<int64_t>(1, g.channels / g.filter_depth);
  const int64_t per_group = g.results / groups;
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t oy = 0; oy < g.out[0]; ++oy) {
      for (int64_t ox = 0; ox < g.out[1]; ++ox) {
        for (int64_t fy = 0; fy < g.filter[0]; ++fy) {
          const int64_t y = oy * g.stride[0] - g.before[0] + fy * g.dilation[0];
          if (y < 0 || y >= g.image[0]) continue;
          for (int64_t fx = 0; fx < g.filter[1]; ++fx) {
            const int64_t x = ox * g.stride[1] - g.before[1] + fx * g.dilation[1];
            if (x < 0 || x >= g.image[1]) continue;
            for (int64_t k = 0; k < g.results; ++k) {
              const int64_t first = k / per_group * g.filter_depth;
              for (int64_t c = 0; c < g.filter_depth; ++c) {
                visit(g.ImageAt(n, y, x, first + c), g.FilterAt(fy, fx, c, k),
                      g.OutAt(n, oy, ox, k));
              }
            }
          }
        }
      }
    }
  }
}

enum class Wanted { kResult, kImage, kFilter };

// The sizes that a vector on the host names.
Dims SizesOf(const weft_tensor& sizes) {
  Dims dims;
  for (int64_t i = 0; i < sizes.elements; ++i) {
    dims.push_back(static_cast<const int32_t*>(sizes.on_host)[i]);
  }
  return dims;
}

// Which dimensions the image and the filter of a call have.
void SidesOf(Wanted wanted, const weft_call& call, Dims* image, Dims* filter) {
  *image = wanted == Wanted::kImage ? SizesOf(call.inputs[0]) : DimsOf(call.inputs[0]);
  *filter = wanted == Wanted::kFilter ? SizesOf(call.inputs[1]) : DimsOf(call.inputs[1]);
  // Sizes of an image may leave out the batch and the channels.
  if (wanted == Wanted::kImage && image->size() == 2 && filter->size() == 4) {
    *image = {DimsOf(call.inputs[2])[0], (*image)[0], (*image)[1], (*filter)[2]};
  }
}

Make Convolve(Wanted wanted) {
  return [wanted](const weft_op& op, Launch* launch, weft_error* error) {
    Geometry attributes;
    const int code = ReadAttributes(op, &attributes, error);
    if (code != WEFT_OK) return code;
    *launch = [=, dtype = op.output_dtypes[0]](weft_stream* stream, const weft_call& call,
                                               weft_error* why) {
      Geometry g = attributes;
      Dims image;
      Dims filter;
      SidesOf(wanted, call, &image, &filter);
      if (const int bad = Meet(image, filter, &g, why); bad != WEFT_OK) return bad;
      if (wanted != Wanted::kResult && DimsOf(call.inputs[2]) != g.OutDims()) {
        return Fail(why, WEFT_INVALID_ARGUMENT,
                    "Conv2DSlowBackprop: Size of out_backprop doesn't match computed: actual = " +
                        Text(DimsOf(call.inputs[2])) + ", computed = " + Text(g.OutDims()));
      }
      const Dims dims = wanted == Wanted::kResult  ? g.OutDims()
                        : wanted == Wanted::kImage ? image
                                                   : filter;
      const weft_tensor* const y = Output(call, 0, -1, dims);
      if (y == nullptr) return WEFT_OUT_OF_MEMORY;
      const uint64_t a = call.inputs[wanted == Wanted::kImage ? 1 : 0].address;
      const uint64_t b = call.inputs[wanted == Wanted::kResult ? 1 : 2].address;
      const Memory* const memory = &stream->device->memory;
      stream->Ask([=, to = y->address, count = y->elements] {
        ForReal(dtype, [&]<typename T>(T) {
          std::vector<double> sums(static_cast<size_t>(count));
          const T* const p = memory->At<T>(a);
          const T* const q = memory->At<T>(b);
          ForAll(g, [&](int64_t i, int64_t f, int64_t o) {
            if (wanted == Wanted::kResult) sums[o] += static_cast<double>(p[i]) * q[f];
            if (wanted == Wanted::kImage) sums[i] += static_cast<double>(p[f]) * q[o];
            if (wanted == Wanted::kFilter) sums[f] += static_cast<double>(p[i]) * q[o];
          });
          std::copy(sums.begin(), sums.end(), memory->At<T>(to));
        });
      });
      return WEFT_OK;
    };
    return WEFT_OK;
  };
}

}  // namespace

void AddConvolutions(std::vector<Kernel>* kernels) {
  const std::vector<int32_t> reals = {kFloat, kDouble};
  kernels->push_back({"Conv2D", {{"T", reals}}, Convolve(Wanted::kResult)});
  kernels->push_back({"Conv2DBackpropInput", {{"T", reals}}, Convolve(Wanted::kImage)});
  kernels->push_back({"Conv2DBackpropFilter", {{"T", reals}}, Convolve(Wanted::kFilter)});
}

}  // namespace asic
