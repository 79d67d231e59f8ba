// SPDX-License-Identifier: BSD-3-Clause
// This file knows the functions by name only, hence not cuda.h, which gives them types that do not matter
// here.
#include "contrib/softgpu/proc_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#define CUDA_EXPORT(symbol) extern "C" int symbol();
#include "build-aux/cuda_api.inc"

namespace softgpu {
namespace {

struct Variant {
    const char* name;
    int version;
    int (*symbol)();
    int (*per_thread)();
};

const Variant variants[] = {
#define CUDA_PROC(name, version, symbol, per_thread) {name, version, symbol, per_thread},
#include "build-aux/cuda_api.inc"
};

bool before(const Variant& a, const Variant& b) {
    return std::strcmp(a.name, b.name) < 0;
}

// The variants of a name stand together, in rising order of version; the names are in no order, and sorted
// once.
struct Index {
    Index() {
        std::copy(std::begin(variants), std::end(variants), std::begin(sorted));
        std::stable_sort(std::begin(sorted), std::end(sorted), before);
    }
    Variant sorted[std::size(variants)];
};

} // namespace

void* find_proc(const char* name, int version, bool per_thread, ProcQuery& query) {
    static const Index index;
    const auto range = std::equal_range(std::begin(index.sorted), std::end(index.sorted),
                                        Variant{name, 0, nullptr, nullptr}, before);
    query = range.first == range.second ? ProcQuery::no_such_symbol : ProcQuery::version_too_old;
    void* function = nullptr;
    for (const auto* variant = range.first; variant != range.second && variant->version <= version;
         ++variant) {
        function = reinterpret_cast<void*>(per_thread ? variant->per_thread : variant->symbol);
        query = ProcQuery::found;
    }
    return function;
}

} // namespace softgpu
