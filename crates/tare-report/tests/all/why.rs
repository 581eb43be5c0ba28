//! What `tare why` prints, as snapshots.

use tare_model::comparison::{Change as Share, Figure, Verdict};
use tare_model::gate::Effect;
use tare_model::outcome::{Cause, Estimate, Gross, GrossIs, Net, NetOrMissing, TareCause, Warning};
use tare_model::why::{
    Change, Corrected, Difference, FrameChange, Kind, Part, PerRequest, Run, SCHEMA, TareChange, Why,
};
use tare_model::{Missing, Reading};
use tare_report::{Style, why};

fn style(width: usize, unicode: bool) -> Style {
    Style { color: false, width, unicode }
}

fn run(name: &str, hz: f64, bottleneck: Cause) -> Run {
    let gross = Estimate { value: hz, unit: "req/s".to_owned(), ci95: Some([hz * 0.99, hz * 1.01]) };
    Run {
        gross_is: GrossIs::Capacity,
        name: name.to_owned(),
        started_unix_s: 0,
        trials: 5,
        gross: Gross::Measured(gross),
        net: NetOrMissing::Net(Net {
            value: 171_000.0,
            unit: "req/s".to_owned(),
            ci95: Some([168_000.0, 174_000.0]),
            transport: "loopback".to_owned(),
            cpus: 1.0,
            ref_clock_hz: Some(2.9e9),
            against_reference: None,
        }),
        bottleneck,
        lock_taken_in: None,
        bottleneck_title: match bottleneck {
            Cause::ServerCpuBound => "The server's CPU is the bottleneck",
            _ => "A CPU quota is the bottleneck",
        }
        .into(),
        valid: true,
    }
}

fn part(id: &str, ln: f64, half: f64, from: f64, to: f64, unit: &str) -> Part {
    Part { id: id.to_owned(), ln, ci95: Some([ln - half, ln + half]), from, to, unit: unit.to_owned() }
}

fn difference(kind: Kind, name: &str, a: Option<&str>, b: Option<&str>, matters: &str) -> Difference {
    let side = |text: Option<&str>| text.map(str::to_owned);
    Difference { kind, name: name.to_owned(), a: side(a), b: side(b), matters: matters.to_owned() }
}

fn figures() -> Vec<Effect> {
    let effect = |figure, [baseline, value]: [f64; 2], half: f64, verdict| {
        let change = value / baseline - 1.0;
        Effect {
            figure,
            of_reference: false,
            baseline: Some(baseline),
            value: Some(value),
            runs: 1,
            runs_missing: 0,
            change: Reading::Measured(Share { value: change, interval: [change - half, change + half] }),
            detectable: None,
            verdict,
        }
    };
    let p999 = Effect {
        baseline: None,
        value: None,
        change: Reading::missing("in A a trial has too few answers for it"),
        ..effect(Figure::P999, [1.0, 1.0], 0.0, Verdict::CannotTell)
    };
    vec![
        effect(Figure::Throughput, [168e3, 83e3], 0.01, Verdict::Slower),
        effect(Figure::Net, [171e3, 170e3], 0.009, Verdict::CannotTell),
        effect(Figure::CpuPerRequest, [5.8e-6, 5.98e-6], 0.01, Verdict::Slower),
        effect(Figure::P99, [550e-6, 48e-3], 2.0, Verdict::Slower),
        p999,
    ]
}

pub(crate) fn throttled() -> Why {
    let change = |from: f64, to: f64, half: f64| {
        let ln = (to / from).ln();
        let unit = "req/s".to_owned();
        Reading::Measured(Change { from, to, unit, ln, ci95: Some([ln - half, ln + half]) })
    };
    Why {
        figures: figures(),
        schema: SCHEMA,
        workload: "http".to_owned(),
        a: run("before.tare", 168_000.0, Cause::ServerCpuBound),
        b: run("after.tare", 83_000.0, Cause::CpuQuotaThrottled),
        rate: change(168_000.0, 83_000.0, 0.02),
        interference_corrected: None,
        per_core: None,
        net: change(171_000.0, 170_000.0, 0.02),
        parts: Reading::Measured(vec![
            part("throttled", -0.69, 0.02, 0.0, 0.49, "CPUs"),
            part("cost", -0.03, 0.01, 16_400.0, 16_900.0, "cycles"),
            part("no-work", 0.014, 0.02, 0.02, 0.01, "CPUs"),
            part("clock", 0.0009, 0.002, 2.9e9, 2.9026e9, "Hz"),
            part("entitlement", 0.0, 0.0, 1.0, 1.0, "CPUs"),
        ]),
        method: "95 % intervals that hold together".to_owned(),
        tare: vec![TareChange { cause: TareCause::Throttled, from_ln: 0.0, to_ln: 0.69 }],
        frames: Reading::Measured(vec![FrameChange {
            function: "memcpy".to_owned(),
            own: true,
            before: 0.10,
            after: 0.15,
            ci95: [0.02, 0.08],
            per_request: Some(PerRequest {
                before_ns: 500.0,
                after_ns: 1_480.0,
                difference_ci95_ns: [400.0, 1_560.0],
            }),
        }]),
        generator: None,
        differences: vec![
            difference(Kind::Environment, "MODE", Some("slow"), None, "libraries are tuned by variables"),
            difference(Kind::Quota, "the program's quota", None, Some("0.50 CPUs"), "it is held back"),
        ],
        uncompared: vec![Missing::new("microcode: not known of A (no such file)")],
        warnings: vec![Warning {
            id: "other-machine".to_owned(),
            text: "the two ran on different machines".to_owned(),
            hint: "read it as an account".to_owned(),
        }],
    }
}

