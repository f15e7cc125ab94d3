/* Pairs of stories that are worth verifying, by their fingerprints in memory.
 *
 * Screen: the scores of given pairs, and all pairs of two sets of stories that are alike.
 * Bucket join: all pairs of stories of a language that share a key.
 */
#include "scores.h"

/* ---- Screen: which pairs are alike ---------------------------------------------------------------------------- */

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

/* Keys, buckets and the key at which a pair is found: see neardup.core.candidates.all_pairs.
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
