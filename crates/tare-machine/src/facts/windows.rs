//! What Windows tells of its side, under WSL2: asked through `powershell.exe`, which interop puts on the path.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tare_model::survey::WindowsHost;
use tare_model::{Missing, Reading};

/// PowerShell takes a second or so to start; longer than this nobody wants to wait for it.
const PATIENCE: Duration = Duration::from_secs(4);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Where Windows has it, for a path without interop's additions.
const USUAL: &str = "/mnt/c/Windows/System32/WindowsPowerShell/v1.0/powershell.exe";

/// Prints `name=value` lines. The share of the rated clock comes from a counter whose name is the same in every
/// language; `CurrentClockSpeed` mostly repeats the rated one.
const SCRIPT: &str = "$ErrorActionPreference='SilentlyContinue';\
$p=Get-CimInstance Win32_Processor|Select-Object -First 1;\
$c=Get-CimInstance Win32_PerfFormattedData_Counters_ProcessorInformation -Filter \"Name='_Total'\";\
$t=Get-CimInstance -Namespace root/wmi MSAcpi_ThermalZoneTemperature|Measure-Object CurrentTemperature -Maximum;\
'power_plan='+(powercfg /getactivescheme);\
'rated_mhz='+$p.MaxClockSpeed;\
'performance_percent='+$c.PercentProcessorPerformance;\
'decikelvin='+$t.Maximum;\
'processors='+[Environment]::ProcessorCount;\
'memory_bytes='+(Get-CimInstance Win32_ComputerSystem).TotalPhysicalMemory;\
'wslconfig='+((Get-Content \"$env:USERPROFILE\\.wslconfig\") -join ';')";

/// Asks Windows; `path` is where programs are looked for (`$PATH`).
///
/// # Errors
/// There is no `powershell.exe`, or it did not answer in time.
pub(super) fn ask(path: Option<&OsStr>) -> Result<WindowsHost, Missing> {
    ask_within(path, PATIENCE)
}

fn ask_within(path: Option<&OsStr>, patience: Duration) -> Result<WindowsHost, Missing> {
    let program = find(path).ok_or_else(|| {
        Missing::with_remedy(
            "no powershell.exe on the path: Windows cannot be asked",
            "turn on interop in /etc/wsl.conf ([interop] enabled=true)",
        )
    })?;
    Ok(parse(&run(&program, patience)?))
}

fn find(path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let programs = folders.map(|folder| folder.join("powershell.exe")).chain([PathBuf::from(USUAL)]);
    programs.into_iter().find(|program| program.is_file())
}

fn run(program: &Path, patience: Duration) -> Result<String, Missing> {
    let failed = |error: std::io::Error| Missing::new(format!("{}: {error}", program.display()));
    let mut child = Command::new(program)
        .args(["-NoProfile", "-NonInteractive", "-Command", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Reading ends when the program does, or is killed; nobody waits for this thread beyond the patience.
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            stdout.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).ok();
            sender.send(answer).ok();
        });
    }
    let answer = receiver.recv_timeout(patience);
    // Whether it ended by itself or not, it is not needed any more.
    child.kill().ok();
    child.wait().map_err(failed)?;
    match answer {
        Ok(answer) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Err(_) => {
            Err(Missing::new(format!("powershell.exe did not answer within {} s", patience.as_secs_f64())))
        }
    }
}

fn parse(answer: &str) -> WindowsHost {
    let text = |name: &str| {
        let value = answer.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        let value = value.map(str::trim);
        value.ok_or_else(|| Missing::new(format!("Windows did not tell its {name}")))
    };
    let number = |name: &str, range: std::ops::Range<f64>| {
        let value = text(name)?.replace(',', ".").parse::<f64>().ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            Missing::with_remedy(
                format!("Windows did not tell its {name}"),
                "some of it is shown to administrators only",
            )
        })
    };
    let rated_hz = number("rated_mhz", 1.0..100_000.0).map(|mhz| (mhz * 1e6) as u64);
    let percent = number("performance_percent", 1.0..1000.0);
    let clock_hz = rated_hz.clone().and_then(|rated| Ok((rated as f64 * percent? / 100.0) as u64));
    WindowsHost {
        power_plan: text("power_plan").and_then(plan).into(),
        clock_hz: clock_hz.into(),
        rated_hz: rated_hz.into(),
        celsius: number("decikelvin", 2000.0..4500.0).map(|decikelvin| decikelvin / 10.0 - 273.15).into(),
        processors: number("processors", 1.0..65_536.0).map(|count| count as u32).into(),
        memory_bytes: number("memory_bytes", 1.0..1e18).map(|bytes| bytes as u64).into(),
        wslconfig: Reading::from(text("wslconfig").map(|text| text.chars().take(4096).collect())),
    }
}

/// `Power Scheme GUID: 381b4222-…  (Balanced)`, in the language of the system.
fn plan(line: &str) -> Result<String, Missing> {
    let name = line.rsplit_once('(').and_then(|(_, name)| name.strip_suffix(')'));
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    name.map(str::to_string).ok_or_else(|| Missing::new("Windows named no power plan"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn fake(script: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("powershell.exe");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    #[test]
    fn windows_answers() {
        let dir = fake(
            "cat <<'E'\r\npower_plan=Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)\r\n\
             rated_mhz=2304\r\nperformance_percent=150\r\ndecikelvin=3532\r\nprocessors=16\r\n\
             memory_bytes=34190458880\r\nwslconfig=[wsl2];processors=8\r\nE",
        );
        let host = ask(Some(dir.path().as_os_str())).unwrap();
        assert_eq!(host.power_plan, Reading::Measured("Balanced".to_string()));
        assert_eq!(host.clock_hz, Reading::Measured(3_456_000_000));
        assert!(host.celsius.value().is_some_and(|celsius| (celsius - 80.05).abs() < 1e-6));
        assert_eq!(host.processors, Reading::Measured(16));
        assert_eq!(host.wslconfig, Reading::Measured("[wsl2];processors=8".to_string()));
    }

    #[test]
    fn windows_does_not_answer() {
        let slow = fake("exec sleep 1000");
        let missing = ask_within(Some(slow.path().as_os_str()), Duration::from_millis(50)).unwrap_err();
        assert!(missing.why.contains("did not answer"), "{missing}");
        let empty = tempfile::tempdir().unwrap();
        assert!(ask(Some(empty.path().as_os_str())).unwrap_err().why.contains("no powershell.exe"));
        let mute = ask(Some(fake("true").path().as_os_str())).unwrap();
        assert!(mute.power_plan.value().is_none() && mute.clock_hz.value().is_none());
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_missing(answer in "(power_plan|rated_mhz|decikelvin|processors)?=?\\PC{0,40}") {
            let host = parse(&answer);
            prop_assert!(host.clock_hz.value().is_none());
        }
    }
}
