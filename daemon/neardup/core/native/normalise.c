/* Normalisation and the counting of characters: a pass over a text in UTF-8 each.
 *
 * Nearly all of normalisation maps one code point to at most one other, so a table does it (see
 * core/text/codepoints.py). Its flags name the exceptions: a code point that composes with the one before it, that
 * looks like another letter, that is a combining mark, or that only the reference can handle.  Two facts make one pass
 * enough.  What composes stands side by side once dropped code points are left out, so the entry of the last letter is
 * all that must be remembered. And how a look-alike is read depends on its word or run of signs alone, so the first
 * one looks ahead to its end.
 *
 * Texts of India are mostly letters of the blocks 0900 to 0DFF that stand for themselves: three bytes that are copied. */
#include <stdbool.h>

#include "internal.h"

enum {
    SEPARATOR = 0x20,
    DROPPED = 0,
    NUKTA = 0x09BC,
    VIRAMA = 0x0D4D,
    ZWJ = 0x200D,
    MOST_LEADING_DIGITS = 2,
    LETTERS_AFTER = 3,
    SIGN_BYTES = 3, /* of a letter of India, as of a virama */
};

/* The flags of an entry of `forms`, as in core/text/codepoints.py. */
#define CODE ((1u << 21) - 1)
#define COMBINING (1u << 26)
#define LONE_MARK (1u << 27)
#define LOOK_ALIKE (1u << 28)
#define FIRST (1u << 29)
#define SECOND (1u << 30)
#define BEYOND_TABLE (1u << 31)
#define UNUSUAL (BEYOND_TABLE | LOOK_ALIKE)

/* The rows of `readings`, and the kinds of characters in the first, as in core/text/look_alikes.py. */
enum { KIND, BESIDE_LATIN, ALL_ALIKE, AS_IT_IS };
enum { OUTSIDE, NO_LETTER, LATIN_LETTER, OTHER_LETTER, ALIKE };

typedef struct {
    const nd_tables *tables;
    const uint8_t *start, *end;
} Text;

/* ---- UTF-8 ---- */

/* Where the code point before a place begins; what stands before the place was decoded already. */
INLINE const uint8_t *step_back(const uint8_t *at, const uint8_t *start) {
    do at--;
    while (at > start && continues(*at));
    return at;
}

INLINE uint8_t *put_code(uint8_t *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return out + 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return out + 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return out + 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return out + 4;
}

/* ---- the tables ---- */

INLINE uint32_t entry_of(const nd_tables *tables, uint32_t code) {
    return tables->forms[code < tables->form_count ? code : tables->form_count - 1];
}

INLINE uint32_t reading_of(const nd_tables *tables, int row, uint32_t code) {
    return code < tables->reading_count ? tables->readings[row * tables->reading_count + code] : 0;
}

/* The code point to which two others compose; DROPPED if they do not. */
static uint32_t composition_of(const nd_tables *tables, uint32_t first, uint32_t second) {
    const uint32_t *row = tables->compositions;
    for (uint64_t n = 0; n < tables->composition_count; n++, row += 3)
        if (row[0] == first && row[1] == second) return row[2];
    return DROPPED;
}

INLINE bool is_dropped(uint32_t entry) { return (entry & CODE) == DROPPED; }

INLINE bool is_latin(uint32_t entry) { return (entry & CODE) - 'a' < 26; }

INLINE bool is_digit(uint32_t code) { return code - '0' < 10; }

/* ---- marks and look-alikes ---- */

/* Whether a mark composes with the letter within a composed one: NFC puts it before the mark that the letter has, if
 * its combining class is lower. */
static bool composes_within(const nd_tables *tables, uint32_t composed, uint32_t mark) {
    const uint32_t *row = tables->compositions;
    for (uint64_t n = 0; n < tables->composition_count; n++, row += 3)
        if (row[2] == composed && composition_of(tables, row[0], mark) != DROPPED) return true;
    return false;
}

/* Whether no other combining mark stands beside the one at a place, whatever is dropped between them, nor is in the
 * letter before it where the two might change places. */
