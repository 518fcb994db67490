/* resp-commands.c -- the table of commands, and those that every Redis client expects of a server.
 *
 * Weir keeps no data for clients, so what Redis has for data is not here; what clients send to
 * introduce themselves, to keep a connection alive, to look a server over or to wrap a pipeline
 * (MULTI ... EXEC) is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/serve/admin/admin.h"
#include "server/serve/net/conn.h"
#include "server/serve/resp/resp.h"

#define ARG(call, i) (call)->args[i].bytes, (call)->args[i].len

/* --------------------------------------------------------- who and what ---- */

static void ping(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    if (conn->subscribed && conn->resp == 2) {
        weir__reply_header(conn, '*', 2);
        weir__reply_text(conn, "pong");
        weir__reply_bulk(conn, call->n > 1 ? call->args[1].bytes : "",
                         call->n > 1 ? call->args[1].len : 0);
    } else if (call->n > 1) {
        weir__reply_bulk(conn, ARG(call, 1));
    } else {
        weir__reply_simple(conn, "PONG");
    }
}

static void echo(struct weir__resp_call *call)
{
    weir__reply_bulk(call->conn, ARG(call, 1));
}

/* The last argument is the secret; a user's name before it is not looked at beyond being one of
 * ours. */
static bool authenticate(struct weir__conn *conn, struct weir__resp_arg secret)
{
    enum weir__role role = weir__auth_role(conn->loop->server->settings, secret.bytes, secret.len);
    if (role == WEIR__ROLE_NONE) {
        weir__counter_add(&conn->loop->counters, WEIR__COUNT_AUTH_FAILED, 1);
        weir__reply_error(conn, "WRONGPASS this token is not known");
        return false;
    }
    conn->role = role;
    conn->proven = true;
    return true;
}

static bool has_secrets(const struct weir__settings *s)
{
    return *s->check_token || *s->admin_token;
}

/* AUTH [user] token */
static void auth(struct weir__resp_call *call)
{
    if (call->n > 3)
        weir__reply_wrong_number(call);
    else if (!has_secrets(call->conn->loop->server->settings))
        weir__reply_error(call->conn, "ERR AUTH was called, but the server has no token: everybody "
                                      "who can connect may do everything");
    else if (authenticate(call->conn, call->args[call->n - 1]))
        weir__reply_simple(call->conn, "OK");
}

static void set_name(struct weir__conn *conn, struct weir__resp_arg name)
{
    struct weir__resp_session *s = weir__resp_session(conn);
    if (s)
        snprintf(s->name, sizeof(s->name), "%.*s", (int)(name.len > 63 ? 63 : name.len),
                 name.bytes);
}

static void reply_hello(struct weir__conn *conn)
{
    weir__reply_map(conn, 7);
    weir__reply_text(conn, "server");
    weir__reply_text(conn, "weir");
    weir__reply_text(conn, "version");
    weir__reply_text(conn, "7.0.0"); /* of the Redis whose manners these are: clients compare it */
    weir__reply_text(conn, "proto");
    weir__reply_integer(conn, conn->resp);
    weir__reply_text(conn, "id");
    weir__reply_integer(conn, (int64_t)conn->id);
    weir__reply_text(conn, "mode");
    weir__reply_text(conn, "standalone");
    weir__reply_text(conn, "role");
    weir__reply_text(conn, "master");
    weir__reply_text(conn, "modules");
    weir__reply_header(conn, '*', 0);
}

/* HELLO [version [AUTH user token] [SETNAME name]] */
static void hello(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    int64_t version = conn->resp;
    if (call->n > 1 && (!weir__resp_int(call->args[1], &version) || version < 2 || version > 3)) {
        weir__reply_error(conn, "NOPROTO the version is 2 or 3");
        return;
    }
    for (size_t i = 2; i < call->n;) {
        if (weir__resp_is(call->args[i], "AUTH") && i + 2 < call->n) {
            if (!authenticate(conn, call->args[i + 2]))
                return;
            i += 3;
        } else if (weir__resp_is(call->args[i], "SETNAME") && i + 1 < call->n) {
            set_name(conn, call->args[i + 1]);
            i += 2;
        } else {
            weir__reply_error(
                conn,
                "ERR this HELLO cannot be read: HELLO [version [AUTH user token] [SETNAME name]]");
            return;
        }
    }
    if (conn->role == WEIR__ROLE_NONE) {
        weir__reply_error(
            conn,
            "NOAUTH a token is needed: HELLO version AUTH user token, or AUTH token before HELLO");
        return;
    }
    conn->resp = (uint8_t)version;
    reply_hello(conn);
}

