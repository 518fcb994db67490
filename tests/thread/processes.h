/* processes.h -- whether processes race here, or threads alone: ThreadSanitizer sees nothing of a
 * race between processes. */
#ifndef WEIR_TESTS_THREAD_PROCESSES_H
#define WEIR_TESTS_THREAD_PROCESSES_H

#ifdef __SANITIZE_THREAD__
#define PROCESSES_RACE 0
#else
#define PROCESSES_RACE 1
#endif

#endif