static bool is_alone(const Text *text, const uint8_t *at) {
    uint32_t bytes, entry, mark = entry_of(text->tables, code_at(at, text->end, &bytes));
    for (const uint8_t *before = at; before > text->start;) {
        before = step_back(before, text->start);
        entry = entry_of(text->tables, code_at(before, text->end, &bytes));
        if (is_dropped(entry)) continue;
        if (entry & COMBINING) return false;
        if (mark & SECOND && composes_within(text->tables, entry & CODE, mark & CODE)) return false;
        break;
    }
    code_at(at, text->end, &bytes);
    for (const uint8_t *after = at + bytes; after < text->end; after += bytes) {
        entry = entry_of(text->tables, code_at(after, text->end, &bytes));
        if (!is_dropped(entry)) return !(entry & COMBINING);
    }
    return true;
}

/* The row of `readings` for the look-alikes of a word, by the letters around them; `*stop` is where the word ends. */
static int row_of_word(const Text *text, const uint8_t *at, const uint8_t **stop) {
    const uint8_t *begin = at, *end = at;
    uint32_t bytes, code;
    bool has_alike = false, has_other = false;
    while (begin > text->start) {
        const uint8_t *before = step_back(begin, text->start);
        if (reading_of(text->tables, KIND, code_at(before, text->end, &bytes)) == OUTSIDE) break;
        begin = before;
    }
    code_at(at, text->end, &bytes);
    for (end += bytes; end < text->end; end += bytes)
        if (reading_of(text->tables, KIND, code_at(end, text->end, &bytes)) == OUTSIDE) break;
    *stop = end;
    for (; begin < end; begin += bytes) {
        code = code_at(begin, text->end, &bytes);
        uint32_t kind = reading_of(text->tables, KIND, code);
        if (kind == LATIN_LETTER) return BESIDE_LATIN;
        has_alike |= kind == ALIKE;
        has_other |= kind >= OTHER_LETTER && !reading_of(text->tables, ALL_ALIKE, code);
    }
    return has_alike && !has_other ? ALL_ALIKE : AS_IT_IS;
}

/* Likewise for a run of signs: they are read as letters between two Latin ones. */
static int row_of_signs(const Text *text, const uint8_t *at, const uint8_t **stop) {
    const uint8_t *before = at, *after = at;
    uint32_t bytes, entry = SEPARATOR;
    bool follows_latin = false, precedes_latin = false;
    while (before > text->start) {
        before = step_back(before, text->start);
        entry = entry_of(text->tables, code_at(before, text->end, &bytes));
        if (is_dropped(entry)) continue;
        follows_latin = is_latin(entry);
        break;
    }
    code_at(at, text->end, &bytes);
    for (after += bytes; after < text->end; after += bytes) {
        entry = entry_of(text->tables, code_at(after, text->end, &bytes));
        if (is_dropped(entry) || (entry & LOOK_ALIKE && (entry & CODE) == SEPARATOR)) continue;
        precedes_latin = is_latin(entry);
        break;
    }
    *stop = after;
    return follows_latin && precedes_latin ? BESIDE_LATIN : AS_IT_IS;
}

/* The row of `readings` for the look-alike at a place and those after it, and where these end. */
static __attribute__((noinline)) int row_of(const Text *text, const uint8_t *at, const uint8_t **stop) {
    uint32_t bytes, entry = entry_of(text->tables, code_at(at, text->end, &bytes));
    if (entry & BEYOND_TABLE) return row_of_word(text, at, stop);
    if ((entry & CODE) == SEPARATOR) return row_of_signs(text, at, stop);
    *stop = at + bytes;
    return AS_IT_IS; /* digits are read where their word ends */
}

/* Read the digits of a normalised word as letters if they stand for them, see core/text/look_alikes.py; whether they
 * do. */
static __attribute__((noinline)) bool read_digits(const nd_tables *tables, uint8_t *word, const uint8_t *end) {
    int leading = 0, since_digit = 0;
    bool is_disguised = false, has_letter = false;
    for (const uint8_t *at = word; at < end; at++) {
        if ((uint8_t)(*at - 'a') < 26) {
            is_disguised |= has_letter && since_digit == 0;
            has_letter = true;
            since_digit++;
            is_disguised |= leading > 0 && leading <= MOST_LEADING_DIGITS && since_digit == LETTERS_AFTER;
        } else if (is_digit(*at) && reading_of(tables, BESIDE_LATIN, *at)) {
            leading = has_letter ? 0 : leading + 1;
            since_digit = 0;
        } else {
            return false;
        }
    }
    if (!is_disguised) return false;
    for (uint8_t *at = word; at < end; at++)
        if (*at <= '9') *at = (uint8_t)reading_of(tables, BESIDE_LATIN, *at);
    return true;
}