static void quit(struct weir__resp_call *call)
{
    weir__reply_simple(call->conn, "OK");
    weir__conn_end(call->conn);
}

static void reset(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    if (weir__resp.close)
        weir__resp.close(conn);
    conn->subscribed = false;
    conn->resp = 2;
    conn->role = conn->first_role;
    weir__reply_simple(conn, "RESET");
}

static void select_database(struct weir__resp_call *call)
{
    int64_t n;
    if (weir__resp_int(call->args[1], &n) && n == 0)
        weir__reply_simple(call->conn, "OK");
    else
        weir__reply_error(call->conn, "ERR there is one database, 0");
}

static void client_info(struct weir__conn *conn)
{
    const struct weir__resp_session *s = conn->session;
    char text[512];
    int n =
        snprintf(text, sizeof(text), "id=%" PRIu64 " addr=%s name=%s lib-name=%s resp=%d role=%s\n",
                 conn->id, conn->peer, s ? s->name : "", s ? s->library : "", conn->resp,
                 conn->role == WEIR__ROLE_ADMIN   ? "admin"
                 : conn->role == WEIR__ROLE_CHECK ? "check"
                                                  : "none");
    weir__reply_bulk(conn, text,
                     n < 0                      ? 0
                     : (size_t)n < sizeof(text) ? (size_t)n
                                                : sizeof(text) - 1);
}

static void client(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__resp_arg what = call->args[1];
    struct weir__resp_session *s;
    if (weir__resp_is(what, "SETNAME") && call->n == 3) {
        set_name(conn, call->args[2]);
        weir__reply_simple(conn, "OK");
    } else if (weir__resp_is(what, "GETNAME")) {
        s = conn->session;
        weir__reply_text(conn, s && s->name[0] ? s->name : NULL);
    } else if (weir__resp_is(what, "SETINFO") && call->n == 4) {
        if (weir__resp_is(call->args[2], "LIB-NAME") && (s = weir__resp_session(conn)) != NULL)
            snprintf(s->library, sizeof(s->library), "%.*s",
                     (int)(call->args[3].len > 95 ? 95 : call->args[3].len), call->args[3].bytes);
        weir__reply_simple(conn, "OK");
    } else if (weir__resp_is(what, "ID")) {
        weir__reply_integer(conn, (int64_t)conn->id);
    } else if (weir__resp_is(what, "INFO") || weir__resp_is(what, "LIST")) {
        client_info(conn);
    } else if (weir__resp_is(what, "NO-EVICT") || weir__resp_is(what, "NO-TOUCH") ||
               (weir__resp_is(what, "REPLY") && call->n == 3 &&
                weir__resp_is(call->args[2], "ON")) ||
               (weir__resp_is(what, "TRACKING") && call->n == 3 &&
                weir__resp_is(call->args[2], "OFF"))) {
        weir__reply_simple(conn, "OK");
    } else {
        weir__reply_error(conn, "ERR unknown subcommand or wrong number of arguments for CLIENT: "
                                "there are SETNAME, GETNAME, SETINFO, ID, INFO, LIST");
    }
}

/* CONFIG GET is asked by load generators and monitors: there is nothing of the kind. */
static void config(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    if (weir__resp_is(call->args[1], "GET") && call->n > 2) {
        weir__reply_map(conn, (int64_t)call->n - 2);
        for (size_t i = 2; i < call->n; i++) {
            weir__reply_bulk(conn, ARG(call, i));
            weir__reply_text(conn, weir__resp_is(call->args[i], "appendonly") ? "no" : "");
        }
    } else {
        weir__reply_error(conn,
                          "ERR CONFIG has only GET here; weir serve --help tells the settings");
    }
}

