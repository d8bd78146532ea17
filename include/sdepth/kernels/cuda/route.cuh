// SPDX-License-Identifier: MIT
// Sparse-depth routing around the selection: logits, the gated residual, the routing loss, visibility, the tracked cut.
// Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sdepth/kernels/cuda/deferred_sums.cuh"
#include "sdepth/kernels/cuda/row_ring.cuh"
#include "sdepth/ops/route.hpp"

namespace sdepth::inline v0::on_cuda {

/// One warp a row.
template <bool whole, class P>
__global__ void __launch_bounds__(256) route_logits_kernel(const RouteLogitsArgs<P> a) {
    wait_for_kernel_before();
    const long long row = blockIdx.x * 8LL + threadIdx.x / 32;
    if (row >= a.rows.capacity() || !row_place(a.rows, row).live(a.rows)) return;
    const auto* x = a.x + row * a.width;
    constexpr int ahead = 4;
    float sum = 0;
    for (int first = static_cast<int>(threadIdx.x % 32) * 8; first < a.width; first += ahead * 256) {
        eight<typename P::activation> raw[ahead];
#pragma unroll
        for (int u = 0; u < ahead; ++u)
            if (first + 256 * u < a.width) raw[u] = load_eight<whole>(x + first + 256 * u, a.width - first - 256 * u);
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            if (first + 256 * u >= a.width) continue;
            const auto w = load_eight<whole>(a.weight + first + 256 * u, a.width - first - 256 * u);
#pragma unroll
            for (int e = 0; e < 8; ++e) sum += to_float(w.x[e]) * to_float(raw[u].x[e]);
        }
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) a.logits[row] = sum;
}

/// Rows on their way to a team of route_logits_backward_kernel: x, grad_x; the gradients of a row's logit.
template <class P>
using route_ring = row_ring<typename P::activation, 8, 2, 3>;

/// As rms_norm_backward_kernel: a fixed number of blocks, each leaves its sums of grad_weight behind.
template <bool whole, class P>
__global__ void __launch_bounds__(256, 2)
    route_logits_backward_kernel(const RouteLogitsBackwardArgs<P> g, float* partial) {
    wait_for_kernel_before();
    extern __shared__ __align__(1024) unsigned char raw[];  // as in every kernel: one name, one alignment
    const RouteLogitsArgs<P>& a = g.forward;
    const row_teams t(a.width);
    const team_member me(t);
    route_ring<P> ahead(raw);
    const bool to_x = g.grad_x != nullptr && g.grad_x_logits != nullptr;
    float sums[4][8] = {};
    const column_weights<whole> weight(a.weight, me.column(), a.width);
    const int all = static_cast<int>(a.rows.capacity()), stride = static_cast<int>(gridDim.x) * t.teams;
    const auto columns_of = [&](int row) {
        return is_live(a.rows, row) ? a.width - me.column() : 0;  // from this thread's on
    };
    const auto ask = [&](int stage, int row) {
        const int columns = columns_of(row);
        const long long at = static_cast<long long>(row) * a.width + me.column();
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            if (256 * u >= columns) continue;
            ahead.template ask<whole>(stage, u, a.x + at + 256 * u, columns - 256 * u);
            if (to_x) ahead.template ask<whole>(stage, 4 + u, g.grad_x + at + 256 * u, columns - 256 * u);
        }
        if (columns > 0) {
            ahead.ask(stage, 0, g.grad_logits + row);
            if (to_x) ahead.ask(stage, 1, g.grad_x_logits + row);
        }
        ahead.close();
    };
    int row = static_cast<int>(blockIdx.x) * t.teams + me.team(), stage = 0;
    for (int s = 0; s < ahead.stages; ++s) ask(s, row + s * stride);
    for (; row < all; row += stride) {
        const int columns = columns_of(row);
        ahead.wait();
        const long long at = static_cast<long long>(row) * a.width + me.column();
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            if (256 * u >= columns) continue;
            const auto x = ahead.piece(stage, u);
            const float grad = ahead.scalar(stage, 0);
#pragma unroll
            for (int e = 0; e < 8; ++e) sums[u][e] += grad * to_float(x.x[e]);
            if (!to_x) continue;
            const auto grad_x = ahead.piece(stage, 4 + u);
            const float grad_of_x = ahead.scalar(stage, 1);
            float y[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) y[e] = to_float(grad_x.x[e]) + grad_of_x * weight.of[u][e];
            store_eight<whole>(g.grad_x + at + 256 * u, y, columns - 256 * u);
        }
        ask(stage, row + ahead.stages * stride);
        stage = stage + 1 == ahead.stages ? 0 : stage + 1;
    }
    me.store_columns(t, sums, reinterpret_cast<float*>(raw), partial + static_cast<long long>(blockIdx.x) * a.width,
                     a.width);
}

