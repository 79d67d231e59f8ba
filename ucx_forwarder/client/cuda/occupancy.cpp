// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/occupancy.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace vgpu::client {
namespace {

/// Answers by (session, function, its dynamic shared memory limit, block size, shared memory, flags).
/// Libraries ask the same before every launch.
class Cache {
public:
    using Key = std::tuple<const Session*, std::uint64_t, int, int, std::size_t, unsigned>;

    static Cache& instance() {
        static Cache& cache = *new Cache; // programs ask at exit, too
        return cache;
    }
    bool find(const Key& key, int& blocks) {
        std::lock_guard lock(mutex_);
        auto it = known_.find(key);
        if (it == known_.end())
            return false;
        blocks = it->second;
        return true;
    }
    void put(const Key& key, int blocks) {
        std::lock_guard lock(mutex_);
        if (known_.size() >= 100'000)
            known_.clear();
        known_[key] = blocks;
    }

private:
    std::mutex mutex_;
    std::map<Key, int> known_;
};

CUresult ask(int* result, CUfunction handle, int block_size, std::size_t shared_bytes, unsigned flags) {
    Context* context;
    VGPU_TRY(current(context));
    Function* function;
    VGPU_TRY(function_of(handle, function));
    if (!result || block_size <= 0 || flags & ~unsigned(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    return active_blocks(*function, block_size, shared_bytes, flags, *result);
}

/// The block size with the most threads on a multiprocessor; of equal ones the largest.
CUresult best_block(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                    std::size_t shared_bytes, int limit, unsigned flags) {
    Context* context;
    VGPU_TRY(current(context));
    Function* function;
    VGPU_TRY(function_of(handle, function));
    if (!grid || !block || limit < 0 || flags & ~unsigned(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    const Device& device = *function->context->device;
    const int warp = device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int largest =
        std::min(function->max_threads, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    if (limit > 0)
        largest = std::min(largest, limit);
    const int all = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int best = 0, best_blocks = 0;
    for (int size = (largest + warp - 1) / warp * warp; size > 0; size -= warp) {
        int threads = std::min(size, largest);
        int blocks;
        VGPU_TRY(
            active_blocks(*function, threads, shared_of ? shared_of(threads) : shared_bytes, flags, blocks));
        if (blocks * threads > best * best_blocks) {
            best = threads;
            best_blocks = blocks;
        }
        if (best * best_blocks >= all)
            break;
    }
    if (best == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *block = best;
    *grid = best_blocks * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

} // namespace

CUresult active_blocks(Function& function, int block_size, std::size_t shared_bytes, unsigned flags,
                       int& blocks) {
    Cache::Key key{&function.context->session(),
                   function.id.value,
                   function.max_dynamic_shared,
                   block_size,
                   shared_bytes,
                   flags};
    if (Cache::instance().find(key, blocks))
        return CUDA_SUCCESS;
    VGPU_TRY(function.context->call<Call::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(
        &blocks, function.id, block_size, shared_bytes, flags));
    Cache::instance().put(key, blocks);
    return CUDA_SUCCESS;
}

} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
    return ask(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

VGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
    return ask(numBlocks, func, blockSize, dynamicSMemSize, flags);
}

VGPU_API cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
    return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                      blockSizeLimit, 0);
}

VGPU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
    return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                      blockSizeLimit, flags);
}

VGPU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
    Context* context;
    VGPU_TRY(current(context));
    Function* function;
    VGPU_TRY(function_of(func, function));
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return function->context->call<Call::cuOccupancyAvailableDynamicSMemPerBlock>(
        dynamicSmemSize, function->id, numBlocks, blockSize);
}
