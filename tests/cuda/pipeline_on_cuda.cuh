// SPDX-License-Identifier: MIT
// Runs of the small models on the GPU, for explicit instantiation.
#pragma once

#include "pipeline.hpp"
#include "sdepth/cuda.cuh"

namespace sdepth_test {

/// Clears what products and attention are about to overwrite. compute-sanitizer's initcheck does not see what the
/// tensor memory accelerator stores: to it, all that reads a product of cuBLASLt reads memory that was never written.
class marked_cuda : public sdepth::cuda<> {
    using base = sdepth::cuda<>;
    using bf16 = __nv_bfloat16;

  public:
    using base::base;

    void use_workspace(void* at) {
        base::use_workspace(at);
        if (at != marked_) zero(at, static_cast<std::size_t>(workspace_bytes(small::sizes, small::tiny)));
        marked_ = at;
    }
    void linear(const sdepth::LinearArgs<precision>& a) {
        mark(a.y, a.rows.capacity() * a.outputs);
        base::linear(a);
    }
    void linear_backward(const sdepth::LinearBackwardArgs<precision>& g) {
        if (!g.adds_to_grad_x) mark(g.grad_x, g.forward.rows.capacity() * g.forward.inputs);
        base::linear_backward(g);
    }
    void attention(const sdepth::AttentionArgs<bf16>& a) {
        mark(a.o, query_numbers(a));
        mark(a.lse, query_numbers(a) / a.head_dim);
        base::attention(a);
    }
    void attention_backward(const sdepth::AttentionBackwardArgs<bf16>& g) {
        mark_gradients(g);
        base::attention_backward(g);
    }
    void prepared_attention_backward(const sdepth::AttentionBackwardArgs<bf16>& g,
                                     const sdepth::QkPrepareBackwardArgs<precision>& queries) {
        mark_gradients(g);
        base::prepared_attention_backward(g, queries);
    }
    void head_loss(const sdepth::HeadLossArgs<precision>& a) {
        mark(a.logits, a.chunk * sdepth::logit_stride(a.vocab));
        mark(a.grad_y, a.rows.capacity() * a.width);
        base::head_loss(a);
    }

  private:
    static long long query_numbers(const sdepth::AttentionArgs<bf16>& a) {
        return static_cast<long long>(a.batch) * a.queries.capacity * a.heads * a.head_dim;
    }
    template <class T>
    void mark(T* at, long long numbers) {
        if (at != nullptr) zero(at, static_cast<std::size_t>(numbers) * sizeof(T));
    }
    void mark_gradients(const sdepth::AttentionBackwardArgs<bf16>& g) {
        const auto& a = g.forward;
        const long long keys = static_cast<long long>(a.batch) * a.keys.capacity * a.kv_heads * a.head_dim;
        mark(g.grad_q, query_numbers(a)), mark(g.grad_k, keys), mark(g.grad_v, keys);
    }

    void* marked_ = nullptr;
};

template <class M>
small_result run_model_on_cuda(const small_run& what) {
    const sdepth::cuda_settings settings{.graphs = what.graphs};
    if constexpr (std::is_same_v<M, small::XMoD> || std::is_same_v<M, small::MoDA>) {
        if (what.marked) {
            marked_cuda backend(settings);
            return run_small<M, marked_cuda, small::tiny>(backend, what);
        }
    }
    sdepth::cuda<> backend(settings);
    return run_model<M>(backend, what);
}

}  // namespace sdepth_test
