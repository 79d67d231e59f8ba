// SPDX-License-Identifier: BSD-3-Clause
// Trains a multi-layer perceptron of MNIST's shape, 784-128-10, by mini-batch gradient descent on images it
// makes itself, until the mean loss of an epoch falls under a bound; then repeats the training on the CPU and
// compares. Build: nvcc mlp.cu -o mlp   Usage: mlp [BOUND]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "mlp: %s: %s (%s)\n", #call, cudaGetErrorString(error_),                    \
                         cudaGetErrorName(error_));                                                          \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

constexpr int kInputs = 784, kHidden = 128, kOutputs = 10;
constexpr int kSamples = 256, kBatch = 32, kMaxEpochs = 40;
constexpr int kRows =
    4; // samples (or inputs) that one block works on, so that each weight is loaded once for all
constexpr float kRate = 0.05f;

struct Network {
    float w1[kInputs * kHidden], b1[kHidden], w2[kHidden * kOutputs], b2[kOutputs];
};

/// Activations and gradients of one batch.
struct Work {
    float hidden[kBatch * kHidden], hidden_gradient[kBatch * kHidden], output_gradient[kBatch * kOutputs];
};

// hidden = relu(x w1 + b1); a block has a thread for each hidden unit.
__global__ void forward_hidden(const Network* net, const float* x, Work* work) {
    __shared__ float rows[kRows][kInputs];
    const int unit = threadIdx.x, first = blockIdx.x * kRows;
    for (int r = 0; r < kRows; ++r)
        for (int k = unit; k < kInputs; k += kHidden)
            rows[r][k] = x[(first + r) * kInputs + k];
    __syncthreads();
    float sum[kRows];
    for (int r = 0; r < kRows; ++r)
        sum[r] = net->b1[unit];
    for (int k = 0; k < kInputs; ++k) {
        const float w = net->w1[k * kHidden + unit];
        for (int r = 0; r < kRows; ++r)
            sum[r] += rows[r][k] * w;
    }
    for (int r = 0; r < kRows; ++r)
        work->hidden[(first + r) * kHidden + unit] = fmaxf(sum[r], 0.0f);
}

