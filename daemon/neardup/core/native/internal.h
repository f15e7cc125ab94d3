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

/* Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003), as passage_hashes.sampled: of every `window` adjacent grams the
 * place of the least one, of equal ones the last.  Writes at most `count` places, ascending; returns how many. */
INLINE size_t winnow_places(const uint64_t *grams, size_t count, size_t window, uint32_t *places) {
    size_t size = 0, least = 0;
    if (!count) return 0;
    if (window > count) window = count;
    for (size_t n = 1; n < window; n++)
        if (grams[n] <= grams[least]) least = n;
    places[size++] = (uint32_t)least;
    for (size_t end = window; end < count; end++) {
        size_t begin = end - window + 1;
        if (least < begin) {
            least = begin;
            for (size_t n = begin + 1; n <= end; n++)
                if (grams[n] <= grams[least]) least = n;
        } else if (grams[end] <= grams[least]) {
            least = end;
        } else {
            continue;
        }
        places[size++] = (uint32_t)least;
    }
    return size;
}

/* Write the normalised words of a text, separated by spaces, and where each ends; returns how many they are, or an error.
 *
 * `words` has room for 2 * size + 8 bytes, `ends` for size / 2 + 1 offsets.  Reference: normalize.tokens. */
int64_t nd_normalise(const nd_tables *tables, const uint8_t *text, size_t size, uint8_t *words, uint32_t *ends);

#endif
