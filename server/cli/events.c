/* events.c -- `weir events`: what a running server tells of what happens, and with --follow as
 * it happens.
 *
 * With --follow what is kept comes first, and then server-sent events (WHATWG HTML, 9.2) from the
 * last of them on.  When the connection is lost it is made again, with the number of the last event
 * that came: none is missed that the server still has.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

#define AGAIN_MS  1000 /* between two tries to connect */
#define LINE_MOST ((size_t)1 << 20)

struct options {
    struct weir__remote_options remote;
    bool follow;
    int64_t last, after, count;
};

const struct weir__option weir__cmd_events_options[] = {
    { "follow", 'f', WEIR__OPTION_SWITCH, offsetof(struct options, follow), 0, NULL,
      "go on with those that happen, until Ctrl-C" },
    { "last", 'n', WEIR__OPTION_COUNT, offsetof(struct options, last), 0, "N",
      "of those that were, the last N; default all, with --follow 10" },
    { "after", 0, WEIR__OPTION_COUNT, offsetof(struct options, after), 0, "ID",
      "only those after this number" },
    { "count", 'c', WEIR__OPTION_COUNT, offsetof(struct options, count), 1, "N",
      "end after N events" },
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, remote.json), 0, NULL,
      "one JSON object a line" },
    WEIR__REMOTE_ROWS(struct options){ 0 },
};

struct following {
    struct weir__remote *remote;
    const struct options *o;
    struct weir__buffer line,
        data;     /* of the stream: what has come of a line, and of an event's data */
    int64_t left; /* events to print yet; < 0: no end */
    int64_t seen; /* the number of the last one */
    bool over;    /* nobody wants more: enough were told, or nobody reads them */
};

/* --------------------------------------------------------------- printing ---- */

/* "rule login" */
static void print_fact(const struct weir__scalar *s)
{
    printf("  ");
    weir__print_safely(stdout, s->path);
    putchar(' ');
    weir__print_safely(stdout, s->text);
}

static const struct weir__scalar *known(const struct weir__document *d, const char *name)
{
    return weir__document_find(d, "%s", name);
}

/* Those that matter first in a fixed order; what else there is behind them. */
static void print_words(const struct weir__document *d)
{
    static const char *const first[] = { "rule", "key", "mode", "list", "attribute", "until" };
    const struct weir__scalar *time = known(d, "time"), *event = known(d, "event");

    weir__print_padded(time ? time->text : "", 24);
    putchar(' ');
    weir__print_padded(event ? event->text : NULL, 14);
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        if (known(d, first[i]))
            print_fact(known(d, first[i]));
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct weir__scalar *s = &d->scalars[i];
        bool told =
            s == time || s == event || strcmp(s->path, "id") == 0 || s->kind == WEIR__JSON_NULL;
        for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++)
            told = told || strcmp(s->path, first[k]) == 0;
        if (!told)
            print_fact(s);
    }
    putchar('\n');
}

static void print_event(struct following *f, const char *json, size_t len)
{
    struct weir__document d = { 0 };
    struct weir_error error;

    if (weir__document_read(&d, json, len, &error) != WEIR_OK)
        return;
    f->seen = weir__document_number(&d, f->seen, "id");
    if (f->o->remote.json)
        printf("%.*s\n", (int)len, json);
    else
        print_words(&d);
    weir__document_free(&d);
    f->left -= f->left > 0;
    f->over = fflush(stdout) != 0 || f->left == 0;
}

/* --------------------------------------------------------------- those kept ---- */

struct span {
    const char *bytes;
    size_t len;
};

/* The next element of an array of objects: the JSON is right, so braces outside of strings are
 * enough to go by. */
static bool next_element(const char **at, const char *end, struct span *out)
{
    const char *begin = memchr(*at, '{', (size_t)(end - *at));
    bool quoted = false;
    int depth = 0;

    for (const char *c = begin; c && c < end; c++) {
        if (quoted && *c == '\\')
            c++;
        else if (*c == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*c == '{') - (*c == '}');
        if (depth > 0)
            continue;
        *out = (struct span){ begin, (size_t)(c + 1 - begin) };
        *at = c + 1;
        return true;
    }
    return false;
}

