// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/data_carrier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::cluster {
namespace {

using ::testing::HasSubstr;

TEST(ChooseCarrier, AutoTakesUcxWhereAnAdapterIsThere) {
  const auto with = ChooseCarrier(CarrierFacts{.adapters = {"mlx5_0", "mlx5_1"}});
  ASSERT_TRUE(with.ok());
  EXPECT_TRUE(with->is_ucx);
  EXPECT_EQ(with->why, "Tensors between tasks travel by UCX: RDMA adapters mlx5_0, mlx5_1");
  const auto without = ChooseCarrier(CarrierFacts{.wish = "auto"});
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(without->is_ucx);
  EXPECT_THAT(without->why, HasSubstr("no RDMA adapter with an active port is here"));
}

TEST(ChooseCarrier, AutoSaysWhyAnAdapterIsNotUsed) {
  const auto tls = ChooseCarrier(CarrierFacts{.needs_tls = true, .adapters = {"mlx5_0"}});
  ASSERT_TRUE(tls.ok());
  EXPECT_FALSE(tls->is_ucx);
  EXPECT_THAT(tls->why, HasSubstr("demand TLS, which UCX does not have, so that mlx5_0 is not"));
  const auto missing = ChooseCarrier(
      CarrierFacts{.adapters = {"mlx5_0"}, .ucx = Unimplemented("UCX is not in this build")});
  ASSERT_TRUE(missing.ok());
  EXPECT_FALSE(missing->is_ucx);
  EXPECT_THAT(missing->why, HasSubstr("mlx5_0 is not used: UCX is not in this build"));
}

TEST(ChooseCarrier, AWishIsGrantedOrRefusedInWords) {
  const auto tcp = ChooseCarrier(CarrierFacts{.wish = "tcp", .adapters = {"mlx5_0"}});
  ASSERT_TRUE(tcp.ok());
  EXPECT_FALSE(tcp->is_ucx);
  const auto ucx = ChooseCarrier(CarrierFacts{.wish = "ucx"});
  ASSERT_TRUE(ucx.ok());
  EXPECT_TRUE(ucx->is_ucx);
  EXPECT_THAT(ucx->why, HasSubstr("UCX_TLS decides"));
  const Status tls = ChooseCarrier(CarrierFacts{.wish = "ucx", .needs_tls = true}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(tls)) << tls;
  EXPECT_THAT(std::string(tls.message()), HasSubstr("UCX has no TLS"));
  const Status missing =
      ChooseCarrier(CarrierFacts{.wish = "ucx", .ucx = Unimplemented("UCX is not in this build")})
          .status();
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("--transport ucx: UCX is not in this build"));
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseCarrier(CarrierFacts{.wish = "rdma"}).status()));
}

}  // namespace
}  // namespace weft::cluster
