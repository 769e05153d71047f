// SPDX-License-Identifier: Apache-2.0
// Labels from the outputs of a network that was trained with CTCLoss: the best class of each step,
// or a search along several beams.
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::nn::ctc_decode {
namespace {

using Labels = std::vector<int64_t>;
using FloatTypes = TypeList<float, double>;

Status CheckInputs(const KernelContext& c) {
  const Tensor &in = c.input(0), &lengths = c.input(1);
  if (in.rank() != 3) {
    return InvalidArgument("inputs is not a 3-Tensor, got ", in.shape().ToString());
  }
  if (in.num_elements() == 0) {
    return InvalidArgument("inputs must not be empty, got ", in.shape().ToString());
  }
  if (lengths.rank() != 1) {
    return InvalidArgument("sequence_length is not a vector, got ", lengths.shape().ToString());
  }
  if (lengths.dim(0) != in.dim(1)) {
    return FailedPrecondition("len(sequence_length) != batch_size.  len(sequence_length):  ",
                              lengths.dim(0), " batch_size: ", in.dim(1));
  }
  for (int64_t n = 0; n < lengths.dim(0); ++n) {
    if (lengths.data<int32_t>()[n] > in.dim(0)) {
      return FailedPrecondition("sequence_length(", n, ") <= ", in.dim(0), ", got ",
                                lengths.data<int32_t>()[n]);
    }
  }
  return absl::OkStatus();
}

// Labels of all sequences as sparse outputs `first`, `first + step` and `first + 2 * step`.
Status GiveSparse(KernelContext& c, const std::vector<Labels>& sequences, int first, int step) {
  int64_t total = 0, longest = 0;
  for (const Labels& labels : sequences) {
    total += static_cast<int64_t>(labels.size());
    longest = std::max(longest, static_cast<int64_t>(labels.size()));
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(first, Shape{total, 2}));
  WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(first + step, Shape{total}));
  WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(first + 2 * step, Shape{2}));
  int64_t* row = indices->data<int64_t>();
  int64_t* value = values->data<int64_t>();
  for (size_t n = 0; n < sequences.size(); ++n) {
    for (size_t i = 0; i < sequences[n].size(); ++i) {
      *row++ = static_cast<int64_t>(n);
      *row++ = static_cast<int64_t>(i);
      *value++ = sequences[n][i];
    }
  }
  shape->data<int64_t>()[0] = static_cast<int64_t>(sequences.size());
  shape->data<int64_t>()[1] = longest;
  return absl::OkStatus();
}

class GreedyKernel final : public OpKernel {
 public:
  explicit GreedyKernel(KernelConstruction& c)
      : merges_(c.AttrOr<bool>("merge_repeated", false)),
        blank_(c.AttrOr<int64_t>("blank_index", -1)) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckInputs(c));
    const Tensor& in = c.input(0);
    const int64_t batch = in.dim(1), classes = in.dim(2);
    const int64_t blank = blank_ < 0 ? classes + blank_ : blank_;
    if (blank < 0 || blank >= classes) {
      return InvalidArgument("blank_index expected to be between ", -classes, " and ", classes - 1,
                             " but was ", blank_);
    }
    std::vector<Labels> sequences(static_cast<size_t>(batch));
    WEFT_ASSIGN_OR_RETURN(Tensor * score, c.AllocateOutput(3, Shape{batch, 1}));
    VisitDType(in.dtype(), FloatTypes(), [&]<typename T>() {
      c.ParallelFor(batch, 16, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          T sum = 0;
          int64_t before = -1;
          for (int64_t t = 0; t < c.input(1).data<int32_t>()[n]; ++t) {
            const T* row = in.data<T>() + (t * batch + n) * classes;
            int64_t best = 0;
            for (int64_t l = 1; l < classes; ++l) {
              if (row[l] > row[best]) best = l;
            }
            sum += -row[best];
            if (best != blank && !(merges_ && best == before)) {
              sequences[static_cast<size_t>(n)].push_back(best);
            }
            before = best;
          }
          score->data<T>()[n] = sum;
        }
      });
    });
    return GiveSparse(c, sequences, 0, 1);
  }

 private:
  const bool merges_;
  const int64_t blank_;
};

constexpr int64_t kMostNodes = int64_t{1} << 24;  // of the tree of beams of one sequence

// The search of one sequence: a tree of label sequences, of which the `width` most likely ones, the
// leaves, go on. Each counts apart how likely it ends with its last label and with a blank.
template <typename T>
class BeamSearch {
 public:
  BeamSearch(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    Node& root = nodes_.emplace_back();
    root.now.total = root.now.blank = 0;
    Keep(&root);
  }

