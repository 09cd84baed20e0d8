// A linear map as a piece of other layers' code: the weight group `weight` of
// the layer's parameters, and the bias group `bias` where there is one.
#ifndef PENSTOCK_SERVER_MODEL_PROJECTION_H_
#define PENSTOCK_SERVER_MODEL_PROJECTION_H_

#include "server/device/ops.h"
#include "server/device/tensor.h"
#include "server/model/layer.h"

namespace penstock::server::model {

inline constexpr int kNoBias = -1;

// Immutable. x is (rows, in), y (rows, out); dy and dx as they.
class Projection {
 public:
  Projection(int weight, int bias) : weight_(weight), bias_(bias) {}

  // The number of the layer's first parameter group after this one's.
  int end() const { return (bias_ == kNoBias ? weight_ : bias_) + 1; }

  void Forward(const LayerContext& context, const device::Tensor& x,
               const device::Tensor& y) const {
    context.ops.LinearForward(
        context.stream,
        {.x = x,
         .weight = context.parameters.Weight(weight_),
         .bias = bias_ == kNoBias ? device::Tensor()
                                  : context.parameters.Value(bias_),
         .y = y});
  }

  void BackwardInput(const LayerContext& context, const device::Tensor& dy,
                     const device::Tensor& dx) const {
    context.ops.LinearBackwardInput(
        context.stream,
        {.dy = dy, .weight = context.parameters.Weight(weight_), .dx = dx});
  }

  void BackwardWeight(const LayerContext& context, const device::Tensor& x,
                      const device::Tensor& dy) const {
    const device::Accumulate accumulate =
        context.parameters.Contribute(weight_);
    device::Tensor dbias;
    if (bias_ != kNoBias) {
      context.parameters.Contribute(bias_);
      dbias = context.parameters.Gradient(bias_);
    }
    context.ops.LinearBackwardWeight(
        context.stream, {.x = x,
                         .dy = dy,
                         .layout = context.parameters.Weight(weight_).layout,
                         .dw = context.parameters.Gradient(weight_),
                         .dbias = dbias,
                         .accumulate = accumulate});
  }

 private:
  const int weight_;
  const int bias_;
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_PROJECTION_H_
