// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the programs: each computes its expected values on the CPU and ends with finish().

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call,                          \
                         cudaGetErrorString(error_), cudaGetErrorName(error_));                              \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

inline int& failures() {
    static int count = 0;
    return count;
}

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition) && failures()++ < 10)                                                               \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                     \
    } while (0)

#define EXPECT_EQ(a, b)                                                                                      \
    do {                                                                                                     \
        const auto a_ = (a);                                                                                 \
        const auto b_ = (b);                                                                                 \
        if (!(a_ == b_) && failures()++ < 10)                                                                \
            std::fprintf(stderr, "%s:%d: %s is %.17g, %s is %.17g\n", __FILE__, __LINE__, #a,                \
                         static_cast<double>(a_), #b, static_cast<double>(b_));                              \
    } while (0)

#define EXPECT_NEAR(a, b, relative)                                                                          \
    do {                                                                                                     \
        const double a_ = (a), b_ = (b);                                                                     \
        if (!(std::fabs(a_ - b_) <= (relative)*std::fmax(std::fabs(b_), 1e-30)) && failures()++ < 10)        \
            std::fprintf(stderr, "%s:%d: %s is %.17g, %s is %.17g\n", __FILE__, __LINE__, #a, a_, #b, b_);   \
    } while (0)

#define LAUNCHED() CHECK(cudaGetLastError())

/// Device memory that holds a copy of a vector.
template <class T>
class Buffer {
public:
    explicit Buffer(size_t count) : count_(count) { CHECK(cudaMalloc(&data_, count * sizeof(T))); }
    explicit Buffer(const std::vector<T>& from) : Buffer(from.size()) {
        CHECK(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { cudaFree(data_); }
    operator T*() const { return data_; }
    T* get() const { return data_; }
    void clear() { CHECK(cudaMemset(data_, 0, count_ * sizeof(T))); }
    std::vector<T> read() const {
        std::vector<T> out(count_);
        CHECK(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    }

private:
    T* data_ = nullptr;
    size_t count_;
};

/// Numbers that are the same on every machine.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 2862933555777941757ull + 3037000493ull) {}
    uint32_t next() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>(state_ >> 33);
    }
    uint64_t next64() {
        return (static_cast<uint64_t>(next()) << 33) ^ (static_cast<uint64_t>(next()) << 7) ^ next();
    }
    double uniform() { return next() / 2147483648.0; }

private:
    uint64_t state_;
};

inline int finish() {
    if (failures())
        std::fprintf(stderr, "%d failures\n", failures());
    return failures() ? 1 : 0;
}
