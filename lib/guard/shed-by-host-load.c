/* shed-by-host-load.c -- the share of asks to keep out so that the host is just not overloaded.
 *
 * Each signal with a threshold counts as a multiple of it, and the greatest decides.  Load is taken
 * to be proportional to work: if a share x was let in and the load was e times the threshold, x / e
 * would have been right.  The share moves there gradually, because the load is seen late; the later
 * the signal, the more slowly (pressure is a mean of 10 s):
 *
 *     at 1 or above        grows towards it; begins only after two looks in a row, so not after a
 *                          single burst
 *     0.94 to 1            stays, so that noise does not move it
 *     below                shrinks towards it, by at most a tenth per second; the overload is over
 *                          only at 0
 *
 * Why not refuse while the load is above the threshold and let in while it is below: refusals lower
 * the load at once, so the next second lets everybody in, and so on (as Sentinel's CPU rule did,
 * #1206).
 */

#include "guard/arithmetic.h"
#include "guard/shed-by-host-load.h"

#define AIM        0.97
#define STAY       0.94
#define SHED_MAX   0.95
#define GROW       1.6 /* seconds: towards the right share */
#define GROW_PSI   20.0
#define SHRINK     4.0
#define SHRINK_PSI 20.0
#define FASTEST    0.1   /* per second */
#define RATE_OF    100.0 /* requests at the threshold: a mean of as long as these take ... */
#define RATE_LEAST 0.5   /* ... but of this many seconds at least ... */
#define RATE_MOST  5.0   /* ... and at most */
#define STALE      (10 * WEIR_SECOND)

struct load {
    double times; /* the threshold */
    bool slow;    /* the signal is a mean of the last 10 s */
};

static void note(struct load *load, double value, double threshold, bool slow)
{
    if (threshold > 0 && value >= 0 && value / threshold > load->times)
        *load = (struct load){ value / threshold, slow };
}

/* In a quarter of a second chance makes few requests half or twice as many.  So the rate is a mean,
 * but never further from the last look than chance explains: a flood and its end count at once. */
static double steady(double before, double rate, double threshold, double seconds)
{
    double lasts = weir__between(RATE_LEAST, RATE_OF / weir__most(threshold, 1), RATE_MOST),
           came = rate * seconds, doubt = 3 * weir__root(came) + 3,
           mean = before + weir__share(seconds, lasts) * (rate - before);

    return seconds > 0 ? weir__between((came - doubt) / seconds, mean, (came + doubt) / seconds)
                       : before;
}

static struct load measure(const struct weir_system_options *o, const struct weir__reading *r,
                           weir_time mean, double rate)
{
    struct load load = { 0 };

    note(&load, r->cpu, o->cpu_percent * 10.0, false);
    note(&load, r->run_queue, o->run_queue * 1000.0, false);
    note(&load, mean > 0 ? (double)mean : -1, (double)o->mean_time, false);
    note(&load, (double)r->in_flight, o->in_flight, false);
    note(&load, rate, o->rate, false);
    note(&load, r->psi_cpu, o->pressure_percent * 10.0, true);
    note(&load, r->psi_memory, o->memory_percent * 10.0, true);
    return load;
}

static void grow(struct weir__pressure *p, const struct load *load, double right, double seconds)
{
    double share = weir__share(weir__least(seconds, 1), (load->slow ? GROW_PSI : GROW));

    p->shed = weir__least(p->shed + share * weir__most(right - p->shed, 0), SHED_MAX);
}

static void shrink(struct weir__pressure *p, const struct load *load, double right, double seconds)
{
    double down = weir__least(
        (p->shed - weir__most(right, -0.1)) / (load->slow ? SHRINK_PSI : SHRINK), FASTEST);

    p->shed = weir__most(p->shed - weir__most(down, 0) * seconds, 0);
    if (p->shed < 0.001)
        p->shed = p->over = 0;
}

/* The clock has stepped back: as if the last look were now. */
static void step_back(struct weir__pressure *p, weir_time now)
{
    p->looked = now;
    p->over_since = now < p->over_since ? now : p->over_since;
}

static void step(struct weir__pressure *p, const struct load *load, double seconds, weir_time now)
{
    double right = load->times > 0 ? 1 - (1 - p->shed) * AIM / load->times : -1;

    p->looks = load->times < 1 ? 0 : p->looks < 2 ? p->looks + 1 : 2;
    if (!p->over && p->looks == 2) {
        p->over = 1;
        p->over_since = now;
    }
    if (p->over && load->times >= 1)
        grow(p, load, right, seconds);
    else if (p->over && load->times < STAY)
        shrink(p, load, right, seconds);
    p->degradation = weir__degradation_for(p, now);
    p->looked = now;
}

int32_t weir__pressure_step(const struct weir__pressure_plan *plan, struct weir__pressure *p,
                            const struct weir__reading *reading, weir_time mean, weir_time now)
{
    if (!plan->on || !(p->shed >= 0 && p->shed <= SHED_MAX)) { /* also if NaN: memory is shared */
        *p = (struct weir__pressure){ 0 };
    }
    if (!plan->on)
        return 0;
    if (now < p->looked) {
        step_back(p, now);
    } else if (weir__pressure_is_due(p, now)) {
        double seconds = p->looked != 0 ? (double)(now - p->looked) / (double)WEIR_SECOND : 0.25;
        p->rate = (float)steady(p->rate, reading->rate, plan->options.rate, seconds);
        struct load load = measure(&plan->options, reading, mean, p->rate);
        step(p, &load, seconds, now);
    }
    return (int32_t)(p->shed * 1000 + 0.5);
}

int weir__pressure_degradation(const struct weir__pressure *p, weir_time now)
{
    return now - p->looked > STALE ? 0 : p->degradation;
}
