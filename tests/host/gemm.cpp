// SPDX-License-Identifier: MIT
// Matrix products of the host backend against triple loops in fp64.
#include "sdepth/kernels/host/gemm.hpp"

#include <vector>

#include "support/catch.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::on_host::operand;
using sdepth::on_host::product;
using sdepth::on_host::workers;

// A product in one type; strides leave two columns free, which nobody may touch.
template <class T>
struct problem {
    std::vector<T> a, b, c;
    product<T> m;

    problem(int rows, int cols, int depth, bool a_turned, bool b_turned, double alpha, double beta) {
        const int a_rows = a_turned ? depth : rows, a_stride = (a_turned ? rows : depth) + 2;
        const int b_rows = b_turned ? cols : depth, b_stride = (b_turned ? depth : cols) + 2;
        a = samples<T>(a_rows * a_stride, 1);
        b = samples<T>(b_rows * b_stride, 2);
        c = beta == 0 ? poison<T>(rows * (cols + 2)) : samples<T>(rows * (cols + 2), 3);
        m = {rows, cols, depth, {a.data(), a_stride, a_turned}, {b.data(), b_stride, b_turned}, c.data(), cols + 2};
        m.alpha = static_cast<T>(alpha), m.beta = static_cast<T>(beta);
    }

    std::vector<double> reference() const {
        std::vector<double> want(c.begin(), c.end());
        for (int i = 0; i < m.rows; ++i)
            for (int j = 0; j < m.cols; ++j) {
                double sum = 0;
                for (int p = 0; p < m.depth; ++p)
                    sum += static_cast<double>(*m.a.at(i, p)) * static_cast<double>(*m.b.at(p, j));
                double& out = want[static_cast<std::size_t>(i * m.stride + j)];
                out = static_cast<double>(m.alpha) * sum + (m.beta == T{0} ? 0 : static_cast<double>(m.beta) * out);
            }
        return want;
    }
};

template <class T>
void check_products(bool built_in) {
    struct shape {
        int rows, cols, depth;
    };
    workers team(2);
    for (const shape s : {shape{1, 1, 1},
                          {6, 8, 4},
                          {7, 9, 300},
                          {65, 3, 17},
                          {3, 130, 5},
                          {110, 35, 530},
                          {300, 257, 9},
                          {257, 520, 9},
                          {5, 4, 0}})
        for (const bool a_turned : {false, true})
            for (const bool b_turned : {false, true})
                for (const double beta : {0.0, 1.0, -.5}) {
                    problem<T> p(s.rows, s.cols, s.depth, a_turned, b_turned, beta == 0 ? 1 : .75, beta);
                    const std::vector<double> want = p.reference();
                    if (built_in)
                        sdepth::on_host::detail::multiply_built_in(p.m);
                    else
                        sdepth::on_host::multiply(team, p.m);
                    CAPTURE(s.rows, s.cols, s.depth, a_turned, b_turned, beta);
                    CHECK(distance(p.c, want) <= tolerance<T>(s.depth, 3));
                }
}

}  // namespace

TEST_CASE("products equal triple loops", "[gemm]") {
    sdepth::on_host::prepare_products();
    check_products<double>(true);
    check_products<float>(true);
    check_products<float>(false);
    check_products<double>(false);
}

TEST_CASE("products do not depend on threads or on the run", "[gemm]") {
    sdepth::on_host::prepare_products();
    workers one(1), three(3);
    for (const bool turned : {false, true}) {
        problem<float> p(301, 150, 77, turned, !turned, 1, 0);
        sdepth::on_host::multiply(one, p.m);
        const std::vector<float> first = p.c;
        for (int run = 0; run < 5; ++run) {
            p.c = poison<float>(301 * 152);
            p.m.c = p.c.data();
            sdepth::on_host::multiply(three, p.m);
            REQUIRE(same_bits(p.c, first));
        }
    }
}
