/* report.h -- a replay's findings, for people (text, HTML, SVG) and for programs (JSON).
 *
 *     report.c        shared by all: totals, notes, the order of rules, the series of a plot
 *     report-text.c   the terminal
 *     report-svg.c    the plot of requests and refusals over time
 *     report-html.c   one page that fetches nothing
 *     report-json.c   everything
 *
 * Strangers wrote the log: its texts go out only through weir__safe_put or as JSON strings.
 */
#ifndef WEIR_SERVER_REPLAY_REPORT_H
#define WEIR_SERVER_REPLAY_REPORT_H

#include <stdio.h>

#include "server/base/human-numbers.h"
#include "server/base/safe-text.h"
#include "server/replay/replay.h"

struct weir__report {
    const struct weir__replay *replay;
    char *const *logs;
    size_t n_logs;
    size_t top;   /* rows of the lists of keys, URIs and requests */
    size_t width; /* of the terminal */
    bool colours;
};

void weir__report_text(FILE *out, const struct weir__report *report);
void weir__report_html(FILE *out, const struct weir__report *report);
void weir__report_svg(FILE *out, const struct weir__report *report);
void weir__report_json(FILE *out, const struct weir__report *report);

/* A request that two rule sets decide differently, as one line of JSON. */
struct weir__report_request {
    const struct weir__log_entry *entry;
    struct weir_key client, method, uri;
    const int32_t *rule; /* that refused, of each side */
};
void weir__report_difference(FILE *out, const struct weir__replay *replay,
                             const struct weir__report_request *request);

/* ------------------------------------------------------------------ report.c ---- */

const char *weir__human_proposal(
    char out[WEIR__HUMAN],
    const struct weir__proposal *proposal); /* the count: 420; 400 to 420; more than 420 */

/* " here", " there", or "" if there is one side. */
const char *weir__report_where(const struct weir__replay *replay,
                               const struct weir__rule_set *side);

/* The totals worth showing, on both sides. */
struct weir__total {
    const char *name;
    int64_t part[WEIR__REPLAY_SIDES], whole;
    bool inner; /* part of the one above */
    bool bad;
    bool about; /* estimated */
};

#define WEIR__TOTALS 17

size_t weir__report_totals(const struct weir__replay *replay, struct weir__total out[WEIR__TOTALS]);

/* Calls `each` with every sentence about how far the numbers can be trusted. */
void weir__report_notes(const struct weir__report *report,
                        void (*each)(void *context, const char *note), void *context);

/* The deny list and the rules that refused most, for a plot; the last is the rest, "other
 * rules". */
#define WEIR__SERIES 7

struct weir__series {
    const char *name;
    int64_t total;
    int colour; /* 0 to WEIR__SERIES - 1; a rule has the same on both sides */
    int64_t at[WEIR__REPLAY_BUCKETS];
};

size_t weir__report_series(const struct weir__replay *replay, size_t side,
                           struct weir__series out[WEIR__SERIES]);

/* The rules, those that did most first.  The caller frees it; NULL: no memory. */
const struct weir__replay_rule **weir__report_rules(const struct weir__rule_set *side);

/* Proposals to distrust: from fewer than 20 keys; below a quarter of the rule's own limit. */
bool weir__proposal_has_few_keys(const struct weir__proposal *proposal);
bool weir__proposal_is_far_below(const struct weir__proposal *proposal);

/* The name of its rule. */
const char *weir__report_proposal_rule(const struct weir__report *report,
                                       const struct weir__proposal *proposal);

/* ------------------------------------------------------------- report-svg.c ---- */

void weir__plot_timeline(FILE *out, const struct weir__report *report,
                         size_t side); /* pointing at a bucket shows its numbers */
void weir__plot_proposal(FILE *out, const struct weir__proposal *proposal, int64_t share);

extern const char weir__report_page[]; /* report.html, everything it links inside */

#endif
