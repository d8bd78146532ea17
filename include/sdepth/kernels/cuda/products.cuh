// SPDX-License-Identifier: MIT
// Products of bfloat16 matrices by cuBLASLt, summed in fp32. Rank 5.
#pragma once

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth::inline v0::on_cuda {

/// C = alpha A B + beta (C or addend) of row-major matrices: A [m, k], B [k, n], C [m, n]; or `batch` such products.
struct matrix_product {
    int m = 0, n = 0, k = 0;
    bool a_transposed = false;  ///< stored as [k, m]
    bool b_transposed = false;  ///< stored as [n, k]
    const __nv_bfloat16* a = nullptr;
    const __nv_bfloat16* b = nullptr;
    long long a_stride = 0, b_stride = 0, c_stride = 0;  ///< numbers from row to row, as stored
    float alpha = 1, beta = 0;
    const void* addend = nullptr;  ///< what beta multiplies, as C is stored; null: C itself
    int batch = 1;
    long long a_batch = 0, b_batch = 0, c_batch = 0;  ///< numbers from matrix to matrix
};

/// Multiplies matrices; how is decided once for each shape. One stream at a time, because of the workspace.
class products {
  public:
    /// What cuBLAS asks for on Hopper.
    static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

    /// @param workspace  device memory of `workspace_bytes`, 256-byte aligned, any content; the caller's.
    ///                   Null: products are made in ways that need none
    explicit products(void* workspace) : workspace_(workspace) { check(cublasLtCreate(&handle_)); }
    /// Of the products that follow.
    void use_workspace(void* workspace) {
        if ((workspace == nullptr) != (workspace_ == nullptr)) plans_.clear();
        workspace_ = workspace;
    }
    ~products() { cublasLtDestroy(handle_); }
    products(const products&) = delete;
    products& operator=(const products&) = delete;

    void operator()(const matrix_product& p, __nv_bfloat16* c, cudaStream_t stream) {
        multiply(p, c, CUDA_R_16BF, stream);
    }
    void operator()(const matrix_product& p, float* c, cudaStream_t stream) { multiply(p, c, CUDA_R_32F, stream); }

  private:
    using key = std::array<long long, 17>;

    static void check(cublasStatus_t status) {
        if (status != CUBLAS_STATUS_SUCCESS)
            throw error(std::string("product: cuBLASLt says '") + cublasLtGetStatusString(status) +
                        "'; check the device, its free memory and the sizes given");
    }

    // A matrix as cuBLASLt sees it: our rows are its columns.
    class layout {
      public:
        layout(cudaDataType_t type, long long rows, long long cols, long long stride, int batch, long long step) {
            check(cublasLtMatrixLayoutCreate(&at_, type, static_cast<std::uint64_t>(cols),
                                             static_cast<std::uint64_t>(rows), stride));
            check(cublasLtMatrixLayoutSetAttribute(at_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
            check(cublasLtMatrixLayoutSetAttribute(at_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                                   sizeof(step)));
        }
        ~layout() { cublasLtMatrixLayoutDestroy(at_); }
        layout(const layout&) = delete;
        layout& operator=(const layout&) = delete;
        cublasLtMatrixLayout_t get() const { return at_; }

      private:
        cublasLtMatrixLayout_t at_ = nullptr;
    };
    struct description {
        cublasLtMatmulDesc_t at = nullptr;
        description(bool first_transposed, bool second_transposed) {
            check(cublasLtMatmulDescCreate(&at, CUBLAS_COMPUTE_32F, CUDA_R_32F));
            const cublasOperation_t first = first_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                    second = second_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
            check(cublasLtMatmulDescSetAttribute(at, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)));
            check(cublasLtMatmulDescSetAttribute(at, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)));
        }
        ~description() { cublasLtMatmulDescDestroy(at); }
        description(const description&) = delete;
        description& operator=(const description&) = delete;
    };
    struct preference {
        cublasLtMatmulPreference_t at = nullptr;
        preference() { check(cublasLtMatmulPreferenceCreate(&at)); }
        ~preference() { cublasLtMatmulPreferenceDestroy(at); }
        preference(const preference&) = delete;
        preference& operator=(const preference&) = delete;
        template <class T>
        void set(cublasLtMatmulPreferenceAttributes_t what, T value) {
            check(cublasLtMatmulPreferenceSetAttribute(at, what, &value, sizeof(value)));
        }
    };

    // Largest power of two up to 256 that the address is a multiple of.
    static std::uint32_t alignment(const void* p) {
        const auto address = reinterpret_cast<std::uintptr_t>(p) | 256u;
        return static_cast<std::uint32_t>(address & (~address + 1u));
    }

    void multiply(const matrix_product& p, void* c, cudaDataType_t type, cudaStream_t stream) {
        if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) return;
        // C' = B' A', for our rows are its columns.
        const layout a(CUDA_R_16BF, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.a_stride, p.batch,
                       p.a_batch);
        const layout b(CUDA_R_16BF, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, p.b_stride, p.batch,
                       p.b_batch);
        const layout out(type, p.m, p.n, p.c_stride, p.batch, p.c_batch);
        const description what(p.b_transposed, p.a_transposed);
        const key shape{p.m,          p.n,          p.k,        p.a_transposed, p.b_transposed,
                        p.a_stride,   p.b_stride,   p.c_stride, p.batch,        p.a_batch,
                        p.b_batch,    p.c_batch,    type,       alignment(p.a), alignment(p.b),
                        alignment(c), p.beta == 0.f};
        auto plan = plans_.find(shape);
        if (plan == plans_.end())
            plan = plans_.emplace(shape, choose(what, a, b, out, alignment(p.b), alignment(p.a), alignment(c))).first;
        const void* const addend = p.addend != nullptr ? p.addend : c;
        const cublasStatus_t status =
            cublasLtMatmul(handle_, what.at, &p.alpha, p.b, b.get(), p.a, a.get(), &p.beta, addend, out.get(), c,
                           out.get(), &plan->second, workspace_, room(), stream);
        if (status != CUBLAS_STATUS_SUCCESS)
            throw error("product of " + std::to_string(p.m) + " x " + std::to_string(p.k) + " and " +
                        std::to_string(p.k) + " x " + std::to_string(p.n) + ": cuBLASLt says '" +
                        cublasLtGetStatusString(status) + "'; check the device, its free memory and the sizes given");
    }

    std::size_t room() const { return workspace_ == nullptr ? 0 : workspace_bytes; }

    // Never sums in memory by atomics: results are the same bits each time.
    cublasLtMatmulAlgo_t choose(const description& what, const layout& a, const layout& b, const layout& out,
                                std::uint32_t align_b, std::uint32_t align_a, std::uint32_t align_c) {
        preference want;
        want.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, room());
        want.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
        want.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, align_b);
        want.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, align_a);
        want.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align_c);
        want.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align_c);
        cublasLtMatmulHeuristicResult_t best{};
        int found = 0;
        check(cublasLtMatmulAlgoGetHeuristic(handle_, what.at, b.get(), a.get(), out.get(), out.get(), want.at, 1,
                                             &best, &found));
        if (found < 1) throw error("product: cuBLASLt knows no way to multiply these shapes; use even row lengths");
        return best.algo;
    }

    cublasLtHandle_t handle_ = nullptr;
    void* workspace_;
    std::map<key, cublasLtMatmulAlgo_t> plans_;
};

}  // namespace sdepth::inline v0::on_cuda
