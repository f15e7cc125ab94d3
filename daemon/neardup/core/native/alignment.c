/* What two texts share: the alignment of their words, and the words that its blocks copy.
 *
 * The references in Python explain the algorithm: seed and extend, as in Altschul et al., "Basic local alignment search
 * tool" (J. Mol. Biol. 1990).  What differs here is how the seeds are found, because most texts that are compared are
 * unrelated and share few of them.  A bitmap of the hashed grams of the shorter text, as Bloom's filter with one hash
 * ("Space/time trade-offs in hash coding with allowable errors", CACM 1970), lets through the grams of the longer one
 * that it may have.  A bitmap of those lets through grams of the shorter one.  Only these go into the hash table.
 *
 * All memory is the caller's room, which an arena hands out in pieces.
 */
#include "internal.h"

#define GRAM 4        /* words */
#define WINDOW 24     /* grams */
#define MIN_BLOCK 12  /* equal words */
#define MAX_GAP 5     /* words */
#define MIN_RESUMED 3 /* words */
#define MAX_PAIRS 64  /* of places of a gram */
#define MAX_WORDS (1 << 30)
#define COMMON 1      /* the mark of a word in a common passage */
#define NEAR_COMMON 2 /* and of one that is near such a word */
#define COPIED 4      /* and of an equal word of a block that is in no common passage */

struct text {
    const uint64_t *words;
    int64_t length;
};

struct texts {
    struct text a; /* the longer one */
    struct text b;
};

struct run {
    int32_t at_a;
    int32_t at_b;
    int32_t words;
};

struct row { /* of the result: a run of a block */
    int32_t at_a;
    int32_t at_b;
    int32_t words;
    int32_t block;
};

struct span { /* words [start, end) */
    int32_t start;
    int32_t end;
};

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

struct arena {
    char *next;
};

static int64_t padded(int64_t bytes) { return (bytes + 7) & ~(int64_t)7; }

/* The next piece of the room.  `nd_alignment_room` counts all pieces, so there is always enough. */
static void *take(struct arena *arena, int64_t count, size_t size) {
    char *piece = arena->next;
    arena->next += padded(count * (int64_t)size);
    return piece;
}

static void *take_zeros(struct arena *arena, int64_t count, size_t size) {
    return memset(take(arena, count, size), 0, (size_t)count * size);
}

/* The pieces, in bytes for each word of the longer text and of the shorter one.  The output comes first and stays.
 *
 *     output               8    24   the spans; or the rows, of which each has a word of either text
 *     bitmap                     4
 *     candidates           4     4
 *     table                     64   16 for a slot, of which there are at most 4 for a gram
 *     slots, following     4     4
 *     diagonals            4     4
 *     runs                48    48   a gram of x places in a and y in b has at most 4 (x + y) pairs; 12 for a run
 *     order               16    20   4 for a run, and 4 for a length
 *     free                 1     1
 *
 * The copied words are counted when all but the output is free again, and need less.
 */
int64_t nd_alignment_room(int64_t words_a, int64_t words_b) {
    if (words_a < 0 || words_b < 0 || words_a > MAX_WORDS || words_b > MAX_WORDS) {
        return ND_INVALID;
    }
    int64_t longer = words_a > words_b ? words_a : words_b;
    int64_t shorter = words_a + words_b - longer;
    return 96 * longer + 184 * shorter + 1024;
}

/* ---- Seeds: the shared runs ------------------------------------------------------------------------------------ */

static int64_t gram_count(struct text text) { return text.length < GRAM ? 0 : text.length - GRAM + 1; }

/* A hash of the four words, which are hashes themselves: so a polynomial of them will do. */
INLINE uint64_t hash_of(const uint64_t *gram) {
    const uint64_t base = 0x9E3779B97F4A7C15u;
    return ((gram[0] * base + gram[1]) * base + gram[2]) * base + gram[3];
}

INLINE int are_equal(const uint64_t *gram, const uint64_t *other) {
    return !((gram[0] ^ other[0]) | (gram[1] ^ other[1]) | (gram[2] ^ other[2]) | (gram[3] ^ other[3]));
}

