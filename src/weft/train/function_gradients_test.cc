// SPDX-License-Identifier: Apache-2.0
// Gradients through calls, If, Case, While and TensorArrays, first and second, against differences.
#include "weft/gradients/function_gradients.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/function.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/gradients.h"
#include "weft/train/program.h"

namespace weft::train {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

const TensorType& kReal = *new TensorType{DType::kDouble, {}};
const TensorType& kInt = *new TensorType{DType::kInt32, {}};

Endpoint Number(GraphBuilder& b, double value) { return b.Scalar<double>(value); }

// A scalar function of a vector of doubles, as a graph.
using Build = std::function<Endpoint(GraphBuilder&, Endpoint x)>;

class FunctionGradientsTest : public ::testing::Test {
 protected:
  StatusOr<Tensor> Run(const Endpoint& fetch, const std::vector<double>& x) {
    if (session_ == nullptr) {
      session::DirectOptions options;
      options.catalogue = &StandardCatalogue();
      options.devices = &StandardDevices();
      options.num_threads = 1;
      WEFT_RETURN_IF_ERROR(program_.status());
      WEFT_ASSIGN_OR_RETURN(session_, session::NewDirectSession(options));
      Node* init = program_.InitializeVariables();
      WEFT_RETURN_IF_ERROR(session_->Extend(ExportGraph(program_.graph())));
      WEFT_RETURN_IF_ERROR(session_->Run({}, {}, {init->name()}, nullptr));
    }
    const Shape shape{static_cast<int64_t>(x.size())};
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session_->Run({{NameOf(x_), Tensor::FromSpan<double>(shape, x)}},
                                       {NameOf(fetch)}, {}, &results));
    return results[0];
  }

  // d(y)/dx of the graph against differences of y at `at`.
  void Compare(const Endpoint& y, const Endpoint& dy, const std::vector<double>& at) {
    const StatusOr<Tensor> slope = Run(dy, at);
    ASSERT_TRUE(slope.ok()) << slope.status();
    ASSERT_EQ(slope->num_elements(), static_cast<int64_t>(at.size()));
    for (size_t i = 0; i < at.size(); ++i) {
      constexpr double kStep = 1e-5;
      double sides[2];
      for (const int side : {0, 1}) {
        std::vector<double> moved = at;
        moved[i] += side == 0 ? -kStep : kStep;
        const StatusOr<Tensor> value = Run(y, moved);
        ASSERT_TRUE(value.ok()) << value.status();
        sides[side] = value->scalar<double>();
      }
      const double expected = (sides[1] - sides[0]) / (2 * kStep);
      EXPECT_NEAR(slope->data<double>()[i], expected, 1e-6 * (1 + std::abs(expected))) << i;
    }
  }

  Endpoint SumOf(const Endpoint& x) { return b_.Op("Sum", {x, b_.Scalar<int32_t>(0)}); }

  // First and second derivatives of `build` at each of `places`.
  void Check(const Build& build, const std::vector<std::vector<double>>& places) {
    const Endpoint y = build(b_, x_);
    const auto first = AddDenseGradients(b_, {y}, {x_});
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE((*first)[0]) << "No gradient";
    const Endpoint weight = b_.Constant(Tensor::Vector<double>({0.5, -1.25}));
    const Endpoint slope = SumOf(b_.Op("Mul", {(*first)[0], weight}));
    const auto second = AddDenseGradients(b_, {slope}, {x_});
    ASSERT_TRUE(second.ok()) << second.status();
    for (const std::vector<double>& at : places) {
      Compare(y, (*first)[0], at);
      if ((*second)[0]) Compare(slope, (*second)[0], at);
    }
  }

  Program program_;
  GraphBuilder& b_ = program_.builder();
  const Endpoint x_ = b_.Op("Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", Shape{2}}});
  std::unique_ptr<session::Session> session_;
};

