// SPDX-License-Identifier: MIT
// Exact selection of rows: the ceil(n / K) largest of each group, ties to the lower position, ids in order; the tracked
// cut is measured on the way. Rank 5.
//
// On Hopper a cluster of eight blocks shares a sequence; elsewhere, and for documents, one block has a group. With keys
// that order as the numbers do, in shared memory:
//
//  1. v = s - tau b; u = v - c is stored; key of v (of u under the threshold rule).
//  2. Radix selection: three histograms of 11, 11 and 10 bits find the k-th largest key and how many of its equals are
//     chosen. A pass ends with sums of 32 bins, so that one warp finds the bin in two steps, through all blocks'
//     memory.
//  3. Counts of larger and of equal keys, each thread in its neighbouring ones; the least chosen key and the largest
//     other one; every block gives its totals to all.
//  4. Sums over threads and blocks before give every chosen row its place.
//
// Histograms use integer atomics in shared memory, and cuts are multiples of 2^-32: sums of neither depend on the
// order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "sdepth/kernels/cuda/architecture.cuh"
#include "sdepth/kernels/cuda/cluster.cuh"
#include "sdepth/kernels/cuda/launch.cuh"
#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/route.hpp"

namespace sdepth::inline v0::on_cuda {

inline constexpr int select_threads = 1024;
inline constexpr int select_cluster = 8;

/// Rows of one group, and where its chosen rows go.
struct select_group_range {
    int first, last;  // rows of the sequence
    int place;        // in the sequence's ids
};

/// Digits of a key: two of `bits`, then the rest.
struct select_digits {
    static constexpr int bits = 11, bins = 1 << bits, last_bins = 1 << (32 - 2 * bits);
    static constexpr int all = 2 * bins + last_bins;  // of the three passes
    static constexpr int coarse = bins / 32;          // sums of 32 bins
    static __device__ constexpr int shift(int pass) { return pass == 0 ? 32 - bits : pass == 1 ? 32 - 2 * bits : 0; }
    static __device__ constexpr int count(int pass) { return pass < 2 ? bins : last_bins; }
};

template <int blocks>
struct alignas(16) select_shared {
    unsigned bins[select_digits::all];
    unsigned coarse[3][select_digits::coarse];  // sums of 32 bins
    unsigned parts[3][32];                      // of the warps
    unsigned totals[3][blocks];  // of each block: counts of larger and equal keys, least chosen, largest other
    unsigned found[3];           // bin, how many of it are needed, how many it holds
};

/// Unsigned numbers that order as floats do; -0 is 0.
__device__ inline unsigned select_key(float x) {
    const unsigned bits = __float_as_uint(x + 0.f);
    return bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
__device__ inline float select_number(unsigned key) {
    return __uint_as_float(key ^ (key >> 31 != 0 ? 0x80000000u : 0xFFFFFFFFu));
}

/// What a group leaves behind for the tracked cut.
struct select_cut {
    double between;  // cut_between the last chosen and the first unchosen v
    bool both;       // whether there are both
};

/// `blocks` blocks work on one group; `blocks` = 1 needs no cluster.
template <int blocks, class P>
class select_worker {
    using digits = select_digits;

  public:
    using shared = select_shared<blocks>;

    __device__ select_worker(const SelectArgs<P>& a, shared& s, unsigned* keys)
        : a_(a), s_(s), keys_(keys), thread_(static_cast<int>(threadIdx.x)), lane_(thread_ % 32), warp_(thread_ / 32) {
        if constexpr (blocks > 1) {
            rank_ = cluster_rank();
            cluster_arrive();
        } else {
            rank_ = 0;
        }
    }

    /// Chooses rows of a group of sequence b; returns the group's cut. Once, if several blocks work on it.
    __device__ select_cut run(int b, const select_group_range& group) {
        const int n = group.last - group.first, slice = ((n + blocks - 1) / blocks + 3) / 4 * 4;
        const int begin = min(n, rank_ * slice);
        count_ = min(n, begin + slice) - begin;
        const long long k = (n + a_.sparsity - 1) / a_.sparsity;
        const bool top = a_.sparsity > 1 && a_.rule == selection_rule::top && k < n;
        read(a_.rows.first(b) + group.first + begin, top);
        if constexpr (blocks > 1) cluster_wait();  // nobody stores to a block that does not run yet
        threshold_ = a_.sparsity > 1 && a_.rule == selection_rule::threshold ? select_key(0.f) : 0u;
        whole_ = true;
        ties_ = 0;
        if (top) find_threshold(static_cast<unsigned>(k));
        count_and_write(b, group.first + begin, group.place);
        select_cut cut{0, false};
        if (top) {
            const unsigned other = !whole_ && equal_ > ties_ ? threshold_ : other_;
            cut = {cut_between(static_cast<double>(select_number(least_)), static_cast<double>(select_number(other))),
                   true};
        }
        if constexpr (blocks == 1) __syncthreads();  // nobody begins anew while others read
        return cut;
    }
    /// Rows chosen in the sequence up to this group; in the last block.
    __device__ int chosen() const { return min(chosen_, a_.capacity); }
    __device__ bool tells_chosen() const { return rank_ == blocks - 1 && thread_ == 0; }
    __device__ bool tells_cut() const { return rank_ == 0 && thread_ == 0; }

  private:
    __device__ void sync() const {
        if constexpr (blocks > 1)
            cluster_sync();
        else
            __syncthreads();
    }
    // Stores `value` at `here` in the memory of all blocks; one warp.
    __device__ void give(unsigned* here, unsigned value) const {
        if constexpr (blocks > 1) {
            if (lane_ < blocks) cluster_store(here, lane_, value);
        } else {
            if (lane_ == 0) *here = value;
        }
    }
    // Sum over blocks of what stands at `here`.
    __device__ unsigned sum(const unsigned* here) const {
        if constexpr (blocks == 1) return *here;
        unsigned total = 0;
#pragma unroll
        for (int r = 0; r < blocks; ++r) total += cluster_load(here, r);
        return total;
    }

    // 1. With the first histogram where there is a selection.
    __device__ void read(long long at, bool top) {
        const float cut = a_.cut == nullptr ? 0.f : to_float(*a_.cut), tau = static_cast<float>(a_.tau);
        const bool of_u = a_.rule == selection_rule::threshold;
        bool zeroed = false;
        const auto zero = [&] {
            for (int i = thread_; i < digits::all / 4; i += select_threads)
                reinterpret_cast<uint4*>(s_.bins)[i] = uint4{};
            __syncthreads();
        };
        constexpr int ahead = 4;
        for (int first = thread_; first - thread_ < count_; first += ahead * select_threads) {
            float v[ahead], bias[ahead];
#pragma unroll
            for (int e = 0; e < ahead; ++e) {
                const int i = first + e * select_threads;
                if (i >= count_) continue;
                v[e] = a_.logits[at + i];
                bias[e] = a_.biased ? a_.bias[at + i] : 0.f;
            }
            if (!zeroed) zero();  // while the first keys are on their way
            zeroed = true;
#pragma unroll
            for (int e = 0; e < ahead; ++e) {
                const int i = first + e * select_threads;
                if (i >= count_) continue;
                if (a_.biased) v[e] = __fsub_rn(v[e], __fmul_rn(tau, bias[e]));
                const float u = v[e] - cut;
                a_.u[at + i] = u;
                const unsigned key = select_key(of_u ? u : v[e]);
                keys_[i] = key;
                if (top) atomicAdd(&s_.bins[key >> digits::shift(0)], 1u);
            }
        }
        if (!zeroed) zero();
        __syncthreads();
    }

    // 2.
    __device__ void find_threshold(unsigned needed) {
        unsigned prefix = 0, mask = 0;
#pragma unroll 1  // the same instructions again are at hand; other ones come from far
        for (int pass = 0; pass < 3; ++pass) {
            const int shift = digits::shift(pass), coarse = digits::count(pass) / 32;
            const unsigned digit = static_cast<unsigned>(digits::count(pass)) - 1;
            unsigned* const bins = s_.bins + pass * digits::bins;
            if (pass > 0) {
                for (int i = thread_; i < count_; i += select_threads) {
                    const unsigned key = keys_[i];
                    if ((key & mask) == prefix) atomicAdd(&bins[key >> shift & digit], 1u);
                }
                __syncthreads();
            }
            for (int c = warp_; c < coarse; c += 32) {
                const unsigned part = __reduce_add_sync(~0u, bins[32 * c + lane_]);
                if (lane_ == 0) s_.coarse[pass][c] = part;
            }
            sync();
            if (warp_ == 0) find_bin(bins, s_.coarse[pass], coarse, needed);
            __syncthreads();
            prefix |= s_.found[0] << shift;
            mask |= digit << shift;
            needed = s_.found[1];
            whole_ = needed == s_.found[2];  // all of the bin: what lies below does not matter
            if (whole_) break;
            __syncthreads();
        }
        threshold_ = prefix;
        ties_ = whole_ ? 0 : needed;
    }
    // The bin that holds the `needed`-th largest key, with `coarse` sums of 32 bins; one warp.
    __device__ void find_bin(const unsigned* bins, const unsigned (&sums)[digits::coarse], int coarse,
                             unsigned needed) {
        // Sums from the largest bins on, 32 at a time, a lane each.
        constexpr int times = digits::coarse / 32;
        unsigned own[times];
#pragma unroll
        for (int i = 0; i < times; ++i) {
            const int c = coarse - 1 - 32 * i - lane_;
            own[i] = c >= 0 ? sum(&sums[c]) : 0u;
        }
        unsigned here = 0;
        int top = coarse - 1;
        bool there = false;
#pragma unroll
        for (int i = 0; i < times; ++i) {
            const unsigned together = __reduce_add_sync(~0u, own[i]);
            if (there) continue;
            here = own[i], there = needed <= together;
            if (!there) needed -= together, top -= 32;
        }
        const unsigned up = up_to(here);
        const unsigned holder = __ballot_sync(~0u, up - here < needed && needed <= up);
        const int from = __ffs(static_cast<int>(holder)) - 1, c = top - from;
        needed -= __shfl_sync(~0u, up - here, from);
        const unsigned bin = sum(bins + 32 * c + 31 - lane_), all = up_to(bin);
        if (all - bin < needed && needed <= all) {
            s_.found[0] = static_cast<unsigned>(32 * c + 31 - lane_);
            s_.found[1] = needed - (all - bin);
            s_.found[2] = bin;
        }
    }
    // Sum over the lanes up to this one.
    __device__ unsigned up_to(unsigned x) const {
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const unsigned other = __shfl_up_sync(~0u, x, step);
            if (lane_ >= step) x += other;
        }
        return x;
    }

    __device__ bool larger(unsigned key) const { return whole_ ? key >= threshold_ : key > threshold_; }
    __device__ bool equals(unsigned key) const { return !whole_ && key == threshold_; }

    // 3 and 4. Each thread has neighbouring keys, a multiple of four. `first` is the sequence's row of key 0.
    __device__ void count_and_write(int b, int first, int place) {
        const int each = (count_ + 4 * select_threads - 1) / (4 * select_threads) * 4;
        const int begin = thread_ * each, end = min(count_, begin + each);
        unsigned mine = 0, least = ~0u, other = 0;  // larger keys in the upper half, equal ones in the lower
        each_key(begin, end, [&](int, unsigned key) {
            const bool more = larger(key), same = equals(key);
            mine += (more ? 0x10000u : 0u) + (same ? 1u : 0u);
            if (more || same)
                least = min(least, key);
            else
                other = max(other, key);
        });
        const unsigned inclusive = up_to(mine);
        least = __reduce_min_sync(~0u, least), other = __reduce_max_sync(~0u, other);
        if (lane_ == 31) s_.parts[0][warp_] = inclusive, s_.parts[1][warp_] = least, s_.parts[2][warp_] = other;
        __syncthreads();
        const unsigned part = s_.parts[0][lane_];
        const unsigned before = __reduce_add_sync(~0u, lane_ < warp_ ? part : 0u) + inclusive - mine;
        if (warp_ == 0) {
            give(&s_.totals[0][rank_], __reduce_add_sync(~0u, part));
            give(&s_.totals[1][rank_], __reduce_min_sync(~0u, s_.parts[1][lane_]));
            give(&s_.totals[2][rank_], __reduce_max_sync(~0u, s_.parts[2][lane_]));
        }
        sync();
        unsigned total = 0, lowest = ~0u, highest = 0;
        if (lane_ < blocks) total = s_.totals[0][lane_], lowest = s_.totals[1][lane_], highest = s_.totals[2][lane_];
        const bool earlier = lane_ < rank_;
        unsigned more = __reduce_add_sync(~0u, earlier ? total >> 16 : 0u) + (before >> 16);
        unsigned same = __reduce_add_sync(~0u, earlier ? total & 0xFFFFu : 0u) + (before & 0xFFFFu);
        equal_ = __reduce_add_sync(~0u, total & 0xFFFFu);
        least_ = __reduce_min_sync(~0u, lowest), other_ = __reduce_max_sync(~0u, highest);
        chosen_ = place + static_cast<int>(__reduce_add_sync(~0u, total >> 16) + min(equal_, ties_));

        int* const ids = a_.ids + static_cast<long long>(b) * a_.capacity;
        each_key(begin, end, [&](int i, unsigned key) {
            const bool is_larger = larger(key), is_equal = equals(key);
            const int to = place + static_cast<int>(more + min(same, ties_));
            if ((is_larger || (is_equal && same < ties_)) && to < a_.capacity) ids[to] = first + i;
            more += is_larger, same += is_equal;
        });
    }
    // Calls f(number, key) for the keys begin ... end - 1; begin is a multiple of four.
    template <class F>
    __device__ void each_key(int begin, int end, const F& f) const {
        for (int i = begin; i < end; i += 4) {
            const uint4 four = *reinterpret_cast<const uint4*>(keys_ + i);
            const unsigned key[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (i + e < end) f(i + e, key[e]);
        }
    }

    const SelectArgs<P>& a_;
    shared& s_;
    unsigned* keys_;
    int thread_, lane_, warp_, rank_;
    int count_ = 0;           // this block's keys
    unsigned threshold_ = 0;  // larger keys are chosen, and `ties_` of its equals; with `whole_` all equals
    unsigned ties_ = 0;
    bool whole_ = true;
    unsigned equal_ = 0, least_ = 0, other_ = 0;  // of the group: equal keys, least chosen, largest other
    int chosen_ = 0;
};

/// Documents of each sequence, as the first of two kernels leaves them for the second.
struct select_scratch_view {
    int* first;   // [B, L + 1], first row of each
    int* place;   // [B, L], its place in ids
    int* groups;  // [B]
};

/// Adds a group's cut to the sums: these additions round nothing, and nobody waits for them.
template <class P>
__device__ void select_add_cut(const SelectArgs<P>& a, const select_cut& cut) {
    if (!cut.both || a.cut_sum == nullptr || a.cut_groups == nullptr) return;
    atomicAdd(a.cut_sum, cut.between);
    atomicAdd(reinterpret_cast<unsigned long long*>(a.cut_groups), 1ull);
}

/// One sequence a cluster (or block).
template <int blocks, class P>
__device__ __forceinline__ void select_sequence(const SelectArgs<P>& a) {
    extern __shared__ __align__(1024) unsigned char raw[];  // as in every kernel: one name, one alignment
    using work = select_worker<blocks, P>;
    auto& shared = *reinterpret_cast<typename work::shared*>(raw);
    auto* keys = reinterpret_cast<unsigned*>(raw + sizeof(shared));
    const int b = static_cast<int>(blockIdx.y);
    work worker(a, shared, keys);
    const select_cut cut = worker.run(b, {0, a.rows.each.of(b), 0});
    if (worker.tells_chosen()) a.live[b] = worker.chosen();
    if (worker.tells_cut()) select_add_cut(a, cut);
}
template <class P>
__global__ void __launch_bounds__(select_threads, 1) select_cluster_kernel(const SelectArgs<P> a) {
    if constexpr (SDEPTH_HOPPER_CODE) {
        wait_for_kernel_before();
        select_sequence<select_cluster>(a);
    } else {
        __trap();  // see require_hopper
    }
}
template <class P>
__global__ void __launch_bounds__(select_threads, 1) select_block_kernel(const SelectArgs<P> a) {
    select_sequence<1>(a);
}

/// Groups of each sequence: rows where the document changes; then the place of each group's rows in ids.
template <class P>
__global__ void __launch_bounds__(select_threads)
    select_groups_kernel(const SelectArgs<P> a, const select_scratch_view s) {
    __shared__ int parts[32];
    const int b = static_cast<int>(blockIdx.x), n = a.rows.each.of(b), length = a.rows.each.capacity;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int* documents = a.documents + a.rows.first(b);
    int* const first = s.first + static_cast<long long>(b) * (length + 1);
    int* const place = s.place + static_cast<long long>(b) * length;
    // Sum over the threads before this one; `total` over all.
    const auto before = [&](int x, int& total) {
        int up = x;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, up, step);
            if (lane >= step) up += other;
        }
        __syncthreads();
        if (lane == 31) parts[warp] = up;
        __syncthreads();
        const int part = parts[lane];
        total = __reduce_add_sync(~0u, part);
        return __reduce_add_sync(~0u, lane < warp ? part : 0) + up - x;
    };
    int groups = 0, total = 0;
    for (int start = 0; start < n; start += select_threads) {
        const int i = start + thread;
        const bool opens = i < n && (i == 0 || documents[i] != documents[i - 1]);
        const int at = groups + before(opens ? 1 : 0, total);
        if (opens) first[at] = i;
        groups += total;
    }
    if (thread == 0) first[groups] = n, s.groups[b] = groups;
    __syncthreads();
    int places = 0;
    for (int start = 0; start < groups; start += select_threads) {
        const int g = start + thread;
        const int k = g < groups ? static_cast<int>((first[g + 1] - first[g] + a.sparsity - 1) / a.sparsity) : 0;
        const int at = places + before(k, total);
        if (g < groups) place[g] = at;
        places += total;
    }
    if (thread == 0) a.live[b] = min(places, a.capacity);
}
/// One group a block, in turn.
template <class P>
__global__ void __launch_bounds__(select_threads, 1)
    select_documents_kernel(const SelectArgs<P> a, const select_scratch_view s) {
    extern __shared__ __align__(1024) unsigned char raw[];  // as in every kernel: one name, one alignment
    using work = select_worker<1, P>;
    auto& shared = *reinterpret_cast<typename work::shared*>(raw);
    auto* keys = reinterpret_cast<unsigned*>(raw + sizeof(shared));
    const int b = static_cast<int>(blockIdx.y), length = a.rows.each.capacity;
    const int* const first = s.first + static_cast<long long>(b) * (length + 1);
    work worker(a, shared, keys);
    for (int g = static_cast<int>(blockIdx.x); g < s.groups[b]; g += static_cast<int>(gridDim.x)) {
        const int place = s.place[static_cast<long long>(b) * length + g];
        const select_cut cut = worker.run(b, {first[g], first[g + 1], place});
        if (worker.tells_cut()) select_add_cut(a, cut);
    }
}
namespace detail {

inline std::size_t select_layout(int batch, int sequence, unsigned char* at, select_scratch_view& s) {
    unsigned char* const begin = at;
    const auto take = [&at](int*& p, long long n) {
        p = reinterpret_cast<int*>(at);
        at += (static_cast<std::size_t>(n) * sizeof(int) + 255) / 256 * 256;
    };
    const long long rows = static_cast<long long>(batch) * sequence;
    take(s.first, rows + batch);
    take(s.place, rows);
    take(s.groups, batch);
    return static_cast<std::size_t>(at - begin);
}

// Shared memory for groups of up to `rows` rows, shared by `blocks` blocks.
template <int blocks>
std::size_t select_memory(int rows) {
    return sizeof(select_shared<blocks>) +
           (static_cast<std::size_t>((rows + blocks - 1) / blocks) + 3) / 4 * 4 * sizeof(unsigned);
}
template <class Kernel>
void select_prepare(Kernel kernel, std::size_t bytes) {
    if (bytes > 227u << 10)
        throw error(
            "select: a group of that many rows has no kernel; cut the sequences into documents or shorten them");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), "select");
}

}  // namespace detail

