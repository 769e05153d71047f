// SPDX-License-Identifier: Apache-2.0
// Mutations of numbers, texts, tensors and attributes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "mutator.h"
#include "weft/tensor/dtype.h"

namespace weft::mutations {
namespace {

constexpr int64_t kSmall[] = {0, 1,  -1, 2,  -2, 3,  -3, 4,  5,  6,  7,  8,
                              9, 10, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100};
constexpr int64_t kLarge[] = {127,
                              128,
                              255,
                              256,
                              257,
                              1000,
                              4096,
                              32767,
                              32768,
                              65535,
                              65536,
                              1 << 20,
                              1 << 26,
                              INT32_MAX,
                              int64_t{1} << 31,
                              INT32_MIN,
                              int64_t{1} << 32,
                              int64_t{1} << 40,
                              int64_t{1} << 53,
                              int64_t{1} << 62,
                              INT64_MAX,
                              INT64_MIN,
                              INT64_MIN + 1};
constexpr double kReals[] = {0.0,   -0.0,  1,      -1,    0.5,      2,         1e-3,
                             -3.25, 1e4,   1e9,    -1e9,  3e9,      1e19,      1e30,
                             -1e30, 1e300, 1e-300, 1e-40, INFINITY, -INFINITY, NAN};
const char* const kTexts[] = {
    "",    "SAME",      "VALID", "EXPLICIT",  "NHWC", "NCHW",   "NCHW_VECT_C", "a",
    "0",   "-1",        "1,2;3", "ij,jk->ik", "...",  "%s%n",   "(",           "[a",
    "*",   "**",        "\\",    "/",         "..",   "/job:x", "REFLECT",     "MIN",
    "sum", "UTF-16-BE", "1e999", "\xff\xfe",  "same"};
constexpr int kMostElements = 1 << 14;

bool IsReal(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf ||
         dtype == DType::kBfloat16 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// One element at `at`, as far as there is room.
void StoreReal(DType dtype, double value, char* at, size_t size) {
  const auto single = static_cast<float>(value);
  if (size >= 8 && dtype != DType::kComplex64) {
    std::memcpy(at, &value, 8);
    if (size == 16) std::memcpy(at + 8, &value, 8);
  } else if (size >= 4) {
    std::memcpy(at, &single, 4);
    if (size == 8) std::memcpy(at + 4, &single, 4);
  } else {
    const auto high = static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16);
    std::memcpy(at, &high, 2);  // right for bfloat16, anything for half
  }
}

void StoreNumber(DType dtype, Dice* dice, char* at, size_t size) {
  if (IsReal(dtype) && !dice->OneIn(8)) return StoreReal(dtype, dice->Real(), at, size);
  const int64_t number = dice->OneIn(8) ? static_cast<int64_t>(dice->Bits()) : dice->Number();
  std::memcpy(at, &number, std::min<size_t>(size, 8));
}

void ChangeElements(tensorflow::TensorProto* tensor, Dice* dice) {
  const auto dtype = static_cast<DType>(tensor->dtype());
  if (dtype == DType::kString && tensor->string_val_size() > 0) {
    for (uint64_t i = 0; i <= dice->Below(3); ++i) {
      std::string& text =
          *tensor->mutable_string_val(static_cast<int>(dice->Below(tensor->string_val_size())));
      text = dice->Text(text);
    }
    return;
  }
  std::string* const bytes = tensor->mutable_tensor_content();
  const size_t size = dtype == DType::kInvalid || dtype == DType::kString ? 0 : DTypeSize(dtype);
  if (size == 0 || bytes->size() < size) return;
  const size_t count = bytes->size() / size;
  if (dice->OneIn(4)) {  // all of them alike
    StoreNumber(dtype, dice, bytes->data(), size);
    for (size_t i = 1; i < count; ++i) std::memcpy(&(*bytes)[i * size], bytes->data(), size);
    return;
  }
  const uint64_t changes = 1 + dice->Below(dice->OneIn(4) ? count : 2);
  for (uint64_t i = 0; i < changes; ++i)
    StoreNumber(dtype, dice, &(*bytes)[dice->Below(count) * size], size);
}

void ChangeShape(tensorflow::TensorShapeProto* shape, Dice* dice) {
  if (dice->OneIn(40)) shape->set_unknown_rank(!shape->unknown_rank());
  const int rank = shape->dim_size();
  switch (dice->Below(6)) {
    case 0:
      shape->add_dim()->set_size(static_cast<int64_t>(dice->Below(4)));
      return;
    case 1:
      if (rank > 0) shape->mutable_dim()->RemoveLast();
      return;
    case 2:
      if (rank > 1) shape->mutable_dim()->SwapElements(0, static_cast<int>(dice->Below(rank)));
      return;
    case 3:
      if (dice->OneIn(4)) shape->clear_dim();
      if (dice->OneIn(8)) {
        while (shape->dim_size() < static_cast<int>(dice->Below(12))) shape->add_dim()->set_size(1);
      }
      return;
    case 4:
      if (rank > 0)
        shape->mutable_dim(static_cast<int>(dice->Below(rank)))->set_size(dice->Number());
      return;
    default:
      if (rank > 0) {
        auto* dim = shape->mutable_dim(static_cast<int>(dice->Below(rank)));
        dim->set_size(std::max<int64_t>(0, dim->size() + static_cast<int64_t>(dice->Below(5)) - 2));
      }
  }
}

// As many elements as the shape says, where that is not too many: those there are, again and again.
void FillUp(tensorflow::TensorProto* tensor) {
  int64_t count = 1;
  for (const auto& dim : tensor->tensor_shape().dim()) {
    if (dim.size() < 0 || __builtin_mul_overflow(count, dim.size(), &count) ||
        count > kMostElements)
      return;
  }
  if (tensor->dtype() == static_cast<int>(DType::kString)) {
    const int had = tensor->string_val_size();
    while (tensor->string_val_size() > count) tensor->mutable_string_val()->RemoveLast();
    for (int i = had; i < count; ++i)
      tensor->add_string_val(had > 0 ? tensor->string_val(i % had) : "x");
    return;
  }
  if (tensor->dtype() <= 0 || tensor->dtype() >= kNumDTypes ||
      !IsPlain(static_cast<DType>(tensor->dtype())))
    return;
  std::string* const bytes = tensor->mutable_tensor_content();
  const size_t had = bytes->size();
  bytes->resize(static_cast<size_t>(count) * DTypeSize(static_cast<DType>(tensor->dtype())));
  for (size_t i = had; i < bytes->size() && had > 0; ++i) (*bytes)[i] = (*bytes)[i - had];
}

template <typename List, typename Make>
void ChangeList(List* list, Dice* dice, Make make) {
  if (dice->OneIn(4) || list->empty()) {
    list->Add(make());
  } else if (dice->OneIn(3)) {
    list->RemoveLast();
  } else {
    *list->Mutable(static_cast<int>(dice->Below(list->size()))) = make();
  }
}

void ChangeListAttr(tensorflow::AttrValue::ListValue* list, Dice* dice) {
  if (list->i_size() > 0) {
    // Fields of numbers are no lists of messages.
    const int at = static_cast<int>(dice->Below(list->i_size()));
    if (dice->OneIn(4)) return list->add_i(dice->Number());
    if (dice->OneIn(3)) return list->mutable_i()->RemoveLast();
    return list->set_i(at, dice->Number());
  }
  if (list->type_size() > 0) {
    const int at = static_cast<int>(dice->Below(list->type_size()));
    const auto dtype = static_cast<tensorflow::DataType>(1 + dice->Below(kNumDTypes - 1));
    if (dice->OneIn(4)) return list->add_type(dtype);
    if (dice->OneIn(3)) return list->mutable_type()->RemoveLast();
    return list->set_type(at, dtype);
  }
  if (list->f_size() > 0) {
    if (dice->OneIn(4)) return list->add_f(static_cast<float>(dice->Real()));
    if (dice->OneIn(3)) return list->mutable_f()->RemoveLast();
    return list->set_f(static_cast<int>(dice->Below(list->f_size())),
                       static_cast<float>(dice->Real()));
  }
  if (list->b_size() > 0)
    return dice->OneIn(2) ? list->add_b(true) : list->mutable_b()->RemoveLast();
  if (list->s_size() > 0)
    return ChangeList(list->mutable_s(), dice, [&] { return dice->Text("a"); });
  if (list->shape_size() > 0) {
    if (dice->OneIn(4)) return list->mutable_shape()->RemoveLast();
    if (dice->OneIn(4)) *list->add_shape() = list->shape(0);
    return ChangeShape(list->mutable_shape(static_cast<int>(dice->Below(list->shape_size()))),
                       dice);
  }
  if (dice->OneIn(2)) return list->add_i(dice->Number());
  list->add_type(static_cast<tensorflow::DataType>(1 + dice->Below(kNumDTypes - 1)));
}

}  // namespace

int64_t Dice::Number() {
  return OneIn(4) ? kLarge[Below(std::size(kLarge))] : kSmall[Below(std::size(kSmall))];
}

double Dice::Real() { return kReals[Below(std::size(kReals))]; }

std::string Dice::Text(const std::string& was) {
  if (OneIn(2)) return kTexts[Below(std::size(kTexts))];
  std::string text = was;
  Change(&text);
  if (OneIn(16)) text.append(1 + Below(3000), 'x');
  return text;
}

void Dice::Change(std::string* bytes) {
  const uint64_t changes = 1 + Below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    if (bytes->empty()) {
      bytes->push_back(static_cast<char>(Bits()));
      continue;
    }
    const size_t at = Below(bytes->size());
    switch (Below(5)) {
      case 0:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(8)));
        break;
      case 1:
        (*bytes)[at] = static_cast<char>(OneIn(2) ? 0xff : 0);
        break;
      case 2:
        bytes->erase(at, 1 + Below(4));
        break;
      case 3:
        bytes->insert(at, bytes->substr(Below(bytes->size()), Below(16)));
        break;
      default:
        (*bytes)[at] = static_cast<char>(Bits());
    }
  }
}

