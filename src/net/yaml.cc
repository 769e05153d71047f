// SPDX-License-Identifier: Apache-2.0
#include "net/yaml.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "net/utf8.h"
#include "net/yaml_scalar.h"

namespace weft {
namespace {

constexpr absl::string_view kTagPrefix = "tag:yaml.org,2002:";

TextPosition PositionOf(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

Status ErrorAt(const std::string& file, TextPosition position, absl::string_view what) {
  return InvalidArgument(file, ":", position.line, ":", position.column, ": ", what);
}

size_t Weight(const Json& json) {
  size_t weight = 1;
  for (const Json& item : json.items()) weight += Weight(item);
  for (const JsonMember& member : json.members())
    weight += member.name.size() + Weight(member.value);
  if (json.is_string()) weight += json.AsString().value_or("").size();
  return weight;
}

// Builds one document from the parser's events. The parser cannot be told to stop without an
// exception, so after an error it goes on and nothing is kept.
class DocumentBuilder : public YAML::EventHandler {
 public:
  DocumentBuilder(const std::string& file, const YamlLimits& limits)
      : file_(file), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Place(mark, anchor, Json(), /*is_plain=*/true);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!error_.ok()) return;
    if (IsName()) {
      // Names are text, whatever they look like.
      return Place(mark, anchor, Json(value), /*is_plain=*/tag == "?");
    }
    absl::string_view kind = tag;
    if (tag == "?" || tag.empty()) return Place(mark, anchor, ResolveYamlScalar(value), true);
    if (tag == "!") return Place(mark, anchor, Json(value), false);
    if (absl::ConsumePrefix(&kind, kTagPrefix)) {
      if (kind == "str") return Place(mark, anchor, Json(value), false);
      if (kind == "int" || kind == "float" || kind == "bool" || kind == "null") {
        return Place(mark, anchor, ResolveYamlScalar(value), false);
      }
    }
    Fail(PositionOf(mark), absl::StrCat("the tag '", tag, "' is not supported"));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!error_.ok()) return;
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      return Fail(PositionOf(mark), "this alias stands inside the value that it names");
    }
    expanded_ += Weight(found->second);
    if (expanded_ > limits_.max_alias_expansion) {
      return Fail(PositionOf(mark), absl::StrCat("aliases expand to more than ",
                                                 limits_.max_alias_expansion, " nodes and bytes"));
    }
    Place(mark, YAML::NullAnchor, found->second, /*is_plain=*/false);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor, /*is_map=*/false);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor, /*is_map=*/true);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

  const YAML::Mark& start() const { return start_; }

  StatusOr<Json> Finish() {
    if (!error_.ok()) return error_;
    return std::move(root_);
  }

 private:
  struct Frame {
    bool is_map;
    TextPosition position;
    YAML::anchor_t anchor;
    Json::Array items;
    Json::Object members;
    std::set<std::string> names;
    bool has_name = false;  // a member's name was read, its value comes next
    bool is_merge = false;  // that name is a plain <<
    std::string name;
    std::vector<Json> merges;
  };

  bool IsName() const {
    return !frames_.empty() && frames_.back().is_map && !frames_.back().has_name;
  }

  void Fail(TextPosition position, absl::string_view what) {
    if (error_.ok()) error_ = ErrorAt(file_, position, what);
    frames_.clear();
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    if (!error_.ok()) return;
    if (IsName()) return Fail(PositionOf(mark), "a name must be one word, not a list or mapping");
    if (frames_.size() >= static_cast<size_t>(limits_.max_depth)) {
      return Fail(PositionOf(mark), absl::StrCat("nested deeper than ", limits_.max_depth));
    }
    frames_.push_back(Frame{is_map, PositionOf(mark), anchor, {}, {}, {}, false, false, "", {}});
  }

  void Close() {
    if (!error_.ok() || frames_.empty()) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.is_map) Merge(&frame);
    Json value = frame.is_map ? Json(std::move(frame.members)) : Json(std::move(frame.items));
    Attach(std::move(value), frame.position, frame.anchor);
  }

  // Members that a map names itself win; of several merged maps the first one does.
  void Merge(Frame* frame) {
    for (const Json& merge : frame->merges) {
      for (const JsonMember& member : merge.members()) {
        if (frame->names.insert(member.name).second) frame->members.push_back(member);
      }
    }
  }

  void Place(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, bool is_plain) {
    if (!error_.ok()) return;
    if (!IsName()) return Attach(std::move(value), PositionOf(mark), anchor);
    const StatusOr<std::string> name = value.is_null() ? std::string("null") : value.AsString();
    if (!name.ok()) return Fail(PositionOf(mark), "a name must be one word, not a list or mapping");
    Frame& frame = frames_.back();
    frame.has_name = true;
    frame.is_merge = is_plain && *name == "<<";
    frame.name = *name;
    if (!frame.is_merge && !frame.names.insert(*name).second) {
      Fail(PositionOf(mark), absl::StrCat("'", *name, "' stands twice in one mapping"));
    }
  }

  void Attach(Json value, TextPosition position, YAML::anchor_t anchor) {
    value.set_position(position);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = value;
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (!frame.is_map) {
      frame.items.push_back(std::move(value));
    } else if (frame.is_merge) {
      frame.has_name = false;
      AddMerge(&frame, std::move(value), position);
    } else {
      frame.has_name = false;
      frame.members.push_back({std::move(frame.name), std::move(value)});
    }
  }

  void AddMerge(Frame* frame, Json value, TextPosition position) {
    const Json::Array maps = value.is_array() ? value.items() : Json::Array{value};
    for (const Json& map : maps) {
      if (!map.is_object()) {
        return Fail(position, absl::StrCat("'<<' merges mappings, found ", map.Describe()));
      }
      frame->merges.push_back(map);
    }
  }

  const std::string& file_;
  const YamlLimits& limits_;
  YAML::Mark start_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<YAML::anchor_t, Json> anchors_;
  size_t expanded_ = 0;
  Json root_;
  Status error_;
};