static void info(struct weir__resp_call *call)
{
    struct weir__server *server = call->conn->loop->server;
    struct weir__buffer text = { 0 };
    struct weir__live_info live;
    struct weir_table_stats stats;
    weir_time now = weir__loop_now(call->conn->loop);
    weir__live_info(server->live, &live);
    weir_table_stats(server->table, -1, &stats);
    weir__buffer_format(&text,
                        "# "
                        "Server\r\nweir_version:%s\r\nredis_version:7.0.0\r\nredis_mode:"
                        "standalone\r\nprocess_id:%d\r\nuptime_in_seconds:%" PRId64 "\r\n",
                        weir_version(), (int)getpid(), (now - server->started) / WEIR_SECOND);
    weir__buffer_format(
        &text, "# Clients\r\nconnected_clients:%" PRId64 "\r\n# Persistence\r\nloading:0\r\n",
        __atomic_load_n(&server->connections, __ATOMIC_RELAXED));
    weir__buffer_format(&text,
                        "# Stats\r\ntotal_connections_received:%" PRId64
                        "\r\ntotal_commands_processed:%" PRId64 "\r\ntotal_http_requests:%" PRId64
                        "\r\nchecks_allowed:%" PRId64 "\r\nchecks_refused:%" PRId64
                        "\r\ntakes_allowed:%" PRId64 "\r\ntakes_refused:%" PRId64 "\r\n",
                        weir__server_count(server, WEIR__COUNT_CONNECTIONS),
                        weir__server_count(server, WEIR__COUNT_RESP_COMMANDS),
                        weir__server_count(server, WEIR__COUNT_HTTP_REQUESTS),
                        weir__server_count(server, WEIR__COUNT_CHECK_ALLOWED),
                        weir__server_count(server, WEIR__COUNT_CHECK_REFUSED),
                        weir__server_count(server, WEIR__COUNT_TAKE_ALLOWED),
                        weir__server_count(server, WEIR__COUNT_TAKE_REFUSED));
    weir__buffer_format(
        &text,
        "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Cluster\r\ncluster_enabled:0\r\n");
    weir__buffer_format(&text,
                        "# Weir\r\nrules_hash:%s\r\nrules_source:%s\r\nrules_version:%" PRId64
                        "\r\nrules:%zu\r\nkeys:%" PRId64 "\r\nslots:%" PRId64
                        "\r\nevicted_early:%" PRId64 "\r\n",
                        live.hash, live.source, live.version, live.rules, stats.keys, stats.slots,
                        stats.evicted_early);
    if (text.failed)
        weir__reply_error(call->conn, "ERR no memory");
    else
        weir__reply_bulk(call->conn, text.bytes, text.len);
    weir__buffer_free(&text);
}

static void tell_time(struct weir__resp_call *call)
{
    char text[32];
    weir_time now = weir__loop_now(call->conn->loop);
    weir__reply_header(call->conn, '*', 2);
    snprintf(text, sizeof(text), "%" PRId64, now / WEIR_SECOND);
    weir__reply_text(call->conn, text);
    snprintf(text, sizeof(text), "%" PRId64, now % WEIR_SECOND / WEIR_MICROSECOND);
    weir__reply_text(call->conn, text);
}

static void dbsize(struct weir__resp_call *call)
{
    struct weir_table_stats stats;
    weir_table_stats(call->conn->loop->server->table, -1, &stats);
    weir__reply_integer(call->conn, stats.keys + stats.large_keys);
}

/* ---------------------------------------------------------- transactions ---- */

static void multi(struct weir__resp_call *call)
{
    struct weir__resp_session *s = weir__resp_session(call->conn);
    if (!s || s->multi) {
        weir__reply_error(call->conn,
                          "ERR this MULTI is inside another, which EXEC or DISCARD would end");
        return;
    }
    s->multi = true;
    s->multi_failed = false;
    s->queued = 0;
    weir__reply_simple(call->conn, "OK");
}

static void end_multi(struct weir__resp_session *s)
{
    s->multi = s->multi_failed = false;
    s->queued = 0;
    weir__buffer_free(&s->queue);
}

