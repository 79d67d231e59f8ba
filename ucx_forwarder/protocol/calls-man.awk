# SPDX-License-Identifier: BSD-3-Clause
# calls.def -> vgpu_calls(7).
BEGIN {
    print "'\\\" t"
    print ".\\\" Made from ucx_forwarder/protocol/calls.def."
    print ".TH vgpu_calls 7 \"\" \"slurm-vgpu\" \"slurm-vgpu\""
    print ".SH NAME"
    print "vgpu_calls \\- the CUDA calls that travel to the GPU node, and which of them are waited for"
    print ".SH DESCRIPTION"
    print "A program in a job with vGPUs calls the CUDA driver API, or the runtime API on top of it."
    print "Much is answered on the program's own node: device properties, handles, function attributes, error names, host memory."
    print "What is left is sent to the worker on the GPU node, as one of the calls below; functions that are not listed are answered"
    print "locally, are written in terms of others (cuMemcpy2D travels as copy_3d_...), or give CUDA_ERROR_NOT_SUPPORTED."
    print ".PP"
    print "A call that is"
    print ".I sent"
    print "costs no round trip: the program goes on at once, and an error comes back with the next call in the same context that is waited for."
    print "A call that is"
    print ".I awaited"
    print "costs one round trip."
    print "All calls of a process go to a GPU node in one order."
    print ".PP"
    print "With"
    print ".B VGPU_STATS=1"
    print "in its environment a program prints on exit how often it made each call, and last the line"
    print ".PP"
    print ".RS"
    print "vgpu: round trips awaited: N, calls sent: M"
    print ".RE"
    print ".SH CALLS"
}
function end_table() {
    if (open)
        print ".TE"
    open = 0
}
/^\/\/ --- / {
    end_table()
    section = $0
    sub(/^\/\/ --- /, "", section)
    sub(/[:;.].*/, "", section)
    print ".SS " toupper(substr(section, 1, 1)) substr(section, 2)
    print ".TS"
    print "l l."
    open = 1
}
/^VGPU_(CALL|SPECIAL)\(/ {
    line = $0
    sub(/^VGPU_[A-Z]+\(/, "", line)
    split(line, part, /[,)] */)
    print part[1] "\t" part[2]
    count++
}
END {
    end_table()
    if (count == 0) {
        print "calls.def has no calls" > "/dev/stderr"
        exit 1
    }
    print ".SH SEE ALSO"
    print ".BR vgpud (8),"
    print ".BR spank_vgpu (8)"
}
