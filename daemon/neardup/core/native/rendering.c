/* The text of a parsed page as a browser shows it by the styles of the page, in pieces, and the writing of these.
 *
 * The first pass lists the elements of the page, finds the rules of style sheets that match each, and those elements
 * of which more is read than their text.  The second one walks the story with a stack of what is still to be shown.
 * What an element shows beside that within it, and the style that it hands down, is its frame.  The caller adds the
 * frame, once for elements that are alike (`append_key`); what a frame means for the text is explained in
 * core.css.rendering, whose functions are the reference.
 *
 * A selector is matched from right to left.  An element can match only if it has all the names that the last compound
 * asks for, of which each sets one of 64 bits. */
#include "tree.h"

enum {
    NONE = UINT32_MAX,
    MOST_LOW = 32,       /* boxes within boxes that are clipped to a line */
    MOST_INLINE = 1024,  /* blocks within lines, in each other */
    MOST_STYLING = 1000, /* bytes of the attributes in a key */
    MOST_NAMES = 4096,   /* bytes of the classes of an element, which are searched for each rule */
    LEAST_PLACED = 3,    /* see core.css.order */
    HIDDEN_LAYER = 0,
    JOINER = 0x200D,
    INDIC = 0x900, /* the first of the blocks of scripts that share one layout, and where the last one ends */
    INDIC_END = 0xD80,
    OFFSET = 0x7F, /* of a letter in its block */
    VIRAMA = 0x4D,
};

/* Of elements. */
enum { READ = 1, MOVED = 2, SHOWS_TEXT = 4, HAS_STYLE = 8 };

typedef struct {
    nd_node *node;
    const uint8_t *id, *names; /* the attributes `id` and `class` */
    uint64_t marks;            /* the bits of its names */
    uint32_t id_size, names_size;
    uint32_t parent, end; /* `end` is the first element behind those within it */
    uint32_t first_match, matches;
    uint16_t tag_classes, flags;
} Element;

enum part { A_TEXT, AN_ELEMENT, A_BREAK, AN_END, NOTHING };

/* What is still to be shown, in a style: a node, a line break, or the end of an element, by the number of its frame. */
typedef struct {
    nd_node *node;
    uint32_t kind, number, style, frame;
} Part;

typedef struct {
    Reader reader; /* its room is that of the texts */
    const nd_sheets *sheets;
    const nd_frames *frames;
    Element *elements;
    uint32_t *matches;
    Part *parts;
    nd_piece *pieces;
    uint8_t *keys, *keys_end;
    size_t element_count, match_count, part_count, most_parts, piece_count, most_pieces;
    uint64_t work;
    nd_rendered *out;
    unsigned low_count;
    bool low[MOST_LOW]; /* for each low box, whether a text was read in it */
    bool is_invalid;
} Renderer;

/* Returns false: what the caller gave contradicts itself. */
static bool refuse(Renderer *r) {
    r->is_invalid = true;
    return false;
}

/* ---- selectors ---- */

/* The bit of a name, which is the same for all its cases. */
static uint64_t mark_of(const uint8_t *name, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t n = 0; n < size; n++) hash = (hash ^ (name[n] | 0x20u)) * 16777619u;
    return (uint64_t)1 << (hash >> 26);
}

static uint64_t mark_of_tag(uint64_t tag) { return (uint64_t)1 << (mix(tag) >> 58); }

static bool is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r' && byte != '\v'); }

static size_t word_at(const uint8_t *text, size_t size) {
    size_t n = 0;
    while (n < size && !is_space(text[n])) n++;
    return n;
}

/* Whether a name is the other one; if only but for its case, which quirks decide, only the reference can decide. */
static bool is_name(Renderer *r, const uint8_t *name, size_t size, const uint8_t *other, size_t other_size) {
    if (size != other_size) return false;
    if (!memcmp(name, other, size)) return true;
    for (size_t n = 0; n < size; n++)
        if ((name[n] | 0x20) != (other[n] | 0x20)) return false;
    return doubt(&r->reader, ND_STYLED);
}

static bool has_name(Renderer *r, const Element *element, const nd_name *name) {
    const uint8_t *letters = r->sheets->letters + name->offset, *at = element->names;
    if (name->is_id) return is_name(r, element->id, element->id_size, letters, name->size);
    for (size_t left = element->names_size, size; left; at += size, left -= size) {
        size = word_at(at, left);
        if (is_name(r, at, size, letters, name->size)) return true;
        if (!size) size = 1;
    }
    return false;
}

static bool matches_compound(Renderer *r, const Element *element, const nd_compound *compound) {
    if (compound->tag && compound->tag != r->reader.lexbor->tag(element->node)) return false;
    for (uint32_t n = 0; n < compound->name_count; n++)
        if (!has_name(r, element, r->sheets->names + compound->first_name + n)) return false;
    return true;
}

/* Whether compounds match an element and those that contain it, the last compound first. */
static bool matches(Renderer *r, uint32_t element, const nd_compound *compound, uint32_t count) {
    if (!r->work) return doubt(&r->reader, ND_LARGE);
    r->work--;
    if (!matches_compound(r, r->elements + element, compound)) return false;
    if (count == 1) return true;
    uint32_t around = r->elements[element].parent;
    if (compound->is_child) return around != NONE && matches(r, around, compound + 1, count - 1);
    for (; around != NONE; around = r->elements[around].parent)
        if (matches(r, around, compound + 1, count - 1)) return true;
    return false;
}

/* Whether all numbers in the rules are places in the arrays. */
static bool are_sound(const nd_sheets *sheets) {
    for (uint64_t n = 0; n < sheets->rule_count; n++) {
        const nd_rule *rule = sheets->rules + n;
        if (rule->compound_count > ND_MOST_COMPOUNDS || rule->first_compound > sheets->compound_count ||
            rule->compound_count > sheets->compound_count - rule->first_compound)
            return false;
    }
    for (uint64_t n = 0; n < sheets->compound_count; n++) {
        const nd_compound *compound = sheets->compounds + n;
        if (compound->first_name > sheets->name_count || compound->name_count > sheets->name_count - compound->first_name)
            return false;
    }
    for (uint64_t n = 0; n < sheets->name_count; n++) {
        const nd_name *name = sheets->names + n;
        if (name->offset > sheets->letter_count || name->size > sheets->letter_count - name->offset) return false;
    }
    return true;
}

