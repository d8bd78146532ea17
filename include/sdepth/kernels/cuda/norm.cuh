// SPDX-License-Identifier: MIT
// RMS normalisation, and gathering, scattering and adding of rows: bound by memory. Rank 5.
#pragma once

#include "sdepth/kernels/cuda/deferred_sums.cuh"
#include "sdepth/kernels/cuda/row_ring.cuh"
#include "sdepth/ops/norm.hpp"

namespace sdepth::inline v0::on_cuda {

/// Where the rows of a norm come from: they are there; from GatherArgs::x; two to be added.
enum class norm_input { rows, gathered, added };

/// One team of warps a row; the row stays in registers between its sum and its scaling, and is stored on the way where
/// it was not there before.
template <bool whole, norm_input from, class P>
__global__ void __launch_bounds__(256)
    rms_norm_kernel(const RmsNormArgs<P> a, const GatherArgs<P> g, const AddArgs<P> s) {
    wait_for_kernel_before();
    const row_teams t(a.width);
    const team_member me(t);
    const long long row = static_cast<long long>(blockIdx.x) * t.teams + me.team();
    const bool live = row < a.rows.capacity() && row_place(a.rows, row).live(a.rows);
    const auto* x = (from == norm_input::added ? s.x : a.x) + row * a.width;
    if constexpr (from == norm_input::gathered)
        if (live)
            x = g.x + (static_cast<long long>(row_place(a.rows, row).sequence) * g.sequence + g.ids[row]) * a.width;

    eight<typename P::activation> raw[4], other[4];
    float sum = 0;
#pragma unroll
    for (int u = 0; u < 4; ++u) {
        const int c = me.column() + 256 * u;
        if (!live || c >= a.width) continue;
        raw[u] = load_eight<whole>(x + c, a.width - c);
        if constexpr (from == norm_input::added) other[u] = load_eight<whole>(s.a + row * a.width + c, a.width - c);
    }
    // A sum counts as it is stored.
    const auto number = [&](int u, int e) {
        if constexpr (from == norm_input::added)
            return to_float(from_float<typename P::activation>(to_float(raw[u].x[e]) + to_float(other[u].x[e])));
        else
            return to_float(raw[u].x[e]);
    };
#pragma unroll
    for (int u = 0; u < 4; ++u)
        if (live && me.column() + 256 * u < a.width)
#pragma unroll
            for (int e = 0; e < 8; ++e) sum += number(u, e) * number(u, e);
    sum = me.sum(sum);
    if (!live) return;
    const float rstd = rsqrtf(sum / static_cast<float>(a.width) + static_cast<float>(a.epsilon));
    if (me.leads()) a.rstd[row] = rstd;
#pragma unroll
    for (int u = 0; u < 4; ++u) {
        const int c = me.column() + 256 * u;
        if (c >= a.width) continue;
        const auto w = load_eight<whole>(a.weight + c, a.width - c);
        float y[8];
        if constexpr (from != norm_input::rows) {
#pragma unroll
            for (int e = 0; e < 8; ++e) y[e] = number(u, e);
            store_eight<whole>((from == norm_input::added ? s.sum : g.out) + row * a.width + c, y, a.width - c);
        }
#pragma unroll
        for (int e = 0; e < 8; ++e) y[e] = to_float(w.x[e]) * number(u, e) * rstd;
        store_eight<whole>(a.y + row * a.width + c, y, a.width - c);
    }
}

/// Rows on their way to a team of rms_norm_backward_kernel: x, grad_y, what is added (if so); rstd.
template <bool adds, class P>
using norm_ring = row_ring<typename P::activation, adds ? 12 : 8, 1, adds ? 2 : 3>;

/// A fixed number of blocks walks the rows; each leaves its sums of grad_weight behind. `adds`: grad_x is added to, or
/// `also` is served.
template <bool whole, bool adds, class P>
__global__ void __launch_bounds__(256, 2) rms_norm_backward_kernel(const RmsNormBackwardArgs<P> g, float* partial) {
    wait_for_kernel_before();
    using T = typename P::activation;
    extern __shared__ __align__(1024) unsigned char raw[];  // as in every kernel: one name, one alignment
    const RmsNormArgs<P>& a = g.forward;
    const row_teams t(a.width);
    const team_member me(t);
    norm_ring<adds, P> ahead(raw);
    const T* const added = g.adds_to_grad_x ? g.grad_x : g.also;
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
            ahead.template ask<whole>(stage, 4 + u, g.grad_y + at + 256 * u, columns - 256 * u);
            if constexpr (adds) ahead.template ask<whole>(stage, 8 + u, added + at + 256 * u, columns - 256 * u);
        }
        if (columns > 0) ahead.ask(stage, 0, a.rstd + row);
        ahead.close();
    };
    int row = static_cast<int>(blockIdx.x) * t.teams + me.team(), stage = 0;
    for (int s = 0; s < ahead.stages; ++s) ask(s, row + s * stride);
    for (int first = static_cast<int>(blockIdx.x) * t.teams; first < all; first += stride, row += stride) {
        const int columns = columns_of(row);
        ahead.wait();
        const float rstd = columns > 0 ? ahead.scalar(stage, 0) : 0.f;
        const long long at = static_cast<long long>(row) * a.width + me.column();
        float along = 0;
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            if (256 * u >= columns) continue;
            const auto x = ahead.piece(stage, u), grad_y = ahead.piece(stage, 4 + u);
#pragma unroll
            for (int e = 0; e < 8; ++e) along += weight.of[u][e] * to_float(grad_y.x[e]) * to_float(x.x[e]);
        }
        along = me.sum(along) * rstd * rstd / static_cast<float>(a.width);
        asm volatile("" ::: "memory");  // read the row again: there are no registers to keep it
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            if (256 * u >= columns) continue;
            const auto x = ahead.piece(stage, u), grad_y = ahead.piece(stage, 4 + u);
            eight<T> was;
            if constexpr (adds) was = ahead.piece(stage, 8 + u);
            float y[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const float gy = to_float(grad_y.x[e]), xe = to_float(x.x[e]);
                sums[u][e] += gy * xe * rstd;
                y[e] = rstd * (weight.of[u][e] * gy - xe * along);
                if constexpr (adds) y[e] += g.adds_to_grad_x ? to_float(was.x[e]) : 0.f;
            }
            store_eight<whole>(g.grad_x + at + 256 * u, y, columns - 256 * u);
            if constexpr (adds) {
                if (g.also == nullptr) continue;
                if (g.adds_to_grad_x) was = load_eight<whole>(g.also + at + 256 * u, columns - 256 * u);
#pragma unroll
                for (int e = 0; e < 8; ++e) y[e] = to_float(from_float<T>(y[e])) + to_float(was.x[e]);
                store_eight<whole>(g.also + at + 256 * u, y, columns - 256 * u);
            }
        }
        ask(stage, row + ahead.stages * stride);
        stage = stage + 1 == ahead.stages ? 0 : stage + 1;
    }
    me.store_columns(t, sums, reinterpret_cast<float*>(raw), partial + static_cast<long long>(blockIdx.x) * a.width,
                     a.width);
}

