# SPDX-License-Identifier: MIT
# Every header, in rank order: a header may include only lower ranks, or headers of its own rank listed above it.
# The rank stands in each header's top comment; tests/headers checks ranks, order and that no file is missing here.

# Plain C++20: must compile without a CUDA toolkit, and under nvcc too.
set(SDEPTH_HEADERS
    version.hpp
    config.hpp
    error.hpp
    bfloat16.hpp
    random.hpp
    file.hpp
    json.hpp
    sha256.hpp
    schedule.hpp
    rows.hpp
    routing_reference.hpp
    precision.hpp
    law.hpp
    law_runs.hpp
    numbers.hpp
    type_list.hpp
    dims.hpp
    verdict.hpp
    pattern.hpp
    runs.hpp
    layer.hpp
    layers/attention.hpp
    layers/ffn.hpp
    layers/block.hpp
    layers/sparse.hpp
    layers/experts.hpp
    layers/moda.hpp
    layers/recurrent.hpp
    layers/ends.hpp
    check.hpp
    explain.hpp
    model.hpp
    count.hpp
    digest.hpp
    contract.hpp
    report.hpp
    tensor_table.hpp
    carve.hpp
    planner.hpp
    partner.hpp
    presets.hpp
    ops/attention.hpp
    ops/linear.hpp
    ops/norm.hpp
    ops/rotary.hpp
    ops/ffn.hpp
    ops/ends.hpp
    ops/route.hpp
    ops/update.hpp
    ops/decode.hpp
    passes/view.hpp
    passes/attention.hpp
    passes/ffn.hpp
    passes/block.hpp
    passes/layer.hpp
    plan.hpp
    initialise.hpp
    kernels/host/parallel.hpp
    kernels/host/vector.hpp
    kernels/host/gemm.hpp
    kernels/host/attention.hpp
    kernels/host/attention_blocked.hpp
    kernels/host/linear.hpp
    kernels/host/norm.hpp
    kernels/host/rotary.hpp
    kernels/host/ffn.hpp
    kernels/host/decode.hpp
    kernels/host/ends.hpp
    kernels/host/route.hpp
    kernels/host/update.hpp
    kernels/host/host.hpp
    pipeline.hpp
    decoder.hpp
    safetensors.hpp
    token_file.hpp
    corpus.hpp
    data.hpp
    log.hpp
    checkpoint.hpp
    diagnostics.hpp
    trainer.hpp
    sdepth.hpp
)

# nvcc only.
set(SDEPTH_CUDA_HEADERS
)

list(TRANSFORM SDEPTH_HEADERS PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
list(TRANSFORM SDEPTH_CUDA_HEADERS PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
