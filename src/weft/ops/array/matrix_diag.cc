// SPDX-License-Identifier: Apache-2.0
// Diagonals of matrices, taken out, put in, and matrices made of them; bands around the main one.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::matrix_diag {
namespace {

// Diagonals lower..upper of matrices, 0 the main one, positive above it. Each is a row of `longest`
// places, the upper one first; shorter ones lie at its left or right end.
struct Diagonals {
  int64_t lower = 0;
  int64_t upper = 0;
  bool upper_left = true;
  bool lower_left = true;

  int64_t count() const { return upper - lower + 1; }
  static int64_t Length(int64_t rows, int64_t columns, int64_t d) {
    return std::min(rows + std::min<int64_t>(0, d), columns - std::max<int64_t>(0, d));
  }
  int64_t Longest(int64_t rows, int64_t columns) const {
    return std::min(rows + std::min<int64_t>(upper, 0), columns + std::min<int64_t>(-lower, 0));
  }
  bool IsLeft(int64_t d) const { return (d >= 0 && upper_left) || (d <= 0 && lower_left); }

  // InvalidArgument unless matrices of this size have all of them.
  Status CheckBounds(int64_t rows, int64_t columns) const {
    for (const int64_t d : {lower, upper}) {
      if ((-rows < d && d < columns) || d == 0) continue;
      return InvalidArgument(d == lower ? "lower" : "upper", "_diag_index is out of bound: ", d,
                             ". It must be between ", -rows, " and ", columns);
    }
    return absl::OkStatus();
  }

  // Sizes of the diagonals of matrices with the batch sizes `sizes`; `longest` may be unknown (-1).
  Dims SizesIn(Dims sizes, int64_t longest) const {
    if (count() > 1) sizes.push_back(count());
    sizes.push_back(longest);
    return sizes;
  }

  // Calls visit(place in the matrix, place among the diagonals) for each element, then pad(place
  // among the diagonals) for each that no element has.
  template <typename Visit, typename Pad>
  void ForEach(int64_t rows, int64_t columns, const Visit& visit, const Pad& pad) const {
    const int64_t longest = Longest(rows, columns);
    for (int64_t d = upper; d >= lower; --d) {
      const int64_t length = std::max<int64_t>(0, Length(rows, columns, d));
      const int64_t line = (upper - d) * longest;
      const int64_t first = IsLeft(d) ? 0 : longest - length;
      for (int64_t n = 0; n < length; ++n) {
        visit((n + std::max<int64_t>(-d, 0)) * columns + n + std::max<int64_t>(d, 0),
              line + first + n);
      }
      for (int64_t n = 0; n < longest; ++n) {
        if (n < first || n >= first + length) pad(line + n);
      }
    }
  }
};

// From input k (a scalar or two numbers) and the attribute; the main one without them.
StatusOr<Diagonals> DiagonalsOf(const Tensor* k, const std::string& align) {
  Diagonals diagonals;
  diagonals.upper_left = align == "LEFT_LEFT" || align == "LEFT_RIGHT";
  diagonals.lower_left = align == "LEFT_LEFT" || align == "RIGHT_LEFT";
  if (k == nullptr) return diagonals;
  if (k->rank() > 1 || k->num_elements() < 1 || k->num_elements() > 2) {
    return InvalidArgument(
        "diag_index must be a scalar or vector of one or two elements, received "
        "shape: ",
        k->shape().ToString());
  }
  diagonals.lower = k->data<int32_t>()[0];
  diagonals.upper = k->data<int32_t>()[k->num_elements() - 1];
  if (diagonals.lower <= diagonals.upper) return diagonals;
  return InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ",
                         diagonals.lower, " > ", diagonals.upper);
}

enum class Form { kV1, kV2, kV3 };

class DiagonalKernel : public OpKernel {
 public:
  // V2 has no attribute: everything lies at the left.
  explicit DiagonalKernel(KernelConstruction& c)
      : align_(c.AttrOr<std::string>("align", "LEFT_LEFT")) {}

 protected:
  const std::string align_;
};

// Batches of matrices: all but the last two sizes.
int64_t BatchOf(const Shape& shape, int inner) {
  int64_t batch = 1;
  for (int d = 0; d + inner < shape.rank(); ++d) batch *= shape.dim(d);
  return batch;
}

// The padding of input i: a scalar.
Status CheckPadding(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return absl::OkStatus();
  return InvalidArgument("padding_value must be a scalar, received shape: ",
                         c.input(i).shape().ToString());
}

