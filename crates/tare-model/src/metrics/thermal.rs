//! Temperatures.

super::declare::descriptors! {
    TEMPERATURE_C = "thermal.temperature_c", Celsius, Gauge,
        "Temperature of a sensor.", "/sys/class/thermal/thermal_zone*/temp, /sys/class/hwmon/hwmon*/temp1_input of processors";
}