/// See RouteLogitsArgs.
template <class P>
void route_logits(const RouteLogitsArgs<P>& a, cudaStream_t stream) {
    detail::check_rows(a.rows, a.width, "route_logits");
    if (a.rows.capacity() < 1) return;
    launch_early(a.width % 8 == 0 ? route_logits_kernel<true, P> : route_logits_kernel<false, P>,
                 detail::blocks_of(a.rows.capacity(), 8), 256, 0, stream, "route_logits", a);
}

constexpr std::size_t route_logits_backward_scratch(int width) { return column_sums_scratch(width); }

/// See RouteLogitsBackwardArgs. Width up to 8192.
template <class P>
void route_logits_backward(const RouteLogitsBackwardArgs<P>& g, block_sums sums, cudaStream_t stream) {
    const RouteLogitsArgs<P>& a = g.forward;
    detail::check_rows(a.rows, a.width, "route_logits_backward");
    detail::check_width(a.width, "route_logits_backward");
    if (a.rows.capacity() < 1) return;
    auto* partial = sums.room<float>(route_logits_backward_scratch(a.width), stream);
    const int blocks = detail::with_column_teams(a.rows.capacity(), a.width, [&](auto whole, auto grid, auto threads) {
        constexpr std::size_t bytes = 8 * route_ring<P>::bytes;
        static_assert(bytes >= 8 * row_teams::column_room * sizeof(float));
        launch_early(with_shared(route_logits_backward_kernel<whole(), P>, bytes, "route_logits_backward"), grid,
                     threads, bytes, stream, "route_logits_backward", g, partial);
    });
    sums.add_columns(partial, blocks, a.width, g.grad_weight, "route_logits_backward", stream);
}

