// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/shape_proto.h"

namespace weft {
namespace {

using tensorflow::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorProto Proto(DType dtype, std::initializer_list<int64_t> dims) {
  TensorProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(dtype));
  for (int64_t size : dims) proto.mutable_tensor_shape()->add_dim()->set_size(size);
  return proto;
}

template <typename T>
std::vector<T> Values(const TensorProto& proto) {
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok() || tensor->dtype() != DTypeOf<T>) return {};
  return std::vector<T>(tensor->span<T>().begin(), tensor->span<T>().end());
}

std::string Error(const TensorProto& proto) {
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument) << tensor.status();
  return std::string(tensor.status().message());
}

TEST(TensorProtoTest, EveryPlainDTypeSurvivesTheRoundTrip) {
  int tried = 0;
  for (int number = 1; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!IsPlain(dtype)) continue;
    StatusOr<Tensor> tensor = Tensor::Allocate(dtype, {2, 3});
    ASSERT_TRUE(tensor.ok());
    for (size_t i = 0; i < tensor->size_bytes(); ++i) {
      tensor->bytes()[i] = static_cast<std::byte>(dtype == DType::kBool ? i & 1 : 17 * i + 1);
    }
    TensorProto proto;
    ASSERT_TRUE(TensorToProto(*tensor, &proto).ok());
    EXPECT_EQ(proto.tensor_content().size(), tensor->size_bytes());
    StatusOr<Tensor> back = TensorFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->dtype(), dtype);
    EXPECT_EQ(back->shape(), tensor->shape());
    EXPECT_EQ(std::memcmp(back->bytes(), tensor->bytes(), tensor->size_bytes()), 0);
    ++tried;
  }
  EXPECT_EQ(tried, 29);
}

TEST(TensorProtoTest, EmptyAndScalarTensors) {
  StatusOr<Tensor> empty = Tensor::Zeros(DType::kFloat, {0, 5});
  ASSERT_TRUE(empty.ok());
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(*empty, &proto).ok());
  StatusOr<Tensor> back = TensorFromProto(proto);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->shape(), Shape({0, 5}));

  ASSERT_TRUE(TensorToProto(Tensor::Scalar<double>(2.5), &proto).ok());
  EXPECT_THAT(Values<double>(proto), ElementsAre(2.5));
  EXPECT_FALSE(TensorToProto(Tensor(), &proto).ok());
}

TEST(TensorProtoTest, LastValueRepeatsAndNoValueIsZero) {
  TensorProto proto = Proto(DType::kFloat, {4});
  EXPECT_THAT(Values<float>(proto), ElementsAre(0, 0, 0, 0));
  proto.add_float_val(1);
  proto.add_float_val(2);
  EXPECT_THAT(Values<float>(proto), ElementsAre(1, 2, 2, 2));

  TensorProto strings = Proto(DType::kString, {3});
  EXPECT_THAT(Values<std::string>(strings), ElementsAre("", "", ""));
  strings.add_string_val("a");
  EXPECT_THAT(Values<std::string>(strings), ElementsAre("a", "a", "a"));
}

TEST(TensorProtoTest, ReadsEveryValueField) {
  TensorProto proto = Proto(DType::kHalf, {2});
  proto.add_half_val(0x3c00);
  EXPECT_THAT(Values<Half>(proto), ElementsAre(Half(1.0f), Half(1.0f)));
  proto = Proto(DType::kBfloat16, {1});
  proto.add_half_val(0xbf80);
  EXPECT_THAT(Values<Bfloat16>(proto), ElementsAre(Bfloat16(-1.0f)));
  proto = Proto(DType::kComplex64, {2});
  for (float value : {1.f, 2.f, 3.f, 4.f}) proto.add_scomplex_val(value);
  EXPECT_THAT(Values<Complex64>(proto), ElementsAre(Complex64(1, 2), Complex64(3, 4)));
  proto = Proto(DType::kComplex128, {});
  proto.add_dcomplex_val(5);
  proto.add_dcomplex_val(6);
  EXPECT_THAT(Values<Complex128>(proto), ElementsAre(Complex128(5, 6)));
  proto = Proto(DType::kUint32, {1});
  proto.add_uint32_val(0xffffffffu);
  EXPECT_THAT(Values<uint32_t>(proto), ElementsAre(0xffffffffu));
  proto = Proto(DType::kUint64, {1});
  proto.add_uint64_val(~uint64_t{0});
  EXPECT_THAT(Values<uint64_t>(proto), ElementsAre(~uint64_t{0}));
  proto = Proto(DType::kInt64, {1});
  proto.add_int64_val(INT64_MIN);
  EXPECT_THAT(Values<int64_t>(proto), ElementsAre(INT64_MIN));
  proto = Proto(DType::kBool, {2});
  proto.add_bool_val(true);
  EXPECT_THAT(Values<bool>(proto), ElementsAre(true, true));
  proto = Proto(DType::kQint16, {1});
  proto.add_int_val(-32768);
  EXPECT_THAT(Values<Qint16>(proto), ElementsAre(Qint16{-32768}));
  proto = Proto(DType::kInt4, {2});
  proto.add_int_val(-8);
  EXPECT_THAT(Values<Int4>(proto), ElementsAre(Int4{-8}, Int4{-8}));
  proto = Proto(DType::kFloat8E5m2, {3});
  proto.set_float8_val("\x3c\x40");
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->data<Float8E5m2>()[2].bits, 0x40);
}

