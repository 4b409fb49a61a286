import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { EventLogHealth, EventType } from '../../src/events/log.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { SECRET } from './ingress.ts';
import { endWithThisProcess } from './redis.ts';

export interface GatewayProcess extends AsyncDisposable {
  /** Posts a delivery; rejects when the process ends before it answers. */
  post(clientId: string, type: EventType, body: unknown): Promise<Response>;
  health(): Promise<EventLogHealth>;
  /** SIGKILL; resolves once the process is gone. */
  kill(): Promise<void>;
}

/** Starts `test/events/gateway-process.ts`; `fileBlocks` limits the size of any file it writes, in blocks of 512 bytes. */
export async function startGatewayProcess(
  options: { redisUrl?: string; dataDir: string; dieAfterAppend?: boolean },
  fileBlocks?: number,
): Promise<GatewayProcess> {
  const script = fileURLToPath(new URL('../events/gateway-process.ts', import.meta.url));
  const command = [process.execPath, script, JSON.stringify(options)];
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child: ChildProcess =
    fileBlocks === undefined
      ? spawn(process.execPath, command.slice(1), { stdio: [...stdio] })
      : spawn('sh', ['-c', `ulimit -f ${fileBlocks}; exec "$@"`, 'sh', ...command], { stdio: [...stdio] });
  endWithThisProcess(child);
  if (child.stdout === null) throw new Error('its output is piped');
  const [first] = await once(child.stdout, 'data');
  const url = String(first).trim();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  return {
    post: (clientId, type, body) =>
      fetch(ingressUrl(url, clientId, type, SECRET), { method: 'POST', body: JSON.stringify(body) }),
    // What the process writes is a health.
    health: async () => (await (await fetch(`${url}/health`)).json()) as EventLogHealth,
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
