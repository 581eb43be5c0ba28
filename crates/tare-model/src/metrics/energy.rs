//! Energy that the processor took.

super::declare::descriptors! {
    ENERGY_UJ = "energy.energy_uj", Microjoule, Counter,
        "Energy that a domain took; starts again at its range.", "/sys/class/powercap/intel-rapl:*/energy_uj";
    RANGE_UJ = "energy.range_uj", Microjoule, Gauge,
        "Where a domain's counter starts again.", "/sys/class/powercap/intel-rapl:*/max_energy_range_uj";
}
