// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "weft/estimator/activation.h"
#include "weft/estimator/activity.h"
#include "weft/estimator/dense.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

struct EinsumSettings {
  std::string equation;
  Sizes output_shape;
  EinsumDenseOptions o;
};

// The parts of "ab...,bc->ac...": letters alone, and where the axes without letters stand.
struct Equation {
  std::string input, kernel, output;
  bool open_before = false, open_behind = false;
};

StatusOr<Equation> ReadEquation(const std::string& text) {
  const auto bad = [&] {
    return InvalidArgument(
        "equation is '", text,
        "', expected one like 'ab,bc->ac', '...b,bc->...c' or 'ab...,bc->ac...'");
  };
  const std::string plain = absl::StrReplaceAll(text, {{" ", ""}, {"...", "0"}});
  const size_t comma = plain.find(','), arrow = plain.find("->");
  if (comma == plain.npos || arrow == plain.npos || arrow < comma) return bad();
  Equation e;
  e.input = plain.substr(0, comma);
  e.kernel = plain.substr(comma + 1, arrow - comma - 1);
  e.output = plain.substr(arrow + 2);
  if (!e.input.empty() && !e.output.empty()) {
    e.open_before = e.input.front() == '0' && e.output.front() == '0';
    e.open_behind = !e.open_before && e.input.back() == '0' && e.output.back() == '0';
  }
  for (std::string* part : {&e.input, &e.output}) {
    if (e.open_before) part->erase(0, 1);
    if (e.open_behind) part->pop_back();
  }
  for (const std::string* part : {&e.input, &e.kernel, &e.output}) {
    if (part->empty()) return bad();
    for (const char c : *part) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter || part->find(c) != part->rfind(c)) return bad();
    }
  }
  return e;
}

