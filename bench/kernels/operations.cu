// SPDX-License-Identifier: MIT
// Operations of a step that are bound by memory, each as a share of the copy rate measured here, and the output head.
// Sizes of the 556M model: 32768 rows of width 1024, 16/8 heads of 128, feed-forward 3072. One JSON row a line.
// Each result is looked at first: finite, and a few of its numbers or a sum that must come out.
#include <cmath>
#include <cstdio>
#include <string>

#include "sdepth/kernels/cuda/ends.cuh"
#include "sdepth/kernels/cuda/ffn.cuh"
#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/kernels/cuda/rotary.cuh"
#include "sdepth/kernels/cuda/route.cuh"
#include "sdepth/kernels/cuda/update.cuh"
#include "sdepth/precision.hpp"
#include "timing.cuh"

namespace {

using namespace sdepth_bench;
namespace cuda = sdepth::on_cuda;
using stored = sdepth::precision<bf16, float, float, bf16, float>;

constexpr int rows = 32768, width = 1024, hidden = 3072, heads = 16, head_dim = 128;

double copy_rate = 0;  // bytes a millisecond

void share(const char* name, double bytes, const timing& t) {
    std::printf(
        "{\"name\": \"%s\", \"ours\": %.4f, \"unit\": \"share\", \"ms\": %.4f, \"spread\": %.3f, \"TB/s\": %.3f, "
        "\"peer\": 1, \"peer_name\": \"device copy\"}\n",
        name, bytes / t.median / copy_rate, t.median, t.spread, bytes / t.median / 1e9);
    std::fflush(stdout);
}

void require(bool good, const char* what) {
    if (!good) throw sdepth::error(std::string("bench: ") + what + "; run the GPU tests first");
}
template <class T>
void require_finite(const device_array<T>& x, const char* what) {
    for (const T e : x.read()) require(std::isfinite(static_cast<float>(e)), what);
}

template <class T>
double at(device_array<T>& x, std::size_t i) {
    T e;
    check(cudaMemcpy(&e, x.data() + i, sizeof(T), cudaMemcpyDeviceToHost), "bench");
    return static_cast<double>(static_cast<float>(e));
}
// A few numbers of x [rows, width] are f(row, column), but for a rounding of bfloat16 of what was added.
template <class T, class F>
void require_some(device_array<T>& x, const char* what, const F& f) {
    for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t row = (i * 2087 + 5) % rows, column = (i * 389 + 3) % width;
        const double want = f(row, column), got = at(x, row * width + column);
        require(std::abs(got - want) <= 0x1p-7 * std::max(1., std::abs(want)), what);
    }
}

void measure_copy() {
    device_array<unsigned char> from(std::size_t{1} << 31), to(std::size_t{1} << 31);
    const timing t =
        time_ms([&] { check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToDevice), "bench"); });
    copy_rate = 2. * static_cast<double>(to.size()) / t.median;
    std::printf("{\"name\": \"copy\", \"ours\": %.3f, \"unit\": \"TB/s\", \"spread\": %.3f}\n", copy_rate / 1e9,
                t.spread);
}

void norms() {
    const std::size_t n = std::size_t{rows} * width;
    device_array<bf16> x(n, 1u), y(n), grad_y(n, 2u), grad_x(n);
    device_array<float> weight(width, 3u), rstd(rows), grad_weight(width, 4u);
    device_array<unsigned char> scratch(cuda::rms_norm_backward_scratch(width));
    const sdepth::RmsNormArgs<stored> a{.rows = {1, {rows}},
                                        .width = width,
                                        .x = x.data(),
                                        .weight = weight.data(),
                                        .y = y.data(),
                                        .rstd = rstd.data()};
    const sdepth::RmsNormBackwardArgs<stored> g{
        .forward = a, .grad_y = grad_y.data(), .grad_x = grad_x.data(), .grad_weight = grad_weight.data()};
    const auto forward = [&] { cuda::rms_norm(a, nullptr); };
    const auto backward = [&] { cuda::rms_norm_backward(g, scratch.data(), nullptr); };
    forward(), backward();
    require_finite(y, "rms_norm is not finite"), require_finite(grad_x, "rms_norm_backward is not finite");
    share("rms_norm/32768x1024", 4. * n, time_ms(forward));
    share("rms_norm_backward/32768x1024", 6. * n, time_ms(backward));
    const sdepth::AddArgs<stored> add{
        .rows = {1, {rows}}, .width = width, .x = x.data(), .a = grad_y.data(), .sum = y.data()};
    cuda::add(add, nullptr);
    require_some(y, "add is no sum", [&](std::size_t row, std::size_t column) {
        return at(x, row * width + column) + at(grad_y, row * width + column);
    });
    share("add/32768x1024", 6. * n, time_ms([&] { cuda::add(add, nullptr); }));
}

