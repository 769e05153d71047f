// SPDX-License-Identifier: Apache-2.0
// Choosing among boxes that overlap: the one with the highest score stands for the others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"

namespace weft::ops::image::non_max_suppression {
namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

// What both share of what either covers.
float Overlap(const Box& a, const Box& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0f);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0f);
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

float At(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kHalf ? static_cast<float>(tensor.data<Half>()[i])
                                        : tensor.data<float>()[i];
}

struct Limits {
  int64_t most = 0;
  float overlap = 0.5f;
  float score = -std::numeric_limits<float>::infinity();
  float sigma = 0;
};

struct Candidate {
  int64_t box;
  float score;
  size_t compared;  // with how many of the chosen ones
};
struct IsWorse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.score != b.score ? a.score < b.score : a.box > b.box;
  }
};

// Those that are chosen, with the scores that they have by then. Where sigma is not 0, an overlap
// lowers scores instead of excluding boxes (Bodla and others, 2017).
template <typename OverlapOf, typename ScoreOf>
std::vector<Candidate> Choose(int64_t boxes, const Limits& limits, const OverlapOf& overlap_of,
                              const ScoreOf& score_of) {
  std::priority_queue<Candidate, std::vector<Candidate>, IsWorse> queue;
  for (int64_t i = 0; i < boxes; ++i) {
    const float score = score_of(i);
    if (score > limits.score) queue.push({i, score, 0});
  }
  const bool is_soft = limits.sigma > 0;
  const float scale = is_soft ? -0.5f / limits.sigma : 0;
  std::vector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < limits.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool is_out = false;
    for (size_t j = chosen.size(); j-- > next.compared;) {
      const float overlap = overlap_of(next.box, chosen[j].box);
      if (!is_soft && overlap > limits.overlap) {
        is_out = true;
        break;
      }
      next.score *= std::exp(scale * overlap * overlap);
      if (next.score <= limits.score) break;
    }
    next.compared = chosen.size();
    if (is_out) continue;
    if (next.score == before) {
      chosen.push_back(next);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return chosen;
}

StatusOr<float> ScalarInput(const KernelContext& c, int i, const char* what) {
  if (c.input(i).rank() == 0) return At(c.input(i), 0);
  return InvalidArgument(what, " must be 0-D, got shape ", c.input(i).shape().ToString());
}

class SuppressionKernel final : public OpKernel {
 public:
  explicit SuppressionKernel(KernelConstruction& c)
      : overlap_(c.AttrOr<float>("iou_threshold", 0.5f)),
        pads_(c.AttrOr<bool>("pad_to_max_output_size", false)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Box> boxes, BoxesOf(c.input(0)));
    const Tensor scores = c.input(1);
    if (scores.rank() != 1 || scores.dim(0) != static_cast<int64_t>(boxes.size())) {
      return InvalidArgument("scores has incompatible shape: ", scores.shape().ToString(), " for ",
                             boxes.size(), " boxes");
    }
    WEFT_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(c));
    const std::vector<Candidate> chosen = Choose(
        static_cast<int64_t>(boxes.size()), limits,
        [&](int64_t i, int64_t j) { return Overlap(boxes[i], boxes[j]); },
        [&](int64_t i) { return At(scores, i); });
    const auto found = static_cast<int64_t>(chosen.size());
    const int64_t size = pads_ ? limits.most : found;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{size}));
    for (int64_t i = 0; i < size; ++i) {
      out->data<int32_t>()[i] = i < found ? static_cast<int32_t>(chosen[i].box) : 0;
    }
    const int last = c.num_outputs() - 1;
    if (last == 2) WEFT_RETURN_IF_ERROR(GiveScores(c, chosen, size));
    if (last > 0) c.SetOutput(last, Tensor::Scalar(static_cast<int32_t>(found)));
    return absl::OkStatus();
  }

 private:
  static StatusOr<std::vector<Box>> BoxesOf(const Tensor& given) {
    if (given.rank() != 2 || given.dim(1) != 4) {
      return InvalidArgument("boxes must be 2-D with 4 columns, got shape ",
                             given.shape().ToString());
    }
    std::vector<Box> boxes;
    for (int64_t i = 0; i < given.dim(0); ++i) {
      const float a = At(given, 4 * i), b = At(given, 4 * i + 1), c = At(given, 4 * i + 2),
                  d = At(given, 4 * i + 3);
      boxes.push_back({std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)});
    }
    return boxes;
  }

  StatusOr<Limits> LimitsOf(const KernelContext& c) const {
    Limits limits{.overlap = overlap_};
    if (c.input(2).rank() != 0) {
      return InvalidArgument("max_output_size must be 0-D, got shape ",
                             c.input(2).shape().ToString());
    }
    limits.most = c.input(2).scalar<int32_t>();
    if (limits.most < 0) {
      return InvalidArgument("max_output_size must be non-negative, got ", limits.most);
    }
    if (c.num_inputs() > 3) {
      WEFT_ASSIGN_OR_RETURN(limits.overlap, ScalarInput(c, 3, "iou_threshold"));
    }
    if (c.num_inputs() > 4) {
      WEFT_ASSIGN_OR_RETURN(limits.score, ScalarInput(c, 4, "score_threshold"));
    }
    if (c.num_inputs() > 5) {
      WEFT_ASSIGN_OR_RETURN(limits.sigma, ScalarInput(c, 5, "soft_nms_sigma"));
    }
    if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
      return InvalidArgument("iou_threshold must be in [0, 1], got ", limits.overlap);
    }
    if (limits.sigma >= 0) return limits;
    return InvalidArgument("soft_nms_sigma must be non-negative, got ", limits.sigma);
  }

  static Status GiveScores(KernelContext& c, const std::vector<Candidate>& chosen, int64_t size) {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(1, Shape{size}));
    VisitDType(out->dtype(), TypeList<float, Half>(), [&]<typename T>() {
      for (int64_t i = 0; i < size; ++i) {
        const bool is_there = i < static_cast<int64_t>(chosen.size());
        out->data<T>()[i] = static_cast<T>(is_there ? chosen[i].score : 0.0f);
      }
    });
    return absl::OkStatus();
  }

  const float overlap_;
  const bool pads_;
};

