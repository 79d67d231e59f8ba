// SPDX-License-Identifier: BSD-3-Clause
// An ELF file of this machine, mapped read-only, seen by its section headers. Nothing here allocates: it runs
// inside the dynamic loader, before the program's first instruction. A damaged file reads as one without
// sections.
#pragma once

#include <elf.h>

#include <cstddef>
#include <span>

namespace vgpu::inject {

class ElfFile {
public:
    explicit ElfFile(const char* path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    /// The first section of that name, or null.
    const Elf64_Shdr* section(const char* name) const;
    /// The first section of that type (SHT_SYMTAB, SHT_DYNSYM), or null.
    const Elf64_Shdr* section_of_type(Elf64_Word type) const;
    /// The symbols of a symbol table section; empty for null.
    std::span<const Elf64_Sym> symbols(const Elf64_Shdr* table) const;
    /// A symbol's name, by the string table of its symbol table.
    const char* name(const Elf64_Shdr* table, const Elf64_Sym& symbol) const;

private:
    const std::byte* at(std::size_t offset, std::size_t size) const;
    const char* string(const Elf64_Shdr& strings, std::size_t offset) const;

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::span<const Elf64_Shdr> sections_;
    const Elf64_Shdr* section_names_ = nullptr;
};

} // namespace vgpu::inject
