//! The server and its threads.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tare_http::request::Method;
use tare_sys::affinity;
use tare_sys::epoll::Waker;

use crate::architecture::{Intake, Layout, Role, dispatch};
use crate::backend::epoll::Epoll;
use crate::backend::io_uring::IoUring;
use crate::backend::{Backend, Chosen};
use crate::builtin;
use crate::config::Config;
use crate::counters::Counters;
use crate::downstream;
use crate::error::ServerError;
use crate::event_loop::EventLoop;
use crate::files::Files;
use crate::handler::{Answer, Handler, Request, Responder};
use crate::metrics;
use crate::report::Report;
use crate::routes::Routes;
use crate::stop::{Signal, StopHandle};
use crate::tables::{self, Start};

/// Collects routes before the server is bound.
#[derive(Default)]
pub struct Builder {
    routes: Routes,
}

impl Builder {
    /// Adds a route for GET and HEAD. A path that ends in `*` stands for all that begin with what is before it;
    /// the first route that fits is taken.
    #[must_use]
    pub fn route<F>(mut self, path: &str, handler: F) -> Builder
    where
        F: Fn(&Request<'_>, Responder<'_>) -> Answer + Send + Sync + 'static,
    {
        self.routes.add(path, handler);
        self
    }

    /// Has `routes` and no others so far.
    #[must_use]
    pub fn routes(self, routes: Routes) -> Builder {
        Builder { routes }
    }

    /// Adds a route for the methods given.
    #[must_use]
    pub fn route_for(
        mut self,
        methods: &'static [Method],
        path: &str,
        handler: impl Handler + 'static,
    ) -> Builder {
        self.routes.add_for(methods, path, handler);
        self
    }

    /// Adds `/plaintext`, `/json`, `/bytes/N`, `/status/N` and the test routes `/spin?ns=`, `/sleep?us=`,
    /// `/lock?us=`, `/alloc?kb=` and `/fsync`.
    #[must_use]
    pub fn builtin_routes(mut self) -> Builder {
        builtin::add(&mut self.routes);
        self
    }

    /// Adds `/downstream?us=N`: answered when the server at `other` has answered `/sleep?us=N`.
    #[must_use]
    pub fn downstream(self, other: SocketAddr) -> Builder {
        self.route("/downstream", downstream::handler(other))
    }

    /// Serves the files of a folder at every path that no earlier route takes: ranges, conditional requests,
    /// `index.html` for folders, and `.br` or `.gz` files beside a file for clients that take them.
    pub fn files(mut self, folder: &Path) -> Result<Builder, ServerError> {
        let files =
            Files::new(folder).map_err(|source| ServerError::Folder { folder: folder.to_owned(), source })?;
        self.routes.add("/*", files);
        Ok(self)
    }

    /// Opens the listeners. From now on connections queue up; [`Server::run`] serves them.
    pub fn bind(self, config: Config) -> Result<Server, ServerError> {
        config.check()?;
        let Layout { address, roles } = config.architecture.threads(&config.listening)?;
        let signal = |(thread, role): (usize, &Role)| {
            let waker = Waker::new().map_err(|source| ServerError::Thread { thread, source })?;
            let (is_loop, cpu) = match role {
                Role::Acceptor { .. } => (false, None),
                Role::Loop(_) => (true, config.listening.cpu_of(thread)),
            };
            Ok(Arc::new(Signal { waker, is_loop, cpu, counters: Counters::default() }))
        };
        let signals = roles.iter().enumerate().map(signal).collect::<Result<Vec<_>, ServerError>>()?;
        let stop = StopHandle::new(signals, &config);
        let metrics = match config.metrics {
            Some(at) => {
                let of = Builder { routes: metrics::routes(stop.clone()) };
                Some(Box::new(of.bind(metrics::config(at))?))
            }
            None => None,
        };
        let backend = Arc::new(Chosen::of(config.backend));
        Ok(Server {
            config: Arc::new(config),
            backend,
            routes: Arc::new(self.routes),
            address,
            roles,
            stop,
            metrics,
        })
    }
}

/// A server that listens.
pub struct Server {
    config: Arc<Config>,
    backend: Arc<Chosen>,
    routes: Arc<Routes>,
    address: SocketAddr,
    roles: Vec<Role>,
    stop: StopHandle,
    metrics: Option<Box<Server>>,
}

