use super::*;
use proptest::prelude::*;
use tare_model::Reading;
use tare_model::observation::Role;
use tare_model::stacks::{Folded, Folder, Frame, FrameKind, Module, Stacks};

const CHOICE: Choice = Choice { role: Role::Sut, off_cpu: false, by_thread: false };

/// Paths with counts, a frame of the kernel where a name begins with `k`.
fn stacks(all: &[(&str, u64)]) -> Stacks {
    let mut folder = Folder::default();
    let [mut on_cpu, mut off_cpu] = [Folded::new(Some(999.0)), Folded::new(None)];
    let module = folder.module(Module { path: "/usr/sbin/nginx".into(), build_id: Some("7442ab".into()) });
    let thread = folder.frame(Frame::mark("worker"));
    for (path, count) in all {
        let frame = |symbol: &str| match symbol.starts_with('k') {
            true => Frame { symbol: symbol.into(), module: None, kind: FrameKind::Kernel },
            false => Frame { symbol: symbol.into(), module: Some(module), kind: FrameKind::User },
        };
        let frames: Vec<u32> = path.split(';').map(|symbol| folder.frame(frame(symbol))).collect();
        on_cpu.add(Role::Sut, thread, frames.clone(), *count);
        off_cpu.add(Role::Sut, thread, frames, count * 1_000_000);
    }
    folder.close(Reading::Measured(on_cpu), Reading::Measured(off_cpu), Vec::new())
}

#[test]
fn folded_text_is_one_line_for_each_stack() {
    let both = stacks(&[("main;send;ksys", 7), ("main", 2), ("main;a:b", 1)]);
    assert_eq!(folded(&both, &CHOICE).unwrap(), "main 2\nmain;a:b 1\nmain;send;ksys_[k] 7\n");
    let threads = folded(&both, &Choice { by_thread: true, off_cpu: true, ..CHOICE }).unwrap();
    assert!(threads.starts_with("worker;main 2000000\n"), "{threads}");
    let load = folded(&both, &Choice { role: Role::Load, ..CHOICE }).unwrap_err();
    assert_eq!(
        load.to_string(),
        "no stack of the load generator was seen (was it running, and long enough?)"
    );
    let facts = facts(&both, &CHOICE).unwrap();
    assert!(facts.starts_with("10 samples at 999 Hz; ") && facts.contains("interrupts off"), "{facts}");
}

#[test]
fn the_difference_is_scaled_to_the_second() {
    let (before, after) =
        (stacks(&[("main;a", 10), ("main;b", 10)]), stacks(&[("main;a", 50), ("main;c", 150)]));
    let lines = svg::folded_difference(&before, &after, &CHOICE).unwrap();
    assert_eq!(lines, "main;a 100 50\nmain;b 100 0\nmain;c 0 150\n");
    let drawn = difference(&before, &after, &CHOICE, ["A", "B"]).unwrap();
    assert!(drawn.contains("<title>c (150 samples, 75.00%; +75.00%)</title>"), "{drawn}");
    assert!(drawn.contains("What the server ran: B, against A"));
}

#[test]
fn drawings_tell_what_a_timer_cannot_see() {
    let drawn = svg(&stacks(&[("main;kread", 7), ("main", 2)]), &CHOICE, "a <b>").unwrap();
    assert!(drawn.contains("9 samples at 999 Hz") && drawn.contains("has interrupts off"));
    assert!(drawn.contains("a &lt;b&gt;") && drawn.contains("kread (7 samples"));
    let waited = Choice { off_cpu: true, ..CHOICE };
    let drawn = svg(&stacks(&[("main;kread", 7)]), &waited, "x").unwrap();
    assert!(drawn.contains("0.007 s off the CPU") && drawn.contains("7 ms, 100.00%"), "{drawn}");
}

#[test]
fn a_page_gets_frames_alone() {
    let drawn = inline(&stacks(&[("main;operator<;kread", 7)]), &CHOICE).unwrap();
    assert!(drawn.starts_with("<svg class=\"flame\" viewBox=\"0 0 1200 "), "{drawn}");
    assert!(
        drawn.contains("operator&lt;") && !drawn.contains("<script") && !drawn.contains("url("),
        "{drawn}"
    );
    assert_eq!(drawn.matches("<svg").count(), drawn.matches("</svg>").count());
}

