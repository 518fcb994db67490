/* table.c -- `weir table`: what a table file holds. */
#include <stdio.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/options.h"
#include "table/table.h"
#include "server/base/text.h"

struct options {
    bool json;
    weir_time now;
};

const struct weir__option weir__cmd_table_options[] = {
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, json), 0, NULL,
      "as one JSON object" },
    { "now", 0, WEIR__OPTION_MOMENT, offsetof(struct options, now), 0, "TIME",
      "count what is live at this time: seconds since 1970, or 2026-11-30T23:59:59Z" },
    { 0 },
};

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static int slot_bytes(const struct weir_table_stats *s)
{
    return s->narrow ? 16 : 32;
}

/* What a key costs when the table holds what it was made for, 82 % of its slots; or more, if it
 * does. */
#define FILLING 0.82

static double key_bytes(const struct weir_table_stats *s)
{
    double filling = share(s->keys, s->slots);
    return slot_bytes(s) / (filling > FILLING ? filling : FILLING);
}

/* The engine's own names (lib/engine/force.c), as people say them: rule#0-1a2b3c4d is the rule's
 * first limit, rule!... what its ban counts. */
static void name_in_words(char *out, size_t size, const char *name)
{
    size_t rule = strcspn(name, "#!");
    unsigned index;
    int end = 0;

    if (name[rule] == '#' && sscanf(name + rule, "#%3u-%*8[0-9a-f]%n", &index, &end) == 1 &&
        end > 0 && name[rule + (size_t)end] == '\0')
        snprintf(out, size, "%.*s, limit %u", (int)rule, name, index + 1);
    else if (name[rule] == '!' && sscanf(name + rule, "!0-%*8[0-9a-f]%n", &end) == 0 && end > 0 &&
             name[rule + (size_t)end] == '\0')
        snprintf(out, size, "%.*s, refusals for its ban", (int)rule, name);
    else
        snprintf(out, size, "%s", name);
}

/* rule@ keeps the rule's mode by hand, and limits nothing. */
static void print_limiter(struct weir_table *table, const struct weir_limiter_info *info)
{
    size_t len = strlen(info->name);
    char words[96];

    if (len > 1 && info->name[len - 1] == '@' && strcmp(info->limit, "gcra 1/1s") == 0) {
        const struct weir_limiter *lever = weir__limiter_by_name(table, info->name);
        enum weir_mode mode = lever ? weir__limiter_mode(lever) : WEIR_AS_WRITTEN;
        if (mode != WEIR_AS_WRITTEN)
            printf("  rule %.*s: mode %s by hand\n", (int)len - 1, info->name,
                   weir_mode_name(mode));
        return;
    }
    name_in_words(words, sizeof(words), info->name);
    printf("  %-28s  %s, changed %lld times\n", words, info->limit, (long long)info->changes);
}

static void print_text(const char *path, struct weir_table *table, const struct weir_table_stats *s)
{
    struct weir_limiter_info info;
    char bytes[32];

    weir__text_bytes(bytes, sizeof(bytes), s->bytes);
    printf("table      %s\n", path);
    printf("keys       %lld in %lld slots, %.1f %% full; %lld live\n", (long long)s->keys,
           (long long)s->slots, 100 * share(s->keys, s->slots), (long long)s->live);
    if (s->large_slots > 0)
        printf("large      %lld of sliding-window and sliding-log in %lld slots\n",
               (long long)s->large_keys, (long long)s->large_slots);
    printf("memory     %s with all its room; %d bytes a slot, %.1f bytes a key when full; the file "
           "is sparse: what was never used takes\n"
           "           no memory (du says how much does)\n",
           bytes, slot_bytes(s), key_bytes(s));
    printf("evicted    %lld idle, %lld early\n", (long long)s->evicted_idle,
           (long long)s->evicted_early);
    printf("recovered  %lld\n", (long long)s->recovered);
    printf("bans       %lld in force, %lld lost\n", (long long)s->bans, (long long)s->bans_lost);
    printf("guards     %lld%s\n", (long long)s->guards,
           s->guards ? "; weir guards --table lists them" : "");
    printf("limiters   %lld\n", (long long)s->limiters);
    for (int64_t i = 0; weir_table_limiter(table, i, &info); i++)
        print_limiter(table, &info);
}

static void print_limiters(const struct weir_table *table)
{
    struct weir_limiter_info info;

    printf(",\"limiters\":[");
    for (int64_t i = 0; weir_table_limiter(table, i, &info); i++) {
        printf("%s{\"name\":", i ? "," : "");
        weir__json_string(info.name);
        printf(",\"limit\":");
        weir__json_string(info.limit);
        printf(",\"changes\":%lld}", (long long)info.changes);
    }
    puts("]}");
}

static void print_json(const char *path, const struct weir_table *table,
                       const struct weir_table_stats *s)
{
    printf("{\"path\":");
    weir__json_string(path);
    printf(",\"bytes\":%lld,\"narrow\":%s", (long long)s->bytes, s->narrow ? "true" : "false");
    printf(",\"slots\":%lld,\"keys\":%lld,\"live\":%lld", (long long)s->slots, (long long)s->keys,
           (long long)s->live);
    printf(",\"large_slots\":%lld,\"large_keys\":%lld", (long long)s->large_slots,
           (long long)s->large_keys);
    printf(",\"filling\":%.6f,\"slot_bytes\":%d", share(s->keys, s->slots), slot_bytes(s));
    printf(",\"bytes_per_key\":%.1f", key_bytes(s));
    printf(",\"evicted_idle\":%lld,\"evicted_early\":%lld", (long long)s->evicted_idle,
           (long long)s->evicted_early);
    printf(",\"recovered\":%lld", (long long)s->recovered);
    printf(",\"bans\":%lld,\"bans_lost\":%lld", (long long)s->bans, (long long)s->bans_lost);
    printf(",\"guards\":%lld", (long long)s->guards);
    print_limiters(table);
}

int weir__cmd_table(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .now = -1 };
    struct weir_table *table;
    struct weir_error error = { 0 };
    struct weir_table_stats stats;
    int files;
    int code = weir__options_parse(self, argc, argv, &o, &files);

    if (code != WEIR__GO_ON)
        return code;
    if (files != 1) {
        weir__complain(self->name, "it takes one file, not %d; usage: weir %s %s", files,
                       self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (weir_table_attach(&table, argv[0], &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        return WEIR__EXIT_WRONG;
    }
    weir_table_stats(table, o.now < 0 ? weir_table_now(table) : o.now, &stats);
    if (o.json)
        print_json(argv[0], table, &stats);
    else
        print_text(argv[0], table, &stats);
    weir_table_destroy(table);
    return WEIR__EXIT_OK;
}