/* The chillu whose letter, virama and ZWJ end at a place; DROPPED if there is none. */
static uint32_t chillu_at(const Text *text, const uint8_t *at) {
    uint32_t bytes;
    if (at - text->start < 2 * SIGN_BYTES) return DROPPED;
    const uint8_t *virama = step_back(at, text->start);
    if (code_at(virama, text->end, &bytes) != VIRAMA) return DROPPED;
    const uint8_t *letter = step_back(virama, text->start);
    return composition_of(text->tables, code_at(letter, text->end, &bytes), ZWJ);
}

/* ---- normalisation ---- */

/* The class of a letter of the skeleton; NO_CONSONANT for any other code point. */
INLINE uint8_t class_of(const nd_tables *tables, uint32_t code) {
    return consonant_of(tables->consonants, tables->consonant_count, code);
}

/* Append the class of a code point; without a branch, which would be mispredicted at every other letter. */
INLINE uint8_t *put_class(const nd_tables *tables, uint8_t *classes, uint32_t code) {
    *classes = class_of(tables, code);
    return classes + (*classes != NO_CONSONANT);
}

/* Append the classes of a normalised word; returns where they end. */
static uint8_t *put_classes(const nd_tables *tables, const uint8_t *word, const uint8_t *end, uint8_t *classes) {
    for (uint32_t bytes; word < end; word += bytes) classes = put_class(tables, classes, code_at(word, end, &bytes));
    return classes;
}

/* Copy the letters of India from a place on that stand for themselves and do not compose, and append their classes;
 * returns where they end.  `*before` is the entry of the last letter. */
