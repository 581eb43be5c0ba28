//! The result as a page.

use proptest::prelude::*;
use tare_model::observation::Role;
use tare_model::stacks::{Folded, Folder, Frame};
use tare_model::{Missing, Reading};
use tare_report::html;

/// Every element is closed in order, every attribute quoted, and no text looks like a tag.
fn check_well_formed(page: &str) -> Result<(), String> {
    let body = page.strip_prefix("<!doctype html>").ok_or("no doctype")?;
    let mut open: Vec<&str> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        if text.contains('>') && open.last() != Some(&"style") {
            return Err(format!("a bare > in {text}"));
        }
        let end = rest[at..].find('>').ok_or("a tag without end")? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("an open quote in <{tag}>"));
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} left open")) }
}

/// Nothing that a browser would fetch or run.
fn check_self_contained(page: &str) -> Result<(), String> {
    let fetching =
        ["src=", "href=", "url(", "@import", "<script", "<link", "<iframe", "<img", "<object", "onload="];
    match fetching.iter().find(|fetching| page.to_lowercase().contains(**fetching)) {
        Some(found) => Err(format!("{found} in the page")),
        None => Ok(()),
    }
}

#[test]
fn every_kind_of_result_is_one_whole_page() {
    for (name, record, outcome) in crate::support::all() {
        let page = html(&record, &outcome);
        check_well_formed(&page).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        check_self_contained(&page).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
}

#[test]
fn a_page_of_http_has_every_part() {
    let page = html(&crate::support::record(), &crate::support::throttled());
    let parts = [
        "A CPU quota is the bottleneck",
        ">54.3k\u{a0}req/s<",
        ">177k\u{a0}req/s<",
        "class=\"rows steps\"",
        "<h2>Findings</h2>",
        "Latency by percentile",
        ">99.99<",
        "Rate and busy CPUs",
        "Where the threads&#39; time went",
        "throttled 67\u{a0}% of the time",
        "Each CPU&#39;s time",
        "<h2>Trials</h2>",
        "<h2>Machine</h2>",
        "prefers-color-scheme: dark",
        "2026-11-21 22:00 UTC",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_run_is_drawn_below_the_roof_of_one_core_or_it_says_why_not() {
    let known = |name: &str, value: f64| tare_model::ceiling::KnownCeiling {
        name: name.to_owned(),
        estimate: tare_model::outcome::Estimate { value, unit: "1/s".to_owned(), ci95: None },
    };
    let mut record = crate::support::record();
    let page = |record: &tare_model::Record, outcome| {
        let page = html(record, &outcome);
        check_well_formed(&page).unwrap();
        page
    };
    assert!(!page(&record, crate::support::generator_bound()).contains("Roofline"), "no ceiling is known");
    let ceilings = vec![known("integer", 16e9), known("memory-read-1", 8e9)];
    record.plan.bounds.ceilings =
        Reading::Measured(tare_model::ceiling::KnownCeilings { measured_unix_s: 1, ceilings });
    let drawn = page(&record, crate::support::generator_bound());
    for part in ["<h2>Roofline</h2>", "Roofline of one core", "this run: ", "lets one core execute"] {
        assert!(drawn.contains(part), "{part}");
    }
    let without = page(&record, crate::support::throttled());
    assert!(without.contains("The run is not in the drawing: ") && !without.contains("this run: "));
}

#[test]
fn call_stacks_are_drawn_where_there_are_any() {
    let mut record = crate::support::record();
    let mut folder = Folder::default();
    let mut on_cpu = Folded::new(Some(999.0));
    let thread = folder.frame(Frame::mark("nginx"));
    let hostile = "\"><script>alert('x')</script>url(x)";
    let frames = ["main", hostile].map(|symbol| folder.frame(Frame::mark(symbol)));
    on_cpu.add(Role::Sut, thread, frames.to_vec(), 70);
    let unseen = vec![Missing::with_remedy("kernel names are hidden", "run as root")];
    let stacks = folder.close(Reading::Measured(on_cpu), Reading::missing("not asked for"), unseen);
    record.trials[0].observation.stacks = Some(Box::new(stacks));
    let page = html(&record, &crate::support::throttled());
    check_well_formed(&page).unwrap();
    for part in ["<h2>Call stacks</h2>", "70 samples at 999 Hz", "interrupts off", "hidden (run as root)"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        page.contains("main (70 samples, 100.00%)")
            && page.contains("waited: there are no stacks: not asked for")
    );
    assert!(!page.contains("<script"));
}

#[test]
fn nothing_in_a_record_becomes_markup() {
    let (mut record, mut outcome) = (crate::support::record(), crate::support::throttled());
    let hostile = "\"><script>alert('x')</script><img src=x onerror=\u{202e}&amp;";
    crate::support::scramble::scramble(&mut outcome, &[0.5, 1e3], hostile);
    crate::support::scramble::scramble_record(&mut record, &[1e9, 2e9], hostile);
    let page = html(&record, &outcome);
    assert!(page.contains("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'));
    check_well_formed(&page).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_outcome_breaks_the_page(
        kind in 0usize..8,
        figures in prop::collection::vec(
            prop_oneof![prop::num::f64::ANY, Just(f64::NAN), Just(f64::INFINITY), 0.0..1e10f64], 1..60),
        text in prop_oneof!["\\PC{0,40}", "(?s).{0,20}"],
    ) {
        let (_, mut record, mut outcome) = crate::support::all().swap_remove(kind);
        crate::support::scramble::scramble(&mut outcome, &figures, &text);
        crate::support::scramble::scramble_record(&mut record, &figures, &text);
        let page = html(&record, &outcome);
        prop_assert!(check_well_formed(&page).is_ok(), "{:?}", check_well_formed(&page));
        // No coordinate of a drawing and no figure in the text.
        let names_it = text.to_lowercase();
        if !names_it.contains("nan") && !names_it.contains("inf") {
            prop_assert!(!page.contains("NaN"));
            for mark in [">inf", "\"inf", " inf ", "-inf", "inf%", "Linf", "Minf"] {
                prop_assert!(!page.contains(mark), "{mark}");
            }
        }
    }
}
