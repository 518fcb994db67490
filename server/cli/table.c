/* table.c -- `weir table`: the contents of a table file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir-admin.h"
#include "base/base.h"
#include "server/base/buffer.h"
#include "server/base/command.h"
#include "table/file.h"
#include "table/table.h"
#include "server/base/complain.h"
#include "server/base/file.h"
#include "server/base/replace-file.h"
#include "server/base/table-file.h"
#include "server/base/human-numbers.h"

struct options {
    const char *backup;
    bool json, upgrade;
    weir_time now;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("json", 0, json, "print a JSON object"),
    WEIR__VALUE("now", 0, MOMENT, now, "TIME", "count live keys as of this time: " WEIR__MOMENT),
    WEIR__TEXT("backup", 0, backup, "COPY", "copy the table to a new file, also while it is used"),
    WEIR__SWITCH("upgrade", 0, upgrade, "convert a file of format 3 or 5"),
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

/* A key's memory when the table is as full as it was made for, 82 % of its slots, or fuller. */
#define FILLING 0.82

static double key_bytes(const struct weir_table_stats *s)
{
    double filling = share(s->keys, s->slots);

    return slot_bytes(s) / (filling > FILLING ? filling : FILLING);
}

/* Of a mode set by hand only if there is one. */
static void print_limiter(struct weir_table *table, const struct weir_limiter_info *info)
{
    char words[96];

    if (weir_limiter_words(info, words)) {
        printf("  %-28s  %s, changed %lld times\n", words, info->limit, (long long)info->changes);
        return;
    }
    const struct weir_limiter *lever = weir_limiter_find(table, info->name);
    enum weir_mode mode = lever ? weir__limiter_mode(lever) : WEIR_AS_WRITTEN;
    if (mode != WEIR_AS_WRITTEN)
        printf("  rule %s: mode %s by hand\n", words, weir_mode_name(mode));
}

static void print_text(const char *path, struct weir_table *table, const struct weir_table_stats *s)
{
    struct weir_limiter_info info;
    char bytes[32];

    weir__human_bytes(bytes, sizeof(bytes), s->bytes);
    printf("table      %s\n", path);
    printf("keys       %lld in %lld slots, %.1f %% full; %lld live\n", (long long)s->keys,
           (long long)s->slots, 100 * share(s->keys, s->slots), (long long)s->live);
    if (s->slab_used > 0) {
        char used[32];
        weir__human_bytes(used, sizeof(used), s->slab_used);
        printf("large      %s of sliding-window and sliding-log states\n", used);
    }
    printf("memory     %s at most; %d bytes a slot, %.1f bytes a key when full\n"
           "           (the file is sparse: du shows the memory in use)\n",
           bytes, slot_bytes(s), key_bytes(s));
    printf("evicted    %lld idle, %lld early\n", (long long)s->evicted_idle,
           (long long)s->evicted_early);
    printf("recovered  %lld\n", (long long)s->recovered);
    printf("bans       %lld in force, %lld lost\n", (long long)s->bans, (long long)s->bans_lost);
    printf("guards     %lld%s\n", (long long)s->guards,
           s->guards ? "; weir guards --table lists them" : "");
    printf("limiters   %lld\n", (long long)s->limiters);
    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        print_limiter(table, &info);
}

static void print_json(const char *path, const struct weir_table *table,
                       const struct weir_table_stats *s)
{
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {
        { "slots", s->slots },
        { "keys", s->keys },
        { "live", s->live },
        { "slab", s->slab },
        { "slab_used", s->slab_used },
        { "slot_bytes", slot_bytes(s) },
        { "evicted_idle", s->evicted_idle },
        { "evicted_early", s->evicted_early },
        { "recovered", s->recovered },
        { "bans", s->bans },
        { "bans_lost", s->bans_lost },
        { "no_room", s->no_room },
        { "no_disk", s->no_disk },
        { "guards", s->guards },
    };
    struct weir__buffer json = { 0 };
    struct weir_limiter_info info;
    char words[96];

    weir__buffer_open(&json, NULL, '{');
    weir__buffer_member(&json, "path", path);
    weir__buffer_member_number(&json, "bytes", s->bytes);
    weir__buffer_member_bool(&json, "narrow", s->narrow);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        weir__buffer_member_number(&json, counts[i].name, counts[i].n);
    weir__buffer_format(&json, ",\"filling\":%.6f,\"bytes_per_key\":%.1f,\"limiters\":[",
                        share(s->keys, s->slots), key_bytes(s));
    for (int64_t at = 0; weir_limiter_next(table, &at, &info);) {
        if (!weir_limiter_words(&info, words))
            continue;
        weir__buffer_open(&json, NULL, '{');
        weir__buffer_member(&json, "name", words);
        weir__buffer_member(&json, "limit", info.limit);
        weir__buffer_member_number(&json, "changes", info.changes);
        weir__buffer_close(&json, "}");
    }
    weir__buffer_close(&json, "]}\n");
    weir__buffer_print(&json, stdout);
}

/* ---------------------------------------------------------------- copies ---- */

