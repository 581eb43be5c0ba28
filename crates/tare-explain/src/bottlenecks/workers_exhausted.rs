//! `workers-exhausted`: every worker sleeps in a call, a timer or on a disk, while more requests are in flight than there are workers.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, duration, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::workers::{Kept, Pool};
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::WorkersExhausted,
    title: "Too few workers are the bottleneck: all of them wait",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Sleeps],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| Pool::exhausted(accounting).is_some(),
    describe,
    confirm: Confirm::Cannot {
        why: "how many workers a program has is its own setting",
        instead: "give it twice the workers and run again",
    },
    injections: &[],
    page: &PAGE,
};

/// A disk and another server have causes of their own, which say more.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let pool = Pool::exhausted(accounting).filter(|pool| matches!(pool.kept, Kept::Timer | Kept::Unseen))?;
    Some(Claim::at(Rank::OwnWaits).of_share(pool.blocked))
}

fn describe(accounting: &Accounting) -> Draft {
    let Some(pool) = Pool::exhausted(accounting) else {
        return Draft { summary: "Not all workers were asleep in calls.".to_owned(), ..Draft::default() };
    };
    let workers = pool.workers as f64;
    let each = pool
        .each_s
        .map_or(String::new(), |each_s| format!(" A request keeps a worker for {}.", duration(each_s)));
    let wanted = match (pool.until_cpus_full(accounting), pool.in_flight) {
        (Some(full), Some(in_flight)) if in_flight < full => format!(
            " So that no request of this load waits, {in_flight:.0} workers are needed (Little's law: as many as requests in flight); its CPUs \
             have room for about {full:.0}."
        ),
        (Some(full), _) => format!(
            " About {full:.0} workers would keep its CPUs busy (Little's law: the rate that its CPUs allow, times {}).",
            duration(pool.each_s.unwrap_or(0.0))
        ),
        (None, Some(in_flight)) => format!(" {in_flight:.0} requests are in flight."),
        (None, None) => String::new(),
    };
    let mut evidence = vec![
        number("workers", workers, "count"),
        number("workers asleep in calls, share of their time", pool.blocked, "share"),
        number("workers idle, share of their time", pool.idle, "share"),
    ];
    evidence.extend(number_if("connections that waited to be accepted", pool.waiting, "count"));
    evidence.extend(number_if("requests in flight", pool.in_flight, "count"));
    evidence.extend(number_if("time that a request keeps a worker", pool.each_s, "s"));
    evidence.extend(number_if("workers that would fill its CPUs", pool.until_cpus_full(accounting), "count"));
    let unseen = match pool.waiting {
        Some(waiting) => format!(
            " Whenever a trial ended, {waiting:.0} connections waited to be accepted: a server with a free worker takes them.{}",
            if pool.kept == Kept::Unseen { " What the workers waited for could not be seen." } else { "" }
        ),
        None => String::new(),
    };
    Draft {
        summary: format!(
            "{} asleep {} {} of {} time while more requests were in flight than there are workers.{unseen}{each}{wanted}",
            if pool.workers == 1 {
                "The one worker was".to_owned()
            } else {
                format!("All {} workers were", pool.workers)
            },
            pool.kept.words(),
            percent(pool.blocked),
            if pool.workers == 1 { "its" } else { "their" },
        ),
        // Whether all wait for one thing is not known where it was not seen what they wait for.
        confidence: match pool.kept {
            Kept::Unseen => 0.6,
            _ if accounting.asked.trials.len() > 1 => 0.9,
            _ => 0.5,
        },
        evidence,
        remedy: match pool.kept {
            Kept::Unseen => {
                "find what they sleep for (`strace -f -p PID`, or `tare run --stacks-off-cpu URL` and then `tare flame --off-cpu`): more \
                 workers help where each waits for itself, and not where all wait for one thing"
            }
            _ => "give it more workers (threads, processes), or let a request sleep for less",
        }
        .to_owned(),
        confirm: "with twice the workers the rate nearly doubles".to_owned(),
        ..Draft::default()
    }
}

static PAGE: Page = Page {
    brief: "Every worker sleeps in a call while requests wait for a worker.",
    means: &[
        "A program of k workers (threads or processes) answers at most k requests at once. All of them slept in a timer, on a \
         disk or on another server, and more requests were in flight: the others waited for a worker. The CPUs were idle.",
        "The rate is the number of workers divided by the time that a request keeps one (Little's law). The wait is the \
         program's own, so it stays in net.",
    ],
    evidence: &[
        "Workers, and the share of their time that they slept in calls, and that they were idle. The second is small.",
        "Connections that waited to be accepted, where the sleep has no name of its own (a green thread, a runtime's own timer): a server \
         with a free worker takes them at once.",
        "Requests in flight, and the time that a request keeps a worker.",
        "Workers that would fill the CPUs: the rate that the CPUs allow, times that time.",
    ],
    looks_the_same: &[
        "`too-little-concurrency`: workers wait for requests. Here requests wait for workers.",
        "`blocked-on-disk`, `blocked-on-downstream`: the same with a known reason for the sleep. They are named first.",
        "`lock-contended`: workers sleep in a lock, and one of them has it.",
        "A pool with nothing to do sleeps as well: in futexes or for events, not in timers and calls.",
    ],
    to_do: &[
        "Give it more workers: the number in the finding is what Little's law asks for.",
        "Let a request sleep for less: find the call (`strace -f -c -p PID`, or `tare run --stacks-off-cpu URL` and `tare flame --off-cpu`).",
        "Serve requests that only wait from an event loop.",
    ],
    to_confirm: &[
        "There is no intervention: the number of workers is the program's own. With twice the workers the rate nearly doubles.",
        "By hand: `cat /proc/PID/task/*/wchan` shows the same sleep for every worker, and `ss -tn` connections with unread \
         bytes.",
    ],
    source: &[
        "Samples of what each thread sleeps in, or traced switches. J. Little, A Proof for the Queuing Formula L = λW, Operations \
         Research 1961.",
    ],
};
