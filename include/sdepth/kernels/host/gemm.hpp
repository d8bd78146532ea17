// SPDX-License-Identifier: MIT
// Matrix products on the host: one source for every scalar, and OpenBLAS for float where SDEPTH_CBLAS says so. The
// order of every sum is fixed, whatever the number of threads. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "sdepth/config.hpp"
#include "sdepth/error.hpp"
#include "sdepth/kernels/host/parallel.hpp"

#if SDEPTH_CBLAS
#include <cblas.h>
#endif

namespace sdepth::inline v0::on_host {

/// A matrix in row-major memory, `stride` numbers from row to row; `transposed`: it stands for its transpose.
template <class T>
struct operand {
    const T* data = nullptr;
    int stride = 0;
    bool transposed = false;

    /// Where the element (row, col) of what it stands for lies.
    const T* at(std::ptrdiff_t row, std::ptrdiff_t col) const {
        return transposed ? data + col * stride + row : data + row * stride + col;
    }
};

/// c = alpha a b + beta c, a [rows, depth], b [depth, cols], c [rows, cols]. With beta = 0 c is not read.
template <class T>
struct product {
    int rows = 0, cols = 0, depth = 0;
    operand<T> a{}, b{};
    T* c = nullptr;
    int stride = 0;  // of c
    T alpha = 1, beta = 0;
};

namespace detail {

// Rows and columns of the tile of c that stays in registers, and the sizes of the packed blocks of a and b.
template <class T>
struct tile {
    static constexpr int rows = 6, cols = static_cast<int>(32 / sizeof(T));
    static constexpr int block_rows = 16 * rows, block_cols = 64 * cols, block_depth = 256;
};

// Packs [rows, depth], found at from[row * row_step + p * depth_step], into strips of `height` rows, depth-major, zero
// beyond the matrix.
template <int height, class T>
void pack(int rows, int depth, const T* from, std::ptrdiff_t row_step, std::ptrdiff_t depth_step, T* to) {
    for (int strip = 0; strip < rows;
         strip += height, from += height * row_step, to += std::ptrdiff_t{height} * depth) {
        const int live = std::min(height, rows - strip);
        if (live < height) std::fill_n(to, std::ptrdiff_t{height} * depth, T{0});
        if (depth_step == 1)
            for (int r = 0; r < live; ++r)
                for (int p = 0; p < depth; ++p) to[p * height + r] = from[r * row_step + p];
        else
            for (int p = 0; p < depth; ++p)
                for (int r = 0; r < live; ++r) to[p * height + r] = from[r * row_step + p * depth_step];
    }
}

// sum = the product of two packed strips; `sum` stays in registers.
template <class T>
void multiply_strips(int depth, const T* left, const T* right, T* out) {
    using tiles = tile<T>;
    T sum[tiles::rows][tiles::cols] = {};
    for (int p = 0; p < depth; ++p, left += tiles::rows, right += tiles::cols)
        for (int r = 0; r < tiles::rows; ++r)
            for (int s = 0; s < tiles::cols; ++s) sum[r][s] += left[r] * right[s];
    for (int r = 0; r < tiles::rows; ++r)
        for (int s = 0; s < tiles::cols; ++s) out[r * tiles::cols + s] = sum[r][s];
}

template <class T>
void multiply_built_in(const product<T>& m) {
    using tiles = tile<T>;
    for (int i = 0; i < m.rows; ++i) {
        T* c = m.c + std::ptrdiff_t{i} * m.stride;
        for (int j = 0; j < m.cols; ++j) c[j] = m.beta == T{0} ? T{0} : m.beta * c[j];
    }
    const std::ptrdiff_t a_row = m.a.transposed ? 1 : m.a.stride, a_depth = m.a.transposed ? m.a.stride : 1;
    const std::ptrdiff_t b_depth = m.b.transposed ? 1 : m.b.stride, b_col = m.b.transposed ? m.b.stride : 1;
    const int most_rows = std::min(tiles::block_rows, m.rows + tiles::rows);
    const int most_cols = std::min(tiles::block_cols, m.cols + tiles::cols);
    const int most_depth = std::min(tiles::block_depth, m.depth);
    std::vector<T> a(static_cast<std::size_t>(most_rows) * static_cast<std::size_t>(most_depth));
    std::vector<T> b(static_cast<std::size_t>(most_cols) * static_cast<std::size_t>(most_depth));
    T sum[tiles::rows * tiles::cols];
    for (int j0 = 0; j0 < m.cols; j0 += tiles::block_cols) {
        const int cols = std::min(tiles::block_cols, m.cols - j0);
        for (int p0 = 0; p0 < m.depth; p0 += tiles::block_depth) {
            const int depth = std::min(tiles::block_depth, m.depth - p0);
            pack<tiles::cols>(cols, depth, m.b.data + p0 * b_depth + j0 * b_col, b_col, b_depth, b.data());
            for (int i0 = 0; i0 < m.rows; i0 += tiles::block_rows) {
                const int rows = std::min(tiles::block_rows, m.rows - i0);
                pack<tiles::rows>(rows, depth, m.a.data + i0 * a_row + p0 * a_depth, a_row, a_depth, a.data());
                for (int j = 0; j < cols; j += tiles::cols)
                    for (int i = 0; i < rows; i += tiles::rows) {
                        multiply_strips(depth, a.data() + std::ptrdiff_t{i} * depth,
                                        b.data() + std::ptrdiff_t{j} * depth, sum);
                        const int width = std::min(tiles::cols, cols - j);
                        for (int r = 0; r < std::min(tiles::rows, rows - i); ++r) {
                            T* c = m.c + std::ptrdiff_t{i0 + i + r} * m.stride + j0 + j;
                            for (int s = 0; s < width; ++s) c[s] += m.alpha * sum[r * tiles::cols + s];
                        }
                    }
            }
        }
    }
}

}  // namespace detail

/// One product on the calling thread.
template <class T>
void multiply(const product<T>& m) {
    if (m.rows < 1 || m.cols < 1) return;
#if SDEPTH_CBLAS
    if constexpr (std::is_same_v<T, float>) {
        if (m.depth > 0) {
            cblas_sgemm(CblasRowMajor, m.a.transposed ? CblasTrans : CblasNoTrans,
                        m.b.transposed ? CblasTrans : CblasNoTrans, m.rows, m.cols, m.depth, m.alpha, m.a.data,
                        m.a.stride, m.b.data, m.b.stride, m.beta, m.c, m.stride);
            return;
        }
    }
#endif
    detail::multiply_built_in(m);
}

namespace detail {

// Width of the strips that threads share: wide enough for the packing to pay (a strip of 64 runs at 3/4 of the speed of
// one of 256), narrow enough for several threads. It depends on the side alone.
inline int strip_size(int side) {
    const int size = side <= 256 ? std::max(64, side / 2) : side <= 1024 ? std::max(128, side / 4) : side / 16;
    return (std::max(size, side > 1024 ? 256 : 0) + 15) / 16 * 16;
}

// Rows and columns of a task: strips of the longer side, cut in halves where they are fewer than the threads may be.
struct task_shape {
    int rows, cols, across;  // across: tasks side by side
    int tasks;

