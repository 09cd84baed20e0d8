// How a branch joins the residual stream: y = x + dropout(branch), a piece of
// other layers' code.
#ifndef PENSTOCK_SERVER_MODEL_RESIDUAL_H_
#define PENSTOCK_SERVER_MODEL_RESIDUAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/device/ops.h"
#include "server/device/tensor.h"
#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// The dropout of `site` in this mode. Rate 0 when evaluating.
device::Dropout DropoutOf(const LayerContext& context, double rate,
                          int32_t site, Mode mode);

// Immutable.
class Residual {
 public:
  struct Options {
    double rate = 0;
    int32_t site = 0;
    BatchShape shape;
    int64_t width = 0;
  };
  // With dropout, backward's result is added to `kept`; without, it is dy
  // itself and nothing is copied.
  Residual(const Options& options, Layout& kept);

  // Whether W of the branch reads dy itself.
  bool passes_gradient() const { return options_.rate == 0; }

  struct ForwardArgs {
    device::Tensor x;       // (rows, width)
    device::Tensor branch;  // (rows, width)
    device::Tensor y;       // (rows, width) (=); may be branch.
    Mode mode = Mode::kTrain;
  };
  void Forward(const LayerContext& context, const ForwardArgs& args) const;

  // Enqueues the gradient of the branch from dy, in I.
  void Backward(const LayerContext& context, const device::Tensor& dy,
                std::byte* kept) const;
  // Backward's result, for I and W.
  device::Tensor BranchGradient(const device::Tensor& dy,
                                std::byte* kept) const;

 private:
  device::Tensor Samples(const device::Tensor& rows) const;

  const Options options_;
  Field gradient_;  // In kept, with dropout only.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_RESIDUAL_H_
