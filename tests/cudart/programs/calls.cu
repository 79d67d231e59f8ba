// SPDX-License-Identifier: BSD-3-Clause
// nvcc: --extended-lambda
// Calls in kernels: recursion, function pointers, virtual functions, lambdas, structures by value.
#include "check.h"

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

using Operation = double (*)(double, double);
__device__ double add(double a, double b) {
    return a + b;
}
__device__ double subtract(double a, double b) {
    return a - b;
}
__device__ double multiply(double a, double b) {
    return a * b;
}
__device__ Operation operations[3] = {add, subtract, multiply};
__constant__ Operation chosen = subtract;

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Rectangle : Shape {
    float width, height;
    __device__ Rectangle(float w, float h) : width(w), height(h) {}
    __device__ float area() const override { return width * height; }
};

struct Parameters {
    char tag;
    double weights[3];
    short shift;
    int3 position;
};

template <class Function>
__global__ void apply(Function function, int* out) {
    out[threadIdx.x] = function(threadIdx.x);
}

__global__ void recurse(int* out, unsigned* deep) {
    out[threadIdx.x] = fibonacci(threadIdx.x % 12);
    if (threadIdx.x == 0)
        *deep = ackermann(2, 5);
}

__global__ void call(double* out) {
    const int i = threadIdx.x;
    out[i] = operations[i % 3](i, 2) + chosen(i, 1);
}

__global__ void areas(float* out) {
    Square square(threadIdx.x + 1);
    Rectangle rectangle(threadIdx.x, 3);
    const Shape* shape = threadIdx.x % 2 ? static_cast<const Shape*>(&square) : &rectangle;
    out[threadIdx.x] = shape->area();
}

__global__ void by_value(Parameters p, double* out, const Parameters q) {
    out[threadIdx.x] = p.weights[threadIdx.x % 3] * q.shift + p.position.y + q.position.z + p.tag;
}

int main() {
    Buffer<int> ints(40);
    Buffer<unsigned> deep(1);
    recurse<<<1, 40>>>(ints, deep);
    LAUNCHED();
    const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    const std::vector<int> numbers = ints.read();
    for (int i = 0; i < 40; ++i)
        EXPECT_EQ(numbers[i], fib[i % 12]);
    EXPECT_EQ(deep.read()[0], 13u);

    Buffer<double> doubles(48);
    call<<<1, 48>>>(doubles);
    LAUNCHED();
    const std::vector<double> results = doubles.read();
    for (int i = 0; i < 48; ++i)
        EXPECT_EQ(results[i], (i % 3 == 0 ? i + 2 : i % 3 == 1 ? i - 2 : i * 2) + (i - 1));

    Buffer<float> floats(50);
    areas<<<1, 50>>>(floats);
    LAUNCHED();
    const std::vector<float> sizes = floats.read();
    for (int i = 0; i < 50; ++i)
        EXPECT_EQ(sizes[i], static_cast<float>(i % 2 ? (i + 1) * (i + 1) : i * 3));

    const int factor = 5;
    apply<<<1, 32>>>([factor] __device__(int x) { return x * factor - 1; }, ints.get());
    LAUNCHED();
    const std::vector<int> products = ints.read();
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(products[i], i * factor - 1);

    Parameters p = {'A', {1.5, 2.5, 3.5}, 4, {1, 2, 3}}, q = p;
    q.shift = -8;
    q.position.z = 30;
    by_value<<<1, 9>>>(p, doubles, q);
    LAUNCHED();
    const std::vector<double> sums = doubles.read();
    for (int i = 0; i < 9; ++i)
        EXPECT_EQ(sums[i], p.weights[i % 3] * -8 + 2 + 30 + 'A');
    return finish();
}
