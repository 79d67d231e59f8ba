#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs run from where root has them, also where an ordinary user may not go; input, output and status pass.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

examples=$(dirname "$(readlink -f "$0")")/../../contrib/examples
nvcc=${NVCC:-nvcc}
closed=$scratch/closed
mkdir -m 700 "$closed" "$closed/inner"
run "$nvcc" "$examples/vector_add_printf.cu" -o "$closed/program"
[[ $status == 0 ]] || { begin "nvcc" && fault "nvcc failed" && finish; }
cp "$closed/program" "$closed/inner/"
host_mode=$(stat -c '%a %U' "$closed")

begin "a program in a directory that only root may enter"
cd "$closed" || exit 1
run mc run -w c1 --gres=vgpu:25 ./program
expect_status 0
expect_output 'vector_add_printf: [0-9]+ elements right'

begin "by its absolute path, from elsewhere"
cd / || exit 1
run mc run -w c2 --gres=vgpu:25 "$closed/inner/program"
expect_status 0

begin "a program that is built again there is the one that runs"
cd "$closed" || exit 1
printf '#!/bin/bash\necho first\n' >again && chmod 755 again
run mc run -w c1 ./again
expect_output first
rm again && printf '#!/bin/bash\necho second\n' >again && chmod 755 again
run mc run -w c1 ./again
expect_output second

begin "what the program writes there comes back; the directory is as it was"
run mc run -w c1 bash -c 'echo written >result; pwd'
expect_status 0
expect_output "^$closed\$"
[[ $(cat result 2>/dev/null) == written ]] || fault "the file did not come back"
[[ $(stat -c '%a %U' "$closed") == "$host_mode" ]] || fault "mode or owner of the directory changed"

begin "standard input, both outputs and the exit status pass through"
output=$(printf 'some\ninput\n' | mc run -w c1 bash -c 'cat; echo error >&2; exit 7' 2>"$scratch/errors")
status=$?
expect_status 7
[[ $output == $'some\ninput' ]] || fault "output is '$output'"
grep -qx error "$scratch/errors" || fault "error output is '$(<"$scratch/errors")'"

begin "exec, users and usage errors"
cd "$PROGRAMS" || exit 1
run mc exec id -un
expect_output '^alice$'
run mc --user=bob --on=g1 exec bash -c 'id -un; hostname'
expect_output '^bob$'
expect_output '^g1$'
run mc up
expect_status 1
expect_output 'is up already'
run mc fly
expect_status 2
finish
