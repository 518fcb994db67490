/* table.c -- a damaged table file: attach refuses or works, and whatever the bytes are, deciding
 * neither crashes nor hangs.
 *
 * The input is a list of edits to a good table: two bytes of kind and place, eight of what to write
 * there.  Most go to where they hurt: the header, the limiters' records, the states, the bans.
 */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/bans.h"

static const char *const limits[] = {
    "fixed-window 5/1s",
    "fixed-window 5/1s align=first",
    "sliding-window 5/1s",
    "sliding-log 7/1s",
    "leaky-bucket 3/1s queue 4",
    "token-bucket 5/1s burst 3",
    "gcra 7/3s",
    "smooth 5/1s",
    "warm-up 3/1s cold=3",
    "sliding-window 3/1s buckets=3 edge=loose",
};

#define LIMITS (sizeof(limits) / sizeof(*limits))

static struct weir_limiter *limiter_of(struct weir_table *t, size_t i)
{
    struct weir_limiter *l = NULL;
    struct weir_limit limit;
    char name[] = "a";

    name[0] = (char)('a' + i);
    if (weir_limit_parse(&limit, limits[i], NULL) == WEIR_OK)
        (void)weir_limiter_create(&l, t, name, &limit, NULL);
    return l;
}

static void use_bans(struct weir_table *t, weir_time now)
{
    struct weir__ban_terms terms = {
        .length = WEIR_SECOND, .factor = 3, .longest = 60 * WEIR_SECOND, .forget = WEIR_SECOND
    };
    struct weir_ban ban;

    for (char k = 'a'; k < 'a' + 10; k++) {
        uint64_t tag = weir__ban_tag(t, "rule", (struct weir_key){ &k, 1 });
        if (weir__ban_strike(t, tag, "rule", (struct weir_key){ &k, 1 }, &terms, now) <= now ||
            weir__ban_until(t, tag, now) == 0)
            abort();
        if (k == 'c' && !weir__ban_lift(t, tag, now))
            abort();
    }
    for (size_t i = 0; i < weir__ban_places(t); i++)
        if (weir__ban_get(t, i, now, &ban) && (memchr(ban.rule, 0, sizeof(ban.rule)) == NULL ||
                                               memchr(ban.key, 0, sizeof(ban.key)) == NULL))
            abort();
}

static void use(struct weir_table *t, weir_time now)
{
    struct weir_table_stats stats;
    struct weir_limiter_info info;
    struct weir_item items[LIMITS];
    size_t n = 0;

    for (size_t i = 0; i < LIMITS; i++) {
        struct weir_limiter *l = limiter_of(t, i);
        if (l == NULL)
            continue;
        for (int64_t k = 0; k < 4; k++) {
            struct weir_ask a = { .key = { &k, sizeof(k) },
                                  .cost = 1 + k % 2,
                                  .wait_max = k % 3 ? 0 : WEIR_FOREVER,
                                  .now = now };
            struct weir_decision d;
            weir_take(l, &a, &d);
            weir_peek(l, &a, &d);
            weir_give(l, &a);
        }
        items[n++] = (struct weir_item){ l, { .key = { "x", 1 }, .cost = 1, .now = now } };
    }
    struct weir_decision d;
    weir_take_all(items, n, &d);
    for (int64_t at = 0; weir_limiter_next(t, &at, &info);)
        ;
    use_bans(t, now);
    weir_table_stats(t, now, &stats);
    (void)weir_table_now(t);
}

/* A good table, made once. */
static unsigned char *good_table(size_t *size, char *path)
{
    static unsigned char *bytes;
    static size_t length;

    if (bytes == NULL) {
        struct weir_table *t = NULL;
        struct weir_table_options o = {
            .path = path, .keys = 100, .slab = 1 << 18, .limiters = 32, .bans = 8
        };
        if (weir_table_create(&t, &o, NULL) != WEIR_OK)
            abort();
        use(t, 5 * WEIR_SECOND);
        weir_table_destroy(t);
        int fd = open(path, O_RDONLY);
        struct stat st;
        fstat(fd, &st);
        length = (size_t)st.st_size;
        bytes = malloc(length);
        if (read(fd, bytes, length) != (ssize_t)length)
            abort();
        close(fd);
    }
    *size = length;
    return bytes;
}

static size_t place_of(unsigned kind, unsigned place, size_t size, const struct weir__header *good)
{
    size_t names = WEIR__HOLDERS_AT, groups = WEIR__GROUP_SLOTS * sizeof(struct weir__wide),
           slots_at = size - good->slab_bytes - 2 * groups; /* or near */
    size_t at = kind % 6 == 0   ? place % sizeof(struct weir__header)
                : kind % 6 == 1 ? names + place % (64 << 10) /* holders, places, records */
                : kind % 6 == 2 ? slots_at + place % groups
                : kind % 6 == 3 ? slots_at + groups + place
                : kind % 6 == 4 ? (size_t)place * 64
                                : names + place % (slots_at - names);

    return at % (size - 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static char path[64];

    if (path[0] == '\0')
        snprintf(path, sizeof(path), "/dev/shm/weir-fuzz-%d", (int)getpid());
    unlink(path);
    size_t size, kept;
    unsigned char *good = good_table(&size, path), *bytes = malloc(size);
    memcpy(bytes, good, size);
    kept = length > 0 && data[0] == 0xff ? size * data[length - 1] / 256
                                         : size;  /* a file that was cut */
    bool mended = length > 0 && data[0] % 2 == 0; /* a header whose check was made to fit */
    for (size_t i = 1; i + 11 <= length; i += 11)
        memcpy(bytes +
                   place_of(data[i], (unsigned)data[i + 1] << 8 | data[i + 2], size, (void *)good),
               data + i + 3, 8);
    struct weir__header *h = (void *)bytes;
    if (mended) {
        uint64_t sum = 0xcbf29ce484222325u;
        for (size_t i = sizeof(h->magic); i < offsetof(struct weir__header, check); i++)
            sum = (sum ^ bytes[i]) * 0x100000001b3u;
        h->check = sum;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, bytes, kept) != (ssize_t)kept)
        abort();
    close(fd);
    struct weir_table *t = NULL;
    struct weir_error e = { 0 };
    if (weir_table_attach(&t, path, &e) == WEIR_OK) {
        use(t, 7 * WEIR_SECOND);
        use(t, 3 * WEIR_SECOND);
        weir_table_destroy(t);
    } else if (e.text[0] == '\0') {
        abort(); /* refused without a reason */
    }
    unlink(path);
    free(bytes);
    return 0;
}
