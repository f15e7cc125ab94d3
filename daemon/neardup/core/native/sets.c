/* Sets of numbers, made of a text and compared with those of another text.
 *
 * A set is an array of numbers that ascend without repetition.  Two sets are merged to count what they share; where one
 * is much smaller, its elements are searched in the other one.  Here as well are the skeleton of a text and its grams,
 * which are in the order of the text.
 */
#include "internal.h"

#define MANY_TIMES 16 /* from this ratio of two sets on, the elements of one are searched in the other */
#define MAX_GRAM 10 /* consonants, so that a gram fits into 32 bits */

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

/* How many hashes two sets share; the first set should be the smaller one. */
static int64_t count_shared(const uint64_t *few, int64_t n, const uint64_t *many, int64_t m) {
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

/* How many numbers two sets share that `common` does not have. */
static int64_t count_uncommon(nd_numbers a, nd_numbers b, nd_numbers common) {
    int64_t shared = 0, at = 0, other = 0;
    while (at < a.length && other < b.length) { /* as above; few numbers are searched in `common` */
        uint32_t number = a.numbers[at], another = b.numbers[other];
        shared += number == another && !(common.length && is_among(number, common.numbers, common.length));
        at += number <= another;
        other += another <= number;
    }
    return shared;
}

int64_t nd_count_uncommon_of_pairs(const nd_numbers *sets, int64_t n, const nd_pair *pairs, int64_t m,
                                   const uint32_t *common, int64_t k, int64_t *shared) {
    if (n < 0 || m < 0 || k < 0 || (n && !sets) || (k && !common) || (m && (!pairs || !shared))) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < m; nth++) {
        nd_pair pair = pairs[nth];
        if (pair.a < 0 || pair.b < 0 || pair.a >= n || pair.b >= n) {
            return ND_INVALID;
        }
        nd_numbers a = sets[pair.a], b = sets[pair.b];
        if (a.length < 0 || b.length < 0 || (a.length && !a.numbers) || (b.length && !b.numbers)) {
            return ND_INVALID;
        }
        shared[nth] = count_uncommon(a, b, (nd_numbers){common, k});
    }
    return m;
}

int64_t nd_count_shared_of_pairs(const nd_words *sets, int64_t n, const nd_pair *pairs, int64_t m, int64_t *shared) {
    if (n < 0 || m < 0 || (n && !sets) || (m && (!pairs || !shared))) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < m; nth++) {
        nd_pair pair = pairs[nth];
        if (pair.a < 0 || pair.b < 0 || pair.a >= n || pair.b >= n) {
            return ND_INVALID;
        }
        nd_words a = sets[pair.a], b = sets[pair.b];
        if (a.length < 0 || b.length < 0 || (a.length && !a.words) || (b.length && !b.words)) {
            return ND_INVALID;
        }
        shared[nth] = a.length < b.length ? count_shared(a.words, a.length, b.words, b.length)
                                          : count_shared(b.words, b.length, a.words, a.length);
    }
    return m;
}

/* ---- The grams of a skeleton ----------------------------------------------------------------------------------- */

/* Write the classes of a text's consonants, by the table `consonants` of `codes` entries; returns their number, or
 * ND_INVALID for bytes that are not UTF-8. */
static int64_t take_consonants(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes,
                               uint8_t *classes) {
    const uint8_t *at = text, *end = text + bytes;
    int64_t count = 0;
    while (at < end) {
        uint32_t size, code = code_at(at, end, &size);
        if (RARE(code == BAD)) {
            return ND_INVALID;
        }
        classes[count] = consonant_of(consonants, (uint64_t)codes, code);
        count += classes[count] != NO_CONSONANT;
        at += size;
    }
    return count;
}

int64_t nd_skeleton_grams(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes, int64_t size,
                          uint8_t *entries, uint32_t *grams) {
    if (bytes < 0 || codes < 1 || size < 1 || size > MAX_GRAM || !consonants || (bytes && (!text || !entries || !grams))) {
        return ND_INVALID;
    }
    int64_t count = take_consonants(text, bytes, consonants, codes, entries), kept = 0;
    if (count < 0) {
        return count;
    }
    unsigned before = NO_CONSONANT;
    uint32_t gram = 0, all = (uint32_t)(((uint64_t)1 << CLASS_BITS * size) - 1);
    for (int64_t nth = 0; nth < count; nth++) { /* equal classes in a row count once; again without a branch */
        unsigned class = entries[nth];
        int is_kept = class != before;
        before = class;
        gram = is_kept ? (gram << CLASS_BITS | class) & all : gram;
        grams[kept >= size ? kept - size + 1 : 0] = gram;
        kept += is_kept;
    }
    return kept < size ? 0 : kept - size + 1;
}

int64_t nd_skeleton(const uint8_t *text, int64_t bytes, const uint8_t *consonants, int64_t codes, uint8_t *classes,
                    int32_t *words) {
    if (bytes < 0 || codes < 1 || !consonants || (bytes && (!text || !classes || !words))) {
        return ND_INVALID;
    }
    const uint8_t *at = text, *end = text + bytes;
    uint8_t before = NO_CONSONANT;
    int64_t count = 0;
    for (int32_t word = 0; at < end;) {
        uint32_t size, code = code_at(at, end, &size);
        uint8_t entry = consonant_of(consonants, (uint64_t)codes, code); /* BAD is beyond the table: no consonant */
        classes[count] = entry; /* which the next one replaces unless it counts */
        words[count] = word;
        bool is_kept = entry != NO_CONSONANT && entry != before;
        before = is_kept ? entry : before;
        count += is_kept;
        word += code == ' ';
        at += size;
    }
    return count;
}
