//! The network namespace that tare and its generator are in, where that is not the SUT's.

super::declare::descriptors! {
    DELAYED_ACKS = "client.delayed_acks", Count, Counter,
        "Acknowledgements that waited for data to go with them, and went alone when their time was up.", "/proc/self/net/netstat DelayedACKs";
    TIME_WAIT = "client.time_wait", Count, Gauge,
        "Connections that are over and keep their ports for a while.", "/proc/self/net/sockstat TCP tw";
    PORTS = "client.ports", Count, Gauge,
        "Ports that connections may be opened from.", "/proc/sys/net/ipv4/ip_local_port_range";
}
