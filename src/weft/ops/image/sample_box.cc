// SPDX-License-Identifier: Apache-2.0
// Boxes drawn at random in a picture so that they cover enough of what is in it.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/random/distribution_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::image::sample_box {
namespace {

struct Box {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  float area() const { return static_cast<float>((right - left) * (bottom - top)); }
};

float SharedArea(const Box& a, const Box& b) {
  const Box shared{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                   std::min(a.bottom, b.bottom)};
  return shared.left > shared.right || shared.top > shared.bottom ? 0.0f : shared.area();
}

bool CoversOne(const Box& crop, float least, const std::vector<Box>& objects) {
  if (crop.area() < 1) return false;
  for (const Box& object : objects) {
    if (object.area() < 1) continue;
    if (SharedArea(crop, object) / object.area() >= least) return true;
  }
  return false;
}

// Numbers in the order in which TensorFlow draws them.
class Draws {
 public:
  explicit Draws(const Philox& philox) : words_(philox) {}
  float Unit() {
    const uint32_t word = words_.Next();
    return UniformFrom<float>(&word);
  }
  // In [0, n). Words that would favour small numbers are drawn again.
  int64_t Below(int64_t n) {
    const auto limit = static_cast<uint32_t>(n);
    if ((limit & (limit - 1)) == 0) return words_.Next() & (limit - 1);
    const uint32_t skewed = std::numeric_limits<uint32_t>::max() % limit + 1;
    uint32_t word = words_.Next();
    while (word < skewed) word = words_.Next();
    return word % limit;
  }

 private:
  PhiloxWords words_;
};

int64_t Round(float x) { return std::lrintf(x); }

struct Options {
  AttrValue::FloatList aspects, areas;
  int64_t attempts = 100;
  bool takes_whole_image = false;
  float least_covered = 0.1f;
};

// A box of `aspect` = width / height within the range of areas; nothing if there is none.
std::optional<Box> DrawBox(int64_t width, int64_t height, const Options& o, float aspect,
                           Draws& draws) {
  if (o.areas[1] <= 0 || aspect <= 0 || width <= 0 || height <= 0 || o.areas[0] > o.areas[1]) {
    return std::nullopt;
  }
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  const float least = o.areas[0] * w * h, most = o.areas[1] * w * h;
  int64_t rows = Round(std::sqrt(least / aspect));
  int64_t most_rows = Round(std::sqrt(most / aspect));
  if (Round(static_cast<float>(most_rows) * aspect) > width) {
    most_rows = static_cast<int64_t>((w + 0.5 - 0.0000001f) / aspect);
    if (Round(static_cast<float>(most_rows) * aspect) > width) most_rows -= 1;
  }
  most_rows = std::min(most_rows, height);
  rows = std::min(rows, most_rows);
  if (rows < most_rows) rows += draws.Below(most_rows - rows + 1);
  const auto columns_of = [&](int64_t n) { return Round(static_cast<float>(n) * aspect); };
  int64_t columns = columns_of(rows);
  // Rounding may have led out of the range: one row more, or one less.
  auto area = static_cast<float>(columns * rows);
  if (area < least) {
    columns = columns_of(++rows);
    area = static_cast<float>(columns * rows);
  }
  if (area > most) {
    columns = columns_of(--rows);
    area = static_cast<float>(columns * rows);
  }
  if (area < least || area > most || columns > width || rows > height || columns <= 0 || rows <= 0)
    return std::nullopt;
  const int64_t y = rows < height ? draws.Below(height - rows) : 0;
  const int64_t x = columns < width ? draws.Below(width - columns) : 0;
  return Box{x, y, x + columns, y + rows};
}

StatusOr<std::vector<Box>> ObjectsOf(const Tensor& boxes, int64_t width, int64_t height) {
  if (boxes.rank() != 3) {
    return InvalidArgument("input boxes must be 3-dimensional [batch, num_boxes, coords]: ",
                           boxes.shape().ToString());
  }
  if (boxes.dim(2) != 4) {
    return InvalidArgument("bounding boxes must have shape [4] or [*, 4], got ",
                           boxes.shape().ToString());
  }
  std::vector<Box> objects;
  const float* at = boxes.data<float>();
  for (int64_t i = 0; i < boxes.num_elements(); ++i) {
    if (!(at[i] >= 0 && at[i] <= 1)) {
      return InvalidArgument("All bounding box coordinates must be in [0.0, 1.0]: ", at[i]);
    }
  }
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  for (int64_t i = 0; i + 3 < boxes.num_elements(); i += 4) {
    objects.push_back({static_cast<int64_t>(at[i + 1] * w), static_cast<int64_t>(at[i] * h),
                       static_cast<int64_t>(at[i + 3] * w), static_cast<int64_t>(at[i + 2] * h)});
  }
  return objects;
}

StatusOr<Options> OptionsOf(const KernelConstruction& c) {
  Options o;
  WEFT_ASSIGN_OR_RETURN(o.aspects, c.Attr<AttrValue::FloatList>("aspect_ratio_range"));
  WEFT_ASSIGN_OR_RETURN(o.areas, c.Attr<AttrValue::FloatList>("area_range"));
  WEFT_ASSIGN_OR_RETURN(o.attempts, c.Attr<int64_t>("max_attempts"));
  o.takes_whole_image = c.AttrOr<bool>("use_image_if_no_bounding_boxes", false);
  o.least_covered = c.AttrOr<float>("min_object_covered", 0.1f);
  if (o.aspects.size() != 2) {
    return InvalidArgument("Aspect ratio range field must specify 2 dimensions");
  }
  if (!(o.aspects[0] > 0 && o.aspects[1] > 0)) {
    return InvalidArgument("Aspect ratio range must be non-negative: [", o.aspects[0], ", ",
                           o.aspects[1], "]");
  }
  if (o.areas.size() != 2) return InvalidArgument("Area range field must specify 2 dimensions");
  if (!(o.areas[0] > 0 && o.areas[1] > 0)) {
    return InvalidArgument("Area range must be non-negative: [", o.areas[0], ", ", o.areas[1], "]");
  }
  if (!(o.areas[0] <= 1 && o.areas[1] <= 1)) {
    return InvalidArgument("Area range must be less then or equal to 1.0: [", o.areas[0], ", ",
                           o.areas[1], "]");
  }
  if (o.attempts <= 0 || o.attempts > std::numeric_limits<int32_t>::max() / 4) {
    return InvalidArgument("Max attempts must be positive and below 2^29: ", o.attempts);
  }
  if (!(o.least_covered >= 0)) {
    return InvalidArgument("Min object covered must be non-negative: ", o.least_covered);
  }
  return o;
}

class SampleKernel : public OpKernel {
 public:
  explicit SampleKernel(Options options) : options_(std::move(options)) {}