#[test]
fn perf_script_is_read() {
    let text = "nginx  1234 [000] 100.5: 1 cpu-clock: \n\
        \tffffffff81000010 ksys_read+0x10 ([kernel.kallsyms])\n\
        \t    7f0000001234 read+0x14 (/usr/lib/libc.so.6)\n\
        \t    55d000001234 main+0x14 (/usr/sbin/nginx)\n\n\
        nginx  1234 [000] 100.6: 1 cpu-clock: \n\
        \t    55d000001234 main+0x14 (/usr/sbin/nginx)\n\n";
    let stacks = import(text).unwrap();
    assert_eq!(
        stacks.modules.iter().map(Module::name).collect::<Vec<_>>(),
        ["[kernel.kallsyms]", "libc.so.6", "nginx"]
    );
    assert_eq!(folded(&stacks, &CHOICE).unwrap(), "main 1\nmain;read;ksys_read_[k] 1\n");
    // A name with spaces, no call chain, a name that has brackets, and a file without names.
    let text = "  my worker 7/8 [000]  5.5:   250000 cpu-clock:pppH:  7f00 [unknown] (/usr/lib/libx.so)\n\
        other 9 [001] 5.6: 1 cpu-clock: \n\t55d0 operator()(int)+0xa (/bin/a b)\n";
    let threads = Choice { by_thread: true, ..CHOICE };
    assert_eq!(
        folded(&import(text).unwrap(), &threads).unwrap(),
        "my worker;[libx.so] 1\nother;operator()(int) 1\n"
    );
    for garbage in ["", "\n\n", "hello world\n", "{\"a\": 1}"] {
        assert!(import(garbage).is_err(), "{garbage:?}");
    }
}

#[test]
fn firefox_gets_tables_that_fit_together() {
    let json = firefox(&stacks(&[("main;send;ksys", 7), ("main", 2)]), &CHOICE).unwrap();
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    // The schema: https://github.com/firefox-devtools/profiler/blob/main/src/types/profile.ts
    assert_eq!(all["meta"]["product"], "tare");
    assert!(all["meta"]["preprocessedProfileVersion"].as_u64().unwrap() >= 40);
    assert_eq!(all["meta"]["symbolicated"], true);
    let thread = &all["threads"][0];
    assert_eq!(thread["name"], "worker");
    let list = |pointer: &str| thread.pointer(pointer).and_then(|list| list.as_array()).unwrap().clone();
    let (samples, weights) = (list("/samples/stack"), list("/samples/weight"));
    assert_eq!(weights.iter().map(|weight| weight.as_i64().unwrap()).collect::<Vec<_>>(), [7, 2]);
    assert_eq!(thread["samples"]["weightType"], "samples");
    let (frames, prefixes) = (list("/stackTable/frame"), list("/stackTable/prefix"));
    let (functions, names) = (list("/frameTable/func"), list("/funcTable/name"));
    let strings = thread.pointer("/stringArray").or(all.pointer("/shared/stringArray")).unwrap();
    let mut at = samples[0].as_u64();
    let mut path = Vec::new();
    while let Some(stack) = at {
        let function = functions[frames[stack as usize].as_u64().unwrap() as usize].as_u64().unwrap();
        let name = names[function as usize].as_u64().unwrap();
        path.push(strings[name as usize].as_str().unwrap().to_owned());
        at = prefixes[stack as usize].as_u64();
    }
    assert_eq!(path, ["ksys", "send", "main"]);
}

proptest! {
    #[test]
    fn folded_text_comes_back(
        paths in prop::collection::vec((prop::collection::vec("[a-j][a-zA-Z<>:,& ]{0,8}[a-z]", 1..5), 1u64..99), 1..9),
    ) {
        let all: Vec<(String, u64)> = paths.iter().map(|(path, count)| (path.join(";"), *count)).collect();
        let all: Vec<(&str, u64)> = all.iter().map(|(path, count)| (path.as_str(), *count)).collect();
        let there = stacks(&all);
        let threads = Choice { by_thread: true, ..CHOICE };
        let text = folded(&there, &threads).unwrap();
        prop_assert_eq!(&folded(&import(&text).unwrap(), &threads).unwrap(), &text);
        prop_assert!(svg(&there, &CHOICE, "x").is_ok() && inline(&there, &CHOICE).is_ok());
    }

    #[test]
    fn nothing_imported_makes_it_panic(text in "[a-z0-9;:+\\[\\]()/ \\t\\n]{0,200}") {
        import(&text).ok();
    }
}
