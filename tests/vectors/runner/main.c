/* main.c -- weir-vectors: replays .vec files at one door or at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/command.h"
#include "door-net.h"
#include "door-redis.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "replay.h"
#include "server/base/complain.h"
#include "vectors.h"

struct options {
    const char *door, *server, *weir, *module;
};

static const struct weir__option options[] = {
    WEIR__TEXT("door", 0, door, "NAME",
               "step (the bare algorithm; default), table, shm, or all of them; resp or http of a "
               "server; redis-module, redis (the scripts)"),
    WEIR__TEXT("server", 's', server, "ADDRESS",
               "with resp and http: a server that has --test-clock; default: start one"),
    WEIR__TEXT("weir", 0, weir, "PATH", "the command to start one with; default: build/weir"),
    WEIR__TEXT("module", 0, module, "PATH", "with redis-module: weir.so"),
    { 0 },
};

struct tally {
    const char *command, *file;
    const struct weir__door *door;
    const struct weir__door *only; /* NULL: all of them */
    long passed, failed;
    bool unreadable;
};

static void print_mismatch(void *context, int line, const char *text)
{
    struct tally *t = context;

    printf("%s:%d: %s%s%s%s\n", t->file, line, text, !t->only ? " (door " : "",
           !t->only ? t->door->name : "", !t->only ? ")" : "");
}

static void replay_all(struct tally *t, const struct weir__vectors *vectors)
{
    for (size_t i = 0; i < vectors->case_count; i++) {
        bool passed = weir__vectors_replay(t->door, vectors, &vectors->cases[i], print_mismatch, t);
        t->passed += passed;
        t->failed += !passed;
    }
}

static void replay_at_doors(struct tally *t, const struct weir__vectors *vectors)
{
    t->door = t->only;
    if (t->only) {
        replay_all(t, vectors);
        return;
    }
    for (const struct weir__door *const *d = weir__doors(); *d; d++) {
        t->door = *d;
        replay_all(t, vectors);
    }
}

static void check_file(struct tally *t)
{
    struct weir__vectors vectors;
    struct weir_error error = { 0 };
    size_t len;
    int line = 0;
    char *text = weir__file_read(t->file, SIZE_MAX / 2, &len);

    if (!text) {
        weir__complain(t->command, "%s: %s", t->file, strerror(errno));
        t->unreadable = true;
        return;
    }
    if (weir__vectors_parse(&vectors, text, len, &line, &error) != WEIR_OK) {
        fprintf(stderr, "%s:%d:%d: %s\n", t->file, line, error.column, error.text);
        t->unreadable = true;
        free(text);
        return;
    }
    replay_at_doors(t, &vectors);
    weir__vectors_clear(&vectors);
    free(text);
}

/* Which door; NULL: all that need no server, or none (*wrong, and it was said). */
static const struct weir__door *choose_door(const struct weir__command *self,
                                            const struct options *o, struct weir__door **net,
                                            bool *wrong)
{
    struct weir_error error = { 0 };
    const struct weir__door *door = strcmp(o->door, "all") == 0 ? NULL : weir__door_find(o->door);

    bool redis = weir__door_redis_is(o->door);

    *wrong = true;
    if (redis || weir__door_net_is(o->door)) {
        int code = redis ? weir__door_redis_open(net, o->door, o->module, &error)
                         : weir__door_net_open(net, o->door, o->server, o->weir, &error);
        if (code == WEIR_OK)
            *wrong = false;
        else
            weir__complain(self->name, "%s", error.text);
        return *net;
    }
    if (!door && strcmp(o->door, "all") != 0)
        weir__complain(self->name,
                       "there is no door '%s'; the doors are step, table, shm, and all for each of "
                       "them; resp, http; redis, redis-module",
                       o->door);
    else if (o->server)
        weir__complain(self->name, "--server is for the doors resp and http");
    else
        *wrong = false;
    return door;
}

static int run(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .door = "step",
                         .weir = "build/weir",
                         .module = "build/redis-module/weir.so" };
    struct tally t = { .command = self->name };
    struct weir__door *net = NULL;
    bool wrong;
    int files;
    int code = weir__options_parse(self, argc, argv, &o, &files);

    if (code != WEIR__GO_ON)
        return code;
    if (files == 0) {
        weir__complain(self->name, "which files? usage: weir %s %s", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    t.only = choose_door(self, &o, &net, &wrong);
    for (int i = 0; i < files && !wrong; i++) {
        t.file = argv[i];
        check_file(&t);
    }
    if (net && weir__door_redis_is(o.door))
        weir__door_redis_close(net);
    else if (net)
        weir__door_net_close(net);
    if (!wrong)
        printf("%ld passed, %ld failed\n", t.passed, t.failed);
    return wrong || t.unreadable ? WEIR__EXIT_WRONG : t.failed ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}

static const struct weir__command command = {
    .name = "vectors",
    .summary = "check the algorithms against example files",
    .arguments = "[options] FILE...",
    .help = "A .vec file says what an algorithm does, line by line. Each mismatch is one line, "
            "file:line: expected ... got ...; the last line is: N passed, M failed (cases, at each "
            "door).\n"
            "\n"
            "Exit codes: 0 all passed, 1 some failed, 2 a file could not be read.",
    .options = options,
    .words_max = WEIR__ANY_WORDS,
};

int main(int argc, char **argv)
{
    return run(&command, argc - 1, argv + 1);
}