namespace detail {

template <norm_input from, class P>
void launch_rms_norm(const RmsNormArgs<P>& a, const GatherArgs<P>& g, const AddArgs<P>& s, cudaStream_t stream) {
    check_rows(a.rows, a.width, "rms_norm");
    check_width(a.width, "rms_norm");
    if (a.rows.capacity() < 1) return;
    const row_teams t(a.width);
    const unsigned blocks = blocks_of(a.rows.capacity(), t.teams), threads = static_cast<unsigned>(t.threads());
    launch_early(a.width % 8 == 0 ? rms_norm_kernel<true, from, P> : rms_norm_kernel<false, from, P>, blocks, threads,
                 0, stream, "rms_norm", a, g, s);
}

}  // namespace detail

/// See RmsNormArgs. Width up to 8192.
template <class P>
void rms_norm(const RmsNormArgs<P>& a, cudaStream_t stream) {
    detail::launch_rms_norm<norm_input::rows>(a, GatherArgs<P>{}, AddArgs<P>{}, stream);
}

/// gather(g), then rms_norm(a) of the rows that it packs, a.x = g.out: in one kernel.
template <class P>
void gather_rms_norm(const GatherArgs<P>& g, const RmsNormArgs<P>& a, cudaStream_t stream) {
    detail::launch_rms_norm<norm_input::gathered>(a, g, AddArgs<P>{}, stream);
}

/// add(s), then rms_norm(a) of the sum, a.x = s.sum: in one kernel.
template <class P>
void add_rms_norm(const AddArgs<P>& s, const RmsNormArgs<P>& a, cudaStream_t stream) {
    detail::launch_rms_norm<norm_input::added>(a, GatherArgs<P>{}, s, stream);
}

constexpr std::size_t rms_norm_backward_scratch(int width) { return column_sums_scratch(width); }

/// See RmsNormBackwardArgs. grad_x may be grad_y.
template <class P>
void rms_norm_backward(const RmsNormBackwardArgs<P>& g, block_sums sums, cudaStream_t stream) {
    const RmsNormArgs<P>& a = g.forward;
    detail::check_rows(a.rows, a.width, "rms_norm_backward");
    detail::check_width(a.width, "rms_norm_backward");
    if (a.rows.capacity() < 1) return;
    auto* partial = sums.room<float>(rms_norm_backward_scratch(a.width), stream);
    const int blocks = detail::with_column_teams(a.rows.capacity(), a.width, [&](auto whole, auto grid, auto threads) {
        const auto run = [&](auto adds) {
            const auto kernel = rms_norm_backward_kernel<whole(), adds(), P>;
            constexpr std::size_t bytes = 8 * norm_ring<adds(), P>::bytes;
            static_assert(bytes >= 8 * row_teams::column_room * sizeof(float));
            launch_early(with_shared(kernel, bytes, "rms_norm_backward"), grid, threads, bytes, stream,
                         "rms_norm_backward", g, partial);
        };
        g.adds_to_grad_x || g.also != nullptr ? run(std::true_type{}) : run(std::false_type{});
    });
    sums.add_columns(partial, blocks, a.width, g.grad_weight, "rms_norm_backward", stream);
}

