import { uuid } from '../upstream/data.ts';
import { gatewayProgram, temporaryFolder } from './contenders.ts';
import { COLLECTOR } from './memory.ts';
import type { EventCost } from './phones.ts';
import { type RunningServer, type ServerProgram, startServer } from './process.ts';
import { percentile } from './stats.ts';
import { programFile, type Stub } from './stub.ts';

export const KIB = 1_024;
export const FEW = 500;
export const MANY = 8_000;
export const CALLERS = 4_000;
/** Events of each kind; CPU time is counted in hundredths of a second. */
export const EVENTS = 300;

export const own = (name: string, file: string, ...args: readonly string[]): ServerProgram => ({
  name,
  args: [...COLLECTOR, programFile(file), ...args],
});

/** Starts the gateway, or another server, for as long as `work` takes. */
export async function within<T>(
  program: ServerProgram,
  work: (server: RunningServer) => Promise<T>,
): Promise<T> {
  await using server = await startServer(program);
  return await work(server);
}

export async function withGateway<T>(
  stub: Stub,
  env: Readonly<Record<string, string>>,
  work: (server: RunningServer) => Promise<T>,
): Promise<T> {
  await using folder = await temporaryFolder();
  const program = { upstreamUrl: stub.url, dataDir: folder.path, nodeOptions: COLLECTOR, env };
  return await within(gatewayProgram(program), work);
}

export interface Found {
  readonly bytesEach: number;
  readonly none: EventCost | undefined;
  readonly one: EventCost;
}

export const p95 = (values: readonly number[]): number => percentile(values, 0.95);

/** The phone that an event is for: spread over all of them. */
export const target = (event: number, count: number): number => (event * 7_919) % count;

export const cpu = (cost: EventCost | undefined): number => cost?.cpuMs ?? Number.NaN;

/** The transaction that a phone waits for. */
export const transactionOf = (phone: number): string => uuid('receipt', phone);