#[test]
fn two_machines_are_compared_core_by_core() {
    let parts = vec![
        part("clock", -(1.2f64.ln()), 0.01, 3.6e9, 3e9, "Hz"),
        part("ipc", -(1.5f64.ln()), 0.01, 1.2, 0.8, "instructions per cycle"),
        part("instructions", 0.001, 0.01, 20_000.0, 19_980.0, "instructions"),
        part("throttled", -0.69, 0.02, 0.0, 0.49, "CPUs"),
    ];
    let ln = -(1.8f64.ln());
    let per_core =
        Change { from: 90e3, to: 50e3, unit: "req/s".to_owned(), ln, ci95: Some([ln - 0.03, ln + 0.03]) };
    let why = Why { parts: Reading::Measured(parts), per_core: Some(per_core), ..throttled() };
    let text = why::report(&why).terminal(style(200, true));
    let said = "Per core B is 1.80 × slower (50.0k req/s after 90.0k req/s of a busy CPU): clock (how fast its CPUs ran) 1.20 × slower, ipc \
                (instructions in a cycle) 1.50 × slower, instructions (instructions of a request) shows no difference.";
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(said), "{text}");
}

#[test]
fn two_runs() {
    insta::assert_snapshot!("why-two", why::report(&throttled()).terminal(style(120, true)));
    insta::assert_snapshot!("why-two-narrow", why::report(&throttled()).terminal(style(60, false)));
}

/// Two that were loaded interleaved with the reference server, at saturation: how far they differ as measured, by the machine, and by
/// the program's cost.
fn beside_reference(machine_ln: f64, cost_ln: f64) -> Why {
    let ln = machine_ln + cost_ln;
    let (to_hz, cost) = (47_000.0 * ln.exp(), 12.9 * (-cost_ln).exp());
    let change = |from: f64, to: f64, unit: &str, half: f64| {
        let ln = (to / from).ln();
        Reading::Measured(Change { from, to, unit: unit.to_owned(), ln, ci95: Some([ln - half, ln + half]) })
    };
    Why {
        rate: change(47_000.0, to_hz, "req/s", 0.2),
        interference_corrected: Some(Corrected { ln: cost_ln, ci95: Some([cost_ln - 0.02, cost_ln + 0.02]) }),
        net: change(1.0 / 12.9, 1.0 / cost, "of tare's own server", 0.02),
        parts: Reading::Measured(vec![
            part("cost", cost_ln, 0.02, 12.9, cost, "×"),
            part("interference", machine_ln, 0.2, 11_900.0, 11_900.0 * (-machine_ln).exp(), "cycles"),
        ]),
        tare: Vec::new(),
        differences: Vec::new(),
        uncompared: Vec::new(),
        warnings: Vec::new(),
        frames: Reading::missing("no stacks were sampled"),
        figures: Vec::new(),
        ..throttled()
    }
}

#[test]
fn the_first_sentence_is_the_strongest_that_is_shown() {
    let text =
        |machine_ln, cost_ln| why::report(&beside_reference(machine_ln, cost_ln)).terminal(style(120, true));
    insta::assert_snapshot!("why-slower-beside-reference", text(-0.05, -0.26));
    insta::assert_snapshot!("why-interference-alone", text(-0.3, -0.004));
    let unknown = text(-0.1, -0.004);
    assert!(unknown.starts_with("No difference is shown: B is"), "{unknown}");
}

#[test]
fn parts_that_cancel_are_no_share_of_the_difference() {
    let first = |whole_ln: f64, of_parts: [f64; 3]| {
        let mut differ = throttled();
        if let (Reading::Measured(rate), Reading::Measured(parts)) = (&mut differ.rate, &mut differ.parts) {
            (rate.ln, rate.ci95) = (whole_ln, Some([whole_ln - 0.1, whole_ln + 0.1]));
            for (part, ln) in parts.iter_mut().zip(of_parts.into_iter().chain(std::iter::repeat(0.0))) {
                (part.ln, part.ci95) = (ln, Some([ln - 0.1, ln + 0.1]));
            }
        }
        let text = why::report(&differ).terminal(style(200, true));
        text.lines().next().unwrap().to_owned()
    };
    for (whole_ln, of_parts) in [(2.1, [24.2, -22.1, 0.0]), (2.0, [-10.0, 6.0, 6.0])] {
        let text = first(whole_ln, of_parts);
        assert!(text.contains("its largest parts cancel: ") && !text.contains("of it is"), "{text}");
    }
    assert!(first(-1.0, [-0.7, -0.3, 0.0]).contains("70 % of it is"), "{}", first(-1.0, [-0.7, -0.3, 0.0]));
}

