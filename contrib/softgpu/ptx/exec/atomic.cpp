// SPDX-License-Identifier: BSD-3-Clause
// atom and red. Memory of the device is shared with blocks on other CPU threads: real atomics there, and in
// shared memory too, since a generic address may be either.
#include "contrib/softgpu/ptx/exec/access.h"
#include "contrib/softgpu/ptx/exec/half_format.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

constexpr int kOrder = __ATOMIC_SEQ_CST;

template <class T, class F>
SOFTGPU_INLINE T update(T* p, F next) {
    T old = __atomic_load_n(p, kOrder);
    while (!__atomic_compare_exchange_n(p, &old, next(old), true, kOrder, kOrder)) {
    }
    return old;
}

struct Add {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return __atomic_fetch_add(p, b, kOrder);
    }
};
struct Exch {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return __atomic_exchange_n(p, b, kOrder);
    }
};
struct Cas {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T c) {
        __atomic_compare_exchange_n(p, &b, c, false, kOrder, kOrder);
        return b;
    }
};
struct And {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return __atomic_fetch_and(p, b, kOrder);
    }
};
struct Or {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return __atomic_fetch_or(p, b, kOrder);
    }
};
struct Xor {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return __atomic_fetch_xor(p, b, kOrder);
    }
};
struct Min {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return update(p, [=](T old) { return old < b ? old : b; });
    }
};
struct Max {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return update(p, [=](T old) { return old > b ? old : b; });
    }
};
struct Inc {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return update(p, [=](T old) { return old >= b ? T{0} : static_cast<T>(old + 1); });
    }
};
struct Dec {
    template <class T>
    static SOFTGPU_INLINE T apply(T* p, T b, T) {
        return update(p, [=](T old) { return old == 0 || old > b ? b : static_cast<T>(old - 1); });
    }
};
struct AddF32 {
    static SOFTGPU_INLINE u32 apply(u32* p, u32 b, u32) {
        return update(p, [=](u32 old) {
            const float r = bits<float>(old) + bits<float>(b);
            return r != r ? 0x7fffffffU : bits<u32>(r);
        });
    }
};
struct AddF64 {
    static SOFTGPU_INLINE u64 apply(u64* p, u64 b, u64) {
        return update(p, [=](u64 old) { return bits<u64>(bits<double>(old) + bits<double>(b)); });
    }
};
template <class H>
SOFTGPU_INLINE u16 add_half(u16 a, u16 b) {
    return H::round(add_to_odd(H::to(a), H::to(b)), Rounding::nearest);
}
template <bool Max>
SOFTGPU_INLINE u16 extreme_half(u16 x, u16 y, u16 infinity) {
    const bool xnan = (x & 0x7fff) > infinity, ynan = (y & 0x7fff) > infinity;
    const s32 kx = (x & 0x8000) != 0 ? ~static_cast<s32>(x & 0x7fff) : x;
    const s32 ky = (y & 0x8000) != 0 ? ~static_cast<s32>(y & 0x7fff) : y;
    if (xnan || ynan)
        return xnan && ynan ? u16{0x7fff} : xnan ? y : x;
    return (Max ? kx > ky : kx < ky) ? x : y;
}
template <class H>
struct AddHalf {
    static SOFTGPU_INLINE u16 apply(u16* p, u16 b, u16) {
        return update(p, [=](u16 old) { return add_half<H>(old, b); });
    }
};
template <class H>
struct AddPair {
    static SOFTGPU_INLINE u32 apply(u32* p, u32 b, u32) {
        return update(p, [=](u32 old) {
            return static_cast<u32>(add_half<H>(static_cast<u16>(old), static_cast<u16>(b))) |
                   (static_cast<u32>(add_half<H>(static_cast<u16>(old >> 16), static_cast<u16>(b >> 16)))
                    << 16);
        });
    }
};
template <class H, bool Max>
struct ExtremeHalf {
    static SOFTGPU_INLINE u16 apply(u16* p, u16 b, u16) {
        return update(p, [=](u16 old) { return extreme_half<Max>(old, b, H::infinity); });
    }
};
template <class H, bool Max>
struct ExtremePair {
    static SOFTGPU_INLINE u32 apply(u32* p, u32 b, u32) {
        return update(p, [=](u32 old) {
            return static_cast<u32>(
                       extreme_half<Max>(static_cast<u16>(old), static_cast<u16>(b), H::infinity)) |
                   (static_cast<u32>(extreme_half<Max>(static_cast<u16>(old >> 16), static_cast<u16>(b >> 16),
                                                       H::infinity))
                    << 16);
        });
    }
};

