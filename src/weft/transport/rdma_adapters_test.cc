// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/rdma_adapters.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ActiveRdmaAdapters, AreThoseWithAnActivePortAndADeviceFile) {
  const std::string root = ::testing::TempDir() + "/rdma_adapters";
  std::filesystem::remove_all(root);
  EXPECT_THAT(ActiveRdmaAdapters(root), IsEmpty());
  const auto write = [&](const std::string& path, const char* text) {
    const std::filesystem::path file = root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  };
  const auto add = [&](const std::string& name, const char* state, bool has_file) {
    const std::string own = "/sys/class/infiniband/" + name;
    write(own + "/ports/1/state", "1: DOWN");
    write(own + "/ports/2/state", state);
    write(own + "/device/infiniband_verbs/uverbs_" + name + "/dev", "231:192");
    if (has_file) write("/dev/infiniband/uverbs_" + name, "");
  };
  add("mlx5_1", "4: ACTIVE", true);
  add("mlx5_0", "4: ACTIVE", true);
  add("mlx5_2", "2: INIT", true);
  add("mlx5_3", "4: ACTIVE", false);  // another container's
  EXPECT_THAT(ActiveRdmaAdapters(root), ElementsAre("mlx5_0", "mlx5_1"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace weft::transport
