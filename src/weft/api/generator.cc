// SPDX-License-Identifier: Apache-2.0
#include "weft/api/generator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "weft/api/signature_text.h"

namespace weft::api {
namespace {

std::string Identifier(const std::string& name) {
  static const auto* const taken = new absl::flat_hash_set<std::string>{
      "default",  "switch", "case", "union",     "template", "operator", "class",  "struct",
      "bool",     "float",  "int",  "double",    "delete",   "new",      "and",    "or",
      "not",      "xor",    "this", "namespace", "builder",  "options",  "export", "signed",
      "unsigned", "short",  "long", "register",  "explicit"};
  return taken->contains(name) ? name + "_" : name;
}

std::string CppType(const std::string& kind) {
  static const auto* const types = new std::map<std::string, std::string>{
      {"string", "std::string"}, {"int", "int64_t"},     {"float", "float"},
      {"bool", "bool"},          {"type", "DType"},      {"shape", "PartialShape"},
      {"tensor", "Tensor"},      {"func", "FunctionRef"}};
  if (kind.rfind("list(", 0) == 0) {
    return absl::StrCat("std::vector<", CppType(kind.substr(5, kind.size() - 6)), ">");
  }
  return types->at(kind);
}

std::string DTypeLiteral(DType dtype) {
  std::string out = "DType::k";
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(DTypeName(dtype), '_'))) {
    std::string capital = word;
    capital[0] = static_cast<char>(std::toupper(capital[0]));
    out += capital;
  }
  return out;
}

