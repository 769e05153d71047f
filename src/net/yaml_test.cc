// SPDX-License-Identifier: Apache-2.0
#include "net/yaml.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string DumpOf(absl::string_view text) {
  const StatusOr<std::vector<Json>> documents = ParseYaml(text, "job.yaml");
  if (!documents.ok()) return documents.status().ToString();
  std::string all;
  for (const Json& document : *documents) absl::StrAppend(&all, document.Dump(), "\n");
  return all;
}

std::string ErrorOf(absl::string_view text, const YamlLimits& limits = {}) {
  const StatusOr<std::vector<Json>> documents = ParseYaml(text, "job.yaml", limits);
  return documents.ok() ? "OK" : std::string(documents.status().message());
}

TEST(YamlTest, ReadsBlocksFlowsAndDocuments) {
  EXPECT_EQ(DumpOf("a: 1\nb:\n- x\n- {c: [1, two]}\nd: |\n  line\n  next\n"),
            "{\"a\":1,\"b\":[\"x\",{\"c\":[1,\"two\"]}],\"d\":\"line\\nnext\\n\"}\n");
  EXPECT_EQ(DumpOf("---\na: 1\n---\n# nothing\n---\n- 2\n...\n"), "{\"a\":1}\n[2]\n");
  EXPECT_EQ(DumpOf(""), "");
  EXPECT_EQ(DumpOf("# only a comment\n"), "");
}

TEST(YamlTest, ResolvesPlainWordsAsKubernetesDoes) {
  EXPECT_EQ(DumpOf("[~, null, true, no, on, 12, -3, +4, 0x1F, 010, 0o17, 0b11, 1.5, .5, 1e3, 1.]"),
            "[null,null,true,false,true,12,-3,4,31,8,15,3,1.5,0.5,1000.0,1.0]\n");
  EXPECT_EQ(
      DumpOf("['12', \"true\", !!str 7, 1.2.3, 0x, 08, 1_000, e3, +, -, ., 12a]"),
      "[\"12\",\"true\",\"7\",\"1.2.3\",\"0x\",8.0,\"1_000\",\"e3\",\"+\",\"-\",\".\",\"12a\"]\n");
  EXPECT_EQ(DumpOf("{1: a, true: b, ~: c}"), "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\"}\n");
  EXPECT_EQ(DumpOf("99999999999999999999"), "1e+20\n");
}

TEST(YamlTest, ExpandsAliasesAndMerges) {
  EXPECT_EQ(DumpOf("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nlist: [*b, *b]\n"),
            "{\"base\":{\"x\":1,\"y\":2},\"use\":{\"y\":3,\"x\":1},\"list\":[{\"x\":1,\"y\":2},{"
            "\"x\":1,\"y\":2}]}\n");
  EXPECT_EQ(DumpOf("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}"),
            "{\"a\":{\"x\":1},\"b\":{\"x\":2,\"y\":3},\"c\":{\"x\":1,\"y\":3}}\n");
  EXPECT_THAT(ErrorOf("a: {<<: 3}"), HasSubstr("'<<' merges mappings, found 3"));
  EXPECT_THAT(ErrorOf("a: *nowhere"), StartsWith("job.yaml:1:4: "));
}

TEST(YamlTest, AnAliasBombStopsAtTheCap) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j ? "," : "", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("aliases expand to more than"));
  const std::string text(100000, 'x');
  std::string long_text = absl::StrCat("a: &a ", text, "\nb: [");
  for (int i = 0; i < 20; ++i) absl::StrAppend(&long_text, "*a, ");
  EXPECT_THAT(ErrorOf(long_text + "]"), HasSubstr("aliases expand to more than"));
}

