/* account.h -- a key of Redis opened as an account: read, decided on, written back. */
#ifndef WEIR_REDIS_MODULE_ACCOUNT_H
#define WEIR_REDIS_MODULE_ACCOUNT_H

#include "redis-module/limit-cache.h"
#include "redis-module/redis-api.h"

struct account {
    struct redis_context *context;
    struct redis_string *name;
    struct redis_key *key; /* NULL: opened to read, and there is none */
    const struct limit *limit;
    unsigned char *stored; /* the key's bytes, in Redis's memory */
    size_t stored_len;
    void *state;
    bool known; /* it was there, and of this algorithm */
    bool moved; /* it was written under another limit */
    _Alignas(8) unsigned char small[WEIR__STATE_SMALL];
};

/* What a change of limit keeps. */
enum keeping {
    KEEP_USED, /* as weir_step_change */
    KEEP_DEBT, /* the time owed, as redis-cell; and its values are read too */
};

enum opened {
    ACCOUNT_OPEN,
    ACCOUNT_FOREIGN, /* there is something else under this key: nothing is open */
};

struct opening {
    struct redis_context *context;
    struct redis_string *name;
    const struct limit *limit;
    int mode;
    enum keeping keeping;
    weir_time now;
};

/* It stays as it is: weir__account_was_cut. */
bool account_was_cut(const struct account *a);
enum opened account_open(struct account *a, const struct opening *how);
/* Writes the state back, with its expiry, and replicates it; unless nothing has changed. */
void account_store(struct account *a, weir_time now);
void account_close(struct account *a);

/* By Redis's clock in whole microseconds, or the test's. */
weir_time module_now(void);
/* ns; below 0: no test clock. */
extern weir_time module_test_clock;

#endif
