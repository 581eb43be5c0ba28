//! The network interfaces of generator and server: quotas of a cloud's network card that were used up, and queues that held packets back.

super::declare::descriptors! {
    BYTES_IN_EXCEEDED = "link.bytes_in_exceeded", Count, Counter,
        "Packets that came in and were held back or dropped, since the card's quota of bytes was used up (with virtio: bytes).", "ethtool -S: bw_in_allowance_exceeded (ENA), rx*_hw_ratelimit_bytes (virtio)";
    BYTES_OUT_EXCEEDED = "link.bytes_out_exceeded", Count, Counter,
        "The same of what went out.", "ethtool -S: bw_out_allowance_exceeded (ENA), tx*_hw_ratelimit_bytes (virtio)";
    PACKETS_EXCEEDED = "link.packets_exceeded", Count, Counter,
        "Packets that were held back or dropped, since the card's quota of packets was used up, both ways together.", "ethtool -S: pps_allowance_exceeded (ENA)";
    PACKETS_IN_EXCEEDED = "link.packets_in_exceeded", Count, Counter,
        "Packets that came in and were dropped, since the card's quota of packets was used up.", "ethtool -S: rx*_hw_ratelimit_packets (virtio)";
    PACKETS_OUT_EXCEEDED = "link.packets_out_exceeded", Count, Counter,
        "The same of what went out.", "ethtool -S: tx*_hw_ratelimit_packets (virtio)";
    CONNECTIONS_EXCEEDED = "link.connections_exceeded", Count, Counter,
        "Packets that were dropped, since the card's quota of tracked connections was used up.", "ethtool -S: conntrack_allowance_exceeded (ENA)";
    LINK_LOCAL_EXCEEDED = "link.link_local_exceeded", Count, Counter,
        "Packets to the cloud's own services (DNS, time, metadata) that were dropped, since their quota was used up.", "ethtool -S: linklocal_allowance_exceeded (ENA)";
    CARD_QUEUE_DROPS = "link.card_queue_drops", Count, Counter,
        "Packets that the card dropped, since its queue for what comes in was full.", "ethtool -S: rx_queue_drop_cnt (gVNIC)";
    QDISC_DROPS = "link.qdisc_drops", Count, Counter,
        "Packets that a queueing discipline dropped.", "rtnetlink RTM_GETQDISC: TCA_STATS2 drops";
    QDISC_OVERLIMITS = "link.qdisc_overlimits", Count, Counter,
        "Times that a queueing discipline held a packet back, since its rate was used up.", "rtnetlink RTM_GETQDISC: TCA_STATS2 overlimits";
    LIMIT_PACKETS_HZ = "link.limit_packets_hz", Hertz, Gauge,
        "Packets per second above which a rule of the packet filter drops.", "NETLINK_NETFILTER NFT_MSG_GETRULE: limit rate over … drop";
    LIMIT_BYTES_HZ = "link.limit_bytes_hz", Hertz, Gauge,
        "Bytes per second above which a rule of the packet filter drops.", "NETLINK_NETFILTER NFT_MSG_GETRULE: limit rate over … drop";
    LIMIT_DROPS = "link.limit_drops", Count, Counter,
        "Packets that such a rule dropped, where it has a counter.", "NETLINK_NETFILTER NFT_MSG_GETRULE: limit rate over … counter drop";
}
