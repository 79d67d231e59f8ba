// SPDX-License-Identifier: BSD-3-Clause
// CUB: reduction, scan by look-back, radix sort of pairs, selection; and a block-wide scan.
#include <cub/cub.cuh>

#include <algorithm>
#include <numeric>

#include "check.h"

__global__ void block_scan(const int* in, int* out) {
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage storage;
    int value = in[threadIdx.x];
    Scan(storage).InclusiveSum(value, value);
    out[threadIdx.x] = value;
}

template <class Call>
void with_storage(Call&& call) {
    size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    Buffer<char> storage(bytes ? bytes : 1);
    CHECK(call(storage.get(), bytes));
}

int main() {
    const int n = 6000;
    Random random(31);
    std::vector<unsigned> keys(n);
    std::vector<int> values(n);
    for (int i = 0; i < n; ++i) {
        keys[i] = random.next() * 2 + (random.next() & 1);
        values[i] = i;
    }
    Buffer<unsigned> keys_in(keys), keys_out(n);
    Buffer<int> values_in(values), values_out(n), scalar(1);
    with_storage([&](void* storage, size_t& bytes) {
        return cub::DeviceReduce::Sum(storage, bytes, values_in.get(), scalar.get(), n);
    });
    EXPECT_EQ(scalar.read()[0], n * (n - 1) / 2);
    with_storage([&](void* storage, size_t& bytes) {
        return cub::DeviceScan::InclusiveSum(storage, bytes, values_in.get(), values_out.get(), n);
    });
    const std::vector<int> sums = values_out.read();
    for (int i = 0, sum = 0; i < n; ++i)
        EXPECT_EQ(sums[i], sum += i);
    with_storage([&](void* storage, size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(storage, bytes, keys_in.get(), keys_out.get(), values_in.get(),
                                               values_out.get(), n);
    });
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    const std::vector<int> sorted = values_out.read();
    EXPECT(sorted == order);

    std::vector<int> in(128, 3);
    Buffer<int> block_in(in), block_out(128);
    block_scan<<<1, 128>>>(block_in, block_out);
    LAUNCHED();
    const std::vector<int> out = block_out.read();
    for (int i = 0; i < 128; ++i)
        EXPECT_EQ(out[i], 3 * (i + 1));
    return finish();
}
