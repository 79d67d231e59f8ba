// SPDX-License-Identifier: BSD-3-Clause
// Lists the CUDA devices that a job sees. Build: nvcc device_query.cu -o device_query
#include <cstdio>

int main() {
    int count = 0, driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        std::fprintf(stderr, "device_query: %s (%s)\n", cudaGetErrorString(error), cudaGetErrorName(error));
        return 1;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        return 1;
    std::printf("device_query: %d device(s), driver API %d.%d, runtime API %d.%d\n", count, driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    for (int device = 0; device < count; ++device) {
        cudaDeviceProp p;
        size_t free_bytes = 0, total_bytes = 0;
        char pci[32] = "";
        if ((error = cudaGetDeviceProperties(&p, device)) != cudaSuccess ||
            (error = cudaSetDevice(device)) != cudaSuccess ||
            (error = cudaMemGetInfo(&free_bytes, &total_bytes)) != cudaSuccess ||
            (error = cudaDeviceGetPCIBusId(pci, sizeof pci, device)) != cudaSuccess) {
            std::fprintf(stderr, "device_query: device %d: %s\n", device, cudaGetErrorString(error));
            return 1;
        }
        std::printf("device %d: %s (%s), uuid ", device, p.name, pci);
        for (int i = 0; i < 16; ++i)
            std::printf("%02x", static_cast<unsigned char>(p.uuid.bytes[i]));
        std::printf("\n  compute capability %d.%d, %d multiprocessors, warp %d, block <= %d threads, shared "
                    "memory %zu KiB a block\n"
                    "  memory %zu MiB, free %zu MiB\n",
                    p.major, p.minor, p.multiProcessorCount, p.warpSize, p.maxThreadsPerBlock,
                    p.sharedMemPerBlock >> 10, total_bytes >> 20, free_bytes >> 20);
        // What cannot be so on any device.
        if (!p.name[0] || p.warpSize != 32 || p.multiProcessorCount < 1 || free_bytes > total_bytes ||
            p.totalGlobalMem < total_bytes) {
            std::fprintf(stderr, "device_query: device %d: its properties contradict each other\n", device);
            return 1;
        }
    }
    return 0;
}
