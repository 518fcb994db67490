/* conn.c -- one connection to a Redis server, without its socket.
 *
 * The greeting is HELLO, which logs in and changes to RESP3.  A server without it (before 6.0, some
 * proxies), or a user that may not call it, is spoken to in RESP2 and logged in by AUTH.  Each step
 * waits for the reply to the one before: commands of asks must not overtake them.
 */
#include "cluster/redis/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { HELLO, AUTH, SELECT, GREETED };
enum { NOTES_LEAST = 16 };

/* ----------------------------------------------------------------- notes ---- */

static struct weir__redis_note *note_of(struct weir__redis_conn *c, uint64_t number)
{
    return &c->notes[number & (c->notes_room - 1)];
}

static bool grow_notes(struct weir__redis_conn *c)
{
    size_t room = c->notes_room ? 2 * c->notes_room : NOTES_LEAST;
    struct weir__redis_note *notes = calloc(room, sizeof(*notes));

    if (!notes)
        return false;
    for (uint64_t i = c->first_note; i < c->next_note; i++)
        notes[i & (room - 1)] = *note_of(c, i);
    free(c->notes);
    c->notes = notes;
    c->notes_room = room;
    return true;
}

static bool has_room(struct weir__redis_conn *c, size_t n)
{
    while (c->notes_room - weir__redis_conn_due_replies(c) < n) {
        if (!grow_notes(c))
            return false;
    }
    return true;
}

/* Notes that the command just put into `out`, from `before` on, has a reply. */
static void add_note(struct weir__redis_conn *c, struct weir__redis_ask *ask, size_t before,
                     weir_time now)
{
    if (c->first_note == c->next_note)
        c->heard = now;
    c->put += c->out.len - before;
    *note_of(c, c->next_note++) = (struct weir__redis_note){ .ask = ask, .end = c->put };
}

/* A command of the connection's own. */
static void put_command(struct weir__redis_conn *c, const char *const *words, weir_time now)
{
    struct weir__redis_ask command = { .slot = WEIR__REDIS_ANY_SLOT };
    size_t before = c->out.len;

    if (!has_room(c, 1) || !weir__redis_ask_texts(&command, words)) {
        c->out.failed = true;
    } else {
        weir__redis_ask_put(&command, &c->out);
        add_note(c, NULL, before, now);
    }
    weir__redis_ask_free(&command);
}

/* -------------------------------------------------------------- greeting ---- */

static void put_step(struct weir__redis_conn *c, weir_time now)
{
    const struct weir__redis_conn_options *o = c->options;
    const char *user = o->login.user[0] ? o->login.user : "default";
    char db[WEIR__NUMBER_MAX + 1];

    if (c->greeting == HELLO && o->login.password[0])
        put_command(c,
                    (const char *[]){ "HELLO", "3", "AUTH", user, o->login.password, "SETNAME",
                                      "weir", NULL },
                    now);
    else if (c->greeting == HELLO)
        put_command(c, (const char *[]){ "HELLO", "3", "SETNAME", "weir", NULL }, now);
    else if (c->greeting == AUTH && o->login.user[0])
        put_command(c, (const char *[]){ "AUTH", user, o->login.password, NULL }, now);
    else if (c->greeting == AUTH)
        put_command(c, (const char *[]){ "AUTH", o->login.password, NULL }, now);
    *weir__put_number(db, o->db) = '\0';
    if (c->greeting == SELECT)
        put_command(c, (const char *[]){ "SELECT", db, NULL }, now);
}

static bool is_needed(const struct weir__redis_conn *c, int step)
{
    return step == HELLO    ? c->options->protocol != 2
           : step == AUTH   ? c->options->login.password[0] && c->facts.protocol != 3
           : step == SELECT ? c->options->db > 0
                            : true;
}

/* Goes on to the next step that is needed, from `step` on. */
static void greet(struct weir__redis_conn *c, int step, weir_time now)
{
    while (!is_needed(c, step))
        step++;
    c->greeting = step;
    if (step == GREETED)
        c->phase = WEIR__REDIS_READY;
    else
        put_step(c, now);
}

static void copy_text(char *to, size_t size, const struct weir__resp_value *v)
{
    size_t len = v->text.len < size - 1 ? v->text.len : size - 1;

    if (v->kind != '$' && v->kind != '+')
        return;
    memcpy(to, v->text.bytes, len);
    to[len] = '\0';
}