// Scalars 0 and 1 of x.
Endpoint Part(GraphBuilder& b, Endpoint x, int i) {
  return b.Op("GatherV2", {x, b.Scalar<int32_t>(i), b.Scalar<int32_t>(0)});
}

// exp(a) * sin(a * c)
Function Wave(GraphBuilder& b) {
  return DefineFunction(b, "wave", {kReal, kReal}, [](GraphBuilder& f, Arguments in) {
    return Tensors{f.Op("Mul", {f.Op("Exp", {in[0]}), f.Op("Sin", {f.Op("Mul", {in[0], in[1]})})})};
  });
}

TEST_F(FunctionGradientsTest, ThroughACall) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        return Call(b, Wave(b), {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{0.5, 1.5}, {-1, 2}});
}

TEST_F(FunctionGradientsTest, ThroughAFunctionByName) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        Wave(b);
        return b.Op("wave", {Part(b, x, 0), Part(b, x, 1)});
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughCallsInCalls) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const Function wave = Wave(b);
        const Function twice =
            DefineFunction(b, "twice", {kReal, kReal}, [&](GraphBuilder& f, Arguments in) {
              const Endpoint once = Call(f, wave, {in[0], in[1]})[0];
              return Tensors{Call(f, wave, {once, in[0]})[0]};
            });
        return Call(b, twice, {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughBothBranchesOfAnIf) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const Function wave = Wave(b);
        // Reads one argument only.
        const Function cube =
            DefineFunction(b, "cube", {kReal, kReal}, [](GraphBuilder& f, Arguments in) {
              return Tensors{f.Op("Mul", {in[0], f.Op("Square", {in[0]})})};
            });
        const Endpoint up = b.Op("Greater", {Part(b, x, 0), Part(b, x, 1)});
        return If(b, up, wave, cube, {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{2, 0.5}, {0.5, 2}});
}

TEST_F(FunctionGradientsTest, ThroughACase) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        std::vector<Function> branches{Wave(b)};
        for (const char* op : {"Tanh", "Softplus"}) {
          branches.push_back(DefineFunction(
              b, op + std::string("_of"), {kReal, kReal}, [op](GraphBuilder& f, Arguments in) {
                return Tensors{f.Op("Mul", {f.Op(op, {in[1]}), f.Op("Exp", {in[0]})})};
              }));
        }
        const Endpoint which = b.Op("Cast", {Part(b, x, 0)}, {{"DstT", DType::kInt32}});
        return Case(b, which, branches, {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{0.5, 1.5}, {1.5, 0.25}, {2.5, 1}, {7.5, 1}});
}

// (i, a, c) -> (i + 1, a * sin(a) + c, c), `count` times.
std::pair<Function, Function> Spiral(GraphBuilder& b, int count) {
  const std::vector<TensorType> types{kInt, kReal, kReal};
  return {DefineFunction(b, "goes_on", types,
                         [count](GraphBuilder& f, Arguments in) {
                           return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(count)})};
                         }),
          DefineFunction(b, "spiral", types, [](GraphBuilder& f, Arguments in) {
            const Endpoint a = f.Op("Mul", {in[1], f.Op("Sin", {in[1]})});
            return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), f.Op("AddV2", {a, in[2]}),
                           in[2]};
          })};
}

TEST_F(FunctionGradientsTest, ThroughAWhile) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto [goes_on, spiral] = Spiral(b, 4);
        return While(b, goes_on, spiral, {b.Scalar<int32_t>(0), Part(b, x, 0), Part(b, x, 1)})[1];
      },
      {{0.5, 1.5}, {-1, 0.25}});
}

TEST_F(FunctionGradientsTest, ThroughAWhileThatNeverRuns) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto [goes_on, spiral] = Spiral(b, 0);
        const Tensors out =
            While(b, goes_on, spiral, {b.Scalar<int32_t>(0), Part(b, x, 0), Part(b, x, 1)});
        return b.Op("Mul", {out[1], out[2]});
      },
      {{0.5, 1.5}});
}

