// SPDX-License-Identifier: MIT
// The selective scan of Mamba: by chunks, row after row, and backward. One task a block of channels. Rank 5.
#pragma once

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/recurrence.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// The map h -> scale h + shift of one or more rows.
template <class T>
struct affine {
    T scale = 1, shift = 0;

    /// This map, then the next. Associative.
    affine then(const affine& next) const { return {next.scale * scale, next.scale * shift + next.shift}; }
    T operator()(T h) const { return scale * h + shift; }
};

/// One channel of one sequence.
template <class T>
struct scan_channel {
    const SelectiveScanArgs<uniform_precision<T>>& a;
    int rows;
    int c;
    long long from;  // first row
    const int* first;
    std::vector<T> transition;  // [states], A, negative

    scan_channel(const SelectiveScanArgs<uniform_precision<T>>& args, int b, int channel)
        : a(args),
          rows(a.rows.each.of(b)),
          c(channel),
          from(a.rows.first(b)),
          first(a.first == nullptr ? nullptr : a.first + from),
          transition(static_cast<std::size_t>(a.states)) {
        for (std::size_t n = 0; n < transition.size(); ++n)
            transition[n] = -std::exp(a.a_log[static_cast<std::size_t>(c) * transition.size() + n]);
    }
    long long at(int i) const { return (from + i) * a.channels + c; }
    T step_of(int i) const { return softplus(a.dt[at(i)]); }
    const T* b_of(int i) const { return a.bc + (from + i) * 2 * a.states; }
    const T* c_of(int i) const { return b_of(i) + a.states; }
    // How row i maps state n.
    affine<T> map(int i, std::size_t n, T step) const {
        return {starts_document(first, i) ? T{0} : std::exp(step * transition[n]), step * b_of(i)[n] * a.x[at(i)]};
    }
    void advance(int i, const T* before, T* after) const {
        const T step = step_of(i);
        for (std::size_t n = 0; n < transition.size(); ++n) after[n] = map(i, n, step)(before[n]);
    }
    void read_out(int i, const T* state) const { a.y[at(i)] = dot(c_of(i), state, a.states) + a.skip[c] * a.x[at(i)]; }
};

// Calls f(channel, its state) for every channel of every sequence.
template <class T, class F>
void for_scan_channels(workers& team, const SelectiveScanArgs<uniform_precision<T>>& a, const F& f) {
    team.run(a.rows.batch * a.channels, [&](int task) {
        const scan_channel<T> channel(a, task / a.channels, task % a.channels);
        std::vector<T> none(a.state == nullptr ? channel.transition.size() : 0);
        f(channel, a.state == nullptr ? none.data() : a.state + static_cast<long long>(task) * a.states);
    });
}

}  // namespace detail

/// See SelectiveScanArgs: the parallel form. A chunk composes the maps of its rows without knowing the state that it
/// starts from.
template <class T>
void selective_scan(workers& team, const SelectiveScanArgs<uniform_precision<T>>& a) {
    detail::for_scan_channels<T>(team, a, [&](const detail::scan_channel<T>& channel, T* state) {
        const std::size_t states = channel.transition.size();
        std::vector<detail::affine<T>> maps(states);
        std::vector<T> h(states);
        for (int begin = 0; begin < channel.rows; begin += a.chunk) {
            std::fill(maps.begin(), maps.end(), detail::affine<T>{});
            for (int i = begin; i < std::min(channel.rows, begin + a.chunk); ++i) {
                const T step = channel.step_of(i);
                for (std::size_t n = 0; n < states; ++n) {
                    maps[n] = maps[n].then(channel.map(i, n, step));
                    h[n] = maps[n](state[n]);
                }
                channel.read_out(i, h.data());
            }
            std::copy(h.begin(), h.end(), state);
        }
    });
}

/// See SelectiveScanArgs: the recurrence.
template <class T>
void selective_scan_step(workers& team, const SelectiveScanArgs<uniform_precision<T>>& a) {
    detail::for_scan_channels<T>(team, a, [&](const detail::scan_channel<T>& channel, T* state) {
        for (int i = 0; i < channel.rows; ++i) {
            channel.advance(i, state, state);
            channel.read_out(i, state);
        }
    });
}

/// See SelectiveScanBackwardArgs. All channels share B and C: each block of channels keeps its share, and they add up
/// in order of blocks.
template <class T>
void selective_scan_backward(workers& team, const SelectiveScanBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const auto states = static_cast<std::size_t>(a.states);
    const int block_size = (a.channels + 15) / 16, blocks = (a.channels + block_size - 1) / block_size;
    for (int b = 0; b < a.rows.batch; ++b) {
        const std::size_t shared = static_cast<std::size_t>(a.rows.each.of(b)) * 2 * states;
        std::vector<T> grad_bc(shared * static_cast<std::size_t>(blocks));
        team.run(blocks, [&](int block) {
            T* mine = grad_bc.data() + shared * static_cast<std::size_t>(block);
            for (int c = block * block_size; c < std::min(a.channels, (block + 1) * block_size); ++c) {
                const detail::scan_channel<T> channel(a, b, c);
                const auto back = [&](int i, const T* before, const T* after, T* grad) {
                    const long long at = channel.at(i);
                    const T gy = g.grad_y[at], x = a.x[at], step = channel.step_of(i);
                    T* grad_b = mine + static_cast<std::size_t>(i) * 2 * states;
                    T grad_step = 0, grad_x = a.skip[c] * gy;
                    for (std::size_t n = 0; n < states; ++n) {
                        const T keep = channel.map(i, n, step).scale;
                        const T write = channel.b_of(i)[n], rate = channel.transition[n];
                        grad[n] += channel.c_of(i)[n] * gy;
                        grad_b[states + n] += after[n] * gy;
                        grad_b[n] += grad[n] * step * x;
                        grad_x += grad[n] * step * write;
                        grad_step += grad[n] * (keep * rate * before[n] + write * x);
                        g.grad_a_log[static_cast<std::size_t>(c) * states + n] +=
                            grad[n] * keep * step * before[n] * rate;
                        grad[n] *= keep;
                    }
                    g.grad_x[at] = grad_x;
                    g.grad_dt[at] = grad_step * detail::sigmoid(a.dt[at]);
                    g.grad_skip[c] += gy * x;
                };
                detail::reverse_recurrence<T>(
                    channel.rows, states, [&](int i, const T* before, T* after) { channel.advance(i, before, after); },
                    back);
            }
        });
        T* out = g.grad_bc + a.rows.first(b) * 2 * a.states;
        std::copy_n(grad_bc.data(), shared, out);
        for (std::size_t block = 1; block < static_cast<std::size_t>(blocks); ++block)
            for (std::size_t e = 0; e < shared; ++e) out[e] += grad_bc[block * shared + e];
    }
}

}  // namespace sdepth::inline v0::on_host
