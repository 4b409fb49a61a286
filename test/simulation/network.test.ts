import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { currentProcess, Process, Simulation } from './core.ts';
import { Network } from './network.ts';

it('what an app sends first is taken by the process that listens, and by no other', async () => {
  const sim = new Simulation('network');
  const network = new Network(sim);
  const [gateway, app] = [new Process(sim, 'gateway'), new Process(sim, 'app')];
  const taken: string[] = [];
  gateway.run(() => {
    const server = createServer((_, response) => {
      taken.push(`request by ${currentProcess()?.name}`);
      response.end();
    });
    const sockets = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) => {
      taken.push(`upgrade by ${currentProcess()?.name}`);
      sockets.handleUpgrade(request, socket, head, (opened) => opened.terminate());
    });
    network.listen('http://gateway.sim', server);
  });
  app.run(() => {
    // It may arrive before the connection stands, or after.
    for (let left = 10; left > 0; left -= 1) {
      network.fetch('http://gateway.sim/').catch(() => undefined);
      new (network.socketClass())('ws://gateway.sim/').on('error', () => undefined);
    }
  });
  await sim.runUntil(1_000);
  for (const process of [app, gateway]) process.kill();
  await sim.end();
  expect(taken).toHaveLength(20);
  expect(new Set(taken)).toEqual(new Set(['request by gateway', 'upgrade by gateway']));
});

it('what reaches the end of a process that ended while the way was cut is refused, once the way is free', async () => {
  const sim = new Simulation('refused');
  const network = new Network(sim);
  const [gateway, app] = [new Process(sim, 'gateway'), new Process(sim, 'app')];
  let [hasBegun, hasEnded] = [false, false];
  gateway.run(() => {
    const server = createServer((request, response) => {
      hasBegun = true;
      response.once('close', () => {
        hasEnded = currentProcess() === gateway;
      });
      request.resume();
      response.write('more than one writing');
      sim.after(2_000, gateway, () => response.write('sent while the way is cut'));
    });
    network.listen('http://gateway.sim', server);
  });
  app.run(() => void network.fetch('http://gateway.sim/').catch(() => undefined));
  await sim.runUntil(1_000);
  expect([hasBegun, hasEnded]).toEqual([true, false]);
  network.weather.cut.add('gateway');
  app.kill();
  await sim.runUntil(3_000);
  expect(hasEnded).toBe(false);
  network.mend('gateway');
  await sim.runUntil(4_000);
  expect(hasEnded).toBe(true);
  gateway.kill();
  await sim.end();
});
