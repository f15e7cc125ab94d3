/* Pairs of stories that are worth verifying: the loops of nomination, of lookups, and of the joins of all stories.
 *
 * Screen: the scores of given pairs, and all pairs of two sets of stories that are alike.
 * Bucket join: all pairs of stories of a language that share a key, in memory.
 * Key join: the pairs in buckets of any keys, or of any passage hashes, each at one of those that it shares.
 * Passage join: all pairs of stories that share passage hashes, in bounded memory.
 * Shared numbers: the story numbers in several of the buckets of a lookup.
 */
#include <stdlib.h>

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

/* ---- Screen: which pairs are alike ---------------------------------------------------------------------------- */

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

static int are_valid(const nd_fingerprints *stories, const nd_thresholds *thresholds, int64_t languages) {
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

int64_t nd_score_pairs(const nd_fingerprints *stories, const nd_fingerprints *others, const int64_t *left,
                       const int64_t *right, int64_t pairs, const nd_thresholds *thresholds, int64_t languages,
                       uint8_t *is_alike, int64_t *rows, int64_t *bits) {
    if (!are_valid(stories, thresholds, languages)) {
        return ND_INVALID;
    }
    for (int64_t pair = 0; pair < pairs; pair++) {
        int64_t story = left[pair];
        int64_t other = right[pair];
        if (story < 0 || story >= stories->size || other < 0 || other >= others->size) {
            return ND_INVALID;
        }
        scores found = score_pair(stories, story, others, other, thresholds + stories->languages[story]);
        is_alike[pair] = (uint8_t)found.is_alike;
        rows[pair] = found.rows;
        bits[pair] = found.bits;
    }
    return 0;
}

/* Nearly all pairs are of unrelated stories, and cheap checks of their bands and SimHashes rule them out first. */
int64_t nd_alike_pairs(const nd_fingerprints *stories, const nd_fingerprints *others, const nd_thresholds *thresholds,
                       int64_t languages, int64_t is_inside, int64_t *cursor, int64_t *left, int64_t *right,
                       int64_t *rows, int64_t *bits, int64_t room) {
    int64_t pairs = 0;
    if (!are_valid(stories, thresholds, languages) || cursor[0] < 0 || cursor[1] < 0) {
        return ND_INVALID;
    }
    for (; cursor[0] < stories->size; cursor[0]++, cursor[1] = 0) {
        int64_t story = cursor[0];
        const uint8_t *signature = stories->signatures + ROWS * story;
        const nd_thresholds *own = thresholds + stories->languages[story];
        int64_t other = is_inside && cursor[1] <= story ? story + 1 : cursor[1];
        for (; other < others->size; other++) {
            if (stories->languages[story] != others->languages[other] ||
                (!equal_bands(signature, others->signatures + ROWS * other) &&
                 differing_bits(stories, story, others, other) > own->hamming)) {
                continue;
            }
            scores found = score_pair(stories, story, others, other, own);
            if (!found.is_alike) {
                continue;
            }
            if (pairs >= room) {
                cursor[1] = other;
                return pairs;
            }
            left[pairs] = story;
            right[pairs] = other;
            rows[pairs] = found.rows;
            bits[pairs] = found.bits;
            pairs++;
        }
    }
    return pairs;
}

int64_t nd_compare(const nd_fingerprints *stories, const nd_fingerprints *others, int64_t hamming, int64_t least_rows,
                   int64_t *cursor, int64_t *left, int64_t *right, int64_t *rows, int64_t room) {
    int64_t pairs = 0;
    if (cursor[0] < 0 || cursor[1] < 0) {
        return ND_INVALID;
    }
    for (; cursor[0] < others->size; cursor[0]++, cursor[1] = 0) {
        int64_t other = cursor[0];
        const uint8_t *signature = others->signatures + ROWS * other;
        for (int64_t story = cursor[1]; story < stories->size; story++) {
            int agreeing = 0;
            if (stories->is_signed[story] && others->is_signed[other]) {
                agreeing = equal_bytes(stories->signatures + ROWS * story, signature, ROWS);
            }
            if (agreeing < least_rows && differing_bits(stories, story, others, other) > hamming) {
                continue;
            }
            if (pairs >= room) {
                cursor[1] = story;
                return pairs;
            }
            left[pairs] = story;
            right[pairs] = other;
            rows[pairs] = agreeing;
            pairs++;
        }
    }
    return pairs;
}

/* ---- Bucket join: all pairs of stories that share a bucket, each pair once ------------------------------------ */

/* Keys, buckets and the key at which a pair is found: see neardup.core.candidates.bucket_join.
 *
 * Join.  The caller sorts the stories by the first band of a key, so that a bucket is a part of a *run* of equal
 * values.  Each run is joined on the second band by a hash join: a member is compared with the chain of earlier members
 * that have its value, and then put at the head of that chain.  The table of heads fits a processor's cache.  Under
 * keys of one band, the whole run is one chain.
 *
 * Short runs.  Most runs have a few members.  Every two of these are compared at once, under all the keys of the first
 * band: they belong to one of these keys if they share no band before it.
 *
 * Skipping.  In a template copied a thousand times every pair shares nearly every bucket, and rejecting it there again
 * and again would cost most of the time.  So the caller orders each run by the *outside band*, the first band that is
 * not the key's first.  Members with equal values in it, which an earlier key has compared, are adjacent in a chain,
 * and a member enters its chain behind them, by `skips`.
 */

#define END_OF_CHAIN (-1)
#define MAX_STEPS (1 << 24) /* before the join pauses: about a tenth of a second */
#define SHORT_RUN 32        /* members: longer runs take less time as chains */

/* A run of the join, and what was found in this call. */
typedef struct {
    const nd_join *join;
    const int64_t *members;
    int64_t size;
    int is_single_band; /* a key is one band */
    int64_t pairs;
    int64_t steps;
} run_state;

INLINE uint32_t band_value(const nd_join *join, int64_t story, int64_t band) {
    int64_t index = story * join->bands + band;
    return join->band_bytes == 2 ? ((const uint16_t *)join->band_values)[index]
                                 : ((const uint32_t *)join->band_values)[index];
}

/* Bit b is set if two stories have the same value in band b. */
INLINE uint32_t shared_bands(const nd_join *join, int64_t a, int64_t b) {
    if (join->bands == BANDS && join->band_bytes == 2) {
        const uint8_t *values = join->band_values;
        return equal_bands(values + ROWS * a, values + ROWS * b);
    }
    uint32_t shared = 0;
    for (int64_t band = 0; band < join->bands; band++) {
        shared |= (uint32_t)(band_value(join, a, band) == band_value(join, b, band)) << band;
    }
    return shared;
}

INLINE int agree_in_bytes(const nd_join *join, int64_t a, int64_t b) {
    int equal = join->width == ROWS ? equal_bytes(join->fingerprints + ROWS * a, join->fingerprints + ROWS * b, ROWS)
                                    : equal_bytes(join->fingerprints + HASH_BYTES * a,
                                                  join->fingerprints + HASH_BYTES * b, HASH_BYTES);
    return equal >= join->min_bytes;
}

INLINE void put_pair(run_state *run, int64_t a, int64_t b) {
    run->join->left[run->pairs] = a < b ? a : b;
    run->join->right[run->pairs] = a < b ? b : a;
    run->pairs++;
}

INLINE int has_room(const run_state *run) {
    return run->steps <= MAX_STEPS && run->pairs <= run->join->room - run->join->work_size;
}

/* Compare every two members of a run under all the keys of its band.
 *
 * A pair that shares a band before it belongs to a key that begins with that band.
 */
static void join_short_run(nd_join *join, run_state *run) {
    uint32_t earlier = low_bits(join->first_band);
    while (join->next < run->size && has_room(run)) {
        int64_t a = run->members[join->next];
        for (int64_t other = 0; other < join->next; other++) {
            int64_t b = run->members[other];
            uint32_t shared = shared_bands(join, a, b);
            if (!(shared & earlier) && count_bits(shared) >= join->min_bands && agree_in_bytes(join, a, b)) {
                put_pair(run, a, b);
            }
        }
        run->steps += join->next;
        join->next++;
    }
}

/* Read the values of the second band. */
static void prepare_run(nd_join *join, const run_state *run) {
    for (int64_t n = 0; n < run->size; n++) {
        join->values[n] = run->is_single_band ? 0 : (uint16_t)band_value(join, run->members[n], join->second);
    }
    join->is_prepared = 1;
}

INLINE int is_member(const run_state *run, int32_t member) {
    return member >= 0 && member < run->size; /* END_OF_CHAIN is none */
}

/* Compare each member of a run with its chain, from `next` on, and chain it.
 *
 * A pair that shares a band before the second one, other than the first, belongs to the key of that band.
 */
static void join_chains(nd_join *join, run_state *run) {
    int64_t outside = join->first_band == 0;
    uint32_t earlier = low_bits(join->second) & ~((uint32_t)1 << join->first_band);
    while (join->next < run->size && has_room(run)) {
        int32_t member = (int32_t)join->next;
        int64_t a = run->members[member];
        int32_t head = join->heads[join->values[member]];
        int32_t skip = head;
        if (is_member(run, head) && outside < join->second &&
            band_value(join, a, outside) == band_value(join, run->members[head], outside)) {
            skip = join->skips[head];
        }
        join->links[member] = head;
        join->skips[member] = skip;
        join->heads[join->values[member]] = member;
        /* A chain is never longer than its run: so much room is there, whatever the links are. */
        int32_t other = skip;
        for (int64_t nth = 0; nth < run->size && is_member(run, other); nth++, other = join->links[other]) {
            int64_t b = run->members[other];
            uint32_t shared = shared_bands(join, a, b);
            if (!(shared & earlier) && count_bits(shared) >= join->min_bands && agree_in_bytes(join, a, b)) {
                put_pair(run, a, b);
            }
            run->steps++;
        }
        run->steps++;
        join->next++;
    }
}

static void go_to_next_run(nd_join *join) {
    join->run++;
    join->second = join->start;
    join->next = join->is_prepared = 0;
}

/* Empty the chains, and move to the run's next second band, or the next run. */
static void finish_band(nd_join *join, const run_state *run) {
    for (int64_t n = 0; n < run->size; n++) {
        join->heads[join->values[n]] = END_OF_CHAIN;
    }
    join->next = join->is_prepared = 0;
    join->second++;
    if (join->second == join->stop) {
        go_to_next_run(join);
    }
}

static int is_valid_join(const nd_join *join) {
    int is_single_band = join->start == join->first_band;
    int is_banded = join->bands >= 1 && join->bands <= BANDS && (join->band_bytes == 2 || join->band_bytes == 4);
    int has_keys = join->first_band >= 0 && join->start >= join->first_band && join->start < join->stop &&
                   join->stop <= join->bands;
    int fits = is_single_band ? join->stop == join->start + 1 : join->band_bytes == 2;
    int has_rules = (join->width == ROWS || join->width == HASH_BYTES) && join->work_size >= 0 &&
                    join->room >= join->work_size;
    int is_started = join->run >= 0 && join->next >= 0 && join->second >= join->start && join->second < join->stop;
    return is_banded && has_keys && fits && has_rules && is_started;
}

static int is_valid_run(const nd_join *join) {
    int64_t begin = join->edges[join->run];
    int64_t end = join->edges[join->run + 1];
    if (begin < 0 || end < begin || end > join->members_size || end - begin > join->work_size ||
        end - begin > INT32_MAX || join->next > end - begin) {
        return 0;
    }
    for (int64_t n = begin; n < end; n++) {
        if (join->members[n] < 0 || join->members[n] >= join->stories) {
            return 0;
        }
    }
    return 1;
}

int64_t nd_join_buckets(nd_join *join) {
    if (!is_valid_join(join)) {
        return ND_INVALID;
    }
    run_state run = {.join = join, .is_single_band = join->start == join->first_band};
    int64_t valid = -1; /* the run that was found to be valid last */
    while (join->run < join->runs && has_room(&run)) {
        if (valid != join->run && !is_valid_run(join)) {
            return ND_INVALID;
        }
        valid = join->run;
        run.members = join->members + join->edges[join->run];
        run.size = join->edges[join->run + 1] - join->edges[join->run];
        if (run.size <= SHORT_RUN) {
            join_short_run(join, &run);
            if (join->next == run.size) {
                go_to_next_run(join);
            }
            continue;
        }
        if (!join->is_prepared) {
            prepare_run(join, &run);
        }
        join_chains(join, &run);
        if (join->next == run.size) {
            finish_band(join, &run);
        }
    }
    return run.pairs;
}

/* ---- Key join: pairs in buckets, each at one key -------------------------------------------------------------- */

#define HASH_BANDS 8 /* of a SimHash: 16 bits each */
#define RANK_BITS_SHIFT 32
#define RANK_ROWS_SHIFT 40
#define KEY_NUMBER_SHIFT 50

/* The bits of a SimHash that make each of the first keys. */
typedef struct {
    int64_t groups;
    uint64_t masks[HASH_BANDS][2];
} group_masks;

/* `edges` are the number of groups, and their edges in bands.  Returns 0 if they are wrong. */
static int read_groups(const int64_t *edges, group_masks *read) {
    memset(read, 0, sizeof *read);
    read->groups = edges[0];
    if (read->groups < 0 || read->groups > HASH_BANDS) {
        return 0;
    }
    for (int64_t group = 0; group < read->groups; group++) {
        if (edges[group + 1] < 0 || edges[group + 1] > edges[group + 2] || edges[group + 2] > HASH_BANDS) {
            return 0;
        }
        for (int64_t band = edges[group + 1]; band < edges[group + 2]; band++) {
            read->masks[group][band / 4] |= (uint64_t)0xFFFF << 16 * (band % 4);
        }
    }
    return 1;
}

/* The keys that two stories of a language share: bit k for key k. */
INLINE uint64_t shared_keys(const nd_fingerprints *stories, int64_t story, int64_t other, const group_masks *groups,
                            uint32_t bands) {
    uint64_t low = stories->simhashes[2 * story] ^ stories->simhashes[2 * other];
    uint64_t high = stories->simhashes[2 * story + 1] ^ stories->simhashes[2 * other + 1];
    uint64_t shared = 0;
    for (int64_t group = 0; group < groups->groups; group++) {
        uint64_t differing = (low & groups->masks[group][0]) | (high & groups->masks[group][1]);
        shared |= (uint64_t)(differing == 0) << group;
    }
    if (stories->is_signed[story] && stories->is_signed[other]) {
        uint32_t equal = equal_bands(stories->signatures + ROWS * story, stories->signatures + ROWS * other);
        shared |= (uint64_t)(equal & bands) << groups->groups;
    }
    return shared;
}

/* Let the last element of a heap, the greatest first, rise to its place (Williams, CACM 1964). */
static void rise(int64_t *heap, int64_t size) {
    int64_t at = size - 1;
    int64_t value = heap[at];
    while (at > 0 && heap[(at - 1) / 2] < value) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = value;
}

/* Put a value in the place of the greatest one, and let it sink to its place. */
static void sink(int64_t *heap, int64_t size, int64_t value) {
    int64_t at = 0;
    for (int64_t child = 1; child < size; child = 2 * at + 1) {
        child += child + 1 < size && heap[child + 1] > heap[child];
        if (heap[child] <= value) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

/* A heap becomes an ascending array. */
static void sort_heap(int64_t *heap, int64_t size) {
    for (int64_t last = size - 1; last > 0; last--) {
        int64_t greatest = heap[0];
        sink(heap, last, heap[last]);
        heap[last] = greatest;
    }
}

/* How many rows of a bucket before the row `other` match it there; the ranks of the best `most`, best first. */
static int64_t rank_matches(const nd_key_join *join, int64_t bucket, int64_t other, const group_masks *groups,
                            int64_t *ranks, int64_t most) {
    const nd_fingerprints *stories = &join->stories;
    int64_t start = join->edges[bucket];
    int64_t language = stories->languages[other];
    int64_t max_bucket = join->limits[2 * language + 1];
    const nd_thresholds *own = join->thresholds + language;
    uint64_t here = (uint64_t)1 << (join->keys[bucket] >> KEY_NUMBER_SHIFT & 0x3F);
    uint64_t light = ~join->heavy[other];
    uint32_t bands = low_bits(own->bands);
    int64_t stop = other - start < max_bucket ? other : start + max_bucket;
    int64_t found = 0;
    for (int64_t story = start; story < stop; story++) {
        uint64_t shared = shared_keys(stories, story, other, groups, bands);
        uint64_t compared_at = shared & light ? shared & light : shared;
        if ((compared_at & (0 - compared_at)) != here || join->ids[story] == join->ids[other]) {
            continue;
        }
        scores scored = score_pair(stories, story, stories, other, own);
        if (!scored.is_alike) {
            continue;
        }
        int64_t held = found < most ? found : most;
        int64_t rank = (int64_t)(ROWS - scored.rows) << RANK_ROWS_SHIFT | (int64_t)scored.bits << RANK_BITS_SHIFT |
                       (story - start);
        if (held < most) {
            ranks[held] = rank;
            rise(ranks, held + 1);
        } else if (most > 0 && rank < ranks[0]) {
            sink(ranks, most, rank);
        }
        found++;
    }
    sort_heap(ranks, found < most ? found : most);
    return found;
}

static int is_valid_bucket(const int64_t *edges, int64_t bucket, int64_t rows) {
    return edges[bucket] >= 0 && edges[bucket] <= edges[bucket + 1] && edges[bucket + 1] <= rows;
}

int64_t nd_pairs_in_buckets(const nd_key_join *join, int64_t *cursor, int64_t *ranks, int64_t ranks_size,
                            const nd_pairs *out, int64_t *left_out) {
    int64_t pairs = 0;
    if (cursor[0] < 0 || cursor[1] < 0 || !are_valid(&join->stories, join->thresholds, join->languages)) {
        return ND_INVALID;
    }
    for (; cursor[0] < join->buckets; cursor[0]++, cursor[1] = 0) {
        int64_t bucket = cursor[0];
        if (!is_valid_bucket(join->edges, bucket, join->stories.size) || join->compared[bucket] < 0) {
            return ND_INVALID;
        }
        int64_t start = join->edges[bucket];
        int64_t stop = join->edges[bucket + 1];
        if (start == stop) {
            continue;
        }
        int64_t language = join->stories.languages[start];
        int64_t most = join->limits[2 * language];
        group_masks groups;
        if (!read_groups(join->group_edges + (HASH_BANDS + 2) * language, &groups) || most < 0) {
            return ND_INVALID;
        }
        int64_t done = cursor[1] > join->compared[bucket] ? cursor[1] : join->compared[bucket];
        for (; done < stop - start; done++) {
            int64_t other = start + done;
            int64_t possible = done < most ? done : most;
            if (join->ids[other] < 0 || join->stories.languages[other] != language) {
                continue;
            }
            if (possible > ranks_size) {
                return ND_INVALID;
            }
            if (pairs + possible > out->room) {
                cursor[1] = done;
                return pairs;
            }
            int64_t found = rank_matches(join, bucket, other, &groups, ranks, possible);
            left_out[language] += found > possible ? found - possible : 0;
            for (int64_t n = 0; n < found && n < possible; n++, pairs++) {
                out->left[pairs] = start + (ranks[n] & 0xFFFFFFFF);
                out->right[pairs] = other;
                out->rows[pairs] = ROWS - (ranks[n] >> RANK_ROWS_SHIFT);
                out->bits[pairs] = ranks[n] >> RANK_BITS_SHIFT & 0xFF;
            }
        }
    }
    return pairs;
}

/* How many numbers two ascending lists share, if `wanted` is the first of them; 0 otherwise. */
static int64_t count_from(int64_t wanted, const int64_t *list, const int64_t *end, const int64_t *other,
                          const int64_t *other_end) {
    int64_t count = 0;
    while (list < end && other < other_end) {
        if (*list < *other) {
            list++;
        } else if (*list > *other) {
            other++;
        } else if (count == 0 && *list != wanted) {
            return 0;
        } else {
            count++;
            list++;
            other++;
        }
    }
    return count;
}

static int are_valid_lists(const nd_hash_join *join) {
    if (join->stories.size < 0 || join->ends[0] < 0 || join->ends[join->stories.size] > join->lists_size) {
        return 0;
    }
    for (int64_t row = 0; row < join->stories.size; row++) {
        if (join->ends[row] > join->ends[row + 1]) {
            return 0;
        }
    }
    return are_valid(&join->stories, join->thresholds, join->languages);
}

int64_t nd_pairs_in_hash_buckets(const nd_hash_join *join, int64_t *cursor, int64_t *left, int64_t *right,
                                 int64_t *shared, int64_t room) {
    const nd_fingerprints *stories = &join->stories;
    const int64_t *ends = join->ends;
    int64_t pairs = 0;
    if (cursor[0] < 0 || cursor[1] < 0 || !are_valid_lists(join)) {
        return ND_INVALID;
    }
    for (; cursor[0] < join->buckets; cursor[0]++, cursor[1] = 0) {
        int64_t bucket = cursor[0];
        if (!is_valid_bucket(join->edges, bucket, stories->size)) {
            return ND_INVALID;
        }
        int64_t start = join->edges[bucket];
        int64_t size = join->edges[bucket + 1] - start;
        for (int64_t done = cursor[1]; done < size; done++) {
            int64_t other = start + done;
            if (pairs + done > room) {
                cursor[1] = done;
                return pairs;
            }
            for (int64_t story = start; story < other && join->ids[other] >= 0; story++) {
                int64_t common =
                    count_from(join->hashes[bucket], join->lists + ends[story], join->lists + ends[story + 1],
                               join->lists + ends[other], join->lists + ends[other + 1]);
                if (common == 0 || common < join->min_shared ||
                    score_pair(stories, story, stories, other, join->thresholds + stories->languages[story]).is_alike) {
                    continue;
                }
                left[pairs] = story;
                right[pairs] = other;
                shared[pairs] = common;
                pairs++;
            }
        }
    }
    return pairs;
}

/* ---- Sorting --------------------------------------------------------------------------------------------------- */

#define SHORT_LIST 48 /* numbers: longer lists take less time by digits */

static void sort_short(uint32_t *numbers, int64_t size) {
    for (int64_t n = 1; n < size; n++) {
        uint32_t number = numbers[n];
        int64_t at = n;
        while (at > 0 && numbers[at - 1] > number) {
            numbers[at] = numbers[at - 1];
            at--;
        }
        numbers[at] = number;
    }
}

/* Sort numbers in place by their bytes, the least significant first (Knuth, volume 3, section 5.2.5).
 *
 * A byte that all numbers share takes no pass.  `work` has room for as many numbers.
 */
static void sort_numbers(uint32_t *numbers, int64_t size, uint32_t *work) {
    if (size <= SHORT_LIST) {
        sort_short(numbers, size);
        return;
    }
    int64_t places[4][256] = {{0}};
    for (int64_t n = 0; n < size; n++) {
        for (int digit = 0; digit < 4; digit++) {
            places[digit][numbers[n] >> 8 * digit & 0xFF]++;
        }
    }
    uint32_t *from = numbers;
    uint32_t *to = work;
    for (int digit = 0; digit < 4; digit++) {
        int64_t *place = places[digit];
        int shift = 8 * digit;
        if (place[from[0] >> shift & 0xFF] == size) {
            continue;
        }
        int64_t begin = 0;
        for (int value = 0; value < 256; value++) {
            int64_t count = place[value];
            place[value] = begin;
            begin += count;
        }
        for (int64_t n = 0; n < size; n++) {
            to[place[from[n] >> shift & 0xFF]++] = from[n];
        }
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != numbers) {
        memcpy(numbers, from, (size_t)size * sizeof *numbers);
    }
}

/* ---- Passage join: pairs that share passage hashes ------------------------------------------------------------- */

/* Sorted postings are cut into groups: the stories that hold a hash.  Pairs are then counted by their later story: each
 * group copies its earlier members to the list of each of its members, and what a list contains twice shares two
 * hashes.  See neardup.core.candidates.passage_groups.
 */

#define DEAD 255

/* Copy the holders of the hash of posting `at`; returns where the next hash begins, or ND_INVALID. */
INLINE int64_t read_holders(const uint64_t *postings, int64_t size, int64_t at, const uint8_t *language_of,
                            int64_t numbers, uint32_t *holders, int64_t *found) {
    uint64_t passage = postings[at] >> 32;
    *found = 0;
    for (; at < size && postings[at] >> 32 == passage; at++) {
        uint32_t number = (uint32_t)postings[at];
        if (number >= numbers) {
            return ND_INVALID;
        }
        if (language_of[number] != DEAD && (*found == 0 || holders[*found - 1] != number)) {
            holders[(*found)++] = number;
        }
    }
    return at;
}

/* How many different copy keys some stories have; `keys` and `work` have room for as many numbers. */
static int64_t count_copy_keys(const uint32_t *holders, int64_t found, const uint32_t *copy_keys, uint32_t *keys,
                               uint32_t *work) {
    for (int64_t n = 0; n < found; n++) {
        keys[n] = copy_keys[holders[n]];
    }
    sort_numbers(keys, found, work);
    int64_t different = 0;
    for (int64_t n = 0; n < found; n++) {
        different += n == 0 || keys[n] != keys[n - 1];
    }
    return different;
}

/* Add a hash that too many stories hold, once for each of their languages; returns how many there are now. */
static int64_t put_common(nd_common_hashes *common, uint32_t hash, const uint32_t *holders, int64_t found,
                          int64_t surplus, const uint8_t *language_of) {
    uint8_t is_seen[DEAD] = {0};
    for (int64_t n = 0; n < found; n++) {
        uint8_t language = language_of[holders[n]];
        if (is_seen[language]) {
            continue;
        }
        is_seen[language] = 1;
        if (common->size >= common->room) {
            return ND_ROOM;
        }
        common->hashes[common->size] = hash;
        common->holders[common->size] = found;
        common->surplus[common->size] = surplus;
        common->examples[common->size] = holders[n];
        common->size++;
    }
    return common->size;
}

/* As nd_cut_into_groups; `keys` and `work` have room for `most` numbers each, or `size` if that is less. */
static int64_t cut_into_groups(const uint64_t *postings, int64_t size, const uint8_t *language_of,
                               const uint32_t *copy_keys, int64_t numbers, int64_t most_keys, int64_t most,
                               uint32_t *pairs_of, uint32_t *groups, uint32_t *keys, uint32_t *work,
                               nd_common_hashes *common) {
    int64_t end = 0;
    for (int64_t n = 0; n < size;) {
        uint32_t hash = (uint32_t)(postings[n] >> 32);
        uint32_t *holders = groups + end + 1;
        int64_t found;
        n = read_holders(postings, size, n, language_of, numbers, holders, &found);
        if (n < 0) {
            return n;
        }
        int64_t surplus = found > most ? found - most : 0;
        if (found > most_keys && found <= most) {
            surplus = count_copy_keys(holders, found, copy_keys, keys, work) - most_keys;
        }
        if (surplus > 0) {
            if (put_common(common, hash, holders, found, surplus, language_of) < 0) {
                return ND_ROOM;
            }
        } else if (found > 1) {
            groups[end] = (uint32_t)found;
            for (int64_t nth = 0; nth < found; nth++) {
                pairs_of[holders[nth]] += (uint32_t)nth;
            }
            end += found + 1;
        }
    }
    return end;
}

int64_t nd_cut_into_groups(const uint64_t *postings, int64_t size, const uint8_t *language_of,
                           const uint32_t *copy_keys, int64_t numbers, int64_t most_keys, int64_t most,
                           uint32_t *pairs_of, uint32_t *groups, int64_t room, nd_common_hashes *found) {
    if (size < 0 || found->size < 0 || most < 0 || most_keys < 0) {
        return ND_INVALID;
    }
    if (room < 0 || room - 2 - size / 2 < size) {
        return ND_ROOM;
    }
    int64_t kept = most < size ? most : size;
    uint32_t *buffer = malloc((size_t)(2 * kept + 1) * sizeof *buffer);
    if (buffer == NULL) {
        return ND_NO_MEMORY;
    }
    int64_t end = cut_into_groups(postings, size, language_of, copy_keys, numbers, most_keys, most, pairs_of, groups,
                                  buffer, buffer + kept, found);
    free(buffer);
    return end;
}

int64_t nd_list_earlier(const uint32_t *groups, int64_t size, int64_t first, uint32_t *earlier, int64_t room,
                        int64_t *ends, int64_t stories) {
    if (first < 0 || first > UINT32_MAX || stories < 0 || stories > UINT32_MAX || room < 0) {
        return ND_INVALID;
    }
    int64_t stop = first + stories;
    for (int64_t at = 0; at < size;) {
        int64_t count = groups[at];
        const uint32_t *members = groups + at + 1;
        if (count > size - at - 1) {
            return ND_INVALID;
        }
        at += count + 1;
        int64_t last = count - 1;
        while (last > 0 && members[last] >= stop) {
            last--;
        }
        for (; last > 0 && members[last] >= first; last--) {
            if (members[last] >= stop) {
                return ND_INVALID;
            }
            int64_t *end = ends + (members[last] - first);
            if (*end < 0 || *end > room - last) {
                return ND_INVALID;
            }
            memcpy(earlier + *end, members, (size_t)last * sizeof *members);
            *end += last;
        }
    }
    return 0;
}

int64_t nd_count_shared(uint32_t *earlier, int64_t earlier_size, const int64_t *ends, int64_t stories, int64_t first,
                        int64_t min_shared, uint32_t *work, int64_t work_size, uint32_t *left, uint32_t *right,
                        int64_t *shared, int64_t room) {
    int64_t pairs = 0;
    for (int64_t story = 0; story < stories; story++) {
        int64_t begin = ends[story];
        int64_t end = ends[story + 1];
        if (begin < 0 || end < begin || end > earlier_size || end - begin > work_size) {
            return ND_INVALID;
        }
        uint32_t *members = earlier + begin;
        int64_t size = end - begin;
        sort_numbers(members, size, work);
        for (int64_t start = 0, n = 1; n <= size; n++) {
            if (n < size && members[n] == members[start]) {
                continue;
            }
            if (n - start >= min_shared) {
                if (pairs >= room) {
                    return ND_ROOM;
                }
                left[pairs] = members[start];
                right[pairs] = (uint32_t)first + (uint32_t)story;
                shared[pairs] = n - start;
                pairs++;
            }
            start = n;
        }
    }
    return pairs;
}

/* ---- Shared numbers: those in several of the buckets of a lookup ------------------------------------------------ */

/* Nearly all numbers occur in one bucket only.  So two bitmaps that fit a processor's cache first mark the numbers that
 * may occur twice, by a hash of the number (a Bloom filter with one hash function: Bloom, CACM 1970), and only the
 * occurrences of these are sorted and counted.
 */

#define MULTIPLIER 2654435769u /* 2^32 / golden ratio (Knuth, volume 3, section 6.4) */
#define BITS_A_NUMBER 8
#define MIN_WIDTH 12
#define MAX_WIDTH 32

/* The width of a hash that has BITS_A_NUMBER values or more for each number. */
static int width_for(int64_t numbers) {
    int width = MIN_WIDTH;
    while (width < MAX_WIDTH && (int64_t)1 << width < BITS_A_NUMBER * numbers) {
        width++;
    }
    return width;
}

/* The buckets of one lookup. */
typedef struct {
    const uint32_t *members;
    const int64_t *edges;
    const int64_t *buckets;
    int64_t count;
    int64_t total; /* members of all of them */
} lookup_buckets;

/* Gather the occurrences of numbers that may occur in two buckets; returns how many there are.
 *
 * None that occurs twice is missing; a few others are there because their hashes collide.  `gathered` has room for
 * all members.
 */
static int64_t gather_repeated(const lookup_buckets *lookup, uint64_t *bitmaps, uint32_t *gathered) {
    int width = width_for(lookup->total);
    int shift = 32 - width;
    size_t words = (size_t)1 << (width - 6);
    uint64_t *seen_once = bitmaps;
    uint64_t *seen_twice = bitmaps + words;
    memset(bitmaps, 0, 2 * words * sizeof *bitmaps);
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t bucket = lookup->buckets[n];
        for (int64_t at = lookup->edges[bucket]; at < lookup->edges[bucket + 1]; at++) {
            uint32_t slot = lookup->members[at] * MULTIPLIER >> shift;
            uint64_t bit = (uint64_t)1 << (slot & 63);
            seen_twice[slot >> 6] |= seen_once[slot >> 6] & bit;
            seen_once[slot >> 6] |= bit;
        }
    }
    int64_t count = 0;
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t bucket = lookup->buckets[n];
        for (int64_t at = lookup->edges[bucket]; at < lookup->edges[bucket + 1]; at++) {
            uint32_t slot = lookup->members[at] * MULTIPLIER >> shift;
            gathered[count] = lookup->members[at]; /* overwritten unless it counts: no branch is mispredicted */
            count += (int64_t)(seen_twice[slot >> 6] >> (slot & 63) & 1);
        }
    }
    return count;
}

static int64_t gather_all(const lookup_buckets *lookup, uint32_t *gathered) {
    int64_t count = 0;
    for (int64_t n = 0; n < lookup->count; n++) {
        int64_t begin = lookup->edges[lookup->buckets[n]];
        int64_t size = lookup->edges[lookup->buckets[n] + 1] - begin;
        if (size) {
            memcpy(gathered + count, lookup->members + begin, (size_t)size * sizeof *gathered);
        }
        count += size;
    }
    return count;
}

/* Sort the numbers, and keep one of each that occurs `least` times; returns how many these are. */
static int64_t keep_frequent(uint32_t *numbers, int64_t size, int64_t least, uint32_t *work, uint32_t *found) {
    int64_t kept = 0;
    sort_numbers(numbers, size, work);
    for (int64_t start = 0, n = 1; n <= size; n++) {
        if (n < size && numbers[n] == numbers[start]) {
            continue;
        }
        if (n - start >= least) {
            found[kept++] = numbers[start];
        }
        start = n;
    }
    return kept;
}

/* The members of a lookup's buckets, or ND_INVALID for a bucket that does not exist. */
static int64_t count_members(const int64_t *buckets, int64_t count, const int64_t *edges, int64_t edges_size) {
    int64_t total = 0;
    for (int64_t n = 0; n < count; n++) {
        if (buckets[n] < 0 || buckets[n] >= edges_size - 1) {
            return ND_INVALID;
        }
        total += edges[buckets[n] + 1] - edges[buckets[n]];
    }
    return total;
}

static int are_valid_edges(const int64_t *edges, int64_t edges_size, int64_t members_size) {
    if (edges_size < 1 || edges[0] < 0 || edges[edges_size - 1] > members_size) {
        return 0;
    }
    for (int64_t n = 1; n < edges_size; n++) {
        if (edges[n] < edges[n - 1]) {
            return 0;
        }
    }
    return 1;
}

int64_t nd_shared_by(const uint32_t *members, int64_t members_size, const int64_t *edges, int64_t edges_size,
                     const int64_t *lookups, int64_t lookups_size, int64_t buckets, int64_t least, uint32_t *found,
                     int64_t room, int64_t *ends) {
    int64_t largest = 0;
    if (buckets < 0 || least < 1 || !are_valid_edges(edges, edges_size, members_size)) {
        return ND_INVALID;
    }
    for (int64_t lookup = 0; lookup < lookups_size; lookup++) {
        int64_t total = count_members(lookups + lookup * buckets, buckets, edges, edges_size);
        if (total < 0) {
            return ND_INVALID;
        }
        largest = total > largest ? total : largest;
    }
    size_t words = (size_t)1 << (width_for(largest) - 6);
    uint64_t *bitmaps = malloc(2 * words * sizeof *bitmaps + 2 * (size_t)largest * sizeof(uint32_t));
    if (!bitmaps) {
        return ND_NO_MEMORY;
    }
    uint32_t *gathered = (uint32_t *)(bitmaps + 2 * words);
    uint32_t *work = gathered + largest;
    int64_t done = 0;
    ends[0] = 0;
    for (; done < lookups_size; done++) {
        lookup_buckets lookup = {members, edges, lookups + done * buckets, buckets, 0};
        lookup.total = count_members(lookup.buckets, buckets, edges, edges_size);
        if (lookup.total / least > room - ends[done]) {
            break;
        }
        int64_t count = least == 1 ? gather_all(&lookup, gathered) : gather_repeated(&lookup, bitmaps, gathered);
        ends[done + 1] = ends[done] + keep_frequent(gathered, count, least, work, found + ends[done]);
    }
    free(bitmaps);
    return done;
}
