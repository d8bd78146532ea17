// SPDX-License-Identifier: MIT
// Operations that repeat, recorded into a CUDA graph and replayed. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <optional>

#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth::inline v0::on_cuda {

/// The operations of one place in a program that is passed again and again.
///
/// Everything that a body's operations depend on, beside the contents of device memory, is in the key. Of a key that
/// comes twice in a row the second time is recorded; from then on it is replayed. The first time everything is run as
/// it stands, so that kernels are loaded and products chosen before anything is recorded.
template <class Key>
class recording {
  public:
    recording() = default;
    ~recording() { drop(); }
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;

    template <class F>
    void run(cudaStream_t stream, const Key& key, F body) {
        if (graph_ == nullptr || !(recorded_ == key)) {
            const bool again = last_ == key;
            last_ = key;
            if (!again) return body();
            drop();
            record(stream, body);
            recorded_ = key;
        }
        check(cudaGraphLaunch(graph_, stream), "graph");
    }
    bool recorded() const { return graph_ != nullptr; }

  private:
    template <class F>
    void record(cudaStream_t stream, F body) {
        cudaGraph_t drawn = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph");
        try {
            body();
        } catch (...) {
            cudaStreamEndCapture(stream, &drawn);
            if (drawn != nullptr) cudaGraphDestroy(drawn);
            throw;
        }
        check(cudaStreamEndCapture(stream, &drawn), "graph");
        const cudaError_t status = cudaGraphInstantiate(&graph_, drawn, 0);
        cudaGraphDestroy(drawn);
        check(status, "graph");
    }
    void drop() {
        if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
        graph_ = nullptr;
    }

    cudaGraphExec_t graph_ = nullptr;
    std::optional<Key> recorded_, last_;
};

}  // namespace sdepth::inline v0::on_cuda
