/* fleet.c -- this server as a node of a fleet. */
#include "server/serve/fleet.h"

#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/complain.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/net/mailbox.h"
#include "weir-fleet.h"

/* What was told last. */
struct weir__node {
    bool told, alone, named, denied, bare;
    int64_t version, refused;
    char why[160];        /* it is alone */
    weir_time change_due; /* of a line about another reason */
    weir_time reached;    /* Redis answers since then; 0: it does not */
};

bool weir__node_follows(const struct weir__server *server)
{
    return server->fleet != NULL && *server->settings->rules == '\0';
}

bool weir__node_lacks_rules(const struct weir__server *server)
{
    struct weir_fleet_info info;

    if (!weir__node_follows(server))
        return false;
    weir_fleet_look(server->fleet, &info);
    return info.version == 0;
}

/* In a thread of the fleet. */
static int apply(void *context, const char *text, size_t len, struct weir_error *error)
{
    struct weir__server *server = context;

    return weir__in_force_follow(server->in_force, text, len, weir__server_now(server), error);
}

/* In the agent's thread: late answers are in mailboxes. */
static void wake_loops(void *context)
{
    struct weir__server *server = context;

    for (size_t i = 0; i < server->n_loops; i++)
        weir__mailbox_wake(&server->loops[i]);
}

int weir__node_join(struct weir__server *server, struct weir_error *error)
{
    const struct weir__settings *s = server->settings;
    struct weir_fleet_options options = { .name = *s->fleet_name ? s->fleet_name : NULL,
                                          .node = *s->fleet_node ? s->fleet_node : NULL,
                                          .weight = s->fleet_weight,
                                          .nodes = s->fleet_nodes };
    char *table = s->memory ? NULL : strdup(s->table);

    if (*s->fleet == '\0') {
        free(table);
        return WEIR_OK;
    }
    if (*s->rules == '\0') {
        options.apply = apply;
        options.context = server;
        options.copies = table ? dirname(table) : NULL;
    }
    server->node = calloc(1, sizeof(*server->node));
    int code = server->node
                   ? weir_fleet_join(&server->fleet, server->engine, s->fleet, &options, error)
                   : weir__fail(error, WEIR_NO_MEMORY, "no memory");
    free(table);
    if (code == WEIR_OK)
        weir__agent_on_answered(server->fleet, wake_loops, weir__units_wait_freed, server);
    return code;
}

void weir__node_leave(struct weir__server *server)
{
    weir_fleet_leave(server->fleet);
    free(server->node);
}

/* ---------------------------------------------------------------- telling ---- */

/* While Redis is away its reason may go to and fro. */
#define CHANGES      4
#define CHANGE_EVERY (60 * WEIR_SECOND)

static void tell_change(struct weir__server *server, const char *fleet, const char *why,
                        weir_time now)
{
    struct weir__node *node = server->node;

    if (!*why || strcmp(why, node->why) == 0 ||
        node->change_due > now + (CHANGES - 1) * CHANGE_EVERY)
        return;
    node->change_due = (node->change_due > now ? node->change_due : now) + CHANGE_EVERY;
    snprintf(node->why, sizeof(node->why), "%s", why);
    weir__complain("serve", "fleet %s: Redis %s now: %s", fleet, weir__redis_trouble(why), why);
}

/* At the start Redis was not asked yet. */
static void tell_alone(struct weir__server *server, const struct weir_fleet_info *info,
                       weir_time now)
{
    struct weir__node *node = server->node;
    const char *why = !info->connected ? info->why
                      : info->agent    ? "no beat was answered in time"
                                       : "the host's agent has no answer";
    bool is_back = info->agent && info->connected; /* a second at most, until all hosts are known */
    struct weir__event_facts facts = { .source = info->name,
                                       .state = info->alone ? "alone" : "connected",
                                       .text = info->alone ? why : NULL };

    if (node->told && node->alone && info->alone && !is_back)
        tell_change(server, info->name, why, now);
    if (node->told ? node->alone == info->alone
                   : info->connected && (info->alone || (info->agent && info->members == 0)))
        return;
    if (info->alone)
        weir__complain("serve", "fleet %s: Redis %s: %s; rules go by when_alone%s", info->name,
                       weir__redis_trouble(why), why,
                       weir__node_lacks_rules(server)
                           ? "; there are no rules yet, not even a copy: everything passes, and "
                             "/readyz says 503"
                       : info->part > 0 ? ""
                                        : "; share lets nothing pass until Redis has told this "
                                          "node's part (with --fleet-nodes N it begins with 1/N)");
    if (info->alone)
        snprintf(node->why, sizeof(node->why), "%s", why);
    else if (node->told)
        weir__complain("serve", "fleet %s: Redis answers again", info->name);
    weir__events_emit(server->events, WEIR__EVENT_FLEET, now, &facts);
    node->told = true;
    node->alone = info->alone;
}

