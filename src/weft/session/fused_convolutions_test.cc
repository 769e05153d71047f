// SPDX-License-Identifier: Apache-2.0
// Convolutions that take what follows them into their write-out, beside the parts one after the
// other: the same bits, the same errors.
#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/session/compiled_graph_test.h"

namespace weft::session {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using FusedConvolutionsTest = CompiledGraphTest;

struct Form {
  int64_t size, channels, filter, outputs, stride;
  std::string padding = "SAME";
  int64_t dilation = 1;
  bool depthwise = false;
  int64_t batch = 2;
};

// Parts that may follow, in this order.
enum Part { kNorm = 1, kBias = 2, kSum = 4, kActivation = 8, kAll = 16 };

class Numbers {
 public:
  explicit Numbers(int seed) : random_(seed) {}
  Tensor operator()(const Shape& shape, float least) {
    Tensor values = *Tensor::Zeros(DType::kFloat, shape);
    for (float& v : values.mutable_span<float>())
      v = least + static_cast<float>(random_() % 2000) / 1000;
    return values;
  }

 private:
  std::mt19937 random_;
};

AttrValue::IntList ExplicitPaddings(const Form& f) {
  return f.padding == "EXPLICIT" ? AttrValue::IntList{0, 0, 1, 0, 2, 1, 0, 0}
                                 : AttrValue::IntList{};
}

// The convolution of x, and what follows of `parts`; the summand is `way`.
void Build(const Form& f, int parts, Numbers& numbers, GraphBuilder& b) {
  const Endpoint x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "x");
  const Endpoint way = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "way");
  const AttrValue::IntList strides = {1, f.stride, f.stride, 1};
  const AttrValue::IntList dilations = {1, f.dilation, f.dilation, 1};
  const Endpoint filter =
      b.Constant(numbers(Shape{f.filter, f.filter, f.channels, f.depthwise ? 1 : f.outputs}, -1));
  Endpoint y = b.Op(f.depthwise ? "DepthwiseConv2dNative" : "Conv2D", {x, filter},
                    {{"strides", strides},
                     {"padding", f.padding},
                     {"dilations", dilations},
                     {"explicit_paddings", ExplicitPaddings(f)}});
  const Shape row{f.outputs};
  if (parts & kNorm) {
    y = b.Op("FusedBatchNormV3",
             {y, b.Constant(numbers(row, -1)), b.Constant(numbers(row, -1)),
              b.Constant(numbers(row, -1)), b.Constant(numbers(row, 0.5f))},
             {{"is_training", false}, {"epsilon", 0.01f}});
  }
  if (parts & kBias) y = b.Op("BiasAdd", {y, b.Constant(numbers(row, -1))});
  if (parts & kSum) y = b.Op("AddV2", {way, y});
  if (parts & kActivation) y = b.Op("Relu6", {y});
  b.Op("Identity", {y}, {}, "out");
}

std::vector<std::string> Computed(const Outcome& outcome) {
  std::vector<std::string> ops = outcome.ops;
  std::erase(ops, "Const");
  return ops;
}

void ExpectEqualBits(const Tensor& one, const Tensor& other) {
  ASSERT_EQ(one.shape(), other.shape());
  EXPECT_EQ(std::memcmp(one.bytes(), other.bytes(), one.size_bytes()), 0);
}

void ExpectFused(const Form& f, int parts) {
  SCOPED_TRACE(testing::Message() << f.size << " of " << f.channels << " to " << f.outputs << ", "
                                  << f.padding << ", parts " << parts);
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  Numbers numbers(parts);
  Build(f, parts, numbers, b);
  ASSERT_TRUE(b.ok()) << b.status();
  const Tensor x = numbers(Shape{f.batch, f.size, f.size, f.channels}, -1);
  // What the convolution gives says how large a summand may be.
  const Outcome alone =
      RunGraph(graph, false, {{"x:0", x}, {"way:0", Tensor::Scalar(0.0f)}}, {"out:0", "way:0"});
  ASSERT_TRUE(alone.status.ok()) << alone.status;
  const Shape whole = alone.results[0].shape();
  for (const Shape& shape : {whole, Shape{f.outputs}, Shape{}, Shape{whole.dim(2), 1}}) {
    const std::vector<Feed> feeds = {{"x:0", x}, {"way:0", numbers(shape, -1)}};
    const Outcome plain = RunGraph(graph, false, feeds, {"out:0", "way:0"});
    const Outcome fused = RunGraph(graph, true, feeds, {"out:0", "way:0"});
    ASSERT_TRUE(plain.status.ok()) << plain.status;
    ASSERT_TRUE(fused.status.ok()) << fused.status;
    EXPECT_THAT(Computed(fused), ElementsAre("_FusedConv"));
    ExpectEqualBits(plain.results[0], fused.results[0]);
    if (!(parts & kSum)) break;
  }
}