    task_shape(int all_rows, int all_cols) {
        const bool by_rows = all_rows >= all_cols;
        const int longer = std::max({1, all_rows, all_cols}), shorter = std::max(1, std::min(all_rows, all_cols));
        const int strip = strip_size(longer),
                  other = longer < 16 * strip && shorter >= 256 ? (shorter + 1) / 2 : shorter;
        rows = by_rows ? strip : other, cols = by_rows ? other : strip;
        across = (all_cols + cols - 1) / cols;
        tasks = (all_rows + rows - 1) / rows * across;
    }
};

}  // namespace detail

/// One product on all threads.
template <class T>
void multiply(workers& team, const product<T>& m) {
    const detail::task_shape each(m.rows, m.cols);
    team.run(each.tasks, [&](int task) {
        const int row = task / each.across * each.rows, col = task % each.across * each.cols;
        product<T> part = m;
        part.rows = std::min(each.rows, m.rows - row);
        part.cols = std::min(each.cols, m.cols - col);
        part.a.data = m.a.at(row, 0);
        part.b.data = m.b.at(0, col);
        part.c += std::ptrdiff_t{row} * m.stride + col;
        multiply(part);
    });
}

/// Prepares the library that multiplies floats: one thread inside each call, for the workers share out the calls
/// (process-wide), and a check against the built-in product, which old OpenBLAS builds fail on newer processors.
/// Nothing to do without OpenBLAS.
inline void prepare_products() {
#if SDEPTH_CBLAS
    openblas_set_num_threads(1);
    constexpr int rows = 37, cols = 29, depth = 300;
    std::vector<float> a(rows * depth), b(depth * cols), got(rows * cols), want(rows * cols);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 37 % 31) - 15;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 41 % 29) - 14;
    // Small integers: every product and sum is exact, in any order.
    for (const bool a_turned : {false, true})
        for (const bool b_turned : {false, true}) {
            product<float> m{rows,
                             cols,
                             depth,
                             {a.data(), a_turned ? rows : depth, a_turned},
                             {b.data(), b_turned ? depth : cols, b_turned},
                             got.data(),
                             cols};
            multiply(m);
            m.c = want.data();
            detail::multiply_built_in(m);
            if (got != want)
                throw error(
                    std::string("host<float>: sgemm of ") + openblas_get_config() +
                    " gives wrong products on this processor; update OpenBLAS, set OPENBLAS_CORETYPE to an older "
                    "one, or build with SDEPTH_CBLAS=OFF");
        }
#endif
}

}  // namespace sdepth::inline v0::on_host