  Status Step(const T* row, const Cancellation& cancellation) {
    const T largest = *std::max_element(row, row + classes_);
    T sum = 0;
    for (int64_t l = 0; l < classes_; ++l) sum += std::exp(row[l] - largest);
    const T norm = largest + std::log(sum);
    const std::vector<Node*> branches = Best(leaves_.size());
    leaves_.clear();
    for (Node* b : branches) b->before = b->now;
    for (Node* b : branches) GoOn(row, norm, b);
    int64_t work = 0;
    for (Node* b : branches) {
      if (!IsCandidate(b->before.total)) continue;
      if ((work += classes_) > (1 << 20)) {
        work = 0;
        WEFT_RETURN_IF_ERROR(cancellation.status());
      }
      for (int64_t label = 0; label + 1 < classes_; ++label) Grow(b, label, row[label] - norm);
      if (static_cast<int64_t>(nodes_.size()) > kMostNodes) {
        return ResourceExhausted("The beams of one sequence grew over ", kMostNodes,
                                 " nodes: beam_width ", width_, " is too large for its length");
      }
    }
    return cancellation.status();
  }

  // The `n` best, each with its labels and the logarithm of its probability.
  StatusOr<std::vector<std::pair<Labels, T>>> Paths(int64_t n, bool merges) const {
    if (n > width_) return InvalidArgument("requested more paths than the beam width.");
    if (n > static_cast<int64_t>(leaves_.size())) {
      return InvalidArgument("Less leaves in the beam search than requested.");
    }
    std::vector<std::pair<Labels, T>> paths;
    for (const Node* leaf : Best(static_cast<size_t>(n))) {
      Labels labels;
      int64_t before = -1;
      for (const Node* at = leaf; at->parent != nullptr; at = at->parent) {
        if (!merges || at->label != before) labels.push_back(at->label);
        before = at->label;
      }
      paths.emplace_back(Labels(labels.rbegin(), labels.rend()), leaf->now.total);
    }
    return paths;
  }

 private:
  static constexpr T kZero = -std::numeric_limits<T>::infinity();
  struct Probability {
    T total = kZero, blank = kZero, label = kZero;
  };
  struct Node {
    Node* parent = nullptr;
    int64_t label = -1;
    int64_t order = 0;  // among leaves: who came first
    Probability before, now;
    std::map<int64_t, Node*> children;
    bool IsActive() const { return now.total != kZero; }
  };
  struct IsBetter {
    bool operator()(const Node* a, const Node* b) const {
      return a->now.total != b->now.total ? a->now.total > b->now.total : a->order < b->order;
    }
  };

  static T LogSum(T a, T b) {
    if (a == kZero) return b;
    if (b == kZero) return a;
    return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
  }

  std::vector<Node*> Best(size_t n) const {
    std::vector<Node*> best;
    for (auto at = leaves_.begin(); best.size() < n; ++at) best.push_back(*at);
    return best;
  }
  void Keep(Node* node) {
    node->order = next_order_++;
    leaves_.insert(node);
  }
  bool IsCandidate(T total) const {
    return total > kZero && (static_cast<int64_t>(leaves_.size()) < width_ ||
                             total > (*leaves_.rbegin())->now.total);
  }

  // One more step that ends with the same labels: a blank, or the last label again.
  void GoOn(const T* row, T norm, Node* b) {
    if (b->parent != nullptr) {
      if (b->parent->IsActive()) {
        const Probability& parent = b->parent->before;
        b->now.label =
            LogSum(b->now.label, b->label == b->parent->label ? parent.blank : parent.total);
      }
      b->now.label += row[b->label] - norm;
    }
    b->now.blank = b->before.total + row[classes_ - 1] - norm;
    b->now.total = LogSum(b->now.blank, b->now.label);
    Keep(b);
  }

  // One more label, if that is likely enough.
  void Grow(Node* b, int64_t label, T score) {
    const auto found = b->children.find(label);
    Node* child = found == b->children.end() ? nullptr : found->second;
    if (child != nullptr && child->IsActive()) return;
    const T total = score + (label == b->label ? b->before.blank : b->before.total);
    if (!IsCandidate(total)) {
      if (child != nullptr) child->before = child->now = Probability();
      return;
    }
    if (child == nullptr) {
      child = &nodes_.emplace_back();
      child->parent = b;
      child->label = label;
      b->children.emplace(label, child);
    }
    if (static_cast<int64_t>(leaves_.size()) >= width_) {
      Node* worst = *leaves_.rbegin();
      leaves_.erase(worst);
      worst->now = Probability();
    }
    child->now = {total, kZero, total};
    Keep(child);
  }

