// SPDX-License-Identifier: MIT
// Launches for route.cpp and select.cpp.
#include "sdepth/kernels/cuda/route.cuh"

#include "device_call.cuh"
#include "operations.hpp"
#include "sdepth/kernels/cuda/decode.cuh"
#include "sdepth/kernels/cuda/route_version.cuh"
#include "sdepth/kernels/cuda/route_version_logits.cuh"
#include "sdepth/kernels/cuda/select.cuh"

namespace sdepth_test::on_device {

namespace cuda = sdepth::on_cuda;

namespace {

sdepth::RouteLogitsArgs<stored> logit_args(device_call& to, const sdepth::RouteLogitsArgs<exact>& a) {
    sdepth::RouteLogitsArgs<stored> d{.rows = to.rows(a.rows), .width = a.width};
    to.in(d.x, a.x, a.rows.capacity() * a.width);
    to.in(d.weight, a.weight, a.width);
    to.inout(d.logits, a.logits, a.rows.capacity());
    return d;
}
sdepth::ScatterResidualArgs<stored> residual_args(device_call& to, const sdepth::ScatterResidualArgs<exact>& a) {
    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    sdepth::ScatterResidualArgs<stored> d{
        .rows = to.rows(a.rows), .sequence = a.sequence, .width = a.width, .gate = a.gate, .increment = a.increment};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.gate_logits, a.gate_logits, all);
    to.in(d.scale, a.scale, 1);
    to.in(d.a, a.a, a.rows.capacity() * a.width);
    to.in(d.f, a.f, a.rows.capacity() * a.width);
    to.inout(d.x, a.x, all * a.width);
    to.inout(d.bias, a.bias, all);
    return d;
}

}  // namespace

