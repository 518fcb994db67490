/* redis-model.h -- a plain model of a Redis Cluster, of Sentinels and of a network that loses and
 * cuts, with the client of cluster/redis in front of it.  The dice decide everything, so a run can
 * be had again from its seed, or be a fuzzer's input.
 *
 * Laws:
 *   once        each ask is answered once, and not after its deadline
 *   answered    Redis has carried it out; exactly once unless it is repeatable; and the answer is
 *               that ask's own
 *   undone      Redis has not carried it out, and never does
 *   unknown     at most once, unless it is repeatable
 *   liveness    when the faults end, asks are answered again
 */
#ifndef WEIR_TESTS_REDIS_MODEL_H
#define WEIR_TESTS_REDIS_MODEL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/client.h"

enum {
    MODEL_NODES = 4, /* h:1 to h:4; Sentinels are h:5 and h:6 */
    MODEL_SERVERS = 6,
    MODEL_KEYS = 6,
    MODEL_CONNS = 32,
    MODEL_ASKS = 400,
};

#define MODEL_SCRIPT "return ARGV[1]"

struct model_socket {
    struct weir__redis_conn *conn; /* NULL: free */
    uint32_t life;
    int server;
    bool accepted, asking;
    struct weir__buffer to_server, to_client;
};

struct model_ask {
    struct weir__redis_ask ask;
    struct weir__redis_ask module; /* its other form: MODULE-DO key id */
    int done, executed;
    enum weir__redis_outcome outcome;
    struct model *model;
};

struct model {
    uint64_t (*dice)(void *context, uint64_t n); /* below n */
    void *context;
    struct weir__redis_client *client;
    struct weir__redis_script script;
    enum { MODEL_CLUSTER, MODEL_ALONE, MODEL_SENTINEL } kind;
    weir_time now;
    bool faults;
    bool up[MODEL_SERVERS], stopped[MODEL_SERVERS], old[MODEL_SERVERS], knows[MODEL_SERVERS];
    bool module[MODEL_SERVERS]; /* has Weir's, for now */
    int owner[MODEL_KEYS];      /* of a cluster */
    int target[MODEL_KEYS];     /* where it migrates to; -1: it does not */
    bool moved[MODEL_KEYS];     /* the key is there already */
    int master;                 /* not of a cluster */
    struct model_socket sockets[MODEL_CONNS];
    struct model_ask asks[MODEL_ASKS];
    int n;
};

