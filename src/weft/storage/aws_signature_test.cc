// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/aws_signature.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/storage/object_requests.h"

namespace weft::storage {
namespace {

using ::testing::EndsWith;

const AwsCredentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                              ""};

std::string Authorization(const AwsRequest& request) {
  const absl::Time when = absl::FromCivil(absl::CivilSecond(2013, 5, 24), absl::UTCTimeZone());
  for (const auto& [name, value] : SignAws(request, kExample, "us-east-1", when)) {
    if (name == "authorization") return value;
  }
  return "";
}

// The signatures of S3's own documentation.
TEST(AwsSignature, OfAReadOfARange) {
  EXPECT_THAT(Authorization({.method = "GET",
                             .host = "examplebucket.s3.amazonaws.com",
                             .path = "/test.txt",
                             .headers = {{"range", "bytes=0-9"}}}),
              EndsWith("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
                       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(AwsSignature, OfAList) {
  const AwsRequest request{.method = "GET",
                           .host = "examplebucket.s3.amazonaws.com",
                           .path = "/",
                           .query = {{"prefix", "J"}, {"max-keys", "2"}}};
  EXPECT_EQ(AwsQuery(request), "max-keys=2&prefix=J");
  EXPECT_THAT(Authorization(request),
              EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(AwsSignature, OfAQueryWithoutAValue) {
  EXPECT_THAT(Authorization({.method = "GET",
                             .host = "examplebucket.s3.amazonaws.com",
                             .path = "/",
                             .query = {{"lifecycle", ""}}}),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(ObjectRequests, EncodesWhatIsNotPlain) {
  EXPECT_EQ(EncodeUrl("a b/c+d~é", true), "a%20b/c%2Bd~%C3%A9");
  EXPECT_EQ(EncodeUrl("a/b", false), "a%2Fb");
}

TEST(ObjectRequests, RangesThatServersAnswerInTheirWays) {
  char buffer[4];
  HttpAnswer part{.status = 206, .headers = {}, .body = "cdef"};
  EXPECT_EQ(TakeRange(part, 2, absl::MakeSpan(buffer), "u").value_or(99), 4u);
  HttpAnswer whole{.status = 200, .headers = {}, .body = "abcdef"};
  EXPECT_EQ(TakeRange(whole, 4, absl::MakeSpan(buffer), "u").value_or(99), 2u);
  EXPECT_EQ(std::string(buffer, 2), "ef");
  HttpAnswer behind{.status = 416, .headers = {}, .body = ""};
  EXPECT_EQ(TakeRange(behind, 9, absl::MakeSpan(buffer), "u").value_or(99), 0u);
  HttpAnswer missing{.status = 404, .headers = {}, .body = "no"};
  EXPECT_TRUE(absl::IsNotFound(TakeRange(missing, 0, absl::MakeSpan(buffer), "u").status()));
}

}  // namespace
}  // namespace weft::storage
