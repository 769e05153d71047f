// SPDX-License-Identifier: Apache-2.0
// Rows of tables that lie in several parts, perhaps on several parameter servers.
#pragma once

#include <string>
#include <vector>

#include "weft/train/program.h"

namespace weft::train {

// Which part holds a row: with kMod row i is row i / parts of part i % parts, so that ids which
// come often together are spread; with kDiv parts hold neighbouring rows, as AddPartitionedVariable
// makes them.
enum class PartitionStrategy { kMod, kDiv };

// One variable a part, named <name>/part_0, ...: the rows of a [rows, width] table by kMod. Each is
// placed by itself. Checkpoints keep each part as a variable of its own.
std::vector<Variable> AddEmbedding(Program& program, const std::string& name, int64_t rows,
                                   int64_t width, int num_parts, const Initializer& initial);

// Rows `ids` (int32 or int64, of any shape) of the table: ids' shape + the row's. Gradients are row
// gradients, one for each part. kDiv needs parts of AddPartitionedVariable.
Endpoint EmbeddingLookup(GraphBuilder& builder, const std::vector<Variable>& parts, Endpoint ids,
                         PartitionStrategy strategy);

// How the rows of one example become one.
enum class Combiner { kSum, kMean, kSqrtN };

// One row for each example: those of its `ids` (a vector, grouped by example) combined. `segments`
// (int32, the same size, never decreasing) says which example an id is of; an example without ids
// before the last gets zeros.
Endpoint EmbeddingLookupCombined(GraphBuilder& builder, const std::vector<Variable>& parts,
                                 Endpoint ids, Endpoint segments, Combiner combiner,
                                 PartitionStrategy strategy = PartitionStrategy::kMod);

}  // namespace weft::train
