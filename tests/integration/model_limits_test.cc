// What the job file's rules accept, the stage daemons can hold: the rooms do
// not see each other's limits.
#include "coordinator/spec/limits.h"
#include "gtest/gtest.h"
#include "server/model/model_config.h"

namespace penstock {
namespace {

TEST(ModelLimitsTest, AJobFileHasAsManyLayersAsDropoutSitesCanNumber) {
  EXPECT_EQ(coordinator::spec::kMaxLayers, server::model::kMaxLayers);
}

}  // namespace
}  // namespace penstock
