//! One request's answer.

use super::upload::Upload;
use super::wire::TlsEnd;
use crate::fault::Fault;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::HeaderValue;
use http::header::LOCATION;
use http::response::Parts;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tare_http::response::{Answer, Listener, is_redirect};
use tare_model::trial::ErrorKind;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server ended the connection before it did anything for the request: to be sent again.
    Untouched,
    /// It failed.
    Lost(Fault),
}

/// An answer that is awaited; dropped before its end, its stream is reset.
pub(crate) struct Exchange {
    stage: Stage,
    status: u16,
    body_bytes: u64,
    /// What is left of the request.
    upload: Option<Upload>,
    /// Whether more of the request has left since somebody asked.
    went_on: bool,
    tls_end: TlsEnd,
    /// Where a redirect leads.
    pub(crate) location: Option<HeaderValue>,
}

enum Stage {
    Head(ResponseFuture),
    Body(RecvStream),
}

impl Exchange {
    pub(super) fn new(response: ResponseFuture, upload: Option<Upload>, tls_end: TlsEnd) -> Self {
        Exchange {
            stage: Stage::Head(response),
            status: 0,
            body_bytes: 0,
            upload,
            went_on: false,
            tls_end,
            location: None,
        }
    }

    /// Whether the request has not left as a whole.
    pub(crate) fn is_uploading(&self) -> bool {
        self.upload.is_some()
    }

    /// Whether more of the request has left since this was asked last.
    pub(crate) fn went_on(&mut self) -> bool {
        std::mem::take(&mut self.went_on)
    }

    /// Whether its head has come.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Head(_))
    }

    /// Sends more of what is left of the request. A server may answer before it has all of it.
    fn send_more(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Some(upload) = &mut self.upload else { return Ok(()) };
        let before = upload.at();
        let sent = upload.poll(cx);
        // The end of an empty body is to leave too.
        self.went_on |= sent.is_ready() || upload.at() > before;
        match sent {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.upload = None;
                Ok(())
            }
            Poll::Ready(Err(_)) => Err(Failure::Lost(Fault::body_file())),
        }
    }

    /// Goes on with the request and with what came; shows that to `listener`.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut listener: Option<impl Listener>,
    ) -> Poll<Result<Answer, Failure>> {
        self.send_more(cx)?;
        let failure = |error| failure(error, &self.tls_end);
        loop {
            match &mut self.stage {
                Stage::Head(response) => {
                    let (parts, body) = ready!(Pin::new(response).poll(cx)).map_err(failure)?.into_parts();
                    self.status = parts.status.as_u16();
                    if is_redirect(self.status) {
                        self.location = parts.headers.get(LOCATION).cloned();
                    }
                    if let Some(listener) = &mut listener {
                        listener.head(&head(&parts));
                    }
                    self.stage = Stage::Body(body);
                }
                Stage::Body(body) => match ready!(body.poll_data(cx)).transpose().map_err(failure)? {
                    Some(bytes) => {
                        self.body_bytes += bytes.len() as u64;
                        // Refused only for more than was received.
                        body.flow_control().release_capacity(bytes.len()).ok();
                        if let Some(listener) = &mut listener {
                            listener.body(&bytes);
                        }
                    }
                    None => {
                        // What follows the body ends the answer.
                        ready!(body.poll_trailers(cx)).map_err(failure)?;
                        let (status, body_bytes) = (self.status, self.body_bytes);
                        return Poll::Ready(Ok(Answer { status, keep_alive: true, body_bytes }));
                    }
                },
            }
        }
    }
}

/// The head of an answer as HTTP/1 would have it, for a listener.
fn head(parts: &Parts) -> Vec<u8> {
    let mut text = format!("HTTP/2 {}\r\n", parts.status.as_str()).into_bytes();
    for (name, value) in &parts.headers {
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(piece);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn failure(error: h2::Error, tls_end: &TlsEnd) -> Failure {
    let reason = error.reason();
    match (error.is_go_away(), error.is_reset(), error.is_remote()) {
        (true, _, true) if reason == Some(Reason::NO_ERROR) => Failure::Untouched,
        (true, _, true) => Failure::Lost(ErrorKind::GoAway.into()),
        (_, true, true) if reason == Some(Reason::REFUSED_STREAM) => {
            Failure::Lost(ErrorKind::StreamRefused.into())
        }
        (_, true, true) => Failure::Lost(ErrorKind::StreamReset.into()),
        // What the server sent made no sense.
        (true, _, false) | (_, true, false) => Failure::Lost(Fault::malformed("rules of HTTP/2 were broken")),
        _ => Failure::Lost(match tls_end.error() {
            Some(why) => Fault::broken(&why),
            None => error.get_io().map_or(ErrorKind::Io.into(), Fault::broken),
        }),
    }
}
