// SPDX-License-Identifier: MIT
// Launches for norm.cpp, rotary.cpp and ffn.cpp.
#include "sdepth/kernels/cuda/norm.cuh"

#include "device_call.cuh"
#include "operations.hpp"
#include "sdepth/kernels/cuda/ffn.cuh"
#include "sdepth/kernels/cuda/rotary.cuh"

namespace sdepth_test::on_device {

namespace cuda = sdepth::on_cuda;

namespace {

sdepth::RmsNormArgs<stored> norm_args(device_call& to, const sdepth::RmsNormArgs<exact>& a) {
    sdepth::RmsNormArgs<stored> d{.rows = to.rows(a.rows), .width = a.width, .epsilon = a.epsilon};
    to.in(d.x, a.x, a.rows.capacity() * a.width);
    to.in(d.weight, a.weight, a.width);
    to.inout(d.y, a.y, a.rows.capacity() * a.width);
    to.inout(d.rstd, a.rstd, a.rows.capacity());
    return d;
}
sdepth::GatherArgs<stored> gather_args(device_call& to, const sdepth::GatherArgs<exact>& a) {
    sdepth::GatherArgs<stored> d{.rows = to.rows(a.rows), .sequence = a.sequence, .width = a.width};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.x, a.x, static_cast<long long>(a.rows.batch) * a.sequence * a.width);
    to.inout(d.out, a.out, a.rows.capacity() * a.width);
    return d;
}
sdepth::QkPrepareArgs<stored> qk_args(device_call& to, const sdepth::QkPrepareArgs<exact>& a) {
    const int width = a.heads * a.head_dim;
    sdepth::QkPrepareArgs<stored> d{.rows = to.rows(a.rows),
                                    .heads = a.heads,
                                    .head_dim = a.head_dim,
                                    .norm = a.norm,
                                    .epsilon = a.epsilon,
                                    .rotary = a.rotary,
                                    .base = a.base};
    to.in(d.x, a.x, a.rows.capacity() * width);
    to.in(d.weight, a.weight, a.norm == sdepth::qk_norm::full_width ? width : a.head_dim);
    to.in(d.positions, a.positions, a.rows.capacity());
    to.inout(d.y, a.y, a.rows.capacity() * width);
    to.inout(d.rstd, a.rstd, a.rows.capacity() * (a.norm == sdepth::qk_norm::full_width ? 1 : a.heads));
    return d;
}
sdepth::SwigluArgs<stored> swiglu_args(device_call& to, const sdepth::SwigluArgs<exact>& a) {
    const long long n = a.rows.capacity() * a.hidden;
    sdepth::SwigluArgs<stored> d{.rows = to.rows(a.rows), .hidden = a.hidden};
    to.in(d.gate, a.gate, n);
    to.in(d.up, a.up, n);
    to.inout(d.act, a.act, n);
    return d;
}
sdepth::ActivationArgs<stored> activation_args(device_call& to, const sdepth::ActivationArgs<exact>& a) {
    const long long n = a.rows.capacity() * a.hidden;
    sdepth::ActivationArgs<stored> d{.rows = to.rows(a.rows), .hidden = a.hidden, .kind = a.kind};
    to.in(d.x, a.x, n);
    to.inout(d.act, a.act, n);
    return d;
}
sdepth::AddArgs<stored> add_args(device_call& to, const sdepth::AddArgs<exact>& a) {
    const long long n = a.rows.capacity() * a.width;
    sdepth::AddArgs<stored> d{.rows = to.rows(a.rows), .width = a.width};
    to.in(d.x, a.x, n);
    to.in(d.a, a.a, n);
    to.inout(d.sum, a.sum, n);
    return d;
}

}  // namespace

