/* Resilience4jPeer.java -- Resilience4j's Bulkhead and CircuitBreaker together, measured as a peer of Weir's enter and exit.
 *
 *     guard.resilience4j.enter-exit   a semaphore bulkhead and a breaker over a time window; both let everything through
 *     guard.resilience4j.lock-free    as the first, the window by its other strategy
 *     guard.resilience4j.clock        as the first, the clock read before and after the work as its own wrappers do
 *     guard.resilience4j.busy         the bulkhead is full
 *     guard.resilience4j.open         the breaker is open: the bulkhead's permission is given back
 *
 * CPU time of the asking thread, median of ROUNDS rounds after warm-up.  How long a call took is supplied, as to Weir.  The breaker reads its own clock in each onSuccess, for its window; there is no way around it.
 */
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadConfig;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig.SlidingWindowSynchronizationStrategy;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig.SlidingWindowType;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

public final class Resilience4jPeer {
    static final int ROUNDS = 5;
    static final int PAIRS = 2_000_000;
    static final int PIECE = 50_000; // pairs per call of enterMany: called often, so compiled as a whole and not while it runs
    static final int WARM_UP_PIECES = 40;

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /* A resource under both, and its rounds. */
    static final class Subject {
        final String name;
        final Bulkhead bulkhead;
        final CircuitBreaker breaker;
        final boolean clock;
        final double[] spent = new double[ROUNDS];

        Subject(String name, boolean clock, SlidingWindowSynchronizationStrategy strategy) {
            this.name = name;
            this.clock = clock;
            bulkhead = Bulkhead.of(name, BulkheadConfig.custom().maxConcurrentCalls(1000).maxWaitDuration(Duration.ZERO).build());
            breaker = CircuitBreaker.of(name, CircuitBreakerConfig.custom()
                    .slidingWindow(10, 20, SlidingWindowType.TIME_BASED, strategy)
                    .slowCallDurationThreshold(Duration.ofSeconds(1)).slowCallRateThreshold(50).failureRateThreshold(50)
                    .waitDurationInOpenState(Duration.ofHours(1)).build());
        }

        int enterMany() {
            return clock ? enterManyByClock() : enterManyInTime();
        }

        int enterManyInTime() {
            int entered = 0;
            for (int i = 0; i < PIECE; i++) {
                if (!bulkhead.tryAcquirePermission())
                    continue;
                if (!breaker.tryAcquirePermission()) {
                    bulkhead.releasePermission();
                    continue;
                }
                entered++;
                breaker.onSuccess(20_000, TimeUnit.NANOSECONDS);
                bulkhead.onComplete();
            }
            return entered;
        }

        int enterManyByClock() {
            int entered = 0;
            for (int i = 0; i < PIECE; i++) {
                if (!bulkhead.tryAcquirePermission())
                    continue;
                if (!breaker.tryAcquirePermission()) {
                    bulkhead.releasePermission();
                    continue;
                }
                long start = breaker.getCurrentTimestamp();
                entered++;
                breaker.onSuccess(breaker.getCurrentTimestamp() - start, breaker.getTimestampUnit());
                bulkhead.onComplete();
            }
            return entered;
        }

        /* The count proves that the path meant was the path measured. */
        double round(long expected) {
            long entered = 0;
            long start = THREADS.getCurrentThreadCpuTime();
            for (int i = 0; i < PAIRS / PIECE; i++)
                entered += enterMany();
            long spent = THREADS.getCurrentThreadCpuTime() - start;
            if (entered != expected)
                throw new IllegalStateException(name + ": not the answers this measures: " + entered + " entered");
            return (double) spent / PAIRS;
        }
    }

    public static void main(String[] args) {
        SlidingWindowSynchronizationStrategy usual = SlidingWindowSynchronizationStrategy.SYNCHRONIZED;
        Subject[] subjects = { new Subject("enter-exit", false, usual), new Subject("busy", false, usual), new Subject("open", false, usual),
            new Subject("clock", true, usual), new Subject("lock-free", false, SlidingWindowSynchronizationStrategy.LOCK_FREE) };
        while (subjects[1].bulkhead.tryAcquirePermission())
            ; // all of them, for good
        subjects[2].breaker.transitionToOpenState();

        for (int i = 0; i < WARM_UP_PIECES; i++)
            for (Subject subject : subjects)
                subject.enterMany();
        for (int i = 0; i < ROUNDS; i++)
            for (Subject subject : subjects)
                subject.spent[i] = subject.round(subject == subjects[1] || subject == subjects[2] ? 0 : PAIRS);
        for (Subject subject : subjects) {
            Arrays.sort(subject.spent);
            System.out.printf(java.util.Locale.ROOT, "guard.resilience4j.%s\t%.2f\tns%n", subject.name, subject.spent[ROUNDS / 2]);
        }
    }
}
