//! Record and verdict to terminal, HTML, JSON, CSV and Markdown.
