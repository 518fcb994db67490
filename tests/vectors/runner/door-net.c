/* door-net.c -- vector doors into a server: resp and http.
 *
 * Each case is a limit of its own (by a name that nobody else has), so its key is fresh.  The time
 * of each line is set at the server's own clock before it is asked; a change is the same name with
 * another limit, put in force by an ask that takes nothing.  Times are in ns both ways, so nothing
 * is rounded on the way.
 *
 * Unless the caller names one, a server is started for the run, on unix sockets in a directory of
 * its own, and ended by its pid; and another in its place before there are more limits with large
 * states than a server has room for.
 */
#include "door-net.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "server/cli/http-client.h"
#include "server/base/json-document.h"
#include "table/table.h"
#include "server/base/complain.h"
#include "resp-client.h"

struct net {
    struct weir__door door;
    struct weir__client *client;
    uint64_t mark; /* of this run, in the names of limits */
    int cases;
    int large;        /* limits with large states that the present server has */
    const char *weir; /* the command that is started */
    pid_t server;     /* 0: somebody else's */
    char directory[256];
    struct weir__buffer answer;
    char said[sizeof((struct weir_error){ 0 }).text]; /* the last complaint: the same one is not
                                                         repeated for every line */
};

#define LARGE_MOST 12 /* a server gives each of them a sixteenth of the room for all */

struct run {
    struct net *net;
    int number;
    char name[48], limit[192];
    const char *key;
};

/* ------------------------------------------------------------------ asking ---- */

static const char *verb_name(enum weir__vector_verb verb)
{
    return verb == WEIR__VECTOR_TAKE ? "take" : verb == WEIR__VECTOR_PEEK ? "peek" : "give";
}

static int resp_set_clock(struct net *n, weir_time now, struct weir_error *error)
{
    char text[24];
    struct resp_answer reply;

    snprintf(text, sizeof(text), "%" PRId64, now);
    return resp_client_ask(n->client, (const char *const[]){ "WEIR.CLOCK", text, NULL }, &reply,
                           error);
}

static weir_time time_of(int64_t n)
{
    return n < 0 ? WEIR_NEVER : n;
}

static int resp_ask(struct run *r, enum weir__vector_verb verb, const struct weir_ask *ask,
                    struct weir_decision *d, struct weir_error *error)
{
    char command[16], cost[24], wait[24];
    struct resp_answer reply;

    snprintf(command, sizeof(command), "WEIR.%s", verb_name(verb));
    snprintf(cost, sizeof(cost), "%" PRId64, ask->cost);
    snprintf(wait, sizeof(wait), "%" PRId64, ask->wait_max);
    const char *const words[] = { command, r->key, r->limit, "COST", cost, "WAIT",
                                  wait,    "NAME", r->name,  "NS",   NULL };
    int code = resp_set_clock(r->net, ask->now, error);
    if (code == WEIR_OK)
        code = resp_client_ask(r->net->client, words, &reply, error);
    if (code != WEIR_OK || verb == WEIR__VECTOR_GIVE)
        return code;
    if (reply.kind != '*' || reply.n != 6)
        return weir__fail(error, WEIR_INVALID, "%s: not six numbers", command);
    *d = (struct weir_decision){ .allowed = reply.numbers[0] == 1,
                                 .limit = reply.numbers[1],
                                 .remaining = reply.numbers[2] };
    d->retry = d->allowed ? 0 : time_of(reply.numbers[3]);
    d->reset = time_of(reply.numbers[4]);
    d->wait = time_of(reply.numbers[5]);
    return WEIR_OK;
}

/* A 2xx or a refusal, as a document; else what the server has said. */
static int http_call(struct net *n, const char *path, struct weir__buffer *body,
                     struct weir__document *d, struct weir_error *error)
{
    int status = weir__client_ask(n->client, "POST", path, body, &n->answer, error);

    weir__buffer_free(body);
    if (status < 0)
        return status;
    int code = weir__document_read(d, n->answer.bytes, n->answer.len, error);
    if (code != WEIR_OK || status / 100 == 2 || status == 429)
        return code;
    const char *detail = weir__document_text(d, "detail");
    weir__fail(error, WEIR_INVALID, "%s: %d %s", path, status, detail ? detail : "");
    weir__document_free(d);
    return WEIR_INVALID;
}

