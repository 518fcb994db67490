/* admin-status.c -- how the server is doing: status, settings, who is refused most, what has
 * happened. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/serve/admin/admin.h"
#include "server/serve/fleet.h"
#include "server/serve/net/listen.h"
#include "server/serve/events/top-keys.h"

/* ---------------------------------------------------------------- status ---- */

static const char *const counter_names[] = {
    [WEIR__COUNT_CONNECTIONS] = "connections",
    [WEIR__COUNT_CONNECTIONS_CLOSED] = "connections_closed",
    [WEIR__COUNT_CONNECTIONS_REFUSED] = "connections_refused",
    [WEIR__COUNT_RESP_COMMANDS] = "resp_commands",
    [WEIR__COUNT_HTTP_REQUESTS] = "http_requests",
    [WEIR__COUNT_BAD_INPUT] = "bad_input",
    [WEIR__COUNT_TIMED_OUT] = "timed_out",
    [WEIR__COUNT_NOT_READING] = "not_reading",
    [WEIR__COUNT_AUTH_FAILED] = "auth_failed",
    [WEIR__COUNT_AUTH_TURNED_AWAY] = "auth_turned_away",
    [WEIR__COUNT_PROXY_NOT_TRUSTED] = "proxy_not_trusted",
    [WEIR__COUNT_PROXY_NO_CLIENT] = "proxy_no_client",
    [WEIR__COUNT_PROXY_NO_URI] = "proxy_no_uri",
    [WEIR__COUNT_CHECK_ALLOWED] = "check_allowed",
    [WEIR__COUNT_CHECK_REFUSED] = "check_refused",
    [WEIR__COUNT_TAKE_ALLOWED] = "take_allowed",
    [WEIR__COUNT_TAKE_REFUSED] = "take_refused",
    [WEIR__COUNT_ENTER_ALLOWED] = "enter_allowed",
    [WEIR__COUNT_ENTER_REFUSED] = "enter_refused",
    [WEIR__COUNT_ASK_ID_REPEATED] = "ask_id_repeated",
    [WEIR__COUNT_BYTES_IN] = "bytes_in",
    [WEIR__COUNT_BYTES_OUT] = "bytes_out",
};
_Static_assert(sizeof(counter_names) / sizeof(*counter_names) == WEIR__COUNTERS,
               "every counter has a name");

static void add_totals(const struct weir__server *server, struct weir__buffer *out)
{
    for (int which = 0; which < WEIR__COUNTERS; which++)
        weir__buffer_member_number(out, counter_names[which],
                                   weir__server_count(server, (enum weir__counter)which));
}

static void add_checks(const struct weir__server *server, struct weir__buffer *out)
{
    struct weir_totals t;

    weir_totals_get(server->engine, &t);
    weir__buffer_member_number(out, "checked", t.checked);
    weir__buffer_member_number(out, "allowed", t.allowed);
    weir__buffer_member_number(out, "refused", t.refused);
    weir__buffer_member_number(out, "denied", t.denied);
    weir__buffer_member_number(out, "allow_listed", t.allow_listed);
    weir__buffer_member_number(out, "unmatched", t.unmatched);
    weir__buffer_member_number(out, "shadow_refused", t.shadow_refused);
}

/* A table is a file with holes: this is less than its size. */
static int64_t bytes_on_disk(const struct weir__server *server)
{
    struct stat st;

    return !server->settings->memory && stat(server->settings->table, &st) == 0
               ? (int64_t)st.st_blocks * 512
               : 0;
}

static void add_table(const struct weir__server *server, struct weir__buffer *out)
{
    struct weir_table_stats stats;

    weir_table_stats(server->table, -1, &stats); /* counting live keys would read all of it */
    weir__buffer_member_or_null(out, "file",
                                server->settings->memory ? NULL : server->settings->table);
    weir__buffer_member_number(out, "slots", stats.slots);
    weir__buffer_member_number(out, "keys", stats.keys);
    weir__buffer_member_number(out, "slab", stats.slab);
    weir__buffer_member_number(out, "slab_used", stats.slab_used);
    weir__buffer_member_number(out, "limiters", stats.limiters);
    weir__buffer_member_number(out, "bytes", stats.bytes);
    weir__buffer_member_number(out, "bytes_on_disk", bytes_on_disk(server));
    weir__buffer_member_number(out, "evicted_idle", stats.evicted_idle);
    weir__buffer_member_number(out, "evicted_early", stats.evicted_early);
    weir__buffer_member_number(out, "recovered", stats.recovered);
    weir__buffer_member_number(out, "bans_lost", stats.bans_lost);
    weir__buffer_member_number(out, "no_room", stats.no_room);
    weir__buffer_member_number(out, "no_disk", stats.no_disk);
}

/* Modes set by hand: an emergency switch that was forgotten must be seen. */
static void add_modes(const struct weir__server *server, struct weir__buffer *out)
{
    struct weir_modes all;
    struct weir_rule_info info;
    int64_t n = 0;

    weir_modes_get(server->engine, &all);
    for (int64_t at = 0; weir_rule_next(server->engine, &at, &info);)
        n += info.switched != WEIR_AS_WRITTEN;
    weir__buffer_member_or_null(
        out, "by_hand", all.by_hand == WEIR_AS_WRITTEN ? NULL : weir_mode_name(all.by_hand));
    weir__buffer_member_number(out, "rules_by_hand", n);
}

