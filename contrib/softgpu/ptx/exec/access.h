// SPDX-License-Identifier: BSD-3-Clause
// Addresses of a memory instruction: computed, checked against the space they lie in, and made host pointers.
#pragma once

#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {

// Where a memory instruction goes, in the low byte of Instr::aux. frame: a variable of this call in local
// memory; Instr::imm is its offset in the frame.
enum class Where : u8 { global, shared, local, frame, param, generic };

struct Access {
    alignas(64) u64 p[kLanes]; // host pointers; lanes that are not active have that of one that is
    bool contiguous = false;   // every lane active, one element after the other
    bool uniform = false;      // one address
    const Instr* fault = nullptr;
};

SOFTGPU_INLINE void addresses(Warp& w, const Instr* in, u64* p) {
    const u64 imm = static_cast<u64>(in->imm);
    if (in->a == kNoRef) {
        const u64 base = static_cast<Where>(in->aux & 0xff) == Where::frame ? imm + w.frame->local_base : imm;
        for (unsigned l = 0; l < kLanes; ++l)
            p[l] = base;
        return;
    }
    if ((in->flags & kAddress32) != 0) {
        const u32* a = row<u32>(w, in->a);
        for (unsigned l = 0; l < kLanes; ++l)
            p[l] = a[l] + static_cast<u32>(imm);
    } else {
        const u64* a = row<u64>(w, in->a);
        for (unsigned l = 0; l < kLanes; ++l)
            p[l] = a[l] + imm;
    }
    if (w.mask != kAll) {
        const u64 first = p[__builtin_ctz(w.mask)];
        for (unsigned l = 0; l < kLanes; ++l)
            p[l] = w.lanes[l] != 0 ? p[l] : first;
    }
}

const Instr* misaligned(Warp& w, const u64* p, unsigned size);
const Instr* illegal(Warp& w, u64 address, unsigned size, bool write, const char* space);

// One address of any space to a host pointer; 0 if it is not valid.
SOFTGPU_INLINE u64 translate(const Warp& w, Where where, u64 address, unsigned lane, unsigned size,
                             bool write) {
    switch (where) {
    case Where::generic:
        if (address - kWindowsBegin < kWindowsEnd - kWindowsBegin) {
            if (address < kLocalWindow)
                return translate(w, Where::shared, address - kSharedWindow, lane, size, write);
            if (address < kParamWindow)
                return translate(w, Where::local, address - kLocalWindow, lane, size, write);
            if (address < kCodeWindow)
                return translate(w, Where::param, address - kParamWindow, lane, size, write);
            return 0;
        }
        [[fallthrough]];
    case Where::global: {
        const u64 offset = address - w.space_base;
        if (offset >= w.space_size)
            return 0;
        const u8 state = w.pages[offset >> kPageShift];
        return state == kPageReadWrite || (state == kPageReadOnly && !write) ? address : 0;
    }
    case Where::shared:
        return address < w.shared_size && size <= w.shared_size - address
                   ? reinterpret_cast<u64>(w.shared) + address
                   : 0;
    case Where::frame:
    case Where::local:
        return address < w.local_stride && size <= w.local_stride - address
                   ? reinterpret_cast<u64>(w.local) + lane * w.local_stride + address
                   : 0;
    case Where::param:
        return !write && address < w.parameter_size && size <= w.parameter_size - address
                   ? reinterpret_cast<u64>(w.parameters) + address
                   : 0;
    }
    return 0;
}

// size: bytes a lane, a power of two. False: `fault` says what to return.
template <bool Write>
inline bool resolve(Warp& w, const Instr* in, unsigned size, Access& access) {
    u64* p = access.p;
    addresses(w, in, p);
    u64 low = 0, far = 0, apart = 0;
    const u64 first = p[0];
    for (unsigned l = 0; l < kLanes; ++l) {
        low |= p[l];
        far |= p[l] ^ first;
        apart |= p[l] ^ (first + u64{l} * size);
    }
    if ((low & (size - 1)) != 0) {
        access.fault = misaligned(w, p, size);
        return false;
    }
    access.uniform = far == 0;
    access.contiguous = apart == 0 && w.mask == kAll;
    const auto where = static_cast<Where>(in->aux & 0xff);
    switch (where) {
    case Where::generic:
    case Where::global: {
        const u64 pages = w.space_size >> kPageShift;
        u64 previous = ~first;
        for (unsigned l = 0; l < kLanes; ++l) {
            if (((p[l] ^ previous) >> kPageShift) == 0)
                continue;
            previous = p[l];
            const u64 page = (p[l] - w.space_base) >> kPageShift;
            if (page < pages &&
                (w.pages[page] == kPageReadWrite || (!Write && w.pages[page] == kPageReadOnly))) {
                if ((far >> kPageShift) == 0)
                    return true;
                continue;
            }
            if (where == Where::global) {
                access.fault = illegal(w, p[l], size, Write, "global");
                return false;
            }
            // Shared or local memory, perhaps for some lanes only.
            access.contiguous = access.uniform = false;
            for (unsigned i = 0; i < kLanes; ++i) {
                // Lanes that are not active have taken the first one's address, and take its lane's memory
                // too.
                const unsigned lane =
                    ((w.mask >> i) & 1) != 0 ? i : static_cast<unsigned>(__builtin_ctz(w.mask));
                const u64 host = translate(w, Where::generic, p[i], lane, size, Write);
                if (host == 0) {
                    access.fault = illegal(w, p[i], size, Write, "generic");
                    return false;
                }
                p[i] = host;
            }
            return true;
        }
        return true;
    }
    case Where::shared: {
        u64 most = 0;
        for (unsigned l = 0; l < kLanes; ++l)
            most = p[l] > most ? p[l] : most;
        if (most >= w.shared_size || size > w.shared_size - most) {
            access.fault = illegal(w, most, size, Write, "shared");
            return false;
        }
        const u64 base = reinterpret_cast<u64>(w.shared);
        for (unsigned l = 0; l < kLanes; ++l)
            p[l] += base;
        return true;
    }
    case Where::frame:
    case Where::local:
    case Where::param: {
        access.contiguous = false;
        access.uniform = access.uniform && where == Where::param;
        for (unsigned l = 0; l < kLanes; ++l) {
            const unsigned lane = ((w.mask >> l) & 1) != 0 ? l : static_cast<unsigned>(__builtin_ctz(w.mask));
            const u64 host = translate(w, where, p[l], lane, size, Write);
            if (host == 0) {
                access.fault = illegal(w, p[l], size, Write, where == Where::param ? "parameter" : "local");
                return false;
            }
            p[l] = host;
        }
        return true;
    }
    }
    return false;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
