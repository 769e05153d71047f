// SPDX-License-Identifier: Apache-2.0
// A tree of element-wise ops in one pass: what the compiler makes of Add, Mul, Exp, ... in a row.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::fused_elementwise {
namespace {

// Elements that stay in the cache while all ops pass over them.
constexpr int64_t kTile = 1024;
constexpr int64_t kGrain = 8192;
constexpr int64_t kNoOperand = INT32_MIN;

// One op of the program. An operand is an input (0 and up), a result of an earlier op (-1 and down:
// -1 - op), or kNoOperand.
struct Part {
  decltype(TileBody::run) run = nullptr;
  int64_t a = kNoOperand;
  int64_t b = kNoOperand;
  DType output = DType::kInvalid;
  int scratch = 0;  // which tile buffer the result is in
};

// Where an input lies under the output, seen as rows of `inner` elements: the steps from row to row
// (by outer dimension) and inside a row (0 or 1).
struct Loops {
  struct Dim {
    int64_t size = 1;
    absl::InlinedVector<int64_t, 8> stride;
  };
  absl::InlinedVector<Dim, 4> outer;  // innermost first
  Dim inner;
  int64_t num_rows = 1;
};

Loops MakeLoops(const Shape& out, const KernelContext& c) {
  Loops loops;
  const int n = c.num_inputs();
  absl::InlinedVector<int64_t, 8> running(n, 1);
  bool first = true;
  loops.inner.stride.assign(n, 0);
  for (int back = 1; back <= out.rank(); ++back) {
    Loops::Dim dim{.size = out.dim(out.rank() - back)};
    for (int i = 0; i < n; ++i) {
      const Shape& shape = c.input(i).shape();
      const int64_t size = back <= shape.rank() ? shape.dim(shape.rank() - back) : 1;
      dim.stride.push_back(size == 1 ? 0 : running[i]);
      running[i] *= size;
    }
    if (dim.size == 1) continue;
    Loops::Dim& last = loops.outer.empty() ? loops.inner : loops.outer.back();
    bool merges = !first;
    for (int i = 0; i < n && merges; ++i) merges = dim.stride[i] == last.stride[i] * last.size;
    if (first) {
      loops.inner = dim;
    } else if (merges) {
      last.size *= dim.size;
    } else {
      loops.outer.push_back(dim);
    }
    first = false;
  }
  for (const Loops::Dim& dim : loops.outer) loops.num_rows *= dim.size;
  return loops;
}

std::byte* Scratch(size_t size) {
  thread_local std::vector<std::byte> bytes;
  if (bytes.size() < size + 64) bytes.resize(size + 64);
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (64 - address % 64) % 64;
}

class FusedElementwiseKernel final : public OpKernel {
 public:
  FusedElementwiseKernel(std::vector<Part> parts, std::vector<std::string> names, int num_scratch,
                         std::vector<size_t> input_sizes)
      : parts_(std::move(parts)),
        names_(std::move(names)),
        num_scratch_(num_scratch),
        input_sizes_(std::move(input_sizes)),
        out_size_(DTypeSize(parts_.back().output)) {}