TEST(TensorProtoTest, IntegersMustFit) {
  const std::pair<DType, int> bad[] = {
      {DType::kUint8, 256}, {DType::kUint8, -1}, {DType::kInt8, 128},  {DType::kUint16, 65536},
      {DType::kInt4, 8},    {DType::kUint2, 4},  {DType::kQuint8, -1}, {DType::kInt16, 40000}};
  for (const auto& [dtype, value] : bad) {
    TensorProto proto = Proto(dtype, {1});
    proto.add_int_val(value);
    EXPECT_THAT(Error(proto), HasSubstr("int_val holds a bad value at index 0"));
  }
  TensorProto half = Proto(DType::kHalf, {1});
  half.add_half_val(0x10000);
  EXPECT_THAT(Error(half), HasSubstr("half_val"));
}

TEST(TensorProtoTest, RejectsWhatDoesNotAddUp) {
  TensorProto proto = Proto(DType::kFloat, {2});
  proto.set_tensor_content("1234567");
  EXPECT_THAT(Error(proto), HasSubstr("7 bytes, expected 2 elements of 4"));
  proto = Proto(DType::kInt32, {2});
  for (int i = 0; i < 3; ++i) proto.add_int_val(i);
  EXPECT_THAT(Error(proto), HasSubstr("too many values: 3, expected at most 2"));
  proto = Proto(DType::kInt32, {0});
  proto.add_int_val(1);  // clients write one value for none
  EXPECT_EQ(TensorFromProto(proto)->num_elements(), 0);
  EXPECT_THAT(Error(Proto(DType::kFloat, {-1})), HasSubstr("negative"));
  EXPECT_THAT(Error(Proto(DType::kFloat, {INT64_MAX, 2})), HasSubstr("more than 2^63-1 elements"));
  EXPECT_THAT(Error(Proto(DType::kInvalid, {1})), HasSubstr("Unknown DataType number: 0"));
  EXPECT_THAT(Error(Proto(static_cast<DType>(77), {1})), HasSubstr("77"));
  proto = Proto(DType::kFloat, {});
  proto.set_dtype(tensorflow::DT_FLOAT_REF);
  EXPECT_THAT(Error(proto), HasSubstr("101"));
  proto = Proto(DType::kFloat, {});
  proto.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_THAT(Error(proto), HasSubstr("unknown rank"));
  proto = Proto(DType::kComplex64, {1});
  proto.add_scomplex_val(1);
  EXPECT_THAT(Error(proto), HasSubstr("half a complex number"));
}

TEST(TensorProtoTest, SmallMessagesCannotAskForHugeTensors) {
  for (DType dtype : {DType::kFloat, DType::kString, DType::kVariant, DType::kResource}) {
    EXPECT_THAT(Error(Proto(dtype, {int64_t{1} << 40})), HasSubstr("limit"));
    TensorProto content = Proto(dtype, {int64_t{1} << 61});
    content.set_tensor_content("x");
    EXPECT_THAT(Error(content), HasSubstr("tensor_content"));
  }
  TensorProto proto = Proto(DType::kFloat, {100});
  proto.add_float_val(1);
  EXPECT_TRUE(TensorFromProto(proto, {.broadcast_bytes = 400}).ok());
  EXPECT_FALSE(TensorFromProto(proto, {.broadcast_bytes = 399}).ok());
}

TEST(TensorProtoTest, NestedTensorsShareTheLimit) {
  TensorProto proto = Proto(DType::kVariant, {4});
  for (int i = 0; i < 4; ++i) {
    auto* variant = proto.add_variant_val();
    variant->set_type_name("list");
    *variant->add_tensors() = Proto(DType::kFloat, {100});
  }
  EXPECT_TRUE(TensorFromProto(proto, {.broadcast_bytes = 1600}).ok());
  EXPECT_FALSE(TensorFromProto(proto, {.broadcast_bytes = 1599}).ok());
}

TEST(TensorProtoTest, DeepNestingIsAnError) {
  TensorProto proto = Proto(DType::kFloat, {1});
  for (int i = 0; i < 40; ++i) {
    TensorProto outer = Proto(DType::kVariant, {1});
    auto* variant = outer.add_variant_val();
    variant->set_type_name("list");
    variant->add_tensors()->Swap(&proto);
    proto.Swap(&outer);
  }
  EXPECT_THAT(Error(proto), HasSubstr("too deeply"));
}