TEST_F(FusedConvolutionsTest, TakeWhatFollowsAlong) {
  const Form forms[] = {
      {.size = 6, .channels = 3, .filter = 3, .outputs = 9, .stride = 1},
      {.size = 8, .channels = 16, .filter = 3, .outputs = 20, .stride = 1},
      {.size = 9, .channels = 20, .filter = 1, .outputs = 33, .stride = 1},
      {.size = 7, .channels = 20, .filter = 3, .outputs = 8, .stride = 2},
      {.size = 6, .channels = 19, .filter = 3, .outputs = 19, .stride = 1, .depthwise = true}};
  for (const Form& form : forms) {
    for (int parts = 1; parts < kAll; ++parts) ExpectFused(form, parts);
  }
}

TEST_F(FusedConvolutionsTest, OfEveryPaddingAndDilationAndOfNoImages) {
  for (const char* padding : {"SAME", "VALID", "EXPLICIT"}) {
    ExpectFused({9, 5, 3, 7, 1, padding, 2}, kAll - 1);
    ExpectFused({9, 5, 3, 7, 2, padding}, kAll - 1);
    ExpectFused({9, 17, 3, 18, 1, padding}, kAll - 1);
  }
  ExpectFused({9, 5, 3, 7, 1, "SAME", 1, false, 0}, kBias + kActivation);
  ExpectFused({9, 5, 3, 5, 1, "SAME", 1, true, 0}, kNorm + kActivation);
}

// Of two that are added up the later one takes the sum, and the first what it has before.
TEST_F(FusedConvolutionsTest, TheSumOfTwoIsOnesOwn) {
  const Endpoint x = Feed("x");
  const AttrValue::IntList ones = {1, 1, 1, 1};
  const auto conv = [&](Endpoint of, float by) {
    const Endpoint y = b_.Op("Conv2D", {of, Floats(Shape{1, 1, 1, 2}, {by, -2})},
                             {{"strides", ones}, {"padding", std::string("SAME")}});
    return b_.Op("BiasAdd", {y, Floats(Shape{2}, {1, by})});
  };
  b_.Op("Relu", {b_.Op("AddV2", {conv(x, 3), conv(x, 5)})}, {}, "out");
  const Tensor image = Tensor::FromSpan<float>(Shape{1, 1, 2, 1}, {1.f, 2.f});
  const Outcome run = Run({{"x:0", image}}, {"out:0"});
  EXPECT_THAT(Computed(run), ElementsAre("_FusedConv", "_FusedConv"));
}

TEST_F(FusedConvolutionsTest, LeaveWhatOthersReadOrTrain) {
  const Endpoint x = Feed("x");
  const Endpoint filter = Floats(Shape{1, 1, 1, 2}, {1, -2});
  const AttrValue::IntList ones = {1, 1, 1, 1};
  const auto conv = [&](Endpoint of, const char* name) {
    return b_.Op("Conv2D", {of, filter}, {{"strides", ones}, {"padding", std::string("SAME")}},
                 name);
  };
  b_.Op("BiasAdd", {conv(x, "read"), Floats(Shape{2}, {1, 2})}, {}, "biased");
  const Endpoint row = Floats(Shape{2}, {1, 2});
  const Endpoint trained = conv(b_.Op("Neg", {x}), "trained");
  b_.Op("FusedBatchNormV3", {trained, row, row, Floats(Shape{0}, {}), Floats(Shape{0}, {})},
        {{"is_training", true}}, "norm");
  // The second and third outputs are the statistics that are given.
  const Endpoint told =
      b_.Op("FusedBatchNormV3", {conv(b_.Op("Abs", {x}), "told"), row, row, row, row},
            {{"is_training", false}}, "telling");
  b_.Op("Identity", {Endpoint{told.node, 1}}, {}, "mean");
  const Tensor image = Tensor::FromSpan<float>(Shape{1, 1, 2, 1}, {1.f, 2.f});
  const Outcome run =
      Run({{"x:0", image}}, {"read:0", "biased:0", "norm:0", "telling:0", "mean:0"});
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.ops, Not(Contains("_FusedConv")));
}

