#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The driver API tests on the client's library, with vgpud and workers on softgpu behind it.
. "${srcdir:-.}/tests/client/api_test.sh"
export VGPU_TEST_LIBCUDA="$client"
run ./tests/client/local_worker --vgpus 2 --memory-mib 256 --library "$softgpu" \
    --env SOFTGPU_MEMORY=1G --env SOFTGPU_DEVICES=2 --env SOFTGPU_THREADS=2 --
