/* What the files of the native core share: the mixing of hashes, winnowing, the reading of UTF-8 and of consonants, the
 * search in ascending numbers, and hints for the compiler. */
#ifndef NEARDUP_INTERNAL_H
#define NEARDUP_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "neardup.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_X86_VECTORS
#endif

#define RARE(condition) __builtin_expect(!!(condition), 0)
#define INLINE static inline __attribute__((always_inline))

/* The finaliser of splitmix64, as word_hashes.mix. */
INLINE uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

enum { BAD = 0x7FFFFFFF /* in place of a code point: bytes that are not UTF-8 */ };

INLINE bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The code point at a place before `end`, and its bytes; BAD, and one byte, where there is none. */
INLINE uint32_t code_at(const uint8_t *at, const uint8_t *end, uint32_t *bytes) {
    uint32_t lead = at[0], code = BAD;
    ptrdiff_t left = end - at;
    *bytes = 1;
    if (lead < 0x80) return lead;
    if ((lead & 0xF0) == 0xE0) {
        if (left < 3 || !continues(at[1]) || !continues(at[2])) return BAD;
        code = (lead & 0x0F) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
        if (code < 0x800 || (code & 0xF800) == 0xD800) return BAD;
        *bytes = 3;
    } else if ((lead & 0xE0) == 0xC0) {
        if (lead < 0xC2 || left < 2 || !continues(at[1])) return BAD;
        code = (lead & 0x1F) << 6 | (at[1] & 0x3Fu);
        *bytes = 2;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        if (left < 4 || !continues(at[1]) || !continues(at[2]) || !continues(at[3])) return BAD;
        code = (lead & 0x07) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
        if (code < 0x10000 || code > 0x10FFFF) return BAD;
        *bytes = 4;
    }
    return code;
}

/* Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003), as word_hashes.sample_grams: of every `window` adjacent
 * grams the place of the least one, of equal ones the last.  Writes at most `count` places, ascending; returns how
 * many. */
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

/* Whether an ascending array has a number. */
INLINE bool is_among(uint32_t number, const uint32_t *ascending, int64_t count) {
    int64_t first = 0, end = count;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        if (ascending[middle] < number) first = middle + 1;
        else end = middle;
    }
    return first < count && ascending[first] == number;
}

/* The entries of `consonants`: a class of CLASS_BITS, or NO_CONSONANT. */
enum { NO_CONSONANT = 255, CLASS_BITS = 3 };

/* The entry of a code point; the last one of the `count` serves all beyond. */
INLINE uint8_t consonant_of(const uint8_t *consonants, uint64_t count, uint32_t code) {
    return consonants[code < count ? code : count - 1];
}

/* The normalised words of a text, separated by spaces, where each ends, and the entries of `consonants` of their
 * letters, without NO_CONSONANT.  For a text of `size` bytes `words` has room for 2 * size + 8 bytes, `ends` for
 * size / 2 + 1 offsets, and `classes` for size + 1 entries. */
typedef struct {
    uint8_t *words;
    uint32_t *ends;
    uint8_t *classes;
    size_t class_count;
} nd_normalised;

/* Normalise a text; returns the number of words, or an error.  Reference: normalize.tokenize. */
int64_t nd_normalise(const nd_tables *tables, const uint8_t *text, size_t size, nd_normalised *result);

#endif
