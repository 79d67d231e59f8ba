// SPDX-License-Identifier: BSD-3-Clause
// The functions a device provides: vprintf, malloc, free, __assertfail.
#include "contrib/softgpu/ptx/block.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace softgpu::ptx {
namespace {

constexpr std::size_t kLongestString = 1U << 20; // of %s: what has no end is cut

std::uint64_t argument(const Warp& w, const CallSite& site, std::size_t i, unsigned lane) {
    if (i >= site.arguments.size())
        return 0;
    const Slot& slot = site.arguments[i];
    const std::byte* from =
        slot.is_row ? w.base.at(slot.row >> kRefShift) + (slot.row & kRefMask) + std::size_t{lane} * slot.size
                    : w.local + lane * w.local_stride + w.frame->local_base + slot.offset;
    std::uint64_t value = 0;
    std::memcpy(&value, from, std::min<std::size_t>(slot.size, 8));
    return value;
}

void answer(Warp& w, const CallSite& site, unsigned lane, std::uint64_t value) {
    if (site.returns.empty())
        return;
    const Slot& slot = site.returns[0];
    std::byte* to = slot.is_row ? w.base[0] + slot.row + std::size_t{lane} * slot.size
                                : w.local + lane * w.local_stride + w.frame->local_base + slot.offset;
    std::memcpy(to, &value, std::min<std::size_t>(slot.size, 8));
}

// Reads printf's packed arguments, each aligned to its size. What cannot be read is zero.
class Arguments {
public:
    Arguments(const Warp& w, unsigned lane, std::uint64_t at) : w_(w), lane_(lane), at_(at) {}
    std::uint64_t take(std::uint64_t size) {
        at_ = (at_ + size - 1) & ~(size - 1);
        std::uint64_t value = 0;
        if (const std::byte* p = readable(w_, at_, lane_, size); p != nullptr)
            std::memcpy(&value, p, size);
        at_ += size;
        ++count_;
        return value;
    }
    [[nodiscard]] int count() const { return count_; }

private:
    const Warp& w_;
    unsigned lane_;
    std::uint64_t at_;
    int count_ = 0;
};

template <class T>
void append(std::string& text, const std::string& format, T value) {
    const int length = std::snprintf(nullptr, 0, format.c_str(), value);
    if (length <= 0)
        return;
    const std::size_t before = text.size();
    text.resize(before + static_cast<std::size_t>(length) + 1);
    std::snprintf(text.data() + before, static_cast<std::size_t>(length) + 1, format.c_str(), value);
    text.pop_back();
}

// One conversion, `i` at the character after '%'; afterwards behind it.
void convert(std::string& text, const std::string& format, std::size_t& i, Arguments& arguments,
             const Warp& w, unsigned lane) {
    const std::size_t begin = i - 1;
    std::string spec = "%";
    const auto peek = [&] { return i < format.size() ? format[i] : '\0'; };
    const auto number = [&] {
        if (peek() == '*') {
            ++i;
            // A width of gigabytes would only exhaust memory.
            const auto value = std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(arguments.take(4)));
            spec += std::to_string(std::max(-4096, std::min(4096, value)));
            return;
        }
        std::string digits;
        while (peek() >= '0' && peek() <= '9')
            digits += format[i++];
        spec += digits.size() > 4 ? "4096" : digits;
    };
    while (std::strchr("-+ #0", peek()) != nullptr && peek() != '\0')
        spec += format[i++];
    number();
    if (peek() == '.') {
        spec += format[i++];
        number();
    }
    bool wide = false;
    while (peek() != '\0' && std::strchr("hljztLq", peek()) != nullptr) {
        const char c = format[i++];
        wide |= c == 'l' || c == 'j' || c == 'z' || c == 't' || c == 'q';
        if (c == 'h')
            spec += c;
    }
    const char conversion = peek();
    if (conversion != '\0')
        ++i;
    switch (conversion) {
    case 'd':
    case 'i':
        if (wide)
            append(text, spec + "lld", static_cast<long long>(arguments.take(8)));
        else
            append(text, spec + 'd',
                   std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(arguments.take(4))));
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (wide)
            append(text, spec + "ll" + conversion, static_cast<unsigned long long>(arguments.take(8)));
        else
            append(text, spec + conversion, static_cast<std::uint32_t>(arguments.take(4)));
        break;
    case 'c':
        append(text, spec + 'c', static_cast<int>(arguments.take(4)));
        break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        append(text, spec + conversion, std::bit_cast<double>(arguments.take(8)));
        break;
    case 'p':
        append(text, spec + 'p', reinterpret_cast<void*>(arguments.take(8)));
        break;
    case 's': {
        const std::uint64_t address = arguments.take(8);
        append(text, spec + 's', address == 0 ? "(null)" : device_string(w, lane, address).c_str());
        break;
    }
    case 'n':
        arguments.take(8);
        break;
    case '%':
        text += '%';
        break;
    default: // not a conversion: as it stands
        text.append(format, begin, i - begin);
    }
}