namespace detail {

struct no_state {};

template <class P>
struct gather_op {
    GatherArgs<P> a;
    __device__ long long begin(const row_place& p) const {
        return (static_cast<long long>(p.sequence) * a.sequence + a.ids[p.row]) * a.width;
    }
    template <bool whole>
    __device__ auto load(long long from, const row_place&, int c, int n) const {
        return load_eight<whole>(a.x + from + c, n);
    }
    template <bool whole>
    __device__ void store(long long, const row_place& p, int c, int n, const eight<typename P::activation>& x) const {
        float y[8];
        for (int e = 0; e < 8; ++e) y[e] = to_float(x.x[e]);
        store_eight<whole>(a.out + p.row * a.width + c, y, n);
    }
};

template <class P>
struct two_rows {
    eight<typename P::activation> x, y;
};

template <class P, bool adds>
struct scatter_op {
    ScatterArgs<P> a;
    __device__ long long begin(const row_place& p) const {
        return (static_cast<long long>(p.sequence) * a.sequence + a.ids[p.row]) * a.width;
    }
    template <bool whole>
    __device__ two_rows<P> load(long long to, const row_place& p, int c, int n) const {
        two_rows<P> r;
        r.x = load_eight<whole>(a.out + p.row * a.width + c, n);
        if constexpr (adds) r.y = load_eight<whole>(a.x + to + c, n);
        return r;
    }
    template <bool whole>
    __device__ void store(long long to, const row_place&, int c, int n, const two_rows<P>& r) const {
        float y[8];
        for (int e = 0; e < 8; ++e) {
            y[e] = to_float(r.x.x[e]);
            if constexpr (adds) y[e] += to_float(r.y.x[e]);
        }
        store_eight<whole>(a.x + to + c, y, n);
    }
};

template <class P>
struct add_op {
    AddArgs<P> a;
    __device__ no_state begin(const row_place&) const { return {}; }
    template <bool whole>
    __device__ two_rows<P> load(no_state, const row_place& p, int c, int n) const {
        return {load_eight<whole>(a.x + p.row * a.width + c, n), load_eight<whole>(a.a + p.row * a.width + c, n)};
    }
    template <bool whole>
    __device__ void store(no_state, const row_place& p, int c, int n, const two_rows<P>& r) const {
        float y[8];
        for (int e = 0; e < 8; ++e) y[e] = to_float(r.x.x[e]) + to_float(r.y.x[e]);
        store_eight<whole>(a.sum + p.row * a.width + c, y, n);
    }
};

}  // namespace detail

namespace detail {

template <class T>
__global__ void __launch_bounds__(256) clear_dead_kernel(const batch_rows rows, int width, T* x) {
    const long long row = blockIdx.x * 8LL + threadIdx.x / 32;
    if (row >= rows.capacity() || row_place(rows, row).live(rows)) return;
    for (int c = static_cast<int>(threadIdx.x % 32); c < width; c += 32) x[row * width + c] = from_float<T>(0.f);
}

}  // namespace detail

/// x = 0 in dead rows. Products run over all rows of memory; a sum over rows needs zeros where nothing is.
template <class T>
void clear_dead_rows(const batch_rows& rows, int width, T* x, cudaStream_t stream) {
    if (rows.each.live == nullptr || rows.capacity() < 1) return;
    detail::clear_dead_kernel<<<detail::blocks_of(rows.capacity(), 8), 256, 0, stream>>>(rows, width, x);
    check(cudaGetLastError(), "clear_dead_rows");
}

/// See GatherArgs.
template <class P>
void gather(const GatherArgs<P>& a, cudaStream_t stream) {
    each_row(a.rows, a.width, detail::gather_op<P>{a}, "gather", stream);
}

/// See ScatterArgs.
template <class P>
void scatter(const ScatterArgs<P>& a, cudaStream_t stream) {
    if (a.adds)
        each_row(a.rows, a.width, detail::scatter_op<P, true>{a}, "scatter", stream);
    else
        each_row(a.rows, a.width, detail::scatter_op<P, false>{a}, "scatter", stream);
}

/// See AddArgs.
template <class P>
void add(const AddArgs<P>& a, cudaStream_t stream) {
    each_row(a.rows, a.width, detail::add_op<P>{a}, "add", stream);
}

}  // namespace sdepth::inline v0::on_cuda
