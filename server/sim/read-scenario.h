/* read-scenario.h -- shared by the readers of a scenario file's parts. */
#ifndef WEIR_SERVER_SIM_READ_SCENARIO_H
#define WEIR_SERVER_SIM_READ_SCENARIO_H

#include "rulefile/read.h"
#include "server/sim/sim.h"

/* read-scenario.c -- members of a mapping.  One that is not there leaves *out as it is, and so does
 * one that is wrong: that is said. */
void weir__sim_take_time(struct weir__reader *r, const struct weir__member *m, weir_time min,
                         weir_time max, weir_time *out);
void weir__sim_take_count(struct weir__reader *r, const struct weir__member *m, int64_t min,
                          int64_t max, int64_t *out);
void weir__sim_take_number(struct weir__reader *r, const struct weir__member *m, char unit,
                           int64_t min, int64_t max, int64_t *out);
/* false: it is none of the words */
bool weir__sim_take_word(struct weir__reader *r, const struct weir__member *m,
                         const char *const *words, size_t n, size_t *out);

/* "2.5", "2.5x", "40%" in millionths (100 % is one); unit: 'x', '%', or 0 for none.  False: it is
 * none, or over 10^9. */
bool weir__sim_number_parse(const char *text, char unit, int64_t *out);

/* read-backend.c, read-clients.c, read-guard.c */
void weir__sim_read_backend(struct weir__reader *r, const struct weir__node *node,
                            struct weir__sim_plan *plan);
void weir__sim_read_clients(struct weir__reader *r, const struct weir__node *node,
                            struct weir__sim_plan *plan);
void weir__sim_read_guard(struct weir__reader *r, const struct weir__node *node,
                          struct weir__sim_plan *plan);

#endif
