/* read-options.c -- mappings whose members are rows of options: counts, times, shares, words. */
#include "rulefile/read.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------- values ---- */

/* The words of a list, for a sentence: "fifo, priority or weighted". */
static const char *list_words(char *out, size_t size, const char *const *words)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; words[i] && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s",
                                i == 0         ? ""
                                : words[i + 1] ? ", "
                                               : " or ",
                                words[i]);
    return out;
}

int weir__read_word(struct weir__reader *r, const struct weir__member *m, const char *const *words)
{
    char like[128];
    const char *text =
        m->value ? weir__read_text(r, m->value, m->name, list_words(like, sizeof(like), words))
                 : NULL;
    size_t n = 0;

    for (; text && words[n]; n++) {
        if (strcmp(text, words[n]) == 0)
            return (int)n;
    }
    if (text)
        weir__say(r, m->value, "unknown %s %s; %s", m->name, weir__quote(text, m->value->n).text,
                  weir__hint(text, m->value->n, words, n).text);
    return -1;
}

void weir__read_flag(struct weir__reader *r, const struct weir__member *m, bool *out)
{
    int word = weir__read_word(r, m, weir__flag_words());

    *out = word < 0 ? *out : word == 1;
}

/* Digits and a percent sign; -1: neither. */
static int64_t parse_percent(const char *text)
{
    int64_t n = 0;
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 3 || strcmp(text + digits, "%") != 0)
        return -1;
    for (size_t i = 0; i < digits; i++)
        n = 10 * n + text[i] - '0';
    return n;
}

static bool read_percent(struct weir__reader *r, const struct weir__member *m, int64_t *out)
{
    const char *text = weir__read_text(r, m->value, m->name, "a share such as 50%");

    if (text == NULL)
        return false;
    *out = parse_percent(text);
    if (*out < 0)
        weir__say(r, m->value, "%s must be a share such as 50%%; found %s", m->name,
                  weir__quote(text, m->value->n).text);
    return *out >= 0;
}

static bool read_time(struct weir__reader *r, const struct weir__member *m, int64_t *out)
{
    struct weir_error error = { 0 };

    if (!weir__read_text(r, m->value, m->name, "a time such as 500ms"))
        return false;
    if (weir_time_parse(out, m->value->text, &error) == WEIR_OK)
        return true;
    weir__say_error(r, m->value, m->name, &error);
    return false;
}

/* ---------------------------------------------------------------- rows ---- */

static bool read_word(struct weir__reader *r, const struct weir__member *m,
                      const struct weir__row *row, void *options)
{
    int word = weir__read_word(r, m, row->words());

    if (word >= 0)
        weir__row_set(row, options, row->type == WEIR__ROW_NAME ? word + 1 : word);
    return word >= 0;
}

bool weir__read_row(struct weir__reader *r, const struct weir__member *m,
                    const struct weir__row *row, void *options)
{
    int64_t value = 0;

    if (m->value == NULL)
        return false;
    if (row->type == WEIR__ROW_WORD || row->type == WEIR__ROW_NAME)
        return read_word(r, m, row, options);
    if (row->type == WEIR__ROW_COUNT
            ? !weir__read_count(r, m->value, m->name, row->min, row->max, &value)
        : row->type == WEIR__ROW_TIME ? !read_time(r, m, &value)
                                      : !read_percent(r, m, &value))
        return false;
    if (value < row->min || value > row->max) {
        struct weir__row_bounds bounds = weir__row_bounds(row);
        if (row->type == WEIR__ROW_TIME && weir__is_bare_number(m->value))
            weir__say(r, m->value, "%s must be %s; %s without a unit is %ss", m->name, bounds.text,
                      m->value->text, m->value->text);
        else
            weir__say(r, m->value, "%s must be %s", m->name, bounds.text);
        return false;
    }
    weir__row_set(row, options, value == 0 && row->type == WEIR__ROW_PERCENT ? -1 : value);
    return true;
}

/* If two rows have the same name, the one written with a percent sign is a share. */
static bool is_other(const struct weir__rows *rows, size_t i, const struct weir__node *value)
{
    const struct weir__row *row = &rows->rows[i];
    bool twice = (i > 0 && row[-1].name && strcmp(row->name, row[-1].name) == 0) ||
                 (i + 1 < rows->n && row[1].name && strcmp(row->name, row[1].name) == 0);
    bool share = value && value->kind == WEIR__NODE_TEXT && strchr(value->text, '%');

    return twice && share != (row->type == WEIR__ROW_PERCENT);
}

static struct weir__member *find(struct weir__mapping *mapping, const char *name)
{
    for (size_t i = 0; i < mapping->n; i++) {
        if (strcmp(mapping->members[i].name, name) == 0)
            return &mapping->members[i];
    }
    return NULL;
}

const struct weir__member *weir__member_of(const struct weir__mapping *mapping, const char *name)
{
    const struct weir__member *m = find((struct weir__mapping *)mapping, name);

    assert(m != NULL);
    return m;
}

bool weir__read_rows(struct weir__reader *r, const struct weir__node *node,
                     const struct weir__rows *rows, struct weir__mapping *out, void *options)
{
    for (size_t i = 0; out->others && out->others[i]; i++)
        out->members[out->n++].name = out->others[i];
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->rows[i].name && find(out, rows->rows[i].name) == NULL)
            out->members[out->n++].name = rows->rows[i].name;
    }
    assert(out->n <= sizeof(out->members) / sizeof(out->members[0]));
    if (!weir__read_members(r, node, rows->name, out->members, out->n))
        return false;
    for (size_t i = 0; i < rows->n; i++) {
        const struct weir__row *row = &rows->rows[i];
        const struct weir__member *m = row->name ? find(out, row->name) : NULL;
        if (m && !is_other(rows, i, m->value))
            weir__read_row(r, m, row, options);
    }
    return true;
}

/* Times that people think of in milliseconds; the others only if they are long. */
void weir__note_bare(const struct weir__mapping *m, struct weir__guard_draft *g)
{
    static const char *const times[] = { "slow", "target",    "p50",      "p90",    "p95",  "p99",
                                         "wait", "mean_time", "open_for", "window", "lease" };

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
            weir_time time;
            if (strcmp(m->members[i].name, times[k]) == 0 &&
                weir__is_bare_number(m->members[i].value) &&
                weir_time_parse(&time, m->members[i].value->text, NULL) == WEIR_OK &&
                (k < 8 || time >= 100 * WEIR_SECOND)) {
                g->bare = times[k];
                g->bare_time = time;
            }
        }
}