static bool is_text(const struct weir__resp_value *v, const char *word)
{
    return (v->kind == '$' || v->kind == '+') && weir__resp_is(v->text, word);
}

static void learn(struct weir__redis_facts *facts, struct weir__text reply)
{
    struct weir__resp_value head, name, value;
    const char *at = weir__resp_value(reply.bytes, &head);

    *facts = (struct weir__redis_facts){ .protocol = head.kind == '%' ? 3 : 2 };
    for (size_t i = 0; i + 1 < head.n; i += 2) {
        const char *of_value = weir__resp_value(at, &name);
        if (name.n > 0)
            of_value = weir__resp_skip(at);
        at = weir__resp_skip(of_value);
        weir__resp_value(of_value, &value);
        if (is_text(&name, "version"))
            copy_text(facts->version, sizeof(facts->version), &value);
        else if (is_text(&name, "mode"))
            copy_text(facts->mode, sizeof(facts->mode), &value);
        else if (is_text(&name, "role"))
            facts->replica = is_text(&value, "replica") || is_text(&value, "slave");
    }
}

static bool broken(struct weir__redis_conn *c, const char *why)
{
    snprintf(c->why, sizeof(c->why), "%s", why);
    return false;
}

static bool refuse(struct weir__redis_conn *c, const struct weir__resp_value *error)
{
    c->refused = true;
    snprintf(c->why, sizeof(c->why), "it refused the login: %.*s",
             (int)(error->text.len < 120 ? error->text.len : 120), error->text.bytes);
    return false;
}

/* SELECT has to wait for a slow script. */
static bool is_passing(const struct weir__resp_value *error)
{
    return weir__resp_is_error(error, "BUSY") || weir__resp_is_error(error, "LOADING");
}

/* The reply to a step.  An error to HELLO may only mean that the server is old. */
static bool greeted(struct weir__redis_conn *c, struct weir__text reply, weir_time now)
{
    struct weir__resp_value head;

    weir__resp_value(reply.bytes, &head);
    if (weir__resp_is_error(&head, WEIR__REDIS_FULL))
        return broken(c, "it has as many clients as it may have");
    if (weir__resp_is_error(&head, "NOAUTH") && !c->options->login.password[0]) {
        c->refused = true;
        return broken(c, "it wants a password (NOAUTH), and the URL has none for it");
    }
    if (c->greeting != HELLO && is_passing(&head)) {
        snprintf(c->why, sizeof(c->why), "%.*s", (int)(head.text.len < 150 ? head.text.len : 150),
                 head.text.bytes);
        return false;
    }
    if (head.kind == '-' && (c->greeting != HELLO || weir__resp_is_error(&head, "WRONGPASS") ||
                             weir__resp_is_error(&head, "DENIED")))
        return refuse(c, &head);
    if (c->greeting == HELLO && head.kind != '-')
        learn(&c->facts, reply);
    greet(c, c->greeting + 1, now);
    return true;
}

/* ------------------------------------------------------------ life cycle ---- */

void weir__redis_conn_begin(struct weir__redis_conn *c, weir_time now)
{
    c->phase = WEIR__REDIS_OPENING;
    c->life++;
    c->shaking = c->refused = c->served = c->leaving = false;
    c->facts = (struct weir__redis_facts){ 0 };
    c->in.len = c->out.len = 0;
    c->in.failed = c->out.failed = false;
    c->scan = (struct weir__resp_scan){ 0 };
    c->put = c->written = 0;
    c->begun = c->heard = now;
}

void weir__redis_conn_opened(struct weir__redis_conn *c, weir_time now)
{
    c->phase = WEIR__REDIS_GREETING;
    greet(c, HELLO, now);
}

void weir__redis_conn_wrote(struct weir__redis_conn *c, size_t n)
{
    weir__buffer_drop(&c->out, n);
    c->written += n;
}

void weir__redis_conn_lost(struct weir__redis_conn *c, const char *why,
                           const struct weir__redis_listener *listener, weir_time now)
{
    if (why)
        snprintf(c->why, sizeof(c->why), "%s", why);
    c->phase = WEIR__REDIS_CLOSED;
    c->out.len = 0;
    while (c->first_note < c->next_note) {
        struct weir__redis_note note = *note_of(c, c->first_note++);
        if (note.ask)
            listener->orphaned(listener->context, c, note.ask, note.end <= c->written, now);
    }
}

