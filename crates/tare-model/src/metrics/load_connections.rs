//! What the connections of somebody else's generator received, as the kernel counts it: his report can be held against it.

super::declare::descriptors! {
    SEGMENTS_IN = "load_connections.segments_in", Count, Counter,
        "Segments with data that the generator's connections received since each was opened, while all of them were there.", "sock_diag tcp_info data_segs_in of its sockets";
    BYTES_IN = "load_connections.bytes_in", Byte, Counter,
        "Bytes that they received.", "sock_diag tcp_info bytes_received of its sockets";
}