/// Bytes of scratch for `select`; `documents`: whether SelectArgs::documents is given.
constexpr std::size_t select_scratch(int batch, int sequence, bool documents) {
    if (!documents) return 0;
    const auto piece = [](std::size_t numbers) { return (numbers * sizeof(int) + 255) / 256 * 256; };
    const auto sequences = static_cast<std::size_t>(batch), rows = sequences * static_cast<std::size_t>(sequence);
    return piece(rows + sequences) + piece(rows) + piece(sequences);
}

/// See SelectArgs. Up to 400,000 rows a sequence on Hopper; elsewhere, and in a document, 50,000. Logits that are not
/// finite, and rows beyond `capacity`, do not throw here: the first make the loss so, the others are left out.
template <class Arch, class P>
void select(const SelectArgs<P>& a, void* scratch, cudaStream_t stream) {
    detail::check_rows(a.rows, 1, "select");
    if (a.sparsity < 1) throw error("select: sparsity must be at least 1; 1 chooses every row");
    if (a.rows.batch < 1) return;
    const int length = a.rows.each.capacity;
    const auto batch = static_cast<unsigned>(a.rows.batch);
    const bool by_document = a.documents != nullptr && a.sparsity > 1 && a.rule == selection_rule::top;
    if (by_document) {
        select_scratch_view view{};
        detail::select_layout(a.rows.batch, length, static_cast<unsigned char*>(scratch), view);
        const std::size_t bytes = detail::select_memory<1>(length);
        detail::select_prepare(select_documents_kernel<P>, bytes);
        select_groups_kernel<P><<<batch, select_threads, 0, stream>>>(a, view);
        check(cudaGetLastError(), "select");
        const dim3 grid(static_cast<unsigned>(std::clamp(132 / a.rows.batch, 1, 64)), batch);
        select_documents_kernel<P><<<grid, select_threads, bytes, stream>>>(a, view);
    } else if constexpr (std::is_same_v<Arch, hopper>) {
        const std::size_t bytes = detail::select_memory<select_cluster>(length);
        detail::select_prepare(select_cluster_kernel<P>, bytes);
        cudaLaunchAttribute attributes[2]{};
        attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[0].val.programmaticStreamSerializationAllowed = 1;
        attributes[1].id = cudaLaunchAttributeClusterDimension;
        attributes[1].val.clusterDim = {select_cluster, 1, 1};
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(select_cluster, batch);
        config.blockDim = dim3(select_threads);
        config.dynamicSmemBytes = bytes;
        config.stream = stream;
        config.attrs = attributes;
        config.numAttrs = 2;
        check(cudaLaunchKernelEx(&config, select_cluster_kernel<P>, a), "select");
    } else {
        const std::size_t bytes = detail::select_memory<1>(length);
        detail::select_prepare(select_block_kernel<P>, bytes);
        select_block_kernel<P><<<dim3(1, batch), select_threads, bytes, stream>>>(a);
    }
    check(cudaGetLastError(), "select");
}

}  // namespace sdepth::inline v0::on_cuda
