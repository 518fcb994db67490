/* redis-world.h -- a client of Redis with the test as its network: what it sends is read as text,
 * and what Redis answers is said by the test.  Time moves when the test says so. */
#ifndef WEIR_TESTS_UNIT_REDIS_WORLD_H
#define WEIR_TESTS_UNIT_REDIS_WORLD_H

#include "unit/test.h"

#include "cluster/redis/client.h"

#define MS          WEIR_MILLISECOND
#define HELLO       "HELLO 3 SETNAME weir"
#define WELCOME     "%3\r\n+version\r\n+7.0.15\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n"
#define NO_CLUSTER  "-ERR This instance has cluster support disabled\r\n"
#define SLOTS       "CLUSTER SLOTS"
#define WORLD_ASKS  256
#define IS_ANSWERED 0
#define IS_UNDONE   1
#define IS_UNKNOWN  2
#define IS_WAITING  3

struct world {
    struct weir__redis_client *client;
    weir_time now;
    struct weir__redis_ask asks[WORLD_ASKS];
    int outcome[WORLD_ASKS];    /* IS_... */
    char said[WORLD_ASKS][128]; /* the reply's first line, or why there is none */
    weir_time answered[WORLD_ASKS];
    int n;
    weir_time timeout; /* of asks */
};

static inline struct world *world_of(const char *url)
{
    struct world *w = calloc(1, sizeof(*w));
    struct weir__redis_options options = { .jitter = 7 };
    struct weir_error error;

    assert_non_null(w);
    w->now = 1000 * WEIR_SECOND;
    w->timeout = WEIR_SECOND;
    assert_ok(weir__redis_url_parse(&options.url, url, &error));
    assert_ok(weir__redis_client_create(&w->client, &options, &error));
    return w;
}

static inline void world_destroy(struct world *w)
{
    weir__redis_client_destroy(w->client);
    for (int i = 0; i < w->n; i++)
        weir__redis_ask_free(&w->asks[i]);
    free(w);
}
OWNS(world)

static inline void note_answer(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct world *w = ask->context;
    long i = ask - w->asks;
    size_t len = answer->reply.len;

    assert_int_equal(w->outcome[i], IS_WAITING); /* once */
    w->outcome[i] = (int)answer->outcome;
    w->answered[i] = w->now;
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        snprintf(w->said[i], sizeof(w->said[i]), "%.*s",
                 (int)((const char *)memchr(answer->reply.bytes, '\r', len) - answer->reply.bytes),
                 answer->reply.bytes);
    else
        snprintf(w->said[i], sizeof(w->said[i]), "%s", answer->why);
}

/* A new ask of these words, not asked yet.  The second word is the key. */
static inline struct weir__redis_ask *new_ask(struct world *w, const char *text)
{
    char copy[256], *save = NULL;
    const char *words[16] = { NULL };
    int n = 0, i = w->n++;
    struct weir__redis_ask *ask = &w->asks[i];

    assert_true(w->n <= WORLD_ASKS);
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        words[n++] = word;
    assert_true(weir__redis_ask_texts(ask, words));
    ask->slot = n > 1 ? weir__redis_slot(words[1], strlen(words[1])) : WEIR__REDIS_ANY_SLOT;
    ask->deadline = w->now + w->timeout;
    ask->done = note_answer;
    ask->context = w;
    w->outcome[i] = IS_WAITING;
    return ask;
}

/* Returns its number. */
static inline int ask(struct world *w, const char *text)
{
    weir__redis_client_ask(w->client, new_ask(w, text), w->now);
    weir__redis_client_turn(w->client, w->now);
    return w->n - 1;
}

/* The i-th live connection to "h:1"; NULL: there is none. */
static inline struct weir__redis_conn *find_conn(struct world *w, const char *place, int nth)
{
    struct weir__redis_conn *conn;

    for (size_t i = 0; (conn = weir__redis_client_conn(w->client, i)) != NULL; i++) {
        if (conn->phase != WEIR__REDIS_CLOSED &&
            strcmp(weir__redis_place(weir__redis_conn_address(conn)).text, place) == 0 &&
            nth-- == 0)
            return conn;
    }
    return NULL;
}

static inline struct weir__redis_conn *conn_to(struct world *w, const char *place)
{
    struct weir__redis_conn *conn = find_conn(w, place, 0);

    if (!conn)
        fail_msg("there is no connection to %s", place);
    return conn;
}

