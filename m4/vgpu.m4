dnl SPDX-License-Identifier: BSD-3-Clause

dnl VGPU_PKG(NAME, PKG-CONFIG SPEC, DEBIAN PACKAGE): NAME_CFLAGS, NAME_LIBS, or an error that names the package.
AC_DEFUN([VGPU_PKG], [PKG_CHECK_MODULES([$1], [$2], [],
  [AC_MSG_ERROR([$2 was not found: apt-get install $3])])])

dnl VGPU_HEADER(HEADER, DEBIAN PACKAGE)
AC_DEFUN([VGPU_HEADER], [AC_CHECK_HEADER([$1], [],
  [AC_MSG_ERROR([$1 was not found: apt-get install $2])])])

dnl AX_VGPU_CXX20: C++20 with designated initialisers, concepts and <span>.
AC_DEFUN([AX_VGPU_CXX20], [
  AC_MSG_CHECKING([for C++20])
  CXX="$CXX -std=c++20"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <span>
#include <concepts>
template <std::integral T> T twice(T x) { return 2 * x; }]], [[return twice(0);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CXX does not compile C++20: apt-get install g++ (12 or newer)])])])

dnl VGPU_CUDA: --with-cuda=DIR; CUDA_CPPFLAGS, CUDA_API_VERSION, CUDART_SONUM, CUDA_INCLUDEDIR, NVCC.
AC_DEFUN([VGPU_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR],
    [CUDA Toolkit whose headers are used @<:@/usr/local/cuda, then Debian's own@:>@])],
    [], [with_cuda=])
  AC_MSG_CHECKING([for the CUDA headers])
  cuda_dir=
  AS_IF([test -n "$with_cuda"],
    [AS_IF([test -f "$with_cuda/include/cuda.h"], [cuda_dir=$with_cuda],
       [AC_MSG_ERROR([--with-cuda=$with_cuda: there is no include/cuda.h in it])])],
    [for dir in /usr/local/cuda /usr/lib/cuda /usr; do
       AS_IF([test -z "$cuda_dir" && test -f "$dir/include/cuda.h"], [cuda_dir=$dir])
     done])
  AS_IF([test -z "$cuda_dir"],
    [AC_MSG_ERROR([cuda.h was not found: install NVIDIA's CUDA Toolkit in /usr/local/cuda, or apt-get install nvidia-cuda-toolkit (section non-free), or give --with-cuda=DIR])])
  CUDA_INCLUDEDIR=$cuda_dir/include
  CUDA_API_VERSION=`sed -n 's/^#define CUDA_VERSION //p' "$CUDA_INCLUDEDIR/cuda.h"`
  AC_MSG_RESULT([$CUDA_INCLUDEDIR (API $CUDA_API_VERSION)])
  dnl The runtime library's name: 11.0 for all of CUDA 11, then the major version.
  AS_IF([test "$CUDA_API_VERSION" -lt 11080 || test "$CUDA_API_VERSION" -ge 12000 -a "$CUDA_API_VERSION" -lt 13000],
    [AC_MSG_ERROR([the headers in $CUDA_INCLUDEDIR are those of API $CUDA_API_VERSION: CUDA 11.8 (11080), or 13.0 (13000) or later is needed; give --with-cuda=DIR])])
  CUDART_SONUM=`expr "$CUDA_API_VERSION" / 1000`
  CUDART_VERSION_FLAGS="-version-info $CUDART_SONUM:0:0"
  AS_IF([test "$CUDART_SONUM" = 11],
    [CUDART_SONUM=11.0
     dnl libtool knows no such version; as the ending of the file it is in the soname all the same.
     CUDART_VERSION_FLAGS="-avoid-version -shrext .so.11.0"])
  CUDA_CPPFLAGS="-isystem $CUDA_INCLUDEDIR"
  AC_ARG_VAR([NVCC], [CUDA compiler, needed for tests and examples only])
  AC_PATH_PROG([NVCC], [nvcc], [], [$cuda_dir/bin:$PATH])
  AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
  AC_SUBST([CUDA_INCLUDEDIR])
  AC_SUBST([CUDA_API_VERSION])
  AC_SUBST([CUDART_SONUM])
  AC_SUBST([CUDART_VERSION_FLAGS])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([cuda_dir])
])