// Overlaps come as a matrix.
class GivenOverlapsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &overlaps = c.input(0), &scores = c.input(1);
    if (overlaps.rank() != 2 || overlaps.dim(0) != overlaps.dim(1)) {
      return InvalidArgument("overlaps must be 2-D and square, got shape ",
                             overlaps.shape().ToString());
    }
    if (scores.rank() != 1 || scores.dim(0) != overlaps.dim(0)) {
      return InvalidArgument("scores has incompatible shape: ", scores.shape().ToString(), " for ",
                             overlaps.dim(0), " boxes");
    }
    if (c.input(2).rank() != 0 || c.input(2).scalar<int32_t>() < 0) {
      return InvalidArgument("max_output_size must be 0-D and non-negative, got ",
                             c.input(2).ToString());
    }
    Limits limits{.most = c.input(2).scalar<int32_t>()};
    WEFT_ASSIGN_OR_RETURN(limits.overlap, ScalarInput(c, 3, "overlap_threshold"));
    WEFT_ASSIGN_OR_RETURN(limits.score, ScalarInput(c, 4, "score_threshold"));
    const int64_t boxes = scores.dim(0);
    const std::vector<Candidate> chosen = Choose(
        boxes, limits, [&](int64_t i, int64_t j) { return overlaps.data<float>()[i * boxes + j]; },
        [&](int64_t i) { return scores.data<float>()[i]; });
    WEFT_ASSIGN_OR_RETURN(Tensor * out,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(chosen.size())}));
    for (size_t i = 0; i < chosen.size(); ++i) {
      out->data<int32_t>()[i] = static_cast<int32_t>(chosen[i].box);
    }
    return absl::OkStatus();
  }
};