void weir__redis_conn_free(struct weir__redis_conn *c)
{
    weir__buffer_free(&c->in);
    weir__buffer_free(&c->out);
    free(c->notes);
    c->notes = NULL;
    c->notes_room = 0;
}

/* ----------------------------------------------------------------- input ---- */

static bool take_reply(struct weir__redis_conn *c, struct weir__text reply,
                       const struct weir__redis_listener *listener, weir_time now)
{
    struct weir__resp_value head;

    weir__resp_value(reply.bytes, &head);
    if (head.kind == '>') /* told without being asked */
        return true;
    if (c->first_note == c->next_note)
        return broken(c, "it sent a reply to no command");
    struct weir__redis_ask *ask = note_of(c, c->first_note++)->ask;
    if (c->phase == WEIR__REDIS_GREETING) {
        bool welcome = greeted(c, reply, now);
        if (c->phase == WEIR__REDIS_READY)
            listener->ready(listener->context, c, now);
        return welcome;
    }
    c->served = true;
    if (ask)
        listener->replied(listener->context, c, ask, reply, now);
    return true;
}

/* `done` may ask again, and even lead to the loss of this connection: then the rest of the input
 * belongs to nobody. */
bool weir__redis_conn_input(struct weir__redis_conn *c, const char *bytes, size_t len,
                            const struct weir__redis_listener *listener, weir_time now)
{
    const char *what = NULL;
    uint32_t life = c->life;
    size_t at = 0;
    ptrdiff_t took = 0;

    if (c->phase == WEIR__REDIS_CLOSED || c->phase == WEIR__REDIS_OPENING)
        return true;
    weir__buffer_add(&c->in, bytes, len);
    if (c->in.failed)
        return broken(c, "there was no memory for its reply");
    c->heard = now;
    while (at < c->in.len && (took = weir__resp_scan(&c->scan, c->in.bytes + at, c->in.len - at,
                                                     c->options->reply_max, &what)) > 0) {
        struct weir__text reply = { c->in.bytes + at, (size_t)took };
        at += (size_t)took;
        if (!take_reply(c, reply, listener, now))
            return false;
        if (c->life != life || c->phase == WEIR__REDIS_CLOSED)
            return true;
    }
    weir__buffer_drop(&c->in, at);
    return took >= 0 ? true : broken(c, what);
}

/* ---------------------------------------------------------------- output ---- */

bool weir__redis_conn_send(struct weir__redis_conn *c, struct weir__redis_ask *ask, weir_time now)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    size_t needed = ask->own.asking ? 2 : 1, before = c->out.len;

    if (c->phase != WEIR__REDIS_READY ||
        weir__redis_conn_due_replies(c) + needed > c->options->pipeline_max || !has_room(c, needed))
        return false;
    if (ask->own.asking) {
        weir__buffer_add(&c->out, asking, sizeof(asking) - 1);
        add_note(c, NULL, before, now);
        before = c->out.len;
    }
    weir__redis_ask_put(ask, &c->out);
    ask->own.conn = c;
    ask->own.number = c->next_note;
    add_note(c, ask, before, now);
    return true;
}

void weir__redis_conn_forget(struct weir__redis_conn *c, struct weir__redis_ask *ask)
{
    note_of(c, ask->own.number)->ask = NULL;
}

/* ------------------------------------------------------------------ time ---- */

weir_time weir__redis_conn_due(const struct weir__redis_conn *c)
{
    const struct weir__redis_conn_options *o = c->options;

    if (c->phase == WEIR__REDIS_CLOSED)
        return WEIR_NEVER;
    if (c->phase != WEIR__REDIS_READY)
        return c->begun + o->greet_max;
    return c->heard + (c->first_note < c->next_note ? o->stall_max : o->ping_every);
}

bool weir__redis_conn_tick(struct weir__redis_conn *c, weir_time now)
{
    if (c->out.failed)
        return broken(c, "there was no memory for a command");
    if (now < weir__redis_conn_due(c))
        return true;
    if (c->phase == WEIR__REDIS_OPENING)
        return broken(c, c->shaking ? "it did not answer the TLS handshake in time"
                                    : "it cannot be reached in time");
    if (c->phase == WEIR__REDIS_GREETING)
        return broken(c, "it did not answer the greeting in time");
    if (c->first_note < c->next_note)
        return broken(c, "it has stopped answering");
    put_command(c, (const char *[]){ "PING", NULL }, now);
    return true;
}