// Writes the diagonals `given` over those of the matrices `out`, of which there are `batch`.
template <typename T>
void PutIn(const Diagonals& diagonals, const Tensor& given, int64_t batch, Tensor* out) {
  const int64_t rows = out->dim(out->rank() - 2), columns = out->dim(out->rank() - 1);
  for (int64_t b = 0; b < batch; ++b) {
    const T* from = given.bits<T>() + b * (given.num_elements() / batch);
    T* to = out->bits<T>() + b * rows * columns;
    diagonals.ForEach(
        rows, columns, [&](int64_t place, int64_t at) { to[place] = from[at]; }, [](int64_t) {});
  }
}

class DiagPartKernel final : public DiagonalKernel {
 public:
  using DiagonalKernel::DiagonalKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 2) {
      return InvalidArgument("input must be at least 2-dim, received shape: ",
                             input.shape().ToString());
    }
    const bool given = c.num_inputs() > 1;
    WEFT_ASSIGN_OR_RETURN(const Diagonals wanted,
                          DiagonalsOf(given ? &c.input(1) : nullptr, align_));
    if (given) WEFT_RETURN_IF_ERROR(CheckPadding(c, 2));
    const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
    WEFT_RETURN_IF_ERROR(wanted.CheckBounds(rows, columns));
    const Dims batches(input.shape().dims().begin(), input.shape().dims().end() - 2);
    const int64_t longest = std::max<int64_t>(0, wanted.Longest(rows, columns));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(wanted.SizesIn(batches, longest)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t batch = BatchOf(input.shape(), 2);
    if (out->num_elements() == 0) return absl::OkStatus();
    VisitElement(input.dtype(), [&]<typename T>() {
      const T padding = given ? c.input(2).bits<T>()[0] : T();
      for (int64_t b = 0; b < batch; ++b) {
        const T* from = input.bits<T>() + b * rows * columns;
        T* to = out->bits<T>() + b * (out->num_elements() / batch);
        wanted.ForEach(
            rows, columns, [&](int64_t place, int64_t at) { to[at] = from[place]; },
            [&](int64_t at) { to[at] = padding; });
      }
    });
    return absl::OkStatus();
  }
};

class DiagKernel final : public DiagonalKernel {
 public:
  using DiagonalKernel::DiagonalKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& given = c.input(0);
    if (given.rank() < 1) {
      return InvalidArgument("diagonal must be at least 1-dim, received shape: ",
                             given.shape().ToString());
    }
    const bool is_full = c.num_inputs() > 1;
    WEFT_ASSIGN_OR_RETURN(const Diagonals wanted,
                          DiagonalsOf(is_full ? &c.input(1) : nullptr, align_));
    const int inner = wanted.count() > 1 ? 2 : 1;
    if (inner == 2 && (given.rank() < 2 || given.dim(given.rank() - 2) != wanted.count())) {
      return InvalidArgument(
          "The number of diagonals provided in the input does not match the "
          "lower_diag_index and upper_diag_index range: ",
          given.shape().ToString(), ", ", wanted.count(), " diagonals");
    }
    int64_t rows = -1, columns = -1;
    if (is_full) {
      WEFT_ASSIGN_OR_RETURN(rows, IndexScalar(c.input(2), "num_rows"));
      WEFT_ASSIGN_OR_RETURN(columns, IndexScalar(c.input(3), "num_cols"));
      WEFT_RETURN_IF_ERROR(CheckPadding(c, 4));
    }
    WEFT_RETURN_IF_ERROR(Resolve(wanted, given.dim(given.rank() - 1), &rows, &columns));
    Dims sizes(given.shape().dims().begin(), given.shape().dims().end() - inner);
    sizes.push_back(rows);
    sizes.push_back(columns);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t batch = BatchOf(shape, 2);
    if (out->num_elements() == 0) return absl::OkStatus();
    VisitElement(given.dtype(), [&]<typename T>() {
      std::fill_n(out->bits<T>(), out->num_elements(), is_full ? c.input(4).bits<T>()[0] : T());
      PutIn<T>(wanted, given, batch, out);
    });
    return absl::OkStatus();
  }

  // Sizes that are -1 become the smallest that hold diagonals of `longest` elements.
  static Status Resolve(const Diagonals& wanted, int64_t longest, int64_t* rows, int64_t* columns) {
    const int64_t least_rows = longest - std::min<int64_t>(wanted.upper, 0);
    const int64_t least_columns = longest + std::max<int64_t>(wanted.lower, 0);
    if (*rows == -1 && *columns == -1) {
      *rows = *columns = std::max(least_rows, least_columns);
    } else if (*rows == -1) {
      *rows = least_rows;
    } else if (*columns == -1) {
      *columns = least_columns;
    }
    if (*rows < least_rows) return InvalidArgument("The number of rows is too small.");
    if (*columns < least_columns) return InvalidArgument("The number of columns is too small.");
    if (*rows == least_rows || *columns == least_columns) return absl::OkStatus();
    return InvalidArgument(
        "The number of rows or columns is not consistent with the specified "
        "d_lower, d_upper, and diagonal.");
  }
};

