// SPDX-License-Identifier: Apache-2.0
// Gradients of what one op between tensors cannot show: variables, branches, sums over several
// ways.
#include "weft/train/gradients.h"

#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/program.h"

namespace weft::train {
namespace {

class GradientsTest : public ::testing::Test {
 protected:
  // A variable with the values 1, 2, 3, ...
  Variable Counting(const Shape& shape) {
    return program_.AddVariable("v", DType::kDouble, shape,
                                [](GraphBuilder& b, DType, const Shape& s) {
                                  std::vector<double> values(s.num_elements());
                                  for (size_t i = 0; i < values.size(); ++i)
                                    values[i] = static_cast<double>(i + 1);
                                  return b.Constant(Tensor::FromSpan<double>(s, values));
                                });
  }

  // dL/dx for L = sum(y * y / 2).
  StatusOr<Tensor> GradientOfSquares(Endpoint y, Endpoint x,
                                     const std::vector<session::Feed>& feeds = {}) {
    const Endpoint loss = b_.Op("L2Loss", {y});
    WEFT_ASSIGN_OR_RETURN(const std::vector<Endpoint> gradients,
                          AddDenseGradients(b_, {loss}, {x}));
    if (!gradients[0]) return NotFound("no gradient");
    Node* init = program_.InitializeVariables();
    session::DirectOptions options;
    options.catalogue = &StandardCatalogue();
    options.devices = &StandardDevices();
    options.num_threads = 1;
    WEFT_ASSIGN_OR_RETURN(auto session, session::NewDirectSession(options));
    WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program_.graph())));
    WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session->Run(feeds, {NameOf(gradients[0])}, {}, &results));
    return results[0];
  }

  void Expect(const StatusOr<Tensor>& gradient, const Shape& shape,
              const std::vector<double>& values) {
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    ASSERT_EQ(gradient->shape(), shape);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(gradient->data<double>()[i], values[i], 1e-12) << i;
  }

  Program program_;
  GraphBuilder& b_ = program_.builder();
};

TEST_F(GradientsTest, OfAReadVariable) {
  const Variable v = Counting({2, 2});
  Expect(GradientOfSquares(v.value, v.handle), {2, 2}, {1, 2, 3, 4});
}

TEST_F(GradientsTest, OfNothingIsAnError) {
  const Variable v = Counting({2});
  EXPECT_EQ(AddGradients(b_, {Endpoint()}, {v.value}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddGradients(b_, {v.value}, {Endpoint()}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(GradientsTest, OfGatheredRowsThatComeTwice) {
  const Variable v = Counting({3, 2});
  const Endpoint ids = b_.Constant(Tensor::Vector<int32_t>({2, 0, 2}));
  const Endpoint rows = b_.Op("ResourceGather", {v.handle, ids}, {{"dtype", DType::kDouble}});
  Expect(GradientOfSquares(rows, v.handle), {3, 2}, {1, 2, 0, 0, 10, 12});
}

TEST_F(GradientsTest, OfGatheredElements) {
  const Variable v = Counting({2, 2});
  const Endpoint places = b_.Constant(Tensor::FromSpan<int32_t>({3, 2}, {0, 1, 1, 1, 0, 1}));
  const Endpoint found = b_.Op("ResourceGatherNd", {v.handle, places}, {{"dtype", DType::kDouble}});
  Expect(GradientOfSquares(found, v.handle), {2, 2}, {0, 4, 0, 4});
}

TEST_F(GradientsTest, OfBothSidesOfABranch) {
  for (const bool taken : {true, false}) {
    const Endpoint x = b_.Op("Placeholder", {}, {{"dtype", DType::kDouble}});
    const Endpoint pred = b_.Op("Placeholder", {}, {{"dtype", DType::kBool}});
    Node* sides = b_.AddNode("Switch", {x, pred});
    const Endpoint squared = b_.Op("Square", {Endpoint{sides, 1}});
    const Endpoint negated = b_.Op("Neg", {Endpoint{sides, 0}});
    const Endpoint y = b_.Op("Merge", {std::vector<Endpoint>{negated, squared}});
    Expect(
        GradientOfSquares(
            y, x, {{NameOf(x), Tensor::Scalar(3.0)}, {NameOf(pred), Tensor::Scalar<bool>(taken)}}),
        {}, {taken ? 54.0 : 3.0});
  }
}

TEST_F(GradientsTest, AddUpOverAllWays) {
  const Endpoint x = b_.Constant(Tensor::Vector<double>({2, 3}));
  const Endpoint y = b_.Op("AddV2", {b_.Op("Mul", {x, x}), b_.Op("Neg", {x})});
  Expect(GradientOfSquares(y, x), {2}, {2 * 3, 6 * 5});
}

TEST_F(GradientsTest, NameTheOpWithoutOne) {
  const Endpoint x = b_.Constant(Tensor::Vector<double>({2, 3}));
  const Endpoint y = b_.Op("Exit", {b_.Op("Enter", {x}, {{"frame_name", "loop"}})});
  const Status status = GradientOfSquares(y, x).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST_F(GradientsTest, AreEmptyWhereNothingDepends) {
  const Endpoint x = b_.Constant(Tensor::Vector<double>({2, 3}));
  const Endpoint y = b_.Constant(Tensor::Vector<double>({2, 3}));
  const StatusOr<std::vector<TensorGradient>> gradients = AddGradients(b_, {y}, {x});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_TRUE((*gradients)[0].empty());
}

}  // namespace
}  // namespace weft::train
