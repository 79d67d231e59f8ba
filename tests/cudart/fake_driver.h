// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A libcuda.so.1 that does nothing but write down what it was asked, so that tests see which driver calls the
// runtime library makes. Two devices; handles are small numbers; memory is host memory.

#include <cuda.h>

#include <string>
#include <vector>

namespace fake_driver {

/// Names of the calls since the last clear(), without the version suffix.
std::vector<std::string> calls();
void clear();
/// How many of them are `name`.
int count(const std::string& name);
/// The next call of `name` returns `result`.
void fail_next(const std::string& name, CUresult result);

struct Launch {
    CUfunction function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    CUstream stream;
    int first_argument;
};
const std::vector<Launch>& launches();

} // namespace fake_driver