static void discard(struct weir__resp_call *call)
{
    struct weir__resp_session *s = call->conn->session;
    if (!s || !s->multi) {
        weir__reply_error(call->conn, "ERR there is nothing to DISCARD: no MULTI was said");
        return;
    }
    end_multi(s);
    weir__reply_simple(call->conn, "OK");
}

/* All answers go out in one piece, which a few bytes of COMMAND could make very large. */
static bool is_too_much(const struct weir__conn *conn, size_t begin)
{
    return conn->loop->out.len - begin > (size_t)conn->loop->server->settings->output_max;
}

/* Answers all that was kept.  They are decided one after the other; clients on other threads may
 * come between. */
static void run_queue(struct weir__conn *conn, const struct weir__buffer *queue, size_t n)
{
    struct weir__resp_arg args[WEIR__RESP_ARGS];
    const struct weir__resp_limits limits = { WEIR__RESP_ARGS, queue->len };
    struct weir__resp_call call = { conn, args, 0 };
    size_t at = 0, begin = conn->loop->out.len;
    const char *what;
    weir__reply_header(conn, '*', (int64_t)n);
    while (at < queue->len && !is_too_much(conn, begin)) {
        ptrdiff_t used =
            weir__resp_command(queue->bytes + at, queue->len - at, &limits, args, &call.n, &what);
        if (used <= 0)
            break;
        at += (size_t)used;
        if (call.n)
            weir__resp_run(&call);
    }
    weir__resp_flush(conn->loop, conn);
    if (is_too_much(conn, begin)) {
        conn->loop->out.len = begin;
        weir__reply_error(conn, "ERR the answers are larger than output-max; of the transaction "
                                "only the beginning was run");
    }
}

static void exec(struct weir__resp_call *call)
{
    struct weir__resp_session *s = call->conn->session;
    if (!s || !s->multi) {
        weir__reply_error(call->conn, "ERR there is nothing to EXEC: no MULTI was said");
        return;
    }
    if (s->multi_failed || s->queue.failed) {
        end_multi(s);
        weir__reply_error(call->conn,
                          "EXECABORT nothing was run: a command since MULTI was refused");
        return;
    }
    struct weir__buffer queue = s->queue;
    size_t n = s->queued;
    s->queue = (struct weir__buffer){ 0 };
    end_multi(s);
    run_queue(call->conn, &queue, n);
    weir__buffer_free(&queue);
}

static void watch(struct weir__resp_call *call)
{
    weir__reply_simple(call->conn, "OK");
}

/* --------------------------------------------------------------- the table ---- */

static void command(struct weir__resp_call *call);
static void help(struct weir__resp_call *call);

#define NONE  WEIR__ROLE_NONE
#define CHECK WEIR__ROLE_CHECK

enum { CHECK_ROW = 25 }; /* what comes by the million is not searched for */

/* In the order of their names: weir__resp_find searches by halves.  The admin's commands are in
 * admin.h's rows. */