INLINE const uint8_t *copy_letters(
    const Text *text, const uint8_t *at, uint8_t **out, uint8_t **classes, uint32_t *before) {
    uint32_t last = 0, follows_first = *before & FIRST, bytes_of_letter;
    uint8_t *put_at = *classes;
    uint8_t *put = *out;
    for (; text->end - at >= 4 && *at == 0xE0; at += 3, put += 3) {
        memcpy(&bytes_of_letter, at, 4);
        uint32_t code = (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
        if ((bytes_of_letter & 0xC0C000) != 0x808000 || code - 0x900 >= 0x500) break;
        uint32_t entry = text->tables->forms[code];
        if ((entry & CODE) != code || entry & UNUSUAL || (follows_first && entry & SECOND)) break;
        follows_first = entry & FIRST;
        last = entry;
        memcpy(put, &bytes_of_letter, 4);
        *put_at = text->tables->consonants[code];
        put_at += *put_at != NO_CONSONANT;
    }
    if (put > *out) *before = last;
    *out = put;
    *classes = put_at;
    return at;
}

int64_t nd_normalise(const nd_tables *tables, const uint8_t *start, size_t size, nd_normalised *result) {
    const Text text = {tables, start, start + size};
    const uint8_t *at = start, *read_until = start;
    uint8_t *out = result->words, *word = out, *classes = result->classes, *classes_of_word = classes;
    uint32_t before = entry_of(tables, SEPARATOR), bytes, bytes_before;
    int row = AS_IT_IS;
    int64_t count = 0;
    bool has_look_alikes = false;
    for (; at < text.end; at += bytes) {
        if (RARE(out - result->words > 2 * (at - start))) return ND_INVALID; /* wrong tables: no form has twice the bytes */
        if (*at == 0xE0) {
            at = copy_letters(&text, at, &out, &classes, &before);
            if (at == text.end) break;
        }
        uint32_t code = code_at(at, text.end, &bytes), entry = entry_of(tables, code);
        if (RARE(code == BAD)) return ND_INVALID;
        if (RARE(entry & LOOK_ALIKE)) {
            if (at >= read_until) row = row_of(&text, at, &read_until);
            has_look_alikes = true;
            uint32_t reading = reading_of(tables, row, code);
            if (reading && !is_digit(code)) entry = entry_of(tables, reading);
        } else if (RARE(entry & BEYOND_TABLE && !(entry & LONE_MARK && is_alone(&text, at)))) {
            return ND_UNSUPPORTED;
        }
        uint32_t form = entry & CODE;
        if (RARE(entry & before << 1 & SECOND)) { /* SECOND is FIRST << 1 */
            uint32_t first = before & CODE, composed = composition_of(tables, first, form);
            if (composed != DROPPED) {
                out -= first < 0x80 ? 1 : first < 0x800 ? 2 : first < 0x10000 ? 3 : 4;
                classes -= class_of(tables, first) != NO_CONSONANT;
                if (out < word || classes < classes_of_word) return ND_INVALID;
                form = composed;
                entry = entry_of(tables, composed);
            }
        }
        if (form > SEPARATOR) {
            out = put_code(out, form);
            classes = put_class(tables, classes, form);
            before = entry;
        } else if (form == SEPARATOR) {
            before = entry;
            if (out == word) continue;
            result->ends[count++] = (uint32_t)(out - result->words);
            if (RARE(has_look_alikes) && read_digits(tables, word, out))
                classes = put_classes(tables, word, out, classes_of_word);
            has_look_alikes = false;
            *out++ = SEPARATOR;
            word = out;
            classes_of_word = classes;
        } else if (code == NUKTA && before & COMBINING) {
            return ND_UNSUPPORTED; /* NFC would put the nukta first */
        } else if (code == ZWJ) {
            uint32_t chillu = chillu_at(&text, at);
            if (chillu != DROPPED) {
                if (out - word < 2 * SIGN_BYTES) return ND_INVALID;
                out -= 2 * SIGN_BYTES; /* the letter, and the virama, which is in no class */
                classes -= class_of(tables, code_at(out, out + SIGN_BYTES, &bytes_before)) != NO_CONSONANT;
                if (classes < classes_of_word) return ND_INVALID;
                classes = put_class(tables, classes, chillu);
                out = put_code(out, chillu);
                before = entry_of(tables, chillu);
            }
        }
    }
    if (out > word) {
        result->ends[count++] = (uint32_t)(out - result->words);
        if (has_look_alikes && read_digits(tables, word, out)) classes = put_classes(tables, word, out, classes_of_word);
    }
    result->class_count = (size_t)(classes - result->classes);
    return count;
}

/* ---- the counting of characters ---- */

enum {
    VECTOR = 32,           /* bytes in which the begins of characters are counted at once */
    CHUNK = 128,           /* bytes that are counted at once where all are of the usual kinds; at most 255 */
    INDIA = 0xE0,          /* the lead byte of its letters, whose second byte is A4 to B7 */
    PUNCTUATION = 0xE2,    /* that of quotes and dashes, whose second byte is 80 */
    LATIN_1 = 0xC2,        /* that of the no-break space, whose second byte is A0 */
    DEVANAGARI = 0x900 / ND_BLOCK, /* its danda stands in texts of other scripts */
    PUNCTUATION_BLOCK = 0x2000 / ND_BLOCK,
    NO_BREAK_SPACE_BLOCK = 0xA0 / ND_BLOCK,
};

INLINE bool is_usual(uint32_t code) { /* beside the letters, see core/text/scripts.py */
    return code - 0x20 < 0x5F || code - 0x09 < 5 || code - 0x2010 < 0x18 || code == 0xA0;
}

INLINE bool is_ascii_letter(uint8_t byte) { return (uint8_t)((byte | 0x20) - 'a') < 26; }

INLINE bool is_usual_ascii(uint8_t byte) {
    return (uint8_t)(byte - 0x20) < 0x5F || (uint8_t)(byte - 0x09) < 5;
}

/* The characters that begin in the next VECTOR bytes. */
INLINE size_t count_begins(const uint8_t *at) {
    uint8_t begins = 0;
    for (int n = 0; n < VECTOR; n++) begins += !continues(at[n]);
    return begins;
}

/* Likewise in the next 8 bytes. */
INLINE size_t count_few_begins(const uint8_t *at) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return ((~bytes >> 7 | bytes >> 6) & ones) * ones >> 56;
}