// As often as x[0] is not above 10: the gradient knows the number of iterations from the run.
TEST_F(FunctionGradientsTest, ThroughAWhileOfAnyLength) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const std::vector<TensorType> types{kReal, kReal};
        const Function below = DefineFunction(b, "below", types, [](GraphBuilder& f, Arguments in) {
          return Tensors{f.Op("Less", {in[0], Number(f, 10)})};
        });
        const Function grow = DefineFunction(b, "grow", types, [](GraphBuilder& f, Arguments in) {
          return Tensors{f.Op("AddV2", {f.Op("Mul", {in[0], in[1]}), Number(f, 0.1)}), in[1]};
        });
        return While(b, below, grow, {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{0.5, 1.5}, {3, 1.1}, {11, 2}});
}

TEST_F(FunctionGradientsTest, ThroughAnIfInAWhileInACall) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const std::vector<TensorType> types{kInt, kReal, kReal};
        const Function wave = Wave(b);
        const Function minus =
            DefineFunction(b, "minus", {kReal, kReal}, [](GraphBuilder& f, Arguments in) {
              return Tensors{f.Op("Sub", {f.Op("Square", {in[1]}), in[0]})};
            });
        const Function step = DefineFunction(b, "step", types, [&](GraphBuilder& f, Arguments in) {
          const Endpoint odd = f.Op("FloorMod", {in[0], f.Scalar<int32_t>(2)});
          const Endpoint next = If(f, odd, wave, minus, {in[1], in[2]})[0];
          return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), next, in[1]};
        });
        const Function more = DefineFunction(b, "more", types, [](GraphBuilder& f, Arguments in) {
          return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(3)})};
        });
        const Function all =
            DefineFunction(b, "all", {kReal, kReal}, [&](GraphBuilder& f, Arguments in) {
              return Tensors{While(f, more, step, {f.Scalar<int32_t>(0), in[0], in[1]})[1]};
            });
        return Call(b, all, {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{0.5, 0.75}});
}

// The second derivative comes by what the branch that did not run would have kept.
TEST_F(FunctionGradientsTest, ThroughAWhileInAnIf) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto [goes_on, spiral] = Spiral(b, 3);
        const Function turns = DefineFunction(
            b, "turns", {kReal, kReal},
            [goes_on = goes_on, spiral = spiral](GraphBuilder& f, Arguments in) {
              return Tensors{While(f, goes_on, spiral, {f.Scalar<int32_t>(0), in[0], in[1]})[1]};
            });
        const Endpoint up = b.Op("Greater", {Part(b, x, 0), Part(b, x, 1)});
        return If(b, up, turns, Wave(b), {Part(b, x, 0), Part(b, x, 1)})[0];
      },
      {{2, 0.5}, {0.5, 2}});
}

// A loop within a loop, whose inner lists are the outer one's values.
TEST_F(FunctionGradientsTest, ThroughAWhileInAWhile) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto [goes_on, spiral] = Spiral(b, 2);
        const std::vector<TensorType> types{kInt, kReal, kReal};
        const Function outer = DefineFunction(
            b, "outer", types, [goes_on = goes_on, spiral = spiral](GraphBuilder& f, Arguments in) {
              const Tensors inner = While(f, goes_on, spiral, {f.Scalar<int32_t>(0), in[1], in[2]});
              return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), inner[1],
                             f.Op("Tanh", {in[2]})};
            });
        return While(b, goes_on, outer, {b.Scalar<int32_t>(0), Part(b, x, 0), Part(b, x, 1)})[1];
      },
      {{0.5, 1.5}});
}

