/* The fingerprint of a story: text hash, SimHash, MinHash signature and passage hashes, from its normalised words.
 *
 * Each part is explained where its reference is: core/fingerprint/{word_hashes,minhash,skeleton,compute}.py.  What
 * is different here is only the way of computing.
 *
 * SimHash: words of one frequency have one weight, so their digests are first added bit by bit to 128 counters of a
 * byte, eight at once in a number of 64 bits, and the counters are multiplied by the weight before they overflow.
 * MinHash: 64 permutations of each shingle, a multiplication and an addition each, take most of the time; vectors of
 * 256 or 512 bits do it where the processor has them, chosen when the program runs. Skeleton: of its n hashes the
 * least few are wanted, so only those below a limit are sorted, under which three times as many are expected. */
#include <stdbool.h>

#include "internal.h"
#include "xxh3.h"

enum {
    GRAM = 4,           /* words of a passage hash */
    WINDOW = 24,        /* grams of which one is sampled */
    MIN_SHINGLES = 20,  /* of a story with a signature */
    SKELETON_GRAM = 14, /* consonants */
    LEAST = 24,         /* the fewest skeleton hashes of a story that has so many grams */
    SHARE = 96,         /* of a long skeleton one gram of so many is sampled */
    LEAST_COMMON = 22,  /* percent of common words; a text with less is in no language that has a list of them */
    NEARBY = 4,         /* words from one of a rare pair to the other */
    SPARE = 3,          /* times as many hashes as are wanted are expected below the limit */
    DIGEST_BITS = 128,
    FEW = 8,            /* frequencies with counters of their own */
    MOST_COUNTED = 255, /* by a counter of a byte */
    SHORT_LIST = 64,    /* is sorted by insertion */
};

int nd_interface(void) { return ND_INTERFACE; }

/* ---- room ---- */

typedef struct {
    uint8_t *at, *end;
} Room;

/* Bytes of the room, of which there must be enough; ND_ALIGNED says how many a part takes. */
#define ND_ALIGNED(bytes) (((bytes) + 63) & ~(size_t)63)

static void *take(Room *room, size_t bytes) {
    uint8_t *part = room->at;
    room->at += ND_ALIGNED(bytes);
    return part;
}

/* Slots of a hash table for so many entries: a power of two, at least twice as many. */
static size_t slots_for(size_t entries) {
    size_t slots = 16;
    while (slots < 2 * entries) slots *= 2;
    return slots;
}

/* Whether a filter of word hashes can be used: see `nd_tables`. */
INLINE bool is_filter(const uint64_t *common_words, uint64_t common_bits) {
    return common_words && common_bits >= 6 && common_bits <= 32;
}

/* ---- words ---- */

typedef struct {
    const uint8_t *text;  /* the words, separated by spaces */
    const uint32_t *ends; /* where each ends */
    size_t count, bytes;
    uint8_t *classes;     /* of the consonants */
    size_t class_count;
} Words;

/* Normalise a text into the front of the room; returns the number of words, or an error. */
static int64_t read_words(
    const nd_tables *tables, const uint8_t *text, size_t bytes, Room *room, nd_fingerprint *out, Words *words) {
    memset(out, 0, sizeof *out);
    /* below U+0E00, nd_normalise looks into both tables without asking for their sizes */
    if (tables->form_count < 0xE00 || tables->consonant_count < 0xE00) return ND_INVALID;
    if (!is_filter(tables->common_words, tables->common_bits)) return ND_INVALID;
    if (bytes > (size_t)1 << 28) return ND_UNSUPPORTED;
    size_t text_bytes = 2 * bytes + 8, end_bytes = (bytes / 2 + 1) * sizeof(uint32_t), class_bytes = bytes + 1;
    out->room = ND_ALIGNED(text_bytes) + ND_ALIGNED(end_bytes) + ND_ALIGNED(class_bytes);
    if ((size_t)(room->end - room->at) < out->room) return ND_ROOM;
    nd_normalised made = {.words = take(room, text_bytes), .ends = take(room, end_bytes), .classes = take(room, class_bytes)};
    int64_t count = nd_normalise(tables, text, bytes, &made);
    if (count <= 0) return count;
    *words = (Words){made.words, made.ends, (size_t)count, made.ends[count - 1], made.classes, made.class_count};
    out->words = (uint64_t)count;
    out->normalised = words->text;
    out->normalised_bytes = words->bytes;
    return count;
}

/* The hash of a word as word_hashes.Words has it: the first half of its digest, which is big-endian, read as
 * a little-endian number. */
