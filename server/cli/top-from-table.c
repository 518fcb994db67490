/* top-from-table.c -- a table file for `weir top`: the counts that processes have shared in it, as
 * nginx's workers and weir serve do.  Nothing is changed. */
#include "engine/explain.h"
#include "server/base/table-file.h"
#include "server/cli/top-from-table.h"
#include "server/describe/ban-json.h"
#include "server/describe/rules-file.h"
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

/* An engine that only looks. */
static int open_engine(struct weir **out, struct weir_table *table, struct weir_rules *rules,
                       struct weir_error *error)
{
    int code = weir_create(out, &(struct weir_options){ .table = table }, error);

    if (code == WEIR_OK)
        code = weir__engine_peek_only(*out, error);
    if (code == WEIR_OK)
        code = weir_use(*out, rules, 0, error);
    if (code != WEIR_OK)
        weir_rules_destroy(rules);
    return code;
}

static int look(struct weir__top_texts *out, struct weir_table *table, const char *path,
                struct weir_rules *rules, struct weir_error *error)
{
    weir_time now = weir_table_now(table);
    struct weir *weir = NULL;
    int code = open_engine(&weir, table, rules, error);

    if (code == WEIR_OK) {
        write_status(&out->status, weir, path, now);
        write_modes(&out->modes, weir);
        write_bans(&out->bans, weir, now);
    }
    weir_destroy(weir);
    return code;
}

int weir__top_table_look(struct weir__top_texts *out, const char *path, const char *file,
                         struct weir_error *error)
{
    struct weir_rules *rules = weir__rules_file_read("top", file);
    struct weir_table *table = NULL;

    *out = (struct weir__top_texts){ 0 };
    error->text[0] = '\0';
    if (rules == NULL)
        return WEIR_INVALID;
    int code = weir__table_attach("top", &table, path, error);
    if (code == WEIR_OK)
        code = look(out, table, path, rules, error);
    else
        weir_rules_destroy(rules);
    weir_table_destroy(table);
    return code;
}