static const struct weir__resp_row rows[] = {
    { "AUTH", -2, NONE, "[user] token", "show the check or admin token", auth },
    { "CL.THROTTLE", -5, CHECK, "key max_burst count period [quantity]",
      "ask a key by a limit that comes with the ask, as redis-cell does", weir__resp_throttle },
    { "CLIENT", -2, NONE, "SETNAME|GETNAME|SETINFO|ID|INFO|LIST ...",
      "what clients tell of themselves", client },
    { "COMMAND", -1, CHECK, "[COUNT | LIST | INFO name ... | DOCS name ...]",
      "the commands there are", command },
    { "CONFIG", -2, CHECK, "GET name ...", "for clients that ask; there is nothing to get",
      config },
    { "DBSIZE", 1, CHECK, "", "how many keys the table holds", dbsize },
    { "DEL", -2, CHECK, "key ...", "forget what keys of CL.THROTTLE have used", weir__resp_del },
    { "DISCARD", 1, CHECK, "", "drop the commands since MULTI", discard },
    { "ECHO", 2, CHECK, "text", "say it back", echo },
    { "EXEC", 1, CHECK, "", "run the commands since MULTI", exec },
    { "HELLO", -1, NONE, "[version [AUTH user token] [SETNAME name]]", "choose RESP2 or RESP3",
      hello },
    { "INFO", -1, CHECK, "[section ...]", "figures, as Redis prints them", info },
    { "MULTI", 1, CHECK, "", "keep the commands that follow until EXEC", multi },
    { "PING", -1, CHECK, "[text]", "is somebody there?", ping },
    { "PSUBSCRIBE", -2, WEIR__ROLE_ADMIN, "pattern ...", "be told of events: weir.events.*",
      weir__resp_subscribe },
    { "PUNSUBSCRIBE", -1, CHECK, "[pattern ...]", "no more", weir__resp_unsubscribe },
    { "QUIT", -1, NONE, "", "close the connection", quit },
    { "RESET", 1, NONE, "", "make the connection as new", reset },
    { "SELECT", 2, CHECK, "0", "for clients that ask; there is only 0", select_database },
    { "SUBSCRIBE", -2, WEIR__ROLE_ADMIN, "channel ...",
      "be told of events: weir.events, weir.events.ban ...", weir__resp_subscribe },
    { "TIME", 1, CHECK, "", "the time that decisions are made at", tell_time },
    { "UNLINK", -2, CHECK, "key ...", "as DEL", weir__resp_del },
    { "UNSUBSCRIBE", -1, CHECK, "[channel ...]", "no more", weir__resp_unsubscribe },
    { "UNWATCH", 1, CHECK, "", "for clients that ask", watch },
    { "WATCH", -2, CHECK, "key ...", "for clients that ask; nothing is watched", watch },
    [CHECK_ROW] = { "WEIR.CHECK", -1, CHECK,
                    "[COST n] [WAIT ms] [ID id] [ATTRIBUTES] name value [name value ...]",
                    "decide a request by the rules", weir__resp_check },
    { "WEIR.CLOCK", -1, WEIR__ROLE_ADMIN, "[ns]",
      "the time; set it, if the server was started with --test-clock", weir__resp_clock },
    { "WEIR.ENTER", -1, CHECK,
      "[GUARD name] [COST n] [PRIORITY n] [CLASS name] [USER key] [WAIT ms] [BOUND] [ATTRIBUTES] "
      "[name value ...]",
      "begin work: by the guards and limits of the rules, or by one guard", weir__resp_enter },
    { "WEIR.EXIT", -3, CHECK, "permit ok|error|timeout|dropped|ignored [TOOK ms]",
      "the work is done: give the permit back", weir__resp_exit },
    { "WEIR.FORGET", -3, CHECK, "key limit [NAME name]", "forget what a key of WEIR.TAKE has used",
      weir__resp_forget },
    { "WEIR.GIVE", -3, CHECK, "key limit [COST n] [NAME name]", "give back units that were taken",
      weir__resp_give },
    { "WEIR.HELP", -1, CHECK, "[name]", "what the commands are for", help },
    { "WEIR.PEEK", -3, CHECK, "key limit [COST n] [WAIT ms] [NAME name] [NS]",
      "as WEIR.TAKE, and nothing is taken", weir__resp_peek },
    { "WEIR.RENEW", 2, CHECK, "permit", "the work goes on: the lease begins anew",
      weir__resp_renew },
    { "WEIR.RESERVE", -3, CHECK, "key limit [COST n] [WAIT ms] [LIFETIME ms] [NAME name] [NS]",
      "take an estimate, to be settled", weir__resp_reserve },
    { "WEIR.SETTLE", 3, CHECK, "reservation cost", "say what a reservation has really cost",
      weir__resp_settle },
    { "WEIR.TAKE", -3, CHECK, "key limit [COST n] [WAIT ms] [NAME name] [NS]",
      "ask a key by any limit: 'sliding-window 300/60'", weir__resp_take },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int compare(struct weir__resp_arg word, const char *name)
{
    for (size_t i = 0; i < word.len; i++) {
        int c = word.bytes[i] >= 'a' && word.bytes[i] <= 'z' ? word.bytes[i] - 32
                                                             : (unsigned char)word.bytes[i];
        if (!name[i]) /* also a word that goes on behind a NUL */
            return 1;
        if (c != (unsigned char)name[i])
            return c - (unsigned char)name[i];
    }
    return name[word.len] ? -1 : 0;
}

/* What stands for the rows of admin.h, one for each role; the command itself is found again by its
 * name. */
static const struct weir__resp_row *admin_row(struct weir__resp_arg word)
{
    static const struct weir__resp_row any[] = {
        { "WEIR.*", -1, NONE, "", "", weir__resp_admin },
        { "WEIR.*", -1, CHECK, "", "", weir__resp_admin },
        { "WEIR.*", -1, WEIR__ROLE_ADMIN, "", "", weir__resp_admin },
    };
    const struct weir__admin *row = weir__admin_by_command(word.bytes, word.len);
    return row ? &any[row->role] : NULL;
}

const struct weir__resp_row *weir__resp_find(struct weir__resp_arg word)
{
    static const char check[] = "WEIR.CHECK";
    if (word.len == sizeof(check) - 1 && memcmp(word.bytes, check, word.len) == 0)
        return &rows[CHECK_ROW];
    size_t low = 0, high = ROWS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(word, rows[middle].name);
        if (order == 0)
            return &rows[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return admin_row(word);
}

/* ---------------------------------------------------- telling the table ---- */

/* One command, from either table. */
struct told {
    const char *name, *summary;
    char arguments[256];
    int arity;
    enum weir__role role;
    bool key;
};

static size_t count_all(void)
{
    size_t n = ROWS;
    for (const struct weir__admin *a = weir__admin_rows; a->command; a++)
        n++;
    return n;
}

static void print_arguments(const struct weir__admin *a, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (const struct weir__param *p = a->params; p->name && n < size; p++)
        n += (size_t)snprintf(out + n, size - n, p->optional ? "%s[%s]" : "%s%s", n ? " " : "",
                              p->name);
    if (a->rest == WEIR__REST_ATTRIBUTES && n < size)
        snprintf(out + n, size - n, "%sattribute value [attribute value ...]", n ? " " : "");
    if (a->rest == WEIR__REST_ENTRIES && n < size)
        snprintf(out + n, size - n, "%sentry [entry ...]", n ? " " : "");
}

static struct told tell_admin(const struct weir__admin *a)
{
    struct told t = { .name = a->command, .summary = a->summary, .arity = -1, .role = a->role };
    int needed = 1;
    for (const struct weir__param *p = a->params; p->name; p++)
        needed += !p->optional;
    t.arity = -needed;
    print_arguments(a, t.arguments, sizeof(t.arguments));
    return t;
}

static struct told tell(size_t i)
{
    if (i >= ROWS)
        return tell_admin(&weir__admin_rows[i - ROWS]);
    struct told t = { .name = rows[i].name,
                      .summary = rows[i].summary,
                      .arity = rows[i].arity,
                      .role = rows[i].role };
    snprintf(t.arguments, sizeof(t.arguments), "%s", rows[i].arguments);
    t.key = strncmp(t.arguments, "key", 3) == 0;
    return t;
}

static bool is_named(const struct told *t, struct weir__resp_arg word)
{
    return compare(word, t->name) == 0;
}

/* As COMMAND tells it: name, arity, flags, first key, last key, step, categories, tips, key
 * specifications, subcommands. */
static void reply_command(struct weir__conn *conn, const struct told *t)
{
    weir__reply_header(conn, '*', 10);
    weir__reply_text(conn, t->name);
    weir__reply_integer(conn, t->arity);
    weir__reply_header(conn, conn->resp == 3 ? '~' : '*', 2);
    weir__reply_simple(conn, t->key ? "write" : "readonly");
    weir__reply_simple(conn, t->role == WEIR__ROLE_ADMIN ? "admin" : "fast");
    weir__reply_integer(conn, t->key);
    weir__reply_integer(conn, t->key);
    weir__reply_integer(conn, t->key);
    for (int i = 0; i < 4; i++)
        weir__reply_header(conn, '*', 0);
}

static void reply_docs(struct weir__conn *conn, const struct told *t)
{
    weir__reply_text(conn, t->name);
    weir__reply_map(conn, t->arguments[0] ? 4 : 3);
    weir__reply_text(conn, "summary");
    weir__reply_text(conn, t->summary);
    weir__reply_text(conn, "since");
    weir__reply_text(conn, "0.1.0");
    weir__reply_text(conn, "group");
    weir__reply_text(conn, "generic");
    if (t->arguments[0] == '\0')
        return;
    weir__reply_text(conn, "arguments"); /* all as one: redis-cli shows its name, and takes words
                                            off it as they are typed */
    weir__reply_header(conn, '*', 1);
    weir__reply_map(conn, 2);
    weir__reply_text(conn, "name");
    weir__reply_text(conn, t->arguments);
    weir__reply_text(conn, "type");
    weir__reply_text(conn, "string");
}

static bool is_wanted(const struct weir__resp_call *call, const struct told *t)
{
    bool wanted = call->n == 2;
    for (size_t i = 2; i < call->n; i++)
        wanted |= is_named(t, call->args[i]);
    return wanted;
}

static void command_docs(struct weir__resp_call *call)
{
    int64_t n = 0;
    for (size_t i = 0; i < count_all(); i++) {
        struct told t = tell(i);
        n += is_wanted(call, &t);
    }
    weir__reply_map(call->conn, n);
    for (size_t i = 0; i < count_all(); i++) {
        struct told t = tell(i);
        if (is_wanted(call, &t))
            reply_docs(call->conn, &t);
    }
}

/* In the order asked for, null for what there is not. */
static void command_info(struct weir__resp_call *call)
{
    weir__reply_header(call->conn, '*', (int64_t)call->n - 2);
    for (size_t a = 2; a < call->n; a++) {
        bool found = false;
        for (size_t i = 0; !found && i < count_all(); i++) {
            struct told t = tell(i);
            if ((found = is_named(&t, call->args[a])))
                reply_command(call->conn, &t);
        }
        if (!found && call->conn->resp == 3)
            weir__reply_text(call->conn, NULL);
        else if (!found)
            weir__reply_header(call->conn, '*', -1);
    }
}

static void command_list(struct weir__resp_call *call)
{
    weir__reply_header(call->conn, '*', (int64_t)count_all());
    for (size_t i = 0; i < count_all(); i++)
        weir__reply_text(call->conn, tell(i).name);
}

static void command(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    if (call->n == 1 || (call->n == 2 && weir__resp_is(call->args[1], "INFO"))) {
        weir__reply_header(conn, '*', (int64_t)count_all());
        for (size_t i = 0; i < count_all(); i++) {
            struct told t = tell(i);
            reply_command(conn, &t);
        }
    } else if (weir__resp_is(call->args[1], "COUNT")) {
        weir__reply_integer(conn, (int64_t)count_all());
    } else if (weir__resp_is(call->args[1], "LIST")) {
        command_list(call);
    } else if (weir__resp_is(call->args[1], "DOCS")) {
        command_docs(call);
    } else if (weir__resp_is(call->args[1], "INFO")) {
        command_info(call);
    } else {
        weir__reply_error(
            conn, "ERR unknown subcommand of COMMAND: there are COUNT, LIST, INFO and DOCS");
    }
}

/* WEIR.HELP: a line each; WEIR.HELP name: just that one. */
static void help(struct weir__resp_call *call)
{
    int64_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count_all(); i++) {
            struct told t = tell(i);
            char line[512];
            if (call->n > 1 && !is_named(&t, call->args[1]))
                continue;
            n += pass == 0;
            int len =
                snprintf(line, sizeof(line), "%s%s%s -- %s%s", t.name, t.arguments[0] ? " " : "",
                         t.arguments, t.summary, t.role == WEIR__ROLE_ADMIN ? " (admin)" : "");
            if (pass == 1)
                weir__reply_bulk(call->conn, line,
                                 len < 0                      ? 0
                                 : (size_t)len < sizeof(line) ? (size_t)len
                                                              : sizeof(line) - 1);
        }
        if (pass == 0)
            weir__reply_header(call->conn, '*', n);
    }
}
