// The parameters of a model, as the planner counts them: how many elements and
// in which groups, from shapes alone. Names and meaning are the stages' affair;
// tests/integration/memory_prediction_test.cc holds both against each other.
#ifndef PENSTOCK_COORDINATOR_PLANNER_PARAMETER_SIZES_H_
#define PENSTOCK_COORDINATOR_PLANNER_PARAMETER_SIZES_H_

#include <cstdint>
#include <vector>

#include "coordinator/planner/model_shape.h"

namespace penstock::coordinator::planner {

// Tensors that a layer uses as one and that lie together: llama's q, k, v.
struct ParameterGroup {
  int tensors = 1;       // Canonical parameters in it.
  int64_t elements = 0;  // Of all of them.
  int64_t largest = 0;   // Of the largest.
  // A matrix of products (in, out); 0: a vector or a table.
  int64_t in = 0;
  int64_t out = 0;
  // As it is stored: out, or in where rows are outputs (llama, the head).
  int64_t columns = 0;
};

std::vector<ParameterGroup> EmbeddingGroups(const ModelShape& model);
std::vector<ParameterGroup> BlockGroups(const ModelShape& model);
// The projection is last; where it is tied its tensor is the embedding's.
std::vector<ParameterGroup> HeadGroups(const ModelShape& model);

// Canonical parameters of the model, the tied head counted once.
int64_t CountParameters(const ModelShape& model);
int64_t CountElements(const ModelShape& model);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_PARAMETER_SIZES_H_
