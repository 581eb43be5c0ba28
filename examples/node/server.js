// A web service whose requests take CPU time: WORK times 50,000 steps of a hash.
'use strict';
const http = require('node:http');

function hash(steps) {
  let sum = 2166136261;
  for (let step = 0; step < steps; step++) {
    sum = Math.imul(sum ^ (step & 255), 16777619);
  }
  return sum >>> 0;
}

const port = Number(process.argv[2]);
if (!port) {
  console.error('usage: node server.js PORT');
  process.exit(2);
}
const work = Number(process.env.WORK || 1);
http.createServer((request, answer) => answer.end(`${hash(work * 50_000).toString(16)}\n`)).listen(port, '127.0.0.1');
