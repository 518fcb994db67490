/* GuavaPeer.java -- Guava's RateLimiter.tryAcquire, measured as a peer of Weir.
 *
 *     peer.guava.granted    the rate is so high that every ask is granted
 *     peer.guava.refused    the rate is so low that every ask but the first is refused
 *
 * CPU time of the asking thread, median of ROUNDS rounds.  Guava reads its own clock in each ask; there is no way to supply the time
 * short of its package-private test hooks, which users do not have.
 *
 * Both limiters are warmed up before either is measured: a JIT that had seen only grants would compile refusals away, and then measure
 * its own recompilation.  The rounds of the two alternate, so that a noisy moment hits both.
 */
import com.google.common.util.concurrent.RateLimiter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

public final class GuavaPeer {
    static final int ROUNDS = 5;
    static final int ASKS = 5_000_000;
    static final int PIECE = 100_000; // asks per call of askMany: called often, so compiled as a whole and not while it runs
    static final int WARM_UP_PIECES = 50;

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    static int askMany(RateLimiter limiter) {
        int granted = 0;
        for (int i = 0; i < PIECE; i++)
            if (limiter.tryAcquire())
                granted++;
        return granted;
    }

    /* The count proves that the path meant was the path measured, and keeps the work from being optimised away. */
    static double round(RateLimiter limiter, long grantedExpected) {
        long granted = 0;
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < ASKS / PIECE; i++)
            granted += askMany(limiter);
        long spent = THREADS.getCurrentThreadCpuTime() - start;
        if (granted != grantedExpected)
            throw new IllegalStateException("not the answers this measures: " + granted + " granted");
        return (double) spent / ASKS;
    }

    static void print(String name, double[] rounds) {
        Arrays.sort(rounds);
        System.out.printf(java.util.Locale.ROOT, "%s\t%.2f\tns%n", name, rounds[ROUNDS / 2]);
    }

    public static void main(String[] args) {
        RateLimiter generous = RateLimiter.create(1e12);
        RateLimiter mean = RateLimiter.create(1e-6);
        double[] granted = new double[ROUNDS];
        double[] refused = new double[ROUNDS];

        for (int i = 0; i < WARM_UP_PIECES; i++) {
            askMany(generous);
            askMany(mean);
        }
        for (int i = 0; i < ROUNDS; i++) {
            granted[i] = round(generous, ASKS);
            refused[i] = round(mean, 0);
        }
        print("peer.guava.granted", granted);
        print("peer.guava.refused", refused);
    }
}
