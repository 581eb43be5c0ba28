//! Names for addresses, by `blazesym`, while the processes live: symbol tables, debug files found by build id or debug
//! link, perf maps of run-time compilers, the vdso, and the kernel's own list.

use super::counts::{Chain, is_kernel};
use crate::maps::{self, Map};
use crate::scene::Scene;
use crate::watch::Names;
use blazesym::MaybeDefault;
use blazesym::Pid;
use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;
use tare_machine::Root;
use tare_model::stacks::{Folder, Frame, FrameKind, Module, UNKNOWN};
use tare_model::{Missing, hexadecimal};

/// Distinct addresses that are given names, at most.
const ADDRESSES_MAX: usize = 1 << 20;
/// A larger file is not read for a profile that nobody asked for.
const FILE_BYTES_MAX: u64 = 1 << 30;

thread_local! {
    /// Of the kernel: it keeps the list of its functions, which takes longer to read than a trial's names to find.
    static KERNEL: Symbolizer = symbolizer();
}

/// Neither lines nor inlined functions: a frame is what the machine calls.
fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build()
}

/// The frames of addresses.
pub(super) struct Symbols {
    /// By process, or none for the kernel.
    frames: HashMap<(Option<u32>, u64), u32>,
    unknown: u32,
    /// What could not be named, and why.
    pub(super) unseen: Vec<Missing>,
    /// Some have no name because there was no time to look for it.
    pub(super) is_out_of_time: bool,
    /// The kernel's functions have names, if any of them is here.
    pub(super) are_kernels_named: bool,
}

/// One process's addresses.
struct Wanted<'a> {
    pid: u32,
    addresses: &'a [u64],
    names: Names,
    until: Instant,
}