void route_logits(const sdepth::RouteLogitsArgs<exact>& a) {
    device_call to;
    cuda::route_logits(logit_args(to, a), nullptr);
}
void route_logits_backward(const sdepth::RouteLogitsBackwardArgs<exact>& g) {
    device_call to;
    const long long n = g.forward.rows.capacity();
    sdepth::RouteLogitsBackwardArgs<stored> d{.forward = logit_args(to, g.forward)};
    to.in(d.grad_logits, g.grad_logits, n);
    to.in(d.grad_x_logits, g.grad_x_logits, n);
    to.inout(d.grad_weight, g.grad_weight, g.forward.width);
    to.inout(d.grad_x, g.grad_x, n * g.forward.width);
    cuda::route_logits_backward(d, to.scratch(cuda::route_logits_backward_scratch(g.forward.width)), nullptr);
}
void route_version_logits(const sdepth::RouteVersionLogitsArgs<exact>& a) {
    device_call to;
    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    sdepth::RouteVersionLogitsArgs<stored> d{
        .rows = to.rows(a.rows), .sequence = a.sequence, .width = a.width, .layers = a.layers, .first = a.first};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.x, a.x, all * a.width);
    to.in(d.weight, a.weight, a.layers * a.stride);
    d.stride = a.stride;
    to.inout(d.logits, a.logits, a.layers * a.logits_stride);
    d.logits_stride = a.logits_stride;
    cuda::route_version_logits(d, nullptr);
}
void route_version_backward(const sdepth::RouteVersionBackwardArgs<exact>& a) {
    static_assert(route_parts == cuda::route_parts);
    device_call to;
    const long long all = static_cast<long long>(a.rows.batch) * a.sequence, of_weights = a.layers * a.stride;
    sdepth::RouteVersionBackwardArgs<stored> d{
        .rows = to.rows(a.rows), .sequence = a.sequence, .width = a.width, .layers = a.layers, .first = a.first};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.x, a.x, all * a.width);
    to.in(d.weight, a.weight, of_weights);
    d.stride = a.stride;
    to.in(d.grad_logits, a.grad_logits, a.layers * all);
    to.inout(d.later, a.later, all);
    to.inout(d.grad_x, a.grad_x, all * a.width);
    to.inout(d.sums, a.sums, static_cast<long long>(route_parts) * a.layers * a.width);
    to.inout(d.grad_weight, a.grad_weight, of_weights);
    d.grad_stride = a.grad_stride;
    cuda::route_version_backward(d, nullptr);
}
void select(const sdepth::SelectArgs<exact>& a, bool portable) {
    device_call to;
    const long long n = a.rows.capacity();
    sdepth::SelectArgs<stored> d{.rows = to.rows(a.rows),
                                 .capacity = a.capacity,
                                 .sparsity = a.sparsity,
                                 .rule = a.rule,
                                 .tau = a.tau,
                                 .biased = a.biased};
    to.in(d.logits, a.logits, n);
    to.in(d.bias, a.bias, n);
    to.in(d.cut, a.cut, 1);
    to.in(d.documents, a.documents, n);
    to.inout(d.u, a.u, n);
    to.inout(d.ids, a.ids, static_cast<long long>(a.rows.batch) * a.capacity);
    to.inout(d.live, a.live, a.rows.batch);
    to.inout(d.cut_sum, a.cut_sum, 1);
    to.inout(d.cut_groups, a.cut_groups, 1);
    void* const scratch = to.scratch(cuda::select_scratch(a.rows.batch, a.rows.each.capacity, a.documents != nullptr));
    portable ? cuda::select<cuda::portable>(d, scratch, nullptr) : cuda::select<cuda::hopper>(d, scratch, nullptr);
}
void visibility(const sdepth::VisibilityArgs& a) {
    device_call to;
    sdepth::VisibilityArgs d = a;
    d.queries = to.rows(a.queries), d.keys = to.rows(a.keys);
    to.in(d.ids, a.ids, a.queries.capacity());
    to.in(d.documents, a.documents, static_cast<long long>(a.queries.batch) * a.sequence);
    to.in(d.key_positions, a.key_positions, a.keys.capacity());
    to.inout(d.first, a.first, a.queries.capacity());
    to.inout(d.last, a.last, a.queries.capacity());
    cuda::visibility(d, nullptr);
}
void scatter_residual(const sdepth::ScatterResidualArgs<exact>& a) {
    device_call to;
    cuda::scatter_residual(residual_args(to, a), nullptr);
}
void scatter_residual_backward(const sdepth::ScatterResidualBackwardArgs<exact>& g) {
    device_call to;
    const auto& a = g.forward;
    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    sdepth::ScatterResidualBackwardArgs<stored> d{.forward = residual_args(to, a)};
    to.in(d.before, g.before, a.rows.capacity() * a.width);
    to.in(d.grad_x, g.grad_x, all * a.width);
    to.inout(d.grad_a, g.grad_a, a.rows.capacity() * a.width);
    to.inout(d.grad_f, g.grad_f, a.rows.capacity() * a.width);
    to.inout(d.grad_logits, g.grad_logits, all);
    to.inout(d.grad_scale, g.grad_scale, 1);
    cuda::scatter_residual_backward(d, to.scratch(cuda::scatter_residual_backward_scratch(a.rows.capacity())), nullptr);
}
void route_loss(const sdepth::RouteLossArgs<exact>& a) {
    device_call to;
    sdepth::RouteLossArgs<stored> d{.rows = to.rows(a.rows), .chosen = to.rows(a.chosen), .scale = a.scale};
    to.in(d.logits, a.logits, a.rows.capacity());
    to.in(d.ids, a.ids, a.chosen.capacity());
    to.inout(d.loss_sum, a.loss_sum, 1);
    to.inout(d.grad_logits, a.grad_logits, a.rows.capacity());
    cuda::route_loss(d, to.scratch(cuda::route_loss_scratch(a.rows.capacity())), nullptr);
}
void track_cut(const sdepth::TrackCutArgs<exact>& a) {
    device_call to;
    sdepth::TrackCutArgs<stored> d{.layers = a.layers, .stride = a.stride, .rate = a.rate};
    to.in(d.cut_sum, a.cut_sum, a.layers);
    to.in(d.cut_groups, a.cut_groups, a.layers);
    to.inout(d.cut, a.cut, (a.layers - 1) * a.stride + 1);
    to.in(d.finite, a.finite, 1);
    cuda::track_cut(d, nullptr);
}
void positions(const sdepth::PositionsArgs& a) {
    device_call to;
    sdepth::PositionsArgs d{.rows = to.rows(a.rows)};
    to.in(d.ids, a.ids, a.rows.capacity());
    to.in(d.start, a.start, a.rows.batch);
    to.inout(d.positions, a.positions, a.rows.capacity());
    cuda::positions(d, nullptr);
}
void cache(const sdepth::CacheArgs<exact>& a) {
    device_call to;
    const long long n = a.rows.capacity() * a.width, held = static_cast<long long>(a.rows.batch) * a.capacity;
    sdepth::CacheArgs<stored> d{.rows = to.rows(a.rows), .width = a.width, .capacity = a.capacity};
    to.in(d.k, a.k, n);
    to.in(d.v, a.v, n);
    to.in(d.positions, a.positions, a.rows.capacity());
    to.inout(d.cached_k, a.cached_k, held * a.width);
    to.inout(d.cached_v, a.cached_v, held * a.width);
    to.inout(d.cached_positions, a.cached_positions, held);
    to.inout(d.count, a.count, a.rows.batch);
    cuda::cache(d, nullptr);
}

}  // namespace sdepth_test::on_device
