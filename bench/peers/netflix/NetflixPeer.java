/* NetflixPeer.java -- Netflix's concurrency-limits, measured as a peer of Weir's enter and exit.
 *
 *     guard.netflix.permits      a fixed limit of 1000
 *     guard.netflix.enter-exit   its Gradient2 limit, fed by windows as its manual says
 *     guard.netflix.clock        as the last, with the clock of the machine
 *     guard.netflix.busy         the limit is reached
 *
 * CPU time of the asking thread, median of ROUNDS rounds after warm-up.  The time is supplied, as to
 * Weir: a call every 100 us, each of 20 us.  There is no breaker here.
 */
import com.netflix.concurrency.limits.Limit;
import com.netflix.concurrency.limits.Limiter;
import com.netflix.concurrency.limits.limit.FixedLimit;
import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.limit.WindowedLimit;
import com.netflix.concurrency.limits.limiter.SimpleLimiter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Optional;

public final class NetflixPeer {
    static final int ROUNDS = 5;
    static final int PAIRS = 2_000_000;
    static final int PIECE = 50_000; // pairs per call of enterMany: called often, so compiled whole
    static final int WARM_UP_PIECES = 40;

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /* A limiter and its rounds. */
    static final class Subject {
        final String name;
        final SimpleLimiter<Void> limiter;
        final double[] spent = new double[ROUNDS];
        long now = 1_000_000_000_000L;

        Subject(String name, Limit limit, boolean clock) {
            SimpleLimiter.Builder builder = SimpleLimiter.newBuilder().named(name).limit(limit);
            this.name = name;
            limiter = (clock ? builder : builder.nanoClock(() -> now)).build();
        }

        int enterMany() {
            int entered = 0;
            for (int i = 0; i < PIECE; i++) {
                Optional<Limiter.Listener> permit = limiter.acquire(null);
                now += 20_000;
                if (permit.isPresent()) {
                    entered++;
                    permit.get().onSuccess();
                }
                now += 80_000;
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
                throw new IllegalStateException(name + ": " + entered + " entered");
            return (double) spent / PAIRS;
        }
    }

    static Limit gradient2() {
        return WindowedLimit.newBuilder().build(Gradient2Limit.newBuilder().build());
    }

    public static void main(String[] args) {
        Subject[] subjects = { new Subject("permits", FixedLimit.of(1000), false),
            new Subject("enter-exit", gradient2(), false), new Subject("clock", gradient2(), true),
            new Subject("busy", FixedLimit.of(1), false) };
        Subject busy = subjects[3];

        busy.limiter.acquire(null); // for good
        for (int i = 0; i < WARM_UP_PIECES; i++)
            for (Subject subject : subjects)
                subject.enterMany();
        for (int i = 0; i < ROUNDS; i++)
            for (Subject subject : subjects)
                subject.spent[i] = subject.round(subject == busy ? 0 : PAIRS);
        for (Subject subject : subjects) {
            Arrays.sort(subject.spent);
            System.out.printf(java.util.Locale.ROOT, "guard.netflix.%s\t%.2f\tns%n", subject.name,
                              subject.spent[ROUNDS / 2]);
        }
    }
}
