// SPDX-License-Identifier: Apache-2.0
// The functions of weft_c.h as a program of C calls them.
#include <cstring>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/c_api/weft_c.h"
#include "weft/graph/builder.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"

namespace weft {
namespace {

using testing::HasSubstr;

// The error's code and message, and no error any more.
std::pair<int, std::string> Taken(weft_error* error) {
  const std::pair<int, std::string> taken = {weft_error_code(error), weft_error_message(error)};
  weft_error_free(error);
  return taken;
}

weft_tensor* Floats(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  weft_tensor* tensor = nullptr;
  EXPECT_EQ(
      weft_tensor_new(WEFT_FLOAT, &count, 1, values.data(), values.size() * sizeof(float), &tensor),
      nullptr);
  return tensor;
}

std::string DoublingGraph() {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  const Endpoint x{builder.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, "x"), 0};
  builder.AddNode("AddV2", {x, x}, {}, "twice");
  EXPECT_TRUE(builder.status().ok()) << builder.status();
  return *SerializeGraphDef(ExportGraph(graph));
}

TEST(CApi, TensorsHoldWhatTheyAreGiven) {
  weft_tensor* floats = Floats({1, 2, 3});
  EXPECT_EQ(weft_tensor_dtype(floats), WEFT_FLOAT);
  EXPECT_EQ(weft_tensor_rank(floats), 1);
  EXPECT_EQ(weft_tensor_dim(floats, 0), 3);
  EXPECT_EQ(weft_tensor_dim(floats, 1), -1);
  EXPECT_EQ(weft_tensor_bytes(floats), 12u);
  EXPECT_EQ(static_cast<const float*>(weft_tensor_data(floats))[2], 3);
  EXPECT_EQ(weft_tensor_string(floats, 0, nullptr), nullptr);
  weft_tensor_free(floats);

  const char* texts[] = {"a\0b", "cd"};
  const size_t sizes[] = {3, 2};
  const int64_t two = 2;
  weft_tensor* strings = nullptr;
  ASSERT_EQ(weft_tensor_strings(&two, 1, texts, sizes, &strings), nullptr);
  size_t size = 0;
  EXPECT_EQ(std::memcmp(weft_tensor_string(strings, 0, &size), "a\0b", 3), 0);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(weft_tensor_string(strings, 2, nullptr), nullptr);
  EXPECT_EQ(weft_tensor_data(strings), nullptr);
  weft_tensor_free(strings);
}

TEST(CApi, WrongTensorsAreErrorsThatSayWhy) {
  weft_tensor* tensor = nullptr;
  const int64_t two = 2, negative = -1;
  const float values[2] = {};
  EXPECT_THAT(Taken(weft_tensor_new(WEFT_FLOAT, &two, 1, values, 4, &tensor)).second,
              HasSubstr("has 8 bytes, got 4"));
  EXPECT_EQ(Taken(weft_tensor_new(WEFT_STRING, &two, 1, values, 8, &tensor)).first,
            WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(Taken(weft_tensor_new(999, &two, 1, values, 8, &tensor)).first, WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(Taken(weft_tensor_new(WEFT_FLOAT, &negative, 1, values, 8, &tensor)).first,
            WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(Taken(weft_tensor_new(WEFT_FLOAT, nullptr, 1, values, 8, &tensor)).first,
            WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(Taken(weft_tensor_new(WEFT_FLOAT, &two, 1, values, 8, nullptr)).first,
            WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(tensor, nullptr);
  weft_tensor_free(nullptr);
}

TEST(CApi, SessionsRunGraphs) {
  const std::string graph = DoublingGraph();
  weft_session* session = nullptr;
  ASSERT_EQ(weft_session_open("", graph.data(), graph.size(), &session), nullptr);
  weft_tensor* const x = Floats({1.5, -2});
  const char *feed = "x:0", *fetch = "twice:0", *unknown = "thrice:0";
  weft_tensor* y = nullptr;
  ASSERT_EQ(weft_session_run(session, &feed, &x, 1, &fetch, &y, 1, nullptr, 0), nullptr);
  EXPECT_EQ(static_cast<const float*>(weft_tensor_data(y))[1], -4);
  weft_tensor_free(y);
  const auto refused = Taken(weft_session_run(session, &feed, &x, 1, &unknown, &y, 1, nullptr, 0));
  EXPECT_THAT(refused.second, HasSubstr("thrice"));
  EXPECT_EQ(y, nullptr);
  EXPECT_EQ(Taken(weft_session_run(session, nullptr, &x, 1, &fetch, &y, 1, nullptr, 0)).first,
            WEFT_INVALID_ARGUMENT);
  EXPECT_EQ(weft_session_close(session), nullptr);
  EXPECT_EQ(Taken(weft_session_run(session, &feed, &x, 1, &fetch, &y, 1, nullptr, 0)).first,
            WEFT_FAILED_PRECONDITION);
  weft_tensor_free(x);
  weft_session_free(session);
  EXPECT_EQ(Taken(weft_session_open("", "no graph", 8, &session)).first, WEFT_INVALID_ARGUMENT);
}

TEST(CApi, DatasetsGiveTheLinesOfFiles) {
  const std::string path = testing::TempDir() + "/c_api_lines.txt";
  std::ofstream(path) << "one\ntwo\nthree\n";
  const char* paths[] = {path.c_str()};
  weft_dataset* lines = nullptr;
  ASSERT_EQ(weft_dataset_lines(paths, 1, "", &lines), nullptr);
  ASSERT_EQ(weft_dataset_batch(lines, 2, 0), nullptr);
  weft_tensor* batch = nullptr;
  ASSERT_EQ(weft_dataset_next(lines, &batch), nullptr);
  EXPECT_STREQ(weft_tensor_string(batch, 1, nullptr), "two");
  weft_tensor_free(batch);
  EXPECT_EQ(Taken(weft_dataset_repeat(lines, 2)).first, WEFT_FAILED_PRECONDITION);
  ASSERT_EQ(weft_dataset_next(lines, &batch), nullptr);
  EXPECT_EQ(weft_tensor_elements(batch), 1);
  weft_tensor_free(batch);
  EXPECT_EQ(Taken(weft_dataset_next(lines, &batch)).first, WEFT_OUT_OF_RANGE);
  EXPECT_EQ(batch, nullptr);
  weft_dataset_free(lines);
}

TEST(CApi, AModelThatIsNotThereIsNamed) {
  weft_model* model = nullptr;
  const auto [code, message] = Taken(weft_model_load("/nowhere/model", nullptr, &model));
  EXPECT_EQ(code, WEFT_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("/nowhere/model"));
  EXPECT_EQ(weft_model_signature(nullptr, 0), nullptr);
  weft_server* server = nullptr;
  EXPECT_NE(Taken(weft_server_start(nullptr, "/nowhere", 0, 0, &server)).first, 0);
  weft_server_free(nullptr, 0);
}

}  // namespace
}  // namespace weft