  const int64_t width_, classes_;
  std::deque<Node> nodes_;
  std::set<Node*, IsBetter> leaves_;
  int64_t next_order_ = 0;
};

class BeamKernel final : public OpKernel {
 public:
  BeamKernel(int64_t width, int64_t paths, bool merges)
      : width_(width), paths_(paths), merges_(merges) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t width, c.Attr<int64_t>("beam_width"));
    WEFT_ASSIGN_OR_RETURN(const int64_t paths, c.Attr<int64_t>("top_paths"));
    WEFT_ASSIGN_OR_RETURN(const bool merges, c.Attr<bool>("merge_repeated"));
    return std::make_unique<BeamKernel>(width, paths, merges);
  }

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckInputs(c));
    const Tensor& in = c.input(0);
    const int64_t batch = in.dim(1), classes = in.dim(2);
    const auto count = static_cast<int>(paths_);
    std::vector<std::vector<Labels>> found(static_cast<size_t>(paths_),
                                           std::vector<Labels>(static_cast<size_t>(batch)));
    WEFT_ASSIGN_OR_RETURN(Tensor * scores, c.AllocateOutput(3 * count, Shape{batch, paths_}));
    Status status;
    VisitDType(in.dtype(), FloatTypes(), [&]<typename T>() {
      for (int64_t n = 0; n < batch && status.ok(); ++n) {
        BeamSearch<T> search(width_, classes);
        for (int64_t t = 0; t < c.input(1).data<int32_t>()[n] && status.ok(); ++t) {
          status = search.Step(in.data<T>() + (t * batch + n) * classes, c.cancellation());
        }
        if (!status.ok()) return;
        auto paths = search.Paths(paths_, merges_);
        status = paths.status();
        if (!status.ok()) return;
        for (size_t p = 0; p < paths->size(); ++p) {
          found[p][static_cast<size_t>(n)] = std::move((*paths)[p].first);
          scores->data<T>()[n * paths_ + static_cast<int64_t>(p)] = (*paths)[p].second;
        }
      }
    });
    WEFT_RETURN_IF_ERROR(status);
    for (int p = 0; p < count; ++p) WEFT_RETURN_IF_ERROR(GiveSparse(c, found[p], p, count));
    return absl::OkStatus();
  }

 private:
  const int64_t width_, paths_;
  const bool merges_;
};

Status DecodedShape(ShapeContext& c, int paths) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 3));
  for (int p = 0; p < paths; ++p) {
    c.set_output(p, PartialShape({-1, 2}));
    c.set_output(paths + p, PartialShape({-1}));
    c.set_output(2 * paths + p, PartialShape({2}));
  }
  c.set_output(3 * paths, PartialShape({in.dim(1), paths}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("CTCGreedyDecoder")
                    .Doc("The labels of the best class of each step of inputs [steps, batch, "
                         "classes], without blanks, as sparse tensor, and the sum of what was not "
                         "reached.")
                    .Input("inputs: T")
                    .Input("sequence_length: int32")
                    .Output("decoded_indices: int64")
                    .Output("decoded_values: int64")
                    .Output("decoded_shape: int64")
                    .Output("log_probability: T")
                    .Attr("merge_repeated: bool = false")
                    .Attr("blank_index: int = -1")
                    .Attr("T: {float, double} = DT_FLOAT")
                    .Shape([](ShapeContext& c) { return DecodedShape(c, 1); })
                    .NoGradient()
                    .Kernel(MakeKernel<GreedyKernel>()));
  catalogue.Add(
      OpSpec("CTCBeamSearchDecoder")
          .Doc("The top_paths most likely label sequences for inputs [steps, batch, classes], as "
               "sparse tensors, with the logarithms of their probabilities.\n"
               "The search keeps beam_width sequences a step. ResourceExhausted where their tree "
               "grows too large.")
          .Input("inputs: T")
          .Input("sequence_length: int32")
          .Output("decoded_indices: top_paths * int64")
          .Output("decoded_values: top_paths * int64")
          .Output("decoded_shape: top_paths * int64")
          .Output("log_probability: T")
          .Attr("beam_width: int >= 1")
          .Attr("top_paths: int >= 1")
          .Attr("merge_repeated: bool = true")
          .Attr("T: {float, double} = DT_FLOAT")
          .Shape([](ShapeContext& c) { return DecodedShape(c, (c.num_outputs() - 1) / 3); })
          .NoGradient()
          .Kernel(MakeKernel<BeamKernel>()));
}

}  // namespace weft::ops::nn::ctc_decode
