// SPDX-License-Identifier: BSD-3-Clause
// Thrust: sort, reduce, scan, transform, copy_if, unique, on several types.
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "check.h"

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct Square {
    __host__ __device__ long long operator()(int x) const { return static_cast<long long>(x) * x; }
};

int main() {
    const int n = 5000;
    Random random(29);
    std::vector<int> in(n);
    for (int& value : in)
        value = static_cast<int>(random.next() % 100000) - 50000;
    thrust::device_vector<int> device(in.begin(), in.end());

    EXPECT_EQ(thrust::reduce(device.begin(), device.end()), std::accumulate(in.begin(), in.end(), 0));
    thrust::device_vector<long long> squares(n);
    thrust::transform(device.begin(), device.end(), squares.begin(), Square{});
    long long sum = 0;
    for (int value : in)
        sum += static_cast<long long>(value) * value;
    EXPECT_EQ(thrust::reduce(squares.begin(), squares.end(), 0ll, thrust::plus<long long>()), sum);

    thrust::device_vector<int> sums(n);
    thrust::exclusive_scan(device.begin(), device.end(), sums.begin());
    std::vector<int> host(n), expected(n);
    thrust::copy(sums.begin(), sums.end(), host.begin());
    std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0);
    EXPECT(host == expected);

    thrust::device_vector<int> odd(n);
    const auto end = thrust::copy_if(device.begin(), device.end(), odd.begin(), Odd{});
    EXPECT_EQ(end - odd.begin(), std::count_if(in.begin(), in.end(), Odd{}));

    thrust::sort(device.begin(), device.end());
    std::sort(in.begin(), in.end());
    thrust::copy(device.begin(), device.end(), host.begin());
    EXPECT(host == in);
    thrust::sort(device.begin(), device.end(), thrust::greater<int>());
    thrust::copy(device.begin(), device.end(), host.begin());
    EXPECT(std::equal(host.begin(), host.end(), in.rbegin()));

    const auto last = thrust::unique(device.begin(), device.end());
    EXPECT_EQ(last - device.begin(), std::unique(in.begin(), in.end()) - in.begin());
    return finish();
}
