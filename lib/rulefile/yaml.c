/* yaml.c -- a text as a tree of nodes, by libfyaml's events.
 *
 * The events, not libfyaml's own documents: the tree is ours then, with its places, its bounds on
 * depth and aliases, and its own words for mistakes.  Nothing of libfyaml is seen outside this
 * file, and it prints nothing.  Built without WEIR_YAML there is no reader, and that is what the
 * problem says.
 */
#include "rulefile/node.h"

#include <stdlib.h>
#include <string.h>

#ifdef WEIR_YAML
#include <libfyaml.h>
#endif

#ifndef WEIR_YAML

struct weir__node *weir__yaml_read(struct weir__arena *arena, struct weir__report *report)
{
    (void)arena;
    weir__report_add(
        report, WEIR__NOWHERE,
        "this build has no YAML reader; build Weir with libfyaml (weir.c: -DWEIR_YAML -lfyaml)");
    return NULL;
}

#else

#define ANCHORS_MAX 1000

struct anchor {
    char *name;
    size_t len;
    struct weir__node *node; /* NULL until it is complete: an alias inside it would have no end */
};

/* A list or mapping that is not closed yet. */
struct open {
    struct weir__node *node;
    size_t first; /* its first child among `pending` */
    int anchor;   /* or -1 */
};

struct builder {
    struct weir__tree tree;
    struct open open[WEIR__NODES_DEPTH + 1];
    size_t depth;
    struct weir__node **pending; /* complete nodes whose parent is not */
    size_t n_pending, room;
    struct anchor *anchors;
    int n_anchors;
    size_t last_at; /* the last place seen, for events without one */
    bool done;      /* the document has ended */
};

/* --------------------------------------------------------------- nodes ---- */

static bool push(struct builder *b, struct weir__node *node)
{
    if (b->n_pending == b->room) {
        size_t room = b->room ? 2 * b->room : 256;
        struct weir__node **grown = realloc(b->pending, room * sizeof(*grown));
        if (grown == NULL) {
            b->tree.arena->failed = true;
            return false;
        }
        b->pending = grown;
        b->room = room;
    }
    b->pending[b->n_pending++] = node;
    return true;
}

static struct anchor *find_anchor(struct builder *b, const char *name, size_t len)
{
    for (int i = b->n_anchors; i-- > 0;) {
        if (b->anchors[i].len == len && memcmp(b->anchors[i].name, name, len) == 0)
            return &b->anchors[i];
    }
    return NULL;
}

/* Its number; -1: there is none; -2: that is wrong. */
static int add_anchor(struct builder *b, struct fy_token *token)
{
    size_t len = 0;
    const char *name = token ? fy_token_get_text(token, &len) : NULL;

    if (name == NULL)
        return -1;
    if (b->n_anchors == ANCHORS_MAX) {
        weir__report_add(b->tree.report, b->last_at, "too many anchors; a file has at most %d",
                         ANCHORS_MAX);
        return -2;
    }
    if (b->anchors == NULL)
        b->anchors = weir__arena_take(b->tree.arena, ANCHORS_MAX, sizeof(*b->anchors));
    char *copy = weir__arena_copy(b->tree.arena, name, len);
    if (b->anchors == NULL || copy == NULL)
        return -2;
    b->anchors[b->n_anchors] = (struct anchor){ copy, len, NULL };
    return b->n_anchors++;
}

static bool refuse_tag(struct builder *b, struct fy_token *tag)
{
    size_t len = 0;
    const char *text = tag ? fy_token_get_text(tag, &len) : NULL;

    if (text == NULL)
        return true;
    weir__report_add(b->tree.report, b->last_at, "a tag (!...) says nothing here; leave it out");
    return false;
}

/* --------------------------------------------------------------- events ---- */

/* YAML 1.2's ways to write nothing. */
static bool is_nothing(const char *text, size_t len)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
            return true;
    }
    return false;
}