static uint64_t marks_of_rule(const nd_sheets *sheets, const nd_rule *rule) {
    if (!rule->compound_count) return 0;
    const nd_compound *compound = sheets->compounds + rule->first_compound;
    uint64_t marks = compound->tag ? mark_of_tag(compound->tag) : 0;
    for (uint32_t n = 0; n < compound->name_count; n++) {
        const nd_name *name = sheets->names + compound->first_name + n;
        marks |= mark_of(sheets->letters + name->offset, name->size);
    }
    return marks;
}

/* The first of the matches that the caller found of a node, or where they would stand. */
static const nd_match *found_for(const nd_sheets *sheets, const nd_node *node) {
    uint64_t first = 0, end = sheets->found_count;
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        if ((uintptr_t)sheets->found[middle].node < (uintptr_t)node) first = middle + 1;
        else end = middle;
    }
    return sheets->found + first;
}

/* Find the rules that match each element.  `marks` are those of the rules, for which there is room. */
static bool match_rules(Renderer *r, uint64_t *marks, size_t most_matches) {
    const nd_sheets *sheets = r->sheets;
    const nd_match *found_end = sheets->found + sheets->found_count;
    for (uint64_t n = 0; n < sheets->rule_count; n++) marks[n] = marks_of_rule(sheets, sheets->rules + n);
    for (uint32_t n = 0; n < r->element_count; n++) {
        Element *element = r->elements + n;
        const nd_match *found = found_for(sheets, element->node);
        element->first_match = (uint32_t)r->match_count;
        for (uint64_t order = 0; order < sheets->rule_count; order++) {
            const nd_rule *rule = sheets->rules + order;
            bool is_found = found < found_end && found->node == element->node && found->rule == order;
            found += is_found;
            if (rule->compound_count && !(marks[order] & ~element->marks))
                is_found = matches(r, n, sheets->compounds + rule->first_compound, rule->compound_count);
            if (!is_found) continue;
            if (r->match_count == most_matches) return doubt(&r->reader, ND_LARGE);
            r->matches[r->match_count++] = (uint32_t)order;
            if (rule->flags & ND_ACTS) element->flags |= READ;
            if (rule->flags & ND_MOVES) element->flags |= MOVED;
        }
        element->matches = (uint32_t)r->match_count - element->first_match;
        if (r->out->story.doubt) return false;
    }
    return true;
}

/* ---- elements ---- */

static bool equals(const uint8_t *text, size_t size, const char *lower) {
    return size == strlen(lower) && begins(text, size, lower);
}

/* Whether an address is surely a page, or surely none; otherwise there is a doubt. */
static bool is_page(Renderer *r, const uint8_t *address, size_t size, bool is_object) {
    if (size && *address >= 0x80) return doubt(&r->reader, ND_PAGE_WITHIN);
    for (; size && *address <= ' '; address++, size--)
        if (*address != ' ' && (*address < '\t' || *address > '\r')) return doubt(&r->reader, ND_PAGE_WITHIN);
    if (size && *address >= 0x80) return doubt(&r->reader, ND_PAGE_WITHIN);
    return may_be_page(address, size, is_object);
}

static bool acts(Renderer *r, enum nd_kind kind, const uint8_t *value, size_t size) {
    if (!is_utf8(value, size)) return doubt(&r->reader, ND_STYLED);
    uint32_t verdict = verdict_on(r->reader.verdicts, kind, value, size, &r->out->story);
    return verdict != UNKNOWN && verdict;
}

/* Look at the attributes of an element; see core.text.story.collect_parts for those by which it is read. */
static bool look_at_attributes(Renderer *r, Element *element) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    unsigned tag_classes = element->tag_classes;
    bool is_peculiar = false, is_acting = false, has_direction = false;
    nd_attribute *attribute = lexbor->first_attribute(element->node);
    for (size_t size = 0, name_size = 0; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *spelled = lexbor->name(attribute, &name_size);
        if (!spelled) continue;
        enum name name = name_of(spelled, name_size);
        bool is_alt = equals(spelled, name_size, "alt"), is_label = equals(spelled, name_size, "label");
        bool is_class = equals(spelled, name_size, "class"), is_id = equals(spelled, name_size, "id");
        if (name == OTHER && !is_label && !is_class && !is_id) continue;
        size = 0;
        const uint8_t *value = lexbor->value(attribute, &size);
        if (!value) {
            value = (const uint8_t *)"";
            size = 0;
        }
        if (size > UINT32_MAX) return doubt(&r->reader, ND_LARGE);
        if (is_class) {
            if (size > MOST_NAMES) return doubt(&r->reader, ND_LARGE);
            element->names = value;
            element->names_size = (uint32_t)size;
        }
        if (is_id) {
            element->id = value;
            element->id_size = (uint32_t)size;
        }
        if ((is_alt || is_label) && size) element->flags |= SHOWS_TEXT;
        is_peculiar |= is_alt || is_label || name == STYLE || name == HIDING || name == BGCOLOR;
        switch (name) {
        case STYLE: element->flags |= HAS_STYLE; /* fall through */
        case BGCOLOR:
        case HINT:
            if (equals(spelled, name_size, "dir")) {
                has_direction = true;
                is_peculiar |= equals(value, size, "rtl");
            }
            is_acting |= acts(r, kind_of(name, spelled, false), value, size);
            break;
        case HIDING: is_acting = true; break;
        case ADDRESS:
        case DATA:
            if (!is_page(r, value, size, name == DATA)) break;
            if (tag_classes & (ND_ATTRIBUTED | ND_FRAME) && !(tag_classes & ND_LINK))
                return doubt(&r->reader, ND_PAGE_WITHIN);
            is_acting = true;
            break;
        case SHOWN: is_acting |= is_longer(value, size, r->reader.page->long_attribute); break;
        case PAGE:
            if (tag_classes & ND_FRAME) return doubt(&r->reader, ND_PAGE_WITHIN);
            break;
        default: break;
        }
        if (r->out->story.doubt) return false;
    }
    bool is_read =
        tag_classes & ND_PARTED || (is_peculiar && (element->flags & SHOWS_TEXT || has_direction || is_acting));
    if (tag_classes & ND_INVISIBLE) is_read |= (tag_classes & ND_IN_PARTS) != 0;
    else if (tag_classes & (ND_SUPERSCRIPT | ND_PECULIAR | ND_ATTRIBUTED))
        is_read |= tag_classes & ND_IN_PARTS || is_acting;
    if (is_read) element->flags |= READ;
    return true;
}