size_t Indent(absl::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// "apiVersion: v1kind: Pod" has lost the end of a line before one of the names that objects begin
// with.
std::string LostLineHint(absl::string_view line) {
  for (const absl::string_view name : {"kind: ", "metadata:", "spec:", "apiVersion: "}) {
    const size_t at = line.find(name, 1);
    const size_t colon = line.find(": ");
    if (at == absl::string_view::npos || colon == absl::string_view::npos || colon > at) continue;
    return absl::StrCat("; write '", absl::StripAsciiWhitespace(line.substr(0, at)), "' and '",
                        line.substr(at), "' on lines of their own");
  }
  return "";
}

// Editors show a tab as spaces, which YAML does not take it for.
std::string TabHint(absl::string_view line, int line_number) {
  const size_t end = std::min(line.find_first_not_of(" \t"), line.size());
  if (line.substr(0, end).find('\t') == absl::string_view::npos) return "";
  return absl::StrCat("; line ", line_number,
                      " is indented with a tab: only spaces indent in YAML");
}

// What the writer probably meant: something indented under "name: value" is nearly always a list
// item that lost its dash.
std::string HintAt(absl::string_view text, int line_number) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const size_t index = static_cast<size_t>(line_number - 1);
  if (index < lines.size()) {
    if (std::string hint = TabHint(lines[index], line_number); !hint.empty()) return hint;
    if (std::string hint = LostLineHint(lines[index]); !hint.empty()) return hint;
  }
  if (line_number < 2 || index >= lines.size()) return "";
  absl::string_view line = lines[index];
  const absl::string_view above = lines[index - 1];
  const size_t colon = above.find(": ");
  if (Indent(line) <= Indent(above) || colon == absl::string_view::npos) return "";
  const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, line.find(':')));
  const absl::string_view value = absl::StripAsciiWhitespace(above);
  const size_t parent = index >= 2 ? lines[index - 2].rfind(':') : absl::string_view::npos;
  const std::string list =
      parent == absl::string_view::npos
          ? ""
          : absl::StrCat(" of '", absl::StripAsciiWhitespace(lines[index - 2].substr(0, parent)),
                         "'");
  return absl::StrCat("; '", value, "' in the line above has its value already, so '", name,
                      "' cannot stand under it. If it is an item", list, ", write '- ", value,
                      "' and '", name, "' two columns to the right of that dash");
}

}  // namespace

StatusOr<std::vector<Json>> ParseYaml(absl::string_view text, const std::string& file,
                                      const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return InvalidArgument(file, ": the text is too long: ", text.size(), " bytes, at most ",
                           limits.max_bytes, " are read");
  }
  if (const size_t bad = FindBadUtf8(text); bad != absl::string_view::npos) {
    return InvalidArgument(file, ":", 1 + std::count(text.begin(), text.begin() + bad, '\n'),
                           ": malformed YAML: byte ", bad, " of the text is not UTF-8");
  }
  std::vector<Json> documents;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    int last_start = -1;
    while (true) {
      DocumentBuilder builder(file, limits);
      if (!parser.HandleNextDocument(builder)) break;
      // A stray bracket or comma makes empty documents for ever, all at its place.
      if (builder.start().pos == last_start) {
        return ErrorAt(file, PositionOf(builder.start()),
                       "malformed YAML: did not expect this here");
      }
      last_start = builder.start().pos;
      WEFT_ASSIGN_OR_RETURN(Json document, builder.Finish());
      if (!document.is_null()) documents.push_back(std::move(document));
    }
  } catch (const YAML::DeepRecursion& e) {
    return ErrorAt(file, PositionOf(e.mark), absl::StrCat("nested deeper than ", limits.max_depth));
  } catch (const YAML::Exception& e) {
    const TextPosition position = PositionOf(e.mark);
    return ErrorAt(file, position,
                   absl::StrCat("malformed YAML: ", e.msg, HintAt(text, position.line)));
  } catch (const std::exception& e) {
    return InvalidArgument(file, ": malformed YAML: ", e.what());
  }
  return documents;
}

StatusOr<std::vector<Json>> ParseYamlOrJson(absl::string_view text, const std::string& file) {
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::StartsWith(start, "{") && !absl::StartsWith(start, "[")) return ParseYaml(text, file);
  StatusOr<Json> json = Json::Parse(text);
  // A flow mapping of YAML begins like JSON and is read too; the error of JSON is the better one if
  // neither is.
  if (!json.ok()) {
    StatusOr<std::vector<Json>> documents = ParseYaml(text, file);
    if (documents.ok()) return documents;
    return Annotate(json.status(), file);
  }
  return std::vector<Json>{*std::move(json)};
}

}  // namespace weft
