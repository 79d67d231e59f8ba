// SPDX-License-Identifier: BSD-3-Clause
// printf in a kernel: formats, strings, widths; what comes out is read back from a pipe.
#include <unistd.h>

#include <string>

#include "check.h"

__global__ void speak(const char* unused, double x) {
    if (threadIdx.x == 3)
        printf("int %d|%5d|%-5d|%05u|%x|%#X\n", -7, 42, 42, 42u, 0xbeef, 0xbeef);
    __syncthreads();
    if (threadIdx.x == 1) {
        printf("double %.3f|%e|%g|%8.2f\n", x, x, x / 1e10, -x);
        printf("long %lld|%llu|%lx|char %c|%%|string %s|%10s|none\n", -1234567890123ll, 0xffffffffffffffffull,
               0x123456789abul, 'Z', "text", "right");
        printf("plain\n");
    }
    __syncthreads();
    printf("t%d\n", threadIdx.x % 2);
}

int main() {
    int ends[2];
    if (pipe(ends) != 0)
        return 1;
    std::fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    speak<<<1, 4>>>(nullptr, 1234.5678);
    const cudaError_t launched = cudaGetLastError(), done = cudaDeviceSynchronize();
    std::fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    std::string text;
    char chunk[512];
    for (ssize_t got; (got = read(ends[0], chunk, sizeof chunk)) > 0;)
        text.append(chunk, got);
    CHECK(launched);
    CHECK(done);
    char expected[1024];
    std::snprintf(expected, sizeof expected,
                  "int %d|%5d|%-5d|%05u|%x|%#X\ndouble %.3f|%e|%g|%8.2f\nlong %lld|%llu|%lx|char "
                  "%c|%%|string %s|%10s|none\nplain\n",
                  -7, 42, 42, 42u, 0xbeef, 0xbeef, 1234.5678, 1234.5678, 1234.5678 / 1e10, -1234.5678,
                  -1234567890123ll, 0xffffffffffffffffull, 0x123456789abul, 'Z', "text", "right");
    const std::string head = expected;
    EXPECT(text.substr(0, head.size()) == head);
    int zeros = 0, ones = 0;
    for (size_t at = head.size(); at + 3 <= text.size(); at += 3) {
        zeros += text.substr(at, 3) == "t0\n";
        ones += text.substr(at, 3) == "t1\n";
    }
    EXPECT_EQ(zeros, 2);
    EXPECT_EQ(ones, 2);
    if (failures())
        std::fprintf(stderr, "printed:\n%s", text.c_str());
    return finish();
}
