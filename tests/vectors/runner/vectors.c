/* vectors.c -- reads .vec files.
 *
 * One pass, line by line.  A line's first word chooses its reader, the verb of an `at` line chooses
 * how it goes on, and fields are rows; in a case of another kind than a limit, the kind's own
 * reader goes on after the time.
 * Numbers, times and limits are read by the library's own cursor (algo/limit.h), so that a vector
 * can say all that a user can, and every error has a column.
 */
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "algo/limit.h"
#include "base/base.h"

enum { LINE_MAX_LENGTH = 1000 };

struct reader {
    struct weir__cursor cursor; /* over `line` */
    char line[LINE_MAX_LENGTH + 1];
    const char *source; /* the same line in the text */
    int number;
    struct weir__vectors out;
    size_t case_room, line_room;
    bool has_limit;          /* the open case; or what its kind has instead */
    struct weir_limit limit; /* the open case's, as it is at this line */
};

#define fail_here(r, ...) weir__vector_fail(&(r)->cursor, __VA_ARGS__)
#define fail_line(r, ...) weir__fail_at((r)->cursor.error, 1, __VA_ARGS__)

static const struct weir__vector_kind *const kinds[] = { &weir__vector_breaker,
                                                         &weir__vector_controller,
                                                         &weir__vector_permits };

int weir__vector_end(struct weir__cursor *cursor)
{
    if (weir__cursor_end(cursor))
        return WEIR_OK;
    return weir__fail_at(cursor->error, weir__cursor_column(cursor),
                         "unexpected '%.20s': the line should end here", cursor->at);
}

bool weir__vector_accept(struct weir__cursor *cursor, const char *word)
{
    if (weir__cursor_end(cursor) || !weir__cursor_is(cursor, weir__cursor_word(cursor), word))
        return false;
    cursor->at += strlen(word);
    return true;
}

bool weir__vector_accept_key(struct weir__cursor *c, const char *name)
{
    size_t len = strlen(name);

    if (weir__cursor_end(c) || strncmp(c->at, name, len) != 0 || c->at[len] != '=' ||
        strchr(" \t", c->at[len + 1]))
        return false;
    c->at += len + 1;
    return true;
}

static int read_end(struct reader *r)
{
    return weir__vector_end(&r->cursor);
}

/* A cost may be negative: that a library refuses one is worth a vector. */
static int read_number(struct reader *r, const char *what, int64_t *out)
{
    bool minus = !weir__cursor_end(&r->cursor) && *r->cursor.at == '-' && r->cursor.at[1] >= '0' &&
                 r->cursor.at[1] <= '9';

    r->cursor.at += minus;
    int code = weir__cursor_count(&r->cursor, what, 0, out);
    if (code == WEIR_OK && minus)
        *out = -*out;
    return code;
}

/* Elsewhere a bare number is seconds; here 0 and 0s side by side would only be a riddle. */
int weir__vector_time(struct weir__cursor *cursor, const char *what, weir_time *out)
{
    int code = weir__cursor_time(cursor, what, out);
    char last = code == WEIR_OK ? cursor->at[-1] : 's';

    if (last < '0' || last > '9')
        return code;
    return weir__fail_at(cursor->error, weir__cursor_column(cursor),
                         "%s needs a unit: ns, us, ms, s, m, h, d or w", what);
}

static int read_time(struct reader *r, const char *what, weir_time *out)
{
    return weir__vector_time(&r->cursor, what, out);
}

/* ---------------------------------------------------------------- growth ---- */

/* Room for one more. */
static int grow(struct reader *r, void **items, size_t count, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 16;

    if (count < *room)
        return WEIR_OK;
    void *grown = more > SIZE_MAX / size ? NULL : realloc(*items, more * size);
    if (!grown)
        return weir__fail(r->cursor.error, WEIR_NO_MEMORY, "no memory left for so many cases");
    *items = grown;
    *room = more;
    return WEIR_OK;
}

static struct weir__vector_case *open_case(struct reader *r)
{
    return r->out.case_count ? &r->out.cases[r->out.case_count - 1] : NULL;
}

