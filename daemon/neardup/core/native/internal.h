/* What the files of the native core share: the mixing of hashes and hints for the compiler. */
#ifndef NEARDUP_INTERNAL_H
#define NEARDUP_INTERNAL_H

#include <string.h>

#include "neardup.h"

#define RARE(condition) __builtin_expect(!!(condition), 0)
#define INLINE static inline __attribute__((always_inline))

/* The finaliser of splitmix64, as word_hashes.mixed. */
INLINE uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

#endif
