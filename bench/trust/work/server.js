// Node's own server: /?n=N answers with N rows as JSON. One event loop, with garbage.
const http = require('http');
http.createServer((req, res) => {
  const count = Number(req.url.split('n=')[1]);
  const rows = [];
  for (let i = 0; i < count; i++) rows.push({ id: i, name: 'n' + i, tags: ['a' + i, 'b' + i] });
  res.end(JSON.stringify(rows));
}).listen(Number(process.argv[2]), '127.0.0.1');