static int add_case(struct reader *r, const struct weir__vector_case *c)
{
    void *items = r->out.cases;
    int code = grow(r, &items, r->out.case_count, &r->case_room, sizeof(*c));

    r->out.cases = items;
    if (code == WEIR_OK)
        r->out.cases[r->out.case_count++] = *c;
    return code;
}

static int add_line(struct reader *r, const struct weir__vector_line *l)
{
    void *items = r->out.lines;
    int code = grow(r, &items, r->out.line_count, &r->line_room, sizeof(*l));

    r->out.lines = items;
    if (code != WEIR_OK)
        return code;
    r->out.lines[r->out.line_count++] = *l;
    open_case(r)->count++;
    return WEIR_OK;
}

/* ---------------------------------------------------------------- limits ---- */

/* The one algorithm that is no limit by itself, so that no text of a limit names it. */
static bool read_purse(struct reader *r)
{
    size_t length = weir__cursor_word(&r->cursor);

    if (!weir__cursor_is(&r->cursor, length, weir__purse.name))
        return false;
    r->cursor.at += length;
    weir__cursor_end(&r->cursor);
    return true;
}

/* Reads over r->limit: what the text does not name stays as it was. */
static int read_limit_text(struct reader *r, bool with_algorithm)
{
    struct weir_limit limit = r->limit;
    struct weir_plan *plan;
    unsigned named;

    weir__cursor_end(&r->cursor);
    int column = weir__cursor_column(&r->cursor);
    bool purse = with_algorithm && read_purse(r);
    int code = weir__limit_read(&r->cursor, &limit, &named);
    if (code != WEIR_OK)
        return code;
    if (purse) {
        limit.algorithm = weir__purse.name;
        named |= WEIR__NAMED_ALGORITHM;
    }
    if (with_algorithm && !(named & WEIR__NAMED_ALGORITHM))
        return weir__fail_at(r->cursor.error, column,
                             "a limit begins with its algorithm here, as in gcra 5/1m");
    if (!with_algorithm && (named & WEIR__NAMED_ALGORITHM))
        return weir__fail_at(r->cursor.error, column,
                             "a change does not name the algorithm: it stays");
    code = weir_plan_create(&plan, &limit, r->cursor.error);
    if (code != WEIR_OK) {
        r->cursor.error->column = column;
        return code;
    }
    weir_plan_destroy(plan);
    r->limit = limit;
    return WEIR_OK;
}

static int read_limit(struct reader *r)
{
    if (!open_case(r))
        return fail_line(r, "a limit needs a case before it: case NAME");
    if (r->has_limit)
        return open_case(r)->kind
                   ? fail_line(r, "this case is about a %s already: a limit is another case",
                               open_case(r)->kind->name)
                   : fail_line(r, "this case has a limit already; to change it: at TIME change "
                                  "COUNT/PERIOD");
    int code = read_limit_text(r, true);
    open_case(r)->limit = r->limit;
    r->has_limit = true;
    return code;
}

static int read_change(struct reader *r, struct weir__vector_line *l)
{
    int code = read_limit_text(r, false);

    l->limit = r->limit;
    return code;
}

/* ------------------------------------------------------------------ asks ---- */

struct field {
    const char *name;
    bool is_time, may_be_never;
};

static const struct field fields[WEIR__VECTOR_FIELDS] = {
    [WEIR__VECTOR_LIMIT] = { .name = "limit" },
    [WEIR__VECTOR_REMAINING] = { .name = "remaining" },
    [WEIR__VECTOR_WAIT] = { .name = "wait", .is_time = true },
    [WEIR__VECTOR_RETRY] = { .name = "retry", .is_time = true, .may_be_never = true },
    [WEIR__VECTOR_RESET] = { .name = "reset", .is_time = true },
};

const char *weir__vector_field_name(enum weir__vector_field field)
{
    return fields[field].name;
}

static int read_value(struct reader *r, const struct field *f, struct weir__expectation *e)
{
    e->named = true;
    if (!f->is_time)
        return read_number(r, f->name, &e->value);
    if (f->may_be_never && weir__vector_accept(&r->cursor, "never")) {
        e->value = WEIR_NEVER;
        return WEIR_OK;
    }
    e->about = !weir__cursor_end(&r->cursor) && *r->cursor.at == '~' && r->cursor.at[1] >= '0' &&
               r->cursor.at[1] <= '9';
    r->cursor.at += e->about;
    return read_time(r, f->name, &e->value);
}

