//! The connections between generator and server, as the kernel counts each: of those that were open all through the window.

super::declare::descriptors! {
    OPEN = "connections.open", Count, Gauge,
        "Ends of the server that were there at both edges of the window.", "sock_diag, established sockets on the server's port";
    BACKLOG = "connections.backlog", Count, Gauge,
        "Connections that wait to be accepted for which the server's socket has room; of several sockets, the least.", "sock_diag, listening sockets on the server's port, idiag_wqueue";
    WAITING = "connections.waiting", Count, Gauge,
        "Connections that waited to be accepted when the window closed, of all the server's listening sockets.", "sock_diag, listening sockets on the server's port, idiag_rqueue";
    BUSY_NS = "connections.busy_ns", Nanosecond, Counter,
        "Time in which the server had sent something that was not acknowledged yet, summed over its ends.", "sock_diag tcp_info busy_time";
    RECEIVER_FULL_NS = "connections.receiver_full_ns", Nanosecond, Counter,
        "Of it, time in which the generator's end had no room for more.", "sock_diag tcp_info rwnd_limited";
    BUFFER_FULL_NS = "connections.buffer_full_ns", Nanosecond, Counter,
        "Of it, time in which the server's end had no room for more.", "sock_diag tcp_info sndbuf_limited";
    BYTES_ACKED = "connections.bytes_acked", Byte, Counter,
        "Bytes of the server that were acknowledged.", "sock_diag tcp_info bytes_acked";
    SERVER_RETRANSMITS = "connections.server_retransmits", Count, Counter,
        "Segments that the server's ends sent again.", "sock_diag tcp_info total_retrans";
    SERVER_SEGMENTS = "connections.server_segments", Count, Counter,
        "Segments with data that the server's ends sent.", "sock_diag tcp_info data_segs_out";
    SERVER_SEGMENTS_IN = "connections.server_segments_in", Count, Counter,
        "Segments that came in at the server's ends.", "sock_diag tcp_info segs_in";
    TO_SERVER_SENT = "connections.to_server_sent", Count, Counter,
        "Segments that the generator's ends sent, empty ones and those sent again too, of connections that are seen at both ends.", "sock_diag tcp_info segs_out";
    TO_SERVER_ARRIVED = "connections.to_server_arrived", Count, Counter,
        "Segments that came in at the server's ends of these.", "sock_diag tcp_info segs_in";
    TO_GENERATOR_SENT = "connections.to_generator_sent", Count, Counter,
        "Segments that the server's ends of these sent, empty ones and those sent again too.", "sock_diag tcp_info segs_out";
    TO_GENERATOR_ARRIVED = "connections.to_generator_arrived", Count, Counter,
        "Segments that came in at the generator's ends of these.", "sock_diag tcp_info segs_in";
    UNSENT = "connections.unsent", Count, Gauge,
        "Ends of the server that had been given bytes which they had not sent.", "sock_diag tcp_info notsent_bytes";
    SERVER_TIMED_OUT_NS = "connections.server_timed_out_ns", Nanosecond, Counter,
        "Time from the first retransmission timeout to recovery, summed over the server's ends.", "sock_diag tcp_info total_rto_time (Linux 6.7)";
    CLIENT_TIMED_OUT_NS = "connections.client_timed_out_ns", Nanosecond, Counter,
        "Time from the first retransmission timeout to recovery, summed over the generator's ends.",
        "sock_diag tcp_info total_rto_time (Linux 6.7), remote port the server's";
    CLIENT_RETRANSMITS = "connections.client_retransmits", Count, Counter,
        "Segments that the generator's ends sent again.", "sock_diag tcp_info total_retrans, remote port the server's";
    CLIENT_SEGMENTS = "connections.client_segments", Count, Counter,
        "Segments with data that the generator's ends sent.", "sock_diag tcp_info data_segs_out, remote port the server's";
    CLIENT_SEGMENTS_IN = "connections.client_segments_in", Count, Counter,
        "Segments that came in at the generator's ends.", "sock_diag tcp_info segs_in, remote port the server's";
}