class SetDiagKernel final : public DiagonalKernel {
 public:
  using DiagonalKernel::DiagonalKernel;
  Status Compute(KernelContext& c) override {
    const Tensor &input = c.input(0), &given = c.input(1);
    if (input.rank() < 2 || given.rank() < 1) {
      return InvalidArgument("input must be at least 2-dim and diagonal 1-dim, received shapes: ",
                             input.shape().ToString(), " and ", given.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Diagonals wanted,
                          DiagonalsOf(c.num_inputs() > 2 ? &c.input(2) : nullptr, align_));
    const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
    WEFT_RETURN_IF_ERROR(wanted.CheckBounds(rows, columns));
    const Dims batches(input.shape().dims().begin(), input.shape().dims().end() - 2);
    WEFT_ASSIGN_OR_RETURN(const Shape expected,
                          Shape::Make(wanted.SizesIn(batches, wanted.Longest(rows, columns))));
    if (given.shape() != expected) {
      return InvalidArgument("diagonal of input ", input.shape().ToString(), " must be ",
                             expected.ToString(), ", but received ", given.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, input.shape()));
    const int64_t batch = BatchOf(input.shape(), 2);
    if (out->num_elements() == 0) return absl::OkStatus();
    VisitElement(input.dtype(), [&]<typename T>() {
      if (out->bits<T>() != input.bits<T>()) {
        CopyElements<T>(input.bits<T>(), input.num_elements(), out->bits<T>());
      }
      PutIn<T>(wanted, given, batch, out);
    });
    return absl::OkStatus();
  }
};

class BandPartKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 2) {
      return InvalidArgument("input must be at least 2-dim, received shape: ",
                             input.shape().ToString());
    }
    const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
    for (int i = 1; i <= 2; ++i) {
      if (c.input(i).rank() != 0) {
        return InvalidArgument(i == 1 ? "num_lower" : "num_upper", " must be scalar, got shape ",
                               c.input(i).shape().ToString());
      }
    }
    const int64_t below = IndexAt(c.input(1), 0), above = IndexAt(c.input(2), 0);
    if (below > rows || above > columns) {
      return InvalidArgument(
          "num_lower and num_upper must be negative or at most the numbers of "
          "rows and columns (",
          rows, ", ", columns, "), got: ", below, ", ", above);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, input.shape()));
    const int64_t batch = BatchOf(input.shape(), 2);
    VisitElement(input.dtype(), [&]<typename T>() {
      for (int64_t line = 0; line < batch * rows; ++line) {
        const int64_t row = line % rows;
        const T* from = input.bits<T>() + line * columns;
        T* to = out->bits<T>() + line * columns;
        for (int64_t column = 0; column < columns; ++column) {
          const bool kept =
              (below < 0 || row - column <= below) && (above < 0 || column - row <= above);
          if (!kept) {
            to[column] = T();
          } else if (to != from) {
            to[column] = from[column];
          }
        }
      }
    });
    return absl::OkStatus();
  }
};

// The diagonals as far as constants tell; nothing if they do not.
StatusOr<std::optional<Diagonals>> KnownDiagonals(ShapeContext& c, int k) {
  if (k >= c.num_inputs()) return std::optional<Diagonals>(Diagonals());
  if (c.constant(k) == nullptr) return std::optional<Diagonals>();
  WEFT_ASSIGN_OR_RETURN(const Diagonals found, DiagonalsOf(c.constant(k), "LEFT_LEFT"));
  return std::optional<Diagonals>(found);
}

