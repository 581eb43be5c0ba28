use super::*;
use proptest::prelude::*;
use std::time::Duration;

const ONLINE: [u32; 2] = [0, 1];

fn study(text: &str) -> Result<Study, String> {
    let plan = read(&[(text, "plan.toml")]).map_err(|error| error.to_string())?;
    plan.resolve(&ONLINE).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    let said = study(text).unwrap_err();
    assert!(!said.contains('\n'), "{said}");
    said
}

const WHOLE: &str = r#"
name = "layouts of the client"
url = "http://127.0.0.1:8080/"
sut = "./server --port 8080"
sut_cpus = "0"
connections = 500
blocks = 3
trials = 2
trial = "2s"
warmup = "200ms"
seed = 7
baseline = "two"

[factors]
pipeline = [1, 8]
threads = [2, 3]

[[case]]
name = "one"
load_cpus = 1
header = "Connection: close"
expect = "p99 up; sut.voluntary_switches up"

[[case]]
name = "two"
load_cpus = "0-1"

[[case]]
name = "three"
baseline = "one"
expect = "p99 down"

[[case]]
name = "eight"
needs_cpus = 9
load_cpus = "1-8"
"#;

#[test]
fn a_plan_becomes_its_cells() {
    let study = study(WHOLE).unwrap();
    let names: Vec<&str> = study.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "one, pipeline=1, threads=2",
            "one, pipeline=1, threads=3",
            "one, pipeline=8, threads=2",
            "one, pipeline=8, threads=3",
            "two, pipeline=1, threads=2",
            "two, pipeline=1, threads=3",
            "two, pipeline=8, threads=2",
            "two, pipeline=8, threads=3",
            "three, pipeline=1, threads=2",
            "three, pipeline=1, threads=3",
            "three, pipeline=8, threads=2",
            "three, pipeline=8, threads=3",
        ]
    );
    let baselines: Vec<usize> = study.cells.iter().map(|cell| cell.baseline).collect();
    assert_eq!(baselines, [4, 5, 6, 7, 4, 5, 6, 7, 0, 1, 2, 3]);
    assert_eq!((study.blocks, study.trials, study.seed), (3, 2, Some(7)));
    assert_eq!(study.left_out, [("eight".to_owned(), 9)]);
    let cell = &study.cells[2];
    assert_eq!(cell.settings.load_cpus, Some(vec![1]));
    assert_eq!((cell.settings.pipeline, cell.settings.threads), (Some(8), Some(2)));
    assert_eq!((cell.settings.connections, cell.expect.len()), (Some(500), 2));
    assert_eq!(cell.settings.header, Some(("Connection".to_owned(), "close".to_owned())));
    assert_eq!(study.cells[4].settings.header, None);
}

#[test]
fn an_empty_plan_is_one_cell() {
    let study = study("").unwrap();
    assert_eq!(study.cells.len(), 1);
    assert_eq!((study.cells[0].name.as_str(), study.blocks), ("all", 5));
}

#[test]
fn a_budget_says_how_many_blocks() {
    // A second, half a second of load before it, and half a second to start and stop.
    let found = study("budget = \"1m\"\n[factors]\nthreads = [1, 2, 3]").unwrap();
    assert_eq!(found.blocks, 10);
    assert!(found.expected() <= Duration::from_secs(60));
    assert_eq!(study("budget = 60\nblocks = 7").unwrap().blocks, 7);
    // What may be measured once more must fit as well.
    let again = study("budget = 60\nreruns = 10").unwrap();
    assert_eq!((again.blocks, again.reruns), (20, 10));
}

#[test]
fn a_precision_needs_something_beside_it_and_enough_blocks() {
    let two = "[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"\npipeline = 8";
    let found = study(&format!("precision = \"2%\"\nbudget = \"3m\"\n{two}")).unwrap();
    assert_eq!((found.precision, found.blocks), (Some(0.02), 45));
    assert!(
        refused(&format!("precision = \"2%\"\n{two}")).contains("fewer than 8 blocks, and 5 are planned")
    );
    assert!(refused("precision = \"2%\"\nblocks = 20").contains("nothing beside it"));
    let away = format!(
        "precision = \"2%\"\nblocks = 20\nbaseline = \"c\"\n{two}\n[[case]]\nname = \"c\"\nneeds_cpus = 9"
    );
    assert!(refused(&away).starts_with("the baseline 'c' needs more CPUs"));
    for wrong in ["0.02", "\"0%\"", "\"100%\"", "\"2\""] {
        let said = refused(&format!("precision = {wrong}"));
        assert!(
            said.starts_with("plan.toml:1: 'precision' must be a share below 100 %, as \"2%\" (hint: "),
            "{said}"
        );
    }
}