void moves() {
    const std::size_t n = std::size_t{rows} * width;
    device_array<bf16> x(8 * n, 1u), out(n);
    device_array<int> ids(rows);
    std::vector<int> every_eighth(rows);
    for (int i = 0; i < rows; ++i) every_eighth[static_cast<std::size_t>(i)] = 8 * i + i % 7;
    check(cudaMemcpy(ids.data(), every_eighth.data(), rows * sizeof(int), cudaMemcpyHostToDevice), "bench");
    const sdepth::GatherArgs<stored> a{
        .rows = {1, {rows}}, .sequence = 8 * rows, .width = width, .ids = ids.data(), .x = x.data(), .out = out.data()};
    const sdepth::ScatterArgs<stored> s{.rows = {1, {rows}},
                                        .sequence = 8 * rows,
                                        .width = width,
                                        .adds = true,
                                        .ids = ids.data(),
                                        .out = out.data(),
                                        .x = x.data()};
    const auto source = [&](std::size_t row, std::size_t column) {
        return at(x, static_cast<std::size_t>(every_eighth[row]) * width + column);
    };
    cuda::gather(a, nullptr);
    require_some(out, "gather took other rows", source);
    cuda::scatter(s, nullptr);  // each row to what it came from
    require_some(out, "scatter added other rows",
                 [&](std::size_t row, std::size_t column) { return source(row, column) / 2; });
    share("gather/32768x1024", 4. * n, time_ms([&] { cuda::gather(a, nullptr); }));
    share("scatter_add/32768x1024", 6. * n, time_ms([&] { cuda::scatter(s, nullptr); }));
}

void rotary() {
    const std::size_t n = std::size_t{rows} * heads * head_dim;
    device_array<bf16> x(n, 1u), y(n), grad_y(n, 2u), grad_x(n);
    device_array<float> weight(head_dim, 3u), rstd(std::size_t{rows} * heads), grad_weight(head_dim, 4u);
    device_array<unsigned char> scratch(cuda::qk_prepare_backward_scratch(heads, head_dim));
    const sdepth::QkPrepareArgs<stored> a{.rows = {1, {rows}},
                                          .heads = heads,
                                          .head_dim = head_dim,
                                          .x = x.data(),
                                          .weight = weight.data(),
                                          .y = y.data(),
                                          .rstd = rstd.data()};
    const sdepth::QkPrepareBackwardArgs<stored> g{
        .forward = a, .grad_y = grad_y.data(), .grad_x = grad_x.data(), .grad_weight = grad_weight.data()};
    const auto forward = [&] { cuda::qk_prepare(a, nullptr); };
    const auto backward = [&] { cuda::qk_prepare_backward(g, scratch.data(), nullptr); };
    forward(), backward();
    require_finite(y, "qk_prepare is not finite"), require_finite(grad_x, "qk_prepare_backward is not finite");
    share("qk_prepare/32768x16x128", 4. * n, time_ms(forward));
    share("qk_prepare_backward/32768x16x128", 6. * n, time_ms(backward));
}