impl Symbols {
    /// Names every address of these chains, by what `names` says and until then.
    pub(super) fn resolve<'a>(
        chains: impl Iterator<Item = Chain<'a>>,
        (names, until): (Names, Instant),
        folder: &mut Folder,
        scene: &Scene,
    ) -> Symbols {
        let mut wanted: BTreeMap<Option<u32>, BTreeSet<u64>> = BTreeMap::new();
        let mut room = ADDRESSES_MAX;
        for chain in chains {
            for address in chain.addresses() {
                let process = (!is_kernel(address)).then(|| chain.pid());
                if room > 0 && wanted.entry(process).or_default().insert(address) {
                    room -= 1;
                }
            }
        }
        let unknown = folder.frame(Frame::mark(UNKNOWN));
        let mut symbols = Symbols {
            frames: HashMap::new(),
            unknown,
            unseen: Vec::new(),
            is_out_of_time: false,
            are_kernels_named: true,
        };
        let symbolizer = symbolizer();
        let mut modules = Modules { root: &scene.root, known: HashMap::new() };
        for (process, addresses) in wanted {
            let addresses: Vec<u64> = addresses.into_iter().collect();
            match process {
                Some(pid) => {
                    let wanted = Wanted { pid, addresses: &addresses, names, until };
                    symbols.process(&wanted, &symbolizer, &mut modules, folder);
                }
                None => KERNEL.with(|kernel| symbols.kernel(&addresses, kernel, folder, &scene.root)),
            }
        }
        symbols
    }

    /// The frames of a chain, innermost first.
    pub(super) fn frames(&self, chain: Chain) -> Vec<u32> {
        let frame = |address| {
            let process = (!is_kernel(address)).then(|| chain.pid());
            self.frames.get(&(process, address)).copied().unwrap_or(self.unknown)
        };
        chain.addresses().map(frame).collect()
    }

    fn kernel(&mut self, addresses: &[u64], symbolizer: &Symbolizer, folder: &mut Folder, root: &Root) {
        let mut source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        source.kallsyms = MaybeDefault::Some(root.path("/proc/kallsyms"));
        let unnamed =
            folder.frame(Frame { symbol: "[kernel]".into(), module: None, kind: FrameKind::Kernel });
        if hides_addresses(root) {
            self.are_kernels_named = false;
            self.unseen.push(Missing::with_remedy(
                "the names of the kernel's functions are hidden (kernel.kptr_restrict)",
                "run tare as root, or set kernel.kptr_restrict to 0",
            ));
            self.frames.extend(addresses.iter().map(|address| ((None, *address), unnamed)));
            return;
        }
        let found = symbolizer.symbolize(&Source::Kernel(source), Input::AbsAddr(addresses));
        let found = found.unwrap_or_else(|error| {
            self.are_kernels_named = false;
            self.unseen.push(Missing::new(format!("the kernel's functions have no names: {error}")));
            Vec::new()
        });
        for (at, address) in addresses.iter().enumerate() {
            let frame = match found.get(at) {
                Some(Symbolized::Sym(sym)) => folder.frame(Frame {
                    symbol: sym.name.to_string(),
                    module: None,
                    kind: FrameKind::Kernel,
                }),
                _ => unnamed,
            };
            self.frames.insert((None, *address), frame);
        }
    }

    fn process(
        &mut self,
        wanted: &Wanted,
        symbolizer: &Symbolizer,
        modules: &mut Modules,
        folder: &mut Folder,
    ) {
        let maps = maps::executable(modules.root, wanted.pid);
        if maps.is_empty() {
            return self.not_named(Missing::new(
                "the functions of processes that ended before their trial did have no names",
            ));
        }
        let mut found = self.names(wanted, &maps, symbolizer, modules.root);
        for &address in wanted.addresses {
            let name = found.remove(&address);
            let frame = user_frame(name, maps::at(&maps, address), wanted.pid, modules, folder);
            self.frames.insert((Some(wanted.pid), address), frame);
        }
    }

    /// File by file, those with the most addresses first, so that what takes long keeps few from their names.
    fn names(
        &mut self,
        wanted: &Wanted,
        maps: &[Map],
        symbolizer: &Symbolizer,
        root: &Root,
    ) -> HashMap<u64, String> {
        let mut of_files: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for &address in wanted.addresses {
            let path = maps::at(maps, address).map_or("", |map| map.path.as_str());
            of_files.entry(path).or_default().push(address);
        }
        let mut of_files: Vec<(&str, Vec<u64>)> = of_files.into_iter().collect();
        of_files.sort_by_key(|(_, addresses)| std::cmp::Reverse(addresses.len()));
        let mut found: HashMap<u64, String> = HashMap::new();
        // A symbol table has whole names and is quick to read; debug files are asked for what it does not know.
        let passes: &[bool] = if wanted.names == Names::Tables { &[false] } else { &[false, true] };
        for (&debug_syms, (path, addresses)) in
            passes.iter().flat_map(|pass| of_files.iter().map(move |of_file| (pass, of_file)))
        {
            let left: Vec<u64> = addresses.iter().copied().filter(|at| !found.contains_key(at)).collect();
            if left.is_empty() {
                continue;
            }
            if Instant::now() >= wanted.until {
                self.is_out_of_time = true;
                let remedy = match wanted.names {
                    Names::Tables => "measure with --stacks, which allows 30 s for it",
                    Names::DebugFiles => "measure a program with less debug information",
                };
                let why = "some functions have no names: looking for them took too long";
                self.not_named(Missing::with_remedy(why, remedy));
                break;
            }
            if wanted.names == Names::Tables && is_huge(root, wanted.pid, path) {
                let why = format!("the functions of {path} have no names: it is larger than 1 GiB");
                self.not_named(Missing::with_remedy(
                    why,
                    "measure with --stacks, which reads it all the same",
                ));
                continue;
            }
            let source = Source::Process(Process { debug_syms, ..Process::new(Pid::from(wanted.pid)) });
            match symbolizer.symbolize(&source, Input::AbsAddr(&left)) {
                Ok(names) => {
                    let named = left.iter().zip(&names).filter_map(|(at, name)| Some((*at, name.as_sym()?)));
                    found.extend(named.map(|(at, sym)| (at, sym.name.to_string())));
                }
                Err(error) => {
                    // One file that cannot be read (code that was made at run time) has nothing to do with the others.
                    let why = format!("functions of {path} in process {} have no names: {error}", wanted.pid);
                    self.not_named(Missing::with_remedy(why, "run tare as root, if it may not be read"));
                }
            }
        }
        found
    }

    /// Says a reason once.
    fn not_named(&mut self, why: Missing) {
        if !self.unseen.contains(&why) {
            self.unseen.push(why);
        }
    }
}

