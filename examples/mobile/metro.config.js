const { request } = require('node:http');
const { getDefaultConfig } = require('expo/metro-config');

const config = getDefaultConfig(__dirname);
const sandbox = process.env.SANDBOX_URL ?? 'http://127.0.0.1:4010';

// The sandbox answers no page of another origin; through here the page in a browser finds its demo token.
config.server.enhanceMiddleware = (metro) => (incoming, response, next) => {
  if (!incoming.url.startsWith('/sandbox')) return metro(incoming, response, next);
  const { host: _, origin: __, ...headers } = incoming.headers;
  const onwards = request(new URL(incoming.url, sandbox), { method: incoming.method, headers });
  onwards.on('response', (received) => {
    response.writeHead(received.statusCode, received.headers);
    received.pipe(response);
  });
  onwards.on('error', () => response.writeHead(502).end());
  incoming.pipe(onwards);
};

module.exports = config;