void ffn() {
    const std::size_t n = std::size_t{rows} * hidden;
    device_array<bf16> gate(n, 1u), up(n, 2u), act(n), grad(n, 3u), grad_gate(n), grad_up(n);
    const sdepth::SwigluArgs<stored> a{
        .rows = {1, {rows}}, .hidden = hidden, .gate = gate.data(), .up = up.data(), .act = act.data()};
    const sdepth::SwigluBackwardArgs<stored> g{
        .forward = a, .grad_act = grad.data(), .grad_gate = grad_gate.data(), .grad_up = grad_up.data()};
    const auto forward = [&] { cuda::swiglu(a, nullptr); };
    const auto backward = [&] { cuda::swiglu_backward(g, nullptr); };
    forward(), backward();
    require_finite(act, "swiglu is not finite"), require_finite(grad_gate, "swiglu_backward is not finite");
    share("swiglu/32768x3072", 6. * n, time_ms(forward));
    share("swiglu_backward/32768x3072", 10. * n, time_ms(backward));
}

void routing() {
    const std::size_t n = std::size_t{rows} * width;
    device_array<bf16> x(n, 1u), a(n, 2u), f(n, 3u), grad_x(n, 4u), grad_a(n), grad_f(n);
    device_array<float> weight(width, 5u), logits(rows), grad_logits(rows, 6u), bias(rows), grad_weight(width, 7u);
    device_array<int> ids(rows);
    std::vector<int> all(rows);
    for (int i = 0; i < rows; ++i) all[static_cast<std::size_t>(i)] = i;
    check(cudaMemcpy(ids.data(), all.data(), rows * sizeof(int), cudaMemcpyHostToDevice), "bench");
    device_array<unsigned char> scratch(
        std::max(cuda::scatter_residual_backward_scratch(rows), cuda::route_logits_backward_scratch(width)));
    const sdepth::RouteLogitsArgs<stored> l{
        .rows = {1, {rows}}, .width = width, .x = x.data(), .weight = weight.data(), .logits = logits.data()};
    const sdepth::RouteLogitsBackwardArgs<stored> lb{.forward = l,
                                                     .grad_logits = grad_logits.data(),
                                                     .grad_x_logits = grad_logits.data(),
                                                     .grad_weight = grad_weight.data(),
                                                     .grad_x = grad_x.data()};
    const auto read_logits = [&] { cuda::route_logits(l, nullptr); };
    const auto turn_back = [&] { cuda::route_logits_backward(lb, scratch.data(), nullptr); };
    read_logits(), turn_back();
    double squares = 0;
    for (const float e : logits.read()) squares += static_cast<double>(e) * e;
    require(std::abs(squares / rows / width - 1) < .2, "route_logits: sums of normal products have another variance");
    require_finite(grad_x, "route_logits_backward is not finite");
    share("route_logits/32768x1024", 2. * n, time_ms(read_logits));
    share("route_logits_backward/32768x1024", 6. * n, time_ms(turn_back));
    const sdepth::ScatterResidualArgs<stored> r{.rows = {1, {rows}},
                                                .sequence = rows,
                                                .width = width,
                                                .ids = ids.data(),
                                                .gate_logits = logits.data(),
                                                .a = a.data(),
                                                .f = f.data(),
                                                .x = x.data(),
                                                .bias = bias.data()};
    const sdepth::ScatterResidualBackwardArgs<stored> rb{.forward = r,
                                                         .grad_x = grad_x.data(),
                                                         .grad_a = grad_a.data(),
                                                         .grad_f = grad_f.data(),
                                                         .grad_logits = grad_logits.data()};
    const auto add_branches = [&] { cuda::scatter_residual(r, nullptr); };
    const auto turn_branches = [&] { cuda::scatter_residual_backward(rb, scratch.data(), nullptr); };
    device_array<bf16> before(n, 1u);  // x still has these
    add_branches(), turn_branches();
    const auto gate = [&](std::size_t row) { return 1 / (1 + std::exp(-at(logits, row))); };
    require_some(x, "scatter_residual added something else", [&](std::size_t row, std::size_t column) {
        const std::size_t i = row * width + column;
        return at(before, i) + gate(row) * (at(a, i) + at(f, i));
    });
    require_some(grad_f, "scatter_residual_backward is no gated gradient",
                 [&](std::size_t row, std::size_t column) { return gate(row) * at(grad_x, row * width + column); });
    share("scatter_residual/32768x1024", 8. * n, time_ms(add_branches));
    share("scatter_residual_backward/32768x1024", 10. * n, time_ms(turn_branches));
}

