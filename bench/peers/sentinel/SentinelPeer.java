/* SentinelPeer.java -- Sentinel's SphU.entry and exit, measured as a peer of Weir's enter and exit.
 *
 *     guard.sentinel.enter-exit   one flow rule by thread count and one degrade rule by slow-call ratio; both let everything through
 *     guard.sentinel.busy         the thread count is used up: every entry is a BlockException
 *     guard.sentinel.open         the breaker is open: the same
 *
 * CPU time of the asking thread, median of ROUNDS rounds after warm-up.  Sentinel takes its time from a thread of its own, which is not
 * counted.  The resources differ, as a rule belongs to a resource; their rounds alternate, so that a noisy moment hits all.
 */
import com.alibaba.csp.sentinel.Entry;
import com.alibaba.csp.sentinel.SphU;
import com.alibaba.csp.sentinel.slots.block.BlockException;
import com.alibaba.csp.sentinel.slots.block.RuleConstant;
import com.alibaba.csp.sentinel.slots.block.degrade.DegradeRule;
import com.alibaba.csp.sentinel.slots.block.degrade.DegradeRuleManager;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRule;
import com.alibaba.csp.sentinel.slots.block.flow.FlowRuleManager;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.List;

public final class SentinelPeer {
    static final int ROUNDS = 5;
    static final int PAIRS = 1_000_000;
    static final int PIECE = 20_000; // pairs per call of enterMany: called often, so compiled as a whole and not while it runs
    static final int WARM_UP_PIECES = 40;
    static final String[] NAMES = { "enter-exit", "busy", "open" };

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    static int enterMany(String resource) {
        int entered = 0;
        for (int i = 0; i < PIECE; i++) {
            try {
                Entry entry = SphU.entry(resource);
                entered++;
                entry.exit();
            } catch (BlockException refused) {
                // nothing to give back
            }
        }
        return entered;
    }

    /* The count proves that the path meant was the path measured. */
    static double round(String resource, long expected) {
        long entered = 0;
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < PAIRS / PIECE; i++)
            entered += enterMany(resource);
        long spent = THREADS.getCurrentThreadCpuTime() - start;
        if (entered != expected)
            throw new IllegalStateException(resource + ": not the answers this measures: " + entered + " entered");
        return (double) spent / PAIRS;
    }

    static FlowRule threads(String resource, int count) {
        FlowRule rule = new FlowRule(resource);
        rule.setGrade(RuleConstant.FLOW_GRADE_THREAD);
        rule.setCount(count);
        return rule;
    }

    static DegradeRule slow(String resource, int longestMs) {
        DegradeRule rule = new DegradeRule(resource);
        rule.setGrade(RuleConstant.DEGRADE_GRADE_RT);
        rule.setCount(longestMs);
        rule.setSlowRatioThreshold(0.5);
        rule.setMinRequestAmount(20);
        rule.setStatIntervalMs(10_000);
        rule.setTimeWindow(600);
        return rule;
    }

    /* Twenty calls longer than a millisecond open its breaker, for longer than this program runs. */
    static void open(String resource) throws Exception {
        for (int i = 0; i < 20; i++) {
            Entry entry = SphU.entry(resource);
            Thread.sleep(5);
            entry.exit();
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream figures = System.out;
        System.setOut(System.err); // Sentinel talks
        FlowRuleManager.loadRules(List.of(threads("enter-exit", 1000), threads("busy", 0), threads("open", 1000)));
        DegradeRuleManager.loadRules(List.of(slow("enter-exit", 5000), slow("busy", 5000), slow("open", 1)));
        open("open");

        double[][] spent = new double[NAMES.length][ROUNDS];
        for (int i = 0; i < WARM_UP_PIECES; i++)
            for (String name : NAMES)
                enterMany(name);
        for (int i = 0; i < ROUNDS; i++)
            for (int j = 0; j < NAMES.length; j++)
                spent[j][i] = round(NAMES[j], j == 0 ? PAIRS : 0);
        for (int j = 0; j < NAMES.length; j++) {
            Arrays.sort(spent[j]);
            figures.printf(java.util.Locale.ROOT, "guard.sentinel.%s\t%.2f\tns%n", NAMES[j], spent[j][ROUNDS / 2]);
        }
        System.exit(0); // its own threads would go on
    }
}
