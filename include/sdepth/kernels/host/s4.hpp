// SPDX-License-Identifier: MIT
// Diagonal real S4: convolution by chunks, recurrence, and backward. One task a channel. Rank 5.
#pragma once

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/recurrence.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// h' = a h + b x, held over one step: h(step) = keep h(0) + write x, with x constant in between (zero-order hold). For
/// diagonal systems this is the matrix exponential of [a b; 0 0] step. In double whatever the backend's type, for the
/// differences below lose digits.
struct held {
    double keep, write;              // exp(step a), (exp(step a) - 1) / a * b
    double keep_by_a, keep_by_step;  // slopes
    double write_by_a, write_by_b, write_by_step;

    held(double a, double b, double step)
        : keep(std::exp(step * a)),
          write(std::expm1(step * a) / a * b),
          keep_by_a(step * keep),
          keep_by_step(a * keep),
          write_by_a((step * keep * a - std::expm1(step * a)) / (a * a) * b),
          write_by_b(std::expm1(step * a) / a),
          write_by_step(keep * b) {}
};

/// One channel.
template <class T>
struct s4_channel {
    const S4Args<uniform_precision<T>>& args;
    int c;
    std::vector<double> rate;  // [states], A, negative
    double step;
    std::vector<T> keep, write;  // [states]
    const T* read;               // [states], C

    s4_channel(const S4Args<uniform_precision<T>>& a, int channel)
        : args(a), c(channel), step(std::exp(static_cast<double>(a.log_step[c]))), read(a.c + at(0)) {
        for (int n = 0; n < a.states; ++n) {
            rate.push_back(-std::exp(static_cast<double>(a.a_log[at(n)])));
            const held h = held_of(n);
            keep.push_back(static_cast<T>(h.keep));
            write.push_back(static_cast<T>(h.write));
        }
    }
    long long at(int n) const { return static_cast<long long>(c) * args.states + n; }
    held held_of(int n) const { return {rate[static_cast<std::size_t>(n)], static_cast<double>(args.b[at(n)]), step}; }
    long long x_at(int b, int i) const { return (args.rows.first(b) + i) * args.channels + c; }
    const int* first_of(int b) const { return args.first == nullptr ? nullptr : args.first + args.rows.first(b); }

    void advance(int b, int i, const T* before, T* after) const {
        const bool starts = starts_document(first_of(b), i);
        const T x = args.x[x_at(b, i)];
        for (std::size_t n = 0; n < keep.size(); ++n) after[n] = (starts ? T{0} : keep[n] * before[n]) + write[n] * x;
    }
};

// Calls f(channel, b, state) for every channel of every sequence.
template <class T, class F>
void for_s4_channels(workers& team, const S4Args<uniform_precision<T>>& a, const F& f) {
    team.run(a.channels, [&](int c) {
        const s4_channel<T> channel(a, c);
        std::vector<T> none;
        for (int b = 0; b < a.rows.batch; ++b) {
            none.assign(static_cast<std::size_t>(a.states), T{0});
            f(channel, b,
              a.state == nullptr ? none.data() : a.state + (static_cast<long long>(b) * a.channels + c) * a.states);
        }
    });
}

}  // namespace detail

