// SPDX-License-Identifier: MIT
// Launches for linear.cpp.
#include "sdepth/kernels/cuda/linear.cuh"

#include "device_call.cuh"
#include "operations.hpp"

namespace sdepth_test::on_device {

namespace cuda = sdepth::on_cuda;

namespace {

sdepth::LinearArgs<stored> linear_args(device_call& to, const sdepth::LinearArgs<exact>& a) {
    sdepth::LinearArgs<stored> d{.rows = to.rows(a.rows), .inputs = a.inputs, .outputs = a.outputs};
    to.in(d.x, a.x, a.rows.capacity() * a.inputs);
    to.in(d.weight, a.weight, static_cast<long long>(a.outputs) * a.inputs);
    to.in(d.bias, a.bias, a.outputs);
    to.inout(d.y, a.y, a.rows.capacity() * a.outputs);
    return d;
}

}  // namespace

void linear(const sdepth::LinearArgs<exact>& a, bool workspace) {
    device_call to;
    cuda::products multiply(workspace ? to.scratch(cuda::products::workspace_bytes) : nullptr);
    cuda::linear(linear_args(to, a), multiply, nullptr);
    cuda::check(cudaDeviceSynchronize(), "test");  // before the handle goes
}
void linear_backward(const sdepth::LinearBackwardArgs<exact>& g, bool workspace) {
    device_call to;
    const auto& a = g.forward;
    sdepth::LinearBackwardArgs<stored> d{.forward = linear_args(to, a),
                                         .adds_to_grad_x = g.adds_to_grad_x,
                                         .adds_to_grad_weight = g.adds_to_grad_weight};
    to.in(d.grad_y, g.grad_y, a.rows.capacity() * a.outputs);
    to.inout(d.grad_x, g.grad_x, a.rows.capacity() * a.inputs);
    to.inout(d.grad_weight, g.grad_weight, static_cast<long long>(a.outputs) * a.inputs);
    to.inout(d.grad_bias, g.grad_bias, a.outputs);
    cuda::products multiply(workspace ? to.scratch(cuda::products::workspace_bytes) : nullptr);
    cuda::linear_backward_clear(d, nullptr);
    cuda::linear_backward_weight(d, multiply, nullptr);
    cuda::linear_backward_rows(d, multiply, to.scratch(cuda::linear_backward_scratch(a.outputs)), nullptr);
    cuda::check(cudaDeviceSynchronize(), "test");  // before the handle goes
}

}  // namespace sdepth_test::on_device
