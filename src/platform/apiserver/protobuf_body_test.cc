// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/protobuf_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text.push_back(static_cast<char>(value | 128));
  text.push_back(static_cast<char>(value));
  return text;
}
std::string Bytes(int number, const std::string& value) {
  return absl::StrCat(Varint(static_cast<uint64_t>(number) << 3 | 2), Varint(value.size()), value);
}
std::string Number(int number, uint64_t value) {
  return absl::StrCat(Varint(static_cast<uint64_t>(number) << 3), Varint(value));
}
std::string Entry(int number, const std::string& key, const std::string& value) {
  return Bytes(number, Bytes(1, key) + Bytes(2, value));
}
std::string Body(const std::string& api_version, const std::string& kind, const std::string& raw) {
  return absl::StrCat(absl::string_view("k8s\0", 4),
                      Bytes(1, Bytes(1, api_version) + Bytes(2, kind)), Bytes(2, raw), Bytes(3, ""),
                      Bytes(4, ""));
}
// As Go writes it: with what is empty.
std::string Meta(const std::string& name) {
  return Bytes(1, absl::StrCat(Bytes(1, name), Bytes(2, ""), Bytes(3, "default"), Bytes(4, ""),
                               Bytes(5, ""), Number(7, 0), Bytes(8, ""), Entry(11, "app", "web")));
}

std::string Read(const std::string& body) {
  const StatusOr<Json> json = ParseProtobufBody(body);
  return json.ok() ? json->Dump() : std::string(json.status().message());
}

constexpr char kMetaJson[] =
    R"("metadata":{"name":"x","namespace":"default","labels":{"app":"web"}})";

TEST(ProtobufBodyTest, ReadsWhatPeopleCreate) {
  EXPECT_EQ(
      Read(Body("v1", "ConfigMap",
                Meta("x") + Entry(2, "a", "1") + Entry(3, "b", std::string("\0", 1)))),
      absl::StrCat(
          "{", kMetaJson,
          R"(,"data":{"a":"1"},"binaryData":{"b":"AA=="},"apiVersion":"v1","kind":"ConfigMap"})"));
  EXPECT_EQ(Read(Body("v1", "ServiceAccount", Meta("x"))),
            absl::StrCat("{", kMetaJson, R"(,"apiVersion":"v1","kind":"ServiceAccount"})"));
  EXPECT_EQ(Read(Body("v1", "Secret", Meta("x") + Entry(2, "k", "word") + Bytes(3, "Opaque"))),
            absl::StrCat(
                "{", kMetaJson,
                R"(,"data":{"k":"d29yZA=="},"type":"Opaque","apiVersion":"v1","kind":"Secret"})"));
  const std::string container =
      absl::StrCat(Bytes(1, "c"), Bytes(2, "i"), Bytes(3, "sh"), Bytes(3, ""), Bytes(5, ""),
                   Bytes(6, Bytes(1, "web") + Number(3, 80)),
                   Bytes(8, Entry(2, "cpu", Bytes(1, "2"))), Bytes(15, ""), Number(16, 0));
  const std::string pod = absl::StrCat(Bytes(2, container), Bytes(3, ""), Number(4, 0));
  const std::string spec =
      absl::StrCat(Number(1, 0), Bytes(2, Entry(1, "app", "web")),
                   Bytes(3, Meta("x") + Bytes(2, pod)), Bytes(4, ""), Number(5, 0));
  EXPECT_EQ(
      Read(Body("apps/v1", "Deployment", Meta("x") + Bytes(2, spec) + Bytes(3, Number(1, 7)))),
      absl::StrCat(
          "{", kMetaJson,
          R"(,"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":{)",
          kMetaJson, R"(,"spec":{"containers":[{"name":"c","image":"i","command":["sh",""],)",
          R"("ports":[{"name":"web","containerPort":80}],"resources":{"requests":{"cpu":"2"}}}],)",
          R"("terminationGracePeriodSeconds":0}}},"apiVersion":"apps/v1","kind":"Deployment"})"));
  EXPECT_EQ(
      Read(Body("coordination.k8s.io/v1", "Lease",
                Meta("x") + Bytes(2, Bytes(1, "me") + Number(2, 15) +
                                         Bytes(4, Number(1, 1) + Number(2, 5000))))),
      absl::StrCat(
          "{", kMetaJson, R"(,"spec":{"holderIdentity":"me","leaseDurationSeconds":15,)",
          R"("renewTime":"1970-01-01T00:00:01.000005Z"},"apiVersion":"coordination.k8s.io/v1","kind":"Lease"})"));
  EXPECT_EQ(Read(Body("batch/v1", "Job",
                      Meta("x") + Bytes(2, Number(1, 2) + Number(5, 0) +
                                               Bytes(6, Meta("x") + Bytes(2, Bytes(3, "Never"))) +
                                               Bytes(9, "Indexed")))),
            absl::StrCat("{", kMetaJson, R"(,"spec":{"parallelism":2,"template":{)", kMetaJson,
                         R"(,"spec":{"restartPolicy":"Never"}},"completionMode":"Indexed"},)",
                         R"("apiVersion":"batch/v1","kind":"Job"})"));
  EXPECT_EQ(Read(Body("scheduling.k8s.io/v1", "PriorityClass",
                      Meta("x") + Number(2, ~uint64_t{0}) + Number(3, 1) + Bytes(5, "Never"))),
            absl::StrCat("{", kMetaJson, R"(,"value":-1,"globalDefault":true,)",
                         R"("preemptionPolicy":"Never","apiVersion":"scheduling.k8s.io/v1",)",
                         R"("kind":"PriorityClass"})"));
  EXPECT_EQ(Read(Body("v1", "DeleteOptions", Number(1, 0) + Bytes(4, "Foreground"))),
            R"({"gracePeriodSeconds":0,"propagationPolicy":"Foreground"})");
  EXPECT_THAT(Read(Body("v1", "Service",
                        Meta("x") + Bytes(2, Bytes(1, Number(3, 80) + Bytes(4, Number(2, 8080)))))),
              HasSubstr(R"("ports":[{"port":80,"targetPort":8080}])"));
}

TEST(ProtobufBodyTest, SaysWhatItDoesNotRead) {
  EXPECT_THAT(Read(Body("batch/v1", "CronJob", "")),
              HasSubstr("kind batch/v1/CronJob is not read in protobuf here"));
  EXPECT_THAT(Read(Body("v1", "Pod", Bytes(2, Bytes(1, "volume")))),
              HasSubstr("field 1 of PodSpec"));
  EXPECT_EQ(HttpCodeOf(ParseProtobufBody(Body("v1", "Pod", Bytes(2, Bytes(1, "v")))).status()),
            415);
}

TEST(ProtobufBodyTest, RefusesWhatIsNone) {
  const std::string good = Body("v1", "ConfigMap", Meta("x") + Entry(2, "a", "1"));
  for (const std::string& bad :
       {std::string(), std::string("{}"), good.substr(1), std::string("k8s\0\xff", 5),
        Body("v1", "ConfigMap", "\x0a\x7f"), Body("v1", "ConfigMap", Number(1, 3)),
        Body("v1", "ConfigMap", std::string(20, '\xff')), Body("v1", "ConfigMap", "\x0b"),
        Body("v1", "Pod", Number(2, 1))}) {
    EXPECT_EQ(HttpCodeOf(ParseProtobufBody(bad).status()), 400) << bad;
  }
}

}  // namespace
}  // namespace weft::platform