struct bitmap {
    uint8_t *bytes;
    int64_t size; /* bytes, a power of two */
    int shift;    /* of a hash: the highest bits give the place of a bit */
};

/* A bitmap with 16 to 32 bits for each of so many hashes, at least one. */
static struct bitmap new_bitmap(int64_t hashes, struct arena *arena) {
    struct bitmap bitmap = {NULL, 2, 60};
    while (bitmap.size < 2 * hashes) {
        bitmap.size *= 2;
        bitmap.shift -= 1;
    }
    bitmap.bytes = take_zeros(arena, bitmap.size, 1);
    return bitmap;
}

INLINE void set_bit(struct bitmap bitmap, uint64_t hash) {
    uint64_t bit = hash >> bitmap.shift;
    bitmap.bytes[bit >> 3] |= (uint8_t)(1 << (bit & 7));
}

/* The places of the grams whose bits are set; returns their number. */
static int64_t let_through(struct bitmap bitmap, struct text text, int32_t *places) {
    int64_t count = 0;
    for (int64_t place = 0; place < gram_count(text); place++) {
        uint64_t bit = hash_of(text.words + place) >> bitmap.shift;
        places[count] = (int32_t)place;
        count += bitmap.bytes[bit >> 3] >> (bit & 7) & 1;
    }
    return count;
}

struct places {
    int32_t *at;
    int64_t count;
};

/* The places of all grams that both texts have, and of a few more. */
static void find_candidates(struct texts texts, struct arena *arena, struct places *in_a, struct places *in_b) {
    struct bitmap bitmap = new_bitmap(gram_count(texts.b), arena);
    for (int64_t place = 0; place < gram_count(texts.b); place++) {
        set_bit(bitmap, hash_of(texts.b.words + place));
    }
    in_a->at = take(arena, texts.a.length, sizeof(int32_t));
    in_a->count = let_through(bitmap, texts.a, in_a->at);
    memset(bitmap.bytes, 0, (size_t)bitmap.size);
    for (int64_t nth = 0; nth < in_a->count; nth++) {
        set_bit(bitmap, hash_of(texts.a.words + in_a->at[nth]));
    }
    in_b->at = take(arena, texts.b.length, sizeof(int32_t));
    in_b->count = in_a->count ? let_through(bitmap, texts.b, in_b->at) : 0;
}

struct slot {      /* of a gram; an empty one has `in_b` 0 */
    int32_t first; /* its first place in b that is left, -1 for none */
    int32_t in_a;  /* how many places of a have it */
    int32_t in_b;
    int32_t tag; /* some bits of its hash */
};

struct table { /* of the grams of b, with linear probing */
    struct slot *slots;
    uint64_t mask;
    int shift;
};

static struct table new_table(int64_t grams, struct arena *arena) {
    int bits = 1;
    while ((int64_t)1 << bits < 2 * grams) {
        bits++;
    }
    struct table table = {NULL, ((uint64_t)1 << bits) - 1, 64 - bits};
    table.slots = take_zeros(arena, (int64_t)1 << bits, sizeof(struct slot));
    return table;
}

/* The slot of a gram, which may be empty. */
INLINE struct slot *slot_of(struct table table, const uint64_t *b, const uint64_t *gram, int32_t *tag) {
    uint64_t hash = hash_of(gram);
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    *tag = (int32_t)(hash & 0x7FFFFFFF);
    for (uint64_t place = hash >> table.shift;; place = (place + 1) & table.mask) {
        struct slot *slot = table.slots + place;
        if (!slot->in_b || (slot->tag == *tag && are_equal(b + slot->first, gram))) {
            return slot;
        }
    }
}

/* Put the grams of b into a table.  `following` becomes, by place in b, the next place of the same gram, or -1. */
static struct table index_grams(struct text b, struct places in_b, int32_t *following, struct arena *arena) {
    struct table table = new_table(in_b.count, arena);
    for (int64_t nth = in_b.count - 1; nth >= 0; nth--) {
        int32_t place = in_b.at[nth], tag;
        struct slot *slot = slot_of(table, b.words, b.words + place, &tag);
        following[place] = slot->in_b ? slot->first : -1;
        slot->first = place;
        slot->tag = tag;
        slot->in_b++;
    }
    return table;
}