#[test]
fn what_is_wrong_is_one_line_that_says_where() {
    for (plan, said) in [
        ("thread = 2", "plan.toml:1: unknown key 'thread' (hint: did you mean 'threads'?)"),
        (
            "\n[[case]]\nname = \"a\"\nexpects = \"p99 up\"",
            "plan.toml:4: unknown key 'expects' (hint: did you mean 'expect'?)",
        ),
        ("[factors]\nthreds = [1]", "plan.toml:2: unknown key 'threds' (hint: did you mean 'threads'?)"),
        (
            "blocks = 1",
            "plan.toml:1: 'blocks' must be a whole number from 2 to 10000 (hint: one block has no spread, so that no interval \
             is known; for a quick run take 2 with a shorter 'trial')",
        ),
        (
            "threads = 0",
            "plan.toml:1: 'threads' must be a whole number from 1 to 1024 (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "sut_cpus = \"3-1\"",
            "plan.toml:1: 'sut_cpus' must be CPUs, as \"0-3,8\" (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "[factors]\nthreads = 4",
            "plan.toml:2: 'threads' must be a list of its levels, as [1, 2, 4] (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "[factors]\nthreads = [4, 4]",
            "plan.toml:2: 'threads' has the level 4 twice (hint: leave one of them out)",
        ),
        (
            "budget = \"soon\"",
            "plan.toml:1: 'budget' must be a length of time, as \"500ms\", \"2s\" or \"5m\" (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "rate = nan",
            "plan.toml:1: 'rate' must be requests per second, a number above 0 (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "header = \"close\"",
            "plan.toml:1: 'header' must be a header, as \"Connection: close\" (hint: 'tare help plans' shows a plan with every key)",
        ),
        ("[[case]]\nthreads = 1", "plan.toml:1: a case has no name (hint: add name = \"…\" below [[case]])"),
        (
            "[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"",
            "plan.toml:3: there are two cases 'a' (hint: give each a name of its own)",
        ),
        (
            "case = 3",
            "plan.toml:1: 'case' must be a list of tables, each under [[case]] (hint: 'tare help plans' shows a plan with every key)",
        ),
        (
            "baseline = \"b\"\n[[case]]\nname = \"a\"",
            "plan.toml:1: there is no case 'b' to be the baseline (hint: there is only 'a')",
        ),
        (
            "[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"\nbaseline = \"aa\"",
            "plan.toml:5: there is no case 'aa' to be the baseline (hint: there are a, b)",
        ),
        (
            "[[case]]\nname = \"a\"\nbaseline = \"a\"\nexpect = \"p99 up\"",
            "a: 'p99 up' is expected of the baseline, which has no baseline of its own \
             (hint: expect a value of it, or name another case with baseline = \"…\")",
        ),
        (
            "[[case]]\nname = \"a\"\nexpect = \"p98 up\"",
            "plan.toml:3: 'p98 up': there is no figure 'p98' (hint: did you mean 'p90'?)",
        ),
        (
            "load_cpus = \"0,9\"",
            "all: load_cpus: there is no CPU 9 here (hint: online are 0-1; needs_cpus = N leaves a case out on smaller machines)",
        ),
        (
            "sut = \"./server\"",
            "all: 'sut' starts a server, and no 'url' says where it answers (hint: add url = \"http://127.0.0.1:8080/\")",
        ),
        (
            "connections = 2\nthreads = 3",
            "all: 3 generator threads for 2 connections (hint: lower 'threads', or raise 'connections': a thread without a connection has nothing to do)",
        ),
        (
            "budget = \"10s\"\nblocks = 6",
            "6 blocks of 1 cells take about 12 s, more than the budget of 10 s \
             (hint: raise 'budget', or lower 'blocks', 'trials' or 'trial')",
        ),
        (
            "budget = \"10s\"\nreruns = 4",
            "6 blocks, those measured again among them, of 1 cells take about 12 s, more than the budget of 10 s \
             (hint: raise 'budget', or lower 'blocks', 'reruns', 'trials' or 'trial')",
        ),
        (
            "[[case]]\nname = \"a\"\nneeds_cpus = 4",
            "every case of the plan needs more CPUs than the 2 here (hint: lower 'needs_cpus' of a case, or take a larger machine)",
        ),
        (
            "[[case]]\nname = \"a\"\nneeds_cpus = 4\n[[case]]\nname = \"b\"\nexpect = \"p99 up\"",
            "the baseline 'a' needs more CPUs than there are here (hint: name another case with baseline = \"…\")",
        ),
    ] {
        assert_eq!(refused(plan), said, "{plan}");
    }
    let levels: Vec<String> = (1..=300).map(|level| level.to_string()).collect();
    assert!(refused(&format!("[factors]\npipeline = [{}]", levels.join(", "))).contains("more than 256"));
    // Nothing is expected that needs the first one: the case stands for itself.
    let alone = "[[case]]\nname = \"a\"\nneeds_cpus = 4\n[[case]]\nname = \"b\"\n[[case]]\nname = \"c\"\nexpect = \"p99 > 1ms\"";
    let baselines: Vec<usize> = study(alone).unwrap().cells.iter().map(|cell| cell.baseline).collect();
    assert_eq!(baselines, [0, 1]);
    for broken in ["threads =", "= 3", "[case", "a = 1\na = 2", "\u{0}"] {
        assert!(refused(broken).starts_with("plan.toml:"), "{broken}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}") {
        let _ = study(&text);
    }

    #[test]
    fn no_value_is_too_strange(
        key in prop::sample::select([PLAN_KEYS.as_slice(), &Settings::KEYS, &["nonsense"]].concat()),
        value in prop_oneof![Just("-1"), Just("1e400"), Just("\"\""), Just("[[]]"), Just("{}"), Just("0x10"), Just("inf"), Just("true"), Just("1979-05-27"), Just("99999999999999999999")],
    ) {
        let _ = study(&format!("{key} = {value}"));
        let _ = study(&format!("[[case]]\n{key} = {value}"));
        let _ = study(&format!("[factors]\n{key} = [{value}]"));
    }
}

const PLAN_KEYS: [&str; 15] = [
    "name",
    "blocks",
    "reruns",
    "budget",
    "precision",
    "trials",
    "trial",
    "warmup",
    "start_timeout",
    "seed",
    "baseline",
    "factors",
    "case",
    "needs_cpus",
    "expect",
];

#[test]
fn settings_places_and_commands_beside_are_levels_like_others() {
    let plan = "[factors]\nset = [\"none\", \"thp=never\", [\"thp=always\", \"autogroup=off\"]]";
    let found = study(plan).unwrap();
    let names: Vec<&str> = found.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["set=none", "set=thp=never", "set=thp=always and autogroup=off"]);
    assert_eq!(found.cells[0].settings.tuned, Some(vec![]));
    assert_eq!(found.cells[2].settings.tuned.as_ref().map(Vec::len), Some(2));
    let plan = "beside = \"sleep 9\"\nset = \"thp=never\"\n[[case]]\nname = \"a\"\n\
                [[case]]\nname = \"b\"\nbeside = \"none\"\nset = \"none\"\nplacement = \"random:7\"";
    let cells = study(plan).unwrap().cells;
    assert_eq!(cells[0].settings.beside.as_deref(), Some("sleep 9"));
    assert_eq!(cells[0].settings.tuned.as_deref(), Some(&["thp=never".to_owned()][..]));
    let none = (cells[1].settings.beside.as_deref(), cells[1].settings.tuned.as_deref());
    assert_eq!(none, (Some(""), Some(&[][..])));
    assert_eq!(cells[1].settings.placement.map(|policy| policy.to_string()).as_deref(), Some("random:7"));
    let found = of_flags(&[], &["set=none", "set=thp=never"]).unwrap();
    assert_eq!(found.cells[1].name, "set=thp=never");
    for (plan, wanted) in [
        ("set = \"thp\"", "'set' must be a setting, as \"thp=never\", a list of them, or \"none\""),
        ("set = []", "'set' must be"),
        ("set = [3]", "'set' must be"),
        ("placement = \"near\"", "'placement' must be auto, spread"),
        ("beside = 3", "'beside' must be a text in quotes"),
        ("placement = \"spread\"\nsut_cpus = 0", "'sut_cpus' names the CPUs already"),
        ("placement = \"spread\"\nurl = \"http://127.0.0.1:1/\"", "the server runs already"),
    ] {
        assert!(refused(plan).contains(wanted), "{plan}: {}", refused(plan));
    }
}