#define law(holds)                                                                  \
    do {                                                                            \
        if (!(holds)) {                                                             \
            fprintf(stderr, "%s:%d: broken law: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                                \
        }                                                                           \
    } while (0)

static inline bool chance(struct model *m, uint64_t one_in)
{
    return m->dice(m->context, one_in) == 0;
}

static inline int model_pick(struct model *m, int n)
{
    return (int)m->dice(m->context, (uint64_t)n);
}

/* ---------------------------------------------------------------- servers ---- */

static inline bool word_is(struct weir__text word, const char *text)
{
    return weir__resp_is(word, text);
}

static inline void say_slots(struct model *m, struct weir__buffer *to)
{
    weir__buffer_format(to, "*%d\r\n", MODEL_KEYS);
    for (int key = 0; key < MODEL_KEYS; key++) {
        char name[] = { 'k', (char)('0' + key) };
        int slot = weir__redis_slot(name, 2);
        weir__buffer_format(to,
                            "*4\r\n:%d\r\n:%d\r\n*3\r\n$1\r\nh\r\n:%d\r\n$1\r\nx\r\n"
                            "*3\r\n$1\r\nh\r\n:%d\r\n$1\r\nx\r\n",
                            slot, slot, m->owner[key] + 1, MODEL_NODES);
    }
}

/* Whether this server carries out a command on the key, or has said why not. */
static inline bool may_run(struct model *m, struct model_socket *s, int key, bool asking)
{
    struct weir__buffer *to = &s->to_client;
    char name[] = { 'k', (char)('0' + key) };
    int slot = weir__redis_slot(name, 2);

    if (m->faults && chance(m, 12)) {
        static const char *const errors[] = { "LOADING x", "BUSY x", "TRYAGAIN x", "CLUSTERDOWN x",
                                              "MASTERDOWN x" };
        weir__buffer_format(to, "-%s\r\n", errors[model_pick(m, 5)]);
        return false;
    }
    if (m->kind != MODEL_CLUSTER) {
        if (s->server != m->master)
            weir__buffer_text(to, "-READONLY x\r\n");
        return s->server == m->master;
    }
    if (asking && m->target[key] == s->server) {
        if (!m->moved[key] && chance(m, 4))
            weir__buffer_text(to, "-TRYAGAIN x\r\n");
        else
            return true;
        return false;
    }
    if (m->owner[key] != s->server)
        weir__buffer_format(to, "-MOVED %d h:%d\r\n", slot, m->owner[key] + 1);
    else if (m->target[key] >= 0 && m->moved[key])
        weir__buffer_format(to, "-ASK %d h:%d\r\n", slot, m->target[key] + 1);
    else
        return true;
    return false;
}

static inline void carry_out(struct model *m, struct model_socket *s, struct weir__text id)
{
    int64_t n = 0;

    law(weir__count_parse(id.bytes, id.len, &n) && n < m->n);
    m->asks[n].executed++;
    weir__buffer_format(&s->to_client, ":%d\r\n", (int)n);
}

/* DO key id, the module's form of it, or the script with 1 key id. */
static inline void do_command(struct model *m, struct model_socket *s,
                              const struct weir__text *words, size_t n)
{
    bool asking = s->asking, script = word_is(words[0], "EVALSHA"),
         whole = word_is(words[0], "EVAL");
    size_t key = script || whole ? 3 : 1;

    s->asking = false;
    law(n == key + 2 && words[key].len == 2);
    if (word_is(words[0], "MODULE-DO") && !m->module[s->server]) {
        weir__buffer_text(&s->to_client, "-ERR unknown command 'MODULE-DO'\r\n");
        return;
    }
    if (!may_run(m, s, words[key].bytes[1] - '0', asking))
        return;
    if (whole)
        m->knows[s->server] = true;
    if (script && !m->knows[s->server])
        weir__buffer_text(&s->to_client, "-NOSCRIPT x\r\n");
    else
        carry_out(m, s, words[key + 1]);
}

static inline void answer(struct model *m, struct model_socket *s, const struct weir__text *words,
                          size_t n)
{
    struct weir__buffer *to = &s->to_client;

    if (word_is(words[0], "HELLO") && m->old[s->server])
        weir__buffer_text(to, "-ERR unknown command\r\n");
    else if (word_is(words[0], "HELLO"))
        weir__buffer_format(to, "%%2\r\n+mode\r\n+%s\r\n+role\r\n+%s\r\n",
                            m->kind == MODEL_CLUSTER ? "cluster" : "standalone",
                            m->kind == MODEL_CLUSTER || s->server == m->master ? "master"
                                                                               : "replica");
    else if (word_is(words[0], "PING"))
        weir__buffer_text(to, "+PONG\r\n");
    else if (word_is(words[0], "COMMAND"))
        weir__buffer_text(to, m->module[s->server] ? "*1\r\n*1\r\n$9\r\nweir.take\r\n"
                                                   : "*1\r\n*-1\r\n");
    else if (word_is(words[0], "CLUSTER") && m->kind == MODEL_CLUSTER)
        say_slots(m, to);
    else if (word_is(words[0], "CLUSTER"))
        weir__buffer_text(to, "-ERR This instance has cluster support disabled\r\n");
    else if (word_is(words[0], "ROLE"))
        weir__buffer_text(to, s->server == m->master ? "*1\r\n$6\r\nmaster\r\n"
                                                     : "*1\r\n$5\r\nslave\r\n");
    else if (word_is(words[0], "SENTINEL"))
        weir__buffer_format(to, "*2\r\n$1\r\nh\r\n$1\r\n%d\r\n", m->master + 1);
    else if (word_is(words[0], "ASKING")) {
        s->asking = true;
        weir__buffer_text(to, "+OK\r\n");
    } else
        do_command(m, s, words, n);
}

/* The server reads a part of what has come. */
static inline void serve_socket(struct model *m, struct model_socket *s, size_t most)
{
    static const struct weir__resp_limits limits = { 16, 65536 };
    struct weir__text words[16];
    const char *what;
    size_t n, used = 0;
    ptrdiff_t took;

    if (!m->up[s->server] || m->stopped[s->server] || s->to_server.len == 0)
        return;
    most = most < s->to_server.len ? most : s->to_server.len;
    while (used < most && (took = weir__resp_command(s->to_server.bytes + used, most - used,
                                                     &limits, words, &n, &what)) > 0) {
        used += (size_t)took;
        answer(m, s, words, n);
    }
    law(used == most || took >= 0);
    weir__buffer_drop(&s->to_server, used);
}

/* ---------------------------------------------------------------- network ---- */

static inline void drop_socket(struct model_socket *s)
{
    weir__buffer_free(&s->to_server);
    weir__buffer_free(&s->to_client);
    *s = (struct model_socket){ .conn = NULL };
}

/* Closed at the client's side: the server may yet read what was on its way. */
static inline void hang_up(struct model *m, struct model_socket *s)
{
    if (s->accepted && s->to_server.len > 0 && !m->stopped[s->server])
        serve_socket(m, s, (size_t)model_pick(m, (int)s->to_server.len + 1));
    drop_socket(s);
}

static inline struct model_socket *socket_of(struct model *m, struct weir__redis_conn *conn)
{
    struct model_socket *spare = NULL;

    for (int i = 0; i < MODEL_CONNS; i++) {
        struct model_socket *s = &m->sockets[i];
        if (s->conn == conn && (s->life != conn->life || conn->phase == WEIR__REDIS_CLOSED))
            hang_up(m, s);
        if (s->conn == conn)
            return s;
        if (!s->conn)
            spare = s;
    }
    if (conn->phase == WEIR__REDIS_CLOSED)
        return NULL;
    law(spare != NULL);
    *spare = (struct model_socket){ .conn = conn,
                                    .life = conn->life,
                                    .server = weir__redis_conn_address(conn)->port - 1 };
    return spare;
}

static inline void break_socket(struct model *m, struct model_socket *s, const char *why)
{
    struct weir__redis_conn *conn = s->conn;

    hang_up(m, s);
    weir__redis_client_lost(m->client, conn, why, m->now);
}

/* All of it, or a part, or nothing: for more than a second perhaps, which is a fault too. */
static inline size_t part_of(struct model *m, size_t len)
{
    return !m->faults || chance(m, 2) ? len : (size_t)model_pick(m, (int)len + 1);
}

static inline void drive_conn(struct model *m, struct weir__redis_conn *conn)
{
    struct model_socket *s = socket_of(m, conn);

    if (!s)
        return;
    if (!s->accepted && !m->up[s->server]) {
        break_socket(m, s, "refused");
        return;
    }
    if (!s->accepted && !chance(m, 3)) {
        s->accepted = true;
        weir__redis_client_opened(m->client, conn, m->now);
    }
    if (!s->accepted)
        return;
    if (!m->up[s->server] || (m->faults && chance(m, 60))) {
        break_socket(m, s, "reset");
        return;
    }
    size_t n = part_of(m, conn->out.len);
    weir__buffer_add(&s->to_server, conn->out.bytes, n);
    weir__redis_client_wrote(m->client, conn, n);
    serve_socket(m, s, part_of(m, s->to_server.len));
    n = part_of(m, s->to_client.len);
    char *bytes = malloc(n + 1);
    law(bytes != NULL);
    if (n > 0)
        memcpy(bytes, s->to_client.bytes, n);
    weir__buffer_drop(&s->to_client, n);
    if (n > 0)
        weir__redis_client_input(m->client, conn, bytes, n, m->now);
    free(bytes);
}

/* ----------------------------------------------------------------- faults ---- */

static inline void change_world(struct model *m)
{
    int server = model_pick(m, MODEL_SERVERS), key = model_pick(m, MODEL_KEYS),
        node = model_pick(m, MODEL_NODES);

    switch (model_pick(m, 10)) {
    case 0:
        m->up[server] = !m->up[server];
        m->stopped[server] = false;
        break;
    case 1:
        m->stopped[server] = !m->stopped[server];
        break;
    case 2: /* a failover, or the end of a migration */
        m->owner[key] = node;
        m->target[key] = -1;
        break;
    case 3:
        m->target[key] = node == m->owner[key] ? -1 : node;
        m->moved[key] = false;
        break;
    case 4:
        m->moved[key] = true;
        break;
    case 5:
        m->knows[server] = false;
        break;
    case 6:
        m->master = node;
        break;
    case 7: /* loaded, or unloaded */
        m->module[server] = !m->module[server];
        break;
    default:
        m->up[server] = true;
    }
}

static inline void end_faults(struct model *m)
{
    m->faults = false;
    for (int i = 0; i < MODEL_SERVERS; i++) {
        m->up[i] = true;
        m->stopped[i] = false;
    }
    for (int key = 0; key < MODEL_KEYS; key++)
        m->target[key] = -1;
}

/* ------------------------------------------------------------------- asks ---- */

static inline void model_ask(struct model *m, weir_time span);

static inline void model_done(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct model_ask *a = ask->context;
    struct model *m = a->model;

    law(a->done++ == 0);
    law(m->client == NULL || m->now <= ask->deadline || answer->why != NULL);
    a->outcome = answer->outcome;
    if (answer->outcome == WEIR__REDIS_ANSWERED) {
        struct weir__resp_value v;
        law(weir__resp_value(answer->reply.bytes, &v) == answer->reply.bytes + answer->reply.len);
        law(v.kind == ':' && v.integer == a - m->asks);
    } else {
        law(answer->why != NULL && answer->why[0] != '\0');
    }
    if (m->client && m->faults && m->n < MODEL_ASKS && chance(m, 8))
        model_ask(m, 50 * WEIR_MILLISECOND);
}

static inline void model_ask(struct model *m, weir_time span)
{
    struct model_ask *a = &m->asks[m->n];
    int key = model_pick(m, MODEL_KEYS);
    char name[] = { 'k', (char)('0' + key), '\0' }, id[16];

    snprintf(id, sizeof(id), "%d", m->n++);
    a->model = m;
    a->ask.script = chance(m, 2) ? &m->script : NULL;
    a->ask.slot = weir__redis_slot(name, 2);
    a->ask.deadline = m->now + span;
    a->ask.repeatable = chance(m, 3);
    a->ask.done = model_done;
    a->ask.context = a;
    law(weir__redis_ask_texts(&a->ask, a->ask.script ? (const char *[]){ "1", name, id, NULL }
                                                     : (const char *[]){ "DO", name, id, NULL }));
    if (a->ask.script && chance(m, 2)) {
        law(weir__redis_ask_texts(&a->module, (const char *[]){ "MODULE-DO", name, id, NULL }));
        a->ask.module = a->module.words;
        a->ask.n_module = a->module.n_words;
    }
    weir__redis_client_ask(m->client, &a->ask, m->now);
}

/* Everything happens that can at this moment; then time goes on, as far as the client says. */
static inline void model_step(struct model *m)
{
    struct weir__redis_conn *conn;
    weir_time due;

    for (size_t i = 0; (conn = weir__redis_client_conn(m->client, i)) != NULL; i++)
        drive_conn(m, conn);
    due = weir__redis_client_turn(m->client, m->now);
    law(due > m->now);
    weir_time step =
        1 + (weir_time)m->dice(m->context, (uint64_t)(chance(m, 10) ? 300 : 3) * WEIR_MILLISECOND);
    m->now = due - m->now < step ? due : m->now + step;
    weir__redis_client_turn(m->client, m->now);
    law(weir__redis_client_waiting(m->client) == 0 || m->n > 0);
}

static inline void check_ends(struct model *m)
{
    for (int i = 0; i < m->n; i++) {
        const struct model_ask *a = &m->asks[i];
        law(a->done == 1);
        law(a->outcome != WEIR__REDIS_UNDONE || a->executed == 0);
        law(a->outcome != WEIR__REDIS_ANSWERED || a->executed >= 1);
        law(a->ask.repeatable || a->executed <= 1);
    }
}

static inline struct model *model_begin(uint64_t (*dice)(void *, uint64_t), void *context)
{
    static const char *const urls[] = { "redis://h:1,h:2,h:3,h:4", "redis://h:1,h:2,h:3,h:4",
                                        "redis-sentinel://h:5,h:6/mine" };
    struct model *m = calloc(1, sizeof(*m));
    struct weir__redis_options options = { .pool = 2 };

    law(m != NULL);
    m->dice = dice;
    m->context = context;
    m->now = 1000 * WEIR_SECOND;
    m->faults = true;
    m->kind = (unsigned)model_pick(m, 3);
    m->script = weir__redis_script(MODEL_SCRIPT, strlen(MODEL_SCRIPT));
    for (int i = 0; i < MODEL_SERVERS; i++) {
        m->up[i] = true;
        m->old[i] = chance(m, 6);
    }
    for (int key = 0; key < MODEL_KEYS; key++) {
        m->owner[key] = model_pick(m, MODEL_NODES);
        m->target[key] = -1;
    }
    m->master = model_pick(m, MODEL_NODES);
    options.jitter = m->dice(m->context, UINT64_MAX);
    options.module_first = chance(m, 2);
    law(weir__redis_url_parse(&options.url, urls[m->kind], NULL) == WEIR_OK);
    law(weir__redis_client_create(&m->client, &options, NULL) == WEIR_OK);
    return m;
}

static inline void model_run(uint64_t (*dice)(void *, uint64_t), void *context, int steps)
{
    struct model *m = model_begin(dice, context);

    for (int i = 0; i < steps; i++) {
        if (chance(m, 2) && m->n < MODEL_ASKS / 2)
            model_ask(m, 1 + (weir_time)m->dice(m->context, 400 * (uint64_t)WEIR_MILLISECOND));
        if (chance(m, 6))
            change_world(m);
        model_step(m);
    }
    end_faults(m);
    int last = m->n;
    model_ask(m, 20 * WEIR_SECOND);
    for (int i = 0; i < 100000 && weir__redis_client_waiting(m->client) > 0; i++)
        model_step(m);
    law(m->asks[last].outcome == WEIR__REDIS_ANSWERED && m->asks[last].done == 1);
    for (int i = 0; i < MODEL_CONNS; i++) { /* what is on its way arrives */
        if (m->sockets[i].conn && m->sockets[i].accepted)
            serve_socket(m, &m->sockets[i], SIZE_MAX);
    }
    check_ends(m);
    struct weir__redis_client *client = m->client;
    m->client = NULL;
    weir__redis_client_destroy(client);
    for (int i = 0; i < m->n; i++) {
        weir__redis_ask_free(&m->asks[i].ask);
        weir__redis_ask_free(&m->asks[i].module);
    }
    for (int i = 0; i < MODEL_CONNS; i++)
        drop_socket(&m->sockets[i]);
    free(m);
}

#endif