typedef struct {
    uint32_t *blocks;                  /* counts */
    uint32_t block, last_block;        /* of the last letter of India that is not of Devanagari; the greatest */
    uint32_t ascii_letters, letters, unusual;
    size_t continuing;                 /* bytes */
} Tally;

INLINE void add_to_block(Tally *tally, uint32_t block, uint32_t count) {
    tally->blocks[block] += count;
    if (count && block > tally->last_block) tally->last_block = block;
}

/* Count chunks of ASCII, of letters of India in Devanagari and one more block, of usual punctuation and no-break
 * spaces.
 *
 * A character is counted with its last byte, so that one that goes beyond a chunk is counted with the next one.  Two
 * bytes of a whole character, at least, stand before `at`.  Returns where the character begins that is counted next.
 * Counters of a byte let a vector hold many. */
INLINE const uint8_t *count_chunks(const uint8_t *at, const uint8_t *end, Tally *tally) {
    const uint8_t half_block = (uint8_t)(0x40 | tally->block); /* a second byte without its lowest bit */
    for (; end - at >= CHUNK; at += CHUNK) {
        uint8_t bad = 0, ascii_letters = 0, unusual = 0, devanagari = 0, others = 0, punctuation = 0, spaces = 0;
        for (int n = 0; n < CHUNK; n++) {
            uint8_t byte = at[n], before = at[n - 1], lead = at[n - 2];
            uint8_t is_after = (uint8_t)((before == INDIA) | (before == PUNCTUATION) | (before == LATIN_1));
            uint8_t is_third = (uint8_t)((lead == INDIA) | (lead == PUNCTUATION));
            uint8_t is_lead = (uint8_t)((byte == INDIA) | (byte == PUNCTUATION) | (byte == LATIN_1));
            uint8_t is_of_devanagari = (uint8_t)((lead == INDIA) & (before >> 1 == (0x40 | DEVANAGARI)));
            uint8_t is_of_block = (uint8_t)((lead == INDIA) & (before >> 1 == half_block) & (is_of_devanagari ^ 1));
            uint8_t is_of_punctuation = (uint8_t)((lead == PUNCTUATION) & (before == 0x80));
            uint8_t is_space = (uint8_t)((before == LATIN_1) & (byte == 0xA0));
            bad |= (uint8_t)((is_after | is_third) ^ ((byte & 0xC0) == 0x80));
            bad |= (uint8_t)((byte >= 0xC0) & (is_lead ^ 1));
            bad |= (uint8_t)(is_third ^ (is_of_devanagari | is_of_block | is_of_punctuation));
            bad |= (uint8_t)((before == LATIN_1) ^ is_space);
            devanagari += is_of_devanagari;
            others += is_of_block;
            punctuation += is_of_punctuation;
            spaces += is_space;
            ascii_letters += (uint8_t)is_ascii_letter(byte);
            unusual += (uint8_t)((byte < 0x80) & (is_usual_ascii(byte) ^ 1));
            unusual += (uint8_t)(is_of_punctuation & ((uint8_t)(byte - 0x90) >= 0x18));
        }
        if (bad) break;
        add_to_block(tally, DEVANAGARI, devanagari);
        add_to_block(tally, tally->block, others);
        add_to_block(tally, PUNCTUATION_BLOCK, punctuation);
        add_to_block(tally, NO_BREAK_SPACE_BLOCK, spaces);
        tally->ascii_letters += ascii_letters;
        tally->letters += (uint32_t)devanagari + others;
        tally->unusual += unusual;
        tally->continuing += 2u * devanagari + 2u * others + 2u * punctuation + spaces;
    }
    if (at[-1] >= 0xC0) return at - 1;
    return at[-2] >= INDIA ? at - 2 : at;
}

typedef const uint8_t *CountChunks(const uint8_t *at, const uint8_t *end, Tally *tally);

static const uint8_t *count_chunks_portably(const uint8_t *at, const uint8_t *end, Tally *tally) {
    return count_chunks(at, end, tally);
}

#ifdef HAS_X86_VECTORS

__attribute__((target("avx2"))) static const uint8_t *count_chunks_avx2(
    const uint8_t *at, const uint8_t *end, Tally *tally) {
    return count_chunks(at, end, tally);
}

