// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/share.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::replicate {
namespace {

// Nothing is in it yet, whatever will be.
bool IsEmptyList(const Share& share) { return share.is_list && share.is_equal() && share.zero; }

PartialShape JoinShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return {};
  PartialShape joined = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) joined.SetDim(d, -1);
  }
  return joined;
}

// Sizes that are told element by element; none where one of them is told in two ways.
std::optional<Elements> JoinElements(const Share& a, const Share& b) {
  if (!a.elements || !b.elements || a.elements->size() != b.elements->size()) return std::nullopt;
  Elements joined = *a.elements;
  for (size_t i = 0; i < joined.size(); ++i) {
    const Element& other = (*b.elements)[i];
    if (joined[i].power != other.power) return std::nullopt;
    if (joined[i].value != other.value) joined[i].value = Element::kUnknown;
  }
  return joined;
}

// Of the tensors of a list as of any other.
std::optional<int> PowerOfItems(Share share) {
  share.is_list = false;
  return share.UniformPower();
}

// What is said of a scale that is not 0.
std::string Scaled(const Share& share) {
  if (share.scale == 0 || share.zero) return "";
  return absl::StrCat(" times the workers' number to the power of ", share.scale);
}

}  // namespace

Share Share::OnWorkers() const {
  Share out = *this;
  if (out.is_whole()) out.kind = Kind::kEqual;
  out.cut = out.late = false;
  return out;
}

std::optional<Share> Join(const Share& first, const Share& second) {
  const Share a = first.OnWorkers(), b = second.OnWorkers();
  if (a.is_list != b.is_list) return std::nullopt;
  if (IsEmptyList(a)) return b;
  if (IsEmptyList(b)) return a;
  Share out = a;
  out.zero = a.zero && b.zero;
  out.elements = JoinElements(a, b);
  if (a.shape && b.shape) {
    out.shape = JoinShapes(*a.shape, *b.shape);
  } else {
    out.shape.reset();
  }
  if (a.is_part() && b.is_equal() && b.zero) return out;
  if (b.is_part() && a.is_equal() && a.zero) {
    out.kind = Share::Kind::kPart;
    out.scale = b.scale;
    return out;
  }
  if (a.kind != b.kind || a.dim != b.dim) return std::nullopt;
  if (a.is_equal() && (!a.is_list || a.elements || b.elements)) {
    if (out.elements) return out;
    const std::optional<int> power = PowerOfItems(a);
    if (!power || power != PowerOfItems(b)) return std::nullopt;
    out.scale = *power;
    return out;
  }
  if (a.scale != b.scale && !a.zero && !b.zero) return std::nullopt;
  out.scale = a.zero ? b.scale : a.scale;
  return out;
}

std::optional<int> Share::UniformPower() const {
  if (is_whole()) return 0;
  if (!is_equal() || is_list) return std::nullopt;
  if (!elements) return scale;
  int power = 0;
  for (size_t i = 0; i < elements->size(); ++i) {
    if (i == 0) power = (*elements)[i].power;
    if ((*elements)[i].power != power) return std::nullopt;
  }
  return power;
}

std::string Share::ToString() const {
  if (is_list) {
    if (IsEmptyList(*this)) return "an empty list";
    Share item = *this;
    item.is_list = false;
    return absl::StrCat("a list of ", item.ToString());
  }
  switch (kind) {
    case Kind::kWhole:
      return late ? "a value of the whole batch" : "a value that does not depend on the batch";
    case Kind::kEqual: {
      if (!elements) return "the same everywhere";
      std::vector<std::string> sizes;
      for (const Element& element : *elements) {
        if (element.power != 0) {
          sizes.push_back(element.power == -1 ? "of the batch" : "of its parts");
        } else {
          sizes.push_back(element.value == Element::kUnknown ? "?" : absl::StrCat(element.value));
        }
      }
      return absl::StrCat("sizes (", absl::StrJoin(sizes, ", "), ")");
    }
    case Kind::kSlice:
      return absl::StrCat("rows of dimension ", dim, Scaled(*this));
    case Kind::kPart:
      return absl::StrCat("a part of a sum", Scaled(*this));
  }
  return "";
}

}  // namespace weft::replicate