static uint64_t marks_of_element(const Renderer *r, const Element *element) {
    uint64_t marks = mark_of_tag(r->reader.lexbor->tag(element->node));
    const uint8_t *at = element->names;
    for (size_t left = element->names_size, size; left; at += size, left -= size) {
        size = word_at(at, left);
        if (size) marks |= mark_of(at, size);
        else size = 1;
    }
    return element->id_size ? marks | mark_of(element->id, element->id_size) : marks;
}

static bool list_element(Renderer *r, nd_node *node, uint32_t parent, size_t most) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    if (r->element_count == most) return doubt(&r->reader, ND_LARGE);
    Element *element = r->elements + r->element_count++;
    unsigned tag_classes = tag_classes_of(&r->reader, node);
    *element = (Element){.node = node, .parent = parent, .tag_classes = (uint16_t)tag_classes};
    if (lexbor->tag(node) >= r->reader.page->tag_count) { /* one that lexbor has no number for */
        size_t size = 0;
        const uint8_t *name = lexbor->qualified_name(node, &size);
        if (!name || equals(name, size, "text") || equals(name, size, "tspan")) return doubt(&r->reader, ND_PECULIAR_TAG);
    }
    if (tag_classes & ND_HOST) return doubt(&r->reader, ND_PECULIAR_TAG);
    if (!look_at_attributes(r, element)) return false;
    element->marks = marks_of_element(r, element);
    return true;
}

static bool list_elements(Renderer *r, size_t most) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    nd_node *root = r->reader.page->root, *node = root, *next;
    for (uint32_t around = NONE;;) { /* enter a node */
        bool is_element = lexbor->type(node) == ELEMENT;
        if (is_element) {
            if (!list_element(r, node, around, most)) return false;
            around = (uint32_t)r->element_count - 1;
        }
        next = lexbor->first_child(node);
        while (!next) { /* leave nodes */
            if (lexbor->type(node) == ELEMENT) {
                r->elements[around].end = (uint32_t)r->element_count;
                around = r->elements[around].parent;
            }
            if (node == root) return true;
            next = lexbor->next(node);
            if (!next) node = lexbor->parent(node);
        }
        node = next;
    }
}

/* An element is read in parts if one within it is. */
static void spread_reading(Renderer *r) {
    for (size_t n = r->element_count; n-- > 1;)
        if (r->elements[n].flags & READ && r->elements[n].parent != NONE) r->elements[r->elements[n].parent].flags |= READ;
    r->elements[0].flags |= READ;
}

/* ---- frames ---- */

/* Whether an attribute is one of cascade.STYLING, or the type of a field. */
static bool is_styling(const uint8_t *name, size_t size, unsigned tag_classes) {
    switch (size) {
    case 1: return *name == 'x' || *name == 'y';
    case 3: return IS("dir");
    case 4: return IS("text") || IS("fill") || IS("mask") || IS("open") || (tag_classes & ND_FIELD && IS("type"));
    case 5: return IS("style") || IS("color") || IS("width");
    case 6: return IS("hidden") || IS("height") || IS("filter");
    case 7: return IS("bgcolor") || IS("popover") || IS("display") || IS("opacity");
    case 9: return IS("font-size") || IS("transform") || IS("clip-path");
    case 10: return IS("visibility");
    default: return false;
    }
}

static bool append_to_key(Renderer *r, const void *bytes, size_t size) {
    if ((size_t)(r->keys_end - r->keys) < size) return doubt(&r->reader, ND_LARGE);
    if (size) memcpy(r->keys, bytes, size);
    r->keys += size;
    return true;
}

/* Append what elements have in common that have the same frame, see neardup.h. */
static bool append_key(Renderer *r, const Element *element, uint32_t style) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    size_t size = 0, value_size = 0, styling = 0;
    const uint8_t *name = lexbor->qualified_name(element->node, &size);
    if (!name || !is_utf8(name, size)) return doubt(&r->reader, ND_PECULIAR_TAG);
    uint32_t numbers[] = {(uint32_t)r->sheets->number, style, element->matches};
    if (!append_to_key(r, numbers, sizeof numbers)) return false;
    if (!append_to_key(r, r->matches + element->first_match, element->matches * sizeof(uint32_t))) return false;
    if (!append_to_key(r, name, size) || !append_to_key(r, "\0", 1)) return false;
    nd_attribute *attribute = lexbor->first_attribute(element->node);
    for (; attribute; attribute = lexbor->next_attribute(attribute)) {
        name = lexbor->name(attribute, &size);
        if (!name || !is_styling(name, size, element->tag_classes)) continue;
        value_size = 0;
        const uint8_t *value = lexbor->value(attribute, &value_size);
        if (!value) value_size = 0;
        if (!is_utf8(value, value_size) || (styling += value_size) > MOST_STYLING) return doubt(&r->reader, ND_STYLED);
        if (!append_to_key(r, name, size) || !append_to_key(r, "\0", 1)) return false;
        if (!append_to_key(r, value, value_size) || !append_to_key(r, "\0", 1)) return false;
    }
    return true;
}

