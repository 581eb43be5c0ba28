//! The checks themselves, on small made-up crates.

use super::{arrows, circles, tree};
use std::collections::BTreeMap;

fn uses(files: &[(&str, &str)]) -> circles::Uses {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    circles::uses(&tree::read("src/lib.rs", &|file| files.get(file).map(|&text| text.to_owned())))
}

fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let circles = circles::circles(&uses(files));
    circles.into_iter().map(|circle| circle.into_iter().collect()).collect()
}

#[test]
fn files_in_one_direction_are_no_circle() {
    let none = found(&[
        ("src/lib.rs", "//! crate::b uses crate::a\nmod a; mod b; mod c; pub use b::B; pub use c::run;"),
        (
            "src/a.rs",
            "pub struct A; /* crate::b::B */ const TEXT: &str = \"crate::b::B\"; const C: char = '\"';",
        ),
        ("src/b.rs", "use crate::a::A; pub struct B<'a>(&'a A); #[cfg(test)] mod tests;"),
        ("src/b/tests.rs", "use super::*; fn both() { crate::c::run() }"),
        ("src/c.rs", "use super::{a, b::B}; pub fn run() -> Option<B<'static>> { let _ = a::A; None }"),
    ]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let two = found(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "use crate::b::B; pub struct A(B);"),
        ("src/b.rs", "pub struct B; pub fn b() { let _ = super::a::A(B); }"),
    ]);
    assert_eq!(two, [["src/a.rs", "src/b.rs"]]);
}

#[test]
fn a_child_and_its_parent_are_a_circle() {
    let both = found(&[
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod child; pub struct A; pub fn run() { child::run(&A) }"),
        ("src/a/child.rs", "pub fn run(_: &super::A) {}"),
    ]);
    assert_eq!(both, [["src/a.rs", "src/a/child.rs"]]);
}

#[test]
fn methods_in_another_file_than_their_type_are_seen() {
    let both = found(&[
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "mod more; pub struct A; pub fn run(a: &A) { a.more() }"),
        ("src/a/more.rs", "use super::A; impl A { pub fn more(&self) {} }"),
    ]);
    assert_eq!(both, [["src/a.rs", "src/a/more.rs"]]);
}

#[test]
fn a_ring_through_re_exports_and_globs_is_a_circle() {
    let ring = found(&[
        ("src/lib.rs", "mod a; mod inside; mod c; pub use inside::B;"),
        ("src/a.rs", "use crate::B; pub struct A(B);"),
        ("src/inside/mod.rs", "mod b; pub use self::b::*;"),
        ("src/inside/b.rs", "use crate::c; pub struct B; fn b() { format!(\"{}\", c::run()); }"),
        ("src/c.rs", "pub fn run() -> u8 { use crate::a; let _ = a::A; 0 }"),
    ]);
    assert_eq!(ring, [["src/a.rs", "src/c.rs", "src/inside/b.rs"]]);
}

#[test]
fn arrows_between_folders_go_one_way() {
    const FOLDERS: arrows::Folders = &[("low", &[]), ("high/deep", &["low"]), ("high", &["high/deep"])];
    let files = [
        ("src/lib.rs", "mod low; mod high; pub use high::run;"),
        ("src/low/mod.rs", "mod a;"),
        ("src/low/a.rs", "pub struct A; fn up() { crate::high::run() }"),
        ("src/high/mod.rs", "mod deep; mod run; pub use run::run;"),
        ("src/high/deep.rs", "pub use crate::low::a::A; pub struct Deep(A);"),
        ("src/high/run.rs", "use super::deep::Deep; pub fn run() { let _: Option<Deep> = None; }"),
    ];
    let wrong = arrows::wrong(&uses(&files), "src", FOLDERS);
    assert_eq!(wrong, ["src/low/a.rs (low) uses src/high/run.rs (high): run"]);
    let stray = arrows::wrong(
        &uses(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub struct A;"),
            ("src/b.rs", "use crate::a::A; struct B(A);"),
        ]),
        "src",
        FOLDERS,
    );
    assert_eq!(stray, ["src/a.rs is in no folder of the table", "src/b.rs is in no folder of the table"]);
}
