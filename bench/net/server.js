// One event loop that answers with some JSON.
const rows = Array.from({ length: 20 }, (_, id) => ({ id, name: 'n' + id }));
require('http')
  .createServer((request, response) => response.end(JSON.stringify(rows)))
  .listen(Number(process.argv[2]), '127.0.0.1');
