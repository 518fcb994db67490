/* events.c -- `weir events`: the events of a running server, and with --follow new ones as they
 * happen.
 *
 * --follow prints the kept events, then server-sent events (WHATWG HTML, 9.2).  When the connection
 * is lost it reconnects with the number of the last event, and misses none that the server keeps.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "server/cli/ask-server.h"
#include "server/base/complain.h"

#define AGAIN_MS  1000 /* between two tries to connect */
#define LINE_MOST ((size_t)1 << 20)

struct options {
    struct weir__ask_server_options remote;
    bool follow;
    int64_t last, after, count;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("follow", 'f', follow, "go on with new events until Ctrl-C"),
    WEIR__COUNT("last", 'n', last, 0, "only the last N kept events; default all, with --follow 10"),
    WEIR__VALUE("after", 0, COUNT, after, "ID", "only events after this number"),
    WEIR__COUNT("count", 'c', count, 1, "end after N events"),
    { 0 },
};

struct following {
    struct weir__ask_server *remote;
    const struct options *o;
    struct weir__buffer line, data; /* the unfinished line and event of the stream */
    int64_t left;                   /* events still to print; < 0: no end */
    int64_t seen;                   /* the number of the last one */
    bool over;                      /* enough were printed, or stdout is closed */
};

/* --------------------------------------------------------------- printing ---- */

/* The members that matter come first, in this order. */
static const char *const first[] = { "time", "event", "id",        "rule", "key",
                                     "mode", "list",  "attribute", "until" };

#define SHOWN_FIRST (sizeof(first) / sizeof(first[0]))

static void print_words(const struct weir__document *d)
{
    weir__show(d, "",
               "{time:24} {event:14}[  rule {rule}][  key {key}][  mode {mode}]"
               "[  list {list}][  attribute {attribute}][  until {until}]");
    for (size_t i = 0; i < d->n; i++) {
        const struct weir__scalar *s = &d->scalars[i];
        bool shown = s->kind == WEIR__JSON_NULL;
        for (size_t k = 0; k < SHOWN_FIRST; k++)
            shown = shown || strcmp(s->path, first[k]) == 0;
        if (shown)
            continue;
        printf("  ");
        weir__print_safely(stdout, s->path);
        putchar(' ');
        weir__print_safely(stdout, s->text);
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

static bool next_element(const char **at, const char *end, struct weir__text *out)
{
    while (*at < end && strchr("[, \r\n\t", **at))
        ++*at;
    if (*at == end || **at == ']')
        return false;
    *out = weir__json_element(at, end);
    return true;
}

static bool print_kept(struct following *f)
{
    struct weir__ask_server *r = f->remote;
    char request[64];
    struct weir__text event;
    int64_t n = 0, skip;

    snprintf(request, sizeof(request), "GET /v1/events/recent?after=%lld", (long long)f->o->after);
    if (!weir__ask_server_for(r, request, NULL))
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

/* False after a complaint. */
static bool listen_once(struct following *f, bool *told)
{
    struct weir__ask_server *r = f->remote;
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
        weir__ask_server_complain(r);
        return false;
    }
    if (!f->over && !*told)
        weir__complain(r->call->self->name, "%s; trying again",
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

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;
    struct following f = { .remote = r, .o = o, .left = o->count };
    int code = print_kept(&f) ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;

    if (code == WEIR__EXIT_OK && o->follow && !f.over)
        code = follow(&f);
    weir__buffer_free(&f.line);
    weir__buffer_free(&f.data);
    return code;
}

const struct weir__command weir__cmd_events = {
    .name = "events",
    .summary = "show a server's events, or follow them",
    .arguments = "[--follow] [options]",
    .help = "Limiting that begins and ends, bans, switches, reloads: the events that the server "
            "keeps, oldest first. With --follow also new ones; a lost connection is made again, "
            "and no kept event is missed. With --json, one object a line.\n"
            "\n"
            "  weir events --follow --json\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .last = -1, .count = -1),
    .ask = ask,
};