void rms_norm(const sdepth::RmsNormArgs<exact>& a) {
    device_call to;
    cuda::rms_norm(norm_args(to, a), nullptr);
}
void rms_norm_backward(const sdepth::RmsNormBackwardArgs<exact>& g) {
    device_call to;
    const long long n = g.forward.rows.capacity() * g.forward.width;
    sdepth::RmsNormBackwardArgs<stored> d{.forward = norm_args(to, g.forward), .adds_to_grad_x = g.adds_to_grad_x};
    to.in(d.grad_y, g.grad_y, n);
    to.inout(d.grad_x, g.grad_x, n);
    to.inout(d.also, g.also, n);
    to.inout(d.grad_weight, g.grad_weight, g.forward.width);
    cuda::rms_norm_backward(d, to.scratch(cuda::rms_norm_backward_scratch(g.forward.width)), nullptr);
}
void gather(const sdepth::GatherArgs<exact>& a) {
    device_call to;
    cuda::gather(gather_args(to, a), nullptr);
}
void gather_rms_norm(const sdepth::GatherArgs<exact>& g, const sdepth::RmsNormArgs<exact>& a) {
    device_call to;
    const auto gathered = gather_args(to, g);
    auto norm = norm_args(to, a);
    norm.x = gathered.out;
    cuda::gather_rms_norm(gathered, norm, nullptr);
}
void scatter(const sdepth::ScatterArgs<exact>& a) {
    device_call to;
    sdepth::ScatterArgs<stored> d{.rows = to.rows(a.rows), .sequence = a.sequence, .width = a.width, .adds = a.adds};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.out, a.out, a.rows.capacity() * a.width);
    to.inout(d.x, a.x, static_cast<long long>(a.rows.batch) * a.sequence * a.width);
    cuda::scatter(d, nullptr);
}
void add(const sdepth::AddArgs<exact>& a) {
    device_call to;
    cuda::add(add_args(to, a), nullptr);
}
void add_rms_norm(const sdepth::AddArgs<exact>& s, const sdepth::RmsNormArgs<exact>& a) {
    device_call to;
    const auto sum = add_args(to, s);
    auto norm = norm_args(to, a);
    norm.x = sum.sum;
    cuda::add_rms_norm(sum, norm, nullptr);
}

void qk_prepare(const sdepth::QkPrepareArgs<exact>& a) {
    device_call to;
    cuda::qk_prepare(qk_args(to, a), nullptr);
}
void qk_prepare_backward(const sdepth::QkPrepareBackwardArgs<exact>& g) {
    device_call to;
    const auto& a = g.forward;
    const int width = a.heads * a.head_dim;
    sdepth::QkPrepareBackwardArgs<stored> d{.forward = qk_args(to, a)};
    to.inout(d.grad_x, g.grad_x, a.rows.capacity() * width);
    if (g.grad_y == g.grad_x)
        d.grad_y = d.grad_x;
    else
        to.in(d.grad_y, g.grad_y, a.rows.capacity() * width);
    to.inout(d.grad_weight, g.grad_weight, a.norm == sdepth::qk_norm::full_width ? width : a.head_dim);
    cuda::qk_prepare_backward(d, to.scratch(cuda::qk_prepare_backward_scratch(a.heads, a.head_dim)), nullptr);
}

void swiglu(const sdepth::SwigluArgs<exact>& a) {
    device_call to;
    cuda::swiglu(swiglu_args(to, a), nullptr);
}
void swiglu_backward(const sdepth::SwigluBackwardArgs<exact>& g) {
    device_call to;
    const long long n = g.forward.rows.capacity() * g.forward.hidden;
    sdepth::SwigluBackwardArgs<stored> d{.forward = swiglu_args(to, g.forward)};
    to.inout(d.grad_gate, g.grad_gate, n);
    to.inout(d.grad_up, g.grad_up, n);
    if (g.grad_act == g.grad_up)
        d.grad_act = d.grad_up;
    else
        to.in(d.grad_act, g.grad_act, n);
    cuda::swiglu_backward(d, nullptr);
}
void activation(const sdepth::ActivationArgs<exact>& a) {
    device_call to;
    cuda::activation(activation_args(to, a), nullptr);
}
void activation_backward(const sdepth::ActivationBackwardArgs<exact>& g) {
    device_call to;
    const long long n = g.forward.rows.capacity() * g.forward.hidden;
    sdepth::ActivationBackwardArgs<stored> d{.forward = activation_args(to, g.forward)};
    to.in(d.grad_act, g.grad_act, n);
    to.inout(d.grad_x, g.grad_x, n);
    cuda::activation_backward(d, nullptr);
}

}  // namespace sdepth_test::on_device
