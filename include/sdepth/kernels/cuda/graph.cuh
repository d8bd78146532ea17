// SPDX-License-Identifier: MIT
// Operations that repeat, recorded into a CUDA graph and replayed; parts of it that the device chooses at each replay.
// Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "sdepth/config.hpp"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/launch.cuh"

namespace sdepth::inline v0::on_cuda {

/// The operations of one place in a program that is passed again and again.
///
/// Everything that a body's operations depend on, beside the contents of device memory, is in the key. Of a key that
/// comes twice in a row the second time is recorded; from then on it is replayed. The first time everything is run as
/// it stands, so that kernels are loaded and products chosen before anything is recorded; but parts that the device did
/// not choose then are loaded and chosen while they are recorded, which the relaxed mode of it allows.
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
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "graph");
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

/// Whether the operations of this stream are being recorded.
inline bool is_recording(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "graph");
    return status == cudaStreamCaptureStatusActive;
}

/// Rows of which a sequence has some in use: the steps from which the device or the host takes the least that suffices.
struct room_list {
    int rows[40];
    int size;

    SDEPTH_HOST_DEVICE int least_for(int most) const {
        int i = 0;
        while (i + 1 < size && rows[i] < most) ++i;
        return i;
    }
};

namespace detail {

// One warp.
static __global__ void choose_room_kernel(const int* live, int batch, const room_list rooms,
                                          cudaGraphConditionalHandle chosen) {
    wait_for_kernel_before();
    int most = 0;
    for (int b = static_cast<int>(threadIdx.x); b < batch; b += 32) most = max(most, live[b]);
    most = __reduce_max_sync(~0u, most);
    if (threadIdx.x == 0) cudaGraphSetConditional(chosen, static_cast<unsigned>(rooms.least_for(most)));
}

}  // namespace detail

/// While `stream` is being recorded: records body(rooms.rows[i]) for each i, on `aside`, as parts of which each replay
/// runs one, by what stands in live[0 ... batch) then (CUDA C++ Programming Guide, "Conditional Graph Nodes").
template <class F>
void record_rooms(cudaStream_t stream, cudaStream_t aside, const int* live, int batch, const room_list& rooms, F body) {
    cudaStreamCaptureStatus status{};
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* before = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    check(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count), "graph");
    cudaGraphConditionalHandle chosen{};
    check(cudaGraphConditionalHandleCreate(&chosen, graph, 0, 0), "graph");
    launch_early(detail::choose_room_kernel, 1, 32, 0, stream, "graph", live, batch, rooms, chosen);

    check(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count), "graph");
    cudaGraphNodeParams parts{};
    parts.type = cudaGraphNodeTypeConditional;
    parts.conditional.handle = chosen;
    parts.conditional.type = cudaGraphCondTypeSwitch;
    parts.conditional.size = static_cast<unsigned>(rooms.size);
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddNode(&node, graph, before, edges, count, &parts), "graph");
    check(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies), "graph");
    for (int i = 0; i < rooms.size; ++i) {
        check(cudaStreamBeginCaptureToGraph(aside, parts.conditional.phGraph_out[i], nullptr, nullptr, 0,
                                            cudaStreamCaptureModeRelaxed),
              "graph");
        cudaGraph_t drawn = nullptr;
        try {
            body(rooms.rows[i]);
        } catch (...) {
            cudaStreamEndCapture(aside, &drawn);
            throw;
        }
        check(cudaStreamEndCapture(aside, &drawn), "graph");
    }
}

}  // namespace sdepth::inline v0::on_cuda