// For each picture of a batch: of each class the best boxes, and of these the best.
class CombinedKernel final : public OpKernel {
 public:
  explicit CombinedKernel(KernelConstruction& c)
      : pads_per_class_(c.AttrOr<bool>("pad_per_class", false)),
        clips_(c.AttrOr<bool>("clip_boxes", true)) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckBoxes(c.input(0), c.input(1)));
    const Tensor& scores = c.input(1);
    Limits limits;
    WEFT_ASSIGN_OR_RETURN(limits.most, SizeInput(c, 2, "max_size_per_class"));
    WEFT_ASSIGN_OR_RETURN(int64_t total, SizeInput(c, 3, "max_total_size"));
    WEFT_ASSIGN_OR_RETURN(limits.overlap, ScalarInput(c, 4, "iou_threshold"));
    WEFT_ASSIGN_OR_RETURN(limits.score, ScalarInput(c, 5, "score_threshold"));
    if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
      return InvalidArgument("iou_threshold must be in [0, 1], got ", limits.overlap);
    }
    const int64_t batch = scores.dim(0), classes = scores.dim(2);
    if (pads_per_class_) {
      WEFT_ASSIGN_OR_RETURN(const int64_t all, MultiplySizes(limits.most, classes));
      total = std::min(total, all);
    }
    WEFT_ASSIGN_OR_RETURN(const Shape of_boxes, Shape::Make({batch, total, 4}));
    Tensor* out[4];
    for (int i = 0; i < 4; ++i) {
      const Shape shape = i == 0 ? of_boxes : i == 3 ? Shape{batch} : Shape{batch, total};
      WEFT_ASSIGN_OR_RETURN(out[i], c.AllocateOutput(i, shape));
      ClearElements(out[i], 0, out[i]->num_elements());
    }
    c.ParallelFor(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end && !c.cancellation().IsCancelled(); ++n) {
        ChoosePicture(c.input(0), scores, n, limits, total, out);
      }
    });
    return c.cancellation().status();
  }

 private:
  struct Found {
    float score;
    int64_t label;
    Box box;
  };

  static Status CheckBoxes(const Tensor& boxes, const Tensor& scores) {
    if (boxes.rank() != 4) {
      return InvalidArgument("boxes must be 4-D", boxes.shape().ToString());
    }
    if (scores.rank() != 3) {
      return InvalidArgument("scores must be 3-D", scores.shape().ToString());
    }
    if (boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(1)) {
      return InvalidArgument("boxes and scores must have the same batch and boxes: ",
                             boxes.shape().ToString(), " and ", scores.shape().ToString());
    }
    if (boxes.dim(3) == 4 && (boxes.dim(2) == 1 || boxes.dim(2) == scores.dim(2))) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        "third dimension of boxes must be either 1 or num classes, the fourth 4: ",
        boxes.shape().ToString());
  }
  static StatusOr<int64_t> SizeInput(const KernelContext& c, int i, const char* what) {
    if (c.input(i).rank() != 0) {
      return InvalidArgument(what, " must be 0-D, got shape ", c.input(i).shape().ToString());
    }
    const int64_t size = c.input(i).scalar<int32_t>();
    if (size > 0) return size;
    return InvalidArgument(what, " must be positive, got ", size);
  }

  void ChoosePicture(const Tensor& boxes, const Tensor& scores, int64_t n, const Limits& limits,
                     int64_t total, Tensor** out) const {
    const int64_t count = boxes.dim(1), sets = boxes.dim(2), classes = scores.dim(2);
    const auto box_of = [&](int64_t i, int64_t label) {
      const float* at =
          boxes.data<float>() + ((n * count + i) * sets + (sets == 1 ? 0 : label)) * 4;
      return Box{at[0], at[1], at[2], at[3]};
    };
    const auto ordered = [](const Box& b) {
      return Box{std::min(b.top, b.bottom), std::min(b.left, b.right), std::max(b.top, b.bottom),
                 std::max(b.left, b.right)};
    };
    std::vector<Found> found;
    for (int64_t label = 0; label < classes; ++label) {
      for (const Candidate& chosen : Choose(
               count, limits,
               [&](int64_t i, int64_t j) {
                 return Overlap(ordered(box_of(i, label)), ordered(box_of(j, label)));
               },
               [&](int64_t i) {
                 return scores.data<float>()[(n * count + i) * classes + label];
               })) {
        found.push_back({chosen.score, label, box_of(chosen.box, label)});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    const int64_t kept = std::min(total, static_cast<int64_t>(found.size()));
    for (int64_t i = 0; i < kept; ++i) {
      const Found& one = found[static_cast<size_t>(i)];
      float* to = out[0]->data<float>() + (n * total + i) * 4;
      const float sides[] = {one.box.top, one.box.left, one.box.bottom, one.box.right};
      for (int k = 0; k < 4; ++k) to[k] = clips_ ? std::clamp(sides[k], 0.0f, 1.0f) : sides[k];
      out[1]->data<float>()[n * total + i] = one.score;
      out[2]->data<float>()[n * total + i] = static_cast<float>(one.label);
    }
    out[3]->data<int32_t>()[n] = static_cast<int32_t>(kept);
  }

  const bool pads_per_class_, clips_;
};

Status CombinedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(0, 4));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 3).status());
  c.set_output(0, PartialShape({boxes.dim(0), -1, 4}));
  for (const int i : {1, 2}) c.set_output(i, PartialShape({boxes.dim(0), -1}));
  c.set_output(3, PartialShape({boxes.dim(0)}));
  return absl::OkStatus();
}

