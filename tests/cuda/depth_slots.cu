// SPDX-License-Identifier: MIT
// Launches for depth_slots.cpp.
#include "sdepth/kernels/cuda/depth_slots.cuh"

#include "device_call.cuh"
#include "operations.hpp"

namespace sdepth_test::on_device {

namespace cuda = sdepth::on_cuda;

namespace {

// Numbers of all positions and of one slot each; of the rows' keys.
struct slot_sizes {
    long long positions, slot, rows;
    explicit slot_sizes(const sdepth::WriteSlotArgs<exact>& a)
        : positions(static_cast<long long>(a.rows.batch) * a.sequence),
          slot(2LL * a.kv_heads * a.head_dim),
          rows((a.every_row ? positions : a.rows.capacity()) * a.kv_heads * a.head_dim) {}
};

sdepth::WriteSlotArgs<stored> slot_args(device_call& to, const sdepth::WriteSlotArgs<exact>& a) {
    sdepth::WriteSlotArgs<stored> d{.rows = to.rows(a.rows),
                                    .sequence = a.sequence,
                                    .kv_heads = a.kv_heads,
                                    .head_dim = a.head_dim,
                                    .slots = a.slots,
                                    .slot = a.slot,
                                    .seen = a.seen,
                                    .every_row = a.every_row};
    to.in(d.ids, a.ids, a.rows.capacity());
    return d;
}

}  // namespace

void write_slot(const sdepth::WriteSlotArgs<exact>& a) {
    device_call to;
    const slot_sizes n(a);
    auto d = slot_args(to, a);
    to.in(d.k, a.k, n.rows), to.in(d.v, a.v, n.rows);
    to.inout(d.memory, a.memory, n.positions * a.slots * n.slot), to.inout(d.mask, a.mask, n.positions * a.slots);
    cuda::write_slot(d, nullptr);
}
void slot_gradient(const sdepth::SlotGradientArgs<exact>& g) {
    device_call to;
    const slot_sizes n(g.forward);
    sdepth::SlotGradientArgs<stored> d{.forward = slot_args(to, g.forward), .adds = g.adds};
    to.in(d.slot_sum, g.slot_sum, n.positions * g.forward.slots * n.slot);
    to.inout(d.grad_k, g.grad_k, n.rows), to.inout(d.grad_v, g.grad_v, n.rows);
    cuda::slot_gradient(d, nullptr);
}
void depth_mass(const sdepth::DepthMassArgs<exact>& m) {
    device_call to;
    const auto& a = m.attention;
    const long long rows = static_cast<long long>(a.batch) * a.queries.capacity;
    sdepth::DepthMassArgs<stored> d;
    d.seen = m.seen, d.slots = m.slots, d.sequence = m.sequence;
    auto& b = d.attention;
    b.batch = a.batch, b.heads = a.heads, b.causal = a.causal, b.window = a.window;
    b.queries = to.rows({a.batch, a.queries}).each, b.keys = to.rows({a.batch, a.keys}).each;
    to.in(b.first, a.first, rows), to.in(b.last, a.last, rows);
    to.inout(b.lse, a.lse, rows * a.heads);
    to.in(d.sequence_lse, m.sequence_lse, rows * a.heads);
    to.in(d.ids, m.ids, rows), to.in(d.mask, m.mask, static_cast<long long>(a.batch) * m.sequence * m.slots);
    to.inout(d.mass, m.mass, a.heads + 2);
    cuda::depth_mass(d, to.scratch(cuda::depth_mass_scratch(rows, a.heads)), nullptr);
}

}  // namespace sdepth_test::on_device