struct seeds {
    struct places places; /* of grams in a that b has, too */
    int32_t *slots;       /* of these grams */
    struct table table;
    int32_t *following;
    int64_t most_pairs; /* that are considered */
    int are_all;        /* no gram has more than MAX_PAIRS */
};

INLINE int has_too_many(const struct slot *slot) { return (int64_t)slot->in_a * slot->in_b > MAX_PAIRS; }

static struct seeds find_seeds(struct texts texts, struct arena *arena) {
    struct seeds seeds = {.are_all = 1};
    struct places in_b;
    find_candidates(texts, arena, &seeds.places, &in_b);
    if (!in_b.count) {
        seeds.places.count = 0;
        return seeds;
    }
    seeds.following = take(arena, texts.b.length, sizeof(int32_t));
    seeds.slots = take(arena, seeds.places.count, sizeof(int32_t));
    seeds.table = index_grams(texts.b, in_b, seeds.following, arena);
    int64_t count = 0;
    for (int64_t nth = 0; nth < seeds.places.count; nth++) {
        int32_t place = seeds.places.at[nth], tag;
        struct slot *slot = slot_of(seeds.table, texts.b.words, texts.a.words + place, &tag);
        if (slot->in_b) {
            slot->in_a++;
            seeds.slots[count] = (int32_t)(slot - seeds.table.slots);
            seeds.places.at[count] = place;
            count++;
        }
    }
    seeds.places.count = count;
    for (int64_t nth = 0; nth < count; nth++) {
        const struct slot *slot = seeds.table.slots + seeds.slots[nth];
        seeds.most_pairs += has_too_many(slot) ? 1 : slot->in_b;
        seeds.are_all &= !has_too_many(slot);
    }
    return seeds;
}

/* The longest run around a pair of places with the same gram; back no farther than `reached` in a. */
static struct run extended(struct texts texts, int32_t at_a, int32_t at_b, int32_t reached) {
    const uint64_t *a = texts.a.words, *b = texts.b.words;
    int32_t back = 0;
    while (at_a - back > reached && at_b > back && a[at_a - back - 1] == b[at_b - back - 1]) {
        back++;
    }
    int32_t end = GRAM;
    while (at_a + end < texts.a.length && at_b + end < texts.b.length && a[at_a + end] == b[at_b + end]) {
        end++;
    }
    return (struct run){at_a - back, at_b - back, back + end};
}

/* The shared runs, in the order of a; returns their number. */
static int64_t runs_of_seeds(struct texts texts, struct seeds seeds, struct run *runs, struct arena *arena) {
    int32_t *reached = take_zeros(arena, texts.a.length + texts.b.length, sizeof(int32_t)); /* by diagonal, in a */
    int64_t count = 0;
    for (int64_t nth = 0; nth < seeds.places.count; nth++) {
        int32_t place = seeds.places.at[nth];
        struct slot *slot = seeds.table.slots + seeds.slots[nth];
        for (int32_t other = slot->first; other >= 0; other = seeds.following[other]) {
            int32_t *end = reached + (other - place + texts.a.length);
            if (*end <= place) {
                runs[count] = extended(texts, place, other, *end);
                *end = runs[count].at_a + runs[count].words;
                count++;
            }
            if (has_too_many(slot)) {
                slot->first = seeds.following[other];
                break;
            }
        }
    }
    return count;
}

/* The numbers of the runs, the longest first, and of equal length in their order: sorted by counting. */
static int32_t *longest_first(const struct run *runs, int64_t count, struct arena *arena) {
    int32_t longest = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        longest = runs[nth].words > longest ? runs[nth].words : longest;
    }
    int32_t *order = take(arena, count, sizeof(int32_t));
    int32_t *starts = take_zeros(arena, longest + 1, sizeof(int32_t)); /* by how much shorter than the longest */
    for (int64_t nth = 0; nth < count; nth++) {
        starts[longest - runs[nth].words + 1]++;
    }
    for (int32_t shorter = 1; shorter <= longest; shorter++) {
        starts[shorter] += starts[shorter - 1];
    }
    for (int64_t nth = 0; nth < count; nth++) {
        order[starts[longest - runs[nth].words]++] = (int32_t)nth;
    }
    return order;
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------- */