/* libfyaml 0.7.12 reads 'a''''b' wrong: two quotes in a row, each written twice. */
static bool refuse_quotes(struct builder *b, struct fy_token *token)
{
    const struct fy_mark *from = fy_token_start_mark(token), *to = fy_token_end_mark(token);

    if (fy_token_scalar_style(token) != FYSS_SINGLE_QUOTED ||
        memmem(b->tree.report->text + from->input_pos, to->input_pos - from->input_pos, "''''",
               4) == NULL)
        return true;
    weir__report_add(b->tree.report, b->last_at,
                     "two quotes in a row in single quotes; put this text in double quotes");
    return false;
}

static bool on_scalar(struct builder *b, const struct fy_event_scalar_data *e)
{
    size_t len = 0;
    const char *text = e->value ? fy_token_get_text(e->value, &len) : "";
    int anchor = refuse_tag(b, e->tag) ? add_anchor(b, e->anchor) : -2;

    if (anchor == -2 || (e->value != NULL && !refuse_quotes(b, e->value)))
        return false;
    if (text == NULL) {
        b->tree.arena->failed = true;
        return false;
    }
    if (memchr(text, '\0', len)) {
        weir__report_add(b->tree.report, b->last_at, "there is a NUL byte in this text");
        return false;
    }
    bool plain = e->value == NULL || fy_token_scalar_style(e->value) == FYSS_PLAIN;
    bool nothing = plain && is_nothing(text, len);
    struct weir__node *node =
        weir__node_create(&b->tree, nothing ? WEIR__NODE_NOTHING : WEIR__NODE_TEXT, b->last_at);
    if (node == NULL)
        return false;
    node->n = nothing ? 0 : len;
    node->text = nothing ? "" : weir__arena_copy(b->tree.arena, text, len);
    if (anchor >= 0)
        b->anchors[anchor].node = node;
    return node->text != NULL && push(b, node);
}

static bool on_alias(struct builder *b, struct fy_token *token)
{
    size_t len = 0;
    const char *name = fy_token_get_text(token, &len);
    struct anchor *anchor = name ? find_anchor(b, name, len) : NULL;

    if (anchor != NULL && anchor->node != NULL)
        return push(b, anchor->node);
    if (anchor != NULL) /* the name is not shown: it may be a secret without quotes */
        weir__report_add(b->tree.report, b->last_at,
                         "this alias is inside its own anchor, so it would have no end");
    else
        weir__report_add(
            b->tree.report, b->last_at,
            "there is no such anchor above; text that begins with * must be in quotes");
    return false;
}

static bool on_open(struct builder *b, enum weir__node_kind kind, struct fy_token *anchor_token,
                    struct fy_token *tag)
{
    int anchor = refuse_tag(b, tag) ? add_anchor(b, anchor_token) : -2;

    if (anchor == -2)
        return false;
    if (b->depth > WEIR__NODES_DEPTH) {
        weir__report_add(b->tree.report, b->last_at,
                         "too many lists and mappings in each other; the most is %d",
                         WEIR__NODES_DEPTH);
        return false;
    }
    struct weir__node *node = weir__node_create(&b->tree, kind, b->last_at);
    b->open[b->depth++] = (struct open){ node, b->n_pending, anchor };
    return node != NULL;
}

/* The events are trusted to be a tree only as far as they were seen to be one. */
static bool refuse_rest(struct builder *b, size_t at)
{
    weir__report_add(b->tree.report, at,
                     "this does not belong to the mapping above; a file is one mapping");
    return false;
}

static bool on_close(struct builder *b)
{
    if (b->depth == 0)
        return refuse_rest(b, b->last_at);
    struct open *o = &b->open[--b->depth];
    struct weir__node **children = b->n_pending > o->first ? b->pending + o->first : NULL;

    if (!weir__node_fill(&b->tree, o->node, children, b->n_pending - o->first))
        return false;
    b->n_pending = o->first;
    if (o->anchor >= 0)
        b->anchors[o->anchor].node = o->node;
    return push(b, o->node);
}

