// main.rs -- Rust's governor (GCRA by compare-and-swap, as Weir's), measured as a peer of Weir.
//
//     peer.governor.granted, .refused    one direct limiter, the time supplied
//     peer.governor.*-own-clock          the same with governor's default clock (quanta, which reads the TSC where it can)
//     peer.governor.keyed-hot            its DashMap of limiters, the time supplied: one key, granted
//     peer.governor.keyed-1e6            a million keys, asked at random, granted
//
// CPU time of the one thread, median of five rounds.  Keys are 16 bytes.  The hasher is governor's default, the standard library's
// SipHash-1-3: it is what users get.  Rust inlines the crate into the loop; a C library's caller pays for a call as well.

use governor::clock::{Clock, DefaultClock};
use governor::nanos::Nanos;
use governor::{Quota, RateLimiter};
use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

const ROUNDS: usize = 5;
const ASKS: u32 = 20_000_000;
const ASKS_SLOW: u32 = 5_000_000; // of what costs a clock or a cache miss
const KEYS: u64 = 1_000_000;
const TICK: u64 = 100; // ns between asks

// Time as an argument, as near as governor comes to it: a clock that costs one load.  (Its own FakeRelativeClock is an atomic behind an
// Arc, whose advance would be measured too.)
#[derive(Clone)]
struct SuppliedClock(Rc<Cell<u64>>);

impl SuppliedClock {
    fn new() -> Self {
        SuppliedClock(Rc::new(Cell::new(0)))
    }
    fn tick(&self) {
        self.0.set(self.0.get() + TICK);
    }
}

impl Clock for SuppliedClock {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        Nanos::new(self.0.get())
    }
}

// One per nanosecond, and plenty at once: every ask is granted.  (Quotas come out of a black box as they would out of a configuration.)
fn generous() -> Quota {
    Quota::per_second(black_box(NonZeroU32::new(1_000_000_000).unwrap()))
}

// One in eleven days: every ask but the first is refused.
fn mean() -> Quota {
    Quota::with_period(black_box(Duration::from_secs(1_000_000))).unwrap()
}

fn key(n: u64) -> [u8; 16] {
    let mut k = [0; 16];
    k[..8].copy_from_slice(&n.to_le_bytes());
    k[8..].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    k
}

fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a timespec, alive during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

struct Subject<'a> {
    name: &'static str,
    asks: u32,
    granted: u32, // expected of a round
    run: Box<dyn FnMut(u32) -> u32 + 'a>,
    ns: Vec<f64>,
}

fn subject<'a>(name: &'static str, asks: u32, grants: bool, mut ask: impl FnMut() -> bool + 'a) -> Subject<'a> {
    // One dynamic call a round, not one an ask.
    let run = Box::new(move |n| (0..n).filter(|_| black_box(ask())).count() as u32);
    Subject { name, asks, granted: if grants { asks } else { 0 }, run, ns: Vec::new() }
}

impl Subject<'_> {
    // The count proves that the path meant was the path measured.
    fn round(&mut self) {
        let start = cpu_ns();
        let granted = (self.run)(self.asks);
        let spent = cpu_ns() - start;
        assert_eq!(granted, self.granted, "{}: not the answers this measures", self.name);
        self.ns.push(spent as f64 / self.asks as f64);
    }

    fn print(&mut self) {
        self.ns.sort_by(f64::total_cmp);
        println!("peer.governor.{}\t{:.2}\tns", self.name, self.ns[ROUNDS / 2]);
    }
}

fn main() {
    let time = SuppliedClock::new();
    let own = DefaultClock::default();

    let yes = RateLimiter::direct_with_clock(generous(), time.clone());
    let no = RateLimiter::direct_with_clock(mean(), time.clone());
    let yes_own = RateLimiter::direct_with_clock(generous(), own.clone());
    let no_own = RateLimiter::direct_with_clock(mean(), own);
    assert!(no.check().is_ok() && no_own.check().is_ok()); // their burst

    let hot = RateLimiter::dashmap_with_clock(generous(), time.clone());
    let hot_key = key(1);
    let many = RateLimiter::dashmap_with_clock(generous(), time.clone());
    for n in 0..KEYS {
        assert!(many.check_key(&key(n)).is_ok());
    }
    let mut random = 88_172_645_463_325_252_u64; // xorshift64

    let mut subjects = [
        subject("granted", ASKS, true, || {
            time.tick();
            yes.check().is_ok()
        }),
        subject("refused", ASKS, false, || {
            time.tick();
            no.check().is_ok()
        }),
        subject("granted-own-clock", ASKS_SLOW, true, || yes_own.check().is_ok()),
        subject("refused-own-clock", ASKS_SLOW, false, || no_own.check().is_ok()),
        subject("keyed-hot", ASKS, true, || {
            time.tick();
            hot.check_key(black_box(&hot_key)).is_ok()
        }),
        subject("keyed-1e6", ASKS_SLOW, true, || {
            time.tick();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            many.check_key(&key(random % KEYS)).is_ok()
        }),
    ];
    for _ in 0..ROUNDS {
        // Alternating, so that a noisy moment hits all.
        subjects.iter_mut().for_each(Subject::round);
    }
    subjects.iter_mut().for_each(Subject::print);
}