static CountChunks *fastest_count(void) {
    return __builtin_cpu_supports("avx2") ? count_chunks_avx2 : count_chunks_portably;
}

#else

static CountChunks *fastest_count(void) { return count_chunks_portably; }

#endif

/* Count the characters that begin before `stop`; returns where the next one begins, or NULL if they are not UTF-8. */
static const uint8_t *count_singly(const uint8_t *at, const uint8_t *stop, const uint8_t *end, Tally *tally) {
    for (uint32_t bytes; at < stop; at += bytes) {
        uint32_t code = code_at(at, end, &bytes);
        if (code < 0x80) {
            tally->ascii_letters += is_ascii_letter((uint8_t)code);
            tally->unusual += !is_usual_ascii((uint8_t)code);
            continue;
        }
        if (RARE(code == BAD)) return NULL;
        uint32_t block = code / ND_BLOCK;
        bool is_of_india = code - 0x900 < 0x500;
        if (is_of_india && block != DEVANAGARI) tally->block = block;
        tally->continuing += bytes - 1;
        if (is_of_india || code - 0x620 < 0xE0) tally->letters++;
        else tally->unusual += !is_usual(code);
        add_to_block(tally, block, 1);
    }
    return at;
}

/* Count the letters of a text, those of each block, and what is unusual; returns the characters, or ND_INVALID if it is
 * not UTF-8. */
static int64_t count_letters(const uint8_t *start, size_t size, uint32_t *block_counts, uint32_t *last_block,
                             nd_characters *counts) {
    const uint8_t *at = start, *end = start + size;
    Tally tally = {.blocks = block_counts, .block = DEVANAGARI};
    CountChunks *count = fastest_count();
    while (at < end) {
        at = count_singly(at, end - at > CHUNK / 2 ? at + CHUNK / 2 : end, end, &tally);
        if (!at) return ND_INVALID;
        if (end - at >= CHUNK) at = count(at, end, &tally);
    }
    block_counts[0] += tally.ascii_letters;
    *last_block = tally.last_block;
    counts->letters = tally.letters + tally.ascii_letters;
    counts->unusual = tally.unusual;
    return (int64_t)(size - tally.continuing);
}

/* Count one of `step` characters of a text that is UTF-8. */
static void count_sample(const uint8_t *at, const uint8_t *end, size_t step, nd_characters *counts) {
    size_t before = 0; /* the characters to skip */
    while (at < end) {
        size_t begins = end - at < VECTOR ? before + 1 : count_begins(at);
        if (begins <= before) {
            before -= begins;
            at += VECTOR;
            continue;
        }
        for (size_t few; end - at >= 8 && (few = count_few_begins(at)) <= before; at += 8) before -= few;
        for (; at < end && (before > 0 || continues(*at)); at++) before -= !continues(*at);
        if (at == end) return;
        uint32_t bytes, code = code_at(at, end, &bytes);
        counts->sampled++;
        counts->visible += code > 0x20;
        counts->signs += code - 0x900 < 0x480 && (code & 0x7F) - 0x3E < 0x10;
        at += bytes;
        before = step - 1;
    }
}

/* Move the counts of the first `blocks` that are not 0 to the front, and their numbers to `numbers`; returns how many. */
static uint32_t compact_blocks(uint32_t *counts, uint32_t blocks, uint16_t *numbers) {
    uint32_t kept = 0;
    for (uint32_t block = 0; block < blocks; block++) {
        if (!counts[block]) continue;
        counts[kept] = counts[block];
        numbers[kept++] = (uint16_t)block;
    }
    return kept;
}

int64_t nd_count_characters(
    const uint8_t *start, size_t size, uint32_t *block_counts, uint16_t *block_numbers, nd_characters *out) {
    nd_characters counts = {0};
    uint32_t last_block = 0;
    if (size > UINT32_MAX) return ND_UNSUPPORTED;
    memset(block_counts, 0, ND_BLOCKS * sizeof *block_counts);
    int64_t characters = count_letters(start, size, block_counts, &last_block, &counts);
    if (characters < 0) return ND_INVALID;
    count_sample(start, start + size, (size_t)characters / ND_SAMPLE + 1, &counts);
    counts.blocks = compact_blocks(block_counts, last_block + 1, block_numbers);
    *out = counts;
    return characters;
}