fn of_flags(set: &[&str], factors: &[&str]) -> Result<Study, String> {
    let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<String>>();
    let text = as_plan(&owned(set), &owned(factors)).map_err(|error| error.to_string())?;
    let plan = read(&[(&text, "the command line")]).map_err(|error| error.to_string())?;
    plan.resolve(&ONLINE).map_err(|error| error.to_string())
}

#[test]
fn a_command_line_is_a_plan_whose_cells_are_held_against_the_first() {
    let given = ["url=http://127.0.0.1:8080/", "sut=./a 'b, c' --port 8080", "trial=250ms", "blocks=8"];
    let study = of_flags(&given, &["connections=8,64", "load_cpus=0-1", "load_cpus=1"]).unwrap();
    let names: Vec<&str> = study.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "connections=8, load_cpus=0-1",
            "connections=8, load_cpus=1",
            "connections=64, load_cpus=0-1",
            "connections=64, load_cpus=1"
        ]
    );
    assert!(study.cells.iter().all(|cell| cell.baseline == 0));
    assert_eq!(study.cells[3].settings.sut.as_deref(), Some("./a 'b, c' --port 8080"));
    assert_eq!((study.cells[3].settings.connections, study.blocks), (Some(64), 8));
    assert_eq!(study.trial, Duration::from_millis(250));
}

