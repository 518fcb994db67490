/* announce.c -- what the server says to the readers of its terminal or journal, and to its
 * supervisor. */
#include "server/serve/announce.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/explain.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/table-file.h"
#include "server/describe/rules-doubts.h"
#include "server/serve/fleet.h"
#include "table/file.h"
#include "weir-admin.h"
#include "weir-fleet.h"

/* systemd's protocol: a datagram to the socket that NOTIFY_SOCKET names. */
void weir__tell_supervisor(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, len) < 0)
        weir__complain("serve", "the supervisor could not be told: %s", strerror(errno));
    close(fd);
}

/* ----------------------------------------------------------------- rules ---- */

#define DOUBTS_MAX 100

struct doubts {
    const char *name;
    struct weir__buffer json;
    size_t n;
};

static void tell_doubt(void *context, const struct weir_problem *p)
{
    struct doubts *doubts = context;

    if (doubts->n++ >= DOUBTS_MAX)
        return;
    weir__problem_json(&doubts->json, p, false);
    if (p->line > 0)
        weir__complain("serve", "%s:%d:%d: warning: %s", doubts->name, p->line, p->column, p->text);
    else
        weir__complain("serve", "%s: warning: %s", doubts->name, p->text);
}

struct weir__buffer weir__announce_doubts(const char *text, size_t len,
                                          const struct weir_rules_options *options)
{
    struct doubts doubts = { .name = options->name };
    struct weir__draft *draft = NULL;

    weir__buffer_open(&doubts.json, NULL, '[');
    if (weir__draft_read(&draft, text, len, options, NULL) == WEIR_OK)
        weir__rules_doubts(draft, tell_doubt, &doubts);
    weir__draft_destroy(draft);
    if (doubts.n > DOUBTS_MAX)
        weir__complain("serve", "%s: %zu more warnings: weir rules check %s", options->name,
                       doubts.n - DOUBTS_MAX, options->name);
    weir__buffer_close(&doubts.json, "]");
    return doubts.json;
}

struct counts {
    char text[3 * WEIR__HUMAN];
};

/* "1 rule, 2 limits, 0 guards" */
static struct counts counts_of(const struct weir__in_force_info *info)
{
    char rules[WEIR__HUMAN], limits[WEIR__HUMAN], guards[WEIR__HUMAN];
    struct counts c;

    snprintf(c.text, sizeof(c.text), "%s, %s, %s",
             weir__human_counted(rules, (int64_t)info->rules, "rule"),
             weir__human_counted(limits, (int64_t)info->limits, "limit"),
             weir__human_counted(guards, (int64_t)info->guards, "guard"));
    return c;
}

void weir__announce_reload(struct weir__in_force *in_force)
{
    struct weir__in_force_info info;

    weir__in_force_info(in_force, &info);
    if (info.problem[0])
        weir__complain("serve", "the rules stay as they are: %s", info.problem);
    else
        weir__complain("serve", "%s is in force: %s, %s", info.source, counts_of(&info).text,
                       info.hash);
}

/* ----------------------------------------------------------------- ready ---- */

/* Switches by hand outlive the server: its operator must not think that rules are enforced which
 * are not. */
static void print_switches(const struct weir__server *server)
{
    struct weir_modes all;
    struct weir_rule_info rule;

    weir_modes_get(server->engine, &all);
    if (all.by_hand != WEIR_AS_WRITTEN)
        printf("  mode   %s for all rules, by hand\n", weir_mode_name(all.by_hand));
    for (int64_t at = 0; weir_rule_next(server->engine, &at, &rule);)
        if (rule.switched != WEIR_AS_WRITTEN)
            printf("  mode   %s for %s, by hand\n", weir_mode_name(rule.switched), rule.name);
}

static void print_fleet(const struct weir__server *server)
{
    struct weir_fleet_info info;

    if (!server->fleet)
        return;
    weir_fleet_look(server->fleet, &info);
    printf("  fleet  %s, as node %s, with %s\n", info.name, info.node,
           weir__node_follows(server) ? "the fleet's rules" : "rules of its own (--rules)");
}

static void print_table(const struct weir__server *server)
{
    const struct weir__settings *s = server->settings;
    struct weir_table_stats stats;

    if (s->memory) {
        printf("  table  in memory: gone when the server ends\n");
        return;
    }
    char disk[WEIR__HUMAN];
    struct weir__pids users = weir__table_users(s->table, false);
    weir__human_bytes(disk, sizeof(disk), (int64_t)weir__table_disk_bytes(s->table));
    weir_table_stats(server->table, -1, &stats);
    printf("  table  %s (%" PRId64 " of %" PRId64 " slots used, %s on disk%s%s)\n", s->table,
           stats.keys, stats.slots, disk, *users.text ? "; also used by pid" : "", users.text);
}

