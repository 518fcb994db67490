/* metrics.h -- the server's counters.
 *
 * Every loop has counters of its own, which only its thread writes (relaxed stores) and anybody may
 * read; they are added up for each scrape.
 */
#ifndef WEIR_SERVER_SERVE_EVENTS_METRICS_H
#define WEIR_SERVER_SERVE_EVENTS_METRICS_H

#include "server/base/buffer.h"
#include "weir.h"

enum weir__counter {
    WEIR__COUNT_CONNECTIONS, /* accepted */
    WEIR__COUNT_CONNECTIONS_CLOSED,
    WEIR__COUNT_CONNECTIONS_REFUSED, /* there were too many */
    WEIR__COUNT_RESP_COMMANDS,
    WEIR__COUNT_HTTP_REQUESTS,
    WEIR__COUNT_BAD_INPUT,   /* connections closed because they sent no RESP or HTTP */
    WEIR__COUNT_TIMED_OUT,   /* closed: idle, or a request that was never whole */
    WEIR__COUNT_NOT_READING, /* closed: too much output waited */
    WEIR__COUNT_AUTH_FAILED,
    WEIR__COUNT_AUTH_TURNED_AWAY,  /* there were too many wrong ones from its address */
    WEIR__COUNT_PROXY_NOT_TRUSTED, /* proxy-doubts.h: one for each of its kinds, in their order */
    WEIR__COUNT_PROXY_NO_CLIENT,
    WEIR__COUNT_PROXY_NO_URI,
    WEIR__COUNT_CHECK_ALLOWED,
    WEIR__COUNT_CHECK_REFUSED,
    WEIR__COUNT_TAKE_ALLOWED, /* CL.THROTTLE and WEIR.TAKE */
    WEIR__COUNT_TAKE_REFUSED,
    WEIR__COUNT_ENTER_ALLOWED, /* WEIR.ENTER */
    WEIR__COUNT_ENTER_REFUSED,
    WEIR__COUNT_ASK_ID_REPEATED, /* answered as before, not charged */
    WEIR__COUNT_BYTES_IN,
    WEIR__COUNT_BYTES_OUT,
    WEIR__COUNTERS
};

#define WEIR__TIME_BUCKETS \
    20 /* of decision times: up to 250 ns, 500 ns, 1 us, 2 us, ... doubling; the last one is all \
          that take longer */

struct weir__counters {
    _Alignas(64) int64_t counts[WEIR__COUNTERS];
    int64_t times[WEIR__TIME_BUCKETS]; /* decisions by the time they took; one batch in
                                          64 is timed */
    int64_t times_sum;                 /* ns */
    int64_t batches;
};

static inline void weir__counter_add(struct weir__counters *c, enum weir__counter which, int64_t n)
{
    __atomic_store_n(&c->counts[which], __atomic_load_n(&c->counts[which], __ATOMIC_RELAXED) + n,
                     __ATOMIC_RELAXED);
}

/* Around a batch of n decisions. */
weir_time weir__counters_begin(struct weir__counters *c);
void weir__counters_end(struct weir__counters *c, weir_time began, size_t n);
void weir__counters_time(struct weir__counters *c, int64_t n, weir_time span);

struct weir__server;
/* All of it in Prometheus's text format. */
void weir__metrics_print(struct weir__server *server, weir_time now, struct weir__buffer *out);

#endif
