/* resp-pubsub.c -- events for subscribers: weir.events has all of them, weir.events.KIND those of a
 * kind, patterns any of these. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve/resp/resp.h"

#define CHANNEL "weir.events"

static bool is_pattern_word(const struct weir__resp_call *call)
{
    return call->args[0].bytes[0] == 'P' || call->args[0].bytes[0] == 'p';
}

static size_t find(const struct weir__resp_session *s, struct weir__text name, bool pattern)
{
    for (size_t i = 0; i < s->n_channels; i++)
        if (s->channels[i].pattern == pattern && strlen(s->channels[i].text) == name.len &&
            memcmp(s->channels[i].text, name.bytes, name.len) == 0)
            return i;
    return s->n_channels;
}

static void confirm(struct weir__conn *conn, const char *what, const char *name, size_t len)
{
    const struct weir__resp_session *s = conn->session;

    weir__reply_push(conn, 3);
    weir__reply_text(conn, what);
    if (name)
        weir__reply_bulk(conn, name, len);
    else
        weir__reply_text(conn, NULL);
    weir__reply_integer(conn, s ? (int64_t)s->n_channels : 0);
}

/* NULL, or why not. */
static const char *add(struct weir__conn *conn, struct weir__resp_session *s,
                       struct weir__text name, bool pattern)
{
    if (find(s, name, pattern) < s->n_channels)
        return NULL;
    if (s->n_channels == WEIR__CHANNELS_MAX)
        return "too many channels: at most " WEIR__DIGITS(WEIR__CHANNELS_MAX);
    if (name.len > 128 || memchr(name.bytes, 0, name.len))
        return "a channel's name has at most 128 bytes, and no NUL";
    char *text = strndup(name.bytes, name.len);
    if (!text)
        return "no memory";
    s->channels[s->n_channels++] = (struct weir__channel){ text, pattern };
    if (!conn->subscribed)
        conn->heard = weir__events_latest(conn->loop->server->events);
    conn->subscribed = true;
    return NULL;
}

void weir__resp_subscribe(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__resp_session *s = weir__resp_session(conn);
    bool pattern = is_pattern_word(call);

    for (size_t i = 1; s && i < call->n; i++) {
        const char *wrong = add(conn, s, call->args[i], pattern);
        if (wrong)
            weir__reply_error(conn, "ERR %s", wrong);
        else
            confirm(conn, pattern ? "psubscribe" : "subscribe", call->args[i].bytes,
                    call->args[i].len);
    }
}

static void drop(struct weir__conn *conn, struct weir__resp_session *s, size_t i)
{
    free(s->channels[i].text);
    s->channels[i] = s->channels[--s->n_channels];
    conn->subscribed = s->n_channels > 0;
}

/* Without names: all of that sort. */
static void drop_all(struct weir__conn *conn, struct weir__resp_session *s, bool pattern,
                     const char *what)
{
    bool any = false;

    for (size_t i = s ? s->n_channels : 0; i-- > 0;) {
        if (s->channels[i].pattern != pattern)
            continue;
        char *text = strdup(s->channels[i].text);
        drop(conn, s, i);
        confirm(conn, what, text, text ? strlen(text) : 0);
        free(text);
        any = true;
    }
    if (!any)
        confirm(conn, what, NULL, 0);
}

void weir__resp_unsubscribe(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__resp_session *s = conn->session;
    bool pattern = is_pattern_word(call);
    const char *what = pattern ? "punsubscribe" : "unsubscribe";

    if (call->n == 1)
        drop_all(conn, s, pattern, what);
    for (size_t i = 1; i < call->n; i++) {
        size_t at = s ? find(s, call->args[i], pattern) : 0;
        if (s && at < s->n_channels)
            drop(conn, s, at);
        confirm(conn, what, call->args[i].bytes, call->args[i].len);
    }
}

/* One event to one connection, once for each of its channels that has it, as Redis does. */
static void publish(struct weir__conn *conn, enum weir__event_kind kind,
                    const struct weir__buffer *json)
{
    const struct weir__resp_session *s = conn->session;
    char name[96];

    snprintf(name, sizeof(name), CHANNEL ".%s", weir__event_name(kind));
    for (size_t i = 0; i < s->n_channels; i++) {
        const struct weir__channel *c = &s->channels[i];
        bool all = !c->pattern && strcmp(c->text, CHANNEL) == 0;
        if (c->pattern ? fnmatch(c->text, name, 0) != 0 : !all && strcmp(c->text, name) != 0)
            continue;
        weir__reply_push(conn, c->pattern ? 4 : 3);
        weir__reply_text(conn, c->pattern ? "pmessage" : "message");
        if (c->pattern)
            weir__reply_text(conn, c->text);
        weir__reply_text(conn, all ? CHANNEL : name);
        weir__reply_bulk(conn, json->bytes, json->len);
    }
}

void weir__resp_wake(struct weir__conn *conn)
{
    struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    uint64_t lost;

    const struct weir__resp_session *s = conn->session;

    if (s && s->executing) /* not into EXEC's list */
        return;
    while (conn->subscribed && conn->role == WEIR__ROLE_ADMIN && !conn->closed &&
           weir__events_next(conn->loop->server->events, &conn->heard, &kind, &json, &lost)) {
        if (!json.failed)
            publish(conn, kind, &json);
        json.len = 0;
        weir__conn_send_out(conn);
    }
    weir__buffer_free(&json);
}