// A loop writes an array, another reads it back to front.
TEST_F(FunctionGradientsTest, ThroughTensorArraysInLoops) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        Node* array = b.AddNode("TensorArrayV3", {b.Scalar<int32_t>(3)},
                                {{"dtype", DType::kDouble}, {"clear_after_read", false}});
        const std::vector<TensorType> types{kInt, {DType::kResource}, {DType::kFloat}, kReal};
        const Function below = DefineFunction(b, "below", types, [](GraphBuilder& f, Arguments in) {
          return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(3)})};
        });
        const Function write = DefineFunction(b, "write", types, [](GraphBuilder& f, Arguments in) {
          const Endpoint value = f.Op("Exp", {f.Op("Sin", {in[3]})});
          const Endpoint flow = f.Op("TensorArrayWriteV3", {in[1], in[0], value, in[2]});
          return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), in[1], flow,
                         f.Op("Mul", {in[3], value})};
        });
        const Tensors filled =
            While(b, below, write,
                  {b.Scalar<int32_t>(0), Endpoint{array, 0}, Endpoint{array, 1}, Part(b, x, 0)});
        const Function read = DefineFunction(b, "read", types, [](GraphBuilder& f, Arguments in) {
          const Endpoint at = f.Op("Sub", {f.Scalar<int32_t>(2), in[0]});
          const Endpoint value =
              f.Op("TensorArrayReadV3", {in[1], at, in[2]}, {{"dtype", DType::kDouble}});
          return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), in[1], in[2],
                         f.Op("Mul", {in[3], value})};
        });
        return While(b, below, read,
                     {b.Scalar<int32_t>(0), Endpoint{array, 0}, filled[2], Part(b, x, 1)})[3];
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughWholeTensorArrays) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto array = [&] {
          return b.AddNode("TensorArrayV3", {b.Scalar<int32_t>(2)}, {{"dtype", DType::kDouble}});
        };
        const auto ints = [&](std::vector<int32_t> values) {
          return b.Constant(Tensor::Vector<int32_t>({values[0], values[1]}));
        };
        Node* rows = array();
        const Endpoint spread = b.Op("TensorArrayScatterV3", {Endpoint{rows, 0}, ints({0, 1}),
                                                              b.Op("Exp", {x}), Endpoint{rows, 1}});
        const Endpoint turned =
            b.Op("TensorArrayGatherV3", {Endpoint{rows, 0}, ints({1, 0}), spread},
                 {{"dtype", DType::kDouble}});
        Node* parts = array();
        const Endpoint cut =
            b.Op("TensorArraySplitV3",
                 {Endpoint{parts, 0}, b.Op("Mul", {turned, x}),
                  b.Op("Cast", {ints({1, 1})}, {{"DstT", DType::kInt64}}), Endpoint{parts, 1}});
        Node* joined = b.AddNode("TensorArrayConcatV3", {Endpoint{parts, 0}, cut},
                                 {{"dtype", DType::kDouble}});
        const Endpoint product = b.Op("Square", {Endpoint{joined, 0}});
        return b.Op("Sum", {product, b.Scalar<int32_t>(0)});
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughListsByIndex) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const Endpoint scalar = b.Constant(Tensor::FromSpan<int32_t>({0}, {}));
        const auto index = [&](int32_t i) { return b.Scalar<int32_t>(i); };
        const Endpoint rows = b.Op("TensorListFromTensor", {b.Op("Exp", {x}), scalar});
        const Endpoint set = b.Op("TensorListSetItem", {rows, index(0), Part(b, x, 1)});
        const Endpoint longer = b.Op("TensorListResize", {set, index(3)});
        const AttrValue dtype = DType::kDouble;
        const Endpoint item =
            b.Op("TensorListGetItem", {longer, index(1), scalar}, {{"element_dtype", dtype}});
        const Endpoint all = b.Op("TensorListStack", {longer, scalar}, {{"element_dtype", dtype}});
        const Endpoint turned =
            b.Op("TensorListGather", {longer, b.Constant(Tensor::Vector<int32_t>({1, 0})), scalar},
                 {{"element_dtype", dtype}});
        const Endpoint sum = b.Op("Sum", {b.Op("Square", {all}), index(0)});
        const Endpoint mixed = b.Op("Sum", {b.Op("Mul", {turned, x}), index(0)});
        return b.Op("AddV2", {b.Op("Mul", {sum, item}), mixed});
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughListsMadeAndJoined) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const Endpoint scalar = b.Constant(Tensor::FromSpan<int32_t>({0}, {}));
        const Endpoint any_rows = b.Constant(Tensor::Vector<int32_t>({-1}));
        const Endpoint order = b.Constant(Tensor::Vector<int32_t>({1, 0}));
        const AttrValue dtype = DType::kDouble;
        const Endpoint zero = b.Scalar<int32_t>(0);
        const auto stacked = [&](Endpoint list) {
          return b.Op("TensorListStack", {list, scalar}, {{"element_dtype", dtype}});
        };
        const Endpoint plain = b.Op("TensorListScatter", {b.Op("Exp", {x}), order, scalar});
        const Endpoint sized =
            b.Op("TensorListScatterV2", {x, order, scalar, b.Scalar<int32_t>(2)});
        const Endpoint into = b.Op("TensorListScatterIntoExistingList", {plain, x, order});
        const Endpoint cut = b.Op("TensorListSplit", {b.Op("Square", {x}), any_rows,
                                                      b.Constant(Tensor::Vector<int64_t>({1, 1}))});
        Node* old = b.AddNode("TensorListConcat", {cut}, {{"element_dtype", dtype}});
        Node* joined = b.AddNode("TensorListConcatV2",
                                 {cut, any_rows, b.Constant(Tensor::FromSpan<int64_t>({0}, {}))},
                                 {{"element_dtype", dtype}});
        Endpoint product = b.Op("Mul", {stacked(plain), stacked(sized)});
        product = b.Op("Mul", {product, stacked(into)});
        product = b.Op("Mul", {product, b.Op("Mul", {Endpoint{old, 0}, Endpoint{joined, 0}})});
        return b.Op("Sum", {product, zero});
      },
      {{0.5, 1.5}});
}