/* Those that the server still has, as far as they are wanted. */
static bool print_kept(struct following *f)
{
    struct weir__remote *r = f->remote;
    char path[64];
    struct span event;
    int64_t n = 0, skip;

    snprintf(path, sizeof(path), "/v1/events/recent?after=%lld", (long long)f->o->after);
    if (!weir__remote_ask_for(r, "GET", path, NULL, NULL))
        return false;
    const char *at = r->answer.len ? r->answer.bytes : "", *end = at + r->answer.len;
    for (const char *c = at; next_element(&c, end, &event);)
        n++;
    int64_t wanted = f->o->last >= 0 ? f->o->last : f->o->follow ? 10 : n;
    skip = n > wanted ? n - wanted : 0;
    f->seen = f->o->after;
    if (n > 0)
        f->seen = weir__document_number(&r->document, f->seen, "%lld.id", (long long)n - 1);
    for (int64_t last = f->seen; !f->over && next_element(&at, end, &event); f->seen = last) {
        if (skip-- <= 0)
            print_event(f, event.bytes, event.len);
    }
    return true;
}

/* ------------------------------------------------------------- as they happen ---- */

/* A line of the stream; an empty one ends an event. */
static void take_line(struct following *f, const char *line, size_t len)
{
    if (len == 0 && f->data.len > 0) {
        print_event(f, f->data.bytes, f->data.len);
        f->data.len = 0;
    } else if (len > 5 && memcmp(line, "data:", 5) == 0) {
        size_t from = line[5] == ' ' ? 6 : 5;
        weir__buffer_add(&f->data, line + from, len - from);
    }
}

static bool take_bytes(void *context, const char *bytes, size_t len)
{
    struct following *f = context;
    const char *end = bytes + len, *newline;

    for (; !f->over && (newline = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL;
         bytes = newline + 1) {
        weir__buffer_add(&f->line, bytes, (size_t)(newline - bytes));
        if (f->line.len > 0 && f->line.bytes[f->line.len - 1] == '\r')
            f->line.len--;
        take_line(f, f->line.bytes, f->line.len);
        f->line.len = 0;
    }
    if (bytes < end)
        weir__buffer_add(&f->line, bytes, (size_t)(end - bytes));
    return !f->over && f->line.len + f->data.len < LINE_MOST && !f->line.failed && !f->data.failed;
}

/* False: it was refused, and that was said. */
static bool listen_once(struct following *f, bool *told)
{
    struct weir__remote *r = f->remote;
    struct weir_error error = { 0 };
    char path[64];

    f->line.len = f->data.len = 0;
    snprintf(path, sizeof(path), "/v1/events?after=%lld", (long long)f->seen);
    r->status = weir__client_stream(r->client, path, take_bytes, f, &r->answer, &error);
    if (r->status == 200) {
        *told = false;
    } else if (r->status > 0 && r->status < 500) {
        weir__document_free(&r->document);
        weir__document_read(&r->document, r->answer.bytes, r->answer.len, NULL);
        weir__remote_complain(r);
        return false;
    }
    if (!f->over && !*told)
        weir__complain(r->command, "%s; trying again",
                       r->status < 0 ? error.text : "the server has ended the connection");
    *told = true;
    return true;
}

static int follow(struct following *f)
{
    bool told = false;

    while (!f->over) {
        if (!listen_once(f, &told))
            return WEIR__EXIT_WRONG;
        if (!f->over)
            poll(NULL, 0, AGAIN_MS);
    }
    return WEIR__EXIT_OK;
}

int weir__cmd_events(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .last = -1, .count = -1 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n > 0) {
        weir__complain(self->name, "takes no words; found '%s'", argv[0]);
        return WEIR__EXIT_WRONG;
    }
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    struct following f = { .remote = &r, .o = &o, .left = o.count };
    code = print_kept(&f) ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
    if (code == WEIR__EXIT_OK && o.follow && !f.over)
        code = follow(&f);
    weir__buffer_free(&f.line);
    weir__buffer_free(&f.data);
    weir__remote_close(&r);
    return code;
}