Status SuppressionShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const int last = c.num_outputs() - 1;
  c.set_output(0, PartialShape({-1}));
  if (last == 2) c.set_output(1, PartialShape({-1}));
  if (last > 0) c.set_output(last, Shape());
  return absl::OkStatus();
}

// What the versions differ in: thresholds as inputs, padding, scores.
void AddVersion(Catalogue& catalogue, int version) {
  OpSpec spec(absl::StrCat("NonMaxSuppression", version > 1 ? absl::StrCat("V", version) : ""));
  spec.Doc(
      "The numbers of at most max_output_size boxes, the highest score first, without those "
      "that overlap a chosen one by more than iou_threshold.\n"
      "Boxes are two opposite corners, [y, x, y, x]. Those at or below score_threshold do not "
      "count. With a soft_nms_sigma, overlaps lower scores instead.");
  const std::string type = version == 1 ? "float" : "T";
  const std::string threshold = version == 5 ? "T" : "T_threshold";
  spec.Input("boxes: " + type).Input("scores: " + type).Input("max_output_size: int32");
  if (version > 1) spec.Input("iou_threshold: " + threshold);
  if (version > 2) spec.Input("score_threshold: " + threshold);
  if (version == 5) spec.Input("soft_nms_sigma: T");
  spec.Output("selected_indices: int32");
  if (version == 5) spec.Output("selected_scores: T");
  if (version >= 4) spec.Output("valid_outputs: int32");
  if (version == 1) spec.Attr("iou_threshold: float = 0.5");
  if (version > 1) spec.Attr("T: {half, float} = DT_FLOAT");
  if (version > 1 && version < 5) spec.Attr("T_threshold: {half, float} = DT_FLOAT");
  if (version >= 4) spec.Attr("pad_to_max_output_size: bool = false");
  spec.Shape(SuppressionShape).NoGradient().Kernel(MakeKernel<SuppressionKernel>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (int version = 1; version <= 5; ++version) AddVersion(catalogue, version);
  catalogue.Add(OpSpec("NonMaxSuppressionWithOverlaps")
                    .Doc("NonMaxSuppression with a matrix of how far each box overlaps each other.")
                    .Input("overlaps: float")
                    .Input("scores: float")
                    .Input("max_output_size: int32")
                    .Input("overlap_threshold: float")
                    .Input("score_threshold: float")
                    .Output("selected_indices: int32")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({-1}));
                      return c.WithRank(0, 2).status();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<GivenOverlapsKernel>()));
  catalogue.Add(
      OpSpec("CombinedNonMaxSuppression")
          .Doc(
              "NonMaxSuppression of each class of each picture: boxes [batch, boxes, 1 or classes, "
              "4], scores [batch, boxes, classes].\n"
              "The best max_total_size of a picture's boxes are kept, with scores and classes; "
              "zeros follow.")
          .Input("boxes: float")
          .Input("scores: float")
          .Input("max_output_size_per_class: int32")
          .Input("max_total_size: int32")
          .Input("iou_threshold: float")
          .Input("score_threshold: float")
          .Output("nmsed_boxes: float")
          .Output("nmsed_scores: float")
          .Output("nmsed_classes: float")
          .Output("valid_detections: int32")
          .Attr("pad_per_class: bool = false")
          .Attr("clip_boxes: bool = true")
          .Shape(CombinedShape)
          .NoGradient()
          .Kernel(MakeKernel<CombinedKernel>()));
}

}  // namespace weft::ops::image::non_max_suppression