struct block_maker {
    struct texts texts;
    uint8_t *free_a; /* the words that no block has */
    uint8_t *free_b;
    struct row *rows;
    int64_t count;
};

/* The number of equal words from these on, forwards (`way` 1) or backwards (-1), that no block has. */
INLINE int32_t equal_words(const struct block_maker *maker, int64_t at_a, int64_t at_b, int way) {
    const uint64_t *a = maker->texts.a.words, *b = maker->texts.b.words;
    int32_t words = 0;
    while (at_a >= 0 && at_b >= 0 && at_a < maker->texts.a.length && at_b < maker->texts.b.length &&
           a[at_a] == b[at_b] && maker->free_a[at_a] && maker->free_b[at_b]) {
        at_a += way;
        at_b += way;
        words++;
    }
    return words;
}

/* The number of words, at most MAX_GAP, from this one on that no block has. */
INLINE int32_t gap_of(const uint8_t *is_free, int64_t length, int64_t at, int way) {
    int32_t words = 0;
    while (words < MAX_GAP && at >= 0 && at < length && is_free[at]) {
        at += way;
        words++;
    }
    return words;
}

/* Step over the shortest gap after which equal words go on; returns those words, 0 for none. */
static int32_t resumed(const struct block_maker *maker, int64_t *at_a, int64_t *at_b, int way) {
    int32_t most_a = gap_of(maker->free_a, maker->texts.a.length, *at_a, way);
    int32_t most_b = gap_of(maker->free_b, maker->texts.b.length, *at_b, way);
    for (int32_t gaps = 1; gaps <= most_a + most_b; gaps++) {
        int32_t least = gaps > most_b ? gaps - most_b : 0;
        int32_t most = gaps < most_a ? gaps : most_a;
        for (int32_t gap_a = least; gap_a <= most; gap_a++) {
            int32_t gap_b = gaps - gap_a;
            int32_t words = equal_words(maker, *at_a + way * gap_a, *at_b + way * gap_b, way);
            if (words >= MIN_RESUMED) {
                *at_a += way * gap_a;
                *at_b += way * gap_b;
                return words;
            }
        }
    }
    return 0;
}

/* Append the runs of a block from these words on; returns how many words they have. */
static int64_t grow(struct block_maker *maker, int64_t at_a, int64_t at_b, int way) {
    int64_t all = 0;
    int32_t words = equal_words(maker, at_a, at_b, way);
    do {
        if (words) {
            int32_t back = way < 0 ? words - 1 : 0;
            maker->rows[maker->count++] = (struct row){(int32_t)at_a - back, (int32_t)at_b - back, words, 0};
            at_a += way * words;
            at_b += way * words;
            all += words;
        }
        words = resumed(maker, &at_a, &at_b, way);
    } while (words);
    return all;
}

static void reverse(struct row *rows, int64_t count) {
    for (int64_t nth = 0; nth < count / 2; nth++) {
        struct row row = rows[nth];
        rows[nth] = rows[count - 1 - nth];
        rows[count - 1 - nth] = row;
    }
}

/* Append the block that these words are in, unless it has fewer than MIN_BLOCK words; returns whether it was. */
static int append_block(struct block_maker *maker, int32_t at_a, int32_t at_b, int32_t block) {
    int64_t before = maker->count;
    int64_t words = grow(maker, at_a - 1, at_b - 1, -1);
    reverse(maker->rows + before, maker->count - before);
    words += grow(maker, at_a, at_b, 1);
    if (words < MIN_BLOCK) {
        maker->count = before;
        return 0;
    }
    for (int64_t nth = before; nth < maker->count; nth++) {
        maker->rows[nth].block = block;
    }
    struct row first = maker->rows[before], last = maker->rows[maker->count - 1];
    memset(maker->free_a + first.at_a, 0, (size_t)(last.at_a + last.words - first.at_a));
    memset(maker->free_b + first.at_b, 0, (size_t)(last.at_b + last.words - first.at_b));
    return 1;
}