/* The commands in these bytes, with ';' between. */
static inline const char *commands_in(const char *bytes, size_t len)
{
    static const struct weir__resp_limits limits = { 16, 65536 };
    static char text[16384];
    char *at = text;

    *at = '\0';
    while (len > 0) {
        struct weir__text words[16];
        size_t n;
        const char *what;
        ptrdiff_t took = weir__resp_command(bytes, len, &limits, words, &n, &what);
        assert_true(took > 0);
        at += sprintf(at, "%s", at > text ? "; " : "");
        for (size_t i = 0; i < n; i++)
            at += sprintf(at, "%s%.*s", i ? " " : "", (int)words[i].len, words[i].bytes);
        bytes += took;
        len -= (size_t)took;
    }
    return text;
}

/* What the connection has to send, which is taken as sent. */
static inline const char *take(struct world *w, struct weir__redis_conn *conn)
{
    const char *text = commands_in(conn->out.bytes, conn->out.len);

    weir__redis_client_wrote(w->client, conn, conn->out.len);
    return text;
}

static inline void sends(struct world *w, const char *place, const char *wanted)
{
    assert_string_equal(take(w, conn_to(w, place)), wanted);
}

static inline void tell(struct world *w, const char *place, const char *bytes)
{
    weir__redis_client_input(w->client, conn_to(w, place), bytes, strlen(bytes), w->now);
    weir__redis_client_turn(w->client, w->now);
}

static inline void lose(struct world *w, const char *place, const char *why)
{
    weir__redis_client_lost(w->client, conn_to(w, place), why, w->now);
    weir__redis_client_turn(w->client, w->now);
}

/* The opening connection becomes ready. */
static inline void greet(struct world *w, const char *place, const char *welcome)
{
    struct weir__redis_conn *conn = NULL;

    for (int i = 0; (conn = find_conn(w, place, i)) && conn->phase != WEIR__REDIS_OPENING; i++)
        ;
    if (!conn)
        fail_msg("no connection to %s is opening", place);
    weir__redis_client_opened(w->client, conn, w->now);
    assert_string_equal(take(w, conn), HELLO);
    weir__redis_client_input(w->client, conn, welcome, strlen(welcome), w->now);
    weir__redis_client_turn(w->client, w->now);
    assert_int_equal(conn->phase, WEIR__REDIS_READY);
}

/* Time passes, and everything due on the way is done when it is due. */
static inline void pass(struct world *w, weir_time span)
{
    weir_time end = w->now + span;

    for (int turns = 0;; turns++) {
        weir_time due = weir__redis_client_turn(w->client, w->now);
        assert_true(due > w->now);
        assert_true(turns < 10000);
        if (due > end)
            break;
        w->now = due;
    }
    w->now = end;
    weir__redis_client_turn(w->client, w->now);
}

static inline void is(struct world *w, int i, int outcome, const char *said)
{
    assert_int_equal(w->outcome[i], outcome);
    if (!strstr(w->said[i], said))
        assert_string_equal(w->said[i], said); /* which shows both */
}

/* A Redis alone, found. */
static inline struct world *single_world(void)
{
    struct world *w = world_of("redis://h:1");

    ask(w, "FIRST");
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", SLOTS);
    tell(w, "h:1", NO_CLUSTER);
    sends(w, "h:1", "FIRST");
    tell(w, "h:1", "+OK\r\n");
    is(w, 0, IS_ANSWERED, "+OK");
    return w;
}

/* "a:1 0 8191 b:1 8192 16383" as CLUSTER SLOTS answers. */
static inline const char *slots_reply(const char *text)
{
    static char reply[1100];
    char ranges[1024], host[64], *at = ranges;
    int from, to, port, took, n = 0;

    for (; sscanf(text, " %63[^:]:%d %d %d%n", host, &port, &from, &to, &took) == 4; text += took) {
        at += sprintf(at, "*3\r\n:%d\r\n:%d\r\n*3\r\n$%zu\r\n%s\r\n:%d\r\n$2\r\nid\r\n", from, to,
                      strlen(host), host, port);
        n++;
    }
    snprintf(reply, sizeof(reply), "*%d\r\n%s", n, ranges);
    return reply;
}

#define TWO_MASTERS "a:1 0 8191 b:1 8192 16383"

/* A cluster of two, found from the seed a:1.  "foo" is b's, "bar" is a's. */
static inline struct world *cluster_world(void)
{
    struct world *w = world_of("redis://a:1");

    ask(w, "GET bar");
    greet(w, "a:1", WELCOME);
    sends(w, "a:1", SLOTS);
    tell(w, "a:1", slots_reply(TWO_MASTERS));
    sends(w, "a:1", "GET bar");
    tell(w, "a:1", "+1\r\n");
    is(w, 0, IS_ANSWERED, "+1");
    return w;
}

#endif