  Status Compute(KernelContext& c) override {
    // Most often all inputs are scalars or of the output's shape.
    const int n = c.num_inputs();
    int largest = 0;
    for (int i = 1; i < n; ++i) {
      const Tensor& x = c.input(i);
      const Tensor& y = c.input(largest);
      if (x.num_elements() > y.num_elements() ||
          (x.num_elements() == y.num_elements() && x.rank() > y.rank())) {
        largest = i;
      }
    }
    const Shape shape = c.input(largest).shape();
    for (int i = 0; i < n; ++i) {
      const Tensor& x = c.input(i);
      if (x.shape() != shape && (x.num_elements() != 1 || x.rank() > shape.rank()))
        return Broadcast(c);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, AllocateOver(c, shape));
    absl::InlinedVector<Operand, 8> inputs;
    for (int i = 0; i < n; ++i) inputs.push_back({c.input(i).bytes(), c.input(i).shape() == shape});
    const int64_t total = out->num_elements();
    // A single element has a step of 1 everywhere: it may be written over.
    c.ParallelFor(total, kGrain, [&](int64_t begin, int64_t end) {
      absl::InlinedVector<Operand, 8> at = inputs;
      for (int i = 0; i < n; ++i) at[i].bytes += at[i].step * begin * input_sizes_[i];
      RunRow(at, out->bytes() + begin * out_size_, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  struct Operand {
    const std::byte* bytes = nullptr;
    int step = 0;
  };

  // The output, in the place of an input that it may overwrite: all of a tile's inputs are read
  // before its last op writes.
  StatusOr<Tensor*> AllocateOver(KernelContext& c, const Shape& shape) const {
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (c.binding().input_is_last_use[i] && c.input(i).shape() == shape &&
          input_sizes_[i] == out_size_ && c.input_dtype(i) == parts_.back().output) {
        return c.ForwardOrAllocateOutput(i, 0, shape);
      }
    }
    return c.AllocateOutput(0, shape);
  }

  Status Broadcast(KernelContext& c) const {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, OutputShape(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int n = c.num_inputs();
    const Loops loops = MakeLoops(shape, c);
    c.ParallelFor(loops.num_rows, std::max<int64_t>(1, kGrain / loops.inner.size),
                  [&](int64_t begin, int64_t end) {
                    absl::InlinedVector<Operand, 8> inputs(n);
                    for (int64_t row = begin; row < end; ++row) {
                      for (int i = 0; i < n; ++i) {
                        int64_t rest = row;
                        int64_t offset = 0;
                        for (const Loops::Dim& dim : loops.outer) {
                          offset += rest % dim.size * dim.stride[i];
                          rest /= dim.size;
                        }
                        inputs[i] = {c.input(i).bytes() + offset * input_sizes_[i],
                                     static_cast<int>(loops.inner.stride[i])};
                      }
                      RunRow(inputs, out->bytes() + row * loops.inner.size * out_size_,
                             loops.inner.size);
                    }
                  });
    return absl::OkStatus();
  }

  // What the ops' results broadcast to, op by op, so that an error is the op's own.
  StatusOr<Shape> OutputShape(const KernelContext& c) const {
    std::vector<Shape> results;
    const auto shape_of = [&](int64_t operand) -> const Shape& {
      return operand >= 0 ? c.input(static_cast<int>(operand)).shape() : results[-1 - operand];
    };
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].b == kNoOperand) {
        results.push_back(shape_of(parts_[i].a));
        continue;
      }
      StatusOr<Shape> shape = BroadcastShapes(shape_of(parts_[i].a), shape_of(parts_[i].b));
      if (!shape.ok()) {
        return Status(shape.status().code(),
                      absl::StrCat(shape.status().message(), "\n\t [[{{node ", names_[i], "}}]]"));
      }
      results.push_back(*std::move(shape));
    }
    return results.back();
  }

  // The program over `n` elements that lie in a row. `inputs` are moved along.
  void RunRow(absl::InlinedVector<Operand, 8>& inputs, std::byte* out, int64_t n) const {
    constexpr size_t kBufferBytes = kTile * sizeof(Complex128);
    std::byte* scratch = Scratch(num_scratch_ * kBufferBytes);
    const auto operand = [&](int64_t which) -> Operand {
      if (which >= 0) return inputs[which];
      if (which == kNoOperand) return {};
      return {scratch + parts_[-1 - which].scratch * kBufferBytes, 1};
    };
    for (int64_t done = 0; done < n; done += kTile) {
      const int64_t count = std::min(kTile, n - done);
      for (size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        const Operand a = operand(part.a);
        const Operand b = operand(part.b);
        std::byte* to =
            i + 1 == parts_.size() ? out + done * out_size_ : scratch + part.scratch * kBufferBytes;
        part.run(a.bytes, a.step, b.bytes, b.step, to, count);
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        inputs[i].bytes += inputs[i].step * count * input_sizes_[i];
    }
  }

  const std::vector<Part> parts_;
  const std::vector<std::string> names_;  // of the ops in the user's graph
  const int num_scratch_;
  const std::vector<size_t> input_sizes_;
  const size_t out_size_;
};

// Gives each result a tile buffer; a buffer is free again after the last op that reads it.
int AssignScratch(std::vector<Part>* parts) {
  std::vector<size_t> last(parts->size(), 0);
  for (size_t i = 0; i < parts->size(); ++i) {
    for (const int64_t operand : {(*parts)[i].a, (*parts)[i].b}) {
      if (operand < 0 && operand != kNoOperand) last[-1 - operand] = i;
    }
  }
  std::vector<int> free;
  int count = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    if (free.empty()) free.push_back(count++);
    (*parts)[i].scratch = free.back();
    free.pop_back();
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (last[earlier] == i) free.push_back((*parts)[earlier].scratch);
    }
  }
  return count;
}

StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& k, const KernelRegistry& kernels) {
  WEFT_ASSIGN_OR_RETURN(const auto ops, k.Attr<AttrValue::StringList>("ops"));
  WEFT_ASSIGN_OR_RETURN(auto names, k.Attr<AttrValue::StringList>("names"));
  WEFT_ASSIGN_OR_RETURN(const auto types, k.Attr<AttrValue::TypeList>("types"));
  WEFT_ASSIGN_OR_RETURN(const auto operands, k.Attr<AttrValue::IntList>("operands"));
  if (ops.empty() || names.size() != ops.size() || types.size() != ops.size() ||
      operands.size() != 2 * ops.size()) {
    return InvalidArgument("Lists of a fused op do not fit: ", ops.size(), " ops, ",
                           operands.size(), " operands");
  }
  std::vector<Part> parts;
  for (size_t i = 0; i < ops.size(); ++i) {
    const TileBody* tile = kernels.FindTile(ops[i], types[i]);
    if (tile == nullptr)
      return NotFound("No element-wise body of ", ops[i], " for ", DTypeName(types[i]));
    Part part{
        .run = tile->run, .a = operands[2 * i], .b = operands[2 * i + 1], .output = tile->output};
    for (const int64_t operand : {part.a, part.b}) {
      if (operand == kNoOperand) continue;
      if (operand >= k.num_inputs() || -1 - operand >= static_cast<int64_t>(i)) {
        return InvalidArgument("Operand ", operand, " of fused op ", i, " is out of range");
      }
    }
    parts.push_back(part);
  }
  std::vector<size_t> sizes;
  for (int i = 0; i < k.num_inputs(); ++i) sizes.push_back(DTypeSize(k.input_dtype(i)));
  const int num_scratch = AssignScratch(&parts);
  return std::make_unique<FusedElementwiseKernel>(std::move(parts), std::move(names), num_scratch,
                                                  std::move(sizes));
}

}  // namespace

void Register(Catalogue& catalogue) {
  const KernelRegistry* kernels = &catalogue.kernels();
  catalogue.Add(
      OpSpec("_FusedElementwise")
          .Doc("A tree of element-wise ops in one pass over tiles. Made by the compiler; graphs "
               "of clients may not hold it.")
          .Input("inputs: Tin")
          .Output("output: Tout")
          .Attr("Tin: list(type) >= 1")
          .Attr("Tout: type")
          .Attr("ops: list(string) >= 1")
          .Attr("names: list(string)")
          .Attr("types: list(type)")
          .Attr("operands: list(int)")
          .Shape(shapes::Unknown)
          .NoGradient()
          .Kernel([kernels](KernelConstruction& k) { return Make(k, *kernels); }));
}

}  // namespace weft::ops::math::fused_elementwise
