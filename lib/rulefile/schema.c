/* schema.c -- the JSON Schema of a rule file, for editors that complete and check while you type.
 *
 * schema.json has all but the options that are rows: "$breaker": "rows" stands for those of the
 * breaker.  The schema accepts the same as the readers, as far as a schema can; only the reader
 * sees a name used twice, a missing list, a limit that makes no plan.  A test changes files at
 * random and asks both.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rulefile/read.h"
#include "schema-text.h"

struct page {
    char *out;
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *page, const char *format, ...)
{
    bool room = page->len < page->size;
    va_list args;

    va_start(args, format);
    page->len += (size_t)vsnprintf(room ? page->out + page->len : NULL,
                                   room ? page->size - page->len : 0, format, args);
    va_end(args);
}

static void put_words(struct page *page, const char *const *words)
{
    put(page, "\"enum\":[");
    for (size_t i = 0; words[i]; i++)
        put(page, "%s\"%s\"", i ? "," : "", words[i]);
    put(page, "]");
}

static void put_type(struct page *page, const struct weir__row *row)
{
    static const char *const types[] = { "whole_from_1", "time", "percent" };
    bool mapped = strcmp(row->name, "wait") == 0; /* the only one that can be a mapping */

    if (row->words == weir__flag_words)
        put(page, "\"$ref\":\"#/$defs/flag\"");
    else if (row->words)
        put_words(page, row->words());
    else
        put(page, "\"$ref\":\"#/$defs/%s\"", mapped ? "waits" : types[row->type]);
}

/* "Never opens on fewer calls (at most 1000000, default 20)." */
static void put_text(struct page *page, const struct weir__row *row)
{
    bool bounds = row->type == WEIR__ROW_COUNT || row->type == WEIR__ROW_TIME;
    struct weir__row_text least = { "" }, most = { "" }, otherwise = { "" };

    if (bounds && row->min > 1)
        least = weir__row_print(row, row->min);
    if (bounds)
        most = weir__row_print(row, row->max);
    if (row->otherwise || (row->type == WEIR__ROW_WORD && row->words != weir__flag_words))
        otherwise = weir__row_print(row, row->otherwise);
    put(page, "\"description\":\"%s", row->text);
    if (*most.text || *otherwise.text)
        put(page, " (%s%s%s%s%s%s)", least.text,
            !*most.text   ? ""
            : *least.text ? " to "
                          : "at most ",
            most.text, *most.text && *otherwise.text ? ", " : "", *otherwise.text ? "default " : "",
            otherwise.text);
    put(page, "\",");
}

/* Of two rows with one name the second is another way to write it. */
static void put_rows(struct page *page, const struct weir__rows *rows)
{
    const char *last = "";

    for (size_t i = 0; i < rows->n; i++) {
        const struct weir__row *row = &rows->rows[i];
        if (row->name == NULL || strcmp(row->name, last) == 0)
            continue;
        put(page, "%s\"%s\":{", *last ? "," : "", row->name);
        put_text(page, row);
        bool two = i + 1 < rows->n && row[1].name && strcmp(row->name, row[1].name) == 0;
        put(page, two ? "\"anyOf\":[{" : "");
        put_type(page, row);
        put(page, two ? "},{" : "");
        if (two)
            put_type(page, row + 1);
        put(page, two ? "}]}" : "}");
        last = row->name;
    }
}

/* The rows that a place in the text stands for; NULL: none. */
static const struct weir__rows *rows_at(const char *at, size_t *len)
{
    const struct weir__rows *all[WEIR__GROUPS + 2] = { &weir__ban_rows, &weir__queue_rows };
    char mark[40];

    for (int i = 0; i < WEIR__GROUPS; i++)
        all[2 + i] = &weir__guard_rows[i];
    for (int i = 0; strncmp(at, "\"$", 2) == 0 && i < WEIR__GROUPS + 2; i++) {
        *len = (size_t)snprintf(mark, sizeof(mark), "\"$%s\":\"rows\"", all[i]->name);
        if (strncmp(at, mark, *len) == 0)
            return all[i];
    }
    *len = 1;
    return NULL;
}

int weir_rules_schema(char *out, size_t size)
{
    struct page page = { out, size, 0 };
    size_t len;

    for (const char *at = weir__schema_text; *at; at += len) {
        const struct weir__rows *rows = rows_at(at, &len);
        if (rows)
            put_rows(&page, rows);
        else
            put(&page, "%c", *at);
    }
    put(&page, "\n");
    return (int)page.len;
}
