// SPDX-License-Identifier: BSD-3-Clause
// libvgpu_audit.so, named in LD_AUDIT by spank_vgpu: puts our client runtime into any program
// (rtld-audit(7)).
//   la_objsearch  a library by name: libcuda.so.1 and libcudart.so.N become ours, whatever the program's
//   RPATH or the
//                 absolute path in its dlopen
//   la_objopen    each object before its code runs: a statically linked runtime is redirected
// Programs without CUDA pay for a look at each object's section headers, and nothing after start-up.
//
// VGPU_STATIC_REDIRECT=no (spank_vgpu sets it where vgpu.conf says StaticRedirect=no) leaves static runtimes
// alone.
#include "ucx_forwarder/client/inject/redirect.h"
#include "ucx_forwarder/client/inject/say.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#ifndef VGPU_RUNTIME_NAME
#error "VGPU_RUNTIME_NAME: our runtime library, as libcudart.so.13"
#endif

namespace vgpu::inject {
namespace {

// The loader calls plain functions: what they share has nowhere else to be.
char client_dir[PATH_MAX];
bool active = false;
bool static_redirect = true;

/// A library of ours that stands in for NVIDIA's of the same name.
struct Library {
    const char* name;
    char path[PATH_MAX + 32];
};
Library driver{"libcuda.so.1", ""};
Library runtime{VGPU_RUNTIME_NAME, ""};

/// Where this library lies, the rest of the client runtime lies.
bool find_client_dir() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&find_client_dir), &info) || !info.dli_fname)
        return false;
    const char* slash = strrchr(info.dli_fname, '/');
    if (!slash || static_cast<std::size_t>(slash - info.dli_fname) >= sizeof client_dir)
        return false;
    memcpy(client_dir, info.dli_fname, slash - info.dli_fname);
    for (Library* library : {&driver, &runtime})
        snprintf(library->path, sizeof library->path, "%s/%s", client_dir, library->name);
    return true;
}

const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_ours(const char* path) {
    std::size_t n = strlen(client_dir);
    return strncmp(path, client_dir, n) == 0 && path[n] == '/';
}

/// Our library for a name that a program may use for it: with any directory, with the version, without, or
/// longer (libcudart.so.13, libcudart.so, libcudart.so.13.0.96); or null.
const char* replacement(const char* name) {
    std::string_view base = base_name(name);
    for (const Library* library : {&driver, &runtime}) {
        std::string_view versioned = library->name;
        auto plain = versioned.substr(0, versioned.find(".so") + 3);
        if (base == versioned || base == plain ||
            (base.starts_with(versioned) && base[versioned.size()] == '.'))
            return library->path;
    }
    return nullptr;
}

void look_at(const char* path, const char* shown, std::size_t base) {
    switch (redirect_static_runtime(path, base, runtime.path)) {
    case Redirect::none:
    case Redirect::done:
        break;
    case Redirect::stripped:
        say(shown, ": was linked with NVIDIA's static CUDA runtime and then stripped, so it cannot use a "
                   "remote GPU; "
                   "rebuild it with nvcc -cudart shared, or do not strip it");
        break;
    case Redirect::version:
        say(shown,
            ": its static CUDA runtime is of another version than this installation's " VGPU_RUNTIME_NAME
            "; rebuild it with that version of the CUDA Toolkit");
        break;
    case Redirect::failed:
        say(shown,
            ": its static CUDA runtime could not be redirected (the system forbids a change of its code?); "
            "rebuild it with nvcc -cudart shared");
        break;
    }
}

} // namespace
} // namespace vgpu::inject

using namespace vgpu::inject;

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned la_version(unsigned) {
    // Without a claim (a step without a vGPU that inherited the variable) we stay and do nothing. To return
    // 0, which asks the loader to forget us, ends the program in an assertion of glibc 2.36 where we have a
    // library behind us.
    active = getenv("VGPU_CLAIM") && find_client_dir();
    const char* redirect = getenv("VGPU_STATIC_REDIRECT");
    static_redirect = !redirect || strcmp(redirect, "no") != 0;
    return LAV_CURRENT;
}

EXPORT char* la_objsearch(const char* name, uintptr_t*, unsigned) {
    const char* ours = active ? replacement(name) : nullptr;
    return const_cast<char*>(ours ? ours : name);
}

EXPORT unsigned la_objopen(link_map* map, Lmid_t namespace_id, uintptr_t*) {
    if (!active || namespace_id != LM_ID_BASE)
        return 0;
    const bool program = map->l_name[0] == 0;
    if (!program && (map->l_name[0] != '/' || is_ours(map->l_name)))
        return 0; // the vdso, or our own
    if (strncmp(base_name(map->l_name), "libcudart.so.", 13) == 0)
        say("this program wants ", base_name(map->l_name),
            ", but this installation serves " VGPU_RUNTIME_NAME
            "; rebuild it with that version of the CUDA Toolkit");
    if (static_redirect) {
        char exe[PATH_MAX];
        ssize_t n = program ? readlink("/proc/self/exe", exe, sizeof exe - 1) : -1;
        exe[n > 0 ? n : 0] = 0;
        look_at(program ? "/proc/self/exe" : map->l_name, program ? exe : map->l_name, map->l_addr);
    }
    return 0; // no symbol binding is traced: calls cost nothing
}
}