static int read_field(struct reader *r, struct weir__vector_line *l)
{
    const char *start = r->cursor.at;
    size_t i = 0;

    while (i < WEIR__VECTOR_FIELDS && !weir__vector_accept(&r->cursor, fields[i].name))
        i++;
    if (i == WEIR__VECTOR_FIELDS)
        return fail_here(r, "'%.20s' is no field; they are limit, remaining, wait, retry and reset",
                         r->cursor.at);
    if (l->fields[i].named) {
        r->cursor.at = start;
        return fail_here(r, "%s is named twice", fields[i].name);
    }
    return read_value(r, &fields[i], &l->fields[i]);
}

static int read_expectations(struct reader *r, struct weir__vector_line *l)
{
    int code = WEIR_OK;

    if (!weir__vector_accept(&r->cursor, "->"))
        return fail_here(r, "expected -> and what must come back: -> ok, or -> no");
    l->allowed = weir__vector_accept(&r->cursor, "ok");
    if (!l->allowed && !weir__vector_accept(&r->cursor, "no"))
        return fail_here(r, "expected ok or no after ->");
    while (code == WEIR_OK && !weir__cursor_end(&r->cursor))
        code = read_field(r, l);
    if (l->allowed)
        l->fields[WEIR__VECTOR_WAIT].named =
            true; /* granted means at once (0), unless the line says otherwise */
    return code;
}

static int read_ask(struct reader *r, struct weir__vector_line *l)
{
    int code = read_number(r, "the cost", &l->cost);

    if (code == WEIR_OK && weir__vector_accept(&r->cursor, "wait-max")) {
        if (weir__vector_accept(&r->cursor, "forever"))
            l->wait_max = WEIR_FOREVER;
        else
            code = read_time(r, "wait-max", &l->wait_max);
    }
    return code == WEIR_OK ? read_expectations(r, l) : code;
}

static int read_give(struct reader *r, struct weir__vector_line *l)
{
    int code = read_number(r, "the cost", &l->cost);

    return code == WEIR_OK ? read_end(r) : code;
}

struct verb {
    const char *name;
    enum weir__vector_verb verb;
    int (*read)(struct reader *r, struct weir__vector_line *l);
};

static const struct verb verbs[] = {
    { "take", WEIR__VECTOR_TAKE, read_ask },
    { "peek", WEIR__VECTOR_PEEK, read_ask },
    { "give", WEIR__VECTOR_GIVE, read_give },
    { "change", WEIR__VECTOR_CHANGE, read_change },
};

static int read_verb(struct reader *r, struct weir__vector_line *l)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (weir__vector_accept(&r->cursor, verbs[i].name)) {
            l->verb = verbs[i].verb;
            return verbs[i].read(r, l);
        }
    }
    return fail_here(r, "expected take, peek, give or change");
}

/* ------------------------------------------------------ kinds of cases ---- */

static int read_subject(struct reader *r, const struct weir__vector_kind *kind)
{
    struct weir__vector_case *c = open_case(r);

    if (!c)
        return fail_line(r, "a %s needs a case before it: case NAME", kind->name);
    if (r->has_limit)
        return fail_line(r, "this case is about a %s already: another one is another case",
                         c->kind ? c->kind->name : "limit");
    c->subject = calloc(1, kind->subject_size);
    if (!c->subject)
        return weir__fail(r->cursor.error, WEIR_NO_MEMORY, "no memory left for a %s", kind->name);
    c->kind = kind;
    r->has_limit = true;
    return kind->read_subject(&r->cursor, c->subject);
}

static int read_body(struct reader *r, struct weir__vector_line *l)
{
    const struct weir__vector_case *c = open_case(r);
    void *body = calloc(1, c->kind->line_size);
    int code =
        body ? c->kind->read_line(&r->cursor, c->subject, body)
             : weir__fail(r->cursor.error, WEIR_NO_MEMORY, "no memory left for so many lines");

    l->body = body;
    if (code == WEIR_OK)
        code = add_line(r, l);
    if (code != WEIR_OK)
        free(body);
    return code;
}