std::string FloatLiteral(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-HUGE_VALF" : "HUGE_VALF";
  const std::string text = absl::StrCat(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0f" : text + "f";
}

std::string Literal(const AttrSchema& attr) {
  const AttrValue& value = *attr.default_value;
  if (const auto* s = value.As<std::string>()) return absl::StrCat("\"", absl::CEscape(*s), "\"");
  if (const auto* i = value.As<int64_t>()) {
    return *i == INT64_MIN ? "INT64_MIN" : absl::StrCat(*i);
  }
  if (const auto* b = value.As<bool>()) return *b ? "true" : "false";
  if (const auto* d = value.As<DType>()) return DTypeLiteral(*d);
  if (const auto* f = value.As<float>()) return FloatLiteral(*f);
  if (const auto* shape = value.As<PartialShape>()) {
    return shape->known_rank()
               ? absl::StrCat("PartialShape{", absl::StrJoin(shape->dims(), ", "), "}")
               : "PartialShape()";
  }
  std::vector<std::string> items;
  if (const auto* list = value.As<AttrValue::IntList>()) {
    for (int64_t i : *list) items.push_back(absl::StrCat(i));
  } else if (const auto* floats = value.As<AttrValue::FloatList>()) {
    for (float f : *floats) items.push_back(FloatLiteral(f));
  } else if (const auto* types = value.As<AttrValue::TypeList>()) {
    for (DType d : *types) items.push_back(DTypeLiteral(d));
  } else if (const auto* texts = value.As<AttrValue::StringList>()) {
    for (const std::string& t : *texts) items.push_back(absl::StrCat("\"", absl::CEscape(t), "\""));
  }
  return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
}

bool IsList(const ArgSchema& arg) {
  return !arg.number_attr.empty() || !arg.type_list_attr.empty();
}

// An op's attributes by how the caller gives them.
struct Shape {
  std::vector<const AttrSchema*> required;
  std::vector<const AttrSchema*> optional;
};

Shape Classify(const OpSchema& op) {
  std::set<std::string> inferred;
  for (const ArgSchema& input : op.inputs) {
    inferred.insert(input.type_attr);
    inferred.insert(input.number_attr);
    inferred.insert(input.type_list_attr);
  }
  Shape shape;
  for (const AttrSchema& attr : op.attrs) {
    if (inferred.contains(attr.name)) continue;
    (attr.default_value ? shape.optional : shape.required).push_back(&attr);
  }
  return shape;
}

std::string ResultType(const OpSchema& op) {
  if (op.outputs.empty()) return "Node*";
  if (op.outputs.size() > 1) return op.name + "Outputs";
  return IsList(op.outputs[0]) ? "std::vector<Endpoint>" : "Endpoint";
}

std::string Parameters(const OpSchema& op, const Shape& shape, bool with_defaults) {
  std::vector<std::string> parameters = {"GraphBuilder& builder"};
  for (const ArgSchema& input : op.inputs) {
    parameters.push_back(absl::StrCat(IsList(input) ? "const std::vector<Endpoint>& " : "Endpoint ",
                                      Identifier(input.name)));
  }
  for (const AttrSchema* attr : shape.required) {
    parameters.push_back(absl::StrCat("const ", CppType(attr->kind), "& ", Identifier(attr->name)));
  }
  parameters.push_back(
      absl::StrCat("const ", op.name, "Options& options", with_defaults ? " = {}" : ""));
  return absl::StrJoin(parameters, ", ");
}

void AppendDeclaration(const OpDefinition& definition, std::string* out) {
  const OpSchema& op = definition.schema;
  const Shape shape = Classify(op);
  absl::StrAppend(out, "struct ", op.name, "Options {\n");
  for (const AttrSchema* attr : shape.optional) {
    absl::StrAppend(out, "  ", CppType(attr->kind), " ", Identifier(attr->name), " = ",
                    Literal(*attr), ";\n");
  }
  absl::StrAppend(out, "  std::string name = {};  // of the node; the op's name if empty\n};\n");
  if (op.outputs.size() > 1) {
    absl::StrAppend(out, "struct ", op.name, "Outputs {\n");
    for (const ArgSchema& output : op.outputs) {
      absl::StrAppend(out, "  ", IsList(output) ? "std::vector<Endpoint> " : "Endpoint ",
                      Identifier(output.name), ";\n");
    }
    absl::StrAppend(out, "};\n");
  }
  absl::StrAppend(out, "// ", absl::StrReplaceAll(definition.documentation, {{"\n", "\n// "}}),
                  "\n", ResultType(op), " ", op.name, "(", Parameters(op, shape, true), ");\n\n");
}

// How the ports of `node` become the result.
std::string ResultExpression(const OpSchema& op) {
  if (op.outputs.empty()) return "node";
  std::vector<std::string> parts;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    parts.push_back(IsList(op.outputs[i]) ? absl::StrCat("OutputPorts(node, ", i, ")")
                                          : absl::StrCat("OutputPort(node, ", i, ")"));
  }
  if (parts.size() == 1) return parts[0];
  return absl::StrCat(op.name, "Outputs{", absl::StrJoin(parts, ", "), "}");
}

// `prefix` stands before each definition: "inline " in a header.
void AppendDefinition(const OpDefinition& definition, const char* prefix, std::string* out) {
  const OpSchema& op = definition.schema;
  const Shape shape = Classify(op);
  absl::StrAppend(out, prefix, ResultType(op), " ", op.name, "(", Parameters(op, shape, false),
                  ") {\n");
  absl::StrAppend(out, "  AttrMap attrs;\n");
  for (const AttrSchema* attr : shape.required) {
    absl::StrAppend(out, "  attrs.emplace(\"", attr->name, "\", ", Identifier(attr->name), ");\n");
  }
  for (const AttrSchema* attr : shape.optional) {
    absl::StrAppend(out, "  attrs.emplace(\"", attr->name, "\", options.", Identifier(attr->name),
                    ");\n");
  }
  std::vector<std::string> inputs;
  for (const ArgSchema& input : op.inputs)
    inputs.push_back("Argument(" + Identifier(input.name) + ")");
  absl::StrAppend(out, "  Node* node = builder.AddNode(\"", op.name, "\", {",
                  absl::StrJoin(inputs, ", "), "}, std::move(attrs), options.name);\n");
  absl::StrAppend(out, "  return ", ResultExpression(op), ";\n}\n\n");
}