/* Find the frame of an element within a style; false with a doubt, and `frame` is NONE if the caller must add it
 * first. */
static bool find_frame(Renderer *r, const Element *element, uint32_t style, uint32_t *frame) {
    uint8_t *key = r->keys;
    if (!append_key(r, element, style)) return false;
    *frame = verdict_on(r->frames->memory, ND_FRAME_KEY, key, (size_t)(r->keys - key), &r->out->story);
    if (*frame == UNKNOWN) {
        *frame = NONE;
        return true;
    }
    r->keys = key;
    return *frame < r->frames->frame_count || refuse(r);
}

static const nd_style *style_of(const Renderer *r, uint32_t number) { return r->frames->styles + number; }

/* Find another style of the same text; false with a doubt, and `variant` is NONE if the caller must add it first. */
static bool find_variant(Renderer *r, uint32_t style, enum nd_variant kind, uint32_t *variant) {
    *variant = style_of(r, style)->variants[kind];
    if (*variant != NONE) return *variant < r->frames->style_count || refuse(r);
    uint32_t key[] = {style, kind};
    uint8_t *at = r->keys;
    if (!append_to_key(r, key, sizeof key)) return false;
    nd_story *story = &r->out->story;
    for (uint64_t n = 0; n < story->unjudged_count; n++)
        if (story->unjudged[n].kind == ND_VARIANT_KEY && !memcmp(story->unjudged[n].value, key, sizeof key)) return true;
    if (story->unjudged_count < ND_MOST_UNJUDGED)
        story->unjudged[story->unjudged_count++] = (nd_unjudged){at, sizeof key, ND_VARIANT_KEY};
    return true;
}

/* ---- pieces ---- */

/* Note that a layer has a piece, and count characters of it. */
static bool count_in_layer(Renderer *r, uint32_t layer, uint64_t characters) {
    nd_rendered *out = r->out;
    for (uint64_t n = 0; n < out->layer_count; n++)
        if (out->layers[n] == layer) {
            out->characters[n] += characters;
            return true;
        }
    if (layer >= ND_LAYERS) return refuse(r);
    if (out->layer_count == ND_MOST_LAYERS) return doubt(&r->reader, ND_LARGE);
    out->layers[out->layer_count] = layer;
    out->characters[out->layer_count++] = characters;
    return true;
}

static bool append_piece(Renderer *r, uint32_t kind, uint32_t layer, bool takes_room, const uint8_t *text, size_t size) {
    if (r->piece_count == r->most_pieces || size > UINT32_MAX) return doubt(&r->reader, ND_LARGE);
    r->pieces[r->piece_count++] = (nd_piece){text, (uint32_t)size, (uint16_t)layer, (uint8_t)kind, takes_room};
    return true;
}

/* Append a text that stands at the end of the texts, and has single spaces now, in a style. */
static bool append_written(Renderer *r, uint32_t style, uint8_t *start, size_t size, uint64_t visible) {
    const nd_style *look = style_of(r, style);
    r->reader.at = start + size;
    /* What is hidden may never be written, so its bytes are looked at here. */
    if (look->layer == 0 && !is_utf8(start, size)) return doubt(&r->reader, ND_UNREADABLE);
    return count_in_layer(r, look->layer, visible) &&
           append_piece(r, ND_PIECE_TEXT, look->layer, look->flags & ND_TAKES_ROOM, start, size);
}

/* Append a text in a style, between the signs before and after it, if any; see core.css.rendering._show. */
static bool show(Renderer *r, uint32_t style, const char *before, const uint8_t *text, size_t size, const char *after) {
    uint8_t *start = r->reader.at;
    uint64_t visible = 0;
    if (size && memchr(text, '\v', size)) return doubt(&r->reader, ND_UNREADABLE);
    if (!append(&r->reader, before, strlen(before)) || !append(&r->reader, text, size)) return false;
    if (!append(&r->reader, after, strlen(after))) return false;
    size_t written = write_spaced(start, (size_t)(r->reader.at - start), start, &visible);
    return append_written(r, style, start, written, visible);
}

/* What a text shows; in low boxes, only the first one is certain to be seen. */
static bool show_text(Renderer *r, nd_node *node, uint32_t style) {
    uint8_t *start = r->reader.at;
    uint64_t visible = 0;
    if (!append_text(&r->reader, node)) return false;
    size_t size = (size_t)(r->reader.at - start);
    if (size && memchr(start, '\v', size)) return doubt(&r->reader, ND_UNREADABLE);
    size = write_spaced(start, size, start, &visible);
    bool is_below = false;
    if (r->low_count && visible) {
        for (unsigned n = 0; n < r->low_count; n++) {
            is_below |= r->low[n];
            r->low[n] = true;
        }
        if (is_below && !find_variant(r, style, ND_CLIPPED, &style)) return false;
        if (style == NONE) return true;
    }
    return append_written(r, style, start, size, visible);
}

/* A break that is read where the box around it is. */
static bool break_line(Renderer *r, uint32_t style) {
    uint32_t flags = style_of(r, style)->flags;
    if (!(flags & ND_VISIBLE)) return true;
    if (flags & ND_BOXED_IN) return append_piece(r, ND_PIECE_TEXT, HIDDEN_LAYER, false, (const uint8_t *)"\n", 1);
    return append_piece(r, ND_PIECE_BREAK, 0, false, NULL, 0);
}