INLINE uint64_t hash_of(Hash128 digest) { return __builtin_bswap64(digest.high); }

static void hash_words(const Words *words, uint64_t *hashes) {
    uint32_t start = 0;
    for (size_t word = 0; word < words->count; word++) {
        hashes[word] = hash_of(hash_word(words->text + start, words->ends[word] - start));
        start = words->ends[word] + 1;
    }
}

/* ---- SimHash ---- */

typedef struct {
    uint64_t low, high, frequency;
} DistinctWord;

/* Hash the words, and count how often each distinct one occurs; returns the number of distinct ones. */
static size_t count_words(
    const Words *words, uint64_t *hashes, DistinctWord *distinct, uint32_t *slots, size_t slot_count) {
    size_t found = 0, mask = slot_count - 1;
    uint32_t start = 0;
    memset(slots, 0, slot_count * sizeof *slots);
    for (size_t word = 0; word < words->count; word++) {
        Hash128 digest = hash_word(words->text + start, words->ends[word] - start);
        start = words->ends[word] + 1;
        hashes[word] = hash_of(digest);
        size_t slot = digest.low & mask;
        while (slots[slot]) {
            const DistinctWord *other = distinct + slots[slot] - 1;
            if (other->low == digest.low && other->high == digest.high) break;
            slot = (slot + 1) & mask;
        }
        if (!slots[slot]) {
            distinct[found] = (DistinctWord){digest.low, digest.high, 0};
            slots[slot] = (uint32_t)++found;
        }
        distinct[slots[slot] - 1].frequency++;
    }
    return found;
}

/* The eight bits of a byte as eight bytes of 0 or 1, the lowest bit first. */
INLINE uint64_t spread_bits(uint8_t byte) {
    return ((byte & 0x7Fu) * 0x0002040810204081u & 0x0101010101010101u) | (uint64_t)(byte >> 7) << 56;
}

typedef struct {
    uint64_t lanes[DIGEST_BITS / 8]; /* 128 counters of a byte */
    unsigned counted;
} Counters;

typedef void CountBits(Counters *counters, const DistinctWord *word);

static void count_bits_portably(Counters *counters, const DistinctWord *word) {
    for (int byte = 0; byte < 8; byte++) {
        counters->lanes[byte] += spread_bits((uint8_t)(word->low >> 8 * byte));
        counters->lanes[8 + byte] += spread_bits((uint8_t)(word->high >> 8 * byte));
    }
}

#ifdef HAS_X86_VECTORS

/* Four bytes of a digest at once: each stands in eight lanes, of which each keeps a bit of its own. */
__attribute__((target("avx2"))) static void count_bits_avx2(Counters *counters, const DistinctWord *word) {
    const __m256i bits = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    const __m256i low = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m256i places[2] = {low, _mm256_add_epi8(low, _mm256_set1_epi8(4))};
    __m256i *lanes = (__m256i *)counters->lanes;
    for (int part = 0; part < 4; part++) {
        __m256i digest = _mm256_set1_epi64x((int64_t)(part < 2 ? word->low : word->high));
        __m256i spread = _mm256_shuffle_epi8(digest, places[part % 2]);
        __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits); /* -1 */
        _mm256_storeu_si256(lanes + part, _mm256_sub_epi8(_mm256_loadu_si256(lanes + part), is_set));
    }
}

static CountBits *fastest_count_bits(void) {
    return __builtin_cpu_supports("avx2") ? count_bits_avx2 : count_bits_portably;
}

#else

static CountBits *fastest_count_bits(void) { return count_bits_portably; }

#endif

static void add_counters(Counters *counters, int64_t weight, int64_t votes[DIGEST_BITS]) {
    for (int bit = 0; bit < DIGEST_BITS; bit++)
        votes[bit] += weight * (int64_t)(counters->lanes[bit / 8] >> 8 * (bit % 8) & 0xFF);
    *counters = (Counters){0};
}

