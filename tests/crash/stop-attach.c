/* stop-attach.c -- a process that puts a table in order is killed at some instruction of that; the
 * next one finds the table as if nothing had happened.
 *
 *     stop-attach STRIDE   at every STRIDE-th instruction
 *
 * All begins with the bytes that another killed process has left: keys of all kinds, bans, a hand
 * under way; once after the same boot, once after another.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "crash/stepping.h"
#include "table/bans.h"
#include "table/hand.h"

#define S     WEIR_SECOND
#define NOW   (1000000 * S)
#define KEYS  40
#define KINDS (sizeof(limits) / sizeof(*limits))

static const char path[] = "stop-attach.weir";
static const char *const limits[] = {
    "gcra 50/1d", "sliding-window 50/1d", "sliding-log 50/1d", "sliding-log 5000/1d", "50/month",
};

static int *done;

/* What there is to see. */
struct sight {
    int64_t left[KINDS][KEYS];
    weir_time banned[KEYS];
    int64_t blocks, keys, limiters;
};

static void die(const char *what)
{
    printf("stop-attach: %s\n", what);
    exit(1);
}

static struct weir_ask ask_for(int key, int64_t cost, char text[16])
{
    size_t len = (size_t)snprintf(text, 16, "key %d", key);

    return (struct weir_ask){ .key = { text, len }, .cost = cost, .now = NOW };
}

static struct weir_limiter *limiter_of(struct weir_table *table, size_t kind)
{
    struct weir_limiter *limiter = NULL;
    struct weir_limit limit;
    char name[16];

    snprintf(name, sizeof(name), "l%zu", kind);
    if (weir_limit_parse(&limit, limits[kind], NULL) != WEIR_OK ||
        weir_limiter_create(&limiter, table, name, &limit, NULL) != WEIR_OK)
        die(limits[kind]);
    return limiter;
}

static uint64_t ban_tag(const struct weir_table *table, int key, struct weir_key *out,
                        char text[16])
{
    *out = ask_for(key, 0, text).key;
    return weir__ban_tag(table, "rule", *out);
}

/* ------------------------------------------------------------- before ---- */

static void use_table(struct weir_table *table)
{
    char text[16];

    for (size_t kind = 0; kind < KINDS; kind++) {
        struct weir_limiter *limiter = limiter_of(table, kind);
        for (int key = 0; key < KEYS; key++)
            for (int n = 0; n <= (kind == 3 ? 3 * key : key % 4); n++) {
                struct weir_ask ask = ask_for(key, 1 + key % 3, text);
                struct weir_decision d;
                ask.now += n;
                weir_take(limiter, &ask, &d);
            }
    }
    for (int key = 0; key < KEYS; key++) {
        struct weir_key k;
        uint64_t tag = ban_tag(table, key, &k, text);
        (void)weir__ban_put(table, tag, "rule", k, NOW, NOW + (key + 1) * S);
    }
}

/* Killed in the midst of it all. */
static void be_first(void *context)
{
    struct weir_table *table;

    (void)context;
    if (weir_table_create(&table,
                          &(struct weir_table_options){ .path = path,
                                                        .keys = 400,
                                                        .slab = 1 << 20,
                                                        .limiters = 8,
                                                        .guards = 1,
                                                        .bans = 100 },
                          NULL) != WEIR_OK)
        _exit(1);
    use_table(table);
    struct weir__hand *hand = weir__hand_take(table);
    (void)weir__hand_block(&table->keys, hand, 0, 512, false); /* it has a block */
}

static unsigned char *make_image(size_t *bytes)
{
    struct stat st;
    int status, fd;
    pid_t pid = fork();

    unlink(path);
    if (pid == 0) {
        be_first(NULL);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0 || (fd = open(path, O_RDONLY)) < 0 ||
        fstat(fd, &st) != 0)
        die("there is no table");
    unsigned char *image = malloc((size_t)st.st_size);
    *bytes = (size_t)st.st_size;
    if (image == NULL || read(fd, image, *bytes) != (ssize_t)*bytes)
        die("it cannot be read");
    close(fd);
    return image;
}

static void restore(const unsigned char *image, size_t bytes)
{
    int fd = open(path, O_RDWR | O_TRUNC | O_CREAT, 0600);

    if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes)
        die("it cannot be written");
    close(fd);
}

/* ------------------------------------------------------------- rounds ---- */

static void be_victim(void *context)
{
    struct weir_table *table;

    (void)context;
    stepping_begin();
    if (weir_table_attach(&table, path, NULL) != WEIR_OK)
        _exit(1);
    __atomic_store_n(done, 1, __ATOMIC_RELEASE);
}

static void look(struct sight *out)
{
    struct weir_table *table;
    struct weir_table_stats stats;
    struct weir_error error;
    char text[16];

    memset(out, 0, sizeof(*out));
    if (weir_table_attach(&table, path, &error) != WEIR_OK)
        die(error.text);
    for (size_t kind = 0; kind < KINDS; kind++)
        for (int key = 0; key < KEYS; key++) {
            struct weir_ask ask = ask_for(key, 0, text);
            struct weir_decision d;
            ask.now += S;
            weir_peek(limiter_of(table, kind), &ask, &d);
            out->left[kind][key] = d.remaining;
        }
    for (int key = 0; key < KEYS; key++) {
        struct weir_key k;
        uint64_t tag = ban_tag(table, key, &k, text);
        out->banned[key] = weir__ban_until(table, tag, NOW);
    }
    weir_table_stats(table, -1, &stats);
    out->blocks = stats.slab_used;
    out->keys = stats.keys;
    out->limiters = stats.limiters;
    weir_table_destroy(table);
}

static bool run_round(const struct path *steps, size_t n, const struct sight *wanted)
{
    struct stepped victim;
    struct sight seen;

    *done = 0;
    if (!stepping_start(&victim, be_victim, NULL, done))
        die("it cannot be traced");
    (void)stepping_run(&victim, steps, n);
    stepping_kill(&victim);
    look(&seen);
    return memcmp(&seen, wanted, sizeof(seen)) == 0;
}

static int run(const unsigned char *image, size_t bytes, size_t stride, const char *what)
{
    struct path steps = { 0 };
    struct sight wanted;
    int failed = 0;

    restore(image, bytes);
    look(&wanted);
    if (wanted.left[0][0] != 49 || wanted.banned[0] == 0)
        die("the first process has done nothing");
    restore(image, bytes);
    *done = 0;
    if (stepping_record(be_victim, NULL, done, &steps) != STEPPING_ENDED)
        die("the path cannot be recorded");
    for (size_t n = 0; n < steps.length && failed < 5; n += stride) {
        if (!stepping_is_near(&steps, n))
            continue;
        restore(image, bytes);
        if (run_round(&steps, n, &wanted))
            continue;
        printf("stop-attach: %s, killed after %zu of %zu instructions: something has changed\n",
               what, n, steps.length);
        failed++;
    }
    stepping_forget(&steps);
    return failed;
}

int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, bytes;

    if (!stepping_is_permitted())
        return STEPPING_FORBIDDEN;
    done = stepping_room(sizeof(*done));
    unsigned char *image = make_image(&bytes);
    int failed = run(image, bytes, stride, "same boot");
    memset(((struct weir__header *)(void *)image)->boot_id, 7, WEIR__BOOT_ID_SIZE);
    failed += run(image, bytes, stride, "another boot");
    free(image);
    unlink(path);
    return failed > 0;
}
