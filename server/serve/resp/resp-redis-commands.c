/* resp-redis-commands.c -- commands that every Redis client expects of a server.
 *
 * Weir keeps no data for clients, so Redis's commands for data are not here.  Those are here that
 * clients send to introduce themselves, to keep a connection alive, to look a server over or to
 * wrap a pipeline (MULTI ... EXEC).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/human-numbers.h"
#include "server/serve/decide/bound-permits.h"
#include "server/serve/net/conn.h"
#include "server/serve/resp/resp.h"
#include "table/file.h"

#define ARG(call, i) (call)->args[i].bytes, (call)->args[i].len

/* --------------------------------------------------------- introductions ---- */

void weir__resp_ping(struct weir__resp_call *call)
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

void weir__resp_echo(struct weir__resp_call *call)
{
    weir__reply_bulk(call->conn, ARG(call, 1));
}

/* The last argument is the secret; a user's name before it does not matter. */
static bool authenticate(struct weir__conn *conn, struct weir__text secret)
{
    enum weir__role role = weir__auth_role(conn->loop->server->settings, secret.bytes, secret.len);
    weir_time wait = weir__auth_judge(conn, role);

    if (wait > 0)
        weir__reply_error(
            conn, "WRONGPASS too many wrong tokens from this address: try again in %" PRId64 " s",
            weir__in_unit(wait, WEIR_SECOND));
    else if (role == WEIR__ROLE_NONE)
        weir__reply_error(conn, "WRONGPASS this token is not known");
    else
        conn->role = role;
    return wait == 0 && role != WEIR__ROLE_NONE;
}

/* AUTH [user] token */
void weir__resp_auth(struct weir__resp_call *call)
{
    if (call->n > 3)
        weir__resp_say_usage(call);
    else if (!weir__auth_has_tokens(call->conn->loop->server->settings))
        weir__reply_error(call->conn, "ERR AUTH was called, but the server has no token: every "
                                      "client may do everything");
    else if (authenticate(call->conn, call->args[call->n - 1]))
        weir__reply_simple(call->conn, "OK");
}

static void set_name(struct weir__conn *conn, struct weir__text name)
{
    struct weir__resp_session *s = weir__resp_session(conn);

    if (s)
        snprintf(s->name, sizeof(s->name), "%.*s", (int)(name.len > 63 ? 63 : name.len),
                 name.bytes);
}

static void reply_pair(struct weir__conn *conn, const char *name, const char *text)
{
    weir__reply_text(conn, name);
    weir__reply_text(conn, text);
}

static void reply_hello(struct weir__conn *conn)
{
    weir__reply_map(conn, 7);
    reply_pair(conn, "server", "weir");
    reply_pair(conn, "version",
               "7.0.0"); /* of the Redis whose manners these are: clients compare it */
    weir__reply_text(conn, "proto");
    weir__reply_integer(conn, conn->resp);
    weir__reply_text(conn, "id");
    weir__reply_integer(conn, (int64_t)conn->id);
    reply_pair(conn, "mode", "standalone");
    reply_pair(conn, "role", "master");
    weir__reply_text(conn, "modules");
    weir__reply_header(conn, '*', 0);
}

/* HELLO [version [AUTH user token] [SETNAME name]] */
void weir__resp_hello(struct weir__resp_call *call)
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

void weir__resp_quit(struct weir__resp_call *call)
{
    weir__reply_simple(call->conn, "OK");
    weir__conn_end(call->conn);
}

void weir__resp_reset(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;

    if (weir__resp.close)
        weir__resp.close(conn);
    weir__bound_release(conn);
    conn->subscribed = false;
    conn->resp = 2;
    conn->role = conn->first_role;
    weir__reply_simple(conn, "RESET");
}

void weir__resp_select(struct weir__resp_call *call)
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
                 weir__role_name(conn->role));

    weir__reply_bulk(conn, text,
                     n < 0                      ? 0
                     : (size_t)n < sizeof(text) ? (size_t)n
                                                : sizeof(text) - 1);
}

void weir__resp_client(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__text what = call->args[1];
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

/* Load generators and monitors ask CONFIG GET: there is nothing to get. */
void weir__resp_config(struct weir__resp_call *call)
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

void weir__resp_info(struct weir__resp_call *call)
{
    struct weir__server *server = call->conn->loop->server;
    struct weir__buffer text = { 0 };
    struct weir__in_force_info in_force;
    struct weir_table_stats stats;
    weir_time now = weir__loop_now(call->conn->loop);

    weir__in_force_info(server->in_force, &in_force);
    weir__table_figures(server->table, &stats);
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
                        in_force.hash, in_force.source, in_force.version, in_force.rules,
                        stats.keys, stats.slots, stats.evicted_early);
    if (text.failed)
        weir__reply_error(call->conn, "ERR no memory");
    else
        weir__reply_bulk(call->conn, text.bytes, text.len);
    weir__buffer_free(&text);
}

void weir__resp_time(struct weir__resp_call *call)
{
    char text[32];
    const struct weir__loop *loop = call->conn->loop;
    weir_time now = weir_table_real(loop->server->table, weir__loop_now(call->conn->loop));

    weir__reply_header(call->conn, '*', 2);
    snprintf(text, sizeof(text), "%" PRId64, now / WEIR_SECOND);
    weir__reply_text(call->conn, text);
    snprintf(text, sizeof(text), "%" PRId64, now % WEIR_SECOND / WEIR_MICROSECOND);
    weir__reply_text(call->conn, text);
}

