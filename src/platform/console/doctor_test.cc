// SPDX-License-Identifier: Apache-2.0
#include "platform/console/doctor.h"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

Finding Find(const std::vector<Finding>& findings, const std::string& about) {
  for (const Finding& finding : findings) {
    if (finding.about == about) return finding;
  }
  ADD_FAILURE() << "nothing about " << about;
  return {};
}

TEST(DoctorTest, LooksAtThisMachine) {
  const std::vector<Finding> findings = CheckMachine();
  EXPECT_FALSE(IsAnyBad(findings)) << DescribeFindings(findings, false);
  EXPECT_THAT(Find(findings, "kernel").found, HasSubstr("Linux "));
}

TEST(DoctorTest, SaysWhatAMachineLacks) {
  const std::string root = absl::StrCat(::testing::TempDir(), "weft-doctor-", ::getpid());
  RealFileSystem files;
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(files.MakeDirectories(ParentPath(root + path)).ok());
    ASSERT_TRUE(WriteFile(files, root + path, text).ok());
  };
  write("/proc/sys/kernel/osrelease", "5.4.0-42-generic\n");
  write("/proc/cpuinfo", "processor : 0\nflags : fpu sse2\nprocessor : 1\nflags : fpu sse2\n");
  write("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 524288 kB\nHugePages_Free: 0\n");
  write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [never]\n");
  const std::vector<Finding> findings = CheckMachine(root);
  EXPECT_TRUE(IsAnyBad(findings));
  EXPECT_THAT(Find(findings, "kernel").found,
              HasSubstr("5.4.0-42-generic, 5.9 or later is needed"));
  EXPECT_EQ(Find(findings, "kernel").verdict, Verdict::kBad);
  EXPECT_THAT(Find(findings, "processor").found, HasSubstr("2 processors with no vector"));
  EXPECT_THAT(Find(findings, "memory").found, HasSubstr("512 MiB of 2048 MiB"));
  EXPECT_THAT(Find(findings, "huge pages").next, HasSubstr("vm.nr_hugepages"));
  EXPECT_EQ(Find(findings, "/dev/shm").verdict, Verdict::kWorse);
  EXPECT_EQ(Find(findings, "cgroups").verdict, Verdict::kWorse);
  const std::string text = DescribeFindings(findings, true);
  EXPECT_THAT(text, HasSubstr("BAD   kernel"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("ok  ")));
  EXPECT_EQ(StringField(FindingsAsJson(findings).items()[0], {"verdict"}), "bad");
  std::filesystem::remove_all(root);
}

// A cluster of pages.
class FakeCluster {
 public:
  FakeCluster() {
    Page("/version", R"({"major":"1","minor":"33","gitVersion":"v1.33.0"})");
    Page("/apis/kubeflow.org/v1", R"({"resources":[{"name":"tfjobs"},{"name":"tfjobs/status"}]})");
    Page("/apis/krallistic.github.com/v1",
         R"({"resources":[{"name":"tensorflows"},{"name":"tensorflows/status"}]})");
    Page("/api/v1/pods?labelSelector=app.kubernetes.io/name%3Dweft-operator",
         R"({"items":[{"status":{"phase":"Running"}}]})");
    Page("/apis/coordination.k8s.io/v1/leases",
         R"({"items":[{"metadata":{"name":"weft-operator"},"spec":{"holderIdentity":"pod-1"}}]})");
    Page("/api/v1/nodes", R"({"items":[{"status":{"conditions":[{"type":"Ready","status":"True"}],
        "allocatable":{"nvidia.com/gpu":"8"}}},{"status":{"conditions":[{"type":"Ready","status":"False"}]}}]})");
    Page("/apis/storage.k8s.io/v1/storageclasses", R"({"items":[{"metadata":{"name":"fast",
        "annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}]})");
  }
  void Page(const std::string& path, const std::string& text) {
    pages_[path] = Json::Parse(text).value();
  }
  void Fail(const std::string& path, Status status) { pages_[path] = std::move(status); }
  std::vector<Finding> Check(bool as_operator = false) {
    ClusterView view;
    view.server = "https://c";
    view.lease_namespace = "weft-system";
    view.elects = elects;
    view.get = [this](const std::string& path) -> StatusOr<Json> {
      const auto found = pages_.find(path);
      return found == pages_.end() ? ApiError(404, "NotFound", "no such page") : found->second;
    };
    view.may = [this](const Json& attributes) -> StatusOr<bool> {
      asked.push_back(attributes.Dump());
      if (StringField(attributes, {"resource"}) == forbidden_resource) return false;
      return StringField(attributes, {"verb"}) != forbidden;
    };
    return CheckCluster(view, as_operator);
  }
  std::string forbidden;
  std::string forbidden_resource;
  bool elects = false;
  std::vector<std::string> asked;

 private:
  std::map<std::string, StatusOr<Json>> pages_;
};

