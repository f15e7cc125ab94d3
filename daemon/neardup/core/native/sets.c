/* Sets of numbers, made of a text and compared with those of another text.
 *
 * A set is an array of numbers that ascend without repetition.  Two sets are merged to count what they share; where one
 * is much smaller, its elements are searched in the other one.
 */
#include "internal.h"

#define MANY_TIMES 16 /* from this ratio of two sets on, the elements of one are searched in the other */
#define NO_CONSONANT 255
#define CLASS_BITS 3 /* of a consonant class */
#define SCRIPTS 3
#define MAX_GRAM 10 /* consonants, so that a gram has 32 bits */

/* ---- Counts of what two sets share ----------------------------------------------------------------------------- */

/* The first of ascending hashes that is not less: by steps that double, and then by halving. */
static int64_t not_less(const uint64_t *hashes, int64_t count, uint64_t hash) {
    int64_t step = 1;
    while (step < count && hashes[step] < hash) {
        step *= 2;
    }
    int64_t first = step / 2, end = step < count ? step + 1 : count;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        if (hashes[middle] < hash) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

int64_t nd_count_shared_hashes(const uint64_t *few, int64_t n, const uint64_t *many, int64_t m) {
    if (n < 0 || m < 0 || (n && !few) || (m && !many)) {
        return ND_INVALID;
    }
    int64_t shared = 0, at = 0, other = 0;
    if (m / MANY_TIMES > n) {
        for (; at < n && other < m; at++) {
            other += not_less(many + other, m - other, few[at]);
            shared += other < m && many[other] == few[at];
        }
        return shared;
    }
    while (at < n && other < m) { /* without a branch that depends on the hashes, which no processor can foresee */
        uint64_t hash = few[at], another = many[other];
        shared += hash == another;
        at += hash <= another;
        other += another <= hash;
    }
    return shared;
}

static int is_among(uint32_t number, const uint32_t *ascending, int64_t count) {
    int64_t first = 0, end = count;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        if (ascending[middle] < number) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < count && ascending[first] == number;
}

int64_t nd_count_shared_apart(const uint32_t *a, int64_t n, const uint32_t *b, int64_t m, const uint32_t *apart,
                              int64_t k) {
    if (n < 0 || m < 0 || k < 0 || (n && !a) || (m && !b) || (k && !apart)) {
        return ND_INVALID;
    }
    int64_t shared = 0, at = 0, other = 0;
    if (!k) {
        while (at < n && other < m) { /* as above */
            uint32_t number = a[at], another = b[other];
            shared += number == another;
            at += number <= another;
            other += another <= number;
        }
        return shared;
    }
    while (at < n && other < m) {
        uint32_t number = a[at], another = b[other];
        shared += number == another && !is_among(number, apart, k);
        at += number <= another;
        other += another <= number;
    }
    return shared;
}

/* ---- The grams of a skeleton ----------------------------------------------------------------------------------- */

/* The entries of `consonants` of a text in UTF-8, without NO_CONSONANT, and how many are of each script; returns their
 * number, or ND_INVALID for bytes that are not UTF-8. */
static int64_t take_consonants(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes,
                               uint8_t *entries, int64_t *of_script) {
    const uint8_t *at = text, *end = text + bytes;
    int64_t count = 0;
    while (at < end) {
        uint32_t size, code = code_at(at, end, &size);
        if (RARE(code == BAD)) {
            return ND_INVALID;
        }
        uint8_t entry = consonants[code < codes ? code : codes - 1];
        entries[count] = entry;
        count += entry != NO_CONSONANT;
        of_script[entry >> CLASS_BITS]++;
        at += size;
    }
    return count;
}

int64_t nd_skeleton_grams(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes, int64_t size,
                          uint8_t *entries, uint32_t *grams) {
    if (bytes < 0 || codes < 1 || size < 1 || size > MAX_GRAM || !consonants || (bytes && (!text || !entries || !grams))) {
        return ND_INVALID;
    }
    int64_t of_script[(NO_CONSONANT >> CLASS_BITS) + 1] = {0};
    int64_t count = take_consonants(text, bytes, consonants, codes, entries, of_script), kept = 0;
    unsigned script = 0, before = NO_CONSONANT;
    for (unsigned other = 1; other < SCRIPTS; other++) {
        script = of_script[other] > of_script[script] ? other : script;
    }
    uint32_t gram = 0, all = (uint32_t)(((uint64_t)1 << CLASS_BITS * size) - 1);
    for (int64_t nth = 0; nth < count; nth++) { /* equal classes in a row count once; again without a branch */
        unsigned class = entries[nth] & ((1 << CLASS_BITS) - 1);
        int is_of_script = entries[nth] >> CLASS_BITS == script, is_kept = is_of_script && class != before;
        before = is_of_script ? class : before;
        gram = is_kept ? (gram << CLASS_BITS | class) & all : gram;
        grams[kept >= size ? kept - size + 1 : 0] = gram;
        kept += is_kept;
    }
    return count < 0 ? count : kept < size ? 0 : kept - size + 1;
}
