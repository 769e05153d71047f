// SPDX-License-Identifier: Apache-2.0
// Element-wise ops in one pass: what the compiler makes of Add, Mul, Exp, ... in a row.
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

// An op's result that others read: its number, and how to compute it without the ops that do not
// lead to it, for the steps in which it has not the shape of the last op's result.
struct Result {
  size_t part = 0;
  std::vector<Part> alone;
  std::vector<bool> reads;  // of the inputs: which it depends on
  int num_scratch = 0;
};

class FusedElementwiseKernel final : public OpKernel {
 public:
  // The first of `results` is the last op's.
  FusedElementwiseKernel(std::vector<Part> parts, std::vector<std::string> names, int num_scratch,
                         std::vector<Result> results, std::vector<size_t> input_sizes)
      : parts_(std::move(parts)),
        names_(std::move(names)),
        num_scratch_(num_scratch),
        results_(std::move(results)),
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
    for (const Result& result : results_) {
      bool is_whole = false;
      for (int i = 0; i < n; ++i)
        is_whole = is_whole || (result.reads[i] && c.input(i).shape() == shape);
      if (!is_whole) return Broadcast(c);
    }
    std::vector<std::byte*> others;
    for (size_t r = 1; r < results_.size(); ++r) {
      WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(static_cast<int>(r), shape));
      others.push_back(out->bytes());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, AllocateOver(c, shape));
    absl::InlinedVector<Operand, 8> inputs;
    for (int i = 0; i < n; ++i) inputs.push_back({c.input(i).bytes(), c.input(i).shape() == shape});
    const int64_t total = out->num_elements();
    // A single element has a step of 1 everywhere: it may be written over.
    c.ParallelFor(total, kGrain, [&](int64_t begin, int64_t end) {
      absl::InlinedVector<Operand, 8> at = inputs;
      for (int i = 0; i < n; ++i) at[i].bytes += at[i].step * begin * input_sizes_[i];
      Row row(*this, others, begin);
      row.to.back() = out->bytes() + begin * out_size_;
      RunRow(parts_, num_scratch_, at, row.to, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  struct Operand {
    const std::byte* bytes = nullptr;
    int step = 0;
  };

  using Places = absl::InlinedVector<std::byte*, 32>;

  // Where each op writes the elements of a row; null is a tile buffer.
  struct Row {
    // `others` are the outputs behind the first, or null; the row begins at element `begin`.
    Row(const FusedElementwiseKernel& kernel, const std::vector<std::byte*>& others, int64_t begin)
        : to(kernel.parts_.size(), nullptr) {
      for (size_t r = 0; r < others.size(); ++r) {
        const Result& result = kernel.results_[r + 1];
        if (others[r] == nullptr) continue;
        to[result.part] = others[r] + begin * DTypeSize(kernel.parts_[result.part].output);
      }
    }
    Places to;
  };

  // The first output, in the place of an input that it may overwrite: all of a tile's inputs are
  // read before its last op writes.
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
    WEFT_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, Shapes(c));
    std::vector<std::byte*> others;
    for (size_t r = 1; r < results_.size(); ++r) {
      const Result& result = results_[r];
      WEFT_ASSIGN_OR_RETURN(Tensor * out,
                            c.AllocateOutput(static_cast<int>(r), shapes[result.part]));
      const bool is_whole = out->shape() == shapes.back();
      if (!is_whole) RunRows(c, result.alone, result.num_scratch, {}, out);
      others.push_back(is_whole ? out->bytes() : nullptr);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shapes.back()));
    RunRows(c, parts_, num_scratch_, others, out);
    return absl::OkStatus();
  }

  // A program whose last op makes `out`, over all of it. `others` as Row takes them.
  void RunRows(const KernelContext& c, const std::vector<Part>& parts, int num_scratch,
               const std::vector<std::byte*>& others, Tensor* out) const {
    if (out->num_elements() == 0) return;
    const int n = c.num_inputs();
    const size_t size = DTypeSize(parts.back().output);
    const Loops loops = MakeLoops(out->shape(), c);
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
                      Row at(*this, others, row * loops.inner.size);
                      at.to.resize(parts.size());
                      at.to.back() = out->bytes() + row * loops.inner.size * size;
                      RunRow(parts, num_scratch, inputs, at.to, loops.inner.size);
                    }
                  });
  }

  // What the ops' results broadcast to, op by op, so that an error is the op's own.
  StatusOr<std::vector<Shape>> Shapes(const KernelContext& c) const {
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
    return results;
  }

  // The program over `n` elements that lie in a row. `inputs` and `to` are moved along.
  void RunRow(const std::vector<Part>& parts, int num_scratch,
              absl::InlinedVector<Operand, 8>& inputs, Places& to, int64_t n) const {
    constexpr size_t kBufferBytes = kTile * sizeof(Complex128);
    std::byte* scratch = Scratch(num_scratch * kBufferBytes);
    const auto made = [&](size_t part) {
      return to[part] != nullptr ? to[part] : scratch + parts[part].scratch * kBufferBytes;
    };
    const auto operand = [&](int64_t which) -> Operand {
      if (which >= 0) return inputs[which];
      if (which == kNoOperand) return {};
      return {made(-1 - which), 1};
    };
    for (int64_t done = 0; done < n; done += kTile) {
      const int64_t count = std::min(kTile, n - done);
      for (size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        const Operand a = operand(part.a);
        const Operand b = operand(part.b);
        part.run(a.bytes, a.step, b.bytes, b.step, made(i), count);
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        inputs[i].bytes += inputs[i].step * count * input_sizes_[i];
      for (size_t i = 0; i < parts.size(); ++i) {
        if (to[i] != nullptr) to[i] += count * DTypeSize(parts[i].output);
      }
    }
  }

  const std::vector<Part> parts_;
  const std::vector<std::string> names_;  // of the ops in the user's graph
  const int num_scratch_;
  const std::vector<Result> results_;
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

// The result of op `last` with the ops that lead to it, numbered anew.
Result MakeResult(const std::vector<Part>& parts, size_t last, int num_inputs) {
  Result result{.part = last, .reads = std::vector<bool>(num_inputs, false)};
  std::vector<bool> leads(parts.size(), false);
  leads[last] = true;
  for (size_t i = last + 1; i-- > 0;) {
    if (!leads[i]) continue;
    for (const int64_t operand : {parts[i].a, parts[i].b}) {
      if (operand >= 0) {
        result.reads[operand] = true;
      } else if (operand != kNoOperand) {
        leads[-1 - operand] = true;
      }
    }
  }
  std::vector<int64_t> number(parts.size(), 0);
  for (size_t i = 0; i <= last; ++i) {
    if (!leads[i]) continue;
    number[i] = static_cast<int64_t>(result.alone.size());
    Part part = parts[i];
    for (int64_t* operand : {&part.a, &part.b}) {
      if (*operand < 0 && *operand != kNoOperand) *operand = -1 - number[-1 - *operand];
    }
    result.alone.push_back(part);
  }
  result.num_scratch = AssignScratch(&result.alone);
  return result;
}

StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& k, const KernelRegistry& kernels) {
  WEFT_ASSIGN_OR_RETURN(const auto ops, k.Attr<AttrValue::StringList>("ops"));
  WEFT_ASSIGN_OR_RETURN(auto names, k.Attr<AttrValue::StringList>("names"));
  WEFT_ASSIGN_OR_RETURN(const auto types, k.Attr<AttrValue::TypeList>("types"));
  WEFT_ASSIGN_OR_RETURN(const auto operands, k.Attr<AttrValue::IntList>("operands"));
  WEFT_ASSIGN_OR_RETURN(const auto read, k.Attr<AttrValue::IntList>("read"));
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
  if (k.num_outputs() != static_cast<int>(read.size()) + 1) {
    return InvalidArgument("A fused op of ", k.num_outputs(), " outputs tells of ",
                           read.size() + 1);
  }
  std::vector<Result> results = {MakeResult(parts, parts.size() - 1, k.num_inputs())};
  for (const int64_t part : read) {
    if (part < 0 || part + 1 >= static_cast<int64_t>(parts.size()) ||
        parts[part].output != k.output_dtype(static_cast<int>(results.size()))) {
      return InvalidArgument("Result ", results.size(), " of a fused op is that of op ", part,
                             ", which is out of range or of another type");
    }
    results.push_back(MakeResult(parts, part, k.num_inputs()));
  }
  const int num_scratch = AssignScratch(&parts);
  return std::make_unique<FusedElementwiseKernel>(std::move(parts), std::move(names), num_scratch,
                                                  std::move(results), std::move(sizes));
}

}  // namespace

void Register(Catalogue& catalogue) {
  const KernelRegistry* kernels = &catalogue.kernels();
  catalogue.Add(
      OpSpec("_FusedElementwise")
          .Doc("Element-wise ops in one pass over tiles. The outputs are the result of the last of "
               "`ops`, and those of the ops whose numbers stand in `read`. Made by the compiler; "
               "graphs of clients may not hold it.")
          .Input("inputs: Tin")
          .Output("outputs: Tout")
          .Attr("Tin: list(type) >= 1")
          .Attr("Tout: list(type) >= 1")
          .Attr("ops: list(string) >= 1")
          .Attr("names: list(string)")
          .Attr("types: list(type)")
          .Attr("operands: list(int)")
          .Attr("read: list(int)")
          .Shape(shapes::Unknown)
          .NoGradient()
          .Kernel([kernels](KernelConstruction& k) { return Make(k, *kernels); }));
}

}  // namespace weft::ops::math::fused_elementwise
