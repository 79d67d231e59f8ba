// SPDX-License-Identifier: BSD-3-Clause
// ld and st.
#include "contrib/softgpu/ptx/exec/access.h"

#include <cstdio>

namespace softgpu::ptx::SOFTGPU_ISA {

const Instr* misaligned(Warp& w, const u64* p, unsigned size) {
    u64 address = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        if ((p[l] & (size - 1)) != 0)
            address = p[l];
    char text[128];
    std::snprintf(text, sizeof text, "address 0x%llx is not a multiple of %u",
                  static_cast<unsigned long long>(address), size);
    return w.fault(Status::misaligned_address, text, address);
}

const Instr* illegal(Warp& w, u64 address, unsigned size, bool write, const char* space) {
    char text[160];
    std::snprintf(text, sizeof text, "a %s of %u bytes at %s address 0x%llx, which is not allocated",
                  write ? "write" : "read", size, space, static_cast<unsigned long long>(address));
    return w.fault(Status::illegal_address, text, address);
}

namespace {

SOFTGPU_INLINE void note_spin(Warp& w, const Instr* in) {
    if ((in->flags & kSpin) != 0) { // a volatile load: likely in a loop that waits for another thread
        w.budget -= 16;
        w.spun = true;
    }
}

// T in memory, R in the register.
template <class T, class R>
const Instr* load(Warp& w, const Instr* in) {
    Access access;
    if (!resolve<false>(w, in, sizeof(T), access))
        return access.fault;
    note_spin(w, in);
    R* d = out<R>(w, in->d);
    const u64* p = access.p;
    if (access.contiguous) {
        const T* s = reinterpret_cast<const T*>(p[0]);
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = static_cast<R>(s[l]);
    } else if (access.uniform) {
        const R v = static_cast<R>(*reinterpret_cast<const T*>(p[0]));
        each(w, d, [=](unsigned) { return v; });
    } else {
        each(w, d, [=](unsigned l) { return static_cast<R>(*reinterpret_cast<const T*>(p[l])); });
    }
    return in + 1;
}
// Shared memory through 32-bit addresses, which is most of it.
template <class T, class R>
const Instr* load_shared(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32 imm = static_cast<u32>(in->imm);
    alignas(64) u32 offset[kLanes];
    u32 low = 0, most = 0;
    if (w.mask == kAll) {
        for (unsigned l = 0; l < kLanes; ++l)
            offset[l] = a[l] + imm;
    } else {
        const u32 first = a[__builtin_ctz(w.mask)];
        for (unsigned l = 0; l < kLanes; ++l)
            offset[l] = (w.lanes[l] != 0 ? a[l] : first) + imm;
    }
    for (unsigned l = 0; l < kLanes; ++l) {
        low |= offset[l];
        most = offset[l] > most ? offset[l] : most;
    }
    if ((low & (sizeof(T) - 1)) != 0 || most >= w.shared_size || sizeof(T) > w.shared_size - most)
        return load<T, R>(w, in); // which says what is wrong
    note_spin(w, in);
    const std::byte* base = w.shared;
    each(w, out<R>(w, in->d), [=, &offset](unsigned l) {
        return static_cast<R>(*reinterpret_cast<const T*>(base + static_cast<s32>(offset[l])));
    });
    return in + 1;
}
template <class T, class R>
const Instr* load_vector(Warp& w, const Instr* in) {
    const unsigned n = in->aux >> 8;
    Access access;
    if (!resolve<false>(w, in, n * sizeof(T), access))
        return access.fault;
    note_spin(w, in);
    // All values first: a destination may be the address.
    R value[8][kLanes];
    for (unsigned i = 0; i < n; ++i)
        for (unsigned l = 0; l < kLanes; ++l)
            value[i][l] = static_cast<R>(reinterpret_cast<const T*>(access.p[l])[i]);
    for (unsigned i = 0; i < n; ++i)
        if (in->list[i] != kNoRef)
            each(w, out<R>(w, in->list[i]), [&, i](unsigned l) { return value[i][l]; });
    return in + 1;
}
template <class T, class R>
const Instr* store(Warp& w, const Instr* in) {
    Access access;
    if (!resolve<true>(w, in, sizeof(T), access))
        return access.fault;
    const R* b = row<R>(w, in->b);
    if (access.contiguous) {
        T* d = reinterpret_cast<T*>(access.p[0]);
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = static_cast<T>(b[l]);
    } else {
        for (u32 m = w.mask; m != 0; m &= m - 1) {
            const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
            *reinterpret_cast<T*>(access.p[l]) = static_cast<T>(b[l]);
        }
    }
    return in + 1;
}
template <class T, class R>
const Instr* store_vector(Warp& w, const Instr* in) {
    const unsigned n = in->aux >> 8;
    Access access;
    if (!resolve<true>(w, in, n * sizeof(T), access))
        return access.fault;
    for (unsigned i = 0; i < n; ++i) {
        const R* b = row<R>(w, in->list[i]);
        for (u32 m = w.mask; m != 0; m &= m - 1) {
            const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
            reinterpret_cast<T*>(access.p[l])[i] = static_cast<T>(b[l]);
        }
    }
    return in + 1;
}
// b128: two rows one after the other.
const Instr* load128(Warp& w, const Instr* in) {
    Access access;
    if (!resolve<false>(w, in, 16, access))
        return access.fault;
    for (unsigned i = 0; i < 2; ++i)
        each(w, out<u64>(w, in->d) + i * kLanes,
             [&](unsigned l) { return reinterpret_cast<const u64*>(access.p[l])[i]; });
    return in + 1;
}
const Instr* store128(Warp& w, const Instr* in) {
    Access access;
    if (!resolve<true>(w, in, 16, access))
        return access.fault;
    const u64* b = row<u64>(w, in->b);
    for (u32 m = w.mask; m != 0; m &= m - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
        reinterpret_cast<u64*>(access.p[l])[0] = b[l];
        reinterpret_cast<u64*>(access.p[l])[1] = b[kLanes + l];
    }
    return in + 1;
}
// A kernel's parameter at a fixed offset, checked when it was compiled.
template <class T, class R>
const Instr* load_param(Warp& w, const Instr* in) {
    const R v = static_cast<R>(*reinterpret_cast<const T*>(w.parameters + in->imm));
    each(w, out<R>(w, in->d), [=](unsigned) { return v; });
    return in + 1;
}
// cp.async and the like: copies imm bytes, `c` gives how many come from the source (the rest are zero).
const Instr* copy_to_shared(Warp& w, const Instr* in) {
    Instr to = *in;
    to.aux = static_cast<u32>(Where::shared);
    const unsigned size = in->aux >> 8;
    Access destination;
    if (!resolve<true>(w, &to, size, destination))
        return destination.fault;
    Instr from = *in;
    from.a = in->b;
    from.imm = 0;
    from.flags = static_cast<u16>((in->flags & ~kAddress32) | ((in->flags & kUniform) != 0 ? kAddress32 : 0));
    from.aux = static_cast<u32>(Where::global);
    Access source;
    if (!resolve<false>(w, &from, size, source))
        return source.fault;
    for (u32 m = w.mask; m != 0; m &= m - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
        const unsigned n = in->c == kNoRef                ? size
                           : row<u32>(w, in->c)[l] < size ? row<u32>(w, in->c)[l]
                                                          : size;
        u8* d = reinterpret_cast<u8*>(destination.p[l]);
        const u8* s = reinterpret_cast<const u8*>(source.p[l]);
        for (unsigned i = 0; i < size; ++i)
            d[i] = i < n ? s[i] : u8{0};
    }
    return in + 1;
}

template <class T, class R>
Handler one(const Op& op, bool param, bool shared) {
    if (op.name == "st")
        return op.vector > 1 ? store_vector<T, R> : store<T, R>;
    if (op.vector > 1)
        return load_vector<T, R>;
    return param ? load_param<T, R> : shared ? load_shared<T, R> : load<T, R>;
}
template <class T>
Handler by_register(const Op& op, unsigned size, bool param, bool shared) {
    switch (size) {
    case 2:
        if constexpr (sizeof(T) <= 2)
            return one<T, u16>(op, param, shared);
        return nullptr;
    case 4:
        if constexpr (sizeof(T) <= 4)
            return one<T, u32>(op, param, shared);
        return nullptr;
    case 8:
        return one<T, u64>(op, param, shared);
    default:
        return nullptr;
    }
}

} // namespace

// register_size: bytes of the data registers; the value is extended to it by the type's sign.
Handler select_memory(const Op& op, Instr& in, unsigned register_size) {
    if (op.name == "cp.async")
        return copy_to_shared;
    const bool param = static_cast<Where>(in.aux & 0xff) == Where::param && in.a == kNoRef;
    const bool shared = static_cast<Where>(in.aux & 0xff) == Where::shared && (in.flags & kAddress32) != 0;
    if (op.has("volatile") || op.has("relaxed") || op.has("acquire"))
        in.flags |= kSpin;
    switch (op.type()) {
    case Type::b8:
    case Type::u8:
        return by_register<u8>(op, register_size, param, shared);
    case Type::s8:
        return by_register<s8>(op, register_size, param, shared);
    case Type::b16:
    case Type::u16:
    case Type::f16:
    case Type::bf16:
        return by_register<u16>(op, register_size, param, shared);
    case Type::s16:
        return by_register<s16>(op, register_size, param, shared);
    case Type::b32:
    case Type::u32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
        return by_register<u32>(op, register_size, param, shared);
    case Type::s32:
        return by_register<s32>(op, register_size, param, shared);
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
        return by_register<u64>(op, register_size, param, shared);
    case Type::b128:
        return op.vector > 1 ? nullptr : op.name == "st" ? store128 : load128;
    default:
        return nullptr;
    }
}

} // namespace softgpu::ptx::SOFTGPU_ISA