TEST(YamlTest, HoldsItsLimits) {
  EXPECT_EQ(ErrorOf(std::string(64, '[') + std::string(64, ']')), "OK");
  EXPECT_THAT(ErrorOf(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("nested deeper than 64"));
  EXPECT_NE(ErrorOf(std::string(100000, '[')), "OK");
  EXPECT_NE(ErrorOf(std::string(100000, '{')), "OK");
  EXPECT_NE(ErrorOf(std::string(100000, '-')), "");
  YamlLimits limits;
  limits.max_bytes = 3;
  EXPECT_THAT(ErrorOf("a: 1", limits), HasSubstr("4 bytes, at most 3"));
}

TEST(YamlTest, ErrorsHaveFileLineAndColumn) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("job.yaml:"));
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"), "job.yaml:3:1: 'a' stands twice in one mapping");
  EXPECT_EQ(ErrorOf("? [1, 2]\n: x\n"),
            "job.yaml:1:3: a name must be one word, not a list or mapping");
  EXPECT_THAT(ErrorOf("a: !!binary aGk="), HasSubstr("job.yaml:1:4: the tag"));
  EXPECT_THAT(ErrorOf("a: &x [*x]"), StartsWith("job.yaml:1:"));
  EXPECT_NE(ErrorOf(std::string("a: \0b", 5)), "");
  EXPECT_EQ(ErrorOf("a: 1\nb: \xff"),
            "job.yaml:2: malformed YAML: byte 8 of the text is not UTF-8");
  EXPECT_EQ(ErrorOf("a: \xed\xa0\x80"),
            "job.yaml:1: malformed YAML: byte 3 of the text is not UTF-8");
  EXPECT_EQ(DumpOf("a: \xe4\xba\x91\xf0\x9f\x98\x80\n"),
            "{\"a\":\"\xe4\xba\x91\xf0\x9f\x98\x80\"}\n");
  EXPECT_THAT(ErrorOf(",x"), StartsWith("job.yaml:1:1: malformed YAML"));
  EXPECT_THAT(ErrorOf("a: 1\n}"), StartsWith("job.yaml:2:1: malformed YAML"));
  EXPECT_THAT(ErrorOf("\ta: 1"), StartsWith("job.yaml:1:"));
}

TEST(YamlTest, HintsAtAMissingDash) {
  EXPECT_THAT(
      ErrorOf("containers:\n  name: tensorflow\n    image: mnist:1.0\n"),
      HasSubstr("If it is an item of 'containers', write '- name: tensorflow' and 'image'"));
}

TEST(YamlTest, HintsAtATab) {
  for (const char* text : {"spec:\n\ta: 1\n", "spec:\n  \ta: 1\n"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("; line 2 is indented with a tab: only spaces indent in"));
  }
  EXPECT_THAT(ErrorOf("spec:\n  a: 1\n\tb: 2\n"), HasSubstr("; line 3 is indented with a tab"));
  EXPECT_THAT(ErrorOf("a:\t1\nb: 2\n c: 3\n"), Not(HasSubstr("tab")));
}

TEST(YamlTest, ValuesHaveTheirPositions) {
  const Json document = ParseYaml("a:\n  - b: 1\n    c: text\n", "f").value()[0];
  const Json& item = document.Find("a")->items()[0];
  EXPECT_EQ(item.position().line, 2);
  EXPECT_EQ(item.Find("c")->position().line, 3);
  EXPECT_EQ(item.Find("c")->position().column, 8);
}

TEST(YamlTest, TakesJsonToo) {
  EXPECT_EQ(ParseYamlOrJson("{\"a\": [1]}", "f").value()[0].Dump(), "{\"a\":[1]}");
  EXPECT_EQ(ParseYamlOrJson("{a: [x]}", "f").value()[0].Dump(), "{\"a\":[\"x\"]}");
  EXPECT_EQ(ParseYamlOrJson("a: 1", "f").value()[0].Dump(), "{\"a\":1}");
  EXPECT_THAT(std::string(ParseYamlOrJson("{\"a\": ", "f").status().message()),
              StartsWith("f: Malformed JSON at line 1"));
}

TEST(YamlTest, WritesWhatItReads) {
  const Json value =
      Json::Parse(R"({"kind":"A","empty":{},"none":[],"null":null,"n":1,"d":1.5,"b":true,
      "words":["yes","1","a: b","#x","-","", " lead","trail ","multi\nline","x'y","tab\t","a:","~","0x1f","1e3","ünï"],
      "nested":[{"name":"x","list":[1,[2,3],{"k":"v"}]},{"name":"y"}],
      "text":"one\ntwo\n\nthree\n","text2":"one\n  two","odd key: ":1})")
          .value();
  const StatusOr<std::vector<Json>> read = ParseYaml(DumpYaml(value), "written");
  ASSERT_TRUE(read.ok()) << read.status() << DumpYaml(value);
  EXPECT_EQ((*read)[0], value) << DumpYaml(value);
  EXPECT_EQ(DumpYaml(Json::Parse(R"({"a":[{"b":1,"c":"x"}],"d":"l1\nl2\n"})").value()),
            "a:\n- b: 1\n  c: x\nd: |\n  l1\n  l2\n");
}

TEST(YamlTest, TellsWhereALineWasLost) {
  const auto error =
      ParseYaml("apiVersion: v1kind: Pod\nmetadata:\n  name: s1\n", "pod.yaml", {}).status();
  EXPECT_THAT(std::string(error.message()),
              ::testing::HasSubstr("write 'apiVersion: v1' and 'kind: Pod' on lines of their own"));
}

}  // namespace
}  // namespace weft