 protected:
  Status Sample(KernelContext& c, const Philox& philox) const {
    Options o = options_;
    if (c.num_inputs() > 2) {
      if (c.input(2).rank() != 0) {
        return InvalidArgument("min_object_covered must be 0-D, got shape ",
                               c.input(2).shape().ToString());
      }
      o.least_covered = c.input(2).scalar<float>();
      if (!(o.least_covered >= 0)) {
        return InvalidArgument("Min object covered must be non-negative: ", o.least_covered);
      }
    }
    if (c.input(0).rank() != 1 || c.input(0).dim(0) != 3) {
      return InvalidArgument("image_size must be 1-dimensional and contain 3 elements",
                             c.input(0).shape().ToString());
    }
    const int64_t height = IndexAt(c.input(0), 0), width = IndexAt(c.input(0), 1);
    for (const int64_t side : {height, width}) {
      if (side >= 0 && side < std::numeric_limits<int32_t>::max()) continue;
      return InvalidArgument("image height and width cannot be negative or >= int32 max, got ",
                             side);
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<Box> objects, ObjectsOf(c.input(1), width, height));
    const Box image{0, 0, width, height};
    if (objects.empty()) {
      if (!o.takes_whole_image) {
        return InvalidArgument(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes "
            "if you wish to not provide any bounding boxes.");
      }
      objects.push_back(image);
    }
    Draws draws(philox);
    for (int64_t i = 0; i < o.attempts; ++i) {
      if (i % 4096 == 4095) WEFT_RETURN_IF_ERROR(c.cancellation().status());
      const float aspect = draws.Unit() * (o.aspects[1] - o.aspects[0]) + o.aspects[0];
      const auto crop = DrawBox(width, height, o, aspect, draws);
      if (crop.has_value() && CoversOne(*crop, o.least_covered, objects)) {
        return Give(c, *crop, image);
      }
    }
    return Give(c, image, image);
  }