class EinsumDenseLayer final : public Layer {
 public:
  explicit EinsumDenseLayer(EinsumSettings settings = {}) : s_(std::move(settings)) {}
  const char* class_name() const override { return "EinsumDense"; }
  void Fields(ConfigFields& f) override {
    f.Field("equation", s_.equation);
    Json shape = Json::MakeArray();  // with null for sizes that the input says
    for (const int64_t size : s_.output_shape.values())
      shape.Append(size < 0 ? Json() : Json(size));
    f.Raw("output_shape", shape);
    if (f.keras() == 0) ReadShape(shape);
    ActivatedKernelFields(f, s_.o);
    Json axes = s_.o.bias_axes.empty() ? Json() : Json(s_.o.bias_axes);
    f.Raw("bias_axes", axes);
    if (axes.is_string()) s_.o.bias_axes = axes.AsString().value_or("");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const StatusOr<Equation> equation = ReadEquation(s_.equation);
    if (!equation.ok()) return call.Fail(equation.status()), std::vector<Value>();
    const Equation& e = *equation;
    std::map<char, int64_t> sizes;
    const StatusOr<int> open = SizesOf(e, b.ShapeOf(x), &sizes);
    if (!open.ok()) return call.Fail(open.status()), std::vector<Value>();
    Shape kernel_shape;
    for (const char c : e.kernel) {
      const auto size = sizes.find(c);
      if (size == sizes.end() || size->second < 1) {
        call.Fail(InvalidArgument("equation '", s_.equation, "': the size of the kernel's axis '",
                                  std::string(1, c), "' is not known from an input of shape ",
                                  b.ShapeOf(x).ToString(), " and output_shape"));
        return {};
      }
      kernel_shape.AddDim(size->second);
    }
    const Endpoint kernel = call.WeightOf("kernel", kernel_shape, KernelOf(s_.o));
    Endpoint y =
        b.Op("Einsum", {std::vector<Endpoint>{x, kernel}}, {{"equation", Lettered(e, *open)}});
    if (!s_.o.bias_axes.empty()) y = WithBias(call, e, sizes, *open, y);
    if (!b.ok()) return {};
    y = Activate(b, s_.o.activation, y);
    AddActivityLoss(call, s_.o.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  // The equation with letters for the axes that have none: their number is known here.
  static std::string Lettered(const Equation& e, int open) {
    std::string letters;
    for (char c = 'a'; c <= 'z' && static_cast<int>(letters.size()) < open; ++c) {
      const bool used = (e.input + e.kernel + e.output).find(c) != std::string::npos;
      if (!used) letters += c;
    }
    const std::string before = e.open_before ? letters : "", behind = e.open_behind ? letters : "";
    return absl::StrCat(before, e.input, behind, ",", e.kernel, "->", before, e.output, behind);
  }

  // Sizes by letter; how many axes have none.
  StatusOr<int> SizesOf(const Equation& e, const PartialShape& shape,
                        std::map<char, int64_t>* sizes) const {
    const int named = static_cast<int>(e.input.size());
    const int open = shape.rank() - named;
    if (open < 0 || (open > 0 && !e.open_before && !e.open_behind)) {
      return InvalidArgument("equation '", s_.equation, "' does not fit an input of shape ",
                             shape.ToString());
    }
    const int first = e.open_before ? open : 0;
    for (int i = 0; i < named; ++i) (*sizes)[e.input[i]] = shape.dim(first + i);
    // output_shape has an axis less where the batch has a letter.
    const std::string told = e.open_before ? e.output : e.output.substr(1);
    const std::vector<int64_t>& out = s_.output_shape.values();
    // Keras also takes sizes for axes without letters, which stand before or behind.
    if (out.size() < told.size()) {
      return InvalidArgument("output_shape has ", out.size(), " sizes, equation '", s_.equation,
                             "' names ", told.size());
    }
    const size_t skipped = e.open_before ? out.size() - told.size() : 0;
    for (size_t i = 0; i < told.size(); ++i) {
      const int64_t size = out[skipped + i];
      const auto [known, fresh] = sizes->emplace(told[i], size);
      if (!fresh && known->second >= 0 && size >= 0 && known->second != size) {
        return InvalidArgument("output_shape says ", size, " for axis '", std::string(1, told[i]),
                               "', the input ", known->second);
      }
      if (!fresh && known->second < 0) known->second = size;
    }
    return open;
  }

  Endpoint WithBias(LayerCall& call, const Equation& e, const std::map<char, int64_t>& sizes,
                    int open, Endpoint y) const {
    const std::string& axes = s_.o.bias_axes;
    const size_t first = e.output.find_first_of(axes);
    for (const char c : axes) {
      if (e.output.find(c) != e.output.npos && sizes.at(c) > 0) continue;
      call.Fail(InvalidArgument("bias_axes '", axes, "': the output of equation '", s_.equation,
                                "' has no axis '", std::string(1, c), "' of known size"));
      return {};
    }
    Shape shape;
    for (const char c : e.output.substr(first)) {
      shape.AddDim(axes.find(c) != axes.npos ? sizes.at(c) : 1);
    }
    for (int i = 0; e.open_behind && i < open; ++i) shape.AddDim(1);
    const Endpoint bias = call.WeightOf("bias", shape, BiasOf(s_.o));
    return call.b().Op("AddV2", {y, bias});
  }

  void ReadShape(const Json& json) {
    if (json.is_number()) {
      s_.output_shape = Sizes(json.AsInt().value_or(0));
    } else if (json.is_array()) {
      std::vector<int64_t> sizes;
      for (const Json& size : json.items()) sizes.push_back(size.AsInt().value_or(-1));
      s_.output_shape = Sizes(std::move(sizes));
    }
  }

  EinsumSettings s_;
};

}  // namespace

LayerRef EinsumDense(const std::string& equation, const Sizes& output_shape,
                     const EinsumDenseOptions& options) {
  return MakeLayer<EinsumDenseLayer>(EinsumSettings{equation, output_shape, options}, options.name);
}

void AddEinsumDense(LayerClasses& classes) { classes.Add<EinsumDenseLayer>(); }

}  // namespace weft::estimator