fn is_huge(root: &Root, pid: u32, path: &str) -> bool {
    let file = path.starts_with('/').then(|| maps::file(root, pid, path));
    let bytes = file.and_then(|file| Some(std::fs::metadata(file).ok()?.len()));
    bytes.is_some_and(|bytes| bytes > FILE_BYTES_MAX)
}

fn user_frame(
    name: Option<String>,
    map: Option<&Map>,
    pid: u32,
    modules: &mut Modules,
    folder: &mut Folder,
) -> u32 {
    let path = map.map_or("", |map| map.path.as_str());
    let kind = match path {
        "[vdso]" => FrameKind::Vdso,
        _ if path.starts_with('/') && !path.contains("/memfd:") => FrameKind::User,
        _ => FrameKind::Jit,
    };
    let module = (!path.is_empty()).then(|| folder.module(modules.of(pid, path)));
    let symbol = match name {
        Some(name) => name,
        None if path.is_empty() => UNKNOWN.into(),
        // Words like `[vdso]` are in brackets already.
        None if path.starts_with('[') => path.into(),
        None => format!("[{}]", path.rsplit('/').next().unwrap_or(path)),
    };
    folder.frame(Frame { symbol, module, kind })
}

/// Files and their build ids.
struct Modules<'a> {
    root: &'a Root,
    known: HashMap<String, Option<String>>,
}

impl Modules<'_> {
    fn of(&mut self, pid: u32, path: &str) -> Module {
        let build_id = self.known.entry(path.to_owned()).or_insert_with(|| {
            let file = path.starts_with('/').then(|| maps::file(self.root, pid, path))?;
            let id = read_elf_build_id(&file).ok()??;
            Some(hexadecimal(&id))
        });
        Module { path: path.into(), build_id: build_id.clone() }
    }
}

/// Whether the kernel shows every address as zero.
fn hides_addresses(root: &Root) -> bool {
    use std::io::{BufRead, BufReader};
    let Ok(file) = std::fs::File::open(root.path("/proc/kallsyms")) else { return true };
    let lines = BufReader::new(file).lines().map_while(Result::ok).take(64);
    let shown = |line: &str| line.split(' ').next().is_some_and(|word| word.chars().any(|c| c != '0'));
    !lines.into_iter().any(|line| shown(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ourselves: one address of this test, with time and without.
    #[test]
    fn what_there_is_no_time_for_has_no_name_and_a_reason() {
        let own = what_there_is_no_time_for_has_no_name_and_a_reason as fn() as usize as u64;
        let (root, pid) = (Root::live(), std::process::id());
        let maps = maps::executable(&root, pid);
        let named = |until: Instant| {
            let (frames, unknown) = (HashMap::new(), 0);
            let mut symbols = Symbols {
                frames,
                unknown,
                unseen: Vec::new(),
                is_out_of_time: false,
                are_kernels_named: true,
            };
            let wanted = Wanted { pid, addresses: &[own], names: Names::Tables, until };
            let found = symbols.names(&wanted, &maps, &symbolizer(), &root);
            (found.len(), symbols.is_out_of_time, symbols.unseen)
        };
        assert_eq!(named(Instant::now() + std::time::Duration::from_secs(600)), (1, false, Vec::new()));
        let (found, is_out_of_time, unseen) = named(Instant::now());
        assert!(found == 0 && is_out_of_time && unseen.len() == 1, "{unseen:?}");
        assert!(unseen[0].why.contains("took too long") && !unseen[0].remedy.is_empty());
    }

    #[test]
    fn hidden_addresses_are_distinguished_from_shown_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let root = Root::at(folder.path());
        assert!(hides_addresses(&root), "no list at all");
        let list = |first: &str| format!("{first} A fixed\n0000000000000000 T _text\n");
        std::fs::write(folder.path().join("proc/kallsyms"), list("0000000000000000")).unwrap();
        assert!(hides_addresses(&root));
        std::fs::write(folder.path().join("proc/kallsyms"), list("ffffffff81000000")).unwrap();
        assert!(!hides_addresses(&root));
    }
}