// Softmax, cross entropy and its gradient; a warp a sample, a lane an output.
__global__ void forward_output(const Network* net, const int* labels, Work* work, float* losses) {
    const int sample = blockIdx.x, lane = threadIdx.x;
    float logit = -INFINITY;
    if (lane < kOutputs) {
        logit = net->b2[lane];
        for (int h = 0; h < kHidden; ++h)
            logit += work->hidden[sample * kHidden + h] * net->w2[h * kOutputs + lane];
    }
    float top = logit;
    for (int offset = 16; offset > 0; offset /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    const float power = lane < kOutputs ? expf(logit - top) : 0.0f;
    float total = power;
    for (int offset = 16; offset > 0; offset /= 2)
        total += __shfl_xor_sync(~0u, total, offset);
    const int label = labels[sample];
    if (lane < kOutputs)
        work->output_gradient[sample * kOutputs + lane] =
            (power / total - (lane == label ? 1.0f : 0.0f)) / kBatch;
    if (lane == label)
        losses[sample] = logf(total) - (logit - top);
}

__global__ void backward_hidden(const Network* net, Work* work) {
    const int sample = blockIdx.x, unit = threadIdx.x, at = sample * kHidden + unit;
    float sum = 0;
    for (int o = 0; o < kOutputs; ++o)
        sum += work->output_gradient[sample * kOutputs + o] * net->w2[unit * kOutputs + o];
    work->hidden_gradient[at] = work->hidden[at] > 0 ? sum : 0.0f;
}

__global__ void update_output(Network* net, const Work* work) {
    const int unit = threadIdx.x, o = blockIdx.x;
    float weight = 0, bias = 0;
    for (int s = 0; s < kBatch; ++s) {
        const float gradient = work->output_gradient[s * kOutputs + o];
        weight += work->hidden[s * kHidden + unit] * gradient;
        bias += gradient;
    }
    net->w2[unit * kOutputs + o] -= kRate * weight;
    if (unit == 0)
        net->b2[o] -= kRate * bias;
}

__global__ void update_hidden(Network* net, const float* x, const Work* work) {
    const int unit = threadIdx.x, first = blockIdx.x * kRows;
    float weight[kRows] = {}, bias = 0;
    for (int s = 0; s < kBatch; ++s) {
        const float gradient = work->hidden_gradient[s * kHidden + unit];
        for (int r = 0; r < kRows; ++r)
            weight[r] += x[s * kInputs + first + r] * gradient;
        bias += gradient;
    }
    for (int r = 0; r < kRows; ++r)
        net->w1[(first + r) * kHidden + unit] -= kRate * weight[r];
    if (blockIdx.x == 0)
        net->b1[unit] -= kRate * bias;
}

/// Uniform in [0, 1), the same on every machine.
static float uniform() {
    static uint64_t state = 20240229;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(state >> 40) / 16777216.0f;
}

/// One epoch on the CPU, in the order of the kernels; returns the mean loss.
static double train_on_cpu(Network& net, const std::vector<float>& images, const std::vector<int>& labels,
                           Work& work) {
    double total = 0;
    for (int batch = 0; batch < kSamples; batch += kBatch) {
        const float* x = &images[static_cast<size_t>(batch) * kInputs];
        for (int s = 0; s < kBatch; ++s) {
            float* hidden = &work.hidden[s * kHidden];
            for (int h = 0; h < kHidden; ++h)
                hidden[h] = net.b1[h];
            for (int k = 0; k < kInputs; ++k)
                for (int h = 0; h < kHidden; ++h)
                    hidden[h] += x[s * kInputs + k] * net.w1[k * kHidden + h];
            for (int h = 0; h < kHidden; ++h)
                hidden[h] = std::fmax(hidden[h], 0.0f);
            float logits[kOutputs], top = -INFINITY, sum = 0;
            for (int o = 0; o < kOutputs; ++o) {
                logits[o] = net.b2[o];
                for (int h = 0; h < kHidden; ++h)
                    logits[o] += hidden[h] * net.w2[h * kOutputs + o];
                top = std::fmax(top, logits[o]);
            }
            for (int o = 0; o < kOutputs; ++o)
                sum += std::exp(logits[o] - top);
            const int label = labels[batch + s];
            for (int o = 0; o < kOutputs; ++o)
                work.output_gradient[s * kOutputs + o] =
                    (std::exp(logits[o] - top) / sum - (o == label ? 1.0f : 0.0f)) / kBatch;
            total += std::log(sum) - (logits[label] - top);
            for (int h = 0; h < kHidden; ++h) {
                float gradient = 0;
                for (int o = 0; o < kOutputs; ++o)
                    gradient += work.output_gradient[s * kOutputs + o] * net.w2[h * kOutputs + o];
                work.hidden_gradient[s * kHidden + h] = hidden[h] > 0 ? gradient : 0.0f;
            }
        }
        for (int s = 0; s < kBatch; ++s)
            for (int o = 0; o < kOutputs; ++o) {
                const float step = kRate * work.output_gradient[s * kOutputs + o];
                for (int h = 0; h < kHidden; ++h)
                    net.w2[h * kOutputs + o] -= step * work.hidden[s * kHidden + h];
                net.b2[o] -= step;
            }
        for (int s = 0; s < kBatch; ++s) {
            const float* gradient = &work.hidden_gradient[s * kHidden];
            for (int k = 0; k < kInputs; ++k)
                for (int h = 0; h < kHidden; ++h)
                    net.w1[k * kHidden + h] -= kRate * x[s * kInputs + k] * gradient[h];
            for (int h = 0; h < kHidden; ++h)
                net.b1[h] -= kRate * gradient[h];
        }
    }
    return total / kSamples;
}

int main(int argc, char** argv) {
    const double bound = argc > 1 ? std::atof(argv[1]) : 0.1;
    // Ten patterns, and images that show one of them under noise.
    std::vector<float> patterns(kOutputs * kInputs), images(static_cast<size_t>(kSamples) * kInputs);
    std::vector<int> labels(kSamples);
    for (float& value : patterns)
        value = uniform() < 0.2f ? 1.0f : 0.0f;
    for (int s = 0; s < kSamples; ++s) {
        labels[s] = static_cast<int>(uniform() * kOutputs);
        for (int k = 0; k < kInputs; ++k)
            images[static_cast<size_t>(s) * kInputs + k] =
                0.5f * patterns[labels[s] * kInputs + k] + 0.5f * uniform();
    }
    std::vector<Network> start(1);
    Network& initial = start[0];
    for (float& w : initial.w1)
        w = (uniform() - 0.5f) * 2 * std::sqrt(3.0f / kInputs);
    for (float& w : initial.w2)
        w = (uniform() - 0.5f) * 2 * std::sqrt(3.0f / kHidden);
    for (float& b : initial.b1)
        b = 0;
    for (float& b : initial.b2)
        b = 0;

    Network* net = nullptr;
    Work* work = nullptr;
    float *x = nullptr, *losses = nullptr;
    int* device_labels = nullptr;
    CHECK(cudaMalloc(&net, sizeof *net));
    CHECK(cudaMalloc(&work, sizeof *work));
    CHECK(cudaMalloc(&x, images.size() * sizeof(float)));
    CHECK(cudaMalloc(&losses, kSamples * sizeof(float)));
    CHECK(cudaMalloc(&device_labels, kSamples * sizeof(int)));
    CHECK(cudaMemcpy(net, &initial, sizeof initial, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(x, images.data(), images.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_labels, labels.data(), kSamples * sizeof(int), cudaMemcpyHostToDevice));

    int epochs = 0;
    double loss = INFINITY, first_loss = 0;
    std::vector<float> sample_losses(kSamples);
    while (!(loss < bound) && epochs < kMaxEpochs) {
        for (int batch = 0; batch < kSamples; batch += kBatch) {
            const float* batch_x = x + static_cast<size_t>(batch) * kInputs;
            forward_hidden<<<kBatch / kRows, kHidden>>>(net, batch_x, work);
            forward_output<<<kBatch, 32>>>(net, device_labels + batch, work, losses + batch);
            backward_hidden<<<kBatch, kHidden>>>(net, work);
            update_output<<<kOutputs, kHidden>>>(net, work);
            update_hidden<<<kInputs / kRows, kHidden>>>(net, batch_x, work);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(sample_losses.data(), losses, kSamples * sizeof(float), cudaMemcpyDeviceToHost));
        loss = 0;
        for (float value : sample_losses)
            loss += value / kSamples;
        if (epochs++ == 0)
            first_loss = loss;
        std::printf("mlp: epoch %d: loss %.5f\n", epochs, loss);
        std::fflush(stdout);
    }
    CHECK(cudaFree(net));
    CHECK(cudaFree(work));
    CHECK(cudaFree(x));
    CHECK(cudaFree(losses));
    CHECK(cudaFree(device_labels));

    std::vector<Work> cpu_work(1);
    double cpu_loss = INFINITY;
    for (int epoch = 0; epoch < epochs; ++epoch)
        cpu_loss = train_on_cpu(initial, images, labels, cpu_work[0]);
    // Sums are rounded in another order on the GPU, nothing else differs.
    const bool same = std::fabs(loss - cpu_loss) <= 1e-3 * cpu_loss + 1e-5;
    cudaDeviceProp properties;
    char pci[32] = "";
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaDeviceGetPCIBusId(pci, sizeof pci, 0));
    std::printf("mlp: %d-%d-%d, %d epochs, loss %.5f -> %.5f (bound %g), on the CPU %.5f, on GPU %s (%s)\n",
                kInputs, kHidden, kOutputs, epochs, first_loss, loss, bound, cpu_loss, properties.name, pci);
    if (!(loss < bound))
        std::fprintf(stderr, "mlp: the loss did not fall under the bound\n");
    if (!same)
        std::fprintf(stderr, "mlp: the CPU's loss differs\n");
    return loss < bound && same ? 0 : 1;
}
