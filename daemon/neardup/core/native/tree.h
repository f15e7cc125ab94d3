/* What the readers of a parsed page share: verdicts on values, the tree, what an attribute may do, and text with
 * single spaces.
 *
 * Verdicts are kept in a hash table with open addressing, beside the values themselves, because authors could make two
 * values with one hash. */
#ifndef NEARDUP_TREE_H
#define NEARDUP_TREE_H

#include "internal.h"
#include "xxh3.h"

enum {
    ELEMENT = 1, /* types of nodes */
    TEXT = 3,
    DOCUMENT = 9,
};

/* ---- verdicts ---- */

typedef struct {
    uint64_t hash; /* 0 for a slot that is free */
    uint32_t offset, size, kind, verdict;
} Slot;

typedef struct {
    uint64_t slots, bytes; /* used */
} Usage;

enum {
    VALUES_AT = sizeof(Usage) + ND_VERDICT_SLOTS * sizeof(Slot),
    VALUE_BYTES = ND_VERDICT_BYTES - VALUES_AT,
    MOST_SLOTS = ND_VERDICT_SLOTS / 2,
};

static inline uint64_t hash_value(uint64_t kind, const uint8_t *value, size_t size) {
    return mix((size ? hash_word(value, size).low : 0) + kind) | 1;
}

/* The slot of a value, or the free one where it belongs; NULL if there is none, as in a memory that is damaged. */
static inline const Slot *slot_of(const uint8_t *memory, uint64_t hash, uint64_t kind, const uint8_t *value, size_t size) {
    const Slot *slots = (const Slot *)(memory + sizeof(Usage));
    for (size_t n = 0; n < ND_VERDICT_SLOTS; n++) {
        const Slot *slot = slots + (hash + n) % ND_VERDICT_SLOTS;
        if (!slot->hash) return slot;
        if (slot->hash != hash || slot->kind != kind || slot->size != size) continue;
        if (slot->offset > VALUE_BYTES || slot->size > VALUE_BYTES - slot->offset) return NULL;
        if (!size || !memcmp(memory + VALUES_AT + slot->offset, value, size)) return slot;
    }
    return NULL;
}

enum { UNKNOWN = UINT32_MAX };

/* The verdict on a value; or UNKNOWN, and it is among what must be judged. */
static inline uint32_t verdict_on(
    const uint8_t *verdicts, uint64_t kind, const uint8_t *value, size_t size, nd_story *out) {
    const Slot *slot = slot_of(verdicts, hash_value(kind, value, size), kind, value, size);
    if (slot && slot->hash) return slot->verdict;
    for (uint64_t n = 0; n < out->unjudged_count; n++) {
        const nd_unjudged *other = out->unjudged + n;
        if (other->kind == kind && other->size == size && !memcmp(other->value, value, size)) return UNKNOWN;
    }
    if (out->unjudged_count < ND_MOST_UNJUDGED) out->unjudged[out->unjudged_count++] = (nd_unjudged){value, size, kind};
    return UNKNOWN;
}

/* ---- the tree ---- */

typedef struct {
    const nd_lexbor *lexbor;
    const nd_page *page;
    nd_document *document;
    const uint8_t *verdicts;
    uint8_t *at, *end; /* the room that is left */
    nd_story *out;
} Reader;

static inline unsigned tag_classes_of(const Reader *reader, nd_node *element) {
    uintptr_t tag = reader->lexbor->tag(element);
    return tag < reader->page->tag_count ? reader->page->tags[tag] : 0;
}

/* The next node below the root in the order of the page; NULL after the last one. */
static inline nd_node *next_below(const nd_lexbor *lexbor, nd_node *root, nd_node *node) {
    nd_node *next = lexbor->first_child(node);
    while (!next && node != root) {
        next = lexbor->next(node);
        if (!next) node = lexbor->parent(node);
    }
    return next;
}

/* Record why only the reference can read the page; returns false. */
static inline bool doubt(Reader *reader, enum nd_doubt reason) {
    reader->out->doubt = reason;
    return false;
}

static inline bool append(Reader *reader, const void *bytes, size_t size) {
    if ((size_t)(reader->end - reader->at) < size) return doubt(reader, ND_LARGE);
    memcpy(reader->at, bytes, size);
    reader->at += size;
    return true;
}

/* Append the text of a node and of all below it. */
static inline bool append_text(Reader *reader, nd_node *node) {
    size_t size = 0;
    uint8_t *text = reader->lexbor->text(node, &size);
    if (!text) return true;
    bool has_room = append(reader, text, size);
    reader->lexbor->free_text(reader->document, text);
    return has_room;
}

/* The text of a node, which is left in the room to be read; NULL if there is too little room. */
static inline const uint8_t *peek_text(Reader *reader, nd_node *node, size_t *size) {
    uint8_t *start = reader->at;
    if (!append_text(reader, node)) return NULL;
    *size = (size_t)(reader->at - start);
    reader->at = start;
    return start;
}

enum name { OTHER, STYLE, HIDING, BGCOLOR, HINT, ADDRESS, DATA, SHOWN, PAGE };

#define IS(text) (size == sizeof text - 1 && !memcmp(name, text, sizeof text - 1))