/* Put the rows in the order of a, by a table of its places, and number the blocks in this order. */
static void order_rows(struct row *rows, int64_t count, struct text a, struct arena arena) {
    int32_t *numbers = take_zeros(&arena, a.length, sizeof(int32_t)); /* of the rows, from 1 */
    struct row *unordered = take(&arena, count, sizeof(struct row));
    memcpy(unordered, rows, (size_t)count * sizeof(struct row));
    for (int64_t nth = 0; nth < count; nth++) {
        numbers[rows[nth].at_a] = (int32_t)nth + 1;
    }
    int32_t block = -1, before = -1;
    int64_t nth = 0;
    for (int64_t place = 0; nth < count; place++) {
        if (numbers[place]) {
            struct row row = unordered[numbers[place] - 1];
            block += row.block != before;
            before = row.block;
            row.block = block;
            rows[nth++] = row;
        }
    }
}

/* Join the runs to blocks; returns the number of rows, which are in the order of a. */
static int64_t join(struct texts texts, const struct run *runs, const int32_t *order, int64_t count, struct row *rows,
                    struct arena *arena) {
    struct block_maker maker = {texts, NULL, NULL, rows, 0};
    maker.free_a = memset(take(arena, texts.a.length, 1), 1, (size_t)texts.a.length);
    maker.free_b = memset(take(arena, texts.b.length, 1), 1, (size_t)texts.b.length);
    int32_t block = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        struct run run = runs[order[nth]];
        int32_t offset = 0;
        while (offset < run.words) {
            int32_t words = equal_words(&maker, run.at_a + offset, run.at_b + offset, 1);
            if (words >= GRAM) {
                block += append_block(&maker, run.at_a + offset, run.at_b + offset, block);
            }
            offset += words + 1;
        }
    }
    return maker.count;
}

/* The rows of the alignment; returns their number.  `longest_run` becomes -1 if it is not sure. */
static int64_t align(struct texts texts, struct row *rows, int64_t *longest_run, struct arena arena) {
    *longest_run = -1;
    if (texts.b.length < MIN_BLOCK) {
        return 0;
    }
    struct seeds seeds = find_seeds(texts, &arena);
    if (!seeds.places.count) {
        return 0;
    }
    struct run *runs = take(&arena, seeds.most_pairs, sizeof(struct run));
    int64_t count = runs_of_seeds(texts, seeds, runs, &arena);
    int32_t *order = longest_first(runs, count, &arena);
    if (seeds.are_all) {
        *longest_run = runs[order[0]].words;
    }
    struct arena rest = arena;
    int64_t found = join(texts, runs, order, count, rows, &arena);
    if (found) {
        order_rows(rows, found, texts.a, rest);
    }
    return found;
}

/* ---- Copied words ---------------------------------------------------------------------------------------------- */

/* The words that each block reaches over in a text, in the order of a; returns the number of blocks. */
static int64_t spans_of_blocks(const struct row *rows, int64_t count, int of_b, struct span *spans) {
    int64_t blocks = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        int32_t start = of_b ? rows[nth].at_b : rows[nth].at_a;
        if (nth == 0 || rows[nth].block != rows[nth - 1].block) {
            spans[blocks++].start = start;
        }
        spans[blocks - 1].end = start + rows[nth].words;
    }
    return blocks;
}

/* Put disjoint spans in the order of their text, by a table of its places. */
static void order_spans(struct span *spans, int64_t count, int64_t length, struct arena arena) {
    int32_t *ends = take_zeros(&arena, length, sizeof(int32_t)); /* by start */
    for (int64_t nth = 0; nth < count; nth++) {
        ends[spans[nth].start] = spans[nth].end;
    }
    int64_t nth = 0;
    for (int64_t place = 0; nth < count; place++) {
        if (ends[place]) {
            spans[nth++] = (struct span){(int32_t)place, ends[place]};
        }
    }
}

INLINE uint64_t pair_hash(const uint64_t *words) { return mix(mix(words[0]) + words[1]); }