/// Two runs whose rates, nets, parts, figures and functions are not shown to differ.
fn alike() -> Why {
    let mut same = throttled();
    if let (Reading::Measured(rate), Reading::Measured(parts)) = (&mut same.rate, &mut same.parts) {
        (rate.ln, rate.to, rate.ci95) = (-0.004, 167_300.0, Some([-0.02, 0.012]));
        parts.iter_mut().for_each(|part| (part.ln, part.ci95) = (-0.0008, Some([-0.01, 0.01])));
    }
    same.figures.retain(|effect| effect.verdict == Verdict::CannotTell);
    same.frames = Reading::Measured(Vec::new());
    same
}

/// No line below the first may say that something changed where the first says that nothing did.
#[test]
fn what_is_shown_to_differ_is_in_the_first_sentence_though_the_rates_are_not() {
    let first = |why: &Why| {
        let text = why::report(why).terminal(style(120, true));
        let lines = text.lines().take_while(|line| !line.starts_with("Net: "));
        let sentence = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        assert!(!sentence.starts_with("No difference"), "{sentence}");
        sentence
    };
    let mut other_net = alike();
    if let Reading::Measured(net) = &mut other_net.net {
        (net.ln, net.ci95) = (-0.13, Some([-0.2, -0.06]));
    }
    assert!(first(&other_net).contains("but its net did change: 12 % slower"), "{}", first(&other_net));
    let other_latency = Why { figures: figures(), ..alike() };
    assert!(first(&other_latency).contains("but other figures did change: "), "{}", first(&other_latency));
    let other_code = Why { frames: throttled().frames, ..alike() };
    assert!(first(&other_code).contains("but the share of 1 function did change"), "{}", first(&other_code));
    // As measured it is slower, and by the machine; its cost is shown to have changed all the same.
    let mut disturbed = beside_reference(-0.3, -0.004);
    if let Reading::Measured(parts) = &mut disturbed.parts {
        parts[0].ci95 = Some([-0.006, -0.002]);
    }
    assert!(first(&disturbed).contains("no difference is shown") && first(&disturbed).contains("its cost"));
}

#[test]
fn a_rate_that_is_no_capacity_says_so() {
    let mut bound = throttled();
    (bound.a.gross_is, bound.b.gross_is) = (GrossIs::LowerBound, GrossIs::Offered);
    let text = why::report(&bound).terminal(style(120, true));
    assert!(text.contains("Lower bound: the rate of A; the server may do more."), "{text}");
    assert!(text.contains("Asked for: the rate of B;"), "{text}");
}

#[test]
fn what_is_within_noise_or_not_to_be_had_is_said() {
    let text = why::report(&alike()).terminal(style(100, true));
    assert!(text.starts_with("No difference is shown: B is 0.40 % slower"), "{text}");
    let mut none = throttled();
    let missing = Missing::new("nothing was finished in B, and 0 has no logarithm");
    (none.rate, none.parts) = (Reading::Missing(missing.clone()), Reading::Missing(missing));
    let text = why::report(&none).terminal(style(100, true));
    assert!(text.starts_with("The rates cannot be compared: nothing was finished in B"), "{text}");
}

#[test]
fn the_page_has_the_same_and_a_waterfall() {
    let page = why::report(&throttled()).html();
    assert!(page.starts_with("<!doctype html>") && page.contains("class=\"rows steps\""));
    for word in ["throttled", "MODE", "memcpy", "microcode", "before.tare"] {
        assert!(page.contains(word), "{word}");
    }
    let mut odd = throttled();
    odd.differences[0].a = Some("<script>\u{1b}[2J".to_owned());
    assert!(!why::report(&odd).html().contains("<script"));
    assert!(why::report(&odd).terminal(style(100, true)).chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn one_run() {
    let (record, outcome) = (crate::support::record(), crate::support::throttled());
    insta::assert_snapshot!("why-one", why::story(&record, &outcome).terminal(style(100, true)));
    assert!(why::story(&record, &outcome).html().contains("Where each second of its CPUs went"));
    let (mut record, mut outcome) = (record, outcome);
    let figures = [f64::NAN, 0.0, -1.0, 1e300, f64::INFINITY];
    crate::support::scramble::scramble(&mut outcome, &figures, "a\u{1b}[2J<script>");
    crate::support::scramble::scramble_record(&mut record, &figures, "a\u{1b}[2J<script>");
    let text = why::story(&record, &outcome).terminal(style(80, true));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains("NaN"), "{text}");
    assert!(!why::story(&record, &outcome).html().contains("<script"));
}