/* The SimHash of distinct words; false if the weight of a word's frequency is not known. */
static bool vote(
    const nd_tables *tables, const DistinctWord *distinct, size_t count, uint8_t simhash[DIGEST_BITS / 8]) {
    Counters by_frequency[FEW + 1] = {0};
    CountBits *count_bits = fastest_count_bits();
    int64_t votes[DIGEST_BITS] = {0}, total = 0; /* bit 0 is the lowest of the low half */
    for (size_t word = 0; word < count; word++) {
        uint64_t frequency = distinct[word].frequency;
        if (frequency >= tables->weight_count) return false;
        int64_t weight = tables->weights[frequency];
        Counters *counters = by_frequency + (frequency <= FEW ? frequency : 0);
        total += weight;
        count_bits(counters, distinct + word);
        counters->counted++;
        if (frequency > FEW || counters->counted == MOST_COUNTED) add_counters(counters, weight, votes);
    }
    for (uint64_t frequency = 1; frequency <= FEW && frequency < tables->weight_count; frequency++)
        if (by_frequency[frequency].counted) add_counters(by_frequency + frequency, tables->weights[frequency], votes);
    memset(simhash, 0, DIGEST_BITS / 8);
    for (int bit = 0; bit < DIGEST_BITS; bit++)
        if (2 * votes[DIGEST_BITS - 1 - bit] > total) simhash[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    return true;
}

/* ---- shingles and MinHash ---- */

/* The hashes of the shingles in the order of the text, see minhash.hash_shingles; returns how many there are. */
static size_t hash_shingles(const uint64_t *hashes, size_t words, uint64_t *shingles) {
    if (words == 1) {
        shingles[0] = mix(hashes[0]);
        return 1;
    }
    for (size_t word = 0; word + 1 < words; word++) shingles[word] = mix(mix(hashes[word]) + hashes[word + 1]);
    return words - 1;
}

static size_t count_distinct(const uint64_t *hashes, size_t count, uint32_t *slots, size_t slot_count) {
    size_t distinct = 0, mask = slot_count - 1;
    memset(slots, 0, slot_count * sizeof *slots);
    for (size_t n = 0; n < count; n++) {
        size_t slot = hashes[n] & mask;
        while (slots[slot] && hashes[slots[slot] - 1] != hashes[n]) slot = (slot + 1) & mask;
        if (slots[slot]) continue;
        slots[slot] = (uint32_t)n + 1;
        distinct++;
    }
    return distinct;
}

typedef void Minima(const nd_tables *tables, const uint64_t *hashes, size_t count, uint64_t least[ND_ROWS]);

static void take_minima(const nd_tables *tables, const uint64_t *hashes, size_t count, uint64_t least[ND_ROWS]) {
    for (int row = 0; row < ND_ROWS; row++) {
        uint64_t multiplier = tables->multipliers[row], addend = tables->addends[row];
        least[row] = UINT64_MAX;
        for (size_t n = 0; n < count; n++) {
            uint64_t permuted = hashes[n] * multiplier + addend;
            least[row] = permuted < least[row] ? permuted : least[row];
        }
    }
}

#ifdef HAS_X86_VECTORS

/* Eight rows at a time in two vectors.  AVX2 multiplies halves of 32 bits and compares signed numbers only, so a
 * product is made of three, and the sign bit is turned over in the addends and turned back in the minima. */
__attribute__((target("avx2"))) static void take_minima_avx2(
    const nd_tables *tables, const uint64_t *hashes, size_t count, uint64_t least[ND_ROWS]) {
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    for (int row = 0; row < ND_ROWS; row += 8) {
        __m256i low[2], high[2], addend[2], minimum[2];
        for (int part = 0; part < 2; part++) {
            low[part] = _mm256_loadu_si256((const void *)(tables->multipliers + row + 4 * part));
            high[part] = _mm256_srli_epi64(low[part], 32);
            addend[part] = _mm256_loadu_si256((const void *)(tables->addends + row + 4 * part));
            addend[part] = _mm256_xor_si256(addend[part], sign);
            minimum[part] = _mm256_set1_epi64x(INT64_MAX);
        }
        for (size_t n = 0; n < count; n++) {
            __m256i hash = _mm256_set1_epi64x((int64_t)hashes[n]), upper = _mm256_srli_epi64(hash, 32);
            for (int part = 0; part < 2; part++) {
                __m256i across = _mm256_add_epi64(_mm256_mul_epu32(hash, high[part]), _mm256_mul_epu32(upper, low[part]));
                __m256i permuted = _mm256_add_epi64(_mm256_mul_epu32(hash, low[part]), addend[part]);
                permuted = _mm256_add_epi64(permuted, _mm256_slli_epi64(across, 32));
                __m256i is_less = _mm256_cmpgt_epi64(minimum[part], permuted);
                minimum[part] = _mm256_blendv_epi8(minimum[part], permuted, is_less);
            }
        }
        for (int part = 0; part < 2; part++)
            _mm256_storeu_si256((void *)(least + row + 4 * part), _mm256_xor_si256(minimum[part], sign));
    }
}

/* Thirty-two rows at a time in four vectors. */
__attribute__((target("avx512f,avx512dq"))) static void take_minima_avx512(
    const nd_tables *tables, const uint64_t *hashes, size_t count, uint64_t least[ND_ROWS]) {
    for (int row = 0; row < ND_ROWS; row += 32) {
        __m512i multiplier[4], addend[4], minimum[4];
        for (int part = 0; part < 4; part++) {
            multiplier[part] = _mm512_loadu_si512(tables->multipliers + row + 8 * part);
            addend[part] = _mm512_loadu_si512(tables->addends + row + 8 * part);
            minimum[part] = _mm512_set1_epi64(-1);
        }
        for (size_t n = 0; n < count; n++) {
            __m512i hash = _mm512_set1_epi64((int64_t)hashes[n]);
            for (int part = 0; part < 4; part++) {
                __m512i permuted = _mm512_add_epi64(_mm512_mullo_epi64(hash, multiplier[part]), addend[part]);
                minimum[part] = _mm512_min_epu64(minimum[part], permuted);
            }
        }
        for (int part = 0; part < 4; part++) _mm512_storeu_si512(least + row + 8 * part, minimum[part]);
    }
}

static Minima *fastest_minima(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return take_minima_avx512;
    return __builtin_cpu_supports("avx2") ? take_minima_avx2 : take_minima;
}

#else

static Minima *fastest_minima(void) { return take_minima; }

#endif

/* The signature, see minhash.compute_signature; repeated shingles do not change a minimum. */
static void sign(const nd_tables *tables, const uint64_t *shingles, size_t count, uint8_t signature[ND_ROWS]) {
    uint64_t least[ND_ROWS];
    fastest_minima()(tables, shingles, count, least);
    for (int row = 0; row < ND_ROWS; row++) signature[row] = (uint8_t)(mix(least[row]) >> 56);
}

/* ---- passage hashes ---- */

static void insertion_sort(uint64_t *numbers, size_t count) {
    for (size_t n = 1; n < count; n++) {
        uint64_t number = numbers[n];
        size_t at = n;
        for (; at > 0 && numbers[at - 1] > number; at--) numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

/* Sort numbers of at most `bytes` bytes: a long list by radix sort, the lowest byte first.  `bytes` is even, since each
 * pass moves the numbers from one array to the other. */
static void sort(uint64_t *numbers, size_t count, uint64_t *spare, int bytes) {
    if (count <= SHORT_LIST) {
        insertion_sort(numbers, count);
        return;
    }
    for (int byte = 0; byte < bytes; byte++) {
        size_t starts[257] = {0};
        for (size_t n = 0; n < count; n++) starts[(numbers[n] >> 8 * byte & 0xFF) + 1]++;
        for (int value = 0; value < 256; value++) starts[value + 1] += starts[value];
        for (size_t n = 0; n < count; n++) spare[starts[numbers[n] >> 8 * byte & 0xFF]++] = numbers[n];
        uint64_t *sorted = spare;
        spare = numbers;
        numbers = sorted;
    }
}

/* Drop what repeats of ascending numbers; returns how many are left. */
static size_t drop_repeated(uint64_t *numbers, size_t count) {
    size_t kept = 0;
    for (size_t n = 0; n < count; n++)
        if (!kept || numbers[n] != numbers[kept - 1]) numbers[kept++] = numbers[n];
    return kept;
}

INLINE uint64_t passage_hash(uint64_t gram) { return mix(gram) >> 32; }

/* Write the passage hashes of a story; returns how many there are.  `grams` and `places` have room for a number a
 * shingle. */
static size_t sample_passages(const uint64_t *shingles, size_t words, uint64_t *grams, uint32_t *places, uint64_t *hashes) {
    if (words < GRAM) return 0;
    size_t count = words - GRAM + 1;
    for (size_t n = 0; n < count; n++) grams[n] = mix(mix(shingles[n]) + shingles[n + 2]);
    size_t sampled = winnow_places(grams, count, WINDOW, places);
    for (size_t n = 0; n < sampled; n++) hashes[n] = passage_hash(grams[places[n]]);
    return sampled;
}

/* ---- skeleton ---- */

/* Keep one of equal classes in a row, without a branch; returns how many are left. */
static size_t keep_skeleton(uint8_t *classes, size_t count) {
    uint8_t before = NO_CONSONANT;
    size_t kept = 0;
    for (size_t n = 0; n < count; n++) {
        uint8_t class = classes[n];
        classes[kept] = class;
        kept += class != before;
        before = class;
    }
    return kept;
}

/* The hashes of the grams of a skeleton, in the order of the text; returns how many there are. */
static size_t hash_skeleton(const uint8_t *skeleton, size_t count, uint64_t *grams) {
    const uint64_t mask = ((uint64_t)1 << CLASS_BITS * SKELETON_GRAM) - 1;
    uint64_t packed = 0;
    if (count < SKELETON_GRAM) return 0;
    for (size_t n = 0; n < SKELETON_GRAM - 1; n++) packed = packed << CLASS_BITS | skeleton[n];
    for (size_t n = SKELETON_GRAM - 1; n < count; n++) {
        packed = packed << CLASS_BITS | skeleton[n];
        *grams++ = mix(packed & mask);
    }
    return count - SKELETON_GRAM + 1;
}

/* Copy the numbers below a limit; returns how many there are. */
static size_t keep_below(const uint64_t *numbers, size_t count, uint64_t limit, uint64_t *kept) {
    size_t size = 0;
    for (size_t n = 0; n < count; n++) {
        kept[size] = numbers[n];
        size += numbers[n] < limit;
    }
    return size;
}

/* Write the hashes of the skeleton; returns how many there are.  `grams`, `low` and `spare` have room for a number a
 * class. */
static size_t sample_skeleton(const Words *words, uint64_t *grams, uint64_t *low, uint64_t *spare, uint64_t *hashes) {
    size_t kept = keep_skeleton(words->classes, words->class_count);
    size_t count = hash_skeleton(words->classes, kept, grams), size = 0;
    size_t wanted = count / SHARE > LEAST ? count / SHARE : LEAST;
    if (count > SPARE * wanted) {
        size = keep_below(grams, count, UINT64_MAX / count * (SPARE * wanted), low);
        sort(low, size, spare, 8);
        size = drop_repeated(low, size);
    }
    if (size < wanted) { /* a short skeleton, or one that repeats itself */
        memcpy(low, grams, count * sizeof *low);
        sort(low, count, spare, 8);
        size = drop_repeated(low, count);
    }
    if (size > wanted) size = wanted;
    for (size_t n = 0; n < size; n++) hashes[n] = passage_hash(low[n]);
    return size;
}

/* ---- rare pairs ---- */

/* Insert a number among the least that are kept, ascending and distinct, at most ND_RARE_PAIRS; returns how many there
 * are. */
static size_t keep_least(uint64_t number, uint64_t *least, size_t kept) {
    size_t at = kept;
    while (at && least[at - 1] > number) at--;
    if (at == ND_RARE_PAIRS || (at && least[at - 1] == number)) return kept;
    if (kept < ND_RARE_PAIRS) kept++;
    memmove(least + at + 1, least + at, (kept - at - 1) * sizeof *least);
    least[at] = number;
    return kept;
}

/* Write the hashes of the rare pairs of words; returns how many there are.  `recent` has a bit for each of the words
 * before the present one, the last one's the lowest: whether it is rare. */
static size_t sample_rare_pairs(
    const uint64_t *words, size_t count, const uint64_t *common_words, uint64_t common_bits, uint64_t *hashes) {
    size_t kept = 0, rare = 0;
    unsigned recent = 0;
    for (size_t n = 0; n < count; n++) {
        uint64_t place = words[n] >> (64 - common_bits);
        unsigned is_rare = !(common_words[place / 64] >> place % 64 & 1);
        if (is_rare && recent) {
            for (size_t back = 1; back <= NEARBY && back <= n; back++)
                if (recent >> (back - 1) & 1 && words[n - back] != words[n])
                    kept = keep_least(mix(words[n - back] + words[n]), hashes, kept);
        }
        recent = (recent << 1 | is_rare) & ((1u << NEARBY) - 1);
        rare += is_rare;
    }
    if ((count - rare) * 100 < count * LEAST_COMMON) return 0;
    for (size_t n = 0; n < kept; n++) hashes[n] = passage_hash(hashes[n]);
    return kept;
}

/* ---- the functions of the library ---- */

typedef struct {
    uint64_t *hashes, *shingles, *grams, *low, *spare, *passages;
    uint32_t *places, *slots, *packed;
    DistinctWord *distinct;
    size_t slot_count;
} Parts;

/* Take the parts of the room that the words need; false, with what they need in `out->room`, if there is too little. */
static bool take_parts(const Words *words, Room *room, nd_fingerprint *out, Parts *parts) {
    size_t count = words->count, classes = words->class_count, most = count > classes ? count : classes;
    size_t samples = count + classes / SHARE + LEAST + ND_RARE_PAIRS + 1;
    size_t number = sizeof(uint64_t), half = sizeof(uint32_t), slot_count = slots_for(count);
    size_t spare = most > samples ? most : samples;
    size_t needed = 2 * ND_ALIGNED(count * number) + 2 * ND_ALIGNED((most + 1) * number) + ND_ALIGNED(spare * number) +
                    ND_ALIGNED(samples * number) + ND_ALIGNED(count * half) + ND_ALIGNED(slot_count * half) +
                    ND_ALIGNED(samples * half) + ND_ALIGNED(count * sizeof(DistinctWord));
    out->room += needed;
    if ((size_t)(room->end - room->at) < needed) return false;
    parts->hashes = take(room, count * number);
    parts->shingles = take(room, count * number);
    parts->grams = take(room, (most + 1) * number);
    parts->low = take(room, (most + 1) * number);
    parts->spare = take(room, spare * number);
    parts->passages = take(room, samples * number);
    parts->places = take(room, count * half);
    parts->slots = take(room, slot_count * half);
    parts->packed = take(room, samples * half);
    parts->distinct = take(room, count * sizeof(DistinctWord));
    parts->slot_count = slot_count;
    return true;
}

/* Sort the hashes of passages, drop what repeats, and pack them into 32 bits each. */
static void put_passages(const Parts *parts, size_t count, nd_fingerprint *out) {
    sort(parts->passages, count, parts->spare, 4);
    count = drop_repeated(parts->passages, count);
    for (size_t n = 0; n < count; n++) parts->packed[n] = (uint32_t)parts->passages[n];
    out->passages = parts->packed;
    out->passage_count = count;
}

int64_t nd_fingerprint_text(
    const nd_tables *tables, const uint8_t *text, size_t bytes, uint8_t *room, size_t room_bytes, nd_fingerprint *out) {
    Room left = {room, room + room_bytes};
    Words words;
    Parts parts;
    int64_t count = read_words(tables, text, bytes, &left, out, &words);
    if (count <= 0) return count;
    if (!take_parts(&words, &left, out, &parts)) return ND_ROOM;
    size_t distinct = count_words(&words, parts.hashes, parts.distinct, parts.slots, parts.slot_count);
    if (!vote(tables, parts.distinct, distinct, out->simhash)) return ND_UNSUPPORTED;
    size_t shingles = hash_shingles(parts.hashes, words.count, parts.shingles);
    out->shingles = count_distinct(parts.shingles, shingles, parts.slots, parts.slot_count);
    if (out->shingles >= MIN_SHINGLES) sign(tables, parts.shingles, shingles, out->signature);
    size_t sampled = sample_passages(parts.shingles, words.count, parts.grams, parts.places, parts.passages);
    sampled += sample_skeleton(&words, parts.grams, parts.low, parts.spare, parts.passages + sampled);
    sampled += sample_rare_pairs(
        parts.hashes, words.count, tables->common_words, tables->common_bits, parts.passages + sampled);
    put_passages(&parts, sampled, out);
    write_digest(hash_word(words.text, words.bytes), out->text_hash);
    out->hashes = parts.hashes;
    return count;
}

int64_t nd_hash_text(
    const nd_tables *tables, const uint8_t *text, size_t bytes, uint8_t *room, size_t room_bytes, nd_fingerprint *out) {
    Room left = {room, room + room_bytes};
    Words words;
    Parts parts;
    int64_t count = read_words(tables, text, bytes, &left, out, &words);
    if (count <= 0) return count;
    if (!take_parts(&words, &left, out, &parts)) return ND_ROOM;
    hash_words(&words, parts.hashes);
    put_passages(&parts, sample_skeleton(&words, parts.grams, parts.low, parts.spare, parts.passages), out);
    out->hashes = parts.hashes;
    return count;
}

int64_t nd_rare_pairs(
    const uint64_t *words, int64_t count, const uint64_t *common_words, int64_t common_bits, uint32_t *hashes) {
    if (count < 0 || (count && !words) || !hashes || !is_filter(common_words, (uint64_t)common_bits)) return ND_INVALID;
    uint64_t sampled[ND_RARE_PAIRS];
    size_t kept = sample_rare_pairs(words, (size_t)count, common_words, (uint64_t)common_bits, sampled);
    for (size_t n = 0; n < kept; n++) hashes[n] = (uint32_t)sampled[n];
    return (int64_t)kept;
}