void print_lanes(Warp& w, const CallSite& site) {
    std::string text;
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(m));
        int count = 0;
        text += format_printf(w, lane, argument(w, site, 0, lane), argument(w, site, 1, lane), count);
        answer(w, site, lane, static_cast<std::uint32_t>(count));
    }
    w.block->launch->print(text, false);
}

const Instr* assert_failed(Warp& w, const CallSite& site) {
    std::string text;
    std::string first;
    const Block& block = *w.block;
    const Dim3& size = block.launch->block;
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(m));
        const std::uint32_t t = w.index * kLanes + lane;
        const std::string message = device_string(w, lane, argument(w, site, 0, lane));
        const std::string at = device_string(w, lane, argument(w, site, 1, lane)) + ":" +
                               std::to_string(static_cast<std::uint32_t>(argument(w, site, 2, lane)));
        if (first.empty())
            first = at + ": assertion `" + message + "` failed";
        char where[160];
        std::snprintf(where, sizeof where, ": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `", block.id.x,
                      block.id.y, block.id.z, t % size.x, t / size.x % size.y, t / size.x / size.y);
        text +=
            at + ": " + device_string(w, lane, argument(w, site, 3, lane)) + where + message + "` failed.\n";
    }
    block.launch->print(text, true);
    return w.fault(Status::assert_failed, first);
}

} // namespace

const std::byte* readable(const Warp& w, std::uint64_t address, unsigned lane, std::uint64_t size) {
    const auto within = [&](const std::byte* begin, std::uint64_t offset,
                            std::uint64_t bytes) -> const std::byte* {
        return offset < bytes && size <= bytes - offset ? begin + offset : nullptr;
    };
    if (address >= kWindowsBegin && address < kWindowsEnd) {
        if (address < kLocalWindow)
            return within(w.shared, address - kSharedWindow, w.shared_size);
        if (address < kParamWindow)
            return within(w.local + lane * w.local_stride, address - kLocalWindow, w.local_stride);
        if (address < kCodeWindow)
            return within(w.parameters, address - kParamWindow, w.parameter_size);
        return nullptr;
    }
    const std::uint64_t offset = address - w.space_base;
    if (size == 0 || offset >= w.space_size || size > w.space_size - offset)
        return nullptr;
    for (std::uint64_t page = offset >> kPageShift; page <= (offset + size - 1) >> kPageShift; ++page)
        if (w.pages[page] == kPageNone)
            return nullptr;
    return reinterpret_cast<const std::byte*>(address);
}

std::string device_string(const Warp& w, unsigned lane, std::uint64_t address) {
    std::string text;
    for (; text.size() < kLongestString; ++address) {
        const std::byte* p = readable(w, address, lane, 1);
        if (p == nullptr || *p == std::byte{0})
            break;
        text += static_cast<char>(*p);
    }
    return text;
}

std::string format_printf(const Warp& w, unsigned lane, std::uint64_t format_at, std::uint64_t arguments_at,
                          int& written) {
    const std::string format = device_string(w, lane, format_at);
    Arguments arguments(w, lane, arguments_at);
    std::string text;
    for (std::size_t i = 0; i < format.size();) {
        if (format[i] != '%') {
            text += format[i++];
            continue;
        }
        ++i;
        convert(text, format, i, arguments, w, lane);
    }
    written = format_at == 0 ? -1 : arguments.count();
    return text;
}

const Instr* builtin(Warp& w, const Function& function, const CallSite& site, const Instr* next) {
    switch (function.builtin) {
    case Builtin::vprintf:
        print_lanes(w, site);
        break;
    case Builtin::malloc:
    case Builtin::free: {
        DeviceHeap* heap = w.block->launch->options->heap;
        for (std::uint32_t m = w.mask; m != 0; m &= m - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(m));
            const std::uint64_t value = argument(w, site, 0, lane);
            if (function.builtin == Builtin::malloc)
                answer(w, site, lane, heap == nullptr ? 0 : heap->allocate(value));
            else if (value != 0 && (heap == nullptr || !heap->release(value)))
                return w.fault(Status::illegal_address, "free of a pointer that malloc did not give", value);
        }
        break;
    }
    case Builtin::assertfail:
        return assert_failed(w, site);
    case Builtin::none:
        break;
    }
    return next;
}

} // namespace softgpu::ptx
