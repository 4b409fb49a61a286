/**
 * Fan-out on `ws` alone: speaks just enough of `graphql-transport-ws` to be asked like the others, and sends the payload
 * that is posted to `/emit` to every subscriber.
 */
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { announce } from '../lib/announce.ts';
import { readText } from './read-text.ts';

const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'graphql-transport-ws' });

sockets.on('connection', (socket) => {
  socket.on('message', (bytes) => {
    const message = JSON.parse(String(bytes));
    if (message.type === 'connection_init') socket.send('{"type":"connection_ack"}');
    if (message.type === 'subscribe') Reflect.set(socket, 'subscription', message.id);
  });
});

const server = createServer(async (request, response) => {
  const payload = await readText(request);
  for (const socket of sockets.clients) {
    socket.send(`{"id":"${Reflect.get(socket, 'subscription')}","type":"next","payload":${payload}}`);
  }
  response.writeHead(201).end();
});
server.on('upgrade', (request, socket, head) =>
  sockets.handleUpgrade(request, socket, head, (webSocket) => sockets.emit('connection', webSocket)),
);
announce(server);
