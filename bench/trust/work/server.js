// Node's own server: /?n=N answers with N rows as JSON, and with MORE_ROUNDS more. One event loop, with garbage.
const http = require('http');
const more = Number(process.env.MORE_ROUNDS || 0);
http.createServer((req, res) => {
  const count = Number(req.url.split('n=')[1]) + more;
  const rows = [];
  for (let i = 0; i < count; i++) rows.push({ id: i, name: 'n' + i, tags: ['a' + i, 'b' + i] });
  res.end(JSON.stringify(rows));
}).listen(Number(process.argv[2]), '127.0.0.1');
