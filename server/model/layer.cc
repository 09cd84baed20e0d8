#include "server/model/layer.h"

#include "server/model/block.h"
#include "server/model/embedding.h"
#include "server/model/head.h"

namespace penstock::server::model {

std::unique_ptr<Layer> MakeEmbedding(const ModelConfig& config,
                                     const BatchShape& shape) {
  return std::make_unique<Embedding>(config, shape);
}

std::unique_ptr<Layer> MakeBlock(const ModelConfig& config, int64_t block,
                                 const BatchShape& shape,
                                 const RopeTables* tables) {
  return std::make_unique<Block>(
      config, block, shape, config.family == Family::kLlama ? tables : nullptr);
}

std::unique_ptr<Layer> MakeHead(const ModelConfig& config,
                                const BatchShape& shape) {
  return std::make_unique<Head>(config, shape);
}

int32_t BlockDropoutSite(int64_t block, DropoutSite site) {
  constexpr int64_t kSitesOfBlock = 3;
  return static_cast<int32_t>(kEmbeddingDropoutSite + 1 +
                              block * kSitesOfBlock + static_cast<int>(site));
}

}  // namespace penstock::server::model
