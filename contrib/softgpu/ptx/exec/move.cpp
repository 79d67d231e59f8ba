// SPDX-License-Identifier: BSD-3-Clause
// mov in all its forms: copies, packing, unpacking.
#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

template <class T>
const Instr* copy(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    each(w, out<T>(w, in->d), [=](unsigned l) { return a[l]; });
    return in + 1;
}
const Instr* copy_pred(Warp& w, const Instr* in) {
    set_predicate(w, in->d, predicate(w, in->a, (in->flags & kANegated) != 0));
    return in + 1;
}
const Instr* copy128(Warp& w, const Instr* in) {
    const u64* a = row<u64>(w, in->a);
    u64* d = out<u64>(w, in->d);
    each(w, d, [=](unsigned l) { return a[l]; });
    each(w, d + kLanes, [=](unsigned l) { return a[kLanes + l]; });
    return in + 1;
}

// A list of `aux` rows of E (kNoRef: not wanted) to or from one row of D, the first in the low bits. Bytes
// live in 16-bit registers.
template <class E, class D, class R = E>
const Instr* pack(Warp& w, const Instr* in) {
    D value[kLanes] = {};
    for (u32 i = 0; i < in->aux; ++i) {
        const R* a = row<R>(w, in->list[i]);
        for (unsigned l = 0; l < kLanes; ++l)
            value[l] |= static_cast<D>(static_cast<D>(static_cast<E>(a[l])) << (8 * sizeof(E) * i));
    }
    each(w, out<D>(w, in->d), [&](unsigned l) { return value[l]; });
    return in + 1;
}
template <class E, class D, class R = E>
const Instr* unpack(Warp& w, const Instr* in) {
    D value[kLanes]; // a destination may be part of the source
    const D* a = row<D>(w, in->a);
    for (unsigned l = 0; l < kLanes; ++l)
        value[l] = a[l];
    for (u32 i = 0; i < in->aux; ++i)
        if (in->list[i] != kNoRef)
            each(w, out<R>(w, in->list[i]),
                 [&](unsigned l) { return static_cast<R>(static_cast<E>(value[l] >> (8 * sizeof(E) * i))); });
    return in + 1;
}
const Instr* pack128(Warp& w, const Instr* in) {
    for (u32 i = 0; i < 2; ++i) {
        const u64* a = row<u64>(w, in->list[i]);
        each(w, out<u64>(w, in->d) + kLanes * i, [=](unsigned l) { return a[l]; });
    }
    return in + 1;
}
const Instr* unpack128(Warp& w, const Instr* in) {
    for (u32 i = 0; i < 2; ++i) {
        if (in->list[i] == kNoRef)
            continue;
        const u64* a = row<u64>(w, in->a) + kLanes * i;
        each(w, out<u64>(w, in->list[i]), [=](unsigned l) { return a[l]; });
    }
    return in + 1;
}
const Instr* local_address(Warp& w, const Instr* in) { // of a variable in this call's frame
    const u64 address = static_cast<u64>(in->imm) + w.frame->local_base;
    each(w, out<u64>(w, in->d), [=](unsigned) { return address; });
    return in + 1;
}
const Instr* local_address32(Warp& w, const Instr* in) {
    const u32 address = static_cast<u32>(in->imm) + w.frame->local_base;
    each(w, out<u32>(w, in->d), [=](unsigned) { return address; });
    return in + 1;
}
template <class T, bool Subtract>
const Instr* offset(Warp& w, const Instr* in) { // cvta, symbol + row
    const T* a = row<T>(w, in->a);
    const T o = static_cast<T>(in->imm);
    each(w, out<T>(w, in->d), [=](unsigned l) { return static_cast<T>(Subtract ? a[l] - o : a[l] + o); });
    return in + 1;
}

} // namespace

Handler select_move(const Op& op, Instr& in, unsigned element_size, bool packing) {
    const unsigned size = type_size(op.type());
    const unsigned n = in.aux;
    if (element_size != 0) {
        if (element_size * n != size)
            return nullptr;
        if (size == 16)
            return n == 2 ? (packing ? pack128 : unpack128) : nullptr;
        if (size == 8)
            return element_size == 4   ? (packing ? pack<u32, u64> : unpack<u32, u64>)
                   : element_size == 2 ? (packing ? pack<u16, u64> : unpack<u16, u64>)
                                       : (packing ? pack<u8, u64, u16> : unpack<u8, u64, u16>);
        if (size == 4)
            return element_size == 2 ? (packing ? pack<u16, u32> : unpack<u16, u32>)
                                     : (packing ? pack<u8, u32, u16> : unpack<u8, u32, u16>);
        if (size == 2)
            return packing ? pack<u8, u16, u16> : unpack<u8, u16, u16>;
        return nullptr;
    }
    if (op.name == "cvta") {
        const bool to = op.has("to");
        return size == 8 ? (to ? offset<u64, true> : offset<u64, false>)
                         : (to ? offset<u32, true> : offset<u32, false>);
    }
    if (op.name == "local_address")
        return size == 4 ? local_address32 : local_address;
    if (op.type() == Type::pred)
        return copy_pred;
    switch (size) {
    case 2:
        return copy<u16>;
    case 4:
        return copy<u32>;
    case 8:
        return copy<u64>;
    case 16:
        return copy128;
    default:
        return nullptr;
    }
}

} // namespace softgpu::ptx::SOFTGPU_ISA
