// SPDX-License-Identifier: Apache-2.0
// One call of an op, apart from any graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/attr_value.h"
#include "weft/graph/op_registry.h"
#include "weft/graph/op_schema.h"

namespace weft {

// What is called, with which attributes and types, under which name and on which device. All that a
// kernel, its registry and placement know of a node; a node of a graph owns one and adds the edges,
// an eager call makes one by itself. A value: copies are independent.
class OpCall {
 public:
  OpCall() = default;  // calls nothing; only good to be assigned to
  // Fills attribute defaults, checks attributes and finds the types of inputs and outputs. Errors
  // name the attribute; the caller adds the call's name. `definition` must outlive the call.
  static StatusOr<OpCall> Make(const OpDefinition* definition, std::string name, AttrMap attrs,
                               std::string requested_device = "");

  const std::string& name() const { return name_; }
  const std::string& op() const { return definition_->schema.name; }
  const OpDefinition& definition() const { return *definition_; }
  const OpSchema& schema() const { return definition_->schema; }
  const AttrMap& attrs() const { return attrs_; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return FindAttr<T>(attrs_, name);
  }
  void SetAttr(const std::string& name, AttrValue value) { attrs_[name] = std::move(value); }
  void RemoveAttr(const std::string& name) { attrs_.erase(name); }

  // As the client asked, maybe empty or partial; and as placed, a full device name.
  const std::string& requested_device() const { return requested_device_; }
  void set_requested_device(std::string device) { requested_device_ = std::move(device); }
  const std::string& assigned_device() const { return assigned_device_; }
  void set_assigned_device(std::string device) { assigned_device_ = std::move(device); }

  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  const ArgType& input_type(int i) const { return input_types_[i]; }
  const ArgType& output_type(int i) const { return output_types_[i]; }
  absl::Span<const ArgType> input_types() const { return input_types_; }
  absl::Span<const ArgType> output_types() const { return output_types_; }

 private:
  std::string name_;
  const OpDefinition* definition_ = nullptr;
  AttrMap attrs_;
  std::string requested_device_;
  std::string assigned_device_;
  std::vector<ArgType> input_types_;
  std::vector<ArgType> output_types_;
};

}  // namespace weft
