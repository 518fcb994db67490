/* top-from-table.c -- a table file for `weir top`: the counts that processes have shared in it, as
 * nginx's workers and weir serve do.  Nothing is changed. */
#include "server/cli/top-from-table.h"
#include "server/cli/rules-on-table.h"
#include "server/describe/ban-json.h"
#include "weir-admin.h"

static void add_totals(struct weir__buffer *out, struct weir *weir)
{
    struct weir_totals t;

    weir_totals_shared(weir, &t);
    weir__buffer_open(out, "totals", '{');
    weir__buffer_member_number(out, "check_allowed", t.allowed);
    weir__buffer_member_number(out, "check_refused", t.refused);
    weir__buffer_close(out, "}");
}

static void add_table(struct weir__buffer *out, const struct weir_table *table, const char *path)
{
    struct weir_table_stats stats;

    weir_table_stats(table, -1, &stats);
    weir__buffer_open(out, "table", '{');
    weir__buffer_member(out, "file", path);
    weir__buffer_member_number(out, "slots", stats.slots);
    weir__buffer_member_number(out, "keys", stats.keys);
    weir__buffer_member_number(out, "evicted_early", stats.evicted_early);
    weir__buffer_close(out, "}");
}

static void add_guards(struct weir__buffer *out, struct weir_table *table, weir_time now)
{
    struct weir_guard_info info;
    struct weir_guard *guard;
    int64_t n = 0, open = 0, in_flight = 0;

    for (int64_t at = 0; weir_guard_next(table, &at, &guard); n++) {
        weir_guard_get(guard, now, &info);
        open += info.breaker != WEIR_BREAKER_CLOSED;
        in_flight += info.in_flight;
    }
    weir__buffer_open(out, "guards", '{');
    weir__buffer_member_number(out, "guards", n);
    weir__buffer_member_number(out, "in_flight", in_flight);
    weir__buffer_member_number(out, "open", open);
    weir__buffer_member_number(out, "degradation", weir_degradation_get(table, NULL));
    weir__buffer_close(out, "}");
}

static void write_status(struct weir__buffer *out, struct weir *weir, const char *path,
                         weir_time now)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "version", weir_version());
    weir__buffer_member_number(out, "now_ms", now / WEIR_MILLISECOND);
    add_totals(out, weir);
    add_table(out, weir_table_of(weir), path);
    add_guards(out, weir_table_of(weir), now);
    weir__buffer_close(out, "}");
}

static void write_modes(struct weir__buffer *out, struct weir *weir)
{
    struct weir_rule_info info;
    struct weir_modes all;

    weir_modes_get(weir, &all);
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "in_force", weir_mode_name(all.in_force));
    weir__buffer_open(out, "rules", '[');
    for (int64_t at = 0; weir_rule_next_shared(weir, &at, &info);) {
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member(out, "rule", info.name);
        weir__buffer_member(out, "in_force", weir_mode_name(info.mode));
        weir__buffer_member_number(out, "allowed", info.allowed);
        weir__buffer_member_number(out, "refused", info.refused);
        weir__buffer_member_number(out, "banned", info.banned);
        weir__buffer_member_number(out, "shadow_refused", info.shadow_refused);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]}");
}

static void write_bans(struct weir__buffer *out, struct weir *weir, weir_time now)
{
    struct weir_ban ban;

    weir__buffer_open(out, NULL, '{');
    weir__buffer_open(out, "bans", '[');
    for (int64_t at = 0; weir_ban_next(weir, now, &at, &ban);)
        weir__ban_json(out, weir_table_of(weir), &ban, now);
    weir__buffer_close(out, "]}");
}

int weir__top_table_look(struct weir__top_texts *out, const char *path, const char *file,
                         struct weir_error *error)
{
    struct weir__rules_on_table on;
    int code = weir__rules_on_table_open(&on, "top", path, file, error);

    *out = (struct weir__top_texts){ 0 };
    if (code == WEIR_OK) {
        weir_time now = weir_table_now(on.file);
        write_status(&out->status, on.weir, path, now);
        write_modes(&out->modes, on.weir);
        write_bans(&out->bans, on.weir, now);
    }
    weir__rules_on_table_close(&on);
    return code;
}