/* Append the pieces of an edge of an element, of which each is in a byte; see nd_frame. */
static bool append_edge(Renderer *r, uint32_t edge) {
    for (; edge; edge >>= 8) {
        switch (edge & 0xFF) {
        case ND_EDGE_BREAK:
            if (!append_piece(r, ND_PIECE_BREAK, 0, false, NULL, 0)) return false;
            break;
        case ND_EDGE_HIDDEN_BREAK:
            if (!append_piece(r, ND_PIECE_TEXT, HIDDEN_LAYER, false, (const uint8_t *)"\n", 1)) return false;
            break;
        case ND_EDGE_INLINE_START:
            if (!append_piece(r, ND_PIECE_INLINE_START, 0, false, NULL, 0)) return false;
            break;
        case ND_EDGE_INLINE_END:
            if (!append_piece(r, ND_PIECE_INLINE_END, 0, false, NULL, 0)) return false;
            break;
        case ND_EDGE_BOX_START:
            if (!append_piece(r, ND_PIECE_BOX_START, 0, false, NULL, 0)) return false;
            break;
        case ND_EDGE_BOX_END:
            if (!append_piece(r, ND_PIECE_BOX_END, 0, false, NULL, 0)) return false;
            break;
        case ND_EDGE_LOW_START:
            if (r->low_count == MOST_LOW) return doubt(&r->reader, ND_LARGE);
            r->low[r->low_count++] = false;
            break;
        case ND_EDGE_LOW_END:
            if (!r->low_count) return refuse(r);
            r->low_count--;
            break;
        default: return refuse(r);
        }
    }
    return true;
}

/* Append texts that a style sheet generates. */
static bool append_generated(Renderer *r, uint32_t first, uint32_t count) {
    const nd_frames *frames = r->frames;
    if (first > frames->generated_count || count > frames->generated_count - first) return refuse(r);
    for (const nd_generated *text = frames->generated + first, *end = text + count; text < end; text++) {
        if (text->offset > frames->letter_count || text->size > frames->letter_count - text->offset) return refuse(r);
        if (!count_in_layer(r, text->layer, text->visible)) return false;
        const uint8_t *letters = frames->letters + text->offset;
        if (!append_piece(r, ND_PIECE_TEXT, text->layer, text->takes_room, letters, text->size)) return false;
    }
    return true;
}

/* Append what stands at the end of an element. */
static bool append_end(Renderer *r, const nd_frame *frame) {
    return append_generated(r, frame->first_generated + frame->before_count, frame->after_count) &&
           append_edge(r, frame->end);
}

/* ---- elements that are read whole ---- */

/* Whether a browser shows nothing of an element, nor anything that stands in it. */
static bool is_left_out(const Element *element) {
    return element->tag_classes & ND_INVISIBLE && !(element->flags & READ);
}

static bool has_child(const Renderer *r, uint32_t number) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    nd_node *child = lexbor->first_child(r->elements[number].node);
    for (number++; child; child = lexbor->next(child)) {
        if (lexbor->type(child) != ELEMENT || !is_left_out(r->elements + number)) return true;
        number = r->elements[number].end;
    }
    return false;
}

static bool is_whole(const Renderer *r, uint32_t number, uint32_t style) {
    uint32_t flags = style_of(r, style)->flags;
    if (r->elements[number].flags & READ || flags & ND_LAYS_OUT) return false;
    return flags & (ND_PLAIN | ND_BOXED_IN) || (flags & ND_IN_DRAWING && !has_child(r, number));
}

/* Append the text in an element, with a vertical tab for each line break. */
static bool append_whole(Renderer *r, nd_node *root) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    nd_node *node = root, *next;
    while (true) { /* enter a node */
        int type = lexbor->type(node);
        unsigned tag_classes = type == ELEMENT && node != root ? tag_classes_of(&r->reader, node) : 0;
        if (type == TEXT && !append_text(&r->reader, node)) return false;
        if (tag_classes & ND_BREAK && !append(&r->reader, "\v", 1)) return false;
        next = tag_classes & ND_INVISIBLE ? NULL : lexbor->first_child(node);
        while (!next) { /* leave nodes */
            if (node == root) return true;
            bool is_block = lexbor->type(node) == ELEMENT && tag_classes_of(&r->reader, node) & ND_BREAK;
            if (is_block && !append(&r->reader, "\v", 1)) return false;
            next = lexbor->next(node);
            if (!next) node = lexbor->parent(node);
        }
        node = next;
    }
}

static bool read_whole(Renderer *r, uint32_t number, uint32_t style) {
    const Element *element = r->elements + number;
    bool is_block = element->tag_classes & ND_BREAK;
    if (!is_block && !has_child(r, number)) return true;
    uint8_t *start = r->reader.at;
    uint64_t visible = 0;
    if (is_block && !break_line(r, style)) return false;
    if (!append_whole(r, element->node)) return false;
    size_t size = write_spaced(start, (size_t)(r->reader.at - start), start, &visible);
    return append_written(r, style, start, size, visible) && (!is_block || break_line(r, style));
}

/* ---- the order of children ---- */

/* What an element needs to be placed among its siblings; that of what declares nothing is 0. */
static nd_frame frame_of(const Renderer *r, const Part *part) {
    return part->frame == NONE ? (nd_frame){0} : r->frames->frames[part->frame];
}

static bool comes_before(const nd_frame *one, const nd_frame *other, bool is_flex) {
    if (is_flex) return one->order < other->order;
    return one->line < other->line || (one->line == other->line && one->across < other->across);
}

/* Sort parts by insertion, which keeps the order of equal ones. */
static bool sort_parts(Renderer *r, Part *parts, size_t count, bool is_flex) {
    for (size_t n = 1; n < count; n++) {
        Part part = parts[n];
        nd_frame frame = frame_of(r, &part);
        size_t at = n;
        for (; at; at--, r->work--) {
            if (!r->work) return doubt(&r->reader, ND_LARGE);
            nd_frame before = frame_of(r, parts + at - 1);
            if (!comes_before(&frame, &before, is_flex)) break;
            parts[at] = parts[at - 1];
        }
        parts[at] = part;
    }
    return true;
}

static void reverse(Part *parts, size_t count) {
    for (size_t n = 0; n < count / 2; n++) {
        Part part = parts[n];
        parts[n] = parts[count - 1 - n];
        parts[count - 1 - n] = part;
    }
}