static int http_set_clock(struct net *n, weir_time now, struct weir_error *error)
{
    struct weir__buffer body = { 0 };
    struct weir__document d = { 0 };

    weir__buffer_format(&body, "{\"now_ns\":%" PRId64 "}", now);
    int code = http_call(n, "/v1/clock", &body, &d, error);
    weir__document_free(&d);
    return code;
}

static void write_ask(const struct run *r, const struct weir_ask *ask, struct weir__buffer *body)
{
    weir__buffer_text(body, "{");
    weir__buffer_member(body, "key", r->key);
    weir__buffer_member(body, "limit", r->limit);
    weir__buffer_member(body, "name", r->name);
    weir__buffer_member(body, "unit", "ns");
    weir__buffer_member_number(body, "cost", ask->cost);
    weir__buffer_member_number(body, "wait_ns", ask->wait_max);
    weir__buffer_text(body, "}");
}

static weir_time member_time(const struct weir__document *d, const char *name)
{
    return weir__document_number(d, WEIR_NEVER, "%s", name);
}

static int http_ask(struct run *r, enum weir__vector_verb verb, const struct weir_ask *ask,
                    struct weir_decision *out, struct weir_error *error)
{
    struct weir__buffer body = { 0 };
    struct weir__document d = { 0 };
    char path[16];
    int code = http_set_clock(r->net, ask->now, error);

    if (code != WEIR_OK)
        return code;
    snprintf(path, sizeof(path), "/v1/%s", verb_name(verb));
    write_ask(r, ask, &body);
    code = http_call(r->net, path, &body, &d, error);
    if (code != WEIR_OK)
        return code;
    if (verb != WEIR__VECTOR_GIVE) {
        *out = (struct weir_decision){ .allowed = weir__document_true(&d, "allowed") };
        out->limit = weir__document_number(&d, -1, "limit");
        out->remaining = weir__document_number(&d, -1, "remaining");
        out->retry = out->allowed ? 0 : member_time(&d, "retry_ns");
        out->reset = member_time(&d, "reset_ns");
        out->wait = member_time(&d, "wait_ns");
    }
    weir__document_free(&d);
    return WEIR_OK;
}

static int send_ask(struct run *r, enum weir__vector_verb verb, const struct weir_ask *ask,
                    struct weir_decision *d, struct weir_error *error)
{
    bool http = strcmp(r->net->door.name, "http") == 0;

    return http ? http_ask(r, verb, ask, d, error) : resp_ask(r, verb, ask, d, error);
}

/* A cost below 0 is an error to a server, where the bare algorithm says never: that it is one is
 * seen, and then what the key has left. */
static int ask_server(struct run *r, enum weir__vector_verb verb, const struct weir_ask *ask,
                      struct weir_decision *d, struct weir_error *error)
{
    int code = send_ask(r, verb, ask, d, error);

    if (ask->cost >= 0 || code != WEIR_INVALID)
        return code;
    struct weir_ask nothing = { .now = ask->now };
    code = send_ask(r, WEIR__VECTOR_PEEK, &nothing, d, error);
    d->allowed = false;
    d->retry = WEIR_NEVER;
    d->wait = 0;
    return code;
}

/* ------------------------------------------------------ a server for the run ---- */

static void path_of(const struct net *n, const char *file, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", n->directory, file);
}

static void be_server(const struct net *n, int ready)
{
    char resp[300], http[300], none[] = "/dev/null";
    const char *const words[] = { "weir",       "serve", "--memory",       "--test-clock",
                                  "--resp",     resp,    "--http",         http,
                                  "--keys",     "65536", "--adhoc-limits", "65536",
                                  "--limiters", "65536", "--threads",      "1",
                                  NULL };
    int nothing = open(none, O_RDONLY);

    path_of(n, "resp", resp, sizeof(resp));
    path_of(n, "http", http, sizeof(http));
    dup2(ready, STDOUT_FILENO);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    for (char **e = environ; e && *e; e++) { /* what serve would take for its settings */
        if (strncmp(*e, "WEIR_", 5) == 0 || strncmp(*e, "LISTEN_", 7) == 0)
            *e[0] = '_';
    }
    execv(n->weir, (char *const *)words);
    _exit(127);
}

