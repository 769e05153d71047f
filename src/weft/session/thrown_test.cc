// SPDX-License-Identifier: Apache-2.0
// What the code of an op throws, wherever it runs, ends the step and not the process.
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

using ::testing::HasSubstr;

// As a container does that cannot grow.
void Throw() { std::vector<char>().reserve(SIZE_MAX); }

class ThrowingKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override {
    Throw();
    return absl::OkStatus();
  }
};

// As one that counts its outputs by an attribute which disagrees with the node's.
class KernelOfMoreOutputs final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(7, c.input(0));
    return c.AllocateOutput(8, Shape{3}).status();
  }
};

class ThrownTest : public ::testing::TestWithParam<bool> {
 protected:
  ThrownTest() { RegisterOps(catalogue_); }

  OpSpec Spec() {
    OpSpec spec("Throws");
    spec.Doc("Throws.").Input("x: float").Output("y: float").NoGradient();
    return spec;
  }
  Status Run(OpSpec spec) {
    catalogue_.Add(std::move(spec));
    WEFT_RETURN_IF_ERROR(catalogue_.status());
    Graph graph(&catalogue_.ops());
    GraphBuilder b(&graph);
    const Endpoint thrown = b.Op("Throws", {b.Scalar(1.0f)}, {}, "thrown");
    b.Op("Neg", {thrown}, {}, "y");
    WEFT_RETURN_IF_ERROR(b.status());
    WEFT_ASSIGN_OR_RETURN(const auto session, NewDirectSession({.catalogue = &catalogue_,
                                                                .devices = &StandardDevices(),
                                                                .fold = GetParam()}));
    WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(graph)));
    std::vector<Tensor> results;
    return session->Run({}, {"y:0"}, {}, &results);
  }

  Catalogue catalogue_;
};

TEST_P(ThrownTest, ByAKernel) {
  const Status status = Run(Spec().Shape(shapes::SameAsInput).Kernel(MakeKernel<ThrowingKernel>()));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("thrown"));
}

TEST_P(ThrownTest, ByWhatMakesAKernel) {
  const Status status =
      Run(Spec()
              .Shape(shapes::SameAsInput)
              .Kernel([](KernelConstruction&) -> StatusOr<std::unique_ptr<OpKernel>> {
                Throw();
                return std::make_unique<ThrowingKernel>();
              }));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("thrown"));
}

TEST_P(ThrownTest, ByAShapeFunction) {
  const Status status = Run(Spec()
                                .Shape([](ShapeContext&) -> Status {
                                  Throw();
                                  return absl::OkStatus();
                                })
                                .Kernel(MakeKernel<ThrowingKernel>()));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("thrown"));
}

TEST_P(ThrownTest, OutputsThatTheNodeDoesNotHave) {
  const Status status = Run(Spec()
                                .Shape([](ShapeContext& c) {
                                  c.set_output(9, c.input(9));
                                  EXPECT_EQ(c.constant(9), nullptr);
                                  c.set_output(-1, c.variable(9));
                                  return absl::OkStatus();
                                })
                                .Kernel(MakeKernel<KernelOfMoreOutputs>()));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'thrown' has no output 8"));
}

INSTANTIATE_TEST_SUITE_P(Folded, ThrownTest, ::testing::Bool());

}  // namespace
}  // namespace weft::session
