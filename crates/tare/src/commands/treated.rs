//! `--set-a NAME=VALUE`: settings of an arm, from words. A setting of `tare tune` is read as its option is.

use crate::cli::tune::SettingArgs;
use anyhow::anyhow;
use clap::{CommandFactory, Parser};
use tare_machine::Root;
use tare_machine::huge_pages::Pool;
use tare_model::placement::Policy;
use tare_model::treatment::TreatmentScope;
use tare_run::treatment::{Given, HugePages, Treatment};

/// Options of `tare tune` that stand alone there: `drop-caches=on`.
const SWITCHES: [&str; 2] = ["drop-caches", "defaults"];
/// Most settings of an arm.
const SETTINGS_MAX: usize = 32;

/// The settings of `tare tune`, and nothing else.
#[derive(Debug, Parser)]
#[command(name = "--set", disable_help_flag = true, disable_version_flag = true)]
struct Settings {
    #[command(flatten)]
    settings: SettingArgs,
}

/// What an arm is run with.
///
/// # Errors
/// A name that is none, or a value that is none of it; with what there is.
pub fn treatment(given: &[String]) -> anyhow::Result<Treatment> {
    let mut treatment = Treatment::default();
    let mut options = vec!["--set".to_owned()];
    if given.len() > SETTINGS_MAX {
        return Err(anyhow!("{} settings are too many (hint: give at most {SETTINGS_MAX})", given.len()));
    }
    for text in given {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(anyhow!("'{text}' is no setting (hint: write NAME=VALUE, as thp=never)"));
        };
        let mut scope = TreatmentScope::Machine;
        match name {
            "hugepages" | "huge-pages" if value == "auto" => treatment.huge_pages = Some(HugePages::Auto),
            "hugepages" | "huge-pages" => match value.parse() {
                Ok(pages) => treatment.huge_pages = Some(HugePages::Pages(pages)),
                Err(_) => treatment.huge_pages = Some(pages(value)?),
            },
            "thp-process" if value == "never" => {
                scope = TreatmentScope::Process;
                treatment.no_thp = true;
            }
            "thp-process" => {
                return Err(anyhow!(
                    "thp-process: '{value}' is not possible (hint: thp-process=never; the machine's own setting is thp=always)"
                ));
            }
            "placement" => {
                scope = TreatmentScope::Process;
                treatment.placement = Some(value.parse::<Policy>()?);
            }
            name if is_variable(name) => {
                scope = TreatmentScope::Process;
                treatment.environment.push((name.to_owned(), value.to_owned()));
            }
            name if SWITCHES.contains(&name) && value == "on" => options.push(format!("--{name}")),
            name if names().iter().any(|known| known == name) => options.push(format!("--{name}={value}")),
            name => return Err(unknown(name)),
        }
        treatment.given.push(Given { name: name.to_owned(), value: value.to_owned(), scope });
    }
    let settings = Settings::try_parse_from(&options).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        anyhow!("{first} (hint: 'tare tune --help' has the values of each setting)")
    })?;
    treatment.machine = settings.settings.wanted();
    if settings.settings.defaults {
        treatment.machine = treatment.machine.or(tare_machine::settings::Wanted::still());
    }
    Ok(treatment)
}

/// A pool by its size: `2GiB`.
fn pages(value: &str) -> anyhow::Result<HugePages> {
    let settings = Settings::try_parse_from(["--set".to_owned(), format!("--huge-pages={value}")]);
    let bytes = settings.ok().and_then(|settings| settings.settings.wanted().memory.huge_pages_bytes);
    let bytes = bytes.ok_or_else(|| {
        anyhow!(
            "hugepages: '{value}' is neither auto, nor a number of pages, nor a size (hint: auto, 512, 1GiB)"
        )
    })?;
    let pool = Pool::read(&Root::live()).map_err(|missing| anyhow!("hugepages: {}", missing.why))?;
    Ok(HugePages::Pages(bytes.div_ceil(pool.page_bytes)))
}

/// Variables of the environment are in capitals, and no setting is.
fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_uppercase() || first == '_')
        && chars.all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
}

/// The settings of `tare tune`.
fn names() -> Vec<String> {
    let command = Settings::command();
    command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

fn unknown(name: &str) -> anyhow::Error {
    let mut known = names();
    known.retain(|known| known != "huge-pages");
    known.extend(["hugepages", "placement", "thp-process"].map(str::to_owned));
    known.sort();
    anyhow!(
        "there is no setting '{name}' (hint: there are {}, and variables of the environment in capitals)",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> anyhow::Result<Treatment> {
        treatment(&given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_read_as_those_of_tune() {
        let read = of(&["thp=never", "base-slice=3ms", "drop-caches=on", "irqs-off=0-1"]).unwrap();
        assert_eq!(read.machine.memory.thp.as_deref(), Some("never"));
        assert_eq!(read.machine.base_slice_ns, Some(3_000_000));
        assert!(read.machine.memory.drop_caches);
        assert_eq!(read.machine.irqs_off, [0, 1]);
        assert!(read.given.iter().all(|given| given.scope == TreatmentScope::Machine));
        let read = of(&["GLIBC_TUNABLES=glibc.malloc.hugetlb=2", "placement=random:7"]).unwrap();
        assert_eq!(read.environment, [("GLIBC_TUNABLES".to_owned(), "glibc.malloc.hugetlb=2".to_owned())]);
        assert_eq!(read.placement, Some(Policy::Random(7)));
        assert!(read.given.iter().all(|given| given.scope == TreatmentScope::Process));
        let read = of(&["rps=0-1", "rps-flows=4096", "xps=off", "busy-poll=50us", "autogroup=off"]).unwrap();
        assert_eq!((read.machine.network.rps, read.machine.network.xps), (Some(vec![0, 1]), Some(vec![])));
        assert_eq!((read.machine.network.rps_flows, read.machine.autogroup), (Some(4096), Some(false)));
        assert_eq!(read.machine.network.busy_poll_ns, Some(50_000));
        assert!(read.given.iter().all(|given| given.scope == TreatmentScope::Machine));
        let read = of(&["thp-process=never"]).unwrap();
        assert!(read.no_thp && read.given[0].scope == TreatmentScope::Process);
        assert_eq!(of(&["hugepages=auto"]).unwrap().huge_pages, Some(HugePages::Auto));
        assert_eq!(of(&["hugepages=512"]).unwrap().huge_pages, Some(HugePages::Pages(512)));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_what_there_is() {
        for (given, wanted) in [
            ("thp", "write NAME=VALUE"),
            ("=never", "write NAME=VALUE"),
            ("thpp=never", "there is no setting 'thpp' (hint: there are"),
            ("thp=sometimes", "'sometimes'"),
            ("placement=near", "is not a placement"),
            ("hugepages=many", "auto, 512, 1GiB"),
            ("thp-process=always", "thp-process=never"),
            ("rps=many", "hint"),
            ("drop-caches=off", "hint"),
            ("quota=200%", "hint"),
        ] {
            let text = of(&[given]).unwrap_err().to_string();
            assert!(text.contains(wanted) && text.contains("hint"), "{given}: {text}");
        }
        assert!(treatment(&vec!["thp=never".to_owned(); SETTINGS_MAX + 1]).is_err());
    }
}