void optimiser() {
    const std::size_t n = std::size_t{1} << 28;
    device_array<float> master(n, 1u), grad(n, 2u), first(n, 3u), second(n, 4u, true);
    device_array<bf16> weight(n);
    device_array<sdepth::update_scalars> scalars(1);
    const sdepth::update_scalars s{.rate = 1e-3};
    check(cudaMemcpy(scalars.data(), &s, sizeof(s), cudaMemcpyHostToDevice), "bench");
    const sdepth::AdamwArgs<stored> a{.layers = 16,
                                      .count = static_cast<long long>(n / 16),
                                      .stride = static_cast<long long>(n / 16),
                                      .grad_stride = static_cast<long long>(n / 16),
                                      .second_stride = static_cast<long long>(n / 16),
                                      .scalars = scalars.data(),
                                      .master = master.data(),
                                      .weight = weight.data(),
                                      .grad = grad.data(),
                                      .first = first.data(),
                                      .second = second.data()};
    const double master_before = at(master, 12345), slope = at(first, 12345) * .9 + at(grad, 12345) * .1;
    cuda::adamw(a, nullptr);
    check(cudaDeviceSynchronize(), "bench");
    const double moved = at(master, 12345) - master_before;
    require(std::isfinite(moved) && moved * slope < 0, "adamw moves a number against its step");
    require(std::abs(at(weight, 12345) - at(master, 12345)) <= 0x1p-8 * std::abs(at(master, 12345)),
            "adamw's weight is not its master rounded");
    share("adamw/copy_share", 30. * n, time_ms([&] { cuda::adamw(a, nullptr); }));
    device_array<unsigned char> scratch(cuda::squares_scratch());
    device_array<double> sum(1);
    check(cudaMemset(sum.data(), 0, sizeof(double)), "bench");
    const sdepth::SquaresArgs<stored> q{.count = static_cast<long long>(n), .grad = grad.data(), .sum = sum.data()};
    cuda::squares(q, scratch.data(), nullptr);
    require(std::abs(sum.read()[0] / static_cast<double>(n) - 1) < .01, "squares of normal numbers do not add up");
    share("squares/2^28", 4. * n, time_ms([&] { cuda::squares(q, scratch.data(), nullptr); }));
}

