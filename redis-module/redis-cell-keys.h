/* redis-cell-keys.h -- what CL.THROTTLE keeps of a key, as redis-cell does: the time that it
 * owes. */
#ifndef WEIR_REDIS_MODULE_REDIS_CELL_KEYS_H
#define WEIR_REDIS_MODULE_REDIS_CELL_KEYS_H

#include "redis-module/account.h"

/* Of a key that had another limit: its debt keeps its time, and a fraction of another size is
 * rounded up. */
bool cell_keeps_debt(struct account *a, weir_time now);

/* Of a key that redis-cell has written: one number of 19 digits, the time in ns at which the debt
 * is paid.  False: it is something else. */
bool cell_read(struct account *a, weir_time now);

/* A number of digits alone; false: it is none, or too large. */
bool read_digits(const void *bytes, size_t len, int64_t *out);

#endif