 private:
  static Status Give(KernelContext& c, const Box& crop, const Box& image) {
    WEFT_ASSIGN_OR_RETURN(Tensor * begin, c.AllocateOutput(0, Shape{3}));
    WEFT_ASSIGN_OR_RETURN(Tensor * size, c.AllocateOutput(1, Shape{3}));
    WEFT_ASSIGN_OR_RETURN(Tensor * box, c.AllocateOutput(2, Shape{1, 1, 4}));
    VisitDType(begin->dtype(), Integers(), [&]<typename T>() {
      T *b = begin->data<T>(), *s = size->data<T>();
      b[0] = static_cast<T>(crop.top);
      b[1] = static_cast<T>(crop.left);
      b[2] = T(0);
      s[0] = static_cast<T>(crop.bottom - crop.top);
      s[1] = static_cast<T>(crop.right - crop.left);
      s[2] = static_cast<T>(-1);
    });
    const auto height = static_cast<float>(image.bottom), width = static_cast<float>(image.right);
    float* at = box->data<float>();
    at[0] = static_cast<float>(crop.top) / height;
    at[1] = static_cast<float>(crop.left) / width;
    at[2] = static_cast<float>(crop.bottom) / height;
    at[3] = static_cast<float>(crop.right) / width;
    return absl::OkStatus();
  }

  const Options options_;
};

class StatefulKernel final : public SampleKernel {
 public:
  StatefulKernel(KernelConstruction& c, const Options& options)
      : SampleKernel(options), reserved_(static_cast<uint64_t>(options.attempts)), generator_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, OptionsOf(c));
    return std::make_unique<StatefulKernel>(c, options);
  }
  Status Compute(KernelContext& c) override { return Sample(c, generator_.Reserve(reserved_)); }

 private:
  const uint64_t reserved_;  // each attempt may take four words, which is one step
  GuardedPhilox generator_;
};

class StatelessKernel final : public SampleKernel {
 public:
  using SampleKernel::SampleKernel;
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(Options options, OptionsOf(c));
    return std::make_unique<StatelessKernel>(std::move(options));
  }
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Philox philox, GeneratorOfSeed(c.input(3)));
    return Sample(c, philox);
  }
};

Status SampleShape(ShapeContext& c) {
  c.set_output(0, PartialShape({3}));
  c.set_output(1, PartialShape({3}));
  c.set_output(2, PartialShape({1, 1, 4}));
  return absl::OkStatus();
}

enum class Version { kFirst, kSecond, kStateless };

void AddVersion(Catalogue& catalogue, Version version) {
  const bool is_stateless = version == Version::kStateless;
  OpSpec spec(is_stateless                  ? "StatelessSampleDistortedBoundingBox"
              : version == Version::kSecond ? "SampleDistortedBoundingBoxV2"
                                            : "SampleDistortedBoundingBox");
  spec.Doc(
      "A box drawn at random in a picture of image_size, as begin and size for Slice and as "
      "fractions of the picture.\n"
      "It covers at least min_object_covered of one of the bounding boxes; the whole picture after "
      "max_attempts.");
  spec.Input("image_size: T").HostInput("image_size").Input("bounding_boxes: float");
  if (version != Version::kFirst) spec.Input("min_object_covered: float");
  if (is_stateless) spec.Input("seed: Tseed").HostInput("seed");
  spec.Output("begin: T").Output("size: T").Output("bboxes: float");
  spec.Attr("T: {uint8, int8, int16, int32, int64}");
  if (is_stateless) {
    spec.Attr("Tseed: {int32, int64}");
  } else {
    spec.Attr("seed: int = 0").Attr("seed2: int = 0").Stateful();
  }
  if (version == Version::kFirst) spec.Attr("min_object_covered: float = 0.1");
  spec.Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1.0]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .Shape(SampleShape)
      .NoGradient()
      .Kernel(is_stateless ? MakeKernel<StatelessKernel>() : MakeKernel<StatefulKernel>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const Version version : {Version::kFirst, Version::kSecond, Version::kStateless}) {
    AddVersion(catalogue, version);
  }
}

}  // namespace weft::ops::image::sample_box