// One value is read twice, one after its key got another, one is erased and one never read.
TEST_F(FunctionGradientsTest, ThroughMaps) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const auto key = [&](int64_t number) { return b.Scalar<int64_t>(number); };
        const auto insert = [&](Endpoint map, int64_t number, Endpoint value) {
          return b.Op("TensorMapInsert", {map, key(number), value});
        };
        const auto lookup = [&](Endpoint map, int64_t number) {
          return b.Op("TensorMapLookup", {map, key(number)}, {{"value_dtype", DType::kDouble}});
        };
        const Endpoint first = insert(b.Op("EmptyTensorMap", {}), 1, b.Op("Exp", {x}));
        const Endpoint second = insert(insert(first, 2, b.Op("Square", {x})), 3, x);
        const Endpoint changed = insert(second, 1, b.Op("Sin", {x}));
        const Endpoint less =
            b.Op("TensorMapErase", {changed, key(3)}, {{"value_dtype", DType::kDouble}});
        const Endpoint product = b.Op("Mul", {lookup(first, 1), lookup(less, 1)});
        return b.Op("Sum",
                    {b.Op("Mul", {product, b.Op("AddV2", {lookup(less, 2), lookup(second, 2)})}),
                     b.Scalar<int32_t>(0)});
      },
      {{0.5, 1.5}});
}

