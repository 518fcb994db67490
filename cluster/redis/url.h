/* url.h -- where Redis is, and how to log in, as a person writes it.
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/DB][?OPTION=VALUE&...]
 *     rediss://...                   the same with TLS
 *     unix://[[USER]:PASSWORD@]PATH[?db=N]
 *     redis-sentinel://[[USER]:PASSWORD@]HOST[:PORT][,...]/MASTER[/DB]; rediss-sentinel://...
 *
 * Several hosts are seeds: any one of them will do to find the others.  Whether they are a Redis
 * Cluster is found out.  USER and PASSWORD log in to Redis; Sentinels have their own, in options:
 *
 *     db=N                                        as /DB
 *     protocol=2|3                                of RESP; otherwise 3 if the server has it
 *     sentinel-user=NAME, sentinel-password=TEXT
 *     ca=FILE, certificate=FILE, key=FILE         TLS: PEM files; without `ca` those of the host
 *
 * Any byte may be written as %XX.
 */
#ifndef WEIR_CLUSTER_REDIS_URL_H
#define WEIR_CLUSTER_REDIS_URL_H

#include "weir.h"

#define WEIR__REDIS_SEEDS_MAX 16

struct weir__redis_address {
    char host[256]; /* or the path of a unix socket */
    uint16_t port;  /* 0: a unix socket */
};

struct weir__redis_login {
    char user[128]; /* "": the default user */
    char password[512];
};

struct weir__redis_url {
    bool tls, sentinel;
    struct weir__redis_address seeds[WEIR__REDIS_SEEDS_MAX];
    size_t n_seeds;
    struct weir__redis_login login, sentinel_login;
    int64_t db;
    int64_t protocol; /* 0: the best */
    char master[128]; /* of Sentinels */
    char ca[256], certificate[256], key[256];
};

int weir__redis_url_parse(struct weir__redis_url *out, const char *text, struct weir_error *error);

bool weir__redis_address_same(const struct weir__redis_address *a,
                              const struct weir__redis_address *b);
/* Reads "HOST:PORT" as MOVED and ASK write it: IPv6 addresses without brackets.  An empty host is
 * `near`.  False: it is not one. */
bool weir__redis_address_read(struct weir__redis_address *out, const char *text, size_t len,
                              const char *near);

/* "127.0.0.1:6379", "[::1]:6379" or a path. */
struct weir__redis_place {
    char text[272];
};
struct weir__redis_place weir__redis_place(const struct weir__redis_address *address);

#endif
