// SPDX-License-Identifier: MIT
// Launches for ends.cpp and update.cpp.
#include "sdepth/kernels/cuda/ends.cuh"

#include "device_call.cuh"
#include "operations.hpp"
#include "sdepth/kernels/cuda/muon.cuh"
#include "sdepth/kernels/cuda/update.cuh"

namespace sdepth_test::on_device {

namespace cuda = sdepth::on_cuda;

namespace {

std::vector<double> copies;

sdepth::EmbedArgs<stored> embed_args(device_call& to, const sdepth::EmbedArgs<exact>& a) {
    sdepth::EmbedArgs<stored> d{.rows = to.rows(a.rows), .width = a.width, .vocab = a.vocab};
    to.in(d.tokens, a.tokens, a.rows.capacity());
    to.in(d.table, a.table, static_cast<long long>(a.vocab) * a.width);
    to.inout(d.x, a.x, a.rows.capacity() * a.width);
    return d;
}

}  // namespace

const double* last_copies() { return copies.data(); }

void embed(const sdepth::EmbedArgs<exact>& a) {
    device_call to;
    cuda::embed(embed_args(to, a), nullptr);
}
void embed_backward(const sdepth::EmbedBackwardArgs<exact>& g) {
    device_call to;
    const auto& a = g.forward;
    sdepth::EmbedBackwardArgs<stored> d{.forward = embed_args(to, a)};
    to.in(d.grad_x, g.grad_x, a.rows.capacity() * a.width);
    to.inout(d.grad_table, g.grad_table, static_cast<long long>(a.vocab) * a.width);
    cuda::embed_backward(d, nullptr);
}
void head_loss(const sdepth::HeadLossArgs<exact>& a) {
    device_call to;
    sdepth::HeadLossArgs<stored> d{
        .rows = to.rows(a.rows), .width = a.width, .vocab = a.vocab, .scale = a.scale, .chunk = a.chunk};
    to.in(d.y, a.y, a.rows.capacity() * a.width);
    to.in(d.weight, a.weight, static_cast<long long>(a.vocab) * a.width);
    to.in(d.targets, a.targets, a.rows.capacity());
    to.inout(d.loss_sum, a.loss_sum, 1);
    to.inout(d.grad_y, a.grad_y, a.rows.capacity() * a.width);
    to.inout(d.grad_weight, a.grad_weight, static_cast<long long>(a.vocab) * a.width);
    const long long logits = sdepth::logit_stride(a.vocab) * a.chunk;
    d.logits = static_cast<bf16*>(to.scratch(static_cast<std::size_t>(logits) * sizeof(bf16)));
    cuda::products multiply(to.scratch(cuda::products::workspace_bytes));
    cuda::head_loss(d, multiply, to.scratch(cuda::head_loss_scratch(a.rows.capacity())), nullptr);
    cuda::check(cudaDeviceSynchronize(), "test");  // before the handle goes
}

void squares(const sdepth::SquaresArgs<exact>& a) {
    device_call to;
    sdepth::SquaresArgs<stored> d{.count = a.count};
    to.in(d.grad, a.grad, a.count);
    to.inout(d.sum, a.sum, 1);
    cuda::squares(d, to.scratch(cuda::squares_scratch()), nullptr);
}
void begin_update(const sdepth::BeginUpdateArgs& a) {
    device_call to;
    sdepth::BeginUpdateArgs d = a;
    to.in(d.inputs, a.inputs, 1);
    to.in(d.squares, a.squares, 1);
    to.in(d.loss, a.loss, 1);
    to.inout(d.scalars, a.scalars, 1);
    cuda::begin_update(d, nullptr);
}
void adamw(const sdepth::AdamwArgs<exact>& a) {
    const long long n = (a.layers - 1) * a.stride + a.count;
    copies.assign(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN());
    device_call to;
    sdepth::AdamwArgs<stored> d{.layers = a.layers,
                                .count = a.count,
                                .stride = a.stride,
                                .grad_stride = a.grad_stride,
                                .second_stride = a.second_stride,
                                .beta1 = a.beta1,
                                .beta2 = a.beta2,
                                .epsilon = a.epsilon,
                                .decay = a.decay,
                                .share = a.share};
    to.in(d.scalars, a.scalars, 1);
    to.inout(d.master, a.master, n);
    to.inout(d.weight, copies.data(), n);
    const long long before = a.grad_stride < 0 ? (a.layers - 1) * a.grad_stride : 0;
    to.in(d.grad, a.grad + before, n);
    d.grad -= before;
    to.inout(d.first, a.first, n);
    to.inout(d.second, a.second, (a.layers - 1) * a.second_stride + a.count);
    cuda::adamw(d, nullptr);
}

void muon(const sdepth::MuonArgs<exact>& a) {
    const long long size = static_cast<long long>(a.rows) * a.cols, n = (a.layers - 1) * a.stride + a.matrices * size;
    copies.assign(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN());
    device_call to;
    sdepth::MuonArgs<stored> d{.layers = a.layers,
                               .matrices = a.matrices,
                               .stride = a.stride,
                               .grad_stride = a.grad_stride,
                               .rows = a.rows,
                               .cols = a.cols,
                               .momentum = a.momentum,
                               .decay = a.decay,
                               .match = a.match,
                               .steps = a.steps,
                               .nesterov = a.nesterov,
                               .together = a.together};
    to.in(d.scalars, a.scalars, 1);
    to.inout(d.master, a.master, n);
    to.inout(d.weight, copies.data(), n);
    const long long before = a.grad_stride < 0 ? (a.layers - 1) * a.grad_stride : 0;
    to.in(d.grad, a.grad + before, n);
    d.grad -= before;
    to.inout(d.first, a.first, n);
    const auto scratch = static_cast<std::size_t>(a.together * sdepth::muon_scratch(a.rows, a.cols)) * sizeof(bf16);
    d.scratch = static_cast<bf16*>(to.scratch(scratch));
    cuda::products multiply(to.scratch(cuda::products::workspace_bytes));
    cuda::muon(d, multiply, nullptr);
    cuda::check(cudaDeviceSynchronize(), "test");  // before the handle goes
}

}  // namespace sdepth_test::on_device