TEST_F(FunctionGradientsTest, ThroughCompositeTensors) {
  Check(
      [](GraphBuilder& b, Endpoint x) {
        const std::vector<Endpoint> parts = {b.Op("Exp", {x}), b.Scalar<int64_t>(7),
                                             b.Op("Sin", {x}), x};
        const Endpoint whole =
            b.Op("CompositeTensorVariantFromComponents", {parts}, {{"metadata", "pair"}});
        Node* again = b.AddNode(
            "CompositeTensorVariantToComponents", {whole},
            {{"metadata", "pair"},
             {"Tcomponents",
              AttrValue::TypeList{DType::kDouble, DType::kInt64, DType::kDouble, DType::kDouble}}});
        return b.Op("Sum",
                    {b.Op("Mul", {Endpoint{again, 0}, Endpoint{again, 2}}), b.Scalar<int32_t>(0)});
      },
      {{0.5, 1.5}});
}

// Two losses of one array in one step: each has gradients of its own.
TEST_F(FunctionGradientsTest, OfTwoLossesStayApart) {
  Node* array = b_.AddNode("TensorArrayV3", {b_.Scalar<int32_t>(1)},
                           {{"dtype", DType::kDouble}, {"clear_after_read", false}});
  const Endpoint zero = b_.Scalar<int32_t>(0);
  const Endpoint flow =
      b_.Op("TensorArrayWriteV3", {Endpoint{array, 0}, zero, x_, Endpoint{array, 1}});
  Tensors slopes;
  for (const double factor : {2.0, 3.0}) {
    const Endpoint read =
        b_.Op("TensorArrayReadV3", {Endpoint{array, 0}, zero, flow}, {{"dtype", DType::kDouble}});
    const auto slope = AddDenseGradients(b_, {b_.Op("Mul", {read, Number(b_, factor)})}, {x_});
    ASSERT_TRUE(slope.ok()) << slope.status();
    slopes.push_back((*slope)[0]);
  }
  const StatusOr<Tensor> both = Run(b_.Op("AddN", {slopes}), {1, 1});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(both->span<double>(), ::testing::ElementsAre(5, 5));
}

// Variables are read by their handles, in every iteration.
TEST_F(FunctionGradientsTest, OfVariablesInALoop) {
  const Variable w = program_.AddVariable("w", DType::kDouble, Shape(), Constant(0.5));
  const Variable unused = program_.AddVariable("unused", DType::kDouble, Shape(), Constant(0.5));
  const std::vector<TensorType> types{kInt, kReal, {DType::kResource}, {DType::kResource}};
  const Function below = DefineFunction(b_, "below", types, [](GraphBuilder& f, Arguments in) {
    return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(3)})};
  });
  const Function times = DefineFunction(b_, "times", types, [](GraphBuilder& f, Arguments in) {
    const Endpoint value = f.Op("ReadVariableOp", {in[2]}, {{"dtype", DType::kDouble}});
    return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), f.Op("Mul", {in[1], value}), in[2],
                   in[3]};
  });
  const Endpoint y =
      While(b_, below, times, {b_.Scalar<int32_t>(0), Part(b_, x_, 0), w.handle, unused.handle})[1];
  const auto slopes = AddDenseGradients(b_, {y}, {w.handle, unused.handle, x_});
  ASSERT_TRUE(slopes.ok()) << slopes.status();
  EXPECT_FALSE((*slopes)[1]);
  const StatusOr<Tensor> slope = Run((*slopes)[0], {2, 0});  // 3 * x * w^2
  ASSERT_TRUE(slope.ok()) << slope.status();
  EXPECT_DOUBLE_EQ(slope->scalar<double>(), 1.5);
  EXPECT_DOUBLE_EQ((*Run((*slopes)[2], {2, 0})).data<double>()[0], 0.125);
}

