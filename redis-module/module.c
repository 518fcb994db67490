/* module.c -- weir.so, a module for Redis 6.2 and later: rate limits decided inside Redis.
 *
 *     loadmodule weir.so [test-clock]
 *
 * The algorithms are those of lib/algo; the keys hold strings (cluster/account/layout.h), so a
 * server without the module can load, copy and replicate them.  With test-clock the time stands
 * still until WEIR.CLOCK sets it: for tests alone.
 */
#include <stdio.h>
#include <string.h>

#include "redis-module/account.h"
#include "redis-module/redis-api.h"
#include "redis-module/replicate.h"
#include "redis-module/verbs.h"

#define MODULE_VERSION 1

struct redis_api redis;

struct row {
    const char *name, *flags, *categories, *summary;
    redis_verb *run;
    int arity, last; /* last: -1 if all words are keys */
    uint64_t spec;
};

static const struct row rows[] = {
    { "cl.throttle", "write deny-oom fast", "write fast weir",
      "Takes from a key by a limit that comes with the ask, as redis-cell does.", verb_throttle, -1,
      1, REDIS_SPEC_WRITES },
    { "weir.take", "write deny-oom fast getkeys-api", "write fast weir",
      "Takes from one key or several, all or nothing.", verb_take, -3, 1,
      REDIS_SPEC_WRITES | REDIS_SPEC_INCOMPLETE },
    { "weir.peek", "readonly fast getkeys-api", "read fast weir",
      "Answers like weir.take, and takes nothing.", verb_peek, -3, 1,
      REDIS_SPEC_READS | REDIS_SPEC_INCOMPLETE },
    { "weir.give", "write fast getkeys-api", "write fast weir", "Gives units back.", verb_give, -3,
      1, REDIS_SPEC_WRITES | REDIS_SPEC_INCOMPLETE },
    { "weir.draw", "write deny-oom fast getkeys-api", "write fast weir",
      "Takes units for a node to spend by itself.", verb_draw, -5, 1,
      REDIS_SPEC_WRITES | REDIS_SPEC_INCOMPLETE },
    { "weir.repay", "write deny-oom fast getkeys-api", "write fast weir",
      "Units that were drawn and not spent count again.", verb_repay, -5, 1,
      REDIS_SPEC_WRITES | REDIS_SPEC_INCOMPLETE },
    { "weir.reset", "write fast", "write fast weir", "Makes keys fresh.", verb_reset, -2, -1,
      REDIS_SPEC_REMOVE | REDIS_SPEC_DELETE },
    { "weir.info", "readonly fast", "read fast weir", "The limit of a key, and what is left.",
      verb_info, 2, 1, REDIS_SPEC_READS },
};

/* The newer parts of a row, as far as this server knows them. */
static void describe(struct redis_context *context, const struct row *row)
{
    static const struct redis_info_version version = { 1, 2 * sizeof(char *),
                                                       sizeof(struct redis_key_spec), 0 };
    struct redis_key_spec specs[2] = { { .flags = row->spec,
                                         .begin = 2,
                                         .at.index.pos = 1,
                                         .find = 2,
                                         .keys.range = { row->last == 1 ? 0 : -1, 1, 0 } } };
    const struct redis_command_info info = {
        .version = &version, .summary = row->summary, .arity = row->arity, .specs = specs
    };
    struct redis_command *command = redis.GetCommand ? redis.GetCommand(context, row->name) : NULL;

    if (command != NULL && redis.SetCommandInfo)
        redis.SetCommandInfo(command, &info);
    if (command != NULL && redis.SetCommandACLCategories && redis.AddACLCategory)
        redis.SetCommandACLCategories(command, row->categories);
}

typedef int get_api(const char *name, void *out);

static get_api *finder(struct redis_context *context)
{
    return (get_api *)*(void **)context;
}

static bool find_functions(struct redis_context *context)
{
    get_api *get = finder(context);

#define FIND(result, function, parameters)                                  \
    if (get("RedisModule_" #function, (void *)&redis.function) != REDIS_OK) \
        return false;
    REDIS_NEEDED(FIND)
#undef FIND
#define FIND(result, function, parameters)                                  \
    if (get("RedisModule_" #function, (void *)&redis.function) != REDIS_OK) \
        redis.function = NULL;
    REDIS_OPTIONAL(FIND)
#undef FIND
    return true;
}

static bool read_arguments(struct redis_string **words, int n, bool *test_clock)
{
    size_t len;

    *test_clock = n > 0;
    if (n == 0)
        return true;
    const char *word = redis.StringPtrLen(words[0], &len);
    return n == 1 && len == 10 && memcmp(word, "test-clock", len) == 0;
}

static bool create_commands(struct redis_context *context, bool test_clock)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (redis.CreateCommand(context, row->name, row->run, row->flags, 1, row->last, 1) !=
            REDIS_OK)
            return false;
        describe(context, row);
    }
    return !test_clock ||
           redis.CreateCommand(context, "weir.clock", verb_clock, "fast", 0, 0, 0) == REDIS_OK;
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(struct redis_context *context,
                                                              struct redis_string **words, int n);
__attribute__((visibility("default"))) int RedisModule_OnUnload(struct redis_context *context);

/* The server does without some things if a module does not say that it can bear them.  All that
 * this one knows is in the keys, so it can.  Redis may give Valkey's number another meaning. */
static int options_for(struct redis_context *context)
{
    void *function;
    bool is_valkey =
        finder(context)("ValkeyModule_SetModuleOptions", (void *)&function) == REDIS_OK;

    return REDIS_SIGNALS_ITSELF | REDIS_LOADS_BESIDE | (is_valkey ? VALKEY_MOVES_SLOTS : 0);
}

/* The module may be there already, and these are its variables: they stay as they are until nothing
 * can fail. */
int RedisModule_OnLoad(struct redis_context *context, struct redis_string **words, int n)
{
    bool test_clock;

    if (!find_functions(context) || redis.IsModuleNameBusy("weir"))
        return REDIS_ERR;
    redis.SetModuleAttribs(context, "weir", MODULE_VERSION, REDIS_API_VERSION);
    if (!read_arguments(words, n, &test_clock))
        return REDIS_ERR;
    if (redis.AddACLCategory)
        redis.AddACLCategory(context, "weir");
    if (!create_commands(context, test_clock))
        return REDIS_ERR;
    module_test_clock = test_clock ? 0 : -1;
    redis.SetModuleOptions(context, options_for(context));
    tell_begin(context);
    return REDIS_OK;
}

int RedisModule_OnUnload(struct redis_context *context)
{
    (void)context;
    limits_end();
    tell_end();
    return REDIS_OK;
}