TEST_F(FusedConvolutionsTest, OtherTypesStayAsTheyAre) {
  const AttrValue::IntList ones = {1, 1, 1, 1};
  const Endpoint x = Feed("x");
  std::vector<std::string> fetches;
  for (const DType type : {DType::kDouble, DType::kHalf}) {
    const auto cast = [&](Endpoint of) { return b_.Op("Cast", {of}, {{"DstT", type}}); };
    const Endpoint y = b_.Op("Conv2D", {cast(x), cast(Floats(Shape{1, 1, 1, 2}, {1, -2}))},
                             {{"strides", ones}, {"padding", std::string("SAME")}});
    const Endpoint biased = b_.Op("BiasAdd", {y, cast(Floats(Shape{2}, {1, 2}))});
    b_.Op("Relu", {biased}, {}, std::string(DTypeName(type)));
    fetches.push_back(std::string(DTypeName(type)) + ":0");
  }
  const Tensor image = Tensor::FromSpan<float>(Shape{1, 1, 2, 1}, {1.f, 2.f});
  const Outcome run = Run({{"x:0", image}}, fetches);
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.ops, Not(Contains("_FusedConv")));
}

TEST_F(FusedConvolutionsTest, ErrorsNameTheNodesOfTheUser) {
  const AttrValue::IntList ones = {1, 1, 1, 1};
  const Endpoint conv = b_.Op("Conv2D", {Feed("x"), Floats(Shape{1, 1, 1, 2}, {1, -2})},
                              {{"strides", ones}, {"padding", std::string("SAME")}}, "conv");
  const Endpoint scale = Feed("scale"), row = Floats(Shape{2}, {1, 2});
  const Endpoint norm =
      b_.Op("FusedBatchNormV3", {conv, scale, row, row, row}, {{"is_training", false}}, "norm");
  const Endpoint biased = b_.Op("BiasAdd", {norm, Feed("bias")}, {}, "biased");
  b_.Op("AddV2", {biased, Feed("way")}, {}, "sum");
  ASSERT_TRUE(b_.ok()) << b_.status();
  const Tensor image = Tensor::FromSpan<float>(Shape{1, 1, 2, 1}, {1.f, 2.f});
  const Tensor two = Tensor::Vector<float>({1, 2}), three = Tensor::Vector<float>({1, 2, 3});
  const std::vector<session::Feed> good = {
      {"x:0", image}, {"scale:0", two}, {"bias:0", two}, {"way:0", two}};
  EXPECT_THAT(Computed(Run(good, {"sum:0"})), ElementsAre("_FusedConv"));
  const std::pair<size_t, const char*> wrong[] = {
      {0, "{{node conv}}"}, {1, "{{node norm}}"}, {2, "{{node biased}}"}, {3, "{{node sum}}"}};
  for (const auto& [place, node] : wrong) {
    std::vector<session::Feed> feeds = good;
    feeds[place].second = three;
    const Status plain = RunGraph(graph_, false, feeds, {"sum:0"}).status;
    const Status fused = RunGraph(graph_, true, feeds, {"sum:0"}).status;
    EXPECT_THAT(std::string(fused.message()), HasSubstr(node));
    EXPECT_EQ(plain.code(), fused.code());
    // The first line says what is wrong.
    EXPECT_EQ(plain.message().substr(0, plain.message().find('\n')),
              fused.message().substr(0, fused.message().find('\n')));
  }
}

}  // namespace
}  // namespace weft::session