TEST(TensorProtoTest, StringsInEitherForm) {
  const std::string blob("\0\xff", 2);
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(Tensor::Vector<std::string>({"one", "", blob}), &proto).ok());
  EXPECT_EQ(proto.string_val_size(), 3);
  EXPECT_THAT(Values<std::string>(proto), ElementsAre("one", "", blob));

  proto = Proto(DType::kString, {3});
  proto.set_tensor_content(std::string("\x03\x00\x02one\0\xff", 8));
  EXPECT_THAT(Values<std::string>(proto), ElementsAre("one", "", blob));
  for (const absl::string_view bad :
       {absl::string_view("\x03\x00\x02one\0", 7), absl::string_view("\x03\x00", 2),
        absl::string_view("\xff\xff\xff\xff\x7f\x01\x01", 7)}) {
    proto.set_tensor_content(std::string(bad));
    EXPECT_THAT(Error(proto), HasSubstr("tensor_content"));
  }
}

TEST(TensorProtoTest, BoolBytesBecomeZeroOrOne) {
  TensorProto proto = Proto(DType::kBool, {3});
  proto.set_tensor_content(std::string("\x00\x01\xfe", 3));
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(static_cast<int>(tensor->bytes()[2]), 1);
}

TEST(TensorProtoTest, ResourceHandlesKeepTheirNames) {
  ResourceHandle handle;
  handle.device = "/job:ps/task:0";
  handle.container = "localhost";
  handle.name = "weights";
  handle.type_name = "Variable";
  handle.hash_code = 42;
  handle.dtypes_and_shapes.emplace_back(DType::kFloat, PartialShape({-1, 3}));
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(Tensor::Scalar(handle), &proto).ok());
  for (const bool as_content : {false, true}) {
    if (as_content) {
      const std::string bytes = proto.resource_handle_val(0).SerializeAsString();
      ASSERT_LT(bytes.size(), 128u);
      proto.set_tensor_content(std::string(1, static_cast<char>(bytes.size())) + bytes);
      proto.clear_resource_handle_val();
    }
    StatusOr<Tensor> tensor = TensorFromProto(proto);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    const auto& back = tensor->scalar<ResourceHandle>();
    EXPECT_EQ(back.device, handle.device);
    EXPECT_EQ(back.container, handle.container);
    EXPECT_EQ(back.name, handle.name);
    EXPECT_EQ(back.type_name, handle.type_name);
    EXPECT_EQ(back.hash_code, 42u);
    EXPECT_EQ(back.dtypes_and_shapes, handle.dtypes_and_shapes);
  }
  proto = Proto(DType::kResource, {1});
  proto.add_resource_handle_val()->add_dtypes_and_shapes()->set_dtype(
      static_cast<tensorflow::DataType>(99));
  EXPECT_THAT(Error(proto), HasSubstr("99"));
}

class Unsendable : public VariantValue {
 public:
  absl::string_view type_name() const override { return "unsendable"; }
};

TEST(TensorProtoTest, VariantsTravelWithTheirTensors) {
  const Variant list{MakeRef<EncodedVariant>(
      "tensorflow::TensorList", "meta", std::vector<Tensor>{Tensor::Scalar<float>(7), Tensor()})};
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(Tensor::Vector<Variant>({list, Variant()}), &proto).ok());
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_FALSE(tensor->data<Variant>()[1].value);
  const auto* back = dynamic_cast<EncodedVariant*>(tensor->data<Variant>()[0].value.get());
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->type_name(), "tensorflow::TensorList");
  EXPECT_EQ(back->metadata(), "meta");
  ASSERT_EQ(back->tensors().size(), 2u);
  EXPECT_EQ(back->tensors()[0].scalar<float>(), 7);
  EXPECT_FALSE(back->tensors()[1].IsInitialized());

  const Status status = TensorToProto(Tensor::Scalar(Variant{MakeRef<Unsendable>()}), &proto);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unsendable"));
}

TEST(ShapeProtoTest, ShapesRoundTripAndAreChecked) {
  tensorflow::TensorShapeProto proto;
  ShapeToProto(Shape({2, 0, 3}), &proto);
  StatusOr<Shape> shape = ShapeFromProto(proto);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(*shape, Shape({2, 0, 3}));
  for (const PartialShape& partial : {PartialShape(), PartialShape({-1, 4}), PartialShape({})}) {
    ShapeToProto(partial, &proto);
    StatusOr<PartialShape> back = PartialShapeFromProto(proto);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, partial);
  }
  ShapeToProto(PartialShape({-1}), &proto);
  EXPECT_FALSE(ShapeFromProto(proto).ok());
  proto.mutable_dim(0)->set_size(-2);
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
  proto.Clear();
  for (int i = 0; i < 255; ++i) proto.add_dim()->set_size(1);
  EXPECT_FALSE(ShapeFromProto(proto).ok());
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
  proto.Clear();
  proto.set_unknown_rank(true);
  proto.add_dim();
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
}

}  // namespace
}  // namespace weft
