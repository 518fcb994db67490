/* process-figures.h -- what this process uses, for its metrics. */
#ifndef WEIR_SERVER_SERVE_EVENTS_PROCESS_FIGURES_H
#define WEIR_SERVER_SERVE_EVENTS_PROCESS_FIGURES_H

#include <stdint.h>

struct weir__process_figures {
    int64_t cpu;    /* ns */
    int64_t memory; /* bytes that are resident */
    int64_t fds, fds_max;
};
void weir__process_figures(struct weir__process_figures *out);

#endif