// "CPU, every type of the signature", "ASIC: T in double, float"
std::string KernelTextOf(const std::vector<KernelDef>& kernels, const std::string& device_type) {
  std::map<std::string, std::set<std::string>> types;
  bool any = false;
  for (const KernelDef& kernel : kernels) {
    if (kernel.device_type != device_type) continue;
    if (kernel.types.empty()) any = true;
    for (const auto& [attr, list] : kernel.types) {
      for (DType dtype : list) types[attr].insert(std::string(DTypeName(dtype)));
    }
  }
  if (any) return absl::StrCat(device_type, ", every type of the signature");
  std::vector<std::string> parts;
  for (const auto& [attr, names] : types) {
    parts.push_back(absl::StrCat(attr, " in ", absl::StrJoin(names, ", ")));
  }
  return absl::StrCat(device_type, ": ", absl::StrJoin(parts, "; "));
}

// The types of devices that have a kernel of their own for the op.
std::set<std::string> DeviceTypesOf(const std::vector<KernelDef>& kernels) {
  std::set<std::string> types;
  for (const KernelDef& kernel : kernels) types.insert(kernel.device_type);
  return types;
}

bool RunsAnywhere(const std::vector<KernelDef>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const KernelDef& kernel) { return kernel.any_device; });
}

std::string KernelText(const Catalogue& catalogue, const std::string& op) {
  const std::vector<KernelDef>* kernels = catalogue.kernels().KernelsOf(op);
  if (kernels == nullptr) return "run by the compiler";
  std::vector<std::string> parts;
  for (const std::string& type : DeviceTypesOf(*kernels))
    parts.push_back(KernelTextOf(*kernels, type));
  if (RunsAnywhere(*kernels)) parts.emplace_back("on every device, where it passes tensors on");
  return absl::StrJoin(parts, "; ");
}

// How many ops each type of device runs with kernels of its own, and how many otherwise.
void AppendDeviceCounts(const Catalogue& catalogue, std::string* out) {
  std::map<std::string, int> own;
  int anywhere = 0;
  int planned = 0;
  int with_kernels = 0;
  for (const OpDefinition* op : catalogue.ops().All()) {
    const std::vector<KernelDef>* kernels = catalogue.kernels().KernelsOf(op->schema.name);
    planned += kernels == nullptr ? 1 : 0;
    if (kernels == nullptr) continue;
    if (RunsAnywhere(*kernels)) {
      ++anywhere;
      continue;
    }
    ++with_kernels;
    for (const std::string& type : DeviceTypesOf(*kernels)) ++own[type];
  }
  absl::StrAppend(out, "\n", planned, " of them are run by the compiler and ", anywhere,
                  " only pass tensors on: these run on every device. Of the other ", with_kernels,
                  ":\n\n| device | kernels of its own | falls back to the CPU |\n|---|---|---|\n");
  for (const auto& [type, count] : own) {
    absl::StrAppend(out, "| ", type, " | ", count, " | ", with_kernels - count, " |\n");
  }
}

// "`op::Mean(builder, input, reduction_indices)`; options `keep_dims`"
std::string CallText(const OpSchema& op) {
  const Shape shape = Classify(op);
  std::vector<std::string> arguments = {"builder"};
  for (const ArgSchema& input : op.inputs) arguments.push_back(Identifier(input.name));
  for (const AttrSchema* attr : shape.required) arguments.push_back(Identifier(attr->name));
  std::vector<std::string> options;
  for (const AttrSchema* attr : shape.optional)
    options.push_back(absl::StrCat("`", Identifier(attr->name), "`"));
  return absl::StrCat("`op::", op.name, "(", absl::StrJoin(arguments, ", "), ")`",
                      options.empty() ? "" : "; options ", absl::StrJoin(options, ", "));
}