static int read_at(struct reader *r)
{
    struct weir__vector_line l = { .line = r->number };

    if (!r->has_limit)
        return fail_line(
            r,
            "an ask needs a case and its limit before it: case NAME, limit ALGORITHM COUNT/PERIOD");
    int code = read_time(r, "the time", &l.at);
    if (code == WEIR_OK && open_case(r)->kind)
        return read_body(r, &l);
    if (code == WEIR_OK)
        code = read_verb(r, &l);
    return code == WEIR_OK ? add_line(r, &l) : code;
}

/* ----------------------------------------------------------------- lines ---- */

/* A case without a limit is half a case. */
static int close_case(struct reader *r)
{
    const struct weir__vector_case *c = open_case(r);

    if (!c || r->has_limit)
        return WEIR_OK;
    return fail_line(r, "case %.*s on line %d has no limit", c->name_len > 40 ? 40 : c->name_len,
                     c->name, c->line);
}

static int read_case(struct reader *r)
{
    int code = close_case(r);

    if (code != WEIR_OK)
        return code;
    if (weir__cursor_end(&r->cursor))
        return fail_here(r, "the name is missing: case NAME");
    const char *name = r->cursor.at;
    r->cursor.at += strcspn(name, " \t");
    struct weir__vector_case c = { .name = r->source + (name - r->line),
                                   .name_len = (int)(r->cursor.at - name),
                                   .line = r->number };
    c.first = r->out.line_count;
    r->has_limit = false;
    r->limit = (struct weir_limit){ 0 };
    code = read_end(r);
    return code == WEIR_OK ? add_case(r, &c) : code;
}

static int read_line(struct reader *r)
{
    if (weir__cursor_end(&r->cursor) || *r->cursor.at == '#')
        return WEIR_OK;
    if (weir__vector_accept(&r->cursor, "at"))
        return read_at(r);
    if (weir__vector_accept(&r->cursor, "case"))
        return read_case(r);
    if (weir__vector_accept(&r->cursor, "limit"))
        return read_limit(r);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (weir__vector_accept(&r->cursor, kinds[i]->name))
            return read_subject(r, kinds[i]);
    }
    return fail_here(
        r,
        "'%.20s' begins no line; lines begin with case, limit, breaker, controller, permits, at "
        "or #",
        r->cursor.at);
}

/* Copies one line, without the return of a DOS file, so that the cursor finds a zero at its end. */
static int load_line(struct reader *r, const char *text, size_t len)
{
    if (len && text[len - 1] == '\r')
        len--;
    r->source = text;
    r->cursor.text = r->cursor.at = r->line;
    if (len > LINE_MAX_LENGTH)
        return weir__fail_at(r->cursor.error, LINE_MAX_LENGTH + 1,
                             "the line is longer than %d characters", LINE_MAX_LENGTH);
    memcpy(r->line, text, len);
    r->line[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7F)
            return weir__fail_at(r->cursor.error, (int)i + 1,
                                 "a control character (0x%02x) has no place here", text[i]);
    }
    return WEIR_OK;
}

static int read_lines(struct reader *r, const char *text, const char *end)
{
    for (r->number = 1; text < end; r->number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        int code = load_line(r, text, (size_t)((newline ? newline : end) - text));
        if (code == WEIR_OK)
            code = read_line(r);
        if (code != WEIR_OK)
            return code;
        text = newline ? newline + 1 : end;
    }
    return open_case(r) ? close_case(r) : fail_line(r, "there is no case in this file");
}

int weir__vectors_parse(struct weir__vectors *out, const char *text, size_t len, int *line,
                        struct weir_error *error)
{
    struct reader r = { .cursor = { .error = error } };
    int code = read_lines(&r, text, text + len);

    if (code == WEIR_OK) {
        *out = r.out;
        return WEIR_OK;
    }
    *line = r.number;
    weir__vectors_clear(&r.out);
    return code;
}

void weir__vectors_clear(struct weir__vectors *vectors)
{
    for (size_t i = 0; i < vectors->case_count; i++)
        free(vectors->cases[i].subject);
    for (size_t i = 0; i < vectors->line_count; i++)
        free(vectors->lines[i].body);
    free(vectors->cases);
    free(vectors->lines);
    *vectors = (struct weir__vectors){ 0 };
}
