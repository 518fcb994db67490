/* lock.c -- a lock that all hosts share, and a store that a stalled holder cannot spoil.
 *
 *     lock [URL]
 *
 * Ann has the lock, stands still for longer than its lifetime, and writes as if nothing had
 * happened.  Bob has had the lock meanwhile.  The store remembers the largest token it has seen,
 * and so refuses Ann's write.
 */
#include <stdio.h>
#include <time.h>
#include <weir-redis.h>

struct store {
    int64_t token;
    const char *text;
};

static void write_to(struct store *store, const char *who, int64_t token)
{
    if (token < store->token) {
        printf("%s's write is refused: another has had the lock since\n", who);
        return;
    }
    store->token = token;
    store->text = who;
    printf("%s writes\n", who);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:1"; /* where nobody listens */
    struct weir_redis_lock ann = { .name = WEIR_REDIS_TEXT("example"),
                                   .lifetime = 200 * WEIR_MILLISECOND };
    struct weir_redis_lock bob = { .name = ann.name }; /* 30 s */
    struct weir_redis_lock_result result;
    struct weir_redis *redis;
    struct weir_error error;
    struct store store = { 0 };

    if (weir_redis_create(&redis, url, NULL, &error)) {
        fprintf(stderr, "lock: %s\n", error.text);
        return 1;
    }
    weir_redis_lock_acquire(redis, &ann, 2 * WEIR_SECOND, &result);
    if (!result.held) {
        printf("no lock: %s\n", result.outcome == WEIR_REDIS_ANSWERED ? "busy" : result.why);
        weir_redis_destroy(redis);
        return 0;
    }
    write_to(&store, "ann", ann.token);
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL); /* a long pause */
    weir_redis_lock_acquire(redis, &bob, 2 * WEIR_SECOND, &result);
    if (result.held)
        write_to(&store, "bob", bob.token);
    write_to(&store, "ann", ann.token); /* she has not looked at weir_redis_lock_left */
    weir_redis_lock_release(redis, &ann, WEIR_SECOND, &result); /* it is Bob's: no effect */
    weir_redis_lock_renew(redis, &bob, WEIR_SECOND, &result);
    printf("%s has the lock, and the store says %s\n", result.held ? "bob" : "nobody", store.text);
    weir_redis_lock_release(redis, &bob, WEIR_SECOND, &result);
    weir_redis_destroy(redis);
    return 0;
}
