/* uv.c -- a client of Redis on a loop of libuv.
 *
 * Three handles: `poll` watches the driver's descriptor, `timer` has its next moment, and `prepare`
 * runs before the loop waits, if something was asked.  They keep the loop alive until closed.
 */
#include "cluster/redis/uv.h"

#include <stdlib.h>

#include "base/base.h"
#include "cluster/redis/drive.h"

struct weir__redis_uv {
    struct weir__redis_drive *drive;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_prepare_t prepare;
    int open; /* handles */
    bool asked;
    void (*closed)(void *context);
    void *context;
};

static void on_time(uv_timer_t *timer);

/* The timer counts whole milliseconds: the moment is rounded up, so that it has come. */
static void turn(struct weir__redis_uv *r)
{
    weir_time now = weir__clock_monotonic();
    weir_time due = weir__redis_drive_turn(r->drive, now);

    r->asked = false;
    now = weir__clock_monotonic();
    if (due == WEIR_NEVER) {
        uv_timer_stop(&r->timer);
        return;
    }
    uv_update_time(r->timer.loop); /* `now` of the loop may be old */
    weir_time span = due > now ? due - now : 0;
    uv_timer_start(&r->timer, on_time, (uint64_t)((span + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND),
                   0);
}

static void on_time(uv_timer_t *timer)
{
    turn(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    turn(poll->data);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct weir__redis_uv *r = prepare->data;

    if (r->asked)
        turn(r);
}

static void on_closed(uv_handle_t *handle)
{
    struct weir__redis_uv *r = handle->data;

    if (--r->open > 0)
        return;
    weir__redis_drive_destroy(r->drive);
    if (r->closed)
        r->closed(r->context);
    free(r);
}

static void adopt(struct weir__redis_uv *r, uv_handle_t *handle)
{
    handle->data = r;
    r->open++;
}

static int open_handles(struct weir__redis_uv *r, uv_loop_t *loop)
{
    int code = uv_poll_init(loop, &r->poll, weir__redis_drive_fd(r->drive));

    if (code != 0)
        return code;
    uv_timer_init(loop, &r->timer);
    uv_prepare_init(loop, &r->prepare);
    adopt(r, (uv_handle_t *)&r->poll);
    adopt(r, (uv_handle_t *)&r->timer);
    adopt(r, (uv_handle_t *)&r->prepare);
    uv_prepare_start(&r->prepare, on_prepare);
    return uv_poll_start(&r->poll, UV_READABLE, on_readable);
}

int weir__redis_uv_create(struct weir__redis_uv **out, uv_loop_t *loop,
                          const struct weir__redis_options *options, struct weir_error *error)
{
    struct weir__redis_uv *r = calloc(1, sizeof(*r));

    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a client of Redis");
    int code = weir__redis_drive_create(&r->drive, options, error);
    if (code != WEIR_OK) {
        free(r);
        return code;
    }
    int number = open_handles(r, loop);
    if (number == 0) {
        *out = r;
        return WEIR_OK;
    }
    code =
        weir__fail(error, WEIR_SYSTEM, "no place for Redis on the loop: %s", uv_strerror(number));
    if (r->open > 0) {
        weir__redis_uv_close(r, NULL, NULL);
    } else {
        weir__redis_drive_destroy(r->drive);
        free(r);
    }
    return code;
}

void weir__redis_uv_close(struct weir__redis_uv *r, void (*closed)(void *context), void *context)
{
    r->closed = closed;
    r->context = context;
    weir__redis_drive_end(r->drive);
    uv_close((uv_handle_t *)&r->poll, on_closed);
    uv_close((uv_handle_t *)&r->timer, on_closed);
    uv_close((uv_handle_t *)&r->prepare, on_closed);
}

void weir__redis_uv_ask(struct weir__redis_uv *r, struct weir__redis_ask *ask)
{
    r->asked = true;
    weir__redis_client_ask(weir__redis_drive_client(r->drive), ask, weir__clock_monotonic());
}