/* Whether some children may be shown in another order, or over the others. */
static bool are_moved(Renderer *r, Part *parts, size_t count, uint32_t style, bool *answer) {
    size_t moved = 0;
    bool is_ordered = false;
    for (size_t n = 0; n < count; n++) {
        const Element *element = r->elements + parts[n].number;
        uint32_t frame;
        if (parts[n].kind != AN_ELEMENT || !(element->flags & READ) || !(element->flags & (MOVED | HAS_STYLE))) continue;
        if (!find_frame(r, element, style, &frame)) return false;
        if (frame == NONE) continue;
        uint32_t flags = r->frames->frames[frame].flags;
        if (!(element->flags & MOVED) && !(flags & ND_FRAME_MOVES)) continue;
        moved++;
        is_ordered |= (flags & (ND_FRAME_ORDERED | ND_FRAME_COVERS)) != 0;
    }
    *answer = moved && (moved >= (count < LEAST_PLACED ? count : LEAST_PLACED) || is_ordered);
    return true;
}

/* Put children into the order in which they are shown, and find the style in which they are; see
 * core.css.rendering._arrange. */
static bool arrange(Renderer *r, Part *parts, size_t count, const nd_frame *frame, uint32_t *style) {
    bool is_plain = style_of(r, *style)->flags & ND_PLAIN, covers = false;
    bool is_every = !is_plain || frame->flags & (ND_FRAME_GRID | ND_FRAME_GENERATES);
    bool has_values = frame->flags & (ND_FRAME_TURNS | ND_FRAME_GENERATES), is_in_order = true;
    size_t placed = 0, floats = 0;
    if (style_of(r, *style)->flags & ND_TO_THE_LEFT) return doubt(&r->reader, ND_STYLED);
    for (size_t n = 0; n < count; n++) {
        const Element *element = r->elements + parts[n].number;
        if (parts[n].kind != AN_ELEMENT || !(is_every || element->flags & READ)) continue;
        if (!find_frame(r, element, *style, &parts[n].frame)) return false;
        uint32_t flags = frame_of(r, parts + n).flags;
        has_values |= (flags & ND_FRAME_VALUES) != 0;
        covers |= (flags & ND_FRAME_COVERS) != 0;
        placed += (flags & ND_FRAME_PLACED) != 0;
        floats += (flags & ND_FRAME_FLOATS) != 0;
        is_in_order &= !(flags & (ND_FRAME_ORDERED | ND_FRAME_IN_CELL));
    }
    if (!has_values) return true;
    if (covers && !find_variant(r, *style, ND_COVERED, style)) return false;
    if (*style == NONE) return true;
    if (frame->flags & ND_FRAME_GRID) /* rows are filled in the order of the children, unless these say otherwise */
        return (is_in_order && !(frame->flags & ND_FRAME_TURNS)) || doubt(&r->reader, ND_STYLED);
    if (frame->flags & ND_FRAME_FLEX) {
        if (!sort_parts(r, parts, count, true)) return false;
        if (frame->flags & ND_FRAME_REVERSED) reverse(parts, count);
        return true;
    }
    if (placed >= LEAST_PLACED) return sort_parts(r, parts, count, false);
    return !(floats >= LEAST_PLACED || floats == count) || doubt(&r->reader, ND_STYLED);
}

/* ---- the walk ---- */

static bool push(Renderer *r, Part part) {
    if (r->part_count == r->most_parts) return doubt(&r->reader, ND_LARGE);
    r->parts[r->part_count++] = part;
    return true;
}

/* Push the children of an element, and what stands between them. */
static bool push_children(Renderer *r, uint32_t number) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    const Element *parent = r->elements + number, *element;
    nd_node *child = lexbor->first_child(parent->node);
    for (number++; child; child = lexbor->next(child)) {
        int type = lexbor->type(child);
        Part part = {child, type == TEXT ? A_TEXT : NOTHING, number, 0, NONE}, line_break = {NULL, A_BREAK, 0, 0, NONE};
        if (type != ELEMENT) {
            if (!push(r, part)) return false;
            continue;
        }
        element = r->elements + number;
        number = element->end;
        if (is_left_out(element)) continue;
        bool is_parted = element->tag_classes & ND_BREAK && !(parent->flags & READ);
        part.kind = AN_ELEMENT;
        if (is_parted && !push(r, line_break)) return false;
        if (!push(r, part) || (is_parted && !push(r, line_break))) return false;
    }
    return true;
}

/* The value of an attribute; its size is 0 if there is none. */
static const uint8_t *value_of(const Renderer *r, const Element *element, const char *wanted, size_t *size) {
    const nd_lexbor *lexbor = r->reader.lexbor;
    nd_attribute *attribute = lexbor->first_attribute(element->node);
    for (size_t name_size = 0; attribute; attribute = lexbor->next_attribute(attribute)) {
        const uint8_t *name = lexbor->name(attribute, &name_size);
        *size = 0;
        if (name && equals(name, name_size, wanted)) return lexbor->value(attribute, size);
    }
    *size = 0;
    return NULL;
}

/* Show the texts of a picture or a field that may be seen in its place. */
static bool show_asides(Renderer *r, const Element *element, uint32_t style) {
    static const char *const names[] = {"alt", "label"};
    for (size_t n = 0, size; n < 2; n++) {
        const uint8_t *value = value_of(r, element, names[n], &size);
        uint32_t aside;
        if (!value || !size) continue;
        if (!find_variant(r, style, ND_UNSEEN, &aside)) return false;
        if (aside != NONE && !show(r, aside, "\n", value, size, "\n")) return false;
    }
    return true;
}

/* Show the text of a form field, see generated_text.read_field. */
static bool show_field(Renderer *r, const Element *element, uint32_t style, bool has_own_text) {
    size_t size = 0;
    const uint8_t *value = NULL, *space = (const uint8_t *)" ";
    if (has_own_text) { /* its text is its value, unless it is blank */
        uint8_t *start = r->reader.at;
        uint64_t visible = 0;
        const uint8_t *text = peek_text(&r->reader, element->node, &size);
        if (!text) return false;
        write_spaced(start, size, start, &visible);
        if (visible) return true;
    } else {
        value = value_of(r, element, "value", &size);
    }
    if (!value || !size) value = value_of(r, element, "placeholder", &size);
    if (!value || !size) return true;
    return append_piece(r, ND_PIECE_TEXT, ND_ALWAYS, false, space, 1) && show(r, style, "", value, size, "") &&
           append_piece(r, ND_PIECE_TEXT, ND_ALWAYS, false, space, 1);
}