/* Redis answers, and something is wrong all the same. */
static void tell_name(struct weir__server *server, const struct weir_fleet_info *info)
{
    bool wrong = info->connected && info->why[0] && !info->draws_refused;

    if (wrong && !server->node->named)
        weir__complain("serve", "fleet %s: %s: each node needs a name of its own (--fleet-node)",
                       info->name, info->why);
    server->node->named = wrong;
}

static void tell_draws(struct weir__server *server, const struct weir_fleet_info *info)
{
    if (info->draws_refused && !server->node->denied)
        weir__complain("serve", "fleet %s: Redis answers, but %s; rules go by when_alone",
                       info->name, info->why);
    server->node->denied = info->draws_refused;
}

static void tell_rules(struct weir__server *server, const struct weir_fleet_info *info)
{
    struct weir__node *node = server->node;

    if (info->version != node->version && info->version > 0)
        weir__complain("serve", "fleet %s: version %" PRId64 " of the rules is in force",
                       info->name, info->version);
    if (info->refused != node->refused && info->refused > 0)
        weir__complain("serve", "fleet %s: version %" PRId64 " of the rules is refused: %s",
                       info->name, info->refused, info->refused_why);
    node->version = info->version;
    node->refused = info->refused;
}

/* The first poll for rules may come a little after the first beat. */
#define POLLED (2 * WEIR_SECOND)

static void tell_bare(struct weir__server *server, const struct weir_fleet_info *info,
                      weir_time now)
{
    struct weir__node *node = server->node;

    if (!info->connected || info->alone)
        node->reached = 0;
    else if (node->reached == 0)
        node->reached = now;
    bool bare = node->reached > 0 && now - node->reached > POLLED && info->refused == 0 &&
                weir__node_lacks_rules(server);
    if (bare && !node->bare)
        weir__complain("serve",
                       "fleet %s: Redis answers, and has no rules for this fleet: everything "
                       "passes, and /readyz says 503, until weir fleet rules set; nodes of "
                       "another fleet need its --fleet-name",
                       info->name);
    node->bare = node->bare || bare;
}

void weir__node_tick(struct weir__server *server, weir_time now)
{
    struct weir_fleet_info info;

    if (server->fleet == NULL)
        return;
    weir_fleet_look(server->fleet, &info);
    tell_alone(server, &info, now);
    tell_name(server, &info);
    tell_draws(server, &info);
    tell_rules(server, &info);
    tell_bare(server, &info, now);
}

void weir__node_json(const struct weir__server *server, struct weir__buffer *out)
{
    struct weir_fleet_info info;

    if (server->fleet == NULL)
        return;
    weir_fleet_look(server->fleet, &info);
    weir__buffer_member(out, "name", info.name);
    weir__buffer_member(out, "node", info.node);
    weir__buffer_member_bool(out, "agent", info.agent);
    weir__buffer_member_bool(out, "alone", info.alone);
    weir__buffer_member_bool(out, "connected", info.connected);
    weir__buffer_member_or_null(out, "why", info.why[0] ? info.why : NULL);
    weir__buffer_member_bool(out, "learning", info.learning);
    weir__buffer_member_number(out, "part", info.part);
    weir__buffer_member_number(out, "members", info.members);
    weir__buffer_member_number(out, "draws", (int64_t)info.draws);
    weir__buffer_member_number(out, "units_drawn", (int64_t)info.units_drawn);
    weir__buffer_member_number(out, "units_repaid", (int64_t)info.units_repaid);
    weir__buffer_member_number(out, "asks_alone", (int64_t)info.asks_alone);
    weir__buffer_member_number(out, "version", info.version);
    weir__buffer_member_number(out, "refused", info.refused);
    weir__buffer_member_or_null(out, "refused_why", info.refused ? info.refused_why : NULL);
}