void weir__resp_dbsize(struct weir__resp_call *call)
{
    struct weir_table_stats stats;

    weir__table_figures(call->conn->loop->server->table, &stats);
    weir__reply_integer(call->conn, stats.keys);
}

/* ------------------------------------------------------ telling the rows ---- */

/* The next row with a command, from v on; NULL: there are no more. */
static const struct weir__verb *next(const struct weir__verb *v)
{
    while (v->summary && !v->command)
        v++;
    return v->summary ? v : NULL;
}

static int64_t count_all(void)
{
    int64_t n = 0;

    for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
        n++;
    return n;
}

static bool is_named(const struct weir__verb *v, struct weir__text word)
{
    return weir__verb_by_command(word.bytes, word.len) == v;
}

/* As COMMAND tells it: name, arity, flags, first key, last key, step, categories, tips, key
 * specifications, subcommands. */
static void reply_command(struct weir__conn *conn, const struct weir__verb *v)
{
    char usage[256];
    bool key = strncmp(weir__verb_usage(v, usage, sizeof(usage)), "key", 3) == 0;

    weir__reply_header(conn, '*', 10);
    weir__reply_text(conn, v->command);
    weir__reply_integer(conn, weir__verb_arity(v));
    weir__reply_header(conn, conn->resp == 3 ? '~' : '*', 2);
    weir__reply_simple(conn, key ? "write" : "readonly");
    weir__reply_simple(conn, v->role == WEIR__ROLE_ADMIN ? "admin" : "fast");
    weir__reply_integer(conn, key);
    weir__reply_integer(conn, key);
    weir__reply_integer(conn, key);
    for (int i = 0; i < 4; i++)
        weir__reply_header(conn, '*', 0);
}

static void reply_docs(struct weir__conn *conn, const struct weir__verb *v)
{
    char usage[256];

    weir__verb_usage(v, usage, sizeof(usage));
    weir__reply_text(conn, v->command);
    weir__reply_map(conn, usage[0] ? 4 : 3);
    reply_pair(conn, "summary", v->summary);
    reply_pair(conn, "since", "0.1.0");
    reply_pair(conn, "group", "generic");
    if (usage[0] == '\0')
        return;
    weir__reply_text(conn, "arguments"); /* all as one: redis-cli shows its name, and takes words
                                            off it as they are typed */
    weir__reply_header(conn, '*', 1);
    weir__reply_map(conn, 2);
    reply_pair(conn, "name", usage);
    reply_pair(conn, "type", "string");
}

static bool is_wanted(const struct weir__resp_call *call, const struct weir__verb *v)
{
    bool wanted = call->n == 2;

    for (size_t i = 2; i < call->n; i++)
        wanted |= is_named(v, call->args[i]);
    return wanted;
}

static void command_docs(struct weir__resp_call *call)
{
    int64_t n = 0;

    for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
        n += is_wanted(call, v);
    weir__reply_map(call->conn, n);
    for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
        if (is_wanted(call, v))
            reply_docs(call->conn, v);
}

/* In the order asked for, null for unknown names. */
static void command_info(struct weir__resp_call *call)
{
    weir__reply_header(call->conn, '*', (int64_t)call->n - 2);
    for (size_t a = 2; a < call->n; a++) {
        const struct weir__verb *v = weir__verb_by_command(call->args[a].bytes, call->args[a].len);
        if (v)
            reply_command(call->conn, v);
        else if (call->conn->resp == 3)
            weir__reply_text(call->conn, NULL);
        else
            weir__reply_header(call->conn, '*', -1);
    }
}

void weir__resp_command_table(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__text what = call->n > 1 ? call->args[1] : (struct weir__text){ "INFO", 4 };

    if (weir__resp_is(what, "INFO") && call->n <= 2) {
        weir__reply_header(conn, '*', count_all());
        for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
            reply_command(conn, v);
    } else if (weir__resp_is(what, "COUNT")) {
        weir__reply_integer(conn, count_all());
    } else if (weir__resp_is(what, "LIST")) {
        weir__reply_header(conn, '*', count_all());
        for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
            weir__reply_text(conn, v->command);
    } else if (weir__resp_is(what, "DOCS")) {
        command_docs(call);
    } else if (weir__resp_is(what, "INFO")) {
        command_info(call);
    } else {
        weir__reply_error(
            conn, "ERR unknown subcommand of COMMAND: there are COUNT, LIST, INFO and DOCS");
    }
}

/* WEIR.HELP: a line each; WEIR.HELP name: just that one. */
void weir__resp_help(struct weir__resp_call *call)
{
    int64_t n = 0;

    for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1))
        n += call->n == 1 || is_named(v, call->args[1]);
    weir__reply_header(call->conn, '*', n);
    for (const struct weir__verb *v = next(weir__verbs); v; v = next(v + 1)) {
        char line[640], usage[256];
        if (call->n > 1 && !is_named(v, call->args[1]))
            continue;
        weir__verb_usage(v, usage, sizeof(usage));
        snprintf(line, sizeof(line), "%s%s%s -- %s%s", v->command, usage[0] ? " " : "", usage,
                 v->summary,
                 v->role == WEIR__ROLE_ADMIN   ? " (admin)"
                 : v->role == WEIR__ROLE_CHECK ? ""
                                               : " (without a token)");
        weir__reply_text(call->conn, line);
    }
}