impl Server {
    /// A server without routes.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The address listened on, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The backend that it runs with.
    pub fn backend(&self) -> &Chosen {
        &self.backend
    }

    /// The address of `/metrics`, if it is served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|server| server.address)
    }

    /// The handle that stops this server and reads its counts.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Serves until stopped; then what was done. An error of one thread stops the others.
    pub fn run(mut self) -> Result<Report, ServerError> {
        let Some(metrics) = self.metrics.take() else { return self.run_loops() };
        let stop_metrics = metrics.stop_handle();
        let reader = thread::Builder::new().name("serve-metrics".to_owned()).spawn(move || metrics.run());
        let reader = reader.map_err(|source| ServerError::Thread { thread: self.roles.len(), source })?;
        let result = self.run_loops();
        stop_metrics.stop();
        // What the reader did is of no interest, and its end not worth an error of the server.
        let _ = reader.join();
        result
    }

    fn run_loops(self) -> Result<Report, ServerError> {
        let Some(log) = self.config.access_log.clone() else { return self.run_threads() };
        let writing = log.clone();
        // Not joined: a writer whose reader has stopped reading ends with the process.
        let writer = thread::Builder::new().name("serve-log".to_owned()).spawn(move || writing.run());
        writer.map_err(|source| ServerError::Thread { thread: self.roles.len(), source })?;
        let result = self.run_threads();
        log.end();
        result
    }

    fn run_threads(self) -> Result<Report, ServerError> {
        let stop = self.stop.clone();
        let (starts, left) = if self.config.own_tables {
            let (starts, left) = tables::part(self.roles);
            (starts, Some(left))
        } else {
            (self.roles.into_iter().map(Start::Shared).collect(), None)
        };
        let mut running = Vec::with_capacity(starts.len());
        let mut result = Ok(());
        for (thread, start) in starts.into_iter().enumerate() {
            let job = Job {
                start,
                config: Arc::clone(&self.config),
                backend: Arc::clone(&self.backend),
                routes: Arc::clone(&self.routes),
                stop: stop.clone(),
                signal: stop.signal(thread),
            };
            match thread::Builder::new().name(format!("serve-{thread}")).spawn(move || job.run()) {
                Ok(handle) => running.push(handle),
                Err(source) => {
                    result = Err(ServerError::Thread { thread, source });
                    stop.stop();
                    break;
                }
            }
        }
        if let Some(left) = left {
            left.close();
        }
        for handle in running {
            let ended = handle.join().unwrap_or_else(|_| {
                stop.stop();
                Err(ServerError::Loop { source: io::Error::other("a server thread panicked") })
            });
            result = result.and(ended);
        }
        result.map(|()| stop.report())
    }
}

struct Job {
    start: Start,
    config: Arc<Config>,
    backend: Arc<Chosen>,
    routes: Arc<Routes>,
    stop: StopHandle,
    signal: Arc<Signal>,
}

impl Job {
    fn run(self) -> Result<(), ServerError> {
        let stop = self.stop.clone();
        let result = self.serve();
        if result.is_err() {
            stop.stop();
        }
        result
    }

    fn serve(self) -> Result<(), ServerError> {
        if let Some(cpu) = self.signal.cpu {
            affinity::set(0, &[cpu]).map_err(|source| ServerError::Cpu { cpu, source })?;
        }
        let role = self.start.role().map_err(|source| ServerError::Table { source })?;
        let ended = match role {
            Role::Loop(intake) => match *self.backend {
                Chosen::Epoll { .. } => {
                    run::<Epoll>(self.config, self.routes, intake, self.signal, self.stop)
                }
                Chosen::IoUring => run::<IoUring>(self.config, self.routes, intake, self.signal, self.stop),
            },
            Role::Acceptor { listener, queues } => {
                dispatch::accept_and_distribute(listener, &queues, &self.signal.waker, || {
                    self.stop.is_stopping()
                })
            }
        };
        ended.map_err(|source| ServerError::Loop { source })
    }
}

fn run<B: Backend>(
    config: Arc<Config>,
    routes: Arc<Routes>,
    intake: Intake,
    signal: Arc<Signal>,
    stop: StopHandle,
) -> io::Result<()> {
    EventLoop::<B>::new(config, routes, intake, signal, stop)?.run()
}