static int say_copied(const char *verb, const char *path, const struct weir__copied *c)
{
    char n[4][WEIR__HUMAN];

    printf("%s %s: %s, %s, %s", verb, path, weir__human_counted(n[0], c->limiters, "limiter"),
           weir__human_counted(n[1], c->states, "state"),
           weir__human_counted(n[2], c->bans, "ban"));
    if (c->lost > 0)
        printf("; %s start%s fresh", weir__human_counted(n[3], c->lost, "state"),
               c->lost == 1 ? "s" : "");
    putchar('\n');
    return WEIR__EXIT_OK;
}

static int upgrade(const char *command, const char *path)
{
    struct weir__copied copied;
    struct weir_error error = { 0 };

    if (weir__table_upgrade(path, &copied, &error) != WEIR_OK)
        return weir__complain(command, "%s", error.text);
    return say_copied("upgraded", path, &copied);
}

/* Files of a server beside its table: rules that came by the API, lists changed by hand. */
static const char *const beside[] = { ".rules", ".lists" };

enum { BESIDE = sizeof(beside) / sizeof(beside[0]) };

#define BESIDE_MAX ((size_t)1 << 30)

struct beside {
    char *from, *to;
    bool made;
};

/* With the old one's owner, as far as the process may give files away, and mode. */
static int copy_beside(struct beside *b, struct weir_error *error)
{
    struct stat old;
    size_t len;

    if (stat(b->from, &old) != 0 && errno == ENOENT)
        return WEIR_OK;
    if (access(b->to, F_OK) == 0)
        return weir__fail(error, WEIR_INVALID, "'%s' is there already", b->to);
    char *text = weir__file_read(b->from, BESIDE_MAX, &len);
    if (text == NULL)
        return weir__fail_errno(error, "cannot read", b->from);
    int code = weir__store_replace(b->to, text, len, error);
    b->made = code == WEIR_OK;
    free(text);
    if (b->made && ((chown(b->to, old.st_uid, old.st_gid) != 0 && errno != EPERM) ||
                    chmod(b->to, old.st_mode & 0777) != 0))
        code = weir__fail_errno(error, "cannot set the mode of", b->to);
    return code;
}

/* The small files first, so that nothing is done if one of them is in the way. */
static int back_up_all(struct weir_table *table, const char *path, const char *to,
                       struct beside files[BESIDE], struct weir__copied *copied,
                       struct weir_error *error)
{
    int code = WEIR_OK;

    for (int i = 0; code == WEIR_OK && i < BESIDE; i++) {
        if (asprintf(&files[i].from, "%s%s", path, beside[i]) < 0 ||
            asprintf(&files[i].to, "%s%s", to, beside[i]) < 0)
            code = weir__fail(error, WEIR_NO_MEMORY, "no memory");
        else
            code = copy_beside(&files[i], error);
    }
    return code == WEIR_OK ? weir__table_backup(table, to, copied, error) : code;
}

static int back_up(const char *command, struct weir_table *table, const char *path, const char *to)
{
    struct beside files[BESIDE] = { 0 };
    struct weir__copied copied;
    struct weir_error error = { 0 };
    int code = back_up_all(table, path, to, files, &copied, &error);

    if (code == WEIR_OK)
        say_copied("wrote", to, &copied);
    for (int i = 0; i < BESIDE; i++) {
        if (files[i].made && code == WEIR_OK)
            printf("wrote %s\n", files[i].to);
        else if (files[i].made)
            unlink(files[i].to);
        free(files[i].from);
        free(files[i].to);
    }
    return code == WEIR_OK ? WEIR__EXIT_OK : weir__complain(command, "%s", error.text);
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *path = call->words[0];
    struct weir_table *table;
    struct weir_error error = { 0 };
    struct weir_table_stats stats;

    if (o->upgrade)
        return upgrade(call->self->name, path);
    if (weir__table_attach(call->self->name, &table, path, &error) != WEIR_OK)
        return weir__complain(call->self->name, "%s", error.text);
    if (o->backup != NULL) {
        int code = back_up(call->self->name, table, path, o->backup);
        weir_table_destroy(table);
        return code;
    }
    weir_table_stats(table, o->now < 0 ? weir_table_now(table) : o->now, &stats);
    if (o->json)
        print_json(path, table, &stats);
    else
        print_text(path, table, &stats);
    weir_table_destroy(table);
    return WEIR__EXIT_OK;
}

const struct weir__command weir__cmd_table = {
    .name = "table",
    .summary = "show the contents of a table file",
    .arguments = "[options] FILE",
    .help =
        "Keys, memory, evictions, bans, guards and limiters.\n"
        "\n"
        "  weir table /dev/shm/limits\n"
        "\n"
        "--backup takes every key as it was at some moment while the copy was made, and the files "
        "of a server beside the table: FILE.rules to COPY.rules, FILE.lists to COPY.lists. To "
        "restore, stop everything that uses the table and put the copies in their places. "
        "--upgrade needs a file that nobody uses.\n"
        "\n"
        "Exit codes: 0 done, 2 wrong use or not a table.",
    WEIR__COMMAND_OPTIONS(rows, .now = -1),
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
