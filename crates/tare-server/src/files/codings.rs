//! Which precompressed form of a file a client prefers (RFC 9110, 12.5.3).

use tare_http::request::Head;

/// The forms of a file that a client takes.
pub(super) struct Accepted {
    /// Precompressed ones that it likes as much as the file itself, the most liked one first.
    pub(super) preferred: [Option<Coding>; 2],
    /// Whether the file as it is will do.
    pub(super) identity: bool,
}

/// A precompressed form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    /// The end of its name.
    pub(super) suffix: &'static str,
    /// The name of its content coding.
    pub(super) name: &'static str,
}

/// Of two that a client likes as much the first one is taken: it is the smaller.
pub(super) const CODINGS: [Coding; 2] =
    [Coding { suffix: ".br", name: "br" }, Coding { suffix: ".gz", name: "gzip" }];

/// What the client says that it takes.
pub(super) fn accepted(head: &Head<'_>) -> Accepted {
    let weights = Weights::of(head);
    let [first, second] = CODINGS.map(|coding| (weights.coding(coding.name), coding));
    let [first, second] = if second.0 > first.0 { [second, first] } else { [first, second] };
    let identity = weights.identity();
    let takes = |(weight, coding)| (weight > 0 && weight >= identity.unwrap_or(0)).then_some(coding);
    Accepted { preferred: [first, second].map(takes), identity: identity != Some(0) }
}

/// What the client says of codings, in thousandths; 0 is a refusal.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    br: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    /// `*`: all that are not named.
    others: Option<u16>,
}

impl Weights {
    fn of(head: &Head<'_>) -> Weights {
        let mut weights = Weights::default();
        for element in head.list("accept-encoding") {
            let mut parts = element.split(|b| *b == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            // What is no weight is no agreement to a coding, and no refusal of the file as it is.
            let (place, otherwise) = match name.to_ascii_lowercase().as_slice() {
                b"br" => (&mut weights.br, Some(0)),
                b"gzip" | b"x-gzip" => (&mut weights.gzip, Some(0)),
                b"identity" => (&mut weights.identity, None),
                b"*" => (&mut weights.others, None),
                _ => continue,
            };
            let said = parts.next().map_or(Some(1000), weight).filter(|_| parts.next().is_none());
            *place = said.or(otherwise);
        }
        weights
    }

    fn coding(&self, name: &str) -> u16 {
        let named = if name == "br" { self.br } else { self.gzip };
        named.or(self.others).unwrap_or(0)
    }

    /// The file as it is: liked least where nothing is said of it, and refused only by a 0 (RFC 9110, 12.5.3).
    fn identity(&self) -> Option<u16> {
        self.identity.or(self.others)
    }
}

/// `q=0.5` in thousandths: at most three digits behind the point, and none above 1 (RFC 9110, 12.4.2).
fn weight(part: &[u8]) -> Option<u16> {
    let value = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="))?;
    let (one, digits) = match value {
        [one @ (b'0' | b'1')] | [one @ (b'0' | b'1'), b'.'] => (*one == b'1', &[][..]),
        [one @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (*one == b'1', digits),
        _ => return None,
    };
    let mut thousandths = u16::from(one) * 1000;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        thousandths += u16::from(char::from(*digit).to_digit(10)? as u8) * unit;
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_http::limits::Limits;
    use tare_http::request::parse_head;

    fn names(accept: &str) -> (Vec<&'static str>, bool) {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {accept}\r\n\r\n");
        let head = parse_head(text.as_bytes(), &Limits::default()).unwrap().unwrap();
        let Accepted { preferred, identity } = accepted(&head);
        (preferred.into_iter().flatten().map(|coding| coding.name).collect(), identity)
    }

    #[test]
    fn weights_order_the_codings() {
        for (accept, wanted) in [
            ("gzip, br", vec!["br", "gzip"]),
            ("br;q=0.5, gzip;q=0.8", vec!["gzip", "br"]),
            ("br; q=0.001", vec!["br"]),
            ("br ;\tq=0.5 , gzip ; Q=0.501", vec!["gzip", "br"]),
            ("gzip;q=0, *", vec!["br"]),
            ("*", vec!["br", "gzip"]),
            ("*;q=0.5, gzip", vec!["gzip", "br"]),
            ("X-Gzip", vec!["gzip"]),
            ("GZIP, Br;q=0.9", vec!["gzip", "br"]),
            ("identity, gzip;q=0.5", vec![]),
            ("*, gzip;q=0.5", vec!["br"]),
            ("identity;q=0.5, gzip", vec!["gzip"]),
            ("identity;q=x, gzip;q=0.5", vec!["gzip"]),
            ("gzip;q=1.001, br;q=2", vec![]),
            ("gzip;q=0.0001, br;q=.5", vec![]),
            ("gzip;q=0., br;q=1.000", vec!["br"]),
            ("gzip;q, br;q=", vec![]),
            ("gzip;q=-1, br;q=0,5", vec![]),
            ("gzip;level=1, br;q=1;level=1", vec![]),
            ("gzip;q =1, br;q= 1", vec![]),
            ("deflate", vec![]),
            ("gzipped, brotli, x-br", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(names(accept), (wanted, true), "{accept}");
        }
    }

    #[test]
    fn the_file_as_it_is_is_refused_by_a_zero_alone() {
        for (accept, wanted) in [
            ("identity;q=0", vec![]),
            ("*;q=0", vec![]),
            ("IDENTITY;q=0.000, gzip;q=0.001", vec!["gzip"]),
            ("gzip;q=0.5, *;q=0", vec!["gzip"]),
            ("gzip;q=0, br;q=0, identity;q=0", vec![]),
        ] {
            assert_eq!(names(accept), (wanted, false), "{accept}");
        }
        for accept in ["identity;q=0.001, *;q=0", "*;q=0, identity", "gzip;q=0", "identity;q=zero", "*;q=00"]
        {
            assert!(names(accept).1, "{accept}");
        }
    }
}