/* The sampled grams of a text: their passage hashes, and the places at which they begin. */
struct samples {
    uint64_t *hashes;
    uint32_t *places;
    int64_t count;
};

static struct samples sample(struct text text, struct arena *arena) {
    int64_t grams = gram_count(text);
    struct samples found = {take(arena, grams, sizeof(uint64_t)), take(arena, grams, sizeof(uint32_t)), 0};
    for (int64_t place = 0; place < grams; place++) {
        const uint64_t *gram = text.words + place;
        found.hashes[place] = mix(mix(pair_hash(gram)) + pair_hash(gram + 2));
    }
    found.count = (int64_t)winnow_places(found.hashes, (size_t)grams, WINDOW, found.places);
    for (int64_t nth = 0; nth < found.count; nth++) {
        found.hashes[nth] = mix(found.hashes[found.places[nth]]) >> 32; /* a sample begins at its number or later */
    }
    return found;
}

/* Set what is common in the words of one span. */
static void mark_common(struct text span, const uint32_t *common, int64_t commons, uint8_t *marks, struct arena arena) {
    struct samples samples = sample(span, &arena);
    const uint32_t *places = samples.places;
    int64_t first = -1, last = -1; /* the places of the first and the last of a stretch of common samples */
    for (int64_t nth = 0; nth < samples.count; nth++) {
        if (is_among((uint32_t)samples.hashes[nth], common, commons)) {
            last = places[nth];
            if (first < 0) {
                first = nth ? last : 0;
            }
        } else if (first >= 0) {
            memset(marks + first, COMMON, (size_t)(last + GRAM - first));
            first = -1;
        }
    }
    if (first >= 0) {
        memset(marks + first, COMMON, (size_t)(span.length - first));
    }
}

static uint8_t *marks_of(struct text text, const struct span *spans, int64_t count, const uint32_t *common,
                         int64_t commons, struct arena *arena) {
    uint8_t *marks = take_zeros(arena, text.length, 1);
    for (int64_t nth = 0; nth < count && commons; nth++) {
        struct text span = {text.words + spans[nth].start, spans[nth].end - spans[nth].start};
        mark_common(span, common, commons, marks + spans[nth].start, *arena);
    }
    return marks;
}

enum { FIRST = 1, REPEATED = 2 }; /* a word of a gram that did not occur before, and of one that did */

/* Which words of the rows stand in a gram of their block that did not occur before, and in one that did: `marks`, one
 * for each word. */
static void mark_occurrences(struct text a, const struct row *rows, int64_t count, int64_t all, uint8_t *marks,
                             struct arena arena) {
    uint64_t *words = take(&arena, all, sizeof(uint64_t));
    struct table table = new_table(all, &arena);
    int64_t start = 0, end = 0; /* of the block, in `words` */
    for (int64_t nth = 0; nth < count; nth++) {
        if (nth && rows[nth].block != rows[nth - 1].block) {
            start = end;
        }
        memcpy(words + end, a.words + rows[nth].at_a, (size_t)rows[nth].words * sizeof(uint64_t));
        int64_t place = end - start < GRAM - 1 ? start : end - (GRAM - 1);
        end += rows[nth].words;
        for (; place + GRAM <= end; place++) {
            int32_t tag;
            struct slot *slot = slot_of(table, words, words + place, &tag);
            uint8_t mark = slot->in_b ? REPEATED : FIRST;
            for (int64_t word = place; word < place + GRAM; word++) {
                marks[word] |= mark;
            }
            if (!slot->in_b) {
                *slot = (struct slot){(int32_t)place, 0, 1, tag};
            }
        }
    }
}

/* The parts of the spans, ascending, between common words, each from its first copied word to its last; returns how
 * many there are. */
static int64_t without_common(const struct span *spans, int64_t count, const uint8_t *marks, struct span *kept) {
    int64_t n = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        int is_open = 0;
        for (int32_t place = spans[nth].start; place < spans[nth].end; place++) {
            if (marks[place] & COMMON) {
                is_open = 0;
            } else if (marks[place] & COPIED) {
                if (!is_open) {
                    kept[n++].start = place;
                    is_open = 1;
                }
                kept[n - 1].end = place + 1;
            }
        }
    }
    return n;
}

