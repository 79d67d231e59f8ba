#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a step finds in its environment, and what not.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "a step with shares"
srun -w c1 --gres=vgpu:25 env
expect_status 0
expect_output '^VGPU_SHARES=25$'
expect_output '^VGPU_CLAIM=/.*/claims/.*\.json$'
expect_output '^LD_AUDIT=/.*/libvgpu_audit\.so$'

begin "a step without"
srun -w c1 env
expect_status 0
expect_no_output '^(VGPU_SHARES|VGPU_CLAIM|LD_AUDIT)='

begin "a step with --gres=none in a batch job with shares"
run mc exec bash -c 'cd && sbatch --wait --output=none.out -w c1 --gres=vgpu:25 --wrap "env | sed s/^/batch:/; srun --gres=none env | sed s/^/step:/; srun --gres=vgpu:10 env | sed s/^/part:/" && cat none.out'
expect_status 0
expect_output '^batch:VGPU_SHARES=25$'
expect_output '^batch:VGPU_CLAIM='
expect_no_output '^step:(VGPU_SHARES|VGPU_CLAIM|LD_AUDIT)='
expect_output '^part:VGPU_SHARES=10$'

begin "shares cannot be had by setting the variables"
run env VGPU_SHARES=100 VGPU_GRES_SHARES=100 VGPU_GRES_LOADED=1 "$MINICLUSTER" run -w c1 env
expect_status 0
expect_no_output '^VGPU_CLAIM='

begin "the user's own LD_AUDIT stays, before ours"
# Named where only the step reads it: the variable would concern all commands on the way.
run mc exec bash -c 'cd && printf "#!/bin/bash\n#SBATCH --output=audit.out --gres=vgpu:10 -w c1\nLD_AUDIT=/usr/lib/none.so:\$LD_AUDIT srun env\n" >audit.sbatch && sbatch --wait audit.sbatch; cat audit.out'
expect_output '^LD_AUDIT=/usr/lib/none\.so:/[^:]*/libvgpu_audit\.so$'

begin "--vgpu-mem sets the size of the vGPU, its variable too, and the command line wins"
srun -w c1 --gres=vgpu:25 --vgpu-mem=512M ./oom_probe 512
expect_status 0
run env VGPU_MEM=640M "$MINICLUSTER" run -w c1 --gres=vgpu:25 ./oom_probe 640
expect_status 0
run env VGPU_MEM=640M "$MINICLUSTER" run -w c1 --gres=vgpu:25 --vgpu-mem=512M ./oom_probe 512
expect_status 0

begin "--vgpu-devices divides the shares, its variable too, and the command line wins"
srun -w c1 --gres=vgpu:50 --vgpu-devices=2 ./device_query
expect_status 0
expect_output 'device_query: 2 device'
run env VGPU_DEVICES=2 "$MINICLUSTER" run -w c1 --gres=vgpu:50 ./device_query
expect_output 'device_query: 2 device'
run env VGPU_DEVICES=2 "$MINICLUSTER" run -w c1 --gres=vgpu:50 --vgpu-devices=1 ./device_query
expect_output 'device_query: 1 device'

begin "more shares than a GPU has are several whole vGPUs"
srun -w c1 --gres=vgpu:200 ./device_query
expect_status 0
expect_output 'device_query: 2 device'

begin "sbatch's options reach the batch step and the steps inside"
run mc exec bash -c "cd && sbatch --wait --output=mem.out -w c1 --gres=vgpu:25 --vgpu-mem=512M --wrap '$PROGRAMS/oom_probe 512 && srun $PROGRAMS/oom_probe 512'; rc=\$?; cat mem.out; exit \$rc"
expect_status 0
[[ $(grep -c '^oom_probe: ' <<<"$output") == 2 ]] || fault "not 2 results"

begin "srun --help explains the options"
srun --help
expect_output '--vgpu-mem=SIZE +\[vgpu\]'
expect_output '--vgpu-devices=COUNT +\[vgpu\]'
finish