// A line of links for each first letter.
void AppendIndex(const std::vector<const OpDefinition*>& ops, std::string* out) {
  char letter = 0;
  for (const OpDefinition* op : ops) {
    const char first = op->schema.name.front();
    absl::StrAppend(out,
                    first == letter ? ", "
                    : letter == 0   ? "\n"
                                    : "\n\n",
                    "[", op->schema.name, "](#", absl::AsciiStrToLower(op->schema.name), ")");
    if (first != letter) letter = first;
  }
  absl::StrAppend(out, "\n");
}

}  // namespace

Constructors GenerateConstructors(const Catalogue& catalogue) {
  Constructors out;
  out.header =
      "// Generated from the catalogue of ops.\n#pragma once\n\n#include <cmath>\n#include "
      "<cstdint>\n#include <string>\n"
      "#include <vector>\n\n#include \"weft/graph/builder.h\"\n\nnamespace weft::op {\n\n";
  out.source =
      "// Generated from the catalogue of ops.\n#include \"weft/api/ops.h\"\n\n#include "
      "<utility>\n\n#include \"weft/graph/output_ports.h\"\n\n"
      "namespace weft::op {\n\n";
  for (const OpDefinition* op : catalogue.ops().All()) {
    if (op->schema.name.front() == '_') continue;
    AppendDeclaration(*op, &out.header);
    AppendDefinition(*op, "", &out.source);
  }
  out.header += "}  // namespace weft::op\n";
  out.source += "}  // namespace weft::op\n";
  return out;
}

std::string GenerateHeader(const Catalogue& catalogue, const std::vector<std::string>& ops,
                           const std::string& library) {
  std::string out = absl::StrCat(
      "// Generated by weft op-library from ", library,
      ".\n#pragma once\n\n#include <cmath>\n#include <cstdint>\n#include <string>\n#include "
      "<utility>\n#include "
      "<vector>\n\n#include \"weft/graph/builder.h\"\n#include \"weft/graph/output_ports.h\"\n\n"
      "namespace weft::op {\n\n");
  for (const std::string& name : ops) {
    const OpDefinition* op = catalogue.ops().Find(name);
    if (op == nullptr) continue;
    AppendDeclaration(*op, &out);
    AppendDefinition(*op, "inline ", &out);
  }
  return out + "}  // namespace weft::op\n";
}

std::string GenerateReference(const Catalogue& catalogue) {
  const std::vector<const OpDefinition*> ops = catalogue.ops().All();
  std::string out =
      absl::StrCat("# Ops\n\nThe ", ops.size(), " ops of this build, from the catalogue.\n");
  AppendDeviceCounts(catalogue, &out);
  AppendIndex(ops, &out);
  for (const OpDefinition* op : ops) {
    const auto join = [](const std::vector<ArgSchema>& args) {
      return args.empty() ? std::string("none")
                          : absl::StrJoin(args, ", ", [](std::string* text, const ArgSchema& a) {
                              absl::StrAppend(text, "`", ArgText(a), "`");
                            });
    };
    absl::StrAppend(&out, "\n## ", op->schema.name, "\n\n", op->documentation,
                    "\n\n- inputs: ", join(op->schema.inputs),
                    "\n- outputs: ", join(op->schema.outputs), "\n");
    for (const AttrSchema& attr : op->schema.attrs)
      absl::StrAppend(&out, "- attribute `", AttrText(attr), "`\n");
    if (op->schema.name.front() != '_')
      absl::StrAppend(&out, "- C++: ", CallText(op->schema), "\n");
    absl::StrAppend(&out, "- kernels: ", KernelText(catalogue, op->schema.name), "\n- gradient: ",
                    op->gradient          ? "yes"
                    : op->has_no_gradient ? "none, stops here"
                                          : "not defined",
                    "\n");
    if (op->schema.deprecated_since > 0) {
      absl::StrAppend(&out, "- deprecated since graph version ", op->schema.deprecated_since, ": ",
                      op->schema.deprecation, "\n");
    }
  }
  return out;
}

}  // namespace weft::api