/* Count what the rows, one or more, copy; `b_first` puts the spans of b before those of a. */
static void count_copied(struct texts texts, const struct row *rows, int64_t count, const uint32_t *common,
                         int64_t commons, int b_first, struct nd_copied *found, struct arena arena) {
    int64_t all = 0, nth_word = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        all += rows[nth].words;
    }
    struct span *blocks_a = take(&arena, all / MIN_BLOCK, sizeof(struct span));
    struct span *blocks_b = take(&arena, all / MIN_BLOCK, sizeof(struct span));
    int64_t blocks = spans_of_blocks(rows, count, 0, blocks_a);
    spans_of_blocks(rows, count, 1, blocks_b);
    if (blocks > 1) {
        order_spans(blocks_b, blocks, texts.b.length, arena);
    }
    uint8_t *marks_a = marks_of(texts.a, blocks_a, blocks, common, commons, &arena);
    uint8_t *marks_b = marks_of(texts.b, blocks_b, blocks, common, commons, &arena);
    uint8_t *occurrences = take_zeros(&arena, all, 1);
    mark_occurrences(texts.a, rows, count, all, occurrences, arena);
    for (int64_t nth = 0; nth < count; nth++) {
        for (int32_t offset = 0; offset < rows[nth].words; offset++) {
            uint8_t *in_a = marks_a + rows[nth].at_a + offset;
            uint8_t *in_b = marks_b + rows[nth].at_b + offset;
            *in_a = *in_b = *in_a | *in_b ? COMMON : COPIED;
            found->common_words += *in_a == COMMON;
            found->words += (occurrences[nth_word++] == FIRST) & (*in_a == COPIED);
        }
    }
    struct span *spans = (struct span *)(found + 1);
    if (b_first) {
        found->spans_a = without_common(blocks_b, blocks, marks_b, spans);
        found->spans_b = without_common(blocks_a, blocks, marks_a, spans + found->spans_a);
    } else {
        found->spans_a = without_common(blocks_a, blocks, marks_a, spans);
        found->spans_b = without_common(blocks_b, blocks, marks_b, spans + found->spans_a);
    }
}

/* ---- The interface of the alignment ------------------------------------------------------------------------------ */

/* Whether the texts and the room are what they must be. */
static int is_valid(struct text a, struct text b, const void *room, int64_t room_bytes) {
    int64_t needed = nd_alignment_room(a.length, b.length);
    return needed >= 0 && room && !((uintptr_t)room & 7) && room_bytes >= needed && (a.words || !a.length) &&
           (b.words || !b.length);
}

/* Whether b comes first, so that the result does not depend on the order: the shorter text is the second. */
static int is_exchanged(struct text a, struct text b) {
    if (a.length != b.length) {
        return a.length < b.length;
    }
    return a.length && memcmp(b.words, a.words, (size_t)a.length * sizeof(uint64_t)) < 0;
}

int64_t nd_aligned(const uint64_t *a, int64_t words_a, const uint64_t *b, int64_t words_b, void *room,
                   int64_t room_bytes) {
    struct texts texts = {{a, words_a}, {b, words_b}};
    if (!is_valid(texts.a, texts.b, room, room_bytes)) {
        return ND_INVALID;
    }
    int exchanged = is_exchanged(texts.a, texts.b);
    if (exchanged) {
        texts = (struct texts){texts.b, texts.a};
    }
    struct arena arena = {room};
    struct row *rows = take(&arena, texts.b.length, sizeof(struct row));
    int64_t longest_run;
    int64_t count = align(texts, rows, &longest_run, arena);
    for (int64_t nth = 0; nth < count && exchanged; nth++) {
        int32_t at_a = rows[nth].at_a;
        rows[nth].at_a = rows[nth].at_b;
        rows[nth].at_b = at_a;
    }
    return count;
}