/* What an attribute of this name does.  Only a few lengths are those of such names. */
static inline enum name name_of(const uint8_t *name, size_t size) {
    switch (size) {
    case 3: return IS("dir") ? HINT : IS("src") ? ADDRESS : IS("alt") ? SHOWN : OTHER;
    case 4: return IS("href") ? ADDRESS : IS("data") ? DATA : IS("text") ? HINT : OTHER;
    case 5: return IS("style") ? STYLE : IS("color") ? HINT : IS("value") ? SHOWN : OTHER;
    case 6: return IS("hidden") ? HIDING : IS("srcset") ? ADDRESS : IS("srcdoc") ? PAGE : OTHER;
    case 7: return IS("bgcolor") ? BGCOLOR : IS("popover") ? HIDING : OTHER;
    case 11: return IS("placeholder") ? SHOWN : OTHER;
    case 14: return IS("shadowrootmode") ? PAGE : OTHER;
    default: return OTHER;
    }
}

/* Whether a text begins like another one, which is in lower case, whatever the case of its own letters. */
static inline bool begins(const uint8_t *text, size_t size, const char *lower) {
    for (; *lower; lower++, text++, size--)
        if (!size || (*text >= 'A' && *text <= 'Z' ? *text | 0x20 : *text) != *lower) return false;
    return true;
}

/* Whether an address may be a page or a picture of text; `is_object` takes any document for one. */
static inline bool may_be_page(const uint8_t *address, size_t size, bool is_object) {
    while (size && (*address <= ' ' || *address >= 0x80)) {
        address++;
        size--;
    }
    if (!begins(address, size, "data:")) return false;
    address += 5;
    size -= 5;
    return is_object || begins(address, size, "text/") || begins(address, size, ",") || begins(address, size, ";") ||
           begins(address, size, "image/svg");
}

/* The code points of a text, of which broken bytes count as one each. */
static inline size_t count_codes(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size;
    size_t count = 0;
    for (uint32_t bytes; text < end; text += bytes) {
        code_at(text, end, &bytes);
        count++;
    }
    return count;
}

static inline bool is_longer(const uint8_t *text, size_t size, uint64_t limit) {
    return size > limit && count_codes(text, size) > limit;
}

static inline bool is_utf8(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size;
    for (uint32_t bytes; text < end; text += bytes)
        if (code_at(text, end, &bytes) == BAD) return false;
    return true;
}

/* The kind of a value whose effect only the caller knows. */
static inline enum nd_kind kind_of(enum name name, const uint8_t *spelled, bool is_around) {
    if (name == STYLE) return is_around ? ND_STYLE_AROUND : ND_STYLE_VALUE;
    switch (*spelled) {
    case 'b': return ND_BGCOLOR_VALUE;
    case 'c': return ND_COLOR_VALUE;
    case 't': return ND_TEXT_VALUE;
    default: return ND_DIR_VALUE;
    }
}

/* Whether a text has a sign that only the reference handles: a replacement character, or an override of direction. */
static inline bool has_doubtful_sign(const uint8_t *text, size_t size) {
    const uint8_t *end = text + size, *at;
    for (at = text; (at = memchr(at, 0xEF, (size_t)(end - at))); at++)
        if (end - at > 2 && at[1] == 0xBF && at[2] == 0xBD) return true;
    for (at = text; (at = memchr(at, 0xE2, (size_t)(end - at))); at++)
        if (end - at > 2 && at[1] == 0x80 && (at[2] == 0xAD || at[2] == 0xAE)) return true;
    return false;
}

/* ---- a text with single spaces ---- */

/* As str.isspace of Python. */
static inline bool is_white_space(uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r') || (code >= 0x1C && code <= 0x1F);
    if (code < 0x1680) return code == 0x85 || code == 0xA0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

/* White space of HTML, or a vertical tab. */
static inline bool is_html_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Write a text with single spaces in place of runs of white space, and a line feed for each vertical tab; returns its
 * bytes, and adds its code points that are no white space to `visible`.  The text may stand where it is written. */
static inline size_t write_spaced(const uint8_t *text, size_t size, uint8_t *room, uint64_t *visible) {
    const uint8_t *end = text + size;
    uint8_t *at = room;
    while (text < end) {
        const uint8_t *word = text;
        for (uint32_t bytes; text < end && !is_html_space(*text); text++) {
            *visible += !continues(*text);
            if (RARE(*text < 0x20)) *visible -= is_white_space(*text);
            if (RARE(*text == 0xC2 || (*text >= 0xE1 && *text <= 0xE3))) /* lead bytes of white space */
                *visible -= is_white_space(code_at(text, end, &bytes));
        }
        memmove(at, word, (size_t)(text - word));
        at += text - word;
        bool is_break = false;
        for (word = text; text < end && is_html_space(*text); text++) is_break |= *text == '\v';
        if (!is_break && text > word) *at++ = ' ';
        for (bool after_space = false; is_break && word < text; word++) {
            bool is_break_here = *word == '\v'; /* which may be written over */
            if (is_break_here || !after_space) *at++ = is_break_here ? '\n' : ' ';
            after_space = !is_break_here;
        }
    }
    return (size_t)(at - room);
}

#endif
