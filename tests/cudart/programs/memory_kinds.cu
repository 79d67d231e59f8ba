// SPDX-License-Identifier: BSD-3-Clause
// Local arrays, vector loads, dynamic shared memory above 48 KiB, memory from malloc in a kernel, pools.
#include "check.h"

__global__ void local_array(const int* in, int* out, int n) {
    int sorted[16];
    const int base = threadIdx.x * 16;
    for (int i = 0; i < 16; ++i)
        sorted[i] = in[base + i];
    for (int i = 1; i < 16; ++i) // insertion sort: indices that only the run knows
        for (int j = i; j > 0 && sorted[j - 1] > sorted[j]; --j) {
            const int t = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = t;
        }
    for (int i = 0; i < 16; ++i)
        out[base + i] = sorted[(i + n) % 16];
}

__global__ void vectors(const float4* in, float4* out, const uchar4* small, short2* pairs) {
    const int i = threadIdx.x;
    const float4 v = __ldg(in + i);
    out[i] = make_float4(v.w, v.z * 2, v.y, v.x + 1);
    pairs[i] = make_short2(small[i].x - small[i].y, small[i].z + small[i].w);
}

__global__ void big_shared(int* out, int words) {
    extern __shared__ int space[];
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        space[i] = i * 3;
    __syncthreads();
    int sum = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        sum += space[words - 1 - i] % 17;
    out[threadIdx.x] = sum;
}

struct Node {
    int value;
    Node* next;
};

__global__ void linked(int* out) {
    Node* head = nullptr;
    for (int i = 0; i < 5; ++i) {
        Node* node = static_cast<Node*>(malloc(sizeof(Node)));
        if (!node) {
            out[threadIdx.x] = -1;
            return;
        }
        node->value = threadIdx.x * 10 + i;
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        sum = sum * 3 + head->value;
        Node* next = head->next;
        free(head);
        head = next;
    }
    int* more = new int[4];
    more[3] = sum;
    out[threadIdx.x] = more[3];
    delete[] more;
}

int main() {
    Random random(41);
    std::vector<int> in(64 * 16);
    for (int& value : in)
        value = random.next() % 1000;
    Buffer<int> device_in(in), device_out(64 * 16);
    local_array<<<1, 64>>>(device_in, device_out, 3);
    LAUNCHED();
    const std::vector<int> out = device_out.read();
    for (int t = 0; t < 64; ++t) {
        std::vector<int> part(in.begin() + t * 16, in.begin() + (t + 1) * 16);
        for (int i = 1; i < 16; ++i)
            for (int j = i; j > 0 && part[j - 1] > part[j]; --j)
                std::swap(part[j], part[j - 1]);
        for (int i = 0; i < 16; ++i)
            EXPECT_EQ(out[t * 16 + i], part[(i + 3) % 16]);
    }

    std::vector<float4> quads(32);
    std::vector<uchar4> bytes(32);
    for (int i = 0; i < 32; ++i) {
        quads[i] = make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f);
        bytes[i] = make_uchar4(i, 2 * i, 3 * i, 200);
    }
    Buffer<float4> quads_in(quads), quads_out(32);
    Buffer<uchar4> bytes_in(bytes);
    Buffer<short2> pairs(32);
    vectors<<<1, 32>>>(quads_in, quads_out, bytes_in, pairs);
    LAUNCHED();
    const std::vector<float4> results = quads_out.read();
    const std::vector<short2> shorts = pairs.read();
    for (int i = 0; i < 32; ++i) {
        EXPECT(results[i].x == i + 0.75f && results[i].y == 2 * i + 1.0f && results[i].z == i + 0.25f &&
               results[i].w == i + 1.0f);
        EXPECT(shorts[i].x == -i && shorts[i].y == 3 * i + 200);
    }

    int most = 0;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    const int bytes_wanted = 60 * 1024;
    EXPECT(most >= bytes_wanted);
    Buffer<int> sums(64);
    big_shared<<<1, 64, bytes_wanted>>>(sums, bytes_wanted / 4);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(big_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_wanted));
    big_shared<<<1, 64, bytes_wanted>>>(sums, bytes_wanted / 4);
    LAUNCHED();
    const std::vector<int> shared_sums = sums.read();
    for (int t = 0; t < 64; ++t) {
        int sum = 0;
        for (int i = t; i < bytes_wanted / 4; i += 64)
            sum += (bytes_wanted / 4 - 1 - i) * 3 % 17;
        EXPECT_EQ(shared_sums[t], sum);
    }

    linked<<<1, 64>>>(sums);
    LAUNCHED();
    const std::vector<int> lists = sums.read();
    for (int t = 0; t < 64; ++t) {
        int sum = 0;
        for (int i = 4; i >= 0; --i)
            sum = sum * 3 + t * 10 + i;
        EXPECT_EQ(lists[t], sum);
    }

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = 1 << 20;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    int *first = nullptr, *second = nullptr, back[100];
    CHECK(cudaMallocAsync(&first, 400, stream));
    CHECK(cudaMallocFromPoolAsync(&second, 400, pool, stream));
    CHECK(cudaMemsetAsync(first, 1, 400, stream));
    CHECK(cudaMemcpyAsync(second, first, 400, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaFreeAsync(first, stream));
    CHECK(cudaMemcpyAsync(back, second, 400, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(second, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int value : back)
        EXPECT_EQ(value, 0x01010101);
    CHECK(cudaMemPoolTrimTo(pool, 0));
    CHECK(cudaStreamDestroy(stream));
    return finish();
}
