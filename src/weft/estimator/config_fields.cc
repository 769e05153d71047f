// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/config_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::estimator {
namespace {

StatusOr<Sizes> ReadSizes(const Json& json) {
  if (json.is_number()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t one, json.AsInt());
    return Sizes(one);
  }
  if (!json.is_array()) {
    return InvalidArgument("expected a number or a list of numbers, found ", json.Describe());
  }
  std::vector<int64_t> values;
  for (const Json& item : json.items()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t value, item.AsInt());
    values.push_back(value);
  }
  return Sizes(std::move(values));
}

// "relu" as it is; {"class_name": "function", "config": "relu"} is what some versions write.
StatusOr<std::string> ReadActivation(const Json& json) {
  if (json.is_object()) {
    if (const Json* config = json.Find("config"); config != nullptr && config->is_string()) {
      return config->AsString();
    }
  }
  return json.AsString();
}

}  // namespace

StatusOr<std::vector<int64_t>> Sizes::ForAxes(int rank, const char* what, int64_t least) const {
  std::vector<int64_t> all = values_;
  if (all.size() == 1) all.resize(rank, values_[0]);
  if (static_cast<int>(all.size()) != rank) {
    return InvalidArgument(what, " has ", all.size(), " sizes, expected 1 or ", rank);
  }
  for (const int64_t size : all) {
    if (size < least) return InvalidArgument(what, " is ", size, ", expected at least ", least);
  }
  return all;
}

// One for all axes stays a number, which Keras takes for any rank.
void ConfigWriter::Field(const char* name, Sizes& value) {
  if (value.values().size() == 1) {
    config_.Set(name, value.values()[0]);
    return;
  }
  Json list = Json::MakeArray();
  for (const int64_t size : value.values()) list.Append(size);
  config_.Set(name, std::move(list));
}

void ConfigWriter::Field(const char* name, Initializer& value) {
  config_.Set(name, value.ToJson());
}
void ConfigWriter::Field(const char* name, Regularizer& value) {
  config_.Set(name, value.ToJson());
}
void ConfigWriter::Field(const char* name, Constraint& value) { config_.Set(name, value.ToJson()); }

void ConfigWriter::Activation(const char* name, ActivationName& value) {
  config_.Set(name, value.empty() ? "linear" : value);
}

void ConfigWriter::OptionalSize(const char* name, int64_t& value) {
  config_.Set(name, value < 0 ? Json() : Json(value));
}

const Json* ConfigReader::Find(const char* name) const {
  if (!status_.ok()) return nullptr;
  const Json* found = config_.Find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

template <typename T>
void ConfigReader::Keep(const char* name, StatusOr<T> read, T* value) {
  if (!read.ok()) {
    status_ = Annotate(read.status(), absl::StrCat("'", name, "'"));
  } else {
    *value = *std::move(read);
  }
}

void ConfigReader::Field(const char* name, bool& value) {
  if (const Json* json = Find(name)) Keep(name, json->AsBool(), &value);
}
void ConfigReader::Field(const char* name, int64_t& value) {
  if (const Json* json = Find(name)) Keep(name, json->AsInt(), &value);
}
void ConfigReader::Field(const char* name, double& value) {
  if (const Json* json = Find(name)) Keep(name, json->AsDouble(), &value);
}
void ConfigReader::Field(const char* name, std::string& value) {
  if (const Json* json = Find(name)) Keep(name, json->AsString(), &value);
}
void ConfigReader::Field(const char* name, Sizes& value) {
  if (const Json* json = Find(name)) Keep(name, ReadSizes(*json), &value);
}
void ConfigReader::Field(const char* name, Initializer& value) {
  if (const Json* json = Find(name)) Keep(name, Initializer::FromJson(*json), &value);
}
void ConfigReader::Field(const char* name, Regularizer& value) {
  if (const Json* json = Find(name)) Keep(name, Regularizer::FromJson(*json), &value);
}
void ConfigReader::Field(const char* name, Constraint& value) {
  if (const Json* json = Find(name)) Keep(name, Constraint::FromJson(*json), &value);
}
void ConfigReader::Activation(const char* name, ActivationName& value) {
  if (const Json* json = Find(name)) Keep(name, ReadActivation(*json), &value);
}
void ConfigReader::Raw(const char* name, Json& value) {
  if (const Json* json = Find(name)) value = *json;
}

void ConfigReader::Fixed(const char* name, const Json& value) {
  const Json* json = Find(name);
  if (json == nullptr || *json == value) return;
  status_ = Unimplemented("'", name, "' is ", json->Dump(), "; only ", value.Dump(), " is there");
}

}  // namespace weft::estimator