/* It is ready when it has said where its table is: the last line that it prints at the start. */
static bool wait_until_ready(int said)
{
    char text[4096];
    size_t len = 0;

    while (len < sizeof(text) - 1) {
        ssize_t n = read(said, text + len, sizeof(text) - 1 - len);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
        char *last = strstr(text, "\n  table");
        if (last && strchr(last + 1, '\n'))
            return true;
    }
    return false;
}

static int make_directory(struct net *n, struct weir_error *error)
{
    const char *wanted = getenv("TMPDIR");
    int len = snprintf(n->directory, sizeof(n->directory), "%s/weir-vectors-XXXXXX",
                       wanted && *wanted ? wanted : "/tmp");

    if (len >= 80) { /* a unix socket's path has about a hundred bytes */
        n->directory[0] = '\0';
        return weir__fail(error, WEIR_INVALID, "TMPDIR is too long for unix sockets");
    }
    if (mkdtemp(n->directory))
        return WEIR_OK;
    weir__fail(error, WEIR_SYSTEM, "mkdtemp %s: %s", n->directory, strerror(errno));
    n->directory[0] = '\0';
    return WEIR_SYSTEM;
}

static int start_server(struct net *n, struct weir_error *error)
{
    int pipes[2], code = make_directory(n, error);

    if (code != WEIR_OK)
        return code;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return weir__fail(error, WEIR_SYSTEM, "pipe: %s", strerror(errno));
    fflush(stdout);
    n->server = fork();
    if (n->server == 0)
        be_server(n, pipes[1]);
    close(pipes[1]);
    bool ready = n->server > 0 && wait_until_ready(pipes[0]);
    close(pipes[0]); /* it says no more, but for complaints */
    return ready ? WEIR_OK : weir__fail(error, WEIR_SYSTEM, "weir serve did not start");
}

static void stop_server(struct net *n)
{
    static const char *const files[] = { "resp", "http" };
    char path[300];

    if (n->server > 0 && kill(n->server, SIGTERM) == 0)
        while (waitpid(n->server, NULL, 0) < 0 && errno == EINTR)
            ;
    for (size_t i = 0; n->directory[0] && i < 2; i++) {
        path_of(n, files[i], path, sizeof(path));
        unlink(path);
    }
    if (n->directory[0])
        rmdir(n->directory);
    n->directory[0] = '\0';
    n->server = 0;
}

/* That its clock can be set is seen at once, and not at the first line. */
static int connect_server(struct net *n, const char *server, struct weir_error *error)
{
    bool resp = strcmp(n->door.name, "resp") == 0;
    char own[300];

    path_of(n, n->door.name, own, sizeof(own));
    struct weir__client_options how = { .server = server ? server : own,
                                        .timeout = 30 * WEIR_SECOND };
    struct resp_answer reply;
    const char *token = getenv("WEIR_TOKEN");
    if (server && token && *token)
        how.token = token;
    int code = weir__client_open(&n->client, &how, error);
    if (code == WEIR_OK && resp && how.token)
        code =
            resp_client_ask(n->client, (const char *const[]){ "AUTH", token, NULL }, &reply, error);
    if (code == WEIR_OK)
        code = resp ? resp_set_clock(n, 0, error) : http_set_clock(n, 0, error);
    return code;
}

/* ---------------------------------------------------------------- the door ---- */

static bool is_large(const struct weir_limit *limit)
{
    struct weir_plan *plan;

    if (weir_plan_create(&plan, limit, NULL) != WEIR_OK)
        return false;
    bool large = weir_plan_state_size(plan) > WEIR__STATE_SMALL;
    weir_plan_destroy(plan);
    return large;
}

static int count_large(const struct weir__vectors *vectors, const struct weir__vector_case *c)
{
    int large = is_large(&c->limit);

    for (size_t i = c->first; i < c->first + c->count; i++)
        large +=
            vectors->lines[i].verb == WEIR__VECTOR_CHANGE && is_large(&vectors->lines[i].limit);
    return large;
}