/* Trouble at a glance; WEIR.GUARDS says more. */
static void add_guards(const struct weir__server *server, struct weir__buffer *out, weir_time now)
{
    struct weir_guard_info info;
    struct weir_guard *guard;
    int64_t n = 0, open = 0, forced = 0, in_flight = 0;
    bool by_hand = false;

    for (int64_t at = 0; weir_guard_next(server->table, &at, &guard);) {
        weir_guard_get(guard, now, &info);
        n++;
        open += info.breaker != WEIR_BREAKER_CLOSED;
        forced += info.force != WEIR_UNFORCED;
        in_flight += info.in_flight;
    }
    weir__buffer_open(out, "guards", '{');
    weir__buffer_member_number(out, "guards", n);
    weir__buffer_member_number(out, "in_flight", in_flight);
    weir__buffer_member_number(out, "open", open);
    weir__buffer_member_number(out, "forced", forced);
    weir__buffer_member_number(out, "degradation", weir_degradation_get(server->table, &by_hand));
    weir__buffer_member_bool(out, "degradation_by_hand", by_hand);
    weir__buffer_close(out, "}");
}

/* As the setting has them, separated by commas. */
static void add_written(struct weir__buffer *out, const char *text)
{
    const char *separator = "";

    for (size_t len; *text; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        if (len == 0)
            continue;
        weir__buffer_text(out, separator);
        weir__buffer_json(out, text, len);
        separator = ",";
    }
}

static void add_listening(struct weir__buffer *out, const struct weir__listen *listen,
                          enum weir__door door)
{
    const char *separator = "";

    for (size_t i = 0; i < listen->n_addresses; i++) {
        if (listen->addresses[i].door != door)
            continue;
        weir__buffer_text(out, separator);
        weir__buffer_json(out, listen->addresses[i].text, strlen(listen->addresses[i].text));
        separator = ",";
    }
}

static void add_addresses(const struct weir__server *server, struct weir__buffer *out)
{
    const char *written[WEIR__DOORS] = {
        [WEIR__DOOR_RESP] = server->settings->resp, [WEIR__DOOR_HTTP] = server->settings->http
    };
    static const char *const names[WEIR__DOORS] = {
        [WEIR__DOOR_RESP] = "resp", [WEIR__DOOR_HTTP] = "http"
    };

    for (int door = 0; door < WEIR__DOORS; door++) {
        weir__buffer_open(out, names[door], '[');
        if (server->listen)
            add_listening(out, server->listen, (enum weir__door)door);
        else if (written[door])
            add_written(out, written[door]);
        weir__buffer_close(out, "]");
    }
}

static void add_object(const struct weir__server *server, struct weir__buffer *out,
                       const char *name,
                       void (*add)(const struct weir__server *server, struct weir__buffer *out))
{
    weir__buffer_open(out, name, '{');
    add(server, out);
    weir__buffer_close(out, "}");
}

void weir__admin_status(struct weir__verb_call *call)
{
    struct weir__server *server = call->server;
    struct weir__buffer *out = &call->out;

    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "version", weir_version());
    weir__buffer_member_number(out, "pid", getpid());
    weir__buffer_member_moment(out, "now", weir_table_real(server->table, call->now));
    weir__buffer_member_moment(out, "started", weir_table_real(server->table, server->started));
    weir__buffer_member_ms(out, "uptime_ms",
                           call->now > server->started ? call->now - server->started : 0);
    weir__buffer_member_number(out, "threads", (int64_t)server->n_loops);
    weir__buffer_member_number(out, "connections",
                               __atomic_load_n(&server->connections, __ATOMIC_RELAXED));
    weir__buffer_member_bool(out, "draining",
                             __atomic_load_n(&server->draining, __ATOMIC_RELAXED) != 0);
    weir__buffer_member_bool(out, "memory", server->settings->memory);
    weir__buffer_member_bool(out, "tls", server->tls != NULL);
    add_object(server, out, "addresses", add_addresses);
    add_object(server, out, "rules", weir__admin_rules_info);
    add_object(server, out, "modes", add_modes);
    add_guards(server, out, call->now);
    if (server->fleet)
        add_object(server, out, "fleet", weir__node_json);
    add_object(server, out, "table", add_table);
    add_object(server, out, "checks", add_checks);
    add_object(server, out, "totals", add_totals);
    weir__buffer_close(out, "}");
}

void weir__admin_settings(struct weir__verb_call *call)
{
    weir__settings_json(call->server->settings, &call->out);
}

/* -------------------------------------------------------- top and events ---- */

void weir__admin_metrics(struct weir__verb_call *call)
{
    weir__metrics_print(call->server, call->now, &call->out);
}

void weir__admin_top(struct weir__verb_call *call)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_name(&call->out, "top");
    weir__top_list(call->server->top, (size_t)call->values[0].number, &call->out);
    weir__buffer_close(&call->out, "}");
}

/* No more than the ring has, or a steady stream of events would keep this going. */
void weir__admin_events(struct weir__verb_call *call)
{
    enum weir__event_kind kind;
    uint64_t after = (uint64_t)call->values[0].number, lost;

    weir__buffer_open(&call->out, NULL, '[');
    for (int i = 0; i < WEIR__EVENTS_KEPT; i++) {
        size_t before = call->out.len;
        weir__buffer_member_name(&call->out, NULL);
        if (weir__events_next(call->server->events, &after, &kind, &call->out, &lost))
            continue;
        call->out.len = before; /* without the comma */
        break;
    }
    weir__buffer_close(&call->out, "]");
}
