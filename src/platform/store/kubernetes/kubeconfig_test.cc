// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/kubeconfig.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "base/files.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

constexpr char kFirst[] = R"(
current-context: one
clusters:
- {name: c1, cluster: {server: "https://one:6443", tls-server-name: api.one}}
contexts:
- {name: one, context: {cluster: c1, user: u1, namespace: team}}
- {name: mixed, context: {cluster: c2, user: u1}}
users:
- {name: u1, user: {tokenFile: token}}
)";
constexpr char kSecond[] = R"(
current-context: two
clusters:
- {name: c1, cluster: {server: "https://not-this-one"}}
- {name: c2, cluster: {server: "https://two:6443"}}
contexts:
- {name: two, context: {cluster: c2, user: u2}}
users:
- {name: u2, user: {token: secret, tokenFile: token}}
)";

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    folder_ = absl::StrCat(::testing::TempDir(), "kubeconfig_test-", ::getpid());
    EXPECT_TRUE(files_.MakeDirectories(folder_ + "/a").ok());
    EXPECT_TRUE(files_.MakeDirectories(folder_ + "/b").ok());
    a_ = Write("a/config", kFirst);
    b_ = Write("b/config", kSecond);
  }
  ~KubeconfigTest() override { ::unsetenv("KUBECONFIG"); }
  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFile(files_, folder_ + "/" + name, text).ok());
    return folder_ + "/" + name;
  }
  StatusOr<ClusterAccess> Find(const std::string& list, const std::string& context = "") {
    ::setenv("KUBECONFIG", list.c_str(), 1);
    return FindClusterAccess("", context);
  }

  RealFileSystem files_;
  std::string folder_;
  std::string a_;
  std::string b_;
};

TEST_F(KubeconfigTest, ReadsOneFile) {
  const ClusterAccess access = ReadKubeconfig(a_).value();
  EXPECT_EQ(access.server, "https://one:6443");
  EXPECT_EQ(access.tls.server_name, "api.one");
  EXPECT_EQ(access.namespace_name, "team");
  EXPECT_EQ(access.token_file, folder_ + "/a/token");
  EXPECT_THAT(access.check, HasSubstr("kubectl --kubeconfig " + a_ + " --context one"));
}

TEST_F(KubeconfigTest, MergesTheFilesOfTheVariable) {
  const std::string list = absl::StrCat(folder_, "/none:", a_, "::", b_);
  EXPECT_EQ(Find(list)->server, "https://one:6443");
  const ClusterAccess two = Find(list, "two").value();
  EXPECT_EQ(two.server, "https://two:6443");
  EXPECT_EQ(two.token_file, folder_ + "/b/token");
  EXPECT_THAT(two.check, HasSubstr(absl::StrCat("KUBECONFIG=", a_, ":", b_, " kubectl")));
  // A context of one file may use what stands in another.
  const ClusterAccess mixed = Find(list, "mixed").value();
  EXPECT_EQ(mixed.server, "https://two:6443");
  EXPECT_EQ(mixed.token_file, folder_ + "/a/token");
  // The other way round the other file comes first.
  EXPECT_EQ(Find(absl::StrCat(b_, ":", a_))->server, "https://two:6443");
  EXPECT_EQ(Find(absl::StrCat(b_, ":", a_), "one")->server, "https://not-this-one");
}

TEST_F(KubeconfigTest, SaysWhatIsMissingAndWhere) {
  const std::string list = absl::StrCat(a_, ":", b_);
  EXPECT_THAT(std::string(Find(list, "three").status().message()),
              HasSubstr(absl::StrCat(list, ": contexts has no 'three', only: one, mixed, two")));
  EXPECT_TRUE(absl::IsNotFound(Find(folder_ + "/none").status()));
  const std::string bad = Write("a/bad", "[1]");
  EXPECT_THAT(std::string(Find(absl::StrCat(a_, ":", bad)).status().message()),
              HasSubstr(bad + ": this is no kubeconfig"));
}

}  // namespace
}  // namespace weft::platform