void ChangeTensor(tensorflow::TensorProto* tensor, Dice* dice) {
  const uint64_t kind = dice->Below(20);
  if (kind < 11) return ChangeElements(tensor, dice);
  if (kind < 17) {
    ChangeShape(tensor->mutable_tensor_shape(), dice);
    if (!dice->OneIn(12)) FillUp(tensor);
    return;
  }
  if (kind == 17) {
    tensor->set_dtype(static_cast<tensorflow::DataType>(dice->Below(kNumDTypes)));
    return FillUp(tensor);
  }
  if (kind == 18) {
    tensor->clear_tensor_content();
    return;
  }
  dice->Change(tensor->mutable_tensor_content());
}

void ChangeAttr(tensorflow::AttrValue* value, Dice* dice) {
  if (dice->OneIn(30)) {
    value->Clear();
    if (dice->OneIn(2)) value->set_i(dice->Number());
    if (dice->OneIn(2)) value->set_s(dice->Text(""));
    return;
  }
  switch (value->value_case()) {
    case tensorflow::AttrValue::kS:
      return value->set_s(dice->Text(value->s()));
    case tensorflow::AttrValue::kI:
      return value->set_i(dice->OneIn(3) ? value->i() + static_cast<int64_t>(dice->Below(5)) - 2
                                         : dice->Number());
    case tensorflow::AttrValue::kF:
      return value->set_f(static_cast<float>(dice->Real()));
    case tensorflow::AttrValue::kB:
      return value->set_b(!value->b());
    case tensorflow::AttrValue::kType:
      return value->set_type(static_cast<tensorflow::DataType>(dice->Below(kNumDTypes)));
    case tensorflow::AttrValue::kShape:
      return ChangeShape(value->mutable_shape(), dice);
    case tensorflow::AttrValue::kTensor:
      return ChangeTensor(value->mutable_tensor(), dice);
    case tensorflow::AttrValue::kList:
      return ChangeListAttr(value->mutable_list(), dice);
    default:
      value->set_i(dice->Number());
  }
}

}  // namespace weft::mutations
