/* windows.c -- for zones.py: reads lines "ZONE day|week|month SECONDS" and writes "START END" of
 * the window that the time lies in, in seconds; the end is told by a decision, the start by
 * weir__calendar_window. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "algo/algo.h"

static void fail(const char *line, const char *what)
{
    fprintf(stderr, "windows: %s: %s\n", line, what);
    exit(1);
}

static void answer(const char *line)
{
    char zone[40], kind[8], text[80];
    weir_time now, start;
    struct weir_limit limit;
    struct weir_plan *plan = NULL;
    struct weir_error error;
    struct weir_decision d;
    int64_t state[2] = { 0, 0 };

    if (sscanf(line, "%39s %7s %" SCNd64, zone, kind, &now) != 3)
        fail(line, "cannot be read");
    snprintf(text, sizeof(text), "1/%s zone=%s", kind, zone);
    if (weir_limit_parse(&limit, text, &error) != WEIR_OK ||
        weir_plan_create(&plan, &limit, &error) != WEIR_OK)
        fail(line, error.text);
    now *= WEIR_SECOND;
    struct weir_ask ask = { .cost = 1, .now = now };
    if (!weir_step(plan, state, &ask, &d) || weir_step(plan, state, &ask, &d) || d.retry != d.reset)
        fail(line, "not just one passes");
    if (weir__calendar_window(plan, now, &start) != now + d.reset - start)
        fail(line, "the window's length is not what the decision says");
    printf("%" PRId64 " %" PRId64 "\n", start / WEIR_SECOND, (now + d.reset) / WEIR_SECOND);
    weir_plan_destroy(plan);
}

int main(void)
{
    char line[128];

    while (fgets(line, sizeof(line), stdin))
        answer(line);
    return 0;
}
