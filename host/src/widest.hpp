#pragma once
// The widest vectors that the processor has, chosen when the program starts: one function, compiled for each.

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_UNDEFINED__) && \
    !defined(__SANITIZE_THREAD__)
#define BDFORGE_WIDEST __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define BDFORGE_WIDEST
#endif
