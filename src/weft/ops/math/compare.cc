// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic: outputs are bool.
#include <cmath>

#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::compare {
namespace {

#define WEFT_LOGIC(name, expression)       \
  struct name {                            \
    static constexpr char kName[] = #name; \
    template <typename T>                  \
    WEFT_INLINE bool Apply(T a, T b) {     \
      return expression;                   \
    }                                      \
  };
WEFT_LOGIC(AndOf, a& b)
WEFT_LOGIC(OrOf, a | b)
#undef WEFT_LOGIC
#define WEFT_TEST(name, expression)              \
  struct name {                                  \
    static constexpr char kName[] = #name;       \
    template <typename T>                        \
    WEFT_INLINE bool Apply(T x) {                \
      const Wide<T> a = static_cast<Wide<T>>(x); \
      return expression;                         \
    }                                            \
  };
WEFT_TEST(NotOf, !a)
WEFT_TEST(IsNanOf, a != a)
WEFT_TEST(IsInfOf, std::isinf(a))
WEFT_TEST(IsFiniteOf, std::isfinite(a))
#undef WEFT_TEST

// Equal takes all that can be compared bit by bit too.
using Comparable = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t,
                            int16_t, uint16_t, uint32_t, uint64_t, bool, std::string, Complex64,
                            Complex128, Qint8, Quint8, Qint16, Quint16, Qint32>;

// |x - y| < tolerance, for tensors of one shape.
class ApproximateEqualKernel final : public OpKernel {
 public:
  explicit ApproximateEqualKernel(KernelConstruction& k)
      : tolerance_(k.AttrOr<float>("tolerance", 1e-5f)) {}
  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const Tensor& y = c.input(1);
    if (!(x.shape() == y.shape())) {
      return InvalidArgument("x and y must be of the same shape. x shape: ", x.shape().ToString(),
                             ". y shape: ", y.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    VisitDType(x.dtype(), TypeList<float, double>(), [&]<typename T>() {
      const T* const a = x.data<T>();
      const T* const b = y.data<T>();
      bool* const is_near = out->data<bool>();
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        is_near[i] = std::abs(a[i] - b[i]) < static_cast<T>(tolerance_);
      }
    });
    return absl::OkStatus();
  }

 private:
  const float tolerance_;
};

// As Broadcast; an unknown shape where sizes clash and that is no error.
Status EqualityShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(bool is_error, c.Attr<bool>("incompatible_shape_error"));
  StatusOr<PartialShape> shape = shapes::BroadcastPartial(c.input(0), c.input(1));
  if (!is_error) {
    // Sizes that are not known yet may clash, which makes the output a scalar.
    const bool sure = shape.ok() && c.input(0).IsFullyDefined() && c.input(1).IsFullyDefined();
    c.set_output(0, sure ? *shape : !shape.ok() ? PartialShape(Shape()) : PartialShape());
    return absl::OkStatus();
  }
  if (!shape.ok()) return shape.status();
  c.set_output(0, *shape);
  return absl::OkStatus();
}

OpSpec Comparison(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("z: bool").NoGradient();
  return spec;
}

template <typename Op>
void AddOrder(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec = Comparison(name, doc);
  spec.Attr("T: realnumbertype").Shape(shapes::Broadcast);
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(RealNumbers())});
  catalogue.Add(std::move(spec));
}

template <typename Op>
void AddEquality(Catalogue& catalogue, const char* name, const char* doc, bool incompatible) {
  OpSpec spec = Comparison(name, doc);
  spec.Commutative()
      .Attr("T: type")
      .Attr("incompatible_shape_error: bool = true")
      .Shape(EqualityShape);
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(Comparable()),
                        .has_incompatible_value = true,
                        .incompatible_value = incompatible});
  catalogue.Add(std::move(spec));
}

template <typename Op>
void AddLogic(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: bool").Input("y: bool").Output("z: bool");
  spec.Commutative().Shape(shapes::Broadcast).NoGradient();
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(TypeList<bool>()), .type_attr = ""});
  catalogue.Add(std::move(spec));
}

template <typename Op>
void AddTest(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Output("y: bool").Attr("T: {bfloat16, half, float, double}");
  spec.Shape(shapes::SameAsInput).NoGradient();
  AddElementwise(spec, {.tiles = UnaryTiles<Op>(RealFloats())});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddEquality<EqualOf>(catalogue, "Equal", "x == y; they broadcast.", false);
  AddEquality<NotEqualOf>(catalogue, "NotEqual", "x != y; they broadcast.", true);
  AddOrder<LessOf>(catalogue, "Less", "x < y; they broadcast.");
  AddOrder<LessEqualOf>(catalogue, "LessEqual", "x <= y; they broadcast.");
  AddOrder<GreaterOf>(catalogue, "Greater", "x > y; they broadcast.");
  AddOrder<GreaterEqualOf>(catalogue, "GreaterEqual", "x >= y; they broadcast.");
  AddLogic<AndOf>(catalogue, "LogicalAnd", "x and y; they broadcast.");
  AddLogic<OrOf>(catalogue, "LogicalOr", "x or y; they broadcast.");
  AddTest<IsNanOf>(catalogue, "IsNan", "True where x is not a number.");
  AddTest<IsInfOf>(catalogue, "IsInf", "True where x is infinite.");
  AddTest<IsFiniteOf>(catalogue, "IsFinite", "True where x is neither infinite nor NaN.");
  OpSpec logical_not("LogicalNot");
  logical_not.Doc("Not x.")
      .Input("x: bool")
      .Output("y: bool")
      .Shape(shapes::SameAsInput)
      .NoGradient();
  AddElementwise(logical_not, {.tiles = UnaryTiles<NotOf>(TypeList<bool>()), .type_attr = ""});
  catalogue.Add(std::move(logical_not));
  catalogue.Add(OpSpec("ApproximateEqual")
                    .Doc("|x - y| < tolerance, for tensors of one shape.")
                    .Input("x: T")
                    .Input("y: T")
                    .Output("z: bool")
                    .Attr("T: numbertype")
                    .Attr("tolerance: float = 1e-05")
                    .Commutative()
                    .Shape([](ShapeContext& c) { return shapes::MergeInputs(c); })
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf<float, double>()}},
                             .factory = MakeKernel<ApproximateEqualKernel>()}));
}

}  // namespace weft::ops::math::compare
