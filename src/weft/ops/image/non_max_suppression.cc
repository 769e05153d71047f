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
std::vector<Candidate> Choose(const std::vector<Box>& boxes, const Tensor& scores,
                              const Limits& limits) {
  std::priority_queue<Candidate, std::vector<Candidate>, IsWorse> queue;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float score = At(scores, static_cast<int64_t>(i));
    if (score > limits.score) queue.push({static_cast<int64_t>(i), score, 0});
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
      const float overlap = Overlap(boxes[next.box], boxes[chosen[j].box]);
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
    const std::vector<Candidate> chosen = Choose(boxes, scores, limits);
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
}

}  // namespace weft::ops::image::non_max_suppression