namespace detail {

/// First i in [first, last) with x[i] >= value, or last; x rises.
__device__ inline int lower_bound(const int* x, int first, int last, int value) {
    while (first < last) {
        const int middle = first + (last - first) / 2;
        if (x[middle] < value)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static __global__ void __launch_bounds__(256) visibility_kernel(const VisibilityArgs a) {
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    if (row >= a.queries.capacity()) return;
    const row_place place(a.queries, row);
    const int b = place.sequence, i = place.index;
    int first = 0, last = -1;
    if (place.live(a.queries)) {
        const int* ids = a.ids + a.queries.first(b);
        const int position = ids[i];
        if (a.key_positions != nullptr) {
            const int* keys = a.key_positions + a.keys.first(b);
            const int end = a.keys.each.of(b);
            first = lower_bound(keys, 0, end, a.window > 0 ? position - a.window + 1 : 0);
            last = lower_bound(keys, 0, end, position + 1) - 1;
        } else {
            int lowest = a.window > 0 ? max(0, position - a.window + 1) : 0;
            if (a.documents != nullptr) {
                const int* documents = a.documents + static_cast<long long>(b) * a.sequence;
                lowest = lower_bound(documents, lowest, position, documents[position]);
            }
            first = a.full_keys ? lowest : lower_bound(ids, 0, i, lowest);
            last = a.full_keys ? position : i;
        }
    }
    a.first[row] = first;
    a.last[row] = last;
}

}  // namespace detail

/// See VisibilityArgs.
inline void visibility(const VisibilityArgs& a, cudaStream_t stream) {
    detail::check_rows(a.queries, 1, "visibility");
    if (a.queries.capacity() < 1) return;
    detail::visibility_kernel<<<detail::blocks_of(a.queries.capacity(), 256), 256, 0, stream>>>(a);
    check(cudaGetLastError(), "visibility");
}

namespace detail {

// What the branches of one row are multiplied by, and where the row lies in x.
struct residual_state {
    long long at;  // row of x
    float scale, r, a, f;

    template <class P>
    __device__ residual_state(const ScatterResidualArgs<P>& args, const row_place& p)
        : at(static_cast<long long>(p.sequence) * args.sequence + args.ids[p.row]), scale(1), r(1) {
        if (args.gate != gate_form::none) r = sigmoid(args.gate_logits[at]);
        if (args.gate != gate_form::ffn && args.scale != nullptr) scale = to_float(*args.scale);
        a = args.gate == gate_form::ffn ? 1.f : scale * r;
        f = args.gate == gate_form::ffn ? r : scale * r;
    }
};

template <class P, bool with_a, bool with_f>
struct scatter_residual_op {
    static constexpr bool takes_rows = true;  // counts each once
    using row = eight<typename P::activation>;
    using loaded = struct { row x, a, f; };
    ScatterResidualArgs<P> args;

    __device__ residual_state begin(const row_place& p) const {
        const residual_state s(args, p);
        if (args.bias != nullptr && threadIdx.x % 32 == 0) args.bias[s.at] += static_cast<float>(args.increment);
        return s;
    }
    template <bool whole>
    __device__ loaded load(const residual_state& s, const row_place& p, int c, int n) const {
        loaded l;
        l.x = load_eight<whole>(args.x + s.at * args.width + c, n);
        if constexpr (with_a) l.a = load_eight<whole>(args.a + p.row * args.width + c, n);
        if constexpr (with_f) l.f = load_eight<whole>(args.f + p.row * args.width + c, n);
        return l;
    }
    template <bool whole>
    __device__ void store(const residual_state& s, const row_place&, int c, int n, const loaded& l) const {
        float y[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            y[e] = to_float(l.x.x[e]);
            if constexpr (with_a) y[e] += s.a * to_float(l.a.x[e]);
            if constexpr (with_f) y[e] += s.f * to_float(l.f.x[e]);
        }
        store_eight<whole>(args.x + s.at * args.width + c, y, n);
    }
};

}  // namespace detail

/// See ScatterResidualArgs.
template <class P>
void scatter_residual(const ScatterResidualArgs<P>& a, cudaStream_t stream) {
    const auto run = [&](const auto& op) { each_row(a.rows, a.width, op, "scatter_residual", stream); };
    if (a.a != nullptr && a.f != nullptr)
        run(detail::scatter_residual_op<P, true, true>{a});
    else if (a.a != nullptr)
        run(detail::scatter_residual_op<P, true, false>{a});
    else
        run(detail::scatter_residual_op<P, false, true>{a});
}

/// One warp a row: the products of grad_x with the branches, then the branches' gradients. A row's share of grad_scale
/// stays behind, 0 for a dead row. Loads of `ahead` places are in flight: few where many warps are, too.
template <bool whole, int ahead, class P>
__global__ void __launch_bounds__(128, ahead == 2 ? 5 : 4)
    scatter_residual_backward_kernel(const ScatterResidualBackwardArgs<P> g, float* shares) {
    wait_for_kernel_before();
    const ScatterResidualArgs<P>& args = g.forward;
    const long long row = blockIdx.x * 4LL + threadIdx.x / 32;
    if (row >= args.rows.capacity()) return;
    const row_place place(args.rows, row);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (!place.live(args.rows)) {
        if (lane == 0 && g.grad_scale != nullptr) shares[row] = 0;
        return;
    }
    const detail::residual_state by(args, place);
    const auto* const grad_x = g.grad_x + by.at * args.width;
    const long long at = row * args.width;
    float on_a = 0, on_f = 0;
    for (int first = lane * 8; first < args.width; first += ahead * 256) {
        eight<typename P::activation> grad[ahead], a[ahead], f[ahead];
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const int c = first + 256 * u, n = args.width - c;
            if (n <= 0) continue;
            grad[u] = load_eight<whole>(grad_x + c, n);
            if (args.a != nullptr) a[u] = load_eight<whole>(args.a + at + c, n);
            if (args.f != nullptr) f[u] = load_eight<whole>(args.f + at + c, n);
        }
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const int c = first + 256 * u, n = args.width - c;
            if (n <= 0) continue;
            float y[8];
            if (args.a != nullptr) {
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    on_a += to_float(grad[u].x[e]) * to_float(a[u].x[e]);
                    y[e] = by.a * to_float(grad[u].x[e]);
                }
                store_eight<whole>(g.grad_a + at + c, y, n);
            }
            if (args.f != nullptr) {
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    on_f += to_float(grad[u].x[e]) * to_float(f[u].x[e]);
                    y[e] = by.f * to_float(grad[u].x[e]);
                }
                store_eight<whole>(g.grad_f + at + c, y, n);
            }
        }
    }
#pragma unroll 1
    for (int c = lane * 8; g.before != nullptr && c < args.width; c += 512) {
        eight<typename P::activation> before[2];
        before[0] = load_eight<whole>(g.before + at + c, args.width - c);
        if (c + 256 < args.width) before[1] = load_eight<whole>(g.before + at + c + 256, args.width - c - 256);
        auto* const to = args.x + by.at * args.width + c;
        float y[8];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
#pragma unroll
            for (int e = 0; e < 8; ++e) y[e] = to_float(before[u].x[e]);
            if (c + 256 * u < args.width) store_eight<whole>(to + 256 * u, y, args.width - c - 256 * u);
        }
    }
    on_a = warp_sum(on_a), on_f = warp_sum(on_f);
    if (lane != 0) return;
    const float gated = args.gate == gate_form::ffn ? on_f : by.scale * (on_a + on_f);
    if (args.gate != gate_form::none) g.grad_logits[by.at] += gated * by.r * (1.f - by.r);
    if (g.grad_scale != nullptr) shares[row] = by.r * (on_a + on_f);
}

