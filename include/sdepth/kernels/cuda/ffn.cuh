// SPDX-License-Identifier: MIT
// The non-linear middle of feed-forward parts: bound by memory. Rank 5.
#pragma once

#include "sdepth/kernels/cuda/each_row.cuh"
#include "sdepth/ops/ffn.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

template <class P>
struct swiglu_op {
    using loaded = struct { eight<typename P::activation> gate, up; };
    SwigluArgs<P> a;
    __device__ long long begin(const row_place& p) const { return p.row * a.hidden; }
    template <bool whole>
    __device__ loaded load(long long at, const row_place&, int c, int n) const {
        return {load_eight<whole>(a.gate + at + c, n), load_eight<whole>(a.up + at + c, n)};
    }
    template <bool whole>
    __device__ void store(long long at, const row_place&, int c, int n, const loaded& l) const {
        float y[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float gate = to_float(l.gate.x[e]);
            y[e] = gate * sigmoid(gate) * to_float(l.up.x[e]);
        }
        store_eight<whole>(a.act + at + c, y, n);
    }
};

template <class P>
struct swiglu_backward_op {
    using loaded = struct { eight<typename P::activation> gate, up, grad; };
    SwigluBackwardArgs<P> g;
    __device__ long long begin(const row_place& p) const { return p.row * g.forward.hidden; }
    template <bool whole>
    __device__ loaded load(long long at, const row_place&, int c, int n) const {
        return {load_eight<whole>(g.forward.gate + at + c, n), load_eight<whole>(g.forward.up + at + c, n),
                load_eight<whole>(g.grad_act + at + c, n)};
    }
    template <bool whole>
    __device__ void store(long long at, const row_place&, int c, int n, const loaded& l) const {
        float grad_gate[8], grad_up[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float gate = to_float(l.gate.x[e]), grad = to_float(l.grad.x[e]), s = sigmoid(gate);
            grad_gate[e] = grad * to_float(l.up.x[e]) * (s + gate * s * (1.f - s));
            grad_up[e] = grad * gate * s;
        }
        store_eight<whole>(g.grad_gate + at + c, grad_gate, n);
        store_eight<whole>(g.grad_up + at + c, grad_up, n);
    }
};

// f(x) and its slope.
template <activation kind>
__device__ float2 nonlinear(float x) {
    if constexpr (kind == activation::relu) return x > 0.f ? make_float2(x, 1.f) : make_float2(0.f, 0.f);
    if constexpr (kind == activation::silu) {
        const float s = sigmoid(x);
        return make_float2(x * s, s + x * s * (1.f - s));
    }
    const float below = .5f * erfcf(-x * .70710678f);         // Phi(x)
    const float density = __expf(-.5f * x * x) * .39894228f;  // its slope
    return make_float2(x * below, below + x * density);
}

template <class P, activation kind>
struct activation_op {
    ActivationArgs<P> a;
    __device__ long long begin(const row_place& p) const { return p.row * a.hidden; }
    template <bool whole>
    __device__ auto load(long long at, const row_place&, int c, int n) const {
        return load_eight<whole>(a.x + at + c, n);
    }
    template <bool whole>
    __device__ void store(long long at, const row_place&, int c, int n, const eight<typename P::activation>& x) const {
        float y[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) y[e] = nonlinear<kind>(to_float(x.x[e])).x;
        store_eight<whole>(a.act + at + c, y, n);
    }
};

template <class P, activation kind>
struct activation_backward_op {
    using loaded = struct { eight<typename P::activation> x, grad; };
    ActivationBackwardArgs<P> g;
    __device__ long long begin(const row_place& p) const { return p.row * g.forward.hidden; }
    template <bool whole>
    __device__ loaded load(long long at, const row_place&, int c, int n) const {
        return {load_eight<whole>(g.forward.x + at + c, n), load_eight<whole>(g.grad_act + at + c, n)};
    }
    template <bool whole>
    __device__ void store(long long at, const row_place&, int c, int n, const loaded& l) const {
        float y[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) y[e] = to_float(l.grad.x[e]) * nonlinear<kind>(to_float(l.x.x[e])).y;
        store_eight<whole>(g.grad_x + at + c, y, n);
    }
};

// Calls f with the kind as a constant.
template <class F>
void with_activation(activation kind, F f) {
    if (kind == activation::gelu) f(std::integral_constant<activation, activation::gelu>{});
    if (kind == activation::relu) f(std::integral_constant<activation, activation::relu>{});
    if (kind == activation::silu) f(std::integral_constant<activation, activation::silu>{});
}

}  // namespace detail

/// See SwigluArgs.
template <class P>
void swiglu(const SwigluArgs<P>& a, cudaStream_t stream) {
    each_row(a.rows, a.hidden, detail::swiglu_op<P>{a}, "swiglu", stream);
}

/// See SwigluBackwardArgs.
template <class P>
void swiglu_backward(const SwigluBackwardArgs<P>& g, cudaStream_t stream) {
    each_row(g.forward.rows, g.forward.hidden, detail::swiglu_backward_op<P>{g}, "swiglu_backward", stream);
}

/// See ActivationArgs.
template <class P>
void activation(const ActivationArgs<P>& a, cudaStream_t stream) {
    detail::with_activation(a.kind, [&](auto kind) {
        each_row(a.rows, a.hidden, detail::activation_op<P, kind()>{a}, "activation", stream);
    });
}

/// See ActivationBackwardArgs.
template <class P>
void activation_backward(const ActivationBackwardArgs<P>& g, cudaStream_t stream) {
    detail::with_activation(g.forward.kind, [&](auto kind) {
        each_row(g.forward.rows, g.forward.hidden, detail::activation_backward_op<P, kind()>{g}, "activation_backward",
                 stream);
    });
}

}  // namespace sdepth::inline v0::on_cuda