/* What two texts share, at the begin of the room: a struct nd_copied and its spans. */
static const struct nd_copied *find_copied(struct texts texts, const uint32_t *common, int64_t commons,
                                           int64_t at_least, void *room) {
    int exchanged = is_exchanged(texts.a, texts.b);
    if (exchanged) {
        texts = (struct texts){texts.b, texts.a};
    }
    struct arena arena = {room};
    struct nd_copied *found = take_zeros(&arena, 1, sizeof(struct nd_copied));
    take(&arena, texts.a.length + texts.b.length, sizeof(struct span)); /* the spans come here */
    struct row *rows = take(&arena, texts.b.length, sizeof(struct row));
    int64_t count = align(texts, rows, &found->longest_run, arena), words = 0;
    for (int64_t nth = 0; nth < count; nth++) {
        words += rows[nth].words;
    }
    if (count && words >= at_least) {
        count_copied(texts, rows, count, common, commons, exchanged, found, arena);
    }
    return found;
}

int64_t nd_copied_pairs(const nd_words *texts, int64_t n, const nd_pair *pairs, int64_t m, const uint32_t *common,
                        int64_t commons, struct nd_copied *copied, int32_t *spans, int64_t span_room, void *room,
                        int64_t room_bytes) {
    if (n < 0 || m < 0 || commons < 0 || span_room < 0 || (n && !texts) || (commons && !common) ||
        (m && (!pairs || !copied || !spans))) {
        return ND_INVALID;
    }
    for (int64_t nth = 0; nth < m; nth++) {
        nd_pair pair = pairs[nth];
        if (pair.a < 0 || pair.b < 0 || pair.a >= n || pair.b >= n) {
            return ND_INVALID;
        }
        struct texts both = {{texts[pair.a].words, texts[pair.a].length}, {texts[pair.b].words, texts[pair.b].length}};
        if (!is_valid(both.a, both.b, room, room_bytes)) {
            return ND_INVALID;
        }
        const struct nd_copied *found = find_copied(both, common, commons, pair.at_least, room);
        int64_t count = found->spans_a + found->spans_b;
        if (count > span_room) {
            return nth ? nth : ND_ROOM;
        }
        copied[nth] = *found;
        memcpy(spans, found + 1, (size_t)count * sizeof(struct span));
        spans += 2 * count;
        span_room -= count;
    }
    return m;
}

/* Mark the places within WINDOW words of a common one, before or after it, as NEAR_COMMON. */
static void mark_near(uint8_t *marks, int64_t length) {
    int64_t last = -WINDOW - 1, next = length + WINDOW;
    for (int64_t place = 0; place < length; place++) {
        last = marks[place] & COMMON ? place : last;
        marks[place] |= place - last <= WINDOW ? NEAR_COMMON : 0;
    }
    for (int64_t place = length - 1; place >= 0; place--) {
        next = marks[place] & COMMON ? place : next;
        marks[place] |= next - place <= WINDOW ? NEAR_COMMON : 0;
    }
}

int64_t nd_sampled_passages(const uint64_t *words, int64_t length, uint32_t *hashes, void *room, int64_t room_bytes) {
    struct text text = {words, length};
    if (!is_valid(text, (struct text){NULL, 0}, room, room_bytes) || (length && !hashes)) {
        return ND_INVALID;
    }
    struct arena arena = {room};
    struct samples samples = sample(text, &arena);
    for (int64_t nth = 0; nth < samples.count; nth++) {
        hashes[nth] = (uint32_t)samples.hashes[nth];
    }
    return samples.count;
}

int64_t nd_are_own(const uint64_t *words, int64_t length, const uint32_t *common, int64_t commons, uint8_t *own,
                   void *room, int64_t room_bytes) {
    struct text text = {words, length};
    if (!is_valid(text, (struct text){NULL, 0}, room, room_bytes) || commons < 0 || (commons && !common) ||
        (length && !own)) {
        return ND_INVALID;
    }
    if (!length) {
        return 0;
    }
    memset(own, 0, (size_t)length); /* first, 1 marks the others */
    mark_common(text, common, commons, own, (struct arena){room});
    mark_near(own, length);
    for (int64_t place = 0; place < length; place++) {
        own[place] = !own[place];
    }
    return 0;
}