/* Whether a style sheet has no strings, which may be shown. */
static bool is_bare_sheet(Renderer *r, const Element *element) {
    size_t size = 0;
    const uint8_t *text = peek_text(&r->reader, element->node, &size);
    if (!text) return false;
    return !(size && (memchr(text, '"', size) || memchr(text, '\'', size))) || doubt(&r->reader, ND_PECULIAR_TAG);
}

/* Show an element that is not read whole: the edges of its frame, and what stands within. */
static bool enter(Renderer *r, const Part *part) {
    const Element *element = r->elements + part->number;
    uint32_t number, style;
    if (!find_frame(r, element, part->style, &number)) return false;
    if (number == NONE) return true;
    const nd_frame *frame = r->frames->frames + number;
    if (frame->flags & ND_FRAME_UNCLEAR) return doubt(&r->reader, ND_PECULIAR_TAG);
    if (element->flags & SHOWS_TEXT && !(frame->flags & ND_FRAME_LEAF)) return doubt(&r->reader, ND_LONG_TEXT);
    style = frame->style;
    if (style >= r->frames->style_count) return refuse(r);
    if (!append_edge(r, frame->start)) return false;
    if (frame->flags & ND_FRAME_LEAF && !(element->tag_classes & ND_FRAME) && has_child(r, part->number))
        return doubt(&r->reader, ND_PECULIAR_TAG); /* as in a drawing */
    if (element->tag_classes & ND_STYLE && !is_bare_sheet(r, element)) return false;
    if (!append_generated(r, frame->first_generated, frame->before_count)) return false;
    if (frame->flags & ND_FRAME_LEAF && !show_asides(r, element, style)) return false;
    if (frame->flags & ND_FRAME_FIELD && !show_field(r, element, style, !(frame->flags & ND_FRAME_LEAF))) return false;
    if (frame->flags & (ND_FRAME_LEAF | ND_FRAME_CLOSED)) return append_end(r, frame);
    if (!push(r, (Part){NULL, AN_END, number, 0, NONE})) return false;
    size_t first = r->part_count, count;
    if (!push_children(r, part->number)) return false;
    Part *children = r->parts + first;
    count = r->part_count - first;
    if (count > 1) {
        bool is_arranged = frame->flags & (ND_FRAME_ARRANGED | ND_FRAME_GENERATES);
        if (frame->flags & ND_FRAME_FIELD) return doubt(&r->reader, ND_PECULIAR_TAG);
        if (!is_arranged && !are_moved(r, children, count, style, &is_arranged)) return false;
        if (is_arranged && !arrange(r, children, count, frame, &style)) return false;
    }
    if (style == NONE) { /* the caller must add it first */
        r->part_count = first;
        return true;
    }
    for (size_t n = 0; n < count; n++) children[n].style = style;
    reverse(children, count);
    return count_in_layer(r, style_of(r, style)->layer, 0);
}

static bool show_part(Renderer *r, const Part *part) {
    switch (part->kind) {
    case A_TEXT: return show_text(r, part->node, part->style);
    case A_BREAK: { /* as core.css.rendering writes it into the page */
        const nd_style *style = style_of(r, part->style);
        return count_in_layer(r, style->layer, 0) &&
               append_piece(r, ND_PIECE_TEXT, style->layer, style->flags & ND_TAKES_ROOM, (const uint8_t *)"\v", 1);
    }
    case AN_END: return append_end(r, r->frames->frames + part->number);
    case AN_ELEMENT:
        if (!r->low_count && is_whole(r, part->number, part->style)) return read_whole(r, part->number, part->style);
        return enter(r, part);
    default: return true;
    }
}

static bool walk(Renderer *r) {
    if (!append_piece(r, ND_PIECE_BREAK, 0, false, NULL, 0)) return false;
    if (!push(r, (Part){r->reader.page->root, AN_ELEMENT, 0, 0, NONE})) return false;
    while (r->part_count) {
        Part part = r->parts[--r->part_count];
        if (!show_part(r, &part)) return false;
    }
    return append_piece(r, ND_PIECE_BREAK, 0, false, NULL, 0);
}

/* ---- the functions of the library ---- */

/* Take `size` bytes from the start of the room, at an address that 8 divides; NULL if there is too little. */
static void *take(Reader *room, size_t size) {
    uint8_t *start = room->at + (8 - ((uintptr_t)room->at & 7)) % 8;
    if (start > room->end || (size_t)(room->end - start) < size) return NULL;
    room->at = start + size;
    return start;
}

static bool render(Renderer *r) {
    Reader *room = &r->reader;
    size_t share = (size_t)(room->end - room->at) / 8, most_elements = share / sizeof(Element), most_matches;
    if (share > UINT32_MAX) most_elements = UINT32_MAX / sizeof(Element);
    r->elements = take(room, share);
    r->most_parts = share / sizeof(Part);
    r->parts = take(room, share);
    r->most_pieces = share / sizeof(nd_piece);
    r->pieces = take(room, share);
    uint64_t *marks = take(room, r->sheets->rule_count * sizeof(uint64_t));
    most_matches = share / sizeof(uint32_t);
    if (most_matches > r->sheets->most_matches) most_matches = r->sheets->most_matches;
    r->matches = take(room, share);
    r->keys = take(room, share);
    if (!r->elements || !r->parts || !r->pieces || !marks || !r->matches || !r->keys) return doubt(room, ND_LARGE);
    r->keys_end = r->keys + share;
    if (!list_elements(r, most_elements)) return false;
    uint64_t elements = r->element_count, costly = r->sheets->costly_count;
    if (elements * (r->sheets->rule_count + costly * elements) > r->sheets->most_work) return doubt(room, ND_LARGE);
    if (!match_rules(r, marks, most_matches)) return false;
    if (r->out->story.unjudged_count) return doubt(room, ND_UNJUDGED);
    spread_reading(r);
    return walk(r) && (!r->out->story.unjudged_count || doubt(room, ND_UNJUDGED));
}

