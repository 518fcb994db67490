/* mailbox.h -- what other threads have done for a loop, on its way back to the loop's thread.
 *
 * A loop does not end while a letter is expected.
 */
#ifndef WEIR_SERVER_SERVE_NET_MAILBOX_H
#define WEIR_SERVER_SERVE_NET_MAILBOX_H

#include "server/serve/serve.h"

/* Part of what is brought back. */
struct weir__letter {
    void (*open)(struct weir__letter *letter); /* on the loop's thread */
    struct weir__letter *next;
};

/* The loop's thread: one letter more will come; or it will not come after all. */
void weir__mailbox_expect(struct weir__loop *loop);
void weir__mailbox_forgo(struct weir__loop *loop);
/* Any thread: an expected one. */
void weir__mailbox_put(struct weir__loop *loop, struct weir__letter *letter);
/* The same in two steps, for a thread that brings several; the loop outlives both. */
void weir__mailbox_add(struct weir__loop *loop, struct weir__letter *letter);
void weir__mailbox_wake(struct weir__loop *loop);
/* The loop's thread: opens those that are there, the first to come first. */
void weir__mailbox_open(struct weir__loop *loop);

/* For loop.c */
int weir__mailbox_create(struct weir__loop *loop); /* a code of libuv */
bool weir__mailbox_is_expecting(const struct weir__loop *loop);
void weir__mailbox_close(struct weir__loop *loop); /* its handle; nothing is expected */
void weir__mailbox_free(struct weir__loop *loop);  /* after that */

#endif