// Random numbers are drawn once: the gradient sees those that the loop saw.
TEST_F(FunctionGradientsTest, SeeTheRandomNumbersOfTheRun) {
  const std::vector<TensorType> types{kInt, kReal};
  const Function below = DefineFunction(b_, "below", types, [](GraphBuilder& f, Arguments in) {
    return Tensors{f.Op("Less", {in[0], f.Scalar<int32_t>(3)})};
  });
  const Function times = DefineFunction(b_, "times", types, [](GraphBuilder& f, Arguments in) {
    const Endpoint none = f.Constant(Tensor::FromSpan<int32_t>(Shape{0}, {}));
    const Endpoint random = f.Op("RandomUniform", {none}, {{"dtype", DType::kDouble}});
    return Tensors{f.Op("AddV2", {in[0], f.Scalar<int32_t>(1)}), f.Op("Mul", {in[1], random})};
  });
  const Endpoint x = Part(b_, x_, 0);
  const Endpoint y = While(b_, below, times, {b_.Scalar<int32_t>(0), x})[1];
  const auto slopes = AddDenseGradients(b_, {y}, {x});
  ASSERT_TRUE(slopes.ok()) << slopes.status();
  const StatusOr<Tensor> one = Run(b_.Op("RealDiv", {b_.Op("Mul", {(*slopes)[0], x}), y}), {2, 0});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_NEAR(one->scalar<double>(), 1, 1e-12);
}

// The library's word for a function's gradient counts, whatever its body says.
TEST_F(FunctionGradientsTest, AreTheLibrarysWhereItNamesThem) {
  const Function wave = Wave(b_);
  const Function own =
      DefineFunction(b_, "own", {kReal, kReal, kReal}, [](GraphBuilder& f, Arguments in) {
        return Tensors{f.Op("Mul", {in[2], Number(f, 7)}), in[2]};
      });
  program_.graph().SetGradientFunction(wave.name, own.name);
  const Endpoint y = Call(b_, wave, {Part(b_, x_, 0), Part(b_, x_, 1)})[0];
  const auto slopes = AddDenseGradients(b_, {y}, {x_});
  ASSERT_TRUE(slopes.ok()) << slopes.status();
  const StatusOr<Tensor> slope = Run((*slopes)[0], {2, 3});
  ASSERT_TRUE(slope.ok()) << slope.status();
  EXPECT_THAT(slope->span<double>(), ::testing::ElementsAre(7, 1));
}

// As a client of TensorFlow 1 asks for them: inside a function, too.
TEST_F(FunctionGradientsTest, AreMadeForWhoAsksBySymbolicGradient) {
  const auto gradient = [](GraphBuilder& b, const Function& of, const Tensors& inputs) {
    const std::vector<DType> types(of.arguments.size(), DType::kDouble);
    return b.Op("SymbolicGradient", {inputs}, {{"f", of.ref()}, {"Tout", types}});
  };
  const Function wave = Wave(b_);
  const Function slope =
      DefineFunction(b_, "slope", {kReal, kReal}, [&](GraphBuilder& f, Arguments in) {
        return Tensors{gradient(f, wave, {in[0], in[1], Number(f, 1)})};
      });
  const Endpoint a = Part(b_, x_, 0), c = Part(b_, x_, 1);
  const Endpoint y = Call(b_, wave, {a, c})[0];
  const Endpoint dy = gradient(b_, wave, {a, c, Number(b_, 1)});
  const Endpoint bend = gradient(b_, slope, {a, c, Number(b_, 1)});
  const Endpoint slopes = b_.Op("Pack", {Tensors{dy, {dy.node, 1}}});
  const Endpoint bends = b_.Op("Pack", {Tensors{bend, {bend.node, 1}}});
  Compare(y, slopes, {0.5, 1.25});
  Compare(dy, bends, {0.5, 1.25});
}

TEST_F(FunctionGradientsTest, NameTheOpThatHasNone) {
  const Function holed = DefineFunction(b_, "holed", {kReal}, [](GraphBuilder& f, Arguments in) {
    const Endpoint inside = f.Op("Enter", {in[0]}, {{"frame_name", "loop"}});
    return Tensors{f.Op("Exit", {inside})};
  });
  const Endpoint y = Call(b_, holed, {Part(b_, x_, 0)})[0];
  const Status status = AddGradients(b_, {y}, {x_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("Function 'holed'"));
}

}  // namespace
}  // namespace weft::train
