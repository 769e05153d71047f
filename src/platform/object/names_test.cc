// SPDX-License-Identifier: Apache-2.0
#include "platform/object/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(NamesTest, TakesWhatAServerTakes) {
  for (const char* name : {"a", "0", "my-name", "123-abc"}) {
    EXPECT_THAT(LabelNameProblems(name), IsEmpty()) << name;
  }
  EXPECT_THAT(SubdomainProblems("a.b-c.0"), IsEmpty());
  EXPECT_THAT(QualifiedNameProblems("example.com/My.Name_1"), IsEmpty());
  EXPECT_THAT(LabelValueProblems(""), IsEmpty());
  EXPECT_THAT(DataKeyProblems(".hidden_key-1.txt"), IsEmpty());
  EXPECT_THAT(VariableNameProblems("a.b c"), IsEmpty());
  EXPECT_THAT(PortNameProblems("http-2"), IsEmpty());
}

TEST(NamesTest, RefusesWhatWouldLeadElsewhere) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc", "a.b", "-a", "a-", "A", "a b"}) {
    EXPECT_THAT(LabelNameProblems(name), Not(IsEmpty())) << name;
  }
  for (const char* name : {"", "..", "a/b", "a..b", ".a", "a."}) {
    EXPECT_THAT(SubdomainProblems(name), Not(IsEmpty())) << name;
  }
  for (const char* name : {"", ".", "..", "..data", "a/b"}) {
    EXPECT_THAT(DataKeyProblems(name), Not(IsEmpty())) << name;
  }
  EXPECT_THAT(LabelNameProblems(std::string(64, 'a')),
              ElementsAre("must be no more than 63 characters"));
}

TEST(NamesTest, SaysItAsAServerDoes) {
  EXPECT_THAT(LabelNameProblems("A"),
              ElementsAre("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                          "characters or '-', and must start and end with an alphanumeric "
                          "character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"));
  EXPECT_THAT(QualifiedNameProblems("a/b/c"),
              ElementsAre(HasSubstr("with an optional DNS subdomain prefix and '/'")));
  EXPECT_THAT(QualifiedNameProblems("/b"), ElementsAre("prefix part must be non-empty"));
}

}  // namespace
}  // namespace weft::platform