static int make_room(struct net *n, int large, struct weir_error *error)
{
    int code = WEIR_OK;

    if (n->server > 0 && large > 0 && n->large + large > LARGE_MOST) {
        weir__client_close(n->client);
        n->client = NULL;
        stop_server(n);
        code = start_server(n, error);
        if (code == WEIR_OK)
            code = connect_server(n, NULL, error);
        n->large = 0;
    }
    n->large += large;
    return code;
}

/* Nothing is asked yet: the first ask makes the limit. */
static int net_open(const struct weir__door *self, void **run, const struct weir__vectors *vectors,
                    const struct weir__vector_case *c, struct weir_error *error)
{
    struct net *n = self->context;
    int code = make_room(n, count_large(vectors, c), error);

    if (code != WEIR_OK)
        return code;
    struct run *r = calloc(1, sizeof(*r));
    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    *r = (struct run){ .net = n, .number = n->cases++, .key = "key" };
    snprintf(r->name, sizeof(r->name), "vector-%" PRIx64 "-%d", n->mark, r->number);
    if (weir_limit_print(r->limit, sizeof(r->limit), &c->limit) >= (int)sizeof(r->limit)) {
        free(r);
        return weir__fail(error, WEIR_INVALID, "the limit is too long to be sent");
    }
    *run = r;
    return WEIR_OK;
}

static void complain(struct net *n, const struct weir_error *error)
{
    if (strcmp(n->said, error->text) != 0)
        weir__complain("vectors", "door %s: %s", n->door.name, error->text);
    memcpy(n->said, error->text, sizeof(n->said));
}

/* An ask that was not answered is no decision: the two answers contradict each other, so that the
 * line fails whatever it expects. */
static bool net_ask(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                    struct weir_decision *d)
{
    struct run *r = run;
    struct weir_error error = { 0 };

    if (ask_server(r, verb, ask, d, &error) == WEIR_OK)
        return d->allowed;
    complain(r->net, &error);
    *d = (struct weir_decision){ 0 };
    return true;
}

static void net_give(void *run, const struct weir_ask *ask)
{
    struct run *r = run;
    struct weir_error error = { 0 };
    struct weir_decision d;

    if (ask_server(r, WEIR__VECTOR_GIVE, ask, &d, &error) != WEIR_OK)
        complain(r->net, &error);
}

static int net_change(void *run, const struct weir_limit *limit, weir_time now,
                      struct weir_error *error)
{
    struct run *r = run;
    struct weir_decision d;

    if (weir_limit_print(r->limit, sizeof(r->limit), limit) >= (int)sizeof(r->limit))
        return weir__fail(error, WEIR_INVALID, "the limit is too long to be sent");
    r->key = "another"; /* only takes change a limit, and a late one moves its key's time */
    int code = ask_server(r, WEIR__VECTOR_TAKE, &(struct weir_ask){ .now = now }, &d, error);
    r->key = "key";
    return code;
}

static void net_close(void *run)
{
    free(run);
}

/* ------------------------------------------------------------- open, close ---- */

bool weir__door_net_is(const char *name)
{
    return strcmp(name, "resp") == 0 || strcmp(name, "http") == 0;
}

int weir__door_net_open(struct weir__door **out, const char *name, const char *server,
                        const char *weir, struct weir_error *error)
{
    struct net *n = calloc(1, sizeof(*n));

    if (!n)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    n->weir = weir;
    n->door =
        (struct weir__door){ .name = strcmp(name, "resp") == 0 ? "resp" : "http", .context = n };
    n->door.open = net_open;
    n->door.ask = net_ask;
    n->door.give = net_give;
    n->door.change = net_change;
    n->door.close = net_close;
    if (getrandom(&n->mark, sizeof(n->mark), 0) < 0)
        n->mark = (uint64_t)getpid();
    int code = server ? WEIR_OK : start_server(n, error);
    if (code == WEIR_OK)
        code = connect_server(n, server, error);
    if (code == WEIR_OK)
        *out = &n->door;
    else
        weir__door_net_close(&n->door);
    return code;
}

void weir__door_net_close(struct weir__door *door)
{
    struct net *n = door->context;

    weir__client_close(n->client);
    stop_server(n);
    weir__buffer_free(&n->answer);
    free(n);
}
