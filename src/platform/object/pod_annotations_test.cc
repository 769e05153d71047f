// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/object/job_annotations.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

std::string ProblemOf(const std::string& name, const std::string& value) {
  Json annotations;
  annotations.Set(name, value);
  Json metadata;
  metadata.Set("annotations", annotations);
  Problems problems("");
  CheckPodAnnotations(nullptr, metadata, "metadata", &problems);
  // What was there before is let be.
  Problems later("");
  CheckPodAnnotations(&metadata, metadata, "metadata", &later);
  EXPECT_TRUE(later.empty()) << later.ToStatus();
  return problems.empty() ? "" : std::string(problems.ToStatus().message());
}

TEST(PodAnnotationsTest, ReadsHowLongAPodRuns) {
  EXPECT_EQ(ParseRunLength("90m").value(), 5400);
  EXPECT_EQ(ParseRunLength("2h30m").value(), 9000);
  EXPECT_EQ(ParseRunLength("1.5").value(), 1.5);
  for (const char* text : {"soon", "", "-5", "0", "inf", "nan", "-1h", "infinite"}) {
    EXPECT_THAT(std::string(ParseRunLength(text).status().message()),
                HasSubstr(absl::StrCat("holds \"", text, "\", a length of time is allowed")));
  }
}

TEST(PodAnnotationsTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(ProblemOf("weft.dev/duration", "5m"), "");
  EXPECT_EQ(ProblemOf("weft.dev/gpu-model", "T4, A10"), "");
  EXPECT_EQ(ProblemOf("weft.dev/job-processors", "2"), "");
  EXPECT_EQ(ProblemOf("weft.dev/progress", "{}"), "");
  EXPECT_EQ(ProblemOf("weft.dev/trial", "3"), "");
  EXPECT_THAT(ProblemOf("weft.dev/trial", "third"), HasSubstr("the number of a trial is allowed"));
  EXPECT_EQ(ProblemOf("example.com/anything", "goes"), "");
  EXPECT_THAT(ProblemOf("weft.dev/duration", "soon"),
              HasSubstr("metadata.annotations[\"weft.dev/duration\"]: holds \"soon\""));
  EXPECT_THAT(ProblemOf("weft.dev/gpu-model", "T4,,A10"), HasSubstr("models of GPUs are allowed"));
  EXPECT_THAT(ProblemOf("weft.dev/job-processors", "many"), HasSubstr("a number of processors"));
  EXPECT_THAT(ProblemOf("weft.dev/job-processors", "0"), HasSubstr("a number of processors"));
  EXPECT_THAT(ProblemOf("weft.dev/durration", "5m"), HasSubstr("Did you mean 'weft.dev/duration'"));
  EXPECT_THAT(ProblemOf("weft.dev/packing", "node"), HasSubstr("belongs to the job"));
}

TEST(PodAnnotationsTest, AJobIsToldWhereTheyBelong) {
  const Json metadata = Json::Parse(R"({"annotations":{"weft.dev/duration":"5m"}})").value();
  Problems problems("");
  JobExtras extras;
  ReadJobAnnotations(metadata, &problems, &extras);
  EXPECT_THAT(std::string(problems.ToStatus().message()),
              HasSubstr("belongs to pods: write it in the template's metadata.annotations"));
}

}  // namespace
}  // namespace weft::platform