static bool on_document(struct builder *b)
{
    if (!b->done)
        return true;
    weir__report_add(b->tree.report, b->last_at, "a second document begins here; a file is one");
    return false;
}

static bool on_event(struct builder *b, struct fy_event *e)
{
    const struct fy_mark *mark = fy_event_start_mark(e);

    /* An alias begins at its star. */
    if (mark != NULL && e->type != FYET_MAPPING_END && e->type != FYET_SEQUENCE_END)
        b->last_at = mark->input_pos - (e->type == FYET_ALIAS && mark->input_pos > 0);
    switch (e->type) {
    case FYET_DOCUMENT_START:
        return on_document(b);
    case FYET_DOCUMENT_END:
        b->done = true;
        return true;
    case FYET_MAPPING_START:
        return on_open(b, WEIR__NODE_MAPPING, e->mapping_start.anchor, e->mapping_start.tag);
    case FYET_SEQUENCE_START:
        return on_open(b, WEIR__NODE_LIST, e->sequence_start.anchor, e->sequence_start.tag);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        return on_close(b);
    case FYET_SCALAR:
        return on_scalar(b, &e->scalar);
    case FYET_ALIAS:
        return on_alias(b, e->alias.anchor);
    default:
        return true;
    }
}

/* -------------------------------------------------------------- mistakes ---- */

/* libfyaml's messages, and better ones. */
static const struct {
    const char *says, *help;
} mistakes[] = {
    { "flow sequence without a closing bracket",
      "a [ is not closed; write ] at the end of the list" },
    { "missing comma in flow mapping",
      "expected , or } here: a { must be closed, and between two pairs stands a comma" },
    { "missing comma in flow sequence",
      "expected , or ] here: a [ must be closed, and between two items stands a comma" },
    { "did not find expected node content", "expected a value here; is a { or [ not closed?" },
    { "invalid multiline plain key",
      "a line below does not fit this one; check its indentation (spaces, no tabs) and its colon" },
    { "invalid nested block mapping on the same line",
      "a second 'key: value' on one line; text with a colon and a space must be in quotes" },
    { "invalid tab as indendation", "a tab as indentation; use spaces" },
    { "tab character may not be used as indentation", "a tab as indentation; use spaces" },
    { "did not find expected '-' indicator",
      "this line is indented differently from its neighbours; expected - or the same indentation" },
    { "wrongly indented double-quoted scalar", "this \" is not closed in its line, and the lines "
                                               "below are not indented enough to go on with it" },
    { "wrongly indented single-quoted scalar", "this ' is not closed in its line, and the lines "
                                               "below are not indented enough to go on with it" },
    { "plain scalar cannot start with", "text that begins with this character must be in quotes" },
    { "invalid alias detected", "text that begins with * must be in quotes" },
    { "invalid value after mapping", "expected the end of the value; text that begins with { or [ "
                                     "must be in quotes: \"{ip}:{account}\"" },
    { "invalid escape",
      "not an escape; in double quotes write \\\\ for a backslash, or use single quotes" },
    { "double-quoted scalar without closing quote", "a \" is not closed" },
    { "single-quoted scalar without closing quote", "a ' is not closed" },
    { "block sequence on the same line as a mapping key",
      "a list begins on the line below its key; text that begins with - must be in quotes" },
    { "invalid trailing content after", "there is more after the closing quote" },
    { "invalid mapping in plain multiline",
      "this line is indented by fewer spaces than its neighbours, or by more" },
    { "invalid indentation in mapping",
      "this line is indented by fewer spaces than its neighbours, or by more" },
};

static void add_mistake(struct weir__report *report, const struct fy_diag_error *e)
{
    size_t at = weir__report_place(report, e->line, e->column);
    const char *said = e->msg ? e->msg : "not YAML";

    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
        if (strncmp(said, mistakes[i].says, strlen(mistakes[i].says)) == 0) {
            weir__report_add(report, at, "%s", mistakes[i].help);
            return;
        }
    }
    weir__report_add(report, at, "not YAML: %s", said);
}

