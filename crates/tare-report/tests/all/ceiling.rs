//! What `tare ceiling` prints, in every form.

use crate::support;
use tare_model::ceiling::{BoundShare, Ceiling, CeilingShare, Ceilings, ListedCeiling};
use tare_model::outcome::{Better, Estimate, SCHEMA, Warning};
use tare_model::{Missing, Reading};
use tare_report::{Style, ceiling};

fn one(name: &str, estimate: Reading<Estimate>, note: &str) -> Ceiling {
    let is_time = estimate.value().is_none_or(|estimate| estimate.unit == "s");
    Ceiling {
        name: name.into(),
        about: format!("what {name} is"),
        better: if is_time { Better::Lower } else { Better::Higher },
        samples: estimate.value().map_or(Vec::new(), |estimate| vec![estimate.value; 3]),
        estimate,
        note: note.into(),
    }
}

fn measured(value: f64, unit: &str, ci95: Option<[f64; 2]>) -> Reading<Estimate> {
    Reading::Measured(Estimate { value, unit: unit.into(), ci95 })
}

fn found() -> Ceilings {
    let missing = Missing::with_remedy(
        "no file can be made in /data: permission denied",
        "name a folder that may be written (--dir)",
    );
    Ceilings {
        schema: SCHEMA,
        ceilings: vec![
            one("system-call", measured(1.28e-7, "s", Some([1.27e-7, 1.31e-7])), ""),
            one("loopback-flows-64", measured(171_000.0, "req/s", Some([165_000.0, 176_000.0])), ""),
            one("memory-copy-2", measured(2.1e10, "B/s", None), ""),
            one(
                "random-read",
                measured(9.1e-5, "s", Some([8.9e-5, 9.9e-5])),
                "the file system has no direct reads: the page cache answered",
            ),
            one("fsync", Reading::Missing(missing), ""),
        ],
        rounds: 10,
        seed: 7,
        took_s: 44.2,
        directory: "/data".into(),
        cpus: vec![0, 1],
        kept: true,
        warnings: vec![Warning {
            id: "others-busy".into(),
            text: "other processes used 0.9 CPUs meanwhile: the machine can do more than is shown".into(),
            hint: "stop what else runs here (top), and measure again".into(),
        }],
    }
}

#[test]
fn ceilings_are_printed_in_every_form() {
    let report = ceiling::report(&found());
    let text = report.terminal(Style { color: false, width: 100, unicode: true });
    for line in [
        "4 of 5 ceilings",
        "loopback-flows-64",
        "165k",
        "permission denied",
        "others-busy",
        "page cache answered",
    ] {
        assert!(text.contains(line), "{line}: {text}");
        assert!(report.markdown().contains(line), "{line}: {}", report.markdown());
    }
    let csv = report.csv();
    assert!(csv.starts_with("ceiling,value,ci95_low,ci95_high,unit,better,rounds"), "{csv}");
    assert!(
        csv.lines().any(|line| line.starts_with("loopback-flows-64,171000,165000,176000,req/s,higher,3")),
        "{csv}"
    );
    let page = report.html();
    assert!(page.contains("loopback-flows-64") && page.contains("--dir"), "{page}");
    let back: Ceilings = serde_json::from_str(&ceiling::json(&found()).unwrap()).unwrap();
    assert_eq!(back, found());
}

#[test]
fn the_list_names_each_with_its_unit() {
    let list = [ListedCeiling {
        name: "fsync".into(),
        about: "4 KiB on the disk".into(),
        unit: "s".into(),
        better: Better::Lower,
    }];
    let text = ceiling::list(&list).terminal(Style { color: false, width: 100, unicode: true });
    assert!(text.contains("fsync") && text.contains("4 KiB on the disk"), "{text}");
    assert!(ceiling::list_json(&list).unwrap().contains("\"unit\": \"s\""));
}

#[test]
fn a_run_says_its_share_where_it_is_known() {
    let (record, mut outcome) = (support::record(), support::server_bound());
    let style = Style { color: false, width: 120, unicode: true };
    assert!(!tare_report::terminal(&record, &outcome, style).contains("tightest ceiling"));
    let Reading::Measured(of) = measured(171_000.0, "req/s", None) else { unreachable!() };
    outcome.figures.ceiling = Reading::Measured(CeilingShare {
        tightest: "loopback-flows-64".into(),
        share: 0.94,
        ci95: Some([0.91, 0.97]),
        figure: 161_000.0,
        ceiling: of,
        of: "64 connections".into(),
        bounds: vec![BoundShare { name: "loopback-flows-64".into(), share: 0.94 }],
    });
    let text = tare_report::terminal(&record, &outcome, style);
    let line = text.lines().find(|line| line.contains("tightest ceiling")).expect("a line");
    assert!(line.contains("94") && line.contains("loopback-flows-64"), "{line}");
}

#[test]
fn the_page_has_the_roof_where_both_of_its_sides_were_measured() {
    let mut found = found();
    assert!(!ceiling::page(&found).html().contains("Roofline"), "one side is missing");
    for (name, value) in [("integer", 16e9), ("memory-read-1", 8e9)] {
        let mut one = found.ceilings[0].clone();
        one.name = name.to_owned();
        one.estimate = Reading::Measured(Estimate { value, unit: "1/s".to_owned(), ci95: None });
        found.ceilings.retain(|ceiling| ceiling.name != name);
        found.ceilings.push(one);
    }
    let page = ceiling::page(&found);
    assert!(page.html().contains("Roofline of one core") && !page.html().contains("this run"));
    assert!(!page.markdown().contains("Roofline"));
}