static void print_ready(const struct weir__server *server, const struct weir__listen *listen)
{
    const struct weir__settings *s = server->settings;
    const struct weir__listen_address *http = NULL, *resp = NULL;
    struct weir__in_force_info info;

    weir__in_force_info(server->in_force, &info);
    printf("weir %s serves, with %zu thread%s\n", weir_version(), server->n_loops,
           server->n_loops == 1 ? "" : "s");
    for (size_t i = 0; i < listen->n_addresses; i++) {
        const struct weir__listen_address *a = &listen->addresses[i];
        printf("  %-6s %s%s\n", weir__door_names[a->door], a->text,
               server->tls && !a->is_unix ? " (TLS)" : "");
        resp = a->door == WEIR__DOOR_RESP && !resp && !a->is_unix ? a : resp;
        http = a->door == WEIR__DOOR_HTTP && !http && !a->is_unix ? a : http;
    }
    printf("  rules  %s", info.hash[0] ? info.source : "none");
    if (info.hash[0])
        printf(" (%s, %s)", counts_of(&info).text, info.hash);
    printf("\n");
    print_switches(server);
    print_fleet(server);
    print_table(server);
    if (resp && http && !server->tls && !*s->check_token)
        printf("try\n  redis-cli -p %d CL.THROTTLE ann 15 30 60\n"
               "  curl -i http://%s/v1/check -d "
               "'{\"attributes\":{\"ip\":\"192.0.2.7\",\"uri\":\"/login\",\"method\":\"POST\"}}'\n"
               "  %s top --server %s\n",
               resp->port, http->text, program_invocation_name, http->text);
    fflush(stdout);
}

/* Anybody on the way can read the tokens of such clients. */
static void warn_of_plain_tokens(const struct weir__listen *listen)
{
    for (size_t i = 0; i < listen->n_addresses; i++)
        if (!listen->addresses[i].loopback)
            weir__complain("serve",
                           "warning: tokens travel unencrypted to %s: set tls-certificate and "
                           "tls-key, or listen on the loopback behind a proxy with TLS",
                           listen->addresses[i].text);
}

/* Whether a place that a setting names is one of the sockets that were handed over.  A name, or
 * port 0, may stand for any. */
static bool is_open(const struct weir__listen *listen, enum weir__door door, const char *place,
                    size_t len)
{
    const char *port = memrchr(place, ':', len);
    size_t port_len = port ? len - (size_t)(port - place) : 0;
    bool name = port && !memchr(place, '/', len) && strspn(place, "0123456789.:[]*") < len;

    for (size_t i = 0; i < listen->n_addresses; i++) {
        const struct weir__listen_address *a = &listen->addresses[i];
        const char *its = strrchr(a->text, ':');
        bool same_port = its && strlen(its) == port_len && memcmp(its, port, port_len) == 0;
        bool any = strncmp(a->text, "0.0.0.0:", 8) == 0 || strncmp(a->text, "[::]:", 5) == 0;
        if (a->door == door &&
            ((strlen(a->text) == len && memcmp(a->text, place, len) == 0) ||
             (same_port && (name || (any && *place == '*'))) || (port_len == 2 && port[1] == '0')))
            return true;
    }
    return false;
}

/* A setting that was written down, and counts for nothing. */
static void warn_of_other_sockets(const struct weir__listen *listen, enum weir__door door,
                                  const char *text)
{
    const char *handed = NULL;

    for (size_t i = 0; i < listen->n_addresses && !handed; i++)
        if (listen->addresses[i].door == door && listen->addresses[i].inherited)
            handed = listen->addresses[i].text;
    if (!handed || strcmp(text, weir__settings_rows[door].standard) == 0)
        return;
    for (const char *at = text; *at;) {
        at += strspn(at, ", ");
        size_t len = strcspn(at, ", ");
        if (len > 0 && !is_open(listen, door, at, len))
            weir__complain("serve",
                           "warning: %s says %.*s, which counts for nothing: this server was given "
                           "its sockets (%s), by systemd or by the server before it; "
                           "ListenStream= in the .socket unit says where",
                           weir__door_names[door], (int)len, at, handed);
        at += len;
    }
}

static void warn_of_no_fleet(const struct weir__server *server)
{
    size_t n;
    const char *rule = weir__lonely_rule(server->engine, &n);
    const struct weir__settings *s = server->settings;
    const char *set = *s->fleet_node        ? "fleet-node"
                      : *s->fleet_name      ? "fleet-name"
                      : s->fleet_nodes != 0 ? "fleet-nodes"
                                            : NULL;

    if (set)
        weir__complain("serve",
                       "warning: %s is set, and fleet, the URL of a Redis, is not: this server is "
                       "in no fleet",
                       set);
    if (rule)
        weir__complain(
            "serve",
            "warning: %zu of the rules (%s%s) %s across the fleet, and this server is in "
            "none: the whole limit counts on this host alone",
            n, rule, n > 1 ? ", ..." : "", n > 1 ? "are" : "is");
}

void weir__announce_ready(const struct weir__server *server, const struct weir__listen *listen)
{
    warn_of_other_sockets(listen, WEIR__DOOR_RESP, server->settings->resp);
    warn_of_other_sockets(listen, WEIR__DOOR_HTTP, server->settings->http);
    if (!server->tls)
        warn_of_plain_tokens(listen);
    if (!server->fleet)
        warn_of_no_fleet(server);
    print_ready(server, listen);
    weir__tell_supervisor("READY=1");
}
