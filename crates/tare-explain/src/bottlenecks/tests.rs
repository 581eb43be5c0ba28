use super::*;
use std::collections::BTreeSet;

/// Every text of a page.
fn texts(page: &Page) -> Vec<&'static str> {
    let lists = [page.means, page.evidence, page.looks_the_same, page.to_do, page.to_confirm, page.source];
    lists.into_iter().flatten().copied().chain([page.brief]).collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_cause_has_one_file() {
    let causes: BTreeSet<Cause> = ALL.iter().map(|bottleneck| bottleneck.cause).collect();
    assert_eq!(causes.len(), ALL.len());
    assert!(ALL.iter().all(|bottleneck| of(bottleneck.cause).cause == bottleneck.cause));
}

#[test]
fn every_page_is_whole() {
    for Bottleneck { cause, title, page, .. } in ALL {
        let lists =
            [page.means, page.evidence, page.looks_the_same, page.to_do, page.to_confirm, page.source];
        assert!(lists.iter().all(|list| !list.is_empty()), "{cause:?}: an empty part");
        for text in texts(page) {
            let ends = text.ends_with(['.', '!', '?']);
            let spaced = text.trim() == text && !text.contains("  ");
            assert!(text.len() > 20 && ends && spaced, "{cause:?}: {text:?}");
            assert!(text.matches('`').count() % 2 == 0, "{cause:?}: an open quotation: {text}");
        }
        assert!(
            page.brief.len() <= 76 && !title.ends_with('.') && !title.is_empty(),
            "{cause:?}: {}",
            page.brief
        );
        let length: usize = texts(page).iter().map(|text| text.len() / 90 + 1).sum();
        assert!((15..=40).contains(&length), "{cause:?}: {length} lines");
    }
}

#[test]
fn pages_name_causes_that_there_are() {
    let ids: BTreeSet<String> = ALL.iter().map(|bottleneck| bottleneck.cause.id()).collect();
    let is_id = |word: &str| word.contains('-') && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    for Bottleneck { cause, page, .. } in ALL {
        let named: Vec<&str> = texts(page).into_iter().flat_map(quoted).collect();
        let unknown: Vec<&&str> = named
            .iter()
            .filter(|word| is_id(word.trim_start_matches("--")) && !word.starts_with('-'))
            .collect();
        assert!(unknown.iter().all(|word| ids.contains(**word)), "{cause:?}: {unknown:?}");
        assert!(!page.looks_the_same.iter().flat_map(|text| quoted(text)).any(|word| word == cause.id()));
    }
}

#[test]
fn pages_say_which_intervention_there_is() {
    for Bottleneck { cause, page, confirm, .. } in ALL {
        let text = page.to_confirm.join(" ");
        match confirm {
            Confirm::By(_) => assert!(text.contains("`tare run --confirm"), "{cause:?}"),
            Confirm::Cannot { why, .. } => {
                let said =
                    text.contains("There is no intervention") || text.contains("tries the first finding");
                assert!(said, "{cause:?}: {why}");
            }
        }
    }
}