constexpr std::size_t scatter_residual_backward_scratch(long long rows) {
    return static_cast<std::size_t>(rows) * sizeof(float);
}

/// See ScatterResidualBackwardArgs.
template <class P>
void scatter_residual_backward(const ScatterResidualBackwardArgs<P>& g, block_sums sums, cudaStream_t stream) {
    const ScatterResidualArgs<P>& a = g.forward;
    detail::check_rows(a.rows, a.width, "scatter_residual_backward");
    if (a.rows.capacity() < 1) return;
    auto* shares = g.grad_scale == nullptr
                       ? nullptr
                       : sums.room<float>(scatter_residual_backward_scratch(a.rows.capacity()), stream);
    const bool many = a.rows.capacity() >= detail::many_rows;
    const auto kernel = a.width % 8 != 0 ? scatter_residual_backward_kernel<false, 2, P>
                        : many           ? scatter_residual_backward_kernel<true, 2, P>
                                         : scatter_residual_backward_kernel<true, 4, P>;
    launch_early(kernel, detail::blocks_of(a.rows.capacity(), 4), 128, 0, stream, "scatter_residual_backward", g,
                 shares);
    if (g.grad_scale != nullptr)
        sums.add_sum(shares, a.rows.capacity(), g.grad_scale, "scatter_residual_backward", stream);
}

/// One thread a row; a block leaves its sum of losses behind.
template <class P>
__global__ void __launch_bounds__(256) route_loss_kernel(const RouteLossArgs<P> a, double* partial) {
    wait_for_kernel_before();
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    float loss = 0;
    if (row < a.rows.capacity()) {
        const row_place place(a.rows, row);
        if (place.live(a.rows)) {
            const int chosen_rows = a.chosen.each.of(place.sequence);
            const int* ids = a.ids + a.chosen.first(place.sequence);
            const int at = detail::lower_bound(ids, 0, chosen_rows, place.index);
            const float chosen = at < chosen_rows && ids[at] == place.index ? 1.f : 0.f, x = to_float(a.logits[row]);
            loss = fmaxf(x, 0.f) - chosen * x + log1pf(__expf(-fabsf(x)));
            if (a.grad_logits != nullptr) a.grad_logits[row] = static_cast<float>(a.scale) * (sigmoid(x) - chosen);
        }
    }
    const double sum = block_sum(static_cast<double>(loss));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

constexpr std::size_t route_loss_scratch(long long rows) {
    return static_cast<std::size_t>((rows + 255) / 256) * sizeof(double);
}

/// See RouteLossArgs.
template <class P>
void route_loss(const RouteLossArgs<P>& a, block_sums sums, cudaStream_t stream) {
    detail::check_rows(a.rows, 1, "route_loss");
    if (a.rows.capacity() < 1) return;
    auto* partial = sums.room<double>(route_loss_scratch(a.rows.capacity()), stream);
    const unsigned blocks = detail::blocks_of(a.rows.capacity(), 256);
    launch_early(route_loss_kernel<P>, blocks, 256, 0, stream, "route_loss", a, partial);
    sums.add_sum(partial, blocks, a.loss_sum, "route_loss", stream);
}

namespace detail {

template <class P>
__global__ void track_cut_kernel(const TrackCutArgs<P> a) {
    const long long layer = blockIdx.x * 256LL + threadIdx.x;
    if (layer >= a.layers || a.cut_groups[layer] == 0 || (a.finite != nullptr && *a.finite == 0)) return;
    auto& cut = a.cut[layer * a.stride];
    const auto mean = static_cast<float>(a.cut_sum[layer] / static_cast<double>(a.cut_groups[layer]));
    cut = from_float<typename P::master>(to_float(cut) + static_cast<float>(a.rate) * (mean - to_float(cut)));
}

}  // namespace detail

/// See TrackCutArgs.
template <class P>
void track_cut(const TrackCutArgs<P>& a, cudaStream_t stream) {
    if (a.layers < 1) return;
    detail::track_cut_kernel<P><<<detail::blocks_of(a.layers, 256), 256, 0, stream>>>(a);
    check(cudaGetLastError(), "track_cut");
}

}  // namespace sdepth::inline v0::on_cuda
