#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The driver API tests on softgpu's own driver library.
. "${srcdir:-.}/tests/client/api_test.sh"
export VGPU_TEST_LIBCUDA="$softgpu"
run env