/// See S4Args: the parallel form. Inside a chunk y is a convolution of x with K_t = sum_n C_n keep_n^t write_n.
template <class T>
void s4(workers& team, const S4Args<uniform_precision<T>>& a) {
    const int most = std::min(a.chunk, a.rows.each.capacity);
    detail::for_s4_channels<T>(team, a, [&](const detail::s4_channel<T>& channel, int b, T* state) {
        const std::size_t states = channel.keep.size();
        const int rows = a.rows.each.of(b);
        const int* first = channel.first_of(b);
        std::vector<T> powers(static_cast<std::size_t>(most + 1) * states), kernel(static_cast<std::size_t>(most));
        const auto power = [&](int t) { return powers.data() + static_cast<std::size_t>(t) * states; };
        for (int t = 0; t <= most; ++t)
            for (std::size_t n = 0; n < states; ++n)
                power(t)[n] = static_cast<T>(std::exp(t * channel.step * channel.rate[n]));
        for (int t = 0; t < most; ++t)
            for (std::size_t n = 0; n < states; ++n)
                kernel[static_cast<std::size_t>(t)] += channel.read[n] * power(t)[n] * channel.write[n];
        for (int begin = 0; begin < rows; begin += a.chunk) {
            const int last = std::min(rows, begin + a.chunk) - 1;
            for (int i = begin; i <= last; ++i) {
                T sum = a.skip[channel.c] * a.x[channel.x_at(b, i)];
                for (int j = detail::start_in_chunk(first, i, begin); j <= i; ++j)
                    sum += kernel[static_cast<std::size_t>(i - j)] * a.x[channel.x_at(b, j)];
                if (detail::continues(first, i, begin))
                    for (std::size_t n = 0; n < states; ++n)
                        sum += channel.read[n] * power(i - begin + 1)[n] * state[n];
                a.y[channel.x_at(b, i)] = sum;
            }
            const bool carried = detail::continues(first, last, begin);
            for (std::size_t n = 0; n < states; ++n) {
                state[n] = carried ? power(last - begin + 1)[n] * state[n] : T{0};
                for (int j = detail::start_in_chunk(first, last, begin); j <= last; ++j)
                    state[n] += power(last - j)[n] * channel.write[n] * a.x[channel.x_at(b, j)];
            }
        }
    });
}

/// See S4Args: the recurrence.
template <class T>
void s4_step(workers& team, const S4Args<uniform_precision<T>>& a) {
    detail::for_s4_channels<T>(team, a, [&](const detail::s4_channel<T>& channel, int b, T* state) {
        for (int i = 0; i < a.rows.each.of(b); ++i) {
            channel.advance(b, i, state, state);
            const long long at = channel.x_at(b, i);
            a.y[at] = detail::dot(channel.read, state, a.states) + a.skip[channel.c] * a.x[at];
        }
    });
}

/// See S4BackwardArgs.
template <class T>
void s4_backward(workers& team, const S4BackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const auto states = static_cast<std::size_t>(a.states);
    team.run(a.channels, [&](int c) {
        const detail::s4_channel<T> channel(a, c);
        std::vector<T> grad_keep(states), grad_write(states);
        for (int b = 0; b < a.rows.batch; ++b) {
            const auto back = [&](int i, const T* before, const T* after, T* grad) {
                const long long at = channel.x_at(b, i);
                const T gy = g.grad_y[at], x = a.x[at];
                const bool starts = detail::starts_document(channel.first_of(b), i);
                T grad_x = a.skip[c] * gy;
                for (std::size_t n = 0; n < states; ++n) {
                    grad[n] += channel.read[n] * gy;
                    g.grad_c[channel.at(0) + static_cast<long long>(n)] += after[n] * gy;
                    grad_x += grad[n] * channel.write[n];
                    grad_write[n] += grad[n] * x;
                    grad_keep[n] += starts ? T{0} : grad[n] * before[n];
                    grad[n] = starts ? T{0} : grad[n] * channel.keep[n];
                }
                g.grad_x[at] = grad_x;
                g.grad_skip[c] += gy * x;
            };
            detail::reverse_recurrence<T>(
                a.rows.each.of(b), states,
                [&](int i, const T* before, T* after) { channel.advance(b, i, before, after); }, back);
        }
        double grad_step = 0;
        for (int n = 0; n < a.states; ++n) {
            const detail::held h = channel.held_of(n);
            const double keep = static_cast<double>(grad_keep[static_cast<std::size_t>(n)]);
            const double write = static_cast<double>(grad_write[static_cast<std::size_t>(n)]);
            g.grad_b[channel.at(n)] += static_cast<T>(write * h.write_by_b);
            g.grad_a_log[channel.at(n)] +=
                static_cast<T>((keep * h.keep_by_a + write * h.write_by_a) * channel.rate[static_cast<std::size_t>(n)]);
            grad_step += keep * h.keep_by_step + write * h.write_by_step;
        }
        g.grad_log_step[c] += static_cast<T>(grad_step * channel.step);
    });
}

}  // namespace sdepth::inline v0::on_host