TEST(DoctorTest, AClusterThatHasAll) {
  FakeCluster cluster;
  const std::vector<Finding> findings = cluster.Check();
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.verdict, Verdict::kGood) << finding.found;
  EXPECT_EQ(Find(findings, "operator").found, "1 running, led by pod-1");
  EXPECT_EQ(Find(findings, "nodes").found, "1 of 2 ready, 8 GPUs (nvidia.com/gpu)");
}

TEST(DoctorTest, WeftUpHasOperatorAndVolumesInItself) {
  FakeCluster cluster;
  cluster.Page("/version", R"({"major":"1","minor":"33","gitVersion":"v1.33.0+weft"})");
  cluster.Fail("/api/v1/pods?labelSelector=app.kubernetes.io/name%3Dweft-operator",
               ApiError(404, "NotFound", "no"));
  cluster.Fail("/apis/storage.k8s.io/v1/storageclasses", ApiError(404, "NotFound", "no"));
  for (const Finding& finding : cluster.Check())
    EXPECT_EQ(finding.verdict, Verdict::kGood) << finding.found;
}

TEST(DoctorTest, SaysWhatAClusterLacks) {
  FakeCluster cluster;
  cluster.Fail("/apis/kubeflow.org/v1", ApiError(404, "NotFound", "no"));
  cluster.Page("/api/v1/pods?labelSelector=app.kubernetes.io/name%3Dweft-operator",
               R"({"items":[]})");
  cluster.Fail("/api/v1/nodes", ApiError(403, "Forbidden", "no"));
  cluster.Page("/apis/storage.k8s.io/v1/storageclasses", R"({"items":[]})");
  cluster.forbidden = "create";
  const std::vector<Finding> findings = cluster.Check();
  EXPECT_EQ(Find(findings, "TFJob").next, "kubectl apply -f deploy/crds/tfjobs.yaml");
  EXPECT_EQ(Find(findings, "operator").next, "kubectl apply -k deploy/cluster");
  EXPECT_EQ(Find(findings, "nodes").found, "this account may not look");
  EXPECT_EQ(Find(findings, "storage").verdict, Verdict::kWorse);
  EXPECT_EQ(Find(findings, "rights").found, "this account may not create tfjobs.kubeflow.org");
  EXPECT_TRUE(IsAnyBad(findings));
  FakeCluster other;
  other.Page("/apis/kubeflow.org/v1", R"({"resources":[{"name":"tfjobs"}]})");
  EXPECT_THAT(Find(other.Check(), "TFJob").found, HasSubstr("of another operator"));
}

TEST(DoctorTest, AServerThatIsNotThereOrRefuses) {
  FakeCluster cluster;
  cluster.Fail("/version", Unavailable("connection refused"));
  std::vector<Finding> findings = cluster.Check();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].found, HasSubstr("does not answer: connection refused"));
  EXPECT_THAT(findings[0].next, HasSubstr("weft up"));
  cluster.Fail("/version", ApiError(401, "Unauthorized", "expired"));
  findings = cluster.Check();
  EXPECT_THAT(findings[0].found, HasSubstr("refuses these credentials: expired"));
  FakeCluster old;
  old.Page("/version", R"({"major":"1","minor":"20+","gitVersion":"v1.20.1"})");
  EXPECT_THAT(Find(old.Check(), "server").found, HasSubstr("1.25 or later is needed"));
}

TEST(DoctorTest, TheOperatorsAccountIsAskedForItsOwnRights) {
  FakeCluster cluster;
  const std::vector<Finding> findings = cluster.Check(/*as_operator=*/true);
  EXPECT_FALSE(IsAnyBad(findings));
  EXPECT_THAT(
      cluster.asked,
      ::testing::Contains(
          R"({"verb":"update","group":"kubeflow.org","resource":"tfjobs","subresource":"status"})"));
}

TEST(DoctorTest, AnOperatorThatElectsNeedsTheRightToLead) {
  FakeCluster cluster;
  EXPECT_EQ(Find(cluster.Check(/*as_operator=*/true), "lease").found,
            "may lead by a Lease in namespace weft-system");
  EXPECT_THAT(
      cluster.asked,
      ::testing::Contains(
          R"({"verb":"update","group":"coordination.k8s.io","resource":"leases","namespace":"weft-system"})"));
  cluster.forbidden_resource = "leases";
  const Finding alone = Find(cluster.Check(/*as_operator=*/true), "lease");
  EXPECT_EQ(alone.verdict, Verdict::kWorse);
  cluster.elects = true;
  const Finding inside = Find(cluster.Check(/*as_operator=*/true), "lease");
  EXPECT_EQ(inside.verdict, Verdict::kBad);
  EXPECT_THAT(inside.found, HasSubstr("get/create/update leases.coordination.k8s.io in "
                                      "namespace weft-system: it can never lead"));
  EXPECT_EQ(inside.next, "kubectl apply -f deploy/rbac/operator.yaml");
}

}  // namespace
}  // namespace weft::platform
