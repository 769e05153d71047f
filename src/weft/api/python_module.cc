// SPDX-License-Identifier: Apache-2.0
#include "weft/api/python_module.h"

#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "weft/api/signature_text.h"

namespace weft::api {
namespace {

constexpr char kHead[] = R"(
import ctypes
import os

import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry


def _register(name, inputs, outputs, attrs, stateful):
    """Tells TensorFlow of an op. False if it knows it already."""
    if op_def_registry.get(name) is not None:
        return False
    library = ctypes.CDLL(os.path.join(tf.sysconfig.get_lib(), 'libtensorflow_framework.so.2'))
    library.TF_NewOpDefinitionBuilder.restype = library.TF_NewStatus.restype = ctypes.c_void_p
    library.TF_Message.restype = ctypes.c_char_p
    builder = ctypes.c_void_p(library.TF_NewOpDefinitionBuilder(name.encode()))
    for add, texts in ((library.TF_OpDefinitionBuilderAddAttr, attrs),
                       (library.TF_OpDefinitionBuilderAddInput, inputs),
                       (library.TF_OpDefinitionBuilderAddOutput, outputs)):
        for text in texts:
            add(builder, text.encode())
    library.TF_OpDefinitionBuilderSetIsStateful(builder, ctypes.c_bool(stateful))
    # The server knows the shapes; here they are unknown until somebody says set_shape.
    library.TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, library.TF_ShapeInferenceContextSetUnknownShape)
    status = ctypes.c_void_p(library.TF_NewStatus())
    library.TF_RegisterOpDefinition(builder, status)
    code, message = library.TF_GetCode(status), library.TF_Message(status).decode()
    library.TF_DeleteStatus(status)
    if code != 0:
        raise ValueError('TensorFlow does not take op %s: %s' % (name, message))
    return True


def _apply(op, name, **arguments):
    return op_def_library.apply_op(op, name=name, **arguments)  # an attribute that is None has its default
)";

std::string Quoted(const std::string& text) { return absl::StrCat("'", absl::CEscape(text), "'"); }

// "TopK" -> "top_k", as TensorFlow names its own.
std::string SnakeCase(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = absl::ascii_isupper(static_cast<unsigned char>(name[i]));
    const bool after_lower = i > 0 && !absl::ascii_isupper(static_cast<unsigned char>(name[i - 1]));
    const bool before_lower =
        i + 1 < name.size() && absl::ascii_islower(static_cast<unsigned char>(name[i + 1]));
    if (upper && i > 0 && (after_lower || before_lower)) out += '_';
    out += absl::ascii_tolower(static_cast<unsigned char>(name[i]));
  }
  return out;
}

std::string Identifier(const std::string& name) {
  static const auto* const taken = new absl::flat_hash_set<std::string>{
      "False", "None",   "True", "and",   "as",     "assert",  "break", "class",    "continue",
      "def",   "del",    "elif", "else",  "except", "finally", "for",   "from",     "global",
      "if",    "import", "in",   "is",    "lambda", "not",     "or",    "nonlocal", "pass",
      "raise", "return", "try",  "while", "with",   "yield",   "async", "await",    "name"};
  return taken->contains(name) ? name + "_" : name;
}

template <typename T, typename Text>
std::string TupleOf(const std::vector<T>& items, Text text) {
  std::string out = "(";
  for (const T& item : items) absl::StrAppend(&out, Quoted(text(item)), ", ");
  if (!items.empty()) out.pop_back();
  return out + ")";
}

void AppendOp(const OpDefinition& definition, std::string* out) {
  const OpSchema& op = definition.schema;
  absl::StrAppend(
      out, "\n\nif _register(", Quoted(op.name), ",\n             ", TupleOf(op.inputs, ArgText),
      ",\n             ", TupleOf(op.outputs, ArgText), ",\n             ",
      TupleOf(op.attrs, AttrText), ", ", op.is_stateful ? "True" : "False", "):\n    ",
      definition.has_no_gradient ? absl::StrCat("tf.no_gradient(", Quoted(op.name), ")") : "pass",
      "\n");
  std::set<std::string> inferred;
  std::vector<std::string> parameters, passed;
  const auto add = [&](const std::string& name, const char* fallback) {
    parameters.push_back(absl::StrCat(Identifier(name), fallback));
    passed.push_back(absl::StrCat(name, "=", Identifier(name)));
  };
  for (const ArgSchema& input : op.inputs) {
    for (const std::string* attr : {&input.type_attr, &input.number_attr, &input.type_list_attr}) {
      inferred.insert(*attr);
    }
    add(input.name, "");
  }
  for (const bool required : {true, false}) {
    for (const AttrSchema& attr : op.attrs) {
      if (inferred.contains(attr.name) || required == attr.default_value.has_value()) continue;
      add(attr.name, required ? "" : "=None");
    }
  }
  parameters.emplace_back("name=None");
  absl::StrAppend(
      out, "\n\ndef ", Identifier(SnakeCase(op.name)), "(", absl::StrJoin(parameters, ", "),
      "):\n    r\"\"\"",
      absl::StrReplaceAll(definition.documentation, {{"\n", "\n    "}, {"\"\"\"", "'''"}}),
      "\"\"\"\n    return _apply(", Quoted(op.name), ", name", passed.empty() ? "" : ", ",
      absl::StrJoin(passed, ", "), ")\n");
}

}  // namespace

std::string GeneratePythonModule(const Catalogue& catalogue, const std::vector<std::string>& ops,
                                 const std::string& library) {
  std::string out =
      absl::StrCat("# Generated by weft op-library from ", library, ".\n",
                   "\"\"\"Ops that weft servers have with --op_library: for graphs of "
                   "TensorFlow's client, which has no kernels of them.\"\"\"",
                   kHead);
  for (const std::string& name : ops) {
    if (const OpDefinition* op = catalogue.ops().Find(name)) AppendOp(*op, &out);
  }
  return out;
}

}  // namespace weft::api
