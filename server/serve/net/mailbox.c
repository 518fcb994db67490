/* mailbox.c -- results of other threads' work for a loop, on their way back. */
#include "server/serve/net/mailbox.h"

#include <pthread.h>
#include <stdlib.h>

struct weir__mailbox {
    uv_async_t arrived;
    pthread_mutex_t mutex;
    struct weir__letter *latest; /* the one before it is its next */
    size_t expected;             /* of the loop's thread */
};

void weir__mailbox_expect(struct weir__loop *loop)
{
    loop->mailbox->expected++;
}

void weir__mailbox_forgo(struct weir__loop *loop)
{
    loop->mailbox->expected--;
    if (loop->mailbox->expected == 0 && loop->conns == NULL &&
        __atomic_load_n(&loop->server->draining, __ATOMIC_ACQUIRE))
        uv_async_send(&loop->waker); /* the loop could not end before */
}

/* With the lock: while a letter is in the box its loop cannot end.  See weir__mailbox_close. */
static void bring(struct weir__mailbox *box, struct weir__letter *letter, bool wake)
{
    pthread_mutex_lock(&box->mutex);
    if (letter != NULL) {
        letter->next = box->latest;
        box->latest = letter;
    }
    if (wake && box->latest != NULL)
        uv_async_send(&box->arrived);
    pthread_mutex_unlock(&box->mutex);
}

void weir__mailbox_put(struct weir__loop *loop, struct weir__letter *letter)
{
    bring(loop->mailbox, letter, true);
}

void weir__mailbox_add(struct weir__loop *loop, struct weir__letter *letter)
{
    bring(loop->mailbox, letter, false);
}

void weir__mailbox_wake(struct weir__loop *loop)
{
    bring(loop->mailbox, NULL, true);
}

void weir__mailbox_open(struct weir__loop *loop)
{
    struct weir__mailbox *box = loop->mailbox;
    struct weir__letter *in_order = NULL, *next;

    pthread_mutex_lock(&box->mutex);
    struct weir__letter *letter = box->latest;
    box->latest = NULL;
    pthread_mutex_unlock(&box->mutex);
    for (; letter != NULL; letter = next) {
        next = letter->next;
        letter->next = in_order;
        in_order = letter;
    }
    for (; in_order != NULL; in_order = next) {
        next = in_order->next;
        in_order->open(in_order);
        weir__mailbox_forgo(loop);
    }
}

static void on_arrived(uv_async_t *arrived)
{
    weir__mailbox_open(arrived->data);
}

int weir__mailbox_create(struct weir__loop *loop)
{
    struct weir__mailbox *box = calloc(1, sizeof(*box));
    int code = box ? uv_async_init(&loop->uv, &box->arrived, on_arrived) : UV_ENOMEM;

    if (code != 0) {
        free(box);
        return code;
    }
    box->arrived.data = loop;
    pthread_mutex_init(&box->mutex, NULL);
    loop->mailbox = box;
    return 0;
}

bool weir__mailbox_is_expecting(const struct weir__loop *loop)
{
    return loop->mailbox && loop->mailbox->expected > 0;
}

/* The thread that brought the last letter may still hold the lock, and be about to wake. */
void weir__mailbox_close(struct weir__loop *loop)
{
    struct weir__mailbox *box = loop->mailbox;

    if (box == NULL || uv_is_closing((uv_handle_t *)&box->arrived))
        return;
    pthread_mutex_lock(&box->mutex);
    pthread_mutex_unlock(&box->mutex);
    uv_close((uv_handle_t *)&box->arrived, NULL);
}

void weir__mailbox_free(struct weir__loop *loop)
{
    if (loop->mailbox == NULL)
        return;
    pthread_mutex_destroy(&loop->mailbox->mutex);
    free(loop->mailbox);
    loop->mailbox = NULL;
}
