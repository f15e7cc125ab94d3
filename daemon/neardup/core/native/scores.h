/* How alike two stories are by their fingerprints: what the joins of candidates.c and key_join.c share. */
#ifndef NEARDUP_SCORES_H
#define NEARDUP_SCORES_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "internal.h"

#define ROWS 64  /* of a signature: a byte each */
#define BANDS 32 /* of a signature: two rows each */
#define HASH_BYTES 16

/* ---- Equal parts of two fingerprints -------------------------------------------------------------------------- */

/* The set bits of a word (Warren, "Hacker's Delight", chapter 5). */
INLINE int count_bits(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (int)(x * 0x0101010101010101u >> 56);
}

#ifdef __SSE2__ /* every x86-64 has it */

INLINE __m128i equal_pairs_of_bytes(const uint8_t *a, const uint8_t *b) {
    return _mm_cmpeq_epi16(_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)b));
}

/* Bit b is set if band b of two signatures is equal. */
INLINE uint32_t equal_bands(const uint8_t *a, const uint8_t *b) {
    __m128i low = _mm_packs_epi16(equal_pairs_of_bytes(a, b), equal_pairs_of_bytes(a + 16, b + 16));
    __m128i high = _mm_packs_epi16(equal_pairs_of_bytes(a + 32, b + 32), equal_pairs_of_bytes(a + 48, b + 48));
    return (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
}

/* The equal bytes of two fingerprints of `width` bytes, a multiple of 16. */
INLINE int equal_bytes(const uint8_t *a, const uint8_t *b, int width) {
    __m128i counts = _mm_setzero_si128();
    for (int at = 0; at < width; at += 16) {
        __m128i left = _mm_loadu_si128((const __m128i *)(a + at));
        __m128i right = _mm_loadu_si128((const __m128i *)(b + at));
        counts = _mm_sub_epi8(counts, _mm_cmpeq_epi8(left, right));
    }
    __m128i sums = _mm_sad_epu8(counts, _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_cvtsi128_si32(_mm_srli_si128(sums, 8));
}

#else

INLINE uint32_t equal_bands(const uint8_t *a, const uint8_t *b) {
    uint32_t equal = 0;
    for (int band = 0; band < BANDS; band++) {
        uint32_t is_equal = (a[2 * band] == b[2 * band]) & (a[2 * band + 1] == b[2 * band + 1]);
        equal |= is_equal << band;
    }
    return equal;
}

INLINE int equal_bytes(const uint8_t *a, const uint8_t *b, int width) {
    uint8_t count = 0;
    for (int at = 0; at < width; at++) {
        count += a[at] == b[at];
    }
    return count;
}

#endif

INLINE uint32_t low_bits(int64_t count) {
    return count >= 32 ? UINT32_MAX : ((uint32_t)1 << count) - 1;
}

/* ---- Scores of a pair ----------------------------------------------------------------------------------------- */

typedef struct {
    int is_alike;
    int rows; /* of the signatures, that agree */
    int bits; /* of the SimHashes, that differ */
} scores;

INLINE int differing_bits(const nd_fingerprints *stories, int64_t story, const nd_fingerprints *others, int64_t other) {
    const uint64_t *a = stories->simhashes + 2 * story;
    const uint64_t *b = others->simhashes + 2 * other;
    return count_bits(a[0] ^ b[0]) + count_bits(a[1] ^ b[1]);
}

/* The scores of two stories by the thresholds of the first one's language. */
INLINE scores score_pair(const nd_fingerprints *stories, int64_t story, const nd_fingerprints *others, int64_t other,
                         const nd_thresholds *own) {
    scores found = {0, 0, differing_bits(stories, story, others, other)};
    int64_t shared = 0;
    if (stories->is_signed[story] && others->is_signed[other]) {
        const uint8_t *a = stories->signatures + ROWS * story;
        const uint8_t *b = others->signatures + ROWS * other;
        found.rows = equal_bytes(a, b, ROWS);
        if (found.rows >= own->agreeing_rows) {
            shared = count_bits(equal_bands(a, b) & low_bits(own->bands));
        }
    }
    found.is_alike = (found.bits <= own->hamming || shared >= own->shared_bands) &&
                     stories->languages[story] == others->languages[other];
    return found;
}

INLINE int are_valid(const nd_fingerprints *stories, const nd_thresholds *thresholds, int64_t languages) {
    for (int64_t story = 0; story < stories->size; story++) {
        if (stories->languages[story] >= languages) {
            return 0;
        }
    }
    for (int64_t language = 0; language < languages; language++) {
        if (thresholds[language].bands < 0 || thresholds[language].bands > BANDS) {
            return 0;
        }
    }
    return 1;
}

#endif