template <class F, class T>
const Instr* atomic(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    Access access;
    if (!resolve<true>(w, in, sizeof(T), access))
        return access.fault;
    w.budget -= 4; // may be a lock
    w.spun = true;
    const T* b = row<T>(w, in->b);
    const T* c = in->c != kNoRef ? row<T>(w, in->c) : b;
    T* d = in->d != kNoRef ? out<T>(w, in->d) : nullptr;
    for (u32 m = w.mask; m != 0; m &= m - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
        const T old = F::apply(reinterpret_cast<T*>(access.p[l]), b[l], c[l]);
        if (d != nullptr)
            d[l] = old;
    }
    return in + 1;
}
// .v2 and .v4 of red and atom: each element is atomic by itself.
template <class F, class T>
const Instr* atomic_vector(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    const unsigned n = in->aux >> 8;
    Access access;
    if (!resolve<true>(w, in, n * sizeof(T), access))
        return access.fault;
    // list: sources, then destinations
    for (u32 m = w.mask; m != 0; m &= m - 1) {
        const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
        T old[8];
        for (unsigned i = 0; i < n; ++i) {
            const T b = row<T>(w, in->list[i])[l];
            old[i] = F::apply(reinterpret_cast<T*>(access.p[l]) + i, b, b);
        }
        for (unsigned i = 0; i < n; ++i)
            if (in->list[n + i] != kNoRef)
                out<T>(w, in->list[n + i])[l] = old[i];
    }
    return in + 1;
}

template <class F, class T>
Handler form(const Op& op) {
    return op.vector > 1 ? atomic_vector<F, T> : atomic<F, T>;
}

template <class F>
Handler by_size(Type t) {
    return type_size(t) == 4 ? atomic<F, u32> : type_size(t) == 8 ? atomic<F, u64> : nullptr;
}
template <class F>
Handler by_sign(Type t) {
    switch (t) {
    case Type::u32:
        return atomic<F, u32>;
    case Type::s32:
        return atomic<F, s32>;
    case Type::u64:
        return atomic<F, u64>;
    case Type::s64:
        return atomic<F, s64>;
    default:
        return nullptr;
    }
}

} // namespace

Handler select_atomic(const Op& op, Instr& in) {
    const Type t = op.type();
    in.csr = 0x1f80;
    if (op.vector > 1 && !op.has("add"))
        return nullptr;
    if (op.has("add")) {
        switch (t) {
        case Type::f32:
            if (static_cast<Where>(in.aux & 0xff) == Where::global)
                in.csr = 0x1f80 | 0x8040; // PTX ISA: flushes subnormals in global memory
            return form<AddF32, u32>(op);
        case Type::f64:
            return atomic<AddF64, u64>;
        case Type::f16:
            return form<AddHalf<Half>, u16>(op);
        case Type::bf16:
            return form<AddHalf<Bfloat>, u16>(op);
        case Type::f16x2:
            return form<AddPair<Half>, u32>(op);
        case Type::bf16x2:
            return form<AddPair<Bfloat>, u32>(op);
        default:
            return by_size<Add>(t);
        }
    }
    if (op.has("exch"))
        return by_size<Exch>(t);
    if (op.has("cas"))
        return type_size(t) == 2 ? atomic<Cas, u16> : by_size<Cas>(t);
    if (op.has("and"))
        return by_size<And>(t);
    if (op.has("or"))
        return by_size<Or>(t);
    if (op.has("xor"))
        return by_size<Xor>(t);
    if (op.has("inc"))
        return t == Type::u32 ? atomic<Inc, u32> : nullptr;
    if (op.has("dec"))
        return t == Type::u32 ? atomic<Dec, u32> : nullptr;
    if (op.has("min") || op.has("max")) {
        const bool max = op.has("max");
        switch (t) {
        case Type::f16:
            return max ? atomic<ExtremeHalf<Half, true>, u16> : atomic<ExtremeHalf<Half, false>, u16>;
        case Type::bf16:
            return max ? atomic<ExtremeHalf<Bfloat, true>, u16> : atomic<ExtremeHalf<Bfloat, false>, u16>;
        case Type::f16x2:
            return max ? atomic<ExtremePair<Half, true>, u32> : atomic<ExtremePair<Half, false>, u32>;
        case Type::bf16x2:
            return max ? atomic<ExtremePair<Bfloat, true>, u32> : atomic<ExtremePair<Bfloat, false>, u32>;
        default:
            return max ? by_sign<Max>(t) : by_sign<Min>(t);
        }
    }
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