int64_t nd_render(const nd_lexbor *lexbor, const nd_page *page, const nd_sheets *sheets, const nd_frames *frames,
                  const void *verdicts, size_t verdict_bytes, uint8_t *room, size_t room_bytes, nd_rendered *out) {
    nd_node *parent = lexbor->parent(page->root);
    memset(out, 0, sizeof *out);
    if (verdict_bytes < ND_VERDICT_BYTES || frames->memory_count < ND_VERDICT_BYTES || !frames->style_count) return ND_INVALID;
    if (!parent || lexbor->type(parent) != DOCUMENT || lexbor->type(page->root) != ELEMENT) return ND_INVALID;
    if (page->body_count != 1 || page->bodies[0] != page->root || !are_sound(sheets)) return ND_INVALID;
    Renderer renderer = {
        .reader = {lexbor, page, (nd_document *)parent, verdicts, room, room + room_bytes, &out->story},
        .sheets = sheets, .frames = frames, .work = sheets->most_work, .out = out,
    };
    bool is_rendered = render(&renderer);
    if (renderer.is_invalid) return ND_INVALID;
    if (!is_rendered) return ND_UNSUPPORTED;
    out->pieces = renderer.pieces;
    out->piece_count = renderer.piece_count;
    out->room_used = (uint64_t)(renderer.reader.at - room);
    return 0;
}

/* Take the spaces away at both ends of what was written from `start` on, and mark that nothing joins it. */
static uint8_t *end_inline_block(uint8_t *start, uint8_t *at) {
    uint8_t *first = start;
    while (at > first && at[-1] == ' ') at--;
    while (first < at && *first == ' ') first++;
    memmove(start, first, (size_t)(at - first));
    at -= first - start;
    *at++ = 0;
    return at;
}

/* Whether a code point is a mark on a letter; see core.css.pieces. */
static bool is_mark(uint32_t code) {
    if (code < INDIC || code >= INDIC_END) return (code >= 0x300 && code < 0x370) || code == 0x200C || code == JOINER;
    uint32_t offset = code & OFFSET;
    return offset < 4 || offset == 0x3C || (offset >= 0x3E && offset < 0x50) || (offset >= 0x51 && offset < 0x58) ||
           offset == 0x62 || offset == 0x63;
}

/* Whether a text has more than one letter, with the marks on it and what these join. */
static bool is_more_than_a_letter(const uint8_t *at, const uint8_t *end) {
    uint32_t before = 0, letters = 0, bytes;
    for (; at < end && letters < 2; at += bytes) {
        uint32_t code = code_at(at, end, &bytes);
        bool is_joined = before == JOINER || (before >= INDIC && before < INDIC_END && (before & OFFSET) == VIRAMA);
        letters += code > ' ' && !is_joined && !is_mark(code);
        before = code;
    }
    return letters > 1;
}

/* Put what was written from `start` on in lines of its own, if it is more than a letter. */
static uint8_t *end_box(uint8_t *start, uint8_t *at) {
    if (!is_more_than_a_letter(start, at)) return at;
    memmove(start + 1, start, (size_t)(at - start));
    *start = '\n';
    at[1] = '\n';
    return at + 2;
}

/* Write the pieces of some layers; returns where they end, or NULL if there is too little room. */
static uint8_t *write_layers(
    const nd_piece *pieces, uint64_t count, const uint8_t *layers, uint8_t *at, const uint8_t *end, bool *is_sound) {
    uint8_t *starts[MOST_INLINE], *begin = at, *to = at;
    size_t depth = 0;
    for (uint64_t n = 0; n < count; n++) {
        const nd_piece *piece = pieces + n;
        if ((size_t)(end - at) < (size_t)piece->size + 2) return NULL;
        switch (piece->kind) {
        case ND_PIECE_BREAK: *at++ = '\n'; break;
        case ND_PIECE_TEXT:
            if (piece->layer == ND_ALWAYS || layers[piece->layer % ND_LAYERS]) {
                memcpy(at, piece->text, piece->size);
                at += piece->size;
            } else if (piece->takes_room && memchr(piece->text, ' ', piece->size)) {
                *at++ = ' ';
            }
            break;
        case ND_PIECE_INLINE_START:
        case ND_PIECE_BOX_START:
            if (depth == MOST_INLINE) return NULL;
            starts[depth++] = at;
            break;
        default:
            *is_sound = depth > 0;
            if (!depth) return NULL;
            depth--;
            at = piece->kind == ND_PIECE_BOX_END ? end_box(starts[depth], at) : end_inline_block(starts[depth], at);
        }
    }
    for (const uint8_t *byte = begin; byte < at; byte++)
        if (*byte) *to++ = *byte;
    return to;
}

int64_t nd_write_pieces(const nd_piece *pieces, uint64_t piece_count, const uint8_t *layers, uint64_t text_count,
                        uint8_t *room, size_t room_bytes, uint32_t *block_counts, uint16_t *block_numbers,
                        nd_characters *counts, uint64_t *characters) {
    uint8_t *at = room, *end = room + room_bytes;
    bool is_sound = true;
    for (uint64_t n = 0; n < text_count; n++) {
        if (n && at < end) *at++ = '\n';
        at = write_layers(pieces, piece_count, layers + n * ND_LAYERS, at, end, &is_sound);
        if (!at) return is_sound ? ND_ROOM : ND_INVALID;
    }
    size_t bytes = (size_t)(at - room);
    int64_t counted = nd_count_characters(room, bytes, block_counts, block_numbers, counts);
    if (counted < 0 || (counts->unusual && has_doubtful_sign(room, bytes))) return ND_UNSUPPORTED;
    *characters = (uint64_t)counted;
    return (int64_t)bytes;
}