static void add_mistakes(struct weir__report *report, struct fy_diag *diag)
{
    struct fy_diag_error *e;
    void *iterator = NULL;
    size_t before = report->n;

    while ((e = fy_diag_errors_iterate(diag, &iterator)) != NULL) {
        if (e->type == FYET_ERROR)
            add_mistake(report, e);
    }
    if (report->n == before && report->len && report->text[0] == '%')
        weir__report_add(report, 0, "this reader knows YAML 1.1 and 1.2; leave out the %% line");
    else if (report->n == before)
        weir__report_add(report, WEIR__NOWHERE, "not YAML, and the reader does not say why");
}

static void keep_quiet(struct fy_diag *diag, void *user, const char *text, size_t len)
{
    (void)diag, (void)user, (void)text, (void)len;
}

static struct fy_diag *open_diag(void)
{
    struct fy_diag_cfg cfg;

    fy_diag_cfg_default(&cfg);
    cfg.fp = NULL;
    cfg.output_fn = keep_quiet;
    cfg.level = FYET_ERROR;
    struct fy_diag *diag = fy_diag_create(&cfg);
    if (diag != NULL)
        fy_diag_set_collect_errors(diag, true);
    return diag;
}

/* --------------------------------------------------------------- reading ---- */

/* YAML is Unicode without control characters; libfyaml lets others pass. */
static bool check_characters(struct weir__report *report)
{
    const char *p = report->text, *end = p + report->len;

    for (size_t len; p < end; p += len) {
        len = weir__utf8_length(p, end);
        bool control = len == 1 && ((unsigned char)*p < ' ' || *p == 0x7F) && *p != '\t' &&
                       *p != '\n' && *p != '\r';
        if (len > 0 && !control)
            continue;
        size_t at = (size_t)(p - report->text);
        if (control)
            weir__report_add(
                report, at,
                "a control character (byte 0x%02x); in double quotes it can be written as \\x%02x",
                *p, *p);
        else
            weir__report_add(report, at, "byte 0x%02x is not UTF-8; save the file as UTF-8",
                             (unsigned char)*p);
        return false;
    }
    return true;
}

static bool read_events(struct builder *b, struct fy_parser *parser)
{
    struct fy_event *e;
    bool good = true;

    while (good && (e = fy_parser_parse(parser)) != NULL) {
        good = on_event(b, e);
        fy_parser_event_free(parser, e);
    }
    return good;
}

static struct weir__node *parse(struct builder *b, struct fy_diag *diag)
{
    struct weir__report *report = b->tree.report;
    struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                         FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
                                .diag = diag };
    struct fy_parser *parser = fy_parser_create(&cfg);
    bool good = false;

    if (parser == NULL || fy_parser_set_string(parser, report->text, report->len) != 0) {
        b->tree.arena->failed = true;
    } else {
        good = read_events(b, parser);
        if (good && fy_parser_get_stream_error(parser)) {
            add_mistakes(report, diag);
            good = false;
        }
    }
    if (parser != NULL)
        fy_parser_destroy(parser);
    if (good && b->n_pending > 1)
        good = refuse_rest(b, b->pending[1]->at);
    return good && b->depth == 0 && b->n_pending == 1 ? b->pending[0] : NULL;
}

struct weir__node *weir__yaml_read(struct weir__arena *arena, struct weir__report *report)
{
    struct builder b = { .tree = { .arena = arena, .report = report } };

    if (!check_characters(report))
        return NULL;
    struct fy_diag *diag = open_diag();
    if (diag == NULL) {
        arena->failed = true;
        return NULL;
    }
    struct weir__node *root = parse(&b, diag);
    fy_diag_destroy(diag);
    free(b.pending);
    return root;
}

#endif