#[test]
fn a_command_line_goes_before_the_file() {
    let flags = as_plan(&["blocks=9".to_owned(), "seed=8".to_owned()], &["threads=4,5".to_owned()]).unwrap();
    let study =
        read(&[(WHOLE, "plan.toml"), (&flags, "the command line")]).unwrap().resolve(&ONLINE).unwrap();
    assert_eq!((study.blocks, study.seed, study.trials), (9, Some(8), 2));
    assert_eq!(study.cells[0].name, "one, pipeline=1, threads=4");
    assert_eq!(study.cells.len(), 12, "the other factor stands");
    assert_eq!(study.cells[0].baseline, 4, "cases are held against the baseline at the same levels");
}

/// What would be lost on the file, or would take from its cases what makes them differ.
#[test]
fn a_command_line_does_not_go_before_what_cases_and_factors_say() {
    for (set, factor, wanted) in [
        ("load_cpus=0", None, "'load_cpus' cannot go before what plan.toml says: its case 'one' sets it"),
        ("threads=8", None, "'threads' cannot go before what plan.toml says: it varies it"),
        ("seed=1", Some("header=A: b"), "its case 'one' sets it"),
    ] {
        let factors =
            factor.map(|factor| vec![factor.to_owned(), "header=C: d".to_owned()]).unwrap_or_default();
        let flags = as_plan(&[set.to_owned()], &factors).unwrap();
        let said = read(&[(WHOLE, "plan.toml"), (&flags, "the command line")]).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn the_one_case_of_a_plan_is_held_against_its_first_levels_unless_it_expects_a_change() {
    let levels = |expect: &str, more: &str| {
        let plan = format!("[factors]\nthreads = [1, 2]\n[[case]]\nname = \"one\"\n{expect}{more}");
        study(&plan).map(|study| study.cells.iter().map(|cell| cell.baseline).collect::<Vec<_>>())
    };
    assert_eq!(levels("", ""), Ok(vec![0, 0]));
    assert_eq!(levels("expect = \"throughput > 10\"\n", ""), Ok(vec![0, 0]));
    assert!(levels("expect = \"throughput up\"\n", "").is_err(), "it is its own baseline");
    // It is not alone for the other being left out here.
    let other = "[[case]]\nname = \"eight\"\nneeds_cpus = 9\n";
    assert_eq!(levels("", other), Ok(vec![0, 1]));
}

#[test]
fn a_bad_command_line_is_one_line() {
    for (set, factors, wanted) in [
        (&["connections"][..], &[][..], "--set: \"connections\" is no KEY=VALUE"),
        (&["a\nb=1"], &[], "is no KEY=VALUE"),
        (&[], &["threads=2"], "'threads' has one level, which varies nothing (hint: as --factor threads=1,2"),
        (&[], &["load_cpus=0,1"], "(hint: repeat --factor load_cpus=… for each level"),
        (&["threads=1"], &["threads=1,2"], "'threads' is set and varied"),
        (&["a.b=1"], &[], "is no KEY=VALUE"),
        (&["conections=8"], &[], "unknown key 'conections'"),
        (&["blocks=1\ntrial=2"], &[], "'blocks' must be"),
        (&["blocks=5", "blocks=6"], &[], "duplicate key"),
        (&[], &["thread=1,2"], "'thread' cannot be varied (hint: did you mean 'threads'?)"),
        (&[], &["threads=1,1"], "'threads' has the level 1 twice"),
        (&[], &["threads=1,x"], "'threads' must be a whole number"),
        (&[], &["threads=,"], "'threads' must be a whole number"),
    ] {
        let said = of_flags(set, factors).unwrap_err();
        assert!(said.contains(wanted) && !said.contains('\n'), "{said}");
    }
}
