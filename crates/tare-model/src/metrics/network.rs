//! TCP and the receive path of this network namespace.

super::declare::descriptors! {
    LISTEN_OVERFLOWS = "network.listen_overflows", Count, Counter,
        "Connections that found the accept queue full.", "/proc/net/netstat ListenOverflows";
    LISTEN_DROPS = "network.listen_drops", Count, Counter,
        "Connection attempts dropped by a listener.", "/proc/net/netstat ListenDrops";
    RETRANSMITS = "network.retransmits", Count, Counter,
        "TCP segments sent again.", "/proc/net/snmp RetransSegs";
    SEGMENTS_IN = "network.segments_in", Count, Counter,
        "TCP segments received.", "/proc/net/snmp InSegs";
    SEGMENTS_OUT = "network.segments_out", Count, Counter,
        "TCP segments sent.", "/proc/net/snmp OutSegs";
    DELAYED_ACKS = "network.delayed_acks", Count, Counter,
        "Acknowledgements that waited for data to go with them, and went alone when their time was up.", "/proc/net/netstat DelayedACKs";
    SOFTNET_PACKETS = "network.softnet_packets", Count, Counter,
        "Packets taken from this CPU's backlog.", "/proc/net/softnet_stat column 1";
    SOFTNET_DROPS = "network.softnet_drops", Count, Counter,
        "Packets dropped because this CPU's backlog was full.", "/proc/net/softnet_stat column 2";
    SOFTNET_SQUEEZES = "network.softnet_squeezes", Count, Counter,
        "Times the receive loop stopped with work left.", "/proc/net/softnet_stat column 3";
}
