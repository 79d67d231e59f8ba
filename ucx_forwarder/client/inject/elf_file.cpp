// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/inject/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace vgpu::inject {

ElfFile::ElfFile(const char* path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
        void* p = mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            data_ = static_cast<const std::byte*>(p);
            size_ = st.st_size;
        }
    }
    close(fd);
    if (!data_)
        return;
    auto* header = reinterpret_cast<const Elf64_Ehdr*>(data_);
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % alignof(Elf64_Shdr) != 0)
        return;
    auto* table = at(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
    if (!table || header->e_shstrndx >= header->e_shnum)
        return;
    sections_ = {reinterpret_cast<const Elf64_Shdr*>(table), header->e_shnum};
    section_names_ = &sections_[header->e_shstrndx];
}

ElfFile::~ElfFile() {
    if (data_)
        munmap(const_cast<std::byte*>(data_), size_);
}

const std::byte* ElfFile::at(std::size_t offset, std::size_t size) const {
    return offset <= size_ && size <= size_ - offset ? data_ + offset : nullptr;
}

const char* ElfFile::string(const Elf64_Shdr& strings, std::size_t offset) const {
    auto* begin = at(strings.sh_offset, strings.sh_size);
    if (!begin || offset >= strings.sh_size || !memchr(begin + offset, 0, strings.sh_size - offset))
        return "";
    return reinterpret_cast<const char*>(begin + offset);
}

const Elf64_Shdr* ElfFile::section(const char* name) const {
    for (auto& section : sections_)
        if (strcmp(string(*section_names_, section.sh_name), name) == 0)
            return &section;
    return nullptr;
}

const Elf64_Shdr* ElfFile::section_of_type(Elf64_Word type) const {
    for (auto& section : sections_)
        if (section.sh_type == type)
            return &section;
    return nullptr;
}

std::span<const Elf64_Sym> ElfFile::symbols(const Elf64_Shdr* table) const {
    if (!table || table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= sections_.size() ||
        table->sh_offset % alignof(Elf64_Sym) != 0)
        return {};
    auto* begin = at(table->sh_offset, table->sh_size);
    if (!begin)
        return {};
    return {reinterpret_cast<const Elf64_Sym*>(begin), table->sh_size / sizeof(Elf64_Sym)};
}

const char* ElfFile::name(const Elf64_Shdr* table, const Elf64_Sym& symbol) const {
    return string(sections_[table->sh_link], symbol.st_name);
}

} // namespace vgpu::inject