Status DiagPartShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const std::optional<Diagonals> wanted, KnownDiagonals(c, 1));
  if (!input.known_rank() || !wanted) return shapes::Unknown(c);
  const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
  const Dims batches(input.dims().begin(), input.dims().end() - 2);
  const bool known = rows >= 0 && columns >= 0;
  if (known) WEFT_RETURN_IF_ERROR(wanted->CheckBounds(rows, columns));
  const int64_t longest = known ? wanted->Longest(rows, columns) : -1;
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(wanted->SizesIn(batches, longest)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status DiagShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape given, c.WithRankAtLeast(0, 1));
  WEFT_ASSIGN_OR_RETURN(const std::optional<Diagonals> wanted, KnownDiagonals(c, 1));
  if (!given.known_rank() || !wanted) return shapes::Unknown(c);
  const int inner = wanted->count() > 1 ? 2 : 1;
  if (given.rank() < inner) {
    return InvalidArgument("diagonal must have ", inner, " dimensions or more, but is ",
                           given.ToString());
  }
  int64_t rows = -1, columns = -1;
  const bool is_full = c.num_inputs() > 1;
  const bool known = !is_full || (c.constant(2) != nullptr && c.constant(3) != nullptr);
  if (is_full && known) {
    WEFT_ASSIGN_OR_RETURN(rows, IndexScalar(*c.constant(2), "num_rows"));
    WEFT_ASSIGN_OR_RETURN(columns, IndexScalar(*c.constant(3), "num_cols"));
  }
  const int64_t longest = given.dim(given.rank() - 1);
  if (known && longest >= 0) {
    WEFT_RETURN_IF_ERROR(DiagKernel::Resolve(*wanted, longest, &rows, &columns));
  }
  Dims sizes(given.dims().begin(), given.dims().end() - inner);
  sizes.push_back(rows);
  sizes.push_back(columns);
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status AtLeastMatrix(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The same form of another op: k and align are passed on.
Endpoint Like(GradientContext& c, const std::string& op, std::vector<Argument> inputs, int k) {
  AttrMap attrs;
  if (const auto align = c.Attr<std::string>("align"); align.ok()) attrs.emplace("align", *align);
  if (k < c.node().num_inputs()) inputs.push_back(c.input(k));
  const std::string& own = c.node().op();
  const std::string suffix =
      own.ends_with("V2") || own.ends_with("V3") ? own.substr(own.size() - 2) : "";
  if (op == "MatrixDiagPart" && !suffix.empty()) {
    inputs.push_back(
        c.Op("Cast", {c.builder().Scalar<int32_t>(0)}, {{"DstT", c.node().output_type(0).dtype}}));
  }
  return {c.builder().AddNode(op + suffix, inputs, std::move(attrs)), 0};
}

Status DiagPartGradient(GradientContext& c) {
  c.set_input(0, Like(c, "MatrixSetDiag", {c.Op("ZerosLike", {c.input(0)}), c.gradient()}, 1));
  return absl::OkStatus();
}

Status DiagGradient(GradientContext& c) {
  c.set_input(0, Like(c, "MatrixDiagPart", {c.gradient()}, 1));
  if (c.node().num_inputs() > 4) {
    // The padding is wherever no diagonal is.
    const Endpoint none =
        Like(c, "MatrixSetDiag", {c.gradient(), c.Op("ZerosLike", {c.input(0)})}, 1);
    c.set_input(
        4, c.Op("Sum", {none, c.Op("Range", {c.builder().Scalar<int32_t>(0), c.Op("Rank", {none}),
                                             c.builder().Scalar<int32_t>(1)})}));
  }
  return absl::OkStatus();
}

Status SetDiagGradient(GradientContext& c) {
  c.set_input(0, Like(c, "MatrixSetDiag", {c.gradient(), c.Op("ZerosLike", {c.input(1)})}, 2));
  c.set_input(1, Like(c, "MatrixDiagPart", {c.gradient()}, 2));
  return absl::OkStatus();
}

Status BandPartGradient(GradientContext& c) {
  c.set_input(0, c.Op("MatrixBandPart", {c.gradient(), c.input(1), c.input(2)}));
  return absl::OkStatus();
}

constexpr char kAlign[] =
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";

OpSpec Named(const char* name, Form form, const std::string& documentation) {
  OpSpec spec(absl::StrCat(name, form == Form::kV1 ? "" : form == Form::kV2 ? "V2" : "V3"));
  spec.Doc(form == Form::kV1 ? documentation
                             : absl::StrCat(documentation,
                                            "\nDiagonals k, or k[0] to k[1]: 0 is the main one, "
                                            "positive ones lie above it. Several come as rows, the "
                                            "uppermost first, shorter ones at the left or right."));
  return spec;
}

void AddForm(Catalogue& catalogue, Form form) {
  const bool is_full = form != Form::kV1;
  OpSpec part = Named("MatrixDiagPart", form, "The diagonals of each matrix.");
  part.Input("input: T");
  if (is_full)
    part.Input("k: int32").HostInput("k").Input("padding_value: T").HostInput("padding_value");
  part.Output("diagonal: T").Attr("T: type");
  if (form == Form::kV3) part.Attr(kAlign);
  part.Shape(DiagPartShape).Gradient(DiagPartGradient).Kernel(MakeKernel<DiagPartKernel>());
  catalogue.Add(std::move(part));

  OpSpec diag = Named("MatrixDiag", form, "Matrices with these diagonals and nothing else.");
  diag.Input("diagonal: T");
  if (is_full) {
    diag.Input("k: int32")
        .HostInput("k")
        .Input("num_rows: int32")
        .HostInput("num_rows")
        .Input("num_cols: int32")
        .HostInput("num_cols");
    diag.Input("padding_value: T").HostInput("padding_value");
  }
  diag.Output("output: T").Attr("T: type");
  if (form == Form::kV3) diag.Attr(kAlign);
  diag.Shape(DiagShape).Gradient(DiagGradient).Kernel(MakeKernel<DiagKernel>());
  catalogue.Add(std::move(diag));

  OpSpec set = Named("MatrixSetDiag", form, "The matrices with other diagonals.");
  set.Input("input: T").Input("diagonal: T");
  if (is_full) set.Input("k: int32").HostInput("k");
  set.Output("output: T").Attr("T: type");
  if (form == Form::kV3) set.Attr(kAlign);
  set.Shape(AtLeastMatrix).Gradient(SetDiagGradient).Kernel(MakeKernel<SetDiagKernel>());
  catalogue.Add(std::move(set));
}

// The names of the first forms in graphs of long ago.
void AddOldNames(Catalogue& catalogue) {
  OpSpec part("BatchMatrixDiagPart"), diag("BatchMatrixDiag"), set("BatchMatrixSetDiag"),
      band("BatchMatrixBandPart");
  part.Input("input: T").Output("diagonal: T").Shape(DiagPartShape);
  part.Kernel(MakeKernel<DiagPartKernel>()).Deprecated(14, "Use MatrixDiagPart");
  diag.Input("diagonal: T").Output("output: T").Shape(DiagShape);
  diag.Kernel(MakeKernel<DiagKernel>()).Deprecated(14, "Use MatrixDiag");
  set.Input("input: T").Input("diagonal: T").Output("output: T").Shape(AtLeastMatrix);
  set.Kernel(MakeKernel<SetDiagKernel>()).Deprecated(14, "Use MatrixSetDiag");
  band.Input("input: T").Input("num_lower: int64").HostInput("num_lower");
  band.Input("num_upper: int64").HostInput("num_upper").Output("band: T").Shape(AtLeastMatrix);
  band.Kernel(MakeKernel<BandPartKernel>()).Deprecated(14, "Use MatrixBandPart");
  for (OpSpec* spec : {&part, &diag, &set, &band}) {
    spec->Doc("The old name of the op without Batch.").Attr("T: type").NoGradient();
    catalogue.Add(std::move(*spec));
  }
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const Form form : {Form::kV1, Form::kV2, Form::kV3}) AddForm(catalogue, form);
  AddOldNames(catalogue);
  catalogue.Add(OpSpec("MatrixBandPart")
                    .Doc("Each matrix with zeros more than num_lower below the main diagonal and "
                         "more than num_upper above it; a negative number keeps that side whole.")
                    .Input("input: T")
                    .Input("num_lower: Tindex")
                    .HostInput("num_lower")
                    .Input("num_upper: Tindex")
                    .HostInput("num_upper")
                    .Output("band: T")
                    .Attr("T: type")
                    .Attr("Tindex: {int32, int64} = DT_INT64")
                    .Shape(AtLeastMatrix)
                    .Gradient(BandPartGradient)
                    .Kernel(MakeKernel<BandPartKernel>()));
}

}  // namespace weft::ops::array::matrix_diag
