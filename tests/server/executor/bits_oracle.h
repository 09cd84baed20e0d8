// What a job's bits are: one thread drives the model's chunks, micro-batch
// after micro-batch, without executors, transport or schedule.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_BITS_ORACLE_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_BITS_ORACLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/device/device.h"
#include "server/model/model_config.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::testing {

// 20 steps of 8 made-up sequences of 8 tokens.
struct BitsJob {
  static constexpr int kSteps = 20;
  static constexpr int64_t kGlobal = 8;
  static constexpr int64_t kSequence = 8;
  static constexpr double kLearningRate = 1e-2;
};

struct Bits {
  std::string sha256;  // Of the final weights.
  std::vector<double> loss;
  std::vector<double> grad_norm;
};

Bits BitsOracle(server::device::Device& device,
                const server::model::ModelConfig& model, int64_t micro_batch);

// Trains the job on a pipeline and expects the oracle's bits. Fills in the
// job's part of `options`: micro-batch and learning rate.
void ExpectBits(Pipeline::Options options, const Bits& expected);

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_BITS_ORACLE_H_