void ends() {
    const int vocab = 50257, chunk = 4096;
    const std::size_t n = std::size_t{rows} * width, v = std::size_t{vocab} * width;
    device_array<bf16> y(n, 1u), weight(v, 2u), grad_y(n), x(n);
    device_array<bf16> logits(static_cast<std::size_t>(sdepth::logit_stride(vocab)) * chunk);
    device_array<float> grad_weight(v);
    check(cudaMemset(grad_weight.data(), 0, v * sizeof(float)), "bench");
    device_array<double> loss(1);
    std::vector<int> some(rows);
    for (int i = 0; i < rows; ++i) some[static_cast<std::size_t>(i)] = static_cast<int>((i * 2654435761u >> 7) % vocab);
    device_array<int> targets(rows);
    check(cudaMemcpy(targets.data(), some.data(), rows * sizeof(int), cudaMemcpyHostToDevice), "bench");
    device_array<unsigned char> scratch(cuda::head_loss_scratch(rows)), space(cuda::products::workspace_bytes);
    cuda::products multiply(space.data());
    sdepth::HeadLossArgs<stored> a{.rows = {1, {rows}},
                                   .width = width,
                                   .vocab = vocab,
                                   .scale = 1. / rows,
                                   .y = y.data(),
                                   .weight = weight.data(),
                                   .targets = targets.data(),
                                   .loss_sum = loss.data(),
                                   .grad_y = grad_y.data(),
                                   .grad_weight = grad_weight.data(),
                                   .logits = logits.data(),
                                   .chunk = chunk};
    check(cudaMemset(loss.data(), 0, sizeof(double)), "bench");
    cuda::head_loss(a, multiply, scratch.data(), nullptr);
    // Logits are normal with variance `width`: the largest of them leads, so the loss is near it; and never below log
    // V.
    require(loss.read()[0] / rows > std::log(double(vocab)), "the loss of random targets is too small");
    require_finite(grad_y, "head_loss is not finite");
    const timing t = time_ms([&] { cuda::head_loss(a, multiply, scratch.data(), nullptr); });
    const double extra = static_cast<double>(logits.size()) * 2 + static_cast<double>(scratch.size() + space.size());
    std::printf(
        "{\"name\": \"head_ce/32768x1024\", \"ours\": %.3f, \"unit\": \"ms\", \"spread\": %.3f, \"extra_MB\": %.0f}\n",
        t.median, t.spread, extra / 1e6);
    // Its parts.
    const auto part = [&](const char* name, const auto& f) {
        const timing p = time_ms(f);
        std::printf("# head_ce/%s %.3f ms\n", name, p.median);
    };
    const long long stride = sdepth::logit_stride(vocab);
    const int whole = vocab / 8 * 8;
    const auto held = static_cast<std::size_t>(stride) * sizeof(bf16);
    part("logits/4096", [&] {
        multiply({.m = chunk,
                  .n = whole,
                  .k = width,
                  .b_transposed = true,
                  .a = y.data(),
                  .b = weight.data(),
                  .a_stride = width,
                  .b_stride = width,
                  .c_stride = stride},
                 logits.data(), nullptr);
    });
    part("softmax/4096", [&] {
        cuda::head_row_kernel<stored><<<chunk, 512, held>>>(a, 0, stride, reinterpret_cast<float*>(scratch.data()));
    });
    part("grad_y/4096", [&] {
        multiply({.m = chunk,
                  .n = width,
                  .k = whole,
                  .a = logits.data(),
                  .b = weight.data(),
                  .a_stride = stride,
                  .b_stride = width,
                  .c_stride = width,
                  .beta = 1},
                 grad_y.data(), nullptr);
    });
    const auto weights = [&](int from, int m) {
        multiply({.m = m,
                  .n = width,
                  .k = chunk,
                  .a_transposed = true,
                  .a = logits.data() + from,
                  .b = y.data(),
                  .a_stride = stride,
                  .b_stride = width,
                  .c_stride = width,
                  .beta = 1},
                 grad_weight.data() + static_cast<std::size_t>(from) * width, nullptr);
    };
    part("grad_weight/4096", [&] { weights(0, whole); });
    part("grad_weight/4096/all", [&] { weights(0, vocab); });
    part("grad_weight/4096/rest", [&] { weights(whole, vocab - whole); });
    const sdepth::EmbedArgs<stored> e{.rows = {1, {rows}},
                                      .width = width,
                                      .vocab = vocab,
                                      .tokens = targets.data(),
                                      .table = weight.data(),
                                      .x = x.data()};
    cuda::embed(e, nullptr);
    require_some(x, "embed took other rows", [&](std::size_t row, std::size_t column) {
        return at(weight, static_cast<std::size_t>(some[row]) * width + column);
    });
    share("embed/32768x1024", 4. * n, time_ms([&] { cuda::embed(e, nullptr); }));
    const auto turn_back = [&] {
        cuda::embed_backward<stored>({.forward = e, .grad_x = y.data(), .grad_table = grad_weight.data()}, nullptr);
    };
    turn_back();
    require_finite(grad_weight, "embed_backward is not finite");
    const timing back = time_ms(turn_back);
    std::printf("{\"name\": \"embed_backward/32768x1024\", \"ours\": %.3f, \"unit\": \"ms\"}\n", back.median);
}

}  // namespace

int main() {
    measure_copy();
    norms(), moves(), rotary(), ffn(), routing(), optimiser(), ends();
}
