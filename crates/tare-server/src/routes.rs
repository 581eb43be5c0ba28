//! From a path and a method to a handler.

use tare_http::request::Method;
use tare_http::status::Status;

use crate::handler::{Answer, Handler, Request, Responder};

/// The routes of a server, tried in the order in which they were added.
#[derive(Default)]
pub struct Routes {
    routes: Vec<Route>,
}

struct Route {
    /// The whole path, or all of it before the `*`.
    path: String,
    is_prefix: bool,
    methods: &'static [Method],
    handler: Box<dyn Handler>,
}

const READ_METHODS: &[Method] = &[Method::Get, Method::Head];
const SERVER_ALLOWS: &[u8] = b"GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

impl Routes {
    /// Adds a route for GET and HEAD. A path that ends in `*` stands for all that begin with what is before it.
    pub fn add(&mut self, path: &str, handler: impl Handler + 'static) {
        self.add_for(READ_METHODS, path, handler);
    }

    /// Adds a route for the methods given.
    pub fn add_for(&mut self, methods: &'static [Method], path: &str, handler: impl Handler + 'static) {
        let (path, is_prefix) = match path.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (path, false),
        };
        self.routes.push(Route { path: path.to_owned(), is_prefix, methods, handler: Box::new(handler) });
    }

    /// Finds the handler and lets it answer; 404 where there is none, 405 where it is for other methods.
    #[inline]
    pub(crate) fn answer(&self, mut request: Request<'_>, responder: Responder<'_>) -> Answer {
        let path = request.path();
        for route in &self.routes {
            let rest = match route.is_prefix {
                false if route.path == path => "",
                true => match path.strip_prefix(route.path.as_str()) {
                    Some(rest) => rest,
                    None => continue,
                },
                false => continue,
            };
            if route.methods.contains(&request.method()) {
                request.rest = rest;
                return route.handler.handle(&request, responder);
            }
            return route.refuse(&request, responder);
        }
        no_route(&request, responder)
    }
}

impl Route {
    /// OPTIONS is answered for every route; any other method that it does not have is a 405. Both say which it
    /// has (RFC 9110, 9.3.7 and 15.5.6).
    #[cold]
    fn refuse(&self, request: &Request<'_>, responder: Responder<'_>) -> Answer {
        let mut allow = Vec::with_capacity(64);
        for method in self.methods.iter().chain(&[Method::Options]) {
            if !allow.is_empty() {
                allow.extend_from_slice(b", ");
            }
            allow.extend_from_slice(method.name().as_bytes());
        }
        match request.method() {
            Method::Options => responder.status(Status::NO_CONTENT).field("Allow", &allow).empty(),
            _ => responder.status(Status::METHOD_NOT_ALLOWED).field("Allow", &allow).empty(),
        }
    }
}

#[cold]
fn no_route(request: &Request<'_>, responder: Responder<'_>) -> Answer {
    if request.path() == "*" {
        return responder.status(Status::NO_CONTENT).field("Allow", SERVER_ALLOWS).empty();
    }
    responder.plain(Status::NOT_FOUND)
}
